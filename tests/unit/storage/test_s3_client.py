"""What is read faster than botocore does by itself is read as botocore does."""

import json
from pathlib import Path

import botocore.session
import pytest
from botocore.loaders import JSONFileLoader
from botocore.utils import parse_timestamp

from sparkpoint.storage import _s3client as s3client


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-19T04:14:24.000Z",
        "2026-11-19T04:14:24.123456Z",
        "2026-11-19T04:14:24Z",
        "2026-11-19T04:14:24+02:00",
        "Thu, 19 Nov 2026 04:14:24 GMT",
        "1795061664.5",
        "20261119",
        1795061664,
    ],
)
def test_times_are_what_botocore_makes_of_them(text: str | float) -> None:
    expected = parse_timestamp(str(text))

    found = s3client._moment(text)

    assert found == expected
    assert found.utcoffset() == expected.utcoffset()


def test_descriptions_are_what_botocore_reads() -> None:
    # Not the one that clients share: they change what they have read.
    loader = s3client._loader.__wrapped__(None)
    own = botocore.session.Session().get_component("data_loader")

    assert set(loader.search_paths) >= set(own.search_paths)
    for service in ("s3", "sts"):
        assert loader.load_service_model(service, "service-2") == own.load_service_model(
            service, "service-2"
        )
    assert loader.load_data("endpoints") == own.load_data("endpoints")
    assert loader.list_available_services("service-2") == own.list_available_services("service-2")


def test_folders_of_a_users_own_descriptions_are_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", str(tmp_path))
    (tmp_path / "mine.json").write_text(json.dumps({"a": [1, None, 2.5]}))

    loader = s3client._loader("$MINE:~/none")

    assert loader.load_data("mine") == {"a": [1, None, 2.5]}
    assert str(Path.home() / "none") in loader.search_paths


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    for found in (s3client._Descriptions(), JSONFileLoader()):
        assert not found.exists(str(tmp_path / "none"))
        assert found.load_file(str(tmp_path / "none")) is None
