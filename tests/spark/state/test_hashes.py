"""Our hash, and our reading of rows, are Spark's for random values of every type of key."""

import json
import math
import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from sparkpoint.state.manyhash import hash_keys
from sparkpoint.state.murmur import SEED, row_hasher
from sparkpoint.state.types import parse_columns
from sparkpoint.state.unsafe import Value, decode_row

_SCHEMA = (
    "bo boolean, by tinyint, sh smallint, n int, v bigint, fl float, do double, sd decimal(9,2), "
    "md decimal(18,0), ld decimal(38,10), s string, bi binary, da date, ts timestamp, "
    "nt timestamp_ntz, dt interval day to second, "
    "w struct<start: timestamp, end: timestamp>, st struct<a: int, b: struct<c: string, d: double>>"
)
_EPOCH = datetime(1970, 1, 1)
_ROWS = 300


def _row(chance: random.Random) -> tuple[Any, ...]:
    whole = chance.randrange(-(2**63), 2**63)
    moment = datetime.fromtimestamp(chance.randrange(0, 2**32), UTC)
    text = "".join(chance.choice("ab ßż日\U0001f600") for _ in range(chance.randrange(20)))
    number = chance.choice([0.0, -0.0, math.nan, math.inf, -math.inf, chance.gauss(0, 1e9)])
    values = (
        chance.random() < 0.5,
        chance.randrange(-128, 128),
        chance.randrange(-(2**15), 2**15),
        chance.randrange(-(2**31), 2**31),
        whole,
        struct.unpack("<f", struct.pack("<f", number))[0],
        number,
        Decimal(chance.randrange(-(10**9), 10**9)).scaleb(-2),
        Decimal(chance.randrange(-(10**18), 10**18)),
        Decimal(chance.randrange(-(10**28), 10**28)),
        text,
        bytearray(chance.randbytes(chance.randrange(12))),
        date.fromordinal(chance.randrange(1, 3_000_000)),
        moment,
        moment.replace(tzinfo=None),
        timedelta(microseconds=chance.randrange(10**15)),
        (moment, moment + timedelta(minutes=1)),
        (chance.randrange(9), (text, number) if chance.random() < 0.7 else None),
    )
    return tuple(None if chance.random() < 0.15 else value for value in values)


def _as_kept(value: Any) -> Value:
    """A value of Python as a row keeps it."""
    match value:
        case datetime():
            return (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case timedelta():
            return value // timedelta(microseconds=1)
        case bytearray():
            return bytes(value)
        case tuple():
            return tuple(_as_kept(each) for each in value)
        case _:
            found: Value = value
            return found


def _comparable(value: Value) -> object:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case tuple():
            return tuple(_comparable(each) for each in value)
        case _:
            return value


def test_random_rows_of_every_type_have_the_hash_and_the_values_that_spark_sees(
    spark: SparkSession,
) -> None:
    chance = random.Random(5)
    given = [_row(chance) for _ in range(_ROWS)]
    frame = spark.createDataFrame(given, _SCHEMA).coalesce(1).localCheckpoint()
    columns = parse_columns(json.loads(frame.schema.json()), "the frame")
    internal = frame._jdf.queryExecution().executedPlan().executeCollect()
    rows = [bytes(row.getBytes()) for row in internal]

    expected = [row[0] for row in frame.select(F.hash(*frame.columns)).collect()]

    hashed = row_hasher(columns, width=len(columns))
    found = [struct.unpack("<i", struct.pack("<I", hashed(row, 0, SEED)))[0] for row in rows]
    assert found == expected
    assert hash_keys(numpy, rows, columns, width=len(columns)) == expected
    values = [_comparable(decode_row(row, columns)) for row in rows]
    assert values == [_comparable(_as_kept(row)) for row in given]
