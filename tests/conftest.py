"""What holds for every test."""

import gc
import os
from importlib.util import find_spec

from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code.
settings.register_profile(
    "sparkpoint",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # A landing must not depend on luck; whoever develops explores further.
    derandomize="CI" in os.environ,
)
settings.load_profile("sparkpoint")

# Airflow has an environment of its own (`make test-airflow`); no other one can read its tests.
collect_ignore = [] if find_spec("airflow") else ["airflow"]


def pytest_collection_finish() -> None:
    """What thousands of tests and all packages are made of stays: do not look through it again and
    again for garbage."""
    gc.collect()
    gc.freeze()
