"""What must be true before a cluster is raised; each failure is one sentence with the way out."""

import os
import platform
import shutil
from collections.abc import Iterator

from dev.cache import cache_root, has_entries, require_free_space
from dev.cluster.programs import GO_REMEDY, has_kubernetes_binaries
from dev.console import Problem

__all__ = ["check_machine"]

_NEEDED_GIB = 15
_NEEDED_WITH_CACHES_GIB = 4
_COMMANDS = ("unshare", "mount", "hostname", "wget")


def check_machine() -> None:
    """Raise one Problem that lists everything that is missing."""
    problems = list(_problems())
    if problems:
        raise Problem(
            "This machine cannot raise the local cluster:\n"
            + "\n".join(f"  - {what}" for what, _ in problems),
            remedy="\n    ".join(remedy for _, remedy in problems)
            + "\n    Or name an existing cluster with --context (make demo CONTEXT=name).",
        )
    # Once the caches are filled, only pods and volumes need space. Folders tell nothing: a first
    # build that was interrupted leaves them, and has most of its space still to take.
    built = has_kubernetes_binaries() and has_entries("layers")
    needed = _NEEDED_WITH_CACHES_GIB if built else _NEEDED_GIB
    require_free_space(cache_root(), gib=needed, purpose="The local cluster")


def _problems() -> Iterator[tuple[str, str]]:
    if platform.system() != "Linux":
        yield f"it runs {platform.system()}, not Linux", "use a Linux machine."
    elif os.geteuid() != 0:
        yield (
            "you are not root, who alone may make namespaces and mounts",
            'run it as root (sudo env PATH="$PATH" make ...).',
        )
    for command in _COMMANDS:
        if shutil.which(command) is None:
            yield f"the command `{command}` is missing", f"install it (package of `{command}`)."
    # Here, because the suites before the cluster's take long, and their Kubernetes is built after.
    if shutil.which("go") is None and not has_kubernetes_binaries():
        yield "Go is not on PATH, and the local Kubernetes is still to be built with it", GO_REMEDY
