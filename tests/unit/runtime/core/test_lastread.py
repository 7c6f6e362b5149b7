"""What the newest batch has read, out of the offset log."""

from sparkpoint.runtime.lastread import LastRead, last_read

HEAD = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def entry(*sources: str, version: str = "v1") -> bytes:
    return "\n".join([version, HEAD, *sources]).encode()


def test_each_source_was_read_from_where_the_batch_before_had_ended() -> None:
    read = last_read(entry('{"t":{"0":1}}', "-"), entry('{"t":{"0":4}}', "5"), 7)

    assert list(read.parts()) == [(0, '{"t":{"0":1}}', '{"t":{"0":4}}'), (1, None, "5")]


def test_the_first_batch_has_read_from_the_beginning() -> None:
    assert list(last_read(None, entry("5"), 0).parts()) == [(0, None, "5")]


def test_a_source_that_has_read_nothing_is_left_out() -> None:
    assert list(last_read(entry("-"), entry("-"), 1).parts()) == []


def test_of_files_it_is_the_newest_entry_of_their_log_whatever_the_batch_has_taken() -> None:
    idle = last_read(entry('{"logOffset":3}'), entry('{"logOffset":3}'), 9)
    first = last_read(None, entry('{"logOffset":0}'), 0)

    assert list(idle.parts()) == [(0, '{"logOffset": 2}', '{"logOffset":3}')]
    assert list(first.parts()) == [(0, None, '{"logOffset":0}')]


def test_nothing_is_known_of_sources_with_names() -> None:
    named = entry("orders:5", "visits:7", version="v2")

    assert last_read(named, named, 3) == LastRead()
