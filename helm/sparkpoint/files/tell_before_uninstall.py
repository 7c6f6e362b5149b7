"""Run before `helm uninstall` in the operator's image: which jobs run on, and how to finish.

The namespaces that were served are the arguments; none: all of them. It only tells, so whatever
goes wrong, it ends well: an uninstallation must not fail for want of words.
"""

import json
import os
import ssl
import sys
import urllib.request
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SHOWN = 20


def jobs_of(namespace: str | None) -> list[str]:
    """`namespace/name` of every StatefulSparkJob."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    within = f"/namespaces/{namespace}" if namespace else ""
    token = (_ACCOUNT / "token").read_text()
    request = urllib.request.Request(
        f"{server}/apis/sparkpoint.dev/v1alpha1{within}/statefulsparkjobs",
        headers={"Authorization": f"Bearer {token}"},
    )
    trusted = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:
        items = json.load(answer)["items"]
    return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items]


def told(jobs: list[str]) -> str:
    """What a person should know now."""
    shown = "".join(f"  {job}\n" for job in sorted(jobs)[:_SHOWN])
    more = f"  and {len(jobs) - _SHOWN} more\n" if len(jobs) > _SHOWN else ""
    running = (
        "Jobs that run on, and that nothing heals, changes or ends in order until the operator is "
        f"installed again:\n{shown}{more}"
    )
    return (
        f"{running if jobs else ''}"
        "Definitions, resources, savepoints and checkpoints stay. To forget the resources, too, "
        "once no job is left, and keep the data:\n"
        "  kubectl delete crd statefulsparkjobs.sparkpoint.dev sparksavepoints.sparkpoint.dev"
    )


def main() -> None:
    """Tell it."""
    try:
        found = [job for namespace in sys.argv[1:] or [None] for job in jobs_of(namespace)]
        print(told(found))
    except (KeyError, OSError, ValueError) as error:
        print(f"Which jobs there are is not known: {error}")


if __name__ == "__main__":
    main()
