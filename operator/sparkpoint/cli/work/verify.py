"""`savepoint verify`."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sparkpoint.cli.answer import Answer, Settings
from sparkpoint.cli.exits import Exit
from sparkpoint.cli.progress import shown_progress
from sparkpoint.cli.render.documents import unreadable_documents, verification_document
from sparkpoint.cli.render.savepoints import verification_text
from sparkpoint.cli.work.places import open_repository
from sparkpoint.cli.work.workers import ask_worker, require
from sparkpoint.savepoint import Catalogue, Progress, Repository
from sparkpoint.savepoint.catalogue import choose
from sparkpoint.savepoint.progress import Amount
from sparkpoint.savepoint.verify import Verification
from sparkpoint.worker.model import Answer as Loaded

__all__ = ["verify_savepoints"]

_TOLD = ("Verified", "Corrupt")


def verify_savepoints(
    settings: Settings, location: str, references: Sequence[str], *, deep: bool = False
) -> Answer:
    """Read every byte of the named savepoints, or of all if none is named.

    `deep`: and let Spark load the state of those that are whole.
    """
    if deep:
        require(
            "pyspark",
            purpose="loading state needs Spark and numpy",
            extra="spark",
            instead="verify without --deep",
        )
    repository = open_repository(settings, location)
    found = repository.list()
    if references:
        chosen = {(s := choose(repository.store, found, each)).id: s for each in references}
        found = Catalogue(tuple(chosen.values()))
    with shown_progress(settings) as progress:
        verified = repository.verify(found.savepoints, progress=progress)
        loaded = _loaded(settings, repository, verified, progress) if deep else {}
    verified = [_with_problems(each, loaded.get(each.savepoint.id)) for each in verified]
    unknown = [each.message for each in loaded.values() if each.answer not in _TOLD]
    bad = [each.savepoint.key for each in verified if not each.good]
    bad += [each.path for each in found.unreadable if not each.newer]
    lost = [each.savepoint.key for each in verified if not each.good and each.as_captured]
    newer = [each.path for each in found.unreadable if each.newer]
    total = len(verified) + len(found.unreadable)
    document = {
        "repository": repository.store.uri,
        "good": not (bad or newer),
        "savepoints": [
            {**verification_document(each), **_rows(loaded.get(each.savepoint.id))}
            for each in verified
        ],
        "unreadable": unreadable_documents(found),
    }
    return Answer(
        document=document,
        text=verification_text(verified, found.unreadable),
        notes=(*progress.notes, *(_told(each) for each in loaded.values() if _counts(each))),
        alarm=_alarm(repository.store.uri, bad, newer, lost=lost, total=total) or " ".join(unknown),
        exit=_exit(bad=bad, newer=newer, unknown=unknown),
    )


def _exit(*, bad: Sequence[str], newer: Sequence[str], unknown: Sequence[str]) -> Exit:
    if bad:
        return Exit.DAMAGED
    if newer:
        return Exit.REFUSED
    return Exit.FAILED if unknown else Exit.OK


def _loaded(
    settings: Settings,
    repository: Repository,
    verified: Sequence[Verification],
    progress: Progress,
) -> dict[str, Loaded]:
    """Savepoint -> what a worker says of those in which everything is there."""
    good = [each.savepoint for each in verified if each.good]
    progress.start("loading the state with Spark", Amount(len(good), 0))
    answers: dict[str, Loaded] = {}
    for savepoint in good:
        manifest = savepoint.manifest
        given = ["--repository", repository.store.uri, "--id", savepoint.id, "--deep"]
        given += ["--job", f"{manifest.namespace}/{manifest.job}"]
        if settings.endpoint_url is not None:
            given += ["--endpoint-url", settings.endpoint_url]
        with tempfile.TemporaryDirectory(prefix="sparkpoint-verify-") as folder:
            asked = ask_worker(["verify", *given], Path(folder), silence="Failed")
        answers[savepoint.id] = asked
        progress.advance(Amount(1, 0))
    return answers


def _with_problems(verification: Verification, loaded: Loaded | None) -> Verification:
    if loaded is None or loaded.answer != "Corrupt":
        return verification
    return replace(verification, problems=loaded.problems)


def _counts(loaded: Loaded) -> dict[str, int]:
    queries = loaded.details.queries if loaded.details is not None else ()
    return {query.name: query.rows for query in queries if query.rows is not None}


def _rows(loaded: Loaded | None) -> dict[str, object]:
    return {} if loaded is None else {"loaded": loaded.answer, "rows": _counts(loaded)}


def _told(loaded: Loaded) -> str:
    key = loaded.savepoint.name if loaded.savepoint is not None else ""
    return f"{key}: Spark has loaded {sum(_counts(loaded).values())} rows of state."


def _alarm(
    uri: str, bad: Sequence[str], newer: Sequence[str], *, lost: Sequence[str], total: int
) -> str:
    """`lost`: those of the bad ones that no copy can repair."""
    sentences = []
    if bad:
        sentences.append(
            f"{len(bad)} of {total} savepoints in {uri} are damaged: {', '.join(bad)}."
        )
    if len(bad) > len(lost):
        sentences.append(
            "If another repository has them, `sparkpoint savepoint copy NAME --verify --from OTHER "
            "--to THIS` repairs them, once a manifest that cannot be read is deleted; else delete "
            "them."
        )
    if lost:
        sentences.append(
            f"What was captured was damaged already, and so is every copy: {', '.join(lost)}. "
            "Use other savepoints."
        )
    if newer:
        sentences.append(
            f"{len(newer)} of {total} savepoints in {uri} could not be verified, as a newer "
            f"version wrote them: {', '.join(newer)}. Update Sparkpoint; do not delete them."
        )
    return " ".join(sentences)
