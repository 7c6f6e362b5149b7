"""Our finalizer: on a resource before anything is made for it, until nothing of that is left.

Both are writes of passes, so that only the operator that acts makes them.
"""

from sparkpoint.controller.cluster import Cluster, Object, find, kind_of, metadata
from sparkpoint.controller.errors import NotFoundError
from sparkpoint.controller.keys import FINALIZER

__all__ = ["guarded", "is_guarded", "is_let_go", "let_go"]


async def guarded(cluster: Cluster, body: Object) -> Object:
    """With our finalizer on it, unless it is being deleted: then it takes none any more."""
    if is_guarded(body):
        return body
    present = metadata(body).get("finalizers") or []
    return await cluster.set_finalizers(body, [*present, FINALIZER])


def is_guarded(body: Object) -> bool:
    """Whether our finalizer is on it, or nothing can be put on it any more."""
    about = metadata(body)
    is_going = about.get("deletionTimestamp") is not None
    return is_going or FINALIZER in (about.get("finalizers") or [])


async def let_go(cluster: Cluster, body: Object) -> None:
    """Take it off, whatever was written to the resource meanwhile; if it is gone, that is done."""
    about = metadata(body)
    found = await find(cluster, kind_of(body), about["namespace"], about["name"])
    if found is None or metadata(found)["uid"] != about["uid"]:
        return
    present = metadata(found).get("finalizers") or []
    try:
        await cluster.set_finalizers(found, [each for each in present if each != FINALIZER])
    except NotFoundError:
        return


def is_let_go(body: Object) -> bool:
    """Whether it is being deleted, and does not wait for us."""
    about = metadata(body)
    going = about.get("deletionTimestamp") is not None
    return going and FINALIZER not in (about.get("finalizers") or [])
