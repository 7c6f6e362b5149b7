"""`python -m tests.spark.versions`: run the whole matrix, and write the file and the page."""

import tempfile
from pathlib import Path

from dev.console import run_command, step
from tests.spark.versions.matrix import SPARKS, measure
from tests.spark.versions.page import FILE, PAGE, document, page, rendered


def main() -> None:
    """Measure everything anew: a table of which half is old would say nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="sparkpoint-versions-") as folder,
        step("Running every query from each Spark to each", usually="20 to 40 min"),
    ):
        content = document(measure(Path(folder), before=SPARKS, after=SPARKS), SPARKS)
    FILE.write_text(rendered(content))
    PAGE.write_text(page(content))
    print(f"Wrote {FILE.name} and {PAGE.name}.")


if __name__ == "__main__":
    run_command(main)
