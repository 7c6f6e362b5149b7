"""Our finalizer: on a resource before anything is made for it, until nothing of that is left.

Both are writes of passes, so that only the operator that acts makes them.
"""

from sparkpoint.controller.cluster import Cluster, Object, find, kind_of, metadata
from sparkpoint.controller.errors import NotFoundError
from sparkpoint.controller.keys import FINALIZER

__all__ = ["guarded", "is_let_go", "let_go"]


async def guarded(cluster: Cluster, body: Object) -> Object:
    """With our finalizer on it, unless it is being deleted: then it takes none any more."""
    about = metadata(body)
    present = about.get("finalizers") or []
    if FINALIZER in present or about.get("deletionTimestamp") is not None:
        return body
    return await cluster.set_finalizers(body, [*present, FINALIZER])


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
