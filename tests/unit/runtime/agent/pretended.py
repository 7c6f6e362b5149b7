"""Pretends to be the process that captures, for tests of what is around it: starts at once, and
does what files in the source directory say.

    hold       wait until it is gone        ready      written when asked to begin
    fail       end with this error          log        one line for every order
"""

import json
import os
import sys
import time
from pathlib import Path

PATIENCE = 30.0


def wait_while(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while path.exists():
        if time.monotonic() > deadline:
            sys.exit(3)
        time.sleep(0.005)


def main() -> int:
    order = json.loads(sys.stdin.readline())
    source = Path(order["source"])
    with (source / "log").open("a") as log:
        log.write(f"{order['name']} {os.getpid()}\n")
    fail = source / "fail"
    if fail.exists():
        print(json.dumps({"error": json.loads(fail.read_text())}), flush=True)
        return 1
    print(json.dumps({"ready": True}), flush=True)
    print("not a line of the protocol", flush=True)
    if not sys.stdin.readline():
        return 1
    print(json.dumps({"stage": "batch 7", "done_bytes": 5, "total_bytes": 10}), flush=True)
    wait_while(source / "hold")
    result = {
        "id": "0" * 64,
        "name": order["name"],
        "batches": {"q": 7},
        "files": 2,
        "bytes": 10,
        "new_bytes": 5,
        "seconds": 0.25,
    }
    print(json.dumps({"result": result}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
