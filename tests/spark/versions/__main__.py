"""`python -m tests.spark.versions`: run the whole matrix, and write the file and the page.

Called again after it was interrupted, or after cells have failed, it runs what is missing, if the
code is the same.
"""

import shutil
from pathlib import Path

from dev.cache import cache_root, digest_of
from dev.console import Problem, run_command, step
from tests.spark.versions.matrix import SPARKS, measure
from tests.spark.versions.page import FILE, PAGE, document, page, rendered

_HERE = Path(__file__).resolve().parent
_OURS = _HERE.parents[2] / "operator" / "sparkpoint"
_CODE = (_HERE, *(_OURS / name for name in ("checkpoint", "savepoint", "storage")))
"""What a measurement is of: a table of which half is of other code would say nothing."""


def main() -> None:
    """Measure everything, and forget it once it is written down."""
    folders = cache_root() / "versions"
    folder = folders / digest_of([*_CODE, *SPARKS])
    for other in folders.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    with step(
        "Running every query from each Spark to each",
        usually="10 min, and 5 more to install the Sparks",
    ):
        measured = measure(folder, before=SPARKS, after=SPARKS)
    content = document(measured, SPARKS)
    FILE.write_text(rendered(content))
    PAGE.write_text(page(content))
    print(f"Wrote {FILE.name} and {PAGE.name}.")
    failed = [cell for cell, result in measured.results.items() if result.startswith("failed")]
    if failed:
        raise Problem(f"{len(failed)} cells failed: {failed}", remedy="run it again for these.")
    shutil.rmtree(folder)


if __name__ == "__main__":
    run_command(main)
