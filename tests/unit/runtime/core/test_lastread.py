"""What the newest batch has read, out of the offset log."""

import pytest

from sparkpoint.runtime.lastread import last_read, topics_left

HEAD = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def entry(*sources: str, version: str = "v1") -> bytes:
    return "\n".join([version, HEAD, *sources]).encode()


def test_each_source_was_read_from_where_the_batch_before_had_ended() -> None:
    read = last_read(entry('{"t":{"0":1}}', "-"), entry('{"t":{"0":4}}', "5"), 7)

    assert read.parts() == [("0", '{"t":{"0":1}}', '{"t":{"0":4}}'), ("1", None, "5")]


def test_the_first_batch_has_read_from_the_beginning() -> None:
    assert last_read(None, entry("5"), 0).parts() == [("0", None, "5")]


def test_a_source_that_has_read_nothing_is_left_out() -> None:
    assert last_read(entry("-"), entry("-"), 1).parts() == []


def test_of_files_the_newest_entry_of_their_log_may_be_from_before_the_batch() -> None:
    idle = last_read(entry('{"logOffset":3}', "7"), entry('{"logOffset":3}', "7"), 9)
    first = last_read(entry('{"logOffset":0}'), entry('{"logOffset":0}'), 1)
    busy = last_read(entry('{"logOffset":3}'), entry('{"logOffset":4}'), 9)

    # Of other sources nobody knows what was before.
    assert idle.earlier_parts() == [("0", '{"logOffset": 2}', '{"logOffset":3}')]
    assert first.earlier_parts() == [("0", None, '{"logOffset":0}')]
    assert busy.earlier_parts() == []
    assert busy.parts() == [("0", '{"logOffset":3}', '{"logOffset":4}')]


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("KafkaV2[Subscribe[orders]]", ["visits"]),
        ("KafkaV2[Subscribe[orders, visits]]", []),
        ("KafkaV2[Subscribe[visits, orders, more]]", []),
        # What these read is known to the broker alone.
        ("KafkaV2[SubscribePattern[v.*]]", []),
        ("KafkaV2[Assign[visits-0]]", []),
        ("FileStreamSource[file:/visits]", []),
    ],
)
def test_topics_that_the_code_does_not_read_any_more_are_left(source: str, left: list[str]) -> None:
    read = last_read(None, entry('{"orders":{"0":4},"visits":{"0":7}}'), 0)

    assert topics_left(read, {"0": source}) == left


@pytest.mark.parametrize("offset", ["5", '{"logOffset":3}', "-"])
def test_offsets_of_other_kinds_have_no_topics(offset: str) -> None:
    assert (
        topics_left(last_read(None, entry(offset), 0), {"0": "RateStreamV2[rowsPerSecond=1]"}) == []
    )


def test_sources_with_names_are_known_by_these_in_any_order() -> None:
    before = entry('clicks:{"logOffset":0}', "orders:5", version="v2")
    newest = entry("new:2", "orders:7", 'clicks:{"logOffset":1}', version="v2")

    assert last_read(before, newest, 3).parts() == [
        ("new", None, "2"),
        ("orders", "5", "7"),
        ("clicks", '{"logOffset":0}', '{"logOffset":1}'),
    ]
    assert last_read(newest, newest, 4).earlier_parts() == [
        ("clicks", '{"logOffset": 0}', '{"logOffset":1}')
    ]


def test_topics_of_a_source_with_a_name_are_those_under_its_name() -> None:
    newest = entry('old:{"visits":{"0":7}}', 'topics:{"orders":{"0":4}}', version="v2")
    sources = {"topics": "KafkaV2[Subscribe[visits]]", "new": "KafkaV2[Subscribe[more]]"}

    # What the code reads no more is nothing that Spark asks for.
    assert topics_left(last_read(None, newest, 3), sources) == ["orders"]
