"""Calling the locked uv, which stands beside the Python that runs us."""

import sys
from pathlib import Path

from dev.console import run_program

__all__ = ["run_uv"]

_CHECKOUT = Path(__file__).parent.parent


def run_uv(*arguments: str) -> str:
    """Run uv in the checkout and return what it prints; Problem with its words if it fails."""
    return run_program(
        [Path(sys.executable).parent / "uv", *arguments],
        cwd=_CHECKOUT,
        failed=f"uv {arguments[0]} failed",
        remedy="check that PyPI is reachable, then run the same command again.",
    )
