"""Reusable streaming queries with exact truth: state and output, key by key.

Importable by every test that needs real Spark; `WORKLOADS` names them, `run` is a driver process.
"""

from collections.abc import Mapping

from tests.spark.workloads import builtin, pandas_state
from tests.spark.workloads.base import Workload
from tests.spark.workloads.providers import PROVIDERS

__all__ = ["COMBINATIONS", "PROVIDERS", "WORKLOADS", "Workload"]

WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload for workload in (*builtin.WORKLOADS, *pandas_state.WORKLOADS)
}
COMBINATIONS = tuple((w.name, provider) for w in WORKLOADS.values() for provider in w.providers)
"""Every (workload, provider) that Spark supports."""
