"""What the API server or the operator does not take is told with a remedy. No Spark is started."""

import pytest

from dev.cluster.lifecycle import Cluster
from tests.cluster.namespace import Namespace
from tests.cluster.operated import Job, job_spec

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def _quota(pods: int) -> dict[str, object]:
    metadata = {"name": "small"}
    spec = {"hard": {"pods": str(pods)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def test_what_a_job_lacks_is_told_and_nothing_is_started(
    operator: Cluster, namespace: Namespace
) -> None:
    job = Job(namespace, job_spec())
    job.spec["storage"]["secretName"] = "nobody-made-it"
    job.lay_ground()
    namespace.apply(_quota(1))  # the toolbox

    # The script is not there; then a quota is in the way; then the Secret.
    job.apply()
    job.await_condition("Accepted", "False", "ScriptNotFound")
    job.put_script()
    job.await_condition("Degraded", "True", "ObjectRefused")
    assert "quota" in job.condition("Degraded")["message"]
    job.await_event("ObjectRefused")
    namespace.apply(_quota(20))
    namespace.await_true(
        "the Secret to be missed",
        lambda: "nobody-made-it" in job.condition("Degraded").get("message", ""),
        seconds=240,
    )

    # A pod template that cannot be merged is refused as a whole, with its field.
    job.spec["driver"]["podTemplate"] = {"spec": {"tolerations": "all"}}
    job.apply()
    job.await_condition("Accepted", "False", "InvalidSpec")
    assert "spec.driver.podTemplate.spec.tolerations" in job.condition("Accepted")["message"]
    job.await_event("NotAccepted")
    namespace.kubectl("delete", "ssj", job.name, "--timeout=240s", timeout=270)
