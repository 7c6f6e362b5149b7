"""Where the program begins: nothing is imported before a signal can end it without a traceback."""

import os
import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line of this process; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not SystemExit, which would come up in the midst of an import. Nothing has begun yet.
        signal.signal(number, lambda number, _: os._exit(128 + number))
    from sparkpoint.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
