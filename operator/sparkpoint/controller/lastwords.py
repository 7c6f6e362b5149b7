"""How a driver's pod was when it went: the end of one that is gone before anybody looks at it.

A pod that ends in order has said so when it is deleted, and the watch shows it once more. One that
is deleted by force has not: its process may live on, and nothing is kept of it. Nor does an
operator know what happened before it started; who finds nothing here has not seen an end.
"""

from sparkpoint.controller.cache import ObjectCache
from sparkpoint.controller.cluster import Object, metadata, owner_uid
from sparkpoint.controller.keys import ATTEMPT, ROLE, Key
from sparkpoint.controller.podfacts import is_over, label

__all__ = ["LastWords"]


class LastWords:
    """The newest driver of each job that had ended when its pod was deleted."""

    def __init__(self, jobs: ObjectCache) -> None:
        self._jobs = jobs
        self._pods: dict[str, Object] = {}

    def hear(self, job: Key, pod: Object) -> None:
        """A pod of this job was deleted, and was so at last."""
        known = self._jobs.get(job, job.name)
        uid = metadata(known)["uid"] if known is not None else None
        # Those of a job that is gone, or was before this one, say nothing to anybody.
        if uid is None or owner_uid(pod) != uid:
            return
        if label(pod, ROLE) == "driver" and is_over(pod) and _attempt(pod) >= self._newest(uid):
            self._pods[uid] = pod

    def _newest(self, uid: str) -> int:
        known = self._pods.get(uid)
        return _attempt(known) if known is not None else 0

    def of(self, uid: str) -> tuple[Object, ...]:
        """What is kept of the job with this uid: a pod or none."""
        known = self._pods.get(uid)
        return (known,) if known is not None else ()

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._pods.pop(uid, None)


def _attempt(pod: Object) -> int:
    number = label(pod, ATTEMPT)
    return int(number) if number.isdecimal() else 0
