"""Whose an object is that has the name which a job needs for its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from sparkpoint.controller.cluster import JOBS, Object, metadata, owner_uid
from sparkpoint.controller.errors import LeftoverError, TakenError
from sparkpoint.controller.objects import Owner
from sparkpoint.controller.podfacts import created_at, parse_time

__all__ = ["check_ours", "waited_out"]

_PATIENCE: Final = timedelta(minutes=1)
"""For Kubernetes to remove what an earlier job of this name owned, or what was deleted."""


def check_ours(found: Object, owner: Owner) -> None:
    """LeftoverError if it is somebody else's and will go by itself, TakenError if it stays."""
    if owner_uid(found) == owner.uid:
        return
    about = metadata(found)
    what, owners = f"{found['kind']} {about['name']}", about.get("ownerReferences") or []
    since = parse_time(about.get("deletionTimestamp"))
    if since is not None or any(_is_of_earlier(each, owner) for each in owners):
        raise LeftoverError(f"{what} is of an earlier job of this name, or going", since=since)
    whose = " and ".join(f"{each['kind']} {each['name']}" for each in owners) or "no job"
    raise TakenError(
        f"{what} belongs to {whose}, and job {owner.name} needs this name for its own. Delete it "
        "if nobody needs it, or give the job another name."
    )


@contextmanager
def waited_out(job: Object, now: datetime) -> Iterator[None]:
    """What should go by itself, and has not long after the job was made, is taken."""
    try:
        yield
    except LeftoverError as error:
        times = [each for each in (created_at(job), error.since) if each is not None]
        # What was deleted just now is waited for, however long the job has been there.
        if not times or now - max(times) < _PATIENCE:
            raise
        raise TakenError(
            f"{error}, and has not gone for a minute: look at its finalizers, or delete it."
        ) from error


def _is_of_earlier(reference: dict[str, Any], owner: Owner) -> bool:
    return (reference["kind"], reference["name"]) == (JOBS.kind, owner.name)
