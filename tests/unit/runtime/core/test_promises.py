"""What is known not to make its output exactly once."""

import pytest

from sparkpoint.runtime.promises import broken_promises
from sparkpoint.runtime.writing import Traits


@pytest.mark.parametrize(
    ("traits", "part"),
    [
        (Traits(sink="Kafka"), "the sink kafka has the rows of a batch twice"),
        (Traits(sink="memory"), "the sink memory is gone"),
        (Traits(sink="console"), "the sink console keeps nothing"),
        (Traits(sink="parquet", sources=("rate", "socket")), "the source socket cannot"),
        (Traits(sink="json", is_continuous=True), "a continuous trigger"),
        (Traits(sink="json", is_asynchronous=True), "asyncProgressTrackingEnabled"),
    ],
)
def test_what_cannot_keep_it(traits: Traits, part: str) -> None:
    (reason,) = broken_promises(traits)

    assert part in reason


@pytest.mark.parametrize("sink", [None, "parquet", "noop", "foreach", "foreachBatch", "delta"])
def test_what_may_keep_it(sink: str | None) -> None:
    assert broken_promises(Traits(sink=sink, sources=("kafka", "json", "rate"))) == []


def test_all_reasons_are_told_at_once() -> None:
    traits = Traits(sink="kafka", sources=("socket", "socket"), is_asynchronous=True)

    assert len(broken_promises(traits)) == 3
