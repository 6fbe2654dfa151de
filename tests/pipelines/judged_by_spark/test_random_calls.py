"""Random calls of Spark's functions over odd values give in a view what they give in Spark.

A call that only one of both refuses is passed over unless Spark computes it and the view fails: what
views take beyond Spark's implicit casts is not judged here.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.judged_by_spark.test_clauses import _fields, _plain
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.expressions.calls import known_functions
from tailrace.pipelines.compiler.syntax.arities import ARITIES
from tailrace.pipelines.errors import EvaluationError, UnforeseenError
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = table("t", "id INT", ["id"])
POOL = {
    "int": ["0", "1", "-1", "7", "2147483647", "-2147483648", "CAST(NULL AS INT)"],
    "bigint": ["9223372036854775807L", "-9223372036854775808L", "9007199254740993L", "0L"],
    "decimal": ["1.5BD", "-0.5BD", "123456789012345678.123456BD", "0.00BD"],
    "double": ["1.5D", "-0.0D", "double('NaN')", "double('inf')", "double('-inf')", "1e300D",
               "2.5D", "0.1D", "CAST(NULL AS DOUBLE)"],
    "string": ["''", "'a'", "'Hello World'", "' x '", "'12'", "'-1.5'", "'2020-02-29'",
               "'2020-01-02 03:04:05.123'", "'%'", "'ab,cd'", "'ÄÖ ß'", "'😀b'",
               "CAST(NULL AS STRING)", "'null'", "'[1,2]'", "'$.a'", "'true'", "'1e3'"],
    "binary": ["X'00FF'", "X''", "X'616263'"],
    "boolean": ["true", "false", "CAST(NULL AS BOOLEAN)"],
    "date": ["DATE '2020-02-29'", "DATE '1969-12-31'", "DATE '9999-12-31'", "CAST(NULL AS DATE)"],
    "timestamp": ["TIMESTAMP '2020-02-29 12:34:56.789123'", "TIMESTAMP '1969-12-31 23:59:59.999999'"],
    "array": ["array(1,2,NULL)", "array('a','b','a')", "array(9007199254740993L, NULL)",
              "CAST(NULL AS ARRAY<INT>)"],
    "null": ["NULL"],
}  # fmt: skip
# Of the clock or of what Spark was built with; texts of variants; last bits; sketches.
_PASSED_OVER = {
    "now", "curdate", "current_date", "current_timestamp", "localtimestamp", "unix_timestamp",
    "to_variant_object", "parse_json", "try_parse_json", "raise_error", "assert_true",
    "aes_encrypt", "from_unixtime", "schema_of_xml", "schema_of_csv", "schema_of_json",
}  # fmt: skip
# What grows as large as a number says.
_PASSED_OVER |= {"array_repeat", "repeat", "space", "lpad", "rpad", "sequence"}
_SKETCHES = ("kll", "theta", "tuple", "hll", "st_", "approx", "variant", "try_variant", "regexp")


def _calls(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    names = [
        name
        for name in known_functions()
        if name in ARITIES and name not in _PASSED_OVER and not name.startswith(_SKETCHES)
    ]
    made: dict[str, None] = {}
    while len(made) < count:
        name = draw.choice(names)
        counts = [number for number in sorted(ARITIES[name]) if number < 6]
        if not counts:
            continue
        given = (draw.choice(POOL[draw.choice(list(POOL))]) for _ in range(draw.choice(counts)))
        made[f"{name}({', '.join(given)})"] = None
    return list(made)


def _here(call: str) -> tuple[str, object]:
    """What a view makes of it: ("is", value), ("fails", why), or ("refuses", why)."""
    try:
        graph = compile_views([ViewDefinition("v", f"SELECT id, {call} AS x FROM t")], [T])
        memory = MemoryTables(graph)
        memory.upsert("t", {"id": 1})
        memory.tick()
        return "is", _plain(memory.rows("v")[0]["x"])
    except EvaluationError as error:
        return "fails", error.message
    except TailraceError as error:
        assert not isinstance(error, UnforeseenError), (call, error.message, error.detail)
        return "refuses", error.message
    except OverflowError:  # a date beyond Python's, which collecting from Spark fails at, too
        return "refuses", "not a value of Python's"


def _near(one: Any, other: Any) -> bool:
    """Equal, or doubles but for their last bits."""
    try:
        a, b = float(one), float(other)
    except (TypeError, ValueError):
        return bool(one == other)
    return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-14)


def test_no_random_call_ends_in_a_traceback() -> None:
    for call in _calls(7, 400):
        _here(call)


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_random_calls_give_what_spark_gives(seed: int, spark: SparkSession) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    wrong = []
    for call in _calls(seed, 2000):
        kind, value = _here(call)
        if kind == "refuses":
            continue
        try:
            row = spark.sql(f"SELECT {call} AS x").collect()[0]
        except (PySparkException, Py4JError, ValueError, OverflowError):
            continue
        theirs = _plain(_fields(row[0]))
        if kind == "fails" or not _near(value, theirs):
            wrong.append(f"{call}: {value}, in Spark {theirs}")
    assert not wrong, "\n".join(wrong)
