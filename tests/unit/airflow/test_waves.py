"""Every job is in one wave, in order, and no wave is larger than it may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkpoint.airflow.decisions.errors import WavesError
from sparkpoint.airflow.decisions.waves import MOST_WAVES, plan_waves


@given(
    st.lists(st.integers(), min_size=1, max_size=60),
    st.lists(st.integers(1, 20), min_size=1, max_size=5),
)
def test_every_job_is_in_one_wave(jobs: list[int], sizes: list[int]) -> None:
    try:
        waves = plan_waves(jobs, sizes)
    except WavesError:
        assert sum(sizes) + (MOST_WAVES - len(sizes)) * sizes[-1] < len(jobs)
        return

    assert [job for wave in waves for job in wave] == jobs
    assert len(waves) == MOST_WAVES
    for number, wave in enumerate(waves):
        assert len(wave) <= sizes[min(number, len(sizes) - 1)]


@pytest.mark.parametrize(("jobs", "sizes"), [([], [1]), ([1], []), ([1], [0]), ([1] * 11, [1])])
def test_what_makes_no_plan_is_refused(jobs: list[int], sizes: list[int]) -> None:
    with pytest.raises(WavesError):
        plan_waves(jobs, sizes)
