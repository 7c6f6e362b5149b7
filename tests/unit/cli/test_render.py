"""What commands print, as a person sees it."""

from textwrap import dedent

import pytest

from sparkpoint.checkpoint.model import Checkpoint, CommitEntry, OffsetEntry, Operator, StateStore
from sparkpoint.cli.render.checkpoints import checkpoint_text
from sparkpoint.cli.render.plans import collection_text, retention_text
from sparkpoint.cli.render.savepoints import (
    capture_text,
    list_text,
    restore_text,
    savepoint_text,
    verification_text,
)
from sparkpoint.cli.render.staterows import csv_lines
from sparkpoint.savepoint import CaptureResult, MaterializeResult, Mode
from sparkpoint.savepoint.catalogue import Unreadable
from sparkpoint.savepoint.collect import CollectPlan, CollectResult
from sparkpoint.savepoint.manifest import Timing
from sparkpoint.savepoint.retention import Kept, RetentionPlan
from sparkpoint.savepoint.sinks import SinkAction
from sparkpoint.savepoint.verify import Verification
from sparkpoint.state.plain import Plain
from sparkpoint.state.query import Rows
from sparkpoint.storage import Entry
from tests.unit.cli.values import NOW, identity, query_info, savepoint


def page(text: str) -> str:
    return dedent(text).strip("\n")


def test_the_list_is_a_table() -> None:
    first = savepoint("one", hours=50)
    second = savepoint("before-upgrade", parent=first, tags=("keep", "stable"))
    queries = [query_info("clicks"), query_info("visits", batch=7)]
    fork = savepoint("trial", hours=0.5, job="trial", parent=second, queries=queries)

    lines = list_text([first, second, fork], NOW).splitlines()

    assert lines == [
        "NAME            JOB                        BATCH  AGE             SIZE      NEW  TAGS"
        "         PARENT",
        "one             shop/visits                   41  2 d ago     27.1 MiB  1.2 MiB  -"
        "            -",
        "before-upgrade  shop/visits                   41  3 h ago     27.1 MiB  1.2 MiB  "
        "keep,stable  one",
        "trial           shop/trial   clicks 41, visits 7  30 min ago  27.1 MiB  1.2 MiB  -"
        "            shop/visits/before-upgrade",
    ]


def test_an_empty_list_says_so() -> None:
    assert list_text([], NOW) == "No savepoints."


def test_a_new_savepoint_is_summed_up() -> None:
    made = savepoint("before-upgrade", parent=savepoint("one"), tags=("keep",))

    assert capture_text(CaptureResult(made, 5000)) == page(f"""
        Created shop/visits/before-upgrade
          id         {identity("before-upgrade")}
          batch      41
          files      18
          bytes      27.1 MiB
          new bytes  1.2 MiB (4 %)
          seconds    0.42
          tries      1
          parent     one
          tags       keep
        """)


def test_tries_in_vain_are_told_but_several_queries_are_none() -> None:
    queries = [query_info("a"), query_info("b")]
    calm = savepoint("x", queries=queries, timing=Timing(started=NOW, seconds=1, tries=2))
    busy = savepoint("x", queries=queries, timing=Timing(started=NOW, seconds=1, tries=4))

    assert "  tries      1\n" in capture_text(CaptureResult(calm, 0))
    assert "  tries      3 (Spark purged files meanwhile)\n" in capture_text(CaptureResult(busy, 0))


def test_show_tells_the_whole_story() -> None:
    query = query_info(pending=True, warnings=["the store is odd"])
    shown = savepoint(
        "two", parent=savepoint("one"), tags=("keep",), queries=[query], spark_version="4.3.0"
    )

    assert savepoint_text(shown, NOW) == page(f"""
        shop/visits/two
          id             {identity("two")}
          created        2026-07-30T09:00:00.000Z (3 h ago)
          parent         shop/visits/one (6f6e65000000)
          tags           keep
          Spark          4.3.0
          captured from  /data/checkpoints/visits
          size           27.1 MiB in 18 files
          new            1.2 MiB (4 %)
          took           0.42 s, 1 try

        Query (the only one)
          id         6c1f7e1e-0000-4000-8000-000000000001
          batch      41
          in flight  batch 42 had begun
          watermark  2026-07-30T10:00:00.000Z
          sink       file /data/out
          source 0: {{"visits":{{"0":812}}}}
          operator 0: stateStoreSave, rocksdb, 2 partitions
            store default: 23.8 MiB in 9 files
          pinned configuration
            spark.sql.shuffle.partitions=2
          warning: the store is odd
        """)


def test_a_watermark_that_is_no_time_is_still_shown() -> None:
    text = savepoint_text(savepoint("two", queries=[query_info(watermark_ms=2**62)]), NOW)

    assert "4611686018427387904 ms" in text
    assert "watermark  none" in savepoint_text(
        savepoint("two", queries=[query_info(watermark_ms=0)]), NOW
    )


def test_damage_is_told_file_by_file() -> None:
    good = Verification(savepoint("one"), 18, 28_416_000, ())
    bad = Verification(
        savepoint("two"), 18, 28_416_000, ("state/0/0/7.zip: objects/ab/… is missing",)
    )

    unreadable = [Unreadable("savepoints/a/b/c.json", "It is not JSON.")]

    assert verification_text([good, bad], unreadable) == page("""
        ok       shop/visits/one  18 files, 27.1 MiB
        DAMAGED  shop/visits/two  18 files, 27.1 MiB
                 state/0/0/7.zip: objects/ab/… is missing
        DAMAGED  savepoints/a/b/c.json
                 It is not JSON.
        """)


def test_a_restore_tells_where_which_query_and_what_became_of_the_sink() -> None:
    result = MaterializeResult(
        savepoint=savepoint("one"),
        uri="/data/restored",
        mode=Mode.FORK,
        files=18,
        bytes=28_416_000,
        copied_files=3,
        copied_bytes=1_258_291,
        removed_files=1,
        query_ids={"": "6c1f7e1e"},
        sink_actions=(
            SinkAction("", "/data/out", ("_spark_metadata/9", "_spark_metadata/.9.crc"), ()),
        ),
        seconds=0.1234,
    )

    assert restore_text(result) == page("""
        Restored shop/visits/one to /data/restored
          mode     fork
          batch    41
          files    18 (3 copied, 1 removed)
          bytes    27.1 MiB (1.2 MiB copied)
          seconds  0.12
          query (the only one) has id 6c1f7e1e
          sink /data/out: 1 log entry removed, 0 written
        """)


def test_retention_gives_a_reason_for_each() -> None:
    kept = Kept(savepoint("two", hours=1), ("newest", "last", "tag keep"))
    plan = RetentionPlan((kept,), (savepoint("one", hours=90),))

    assert retention_text(plan, NOW, dry_run=True) == page("""
        Keep 1 savepoint:
        NAME  JOB          AGE          SIZE  REASONS
        two   shop/visits  1 h ago  27.1 MiB  newest, last, tag keep

        Would remove 1 savepoint:
        NAME  JOB          AGE          SIZE
        one   shop/visits  3 d ago  27.1 MiB
        """)
    assert retention_text(RetentionPlan((kept,), ()), NOW, dry_run=False).endswith(
        "\n\nRemoved 0 savepoints."
    )


def test_a_collection_tells_what_is_left_for_later() -> None:
    plan = CollectPlan(
        objects=(Entry("objects/ab/cd", 2**20, "", 0.0),),
        records=(),
        tags=(),
        leases=(),
        temporaries=(),
        kept_objects=7,
        kept_bytes=2**30,
        young_bytes=2**10,
        wasted_bytes=10,
    )

    assert collection_text(CollectResult(plan, 2**20, 1, dry_run=False)) == page("""
        Freed 1.0 MiB in 1 object.
        Kept 1.0 GiB in 7 objects.
        1.0 KiB more are unused, but too young or in use.
        10 B are unused inside packs that are needed.
        """)
    assert collection_text(CollectResult(plan, 0, 0, dry_run=True)).startswith("Would free 1.0 MiB")


def test_a_collection_tells_of_what_was_left_unfinished() -> None:
    left = tuple(Entry(f".sparkpoint-tmp/{n}", 2**20, "", 0.0) for n in range(2))
    plan = CollectPlan((), (), (), (), left, 0, 0, 0, 0)

    told = collection_text(CollectResult(plan, 2**21, 0, dry_run=False))

    assert told.startswith("Freed 2.0 MiB in 0 objects and 2 unfinished files.")


def test_a_checkpoint_is_described_with_its_hazards_last() -> None:
    store = StateStore("default", 2, (4, 4), 9, 25_000_000)
    operator = Operator(0, None, None, "hdfs", 2, (store,))
    offsets = OffsetEntry(5, 1, 0, 0, {"spark.sql.shuffle.partitions": "2"}, (("0", None),))
    checkpoint = Checkpoint(
        query_id="6c1f7e1e",
        batches=(4, 5),
        last_committed=5,
        pending=6,
        offsets=offsets,
        commit=CommitEntry(5, 1, 0),
        operators=(operator,),
        files=18,
        bytes=28_416_000,
        hazards=("batch 6 was begun.",),
    )

    assert checkpoint_text("/data/ck", [("", checkpoint)]) == page("""
        /data/ck: 1 query

        Query (the checkpoint itself)
          id                 6c1f7e1e
          last batch         5 (committed batches still here: 2)
          stopped            not at a boundary: batch 6 is pending
          a savepoint takes  27.1 MiB in 18 files
          provider           hdfs
          source 0: no offset
          operator 0: unnamed, hdfs, 2 partitions
            store default: 23.8 MiB in 9 files
          pinned configuration
            spark.sql.shuffle.partitions=2
          hazards
            - batch 6 was begun.
        """)


def test_a_checkpoint_before_its_first_commit_is_described_too() -> None:
    empty = Checkpoint("", (), None, None, None, None, (), 0, 0, ())

    text = checkpoint_text("/data/ck", [("clicks", empty), ("visits", empty)])

    assert text.startswith("/data/ck: 2 queries\n\nQuery clicks\n  id                 unknown")
    assert "none is committed" in text
    assert "before its first commit" in text
    assert text.endswith("hazards: none known")


@pytest.mark.parametrize("first", [True, False])
def test_no_value_of_a_struct_is_lost_where_that_of_another_row_is_null(first: bool) -> None:
    whole: dict[str, Plain] = {"value": {"last": {"url": "/", "at": 7}}}
    null: dict[str, Plain] = {"value": {"last": None}}
    columns = (("value", "last", "url"), ("value", "last", "at"))

    lines = list(csv_lines(Rows(columns, iter([null, whole] if first else [whole, null]))))

    assert lines == ["value.last.url,value.last.at\n", *([",\n", "/,7\n"][:: 1 if first else -1])]
