"""Run by `helm test` in the operator's image: does the operator answer, are its resources served?

The address of the operator's pages is the argument; without it, they are not asked for. A minute is
enough for an operator that was installed a moment ago.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_RESOURCES = {"statefulsparkjobs", "sparksavepoints"}
_PATIENCE = 60.0


def check_pages(address: str) -> str:
    """The operator lives, and counts."""
    with urllib.request.urlopen(f"{address}/healthz", timeout=10):
        pass
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as page:
        if b"sparkpoint_operator_" not in page.read():
            raise ValueError(f"{address}/metrics has nothing of the operator")
    return f"the operator answers at {address}"


def check_resources() -> str:
    """The API server knows both of our resources."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token = (_ACCOUNT / "token").read_text()
    request = urllib.request.Request(
        f"{server}/apis/sparkpoint.dev/v1alpha1", headers={"Authorization": f"Bearer {token}"}
    )
    trusted = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:
        served = {each["name"] for each in json.load(answer)["resources"]}
    if missing := _RESOURCES - served:
        raise ValueError(f"the API server does not serve {', '.join(sorted(missing))}")
    return "the API server serves our resources"


def main() -> None:
    """Try until all is well, or the time is over; then say what is not."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            found = [check_resources(), *map(check_pages, sys.argv[1:])]
            print("\n".join(found))
            return
        except (urllib.error.URLError, OSError, ValueError) as error:
            if time.monotonic() > deadline:
                sys.exit(f"error: {error}")
            time.sleep(2)


if __name__ == "__main__":
    main()
