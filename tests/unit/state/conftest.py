"""Golden state that real Spark wrote, unpacked once."""

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

_GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one checkpoint for each case."""
    folder = tmp_path_factory.mktemp("golden-state")
    with tarfile.open(_GOLDEN / "checkpoints.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def golden_rows() -> Mapping[str, Mapping[str, list[int]]]:
    """Case -> `operator/store` -> rows by partition, as Spark's own reader counts them."""
    content: Mapping[str, Mapping[str, list[int]]] = json.loads((_GOLDEN / "rows.json").read_text())
    return content
