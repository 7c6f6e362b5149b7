"""The committed CRDs, the chart's copies of them, and the pages are up to date."""

from pathlib import Path

import pytest

from dev.crds import generated_files

_ROOT = Path(__file__).parents[3]
_DEFINITIONS = ("statefulsparkjobs.yaml", "sparksavepoints.yaml")
_FOLDERS = ("crds", "helm/sparkpoint/files/crds")
_NAMES = [
    *(f"{folder}/{name}" for folder in _FOLDERS for name in _DEFINITIONS),
    "docs/api.md",
    "docs/helm.md",
]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {str(path.relative_to(_ROOT)): text for path, text in generated_files().items()}


def test_both_definitions_and_the_pages_are_generated(files: dict[str, str]) -> None:
    assert sorted(files) == sorted(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_committed_file_is_what_would_be_generated(files: dict[str, str], name: str) -> None:
    committed = (_ROOT / name).read_text()

    assert committed == files[name], "models or values have changed: run `make crds`"


@pytest.mark.parametrize("folder", _FOLDERS)
def test_nothing_else_lies_among_the_definitions_and_the_copies(folder: str) -> None:
    assert sorted(path.name for path in (_ROOT / folder).iterdir()) == sorted(_DEFINITIONS)
