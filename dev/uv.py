"""Calling the locked uv, which stands beside the Python that runs us."""

import subprocess
import sys
from pathlib import Path

from dev.console import Problem

__all__ = ["run_uv"]

_CHECKOUT = Path(__file__).parent.parent


def run_uv(*arguments: str) -> str:
    """Run uv in the checkout and return what it prints; Problem with its words if it fails."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "uv"), *arguments],
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Problem(
            f"uv {arguments[0]} failed: {done.stderr.strip()[-1500:]}",
            remedy="check that PyPI is reachable, then run the same command again.",
        )
    return done.stdout
