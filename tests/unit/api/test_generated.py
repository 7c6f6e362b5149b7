"""The committed CRDs, the chart's copies of them, and the pages are up to date."""

from pathlib import Path

import pytest

from dev.crds import generated_files

FILES = generated_files()


def test_both_definitions_and_the_pages_are_generated() -> None:
    names = {path.name for path in FILES}

    assert names == {"statefulsparkjobs.yaml", "sparksavepoints.yaml", "api.md", "helm.md"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_committed_file_is_what_would_be_generated(path: Path) -> None:
    assert path.read_text() == FILES[path], "models or values have changed: run `make crds`"


def test_nothing_else_lies_among_the_definitions_and_the_copies() -> None:
    folders = {path.parent for path in FILES if path.suffix != ".md"}

    assert len(folders) == 2
    for folder in folders:
        assert set(folder.iterdir()) == {path for path in FILES if path.parent == folder}
