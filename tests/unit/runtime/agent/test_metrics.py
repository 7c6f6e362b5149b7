"""The page for Prometheus."""

import re
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from sparkpoint.runtime.metrics import SavepointFigures, render_metrics
from sparkpoint.runtime.model import GateInfo, Progress, QueryProgress, SavepointSummary

_SAMPLE = re.compile(
    r'[a-z_]+(\{([a-z_]+="(\\["\\n]|[^"\\\n])*",?)*\})? (-?[0-9.]+(e[-+]?[0-9]+)?|NaN|[+-]?Inf)'
)


def page(*queries: QueryProgress, figures: SavepointFigures | None = None) -> str:
    progress = Progress(
        job="shop/visits",
        epoch=3,
        phase="running",
        gate=GateInfo(epoch=3, state="none"),
        queries=list(queries),
    )
    return render_metrics(progress, figures or SavepointFigures())


def query(name: str, **fields: object) -> QueryProgress:
    known = {"name": name, "id": "i", "run_id": "r", "active": True}
    return QueryProgress.model_validate({**known, **fields})


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {key: float(value) for key, _, value in (line.rpartition(" ") for line in lines)}


def test_every_line_is_of_the_format_and_every_family_is_described_once() -> None:
    text = page(query('we"ird\\\nname', batch=7), query("plain"))

    described = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            described.append(line.split()[2])
        elif not line.startswith("# HELP "):
            assert _SAMPLE.fullmatch(line), line
            assert line.startswith(described[-1])
    assert len(described) == len(set(described))
    assert text.endswith("\n")


def test_prometheus_itself_reads_the_page() -> None:
    weird = 'we"ird\\\nname'
    families = {
        family.name: family
        for family in text_string_to_metric_families(
            page(query(weird, batch=7), figures=SavepointFigures(done=2, bytes=10))
        )
    }

    batch = families["sparkpoint_query_batch"].samples
    assert [(each.labels["query"], each.value) for each in batch] == [(weird, 7)]
    assert all(family.documentation and family.type != "unknown" for family in families.values())


def test_a_query_shows_all_its_figures() -> None:
    found = samples(
        page(
            query(
                "q",
                batch=7,
                input_rows=1234,
                input_rows_per_second=2.5,
                processed_rows_per_second=5,
                batch_seconds=0.75,
                state_rows=10,
                state_bytes=2**40,
                state_file_bytes=9,
                watermark="2026-01-02T03:04:05.500Z",
                last_commit=datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC),
                trigger_active=True,
            )
        )
    )

    assert {k: v for k, v in found.items() if k.startswith("sparkpoint_query_")} == {
        'sparkpoint_query_active{query="q"}': 1,
        'sparkpoint_query_trigger_active{query="q"}': 1,
        'sparkpoint_query_batch{query="q"}': 7,
        'sparkpoint_query_input_rows_total{query="q"}': 1234,
        'sparkpoint_query_input_rows_per_second{query="q"}': 2.5,
        'sparkpoint_query_processed_rows_per_second{query="q"}': 5,
        'sparkpoint_query_batch_duration_seconds{query="q"}': 0.75,
        'sparkpoint_query_state_rows{query="q"}': 10,
        'sparkpoint_query_state_bytes{query="q"}': 2**40,
        'sparkpoint_query_state_file_bytes{query="q"}': 9,
        'sparkpoint_query_watermark_timestamp_seconds{query="q"}': 1767323045.5,
        'sparkpoint_query_last_commit_timestamp_seconds{query="q"}': 1767323046,
    }


def test_what_is_not_known_is_left_out() -> None:
    found = samples(page(query("q")))

    assert not any("batch{" in key or "timestamp" in key for key in found)


def test_the_job_is_a_metric_of_its_own() -> None:
    info = 'sparkpoint_job_info{job_namespace="shop",job_name="visits",epoch="3"}'

    found = samples(page())

    assert found[info] == 1
    assert found['sparkpoint_job_phase{phase="running"}'] == 1


def test_savepoints_add_up() -> None:
    summary = SavepointSummary(
        id="0", name="a", batches={}, files=1, bytes=100, new_bytes=10, seconds=1.5
    )
    figures = SavepointFigures().with_done(summary, 1000.5).with_done(summary, 2000).with_failed()

    found = samples(page(figures=figures))

    assert found['sparkpoint_savepoints_total{result="done"}'] == 2
    assert found['sparkpoint_savepoints_total{result="failed"}'] == 1
    assert found["sparkpoint_savepoint_bytes_total"] == 200
    assert found["sparkpoint_savepoint_new_bytes_total"] == 20
    assert found["sparkpoint_savepoint_duration_seconds_sum"] == 3
    assert found["sparkpoint_savepoint_duration_seconds_count"] == 2
    assert found["sparkpoint_savepoint_last_timestamp_seconds"] == 2000
