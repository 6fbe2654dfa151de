"""What Arrow computes is what Spark computes: every core function on both, over odd values.

The expression that a view is compiled to is evaluated here, and its text by Spark's generated
code; both see the same columns.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.expressions.calls import known_functions
from tailrace.pipelines.compiler.expressions.spark_text import Rendering
from tailrace.pipelines.engine.evaluate import evaluate
from tailrace.pipelines.engine.expression import SPARK, Call, Expression, walk
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.spark.catalyst.client import values_of
from tailrace.pipelines.spark.catalyst.schema import received
from tailrace.testing.ticks import table

U = datetime.UTC
D = datetime.datetime
T = table(
    "t",
    "id INT, i INT, b BIGINT, f DOUBLE, d DECIMAL(12,3), s STRING, o STRING, y BINARY, k BOOLEAN,"
    " day DATE, at TIMESTAMP, n TIMESTAMP_NTZ, st STRUCT<p: INT, q: STRING>",
    ["id"],
)
COLUMNS: dict[str, list[object]] = {
    "i": [7, -7, 0, 2147483647, -2147483648, None],
    "b": [3, -3, 1 << 40, -5, 1, None],
    "f": [1.5, -2.5, float("nan"), float("inf"), -0.0, None],
    "d": [Decimal("1.250"), Decimal("-2.500"), Decimal("0.000"), Decimal("999999999.999"), Decimal("0.001"), None],
    "s": ["Hello, World", "", " ÄöÜß ", "a/b//c", "x%_\\y😀", None],
    "o": ["/", "l", "ö", "", "%", None],
    "y": [b"\0\xff", b"", b"abc", b"\x80", b"z", None],
    "k": [True, False, None, True, False, None],
    "day": [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(1000, 1, 1), datetime.date(9998, 12, 31), datetime.date(2000, 1, 1), None],
    "at": [D(2024, 2, 29, 12, 34, 56, 789123, U), D(1969, 12, 31, 23, 59, 59, 999999, U), D(1000, 1, 1, tzinfo=U), D(9998, 12, 31, 23, 0, 0, 1, U), D(1970, 1, 1, tzinfo=U), None],
    "n": [D(2024, 2, 29, 12, 34, 56, 789123), D(1969, 12, 31, 23, 59, 59, 999999), D(1900, 1, 1), D(2100, 12, 31), D(1970, 1, 1), None],
    "st": [{"p": 1, "q": "x"}, {"p": None, "q": None}, None, {"p": 0, "q": ""}, {"p": 2, "q": "y"}, None],
}  # fmt: skip
EXPRESSIONS = """
abs(b) | abs(d) | abs(f) | ceil(f) | ceil(d) | ceiling(d) | floor(f) | floor(d) | round(d, 1) | round(f) | round(b, -1)
e() * f | pi() | mod(b, 3) | b % 7 | d % 0.7 | f % 2D | b div 2 | d div 0.7 | negative(d) | positive(f) | -b
b + 1 | b - i | CAST(i AS BIGINT) * 3 | d * 1.25 | d / 3 | f / 2D | b / 4 | d + 0.0001 | d - b
b = 3 | f = f | f <> 1 | f < 1.5D | f >= 1.5D | s > o | day < DATE '2000-01-01' | at <= TIMESTAMP '2000-01-01' | f <=> NULL | st = st
b IN (1, 3) | s IN ('', NULL) | NOT k | k AND b > 0 | k OR b > 0 | b BETWEEN 0 AND 5 | k IS TRUE | k IS NOT FALSE
coalesce(i, 5) | nvl(s, o) | ifnull(d, 1) | nullif(i, 7) | nvl2(k, 1, 2) | nullifzero(i) | zeroifnull(i) | equal_null(i, NULL)
isnull(s) | isnotnull(s) | isnan(f) | greatest(f, 0D) | greatest(s, o) | least(b, 2, NULL) | least(day, DATE '1999-01-01') | CASE WHEN k THEN d ELSE f END | if(k, s, o) | CASE i WHEN 7 THEN 'a' WHEN 0 THEN 'b' END
char_length(s) | character_length(s) | len(s) | length(s) | length(y) | concat(s, '-', o) | s || o | concat_ws('-', s, o, 'z') | contains(s, o) | startswith(s, o) | endswith(s, o)
left(s, 3) | left(y, 1) | right(s, 3) | lower(s) | lcase(s) | upper(s) | ucase(s) | trim(s) | ltrim(s) | rtrim(s) | trim(BOTH 'H d' FROM s) | ltrim('He', s) | replace(s, o, '<>') | replace(s, 'l')
substring(s, 2) | substr(s, -4, 2) | substring(y, 1, 1) | split_part(s, '/', 2) | split_part(s, ',', -1) | s LIKE '%l%' | s LIKE 'x\\\\%%' | s NOT LIKE '_'
year(day) | month(at) | day(n) | dayofmonth(day) | dayofweek(at) | dayofyear(day) | quarter(n) | weekofyear(day) | weekday(at) | hour(at) | minute(at) | second(at)
date_part('SECOND', at) | extract(YEAR FROM n) | datepart('DOW_ISO', day) | extract(YEAROFWEEK FROM day) | last_day(day) | add_months(day, 1) | date_add(day, 3) | dateadd(day, -3) | date_sub(day, 40) | date_diff(day, DATE '2000-01-01') | datediff(DATE '2000-01-01', day)
date_trunc('HOUR', at) | date_trunc('WEEK', at) | date_trunc('QUARTER', at) | trunc(day, 'MM') | trunc(day, 'YEAR') | timestampdiff(HOUR, at, TIMESTAMP '2000-01-01') | timestampdiff(MONTH, at, TIMESTAMP '2000-01-31') | timestampadd(MONTH, 1, n) | timestampadd(DAY, -1, at)
at + INTERVAL '1' DAY | n - INTERVAL '90' MINUTE | day + INTERVAL '1' MONTH | day - INTERVAL '2' DAY | day + INTERVAL '3' HOUR | at + make_interval(0, i % 12) | at + make_dt_interval(1, 2) | day + make_ym_interval(0, 1) | at + INTERVAL '1' SECOND * (b % 10)
unix_seconds(at) | unix_millis(at) | unix_micros(at) | unix_timestamp(at) | to_unix_timestamp(at)
CAST(i AS BIGINT) | bigint(s = '') | double(d) | float(i) | int(f % 100) | smallint(k) | tinyint(k) | decimal(i % 1000) | string(f) | string(d) | string(at) | string(day) | string(k) | boolean(b) | binary(s) | CAST(y AS STRING) | CAST(d AS DECIMAL(20,1)) | CAST(b AS DECIMAL(30,2)) | CAST(f AS STRING)
date(at) | timestamp(day) | to_date(at) | to_timestamp(day) | to_timestamp_ltz(n) | to_timestamp_ntz(at) | CAST(n AS DATE) | CAST(at AS BIGINT) | try_cast(s AS INT) | try_to_date(s) | try_to_timestamp(s) | try_cast(f AS INT)
array(i, 5) | array(s, o) | named_struct('p', i, 'q', s) | st.p | struct(s, st.q AS z)
""".replace("\n", " | ").split(" | ")  # fmt: skip
# Of windows and aggregates, of texts under a collation: each has tests of its own.
ELSEWHERE = {
    "window", "window_time", "hll_sketch_estimate", "hll_union", "might_contain", "collate",
    "collation",
}  # fmt: skip


def _compiled(sql: str) -> Expression:
    graph = compile_views([ViewDefinition("v", f"SELECT id, {sql} AS x FROM t")], [T])
    for node in graph.nodes:
        for edge in node.edges:
            if edge.projection is not None:
                return dict(edge.projection.columns)["x"]
    raise AssertionError(sql)


def test_every_core_function_is_here() -> None:
    words = " ".join(EXPRESSIONS).lower()
    missing = [n for n in known_functions() if f"{n}(" not in words and n not in ELSEWHERE]
    assert missing == ["like"]  # written `x LIKE y`


def _by_arrow(bound: Expression, rows: pa.Table) -> list[object] | None:
    """What comes of it here; None where that is an error."""
    try:
        return evaluate(bound, rows).to_pylist()
    except EvaluationError:
        return None


def _by_spark(bounds: list[Expression], rows: pa.Table) -> list[list[object]]:
    rendering = Rendering()
    texts = [rendering.text(bound) for bound in bounds]
    given = [evaluate(column, rows) for column in rendering.columns]
    found = values_of(texts, given, rows.num_rows)
    wrong = [b.sql for b, array in zip(bounds, found, strict=True) if array.type != b.type]
    assert not wrong
    return [received(array, array.type).to_pylist() for array in found]


def test_arrow_computes_what_spark_computes() -> None:
    rows = pa.table(
        {
            name: pa.array(COLUMNS.get(name, list(range(6))), T.schema.field(name).type)
            for name in T.schema.names
        }
    )
    compiled = {sql: _compiled(sql) for sql in map(str.strip, EXPRESSIONS) if sql}
    for sql, bound in compiled.items():
        assert all(p.function != SPARK for p in walk(bound) if isinstance(p, Call)), sql
    ours = {sql: _by_arrow(bound, rows) for sql, bound in compiled.items()}
    good = [sql for sql, values in ours.items() if values is not None]
    theirs = _by_spark([compiled[sql] for sql in good], rows)
    wrong = [
        f"{sql}: {ours[sql]}, in Spark {values}"
        for sql, values in zip(good, theirs, strict=True)
        if repr(ours[sql]) != repr(values)
    ]
    for sql in compiled.keys() - set(good):  # row by row: what fails here fails there
        for place in range(rows.num_rows):
            one = rows.slice(place, 1).combine_chunks()
            mine = _by_arrow(compiled[sql], one)
            try:
                other: list[object] | None = _by_spark([compiled[sql]], one)[0]
            except EvaluationError:
                other = None
            if repr(mine) != repr(other):
                wrong.append(f"{sql}: row {place} is {mine}, in Spark {other}")
    assert not wrong, "\n".join(wrong)
