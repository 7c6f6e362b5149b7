"""Run before `helm uninstall` in the operator's image: which jobs run on, and how to finish.

The namespaces that were served are the arguments; none: all of them. It only tells, so whatever
goes wrong, it ends well: an uninstallation must not fail for want of words.
"""

import json
import os
import ssl
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SHOWN = 20
_PAGE = 500
# Thousands of jobs with their status are more than this pod has memory for.
_NAMES_ALONE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def jobs_of(namespace: str | None) -> list[str]:
    """`namespace/name` of every StatefulSparkJob."""
    abouts = [item["metadata"] for page in _pages(namespace) for item in page["items"]]
    return [f"{about['namespace']}/{about['name']}" for about in abouts]


def _pages(namespace: str | None) -> Iterator[dict[str, Any]]:
    """A list of them in pieces."""
    within = f"/namespaces/{namespace}" if namespace else ""
    query = {"limit": str(_PAGE)}
    while True:
        path = f"/apis/sparkpoint.dev/v1alpha1{within}/statefulsparkjobs"
        page = asked(f"{path}?{urllib.parse.urlencode(query)}")
        yield page
        query["continue"] = page["metadata"].get("continue") or ""
        if not query["continue"]:
            return


def asked(path: str) -> dict[str, Any]:
    """What the API server answers."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token = (_ACCOUNT / "token").read_text()
    headers = {"Authorization": f"Bearer {token}", "Accept": _NAMES_ALONE}
    request = urllib.request.Request(f"{server}{path}", headers=headers)
    trusted = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


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
