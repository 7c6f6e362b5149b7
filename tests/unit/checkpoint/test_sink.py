"""The file sink's log, cut for a rewind and seeded for a fork."""

import pytest

from sparkpoint.checkpoint.errors import CannotRewindError, CheckpointError
from sparkpoint.checkpoint.sink import parse_sink_entry, read_sink_log, seed_sink


def _log(first: int, last: int, interval: int = 10) -> list[str]:
    return [f"{n}.compact" if (n + 1) % interval == 0 else str(n) for n in range(first, last + 1)]


def test_newest_batch_is_found_among_hidden_files() -> None:
    assert read_sink_log([*_log(0, 12), ".12.crc", ".13.x.tmp", "notes"]).latest == 12
    assert read_sink_log([]).latest is None


def test_rewind_deletes_newer_entries_newest_first() -> None:
    rewind = read_sink_log(_log(0, 21)).rewind(18)

    assert rewind.keep == tuple(_log(0, 18))
    assert rewind.delete == ("21", "20", "19.compact")


def test_rewind_to_the_newest_batch_changes_nothing() -> None:
    assert read_sink_log(_log(0, 5)).rewind(5).delete == ()
    assert read_sink_log(_log(0, 5)).rewind(9).delete == ()
    assert read_sink_log([]).rewind(3).delete == ()


def test_rewind_behind_the_only_compacted_entry_is_refused() -> None:
    with pytest.raises(CannotRewindError, match="_spark_metadata/15 is gone") as refused:
        read_sink_log(_log(19, 25)).rewind(15)

    assert isinstance(refused.value, CheckpointError)


def test_rewind_across_a_gap_is_refused() -> None:
    log = [name for name in _log(0, 12) if name != "4"]

    with pytest.raises(CannotRewindError, match="/4 is gone"):
        read_sink_log(log).rewind(7)


def test_rewind_to_a_log_that_spark_would_misread_is_refused() -> None:
    """Of 39.compact alone, Spark derives an interval of 10 and looks for 49.compact."""
    log = read_sink_log(_log(39, 60, interval=20))

    with pytest.raises(CannotRewindError, match="/49 is gone"):
        log.rewind(55)
    assert log.rewind(45).keep == tuple(_log(39, 45, interval=20))
    assert log.rewind(60).delete == ()
    # The one before it tells the interval.
    whole = read_sink_log(_log(19, 60, interval=20))
    assert whole.rewind(55).keep == tuple(_log(19, 55, interval=20))
    # So do the settings of a query whose first one it is.
    assert read_sink_log(_log(0, 210, interval=100)).rewind(150).delete[-1] == "151"


@pytest.mark.parametrize(
    ("batch", "names"),
    [
        (-1, []),
        (0, ["0"]),
        (3, ["0", "1", "2", "3"]),
        (9, ["9.compact"]),
        (12, ["9.compact", "10", "11", "12"]),
        (19, ["9.compact", "19.compact"]),
        (31, ["19.compact", "29.compact", "30", "31"]),
    ],
)
def test_seeded_log_is_unbroken_from_its_last_compaction(batch: int, names: list[str]) -> None:
    assert seed_sink(batch) == dict.fromkeys(names, b"v1")


def test_files_added_by_an_entry_are_listed() -> None:
    data = b'v1\n{"path":"file:///a","action":"add"}\n{"path":"file:///b","action":"delete"}'

    assert parse_sink_entry(data, "1") == ("file:///a",)
