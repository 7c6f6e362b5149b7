"""Where a job keeps its state. A story is told on one ground in `make test`, on all in the soak."""

from dataclasses import dataclass

import pytest

__all__ = ["GROUNDS", "Ground", "on_ground"]


@dataclass(frozen=True, slots=True)
class Ground:
    """A kind of storage and a kind of state store."""

    on_s3: bool
    provider: str

    def __str__(self) -> str:
        return f"{'s3' if self.on_s3 else 'volume'}-{self.provider.lower()}"


GROUNDS = tuple(
    Ground(on_s3, provider) for on_s3 in (False, True) for provider in ("HDFSBacked", "RocksDB")
)


def on_ground(chosen: str) -> pytest.MarkDecorator:
    """Give the test its `job` on this ground; on the others only in the soak."""
    assert chosen in map(str, GROUNDS), chosen
    return pytest.mark.parametrize(
        "job",
        [
            pytest.param(each, id=str(each), marks=[] if str(each) == chosen else pytest.mark.soak)
            for each in GROUNDS
        ],
        indirect=True,
    )
