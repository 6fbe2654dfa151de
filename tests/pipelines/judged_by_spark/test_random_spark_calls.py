"""Functions drawn from all that Spark has, over columns of odd values, give in a view what they give
in Spark: the same rows, or an error in both.

What only one of both refuses is passed over: Spark's implicit casts go further in places.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pipelines.judged_by_spark.test_both_tiers import COLUMNS
from pipelines.judged_by_spark.test_random_calls import _near
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.binding.aggregates import KNOWN, NAMES
from tailrace.pipelines.errors import EvaluationError, UnforeseenError
from tailrace.pipelines.spark.catalyst.client import functions
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = (
    "id INT, i INT, b BIGINT, f DOUBLE, d DECIMAL(12,3), s STRING, o STRING, y BINARY, k BOOLEAN,"
    " day DATE, at TIMESTAMP, n TIMESTAMP_NTZ, xs ARRAY<INT>, ss ARRAY<STRING>, m MAP<STRING, INT>, j STRING"
)
T = table("t", DDL, ["id"])
MORE: dict[str, list[object]] = {
    "xs": [[3, None, 1], [], [7], [1, 1, 2], [-1], None],
    "ss": [["b", "a", None], [], ["x"], ["a/b", ""], ["ö"], None],
    "m": [[("x", 1), ("y", None)], [], [("a", 0)], [("", 5)], [("k", -2)], None],
    "j": ['{"a": 1, "b": [1, 2.5]}', "[1,2]", "null", "7", '{"a": {"c": "x"}}', None],
}
# Values that this calendar of Python's does not hold, and those that no other column needs, stay out.
_ROWS = [
    {"id": row, **{name: (COLUMNS | MORE)[name][row] for name in T.schema.names if name != "id"}}
    for row in range(6)
    if row not in (2, 3)
]
_ARGUMENTS = [
    *(name for name in T.schema.names if name != "id"), "s", "xs", "i", "j", "1", "2", "-1", "0", "'a'", "' '",
    "'$.a'", "'yyyy-MM-dd'", "'MONTH'", "'UTC'", "array('a', s)", "upper(s)", "x -> x", "(x, y) -> x",
    "x -> x IS NULL",
]  # fmt: skip
# Of the clock, of chance, of the session; rows made of one; what grows as large as a number says; order of
# sets of hashes.
_PASSED_OVER = {
    "now", "curdate", "current_date", "current_timestamp", "localtimestamp", "unix_timestamp",
    "current_time", "current_timezone", "current_user", "user", "session_user", "current_catalog",
    "current_database", "current_schema", "version", "uuid", "rand", "randn", "random", "randstr",
    "uniform", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name",
    "input_file_block_start", "input_file_block_length", "explode", "explode_outer", "posexplode",
    "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple", "variant_explode",
    "variant_explode_outer", "array_repeat", "repeat", "space", "lpad", "rpad", "sequence",
    "aes_encrypt", "reflect", "java_method", "try_reflect", "raise_error", "assert_true", "grouping",
    "grouping_id", "window", "session_window", "window_time", "bloom_filter_agg", "to_variant_object",
}  # fmt: skip


def _known() -> list[str]:
    return [
        name
        for name in functions()
        if name.isidentifier() and name not in _PASSED_OVER | KNOWN | NAMES.keys()
    ]


def _calls(draw: random.Random, names: list[str]) -> str:
    count = draw.choices((0, 1, 2, 3, 4), (1, 6, 6, 3, 1))[0]
    return f"{draw.choice(names)}({', '.join(draw.choice(_ARGUMENTS) for _ in range(count))})"


def _here(call: str) -> tuple[str, Any]:
    """What a view makes of it: ("is", values), ("fails", why) or ("refuses", why)."""
    try:
        memory = MemoryTables(
            compile_views([ViewDefinition("v", f"SELECT id, {call} AS x FROM t", ("id",))], [T])
        )
        for row in _ROWS:
            memory.upsert("t", row)
        memory.tick()
    except EvaluationError as error:
        return "fails", error.message
    except TailraceError as error:
        assert not isinstance(error, UnforeseenError), (call, error.message, error.detail)
        return "refuses", error.message
    return "is", [row["x"] for row in sorted(memory.rows("v"), key=lambda row: row["id"])]


def _compared(spark: SparkSession, seed: int, wanted: int) -> tuple[int, int, list[str]]:
    """How many drawn calls that views take gave the same, how many failed in both, and the others."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.createDataFrame(pa.Table.from_pylist(_ROWS, T.schema)).createOrReplaceTempView("t")
    draw, names = random.Random(seed), _known()
    equal, failed, wrong = 0, 0, []
    for _ in range(100 * wanted):
        if equal + failed + len(wrong) == wanted:
            break
        call = _calls(draw, names)
        kind, here = _here(call)
        if kind == "refuses":
            continue
        try:
            found = spark.sql(f"SELECT {call} AS x FROM t ORDER BY id").toArrow().column("x")
            theirs: Any = found.to_pylist()
        except (PySparkException, Py4JError) as error:
            if kind == "is":
                wrong.append(f"{call}: {here}, an error in Spark: {str(error)[:200]}")
            else:
                failed += 1
            continue
        except (ValueError, OverflowError, pa.ArrowInvalid, NotImplementedError):
            continue  # values that do not come out of Spark
        if kind == "fails" or not all(map(_alike, here, theirs)):
            wrong.append(f"{call}: {here}, in Spark {theirs}")
        else:
            equal += 1
    return equal, failed, wrong


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return _near(one, other)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_some_drawn_functions_give_what_they_give_in_spark(spark: SparkSession) -> None:
    equal, failed, wrong = _compared(spark, 11, 25)
    assert not wrong, "\n".join(wrong)
    assert equal >= 12, failed


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_drawn_functions_give_what_they_give_in_spark(seed: int, spark: SparkSession) -> None:
    equal, failed, wrong = _compared(spark, seed, 300)
    assert not wrong, "\n".join(wrong)
    assert equal >= 150, failed
