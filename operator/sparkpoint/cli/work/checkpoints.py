"""`checkpoint show`."""

from sparkpoint.checkpoint.overview import read_checkpoint
from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.render.checkpoints import checkpoint_text
from sparkpoint.cli.render.documents import checkpoint_document
from sparkpoint.cli.work.places import located, open_place, queries_in

__all__ = ["show_checkpoint"]


def show_checkpoint(settings: Settings, location: str) -> Answer:
    """Describe every query of a checkpoint."""
    source = open_place(settings, location)
    with located(source):
        queries = [(name, read_checkpoint(source.child(name))) for name in queries_in(source)]
    document = {
        "checkpoint": source.uri,
        "queries": [checkpoint_document(name, each) for name, each in queries],
    }
    return Answer(document=document, text=checkpoint_text(source.uri, queries))
