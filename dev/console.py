"""How the development commands speak: a line per step with its usual duration, one clear error."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Problem", "run_command", "run_program", "say", "step"]

_LAST_WORDS = 2000
"""Characters of what a program said that a Problem repeats: the end tells what went wrong."""


class Problem(Exception):  # noqa: N818 - it is shown to a person, not caught by code
    """Something a person must see: what is wrong, and the way out."""

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}\n  What to do: {remedy}")


def say(text: str) -> None:
    """Print one line of progress, on stderr, so that stdout stays usable."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(text: str, *, usually: str = "") -> Iterator[None]:
    """Announce a step before it begins, and its duration when it ends."""
    say(f"==> {text}" + (f" (usually {usually})" if usually else ""))
    started = time.monotonic()
    yield
    say(f"    done in {time.monotonic() - started:.1f} s")


def run_program(
    command: Sequence[str | Path],
    *,
    failed: str,
    remedy: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: str | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program and return what it prints; a Problem with its last words if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        env=env,
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-_LAST_WORDS:]
        raise Problem(f"{failed}: {said}", remedy=remedy)
    return done.stdout


def run_command(main: Callable[[], None]) -> None:
    """Run a command; a Problem ends it with one clear sentence instead of a traceback."""
    try:
        main()
    except Problem as problem:
        say(f"error: {problem}")
        sys.exit(1)
    except subprocess.CalledProcessError as error:
        say(f"error: `{' '.join(map(str, error.cmd))[:300]}` failed with {error.returncode}.")
        say("  What to do: see its message above; the same command again goes on.")
        sys.exit(1)
    except (subprocess.TimeoutExpired, OSError) as error:
        say(f"error: {error}\n  What to do: mend that (disk full? not root?) and run it again.")
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted; run the same command again to go on")
        sys.exit(130)
