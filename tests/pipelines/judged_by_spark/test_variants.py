"""VARIANT: the encoding read by Spark's own reader, rows made of variants, the changelog."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.errors import EvaluationError, SqlTypeError
from tailrace.pipelines.values.variant import texts
from tailrace.pipelines.values.variant.encoding import decode, encode, metadata
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 80), 1 << 80)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=30,
)  # fmt: skip


@given(DOCUMENTS)
def test_sparks_own_reader_reads_what_is_written_here(document: Any) -> None:
    from pyspark.sql.variant_utils import VariantUtils

    data = texts.parse(json.dumps(document))
    _, at = metadata(data)
    read = VariantUtils.to_python(data[at:], data[:at])
    assert _same(read, document)
    assert encode(decode(encode(decode(data)))) == encode(decode(data))
    assert _same(json.loads(texts.to_json(data)), document)


def _same(left: Any, right: Any) -> bool:
    if isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in right)
    if isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(right, float) or isinstance(left, float):
        return math.isclose(float(left), float(right), rel_tol=1e-15)
    return bool(left == right)


@given(DOCUMENTS, st.integers(0, 200), st.integers(0, 255))
def test_damaged_bytes_are_refused_or_read_never_worse(
    document: Any, place: int, byte: int
) -> None:
    data = bytearray(texts.parse(json.dumps(document)))
    data[place % len(data)] = byte
    for damaged in (bytes(data), bytes(data[: place % len(data)])):
        try:
            decode(damaged)
        except (ValueError, IndexError):
            pass


def test_a_thousand_levels_are_read_and_one_more_is_not() -> None:
    deepest = texts.parse("[" * 1000 + "]" * 1000)
    assert texts.to_json(deepest) == "[" * 1000 + "]" * 1000
    for levels in (1001, 200_000):
        with pytest.raises(ValueError, match="deep"):
            texts.parse("[" * levels + "]" * levels)


def _memory(sql: str, shards: int = 1, key: tuple[str, ...] | None = None) -> MemoryTables:
    known = table("t", "id BIGINT, g INT, j STRING", ["id"])
    return MemoryTables(compile_views([ViewDefinition("v", sql, key)], [known]), shards=shards)


ROWS = [
    (1, 1, '{"b":{"z":1,"a":[1,{"q":2.50}]},"a":3}'), (2, 1, '[1,"x",null,{"b":1}]'), (3, 2, "17"),
    (4, 2, '"text"'), (5, 3, "null"), (6, 3, None), (7, 4, '{"a":1}'), (8, 4, '{"a":1.5,"c":[]}'),
    (9, 4, '{"a":1}'), (10, 5, "[]"), (11, 6, None),
]  # fmt: skip
QUERIES = [
    "SELECT id, e.pos, e.key, e.value FROM t, LATERAL variant_explode(try_parse_json(j)) AS e",
    "SELECT id, e.p, e.k, e.v FROM t, LATERAL variant_explode_outer(try_parse_json(j)) AS e(p, k, v)",
    "SELECT id, e.pos, e.value:q::decimal(5,2) AS q FROM t"
    " LEFT JOIN LATERAL variant_explode(try_parse_json(j):b.a) AS e ON true",
    "SELECT id, e.pos FROM t LEFT JOIN LATERAL variant_explode(try_parse_json(j)) AS e ON true",
    "SELECT id, e.pos FROM t JOIN LATERAL variant_explode(try_parse_json(j)) AS e ON e.pos <> id",
    "SELECT g, schema_of_variant_agg(try_parse_json(j)) AS s,"
    " max_by(try_parse_json(j), id) AS m FROM t WHERE id NOT IN (7) GROUP BY g",
    "SELECT schema_of_variant_agg(try_parse_json(j)) FILTER (WHERE g = 4) AS s FROM t",
    "SELECT schema_of_variant_agg(try_parse_json(j)) AS s FROM t WHERE g > 100",
    "SELECT id, schema_of_variant_agg(try_parse_json(j)) OVER (PARTITION BY g ORDER BY id) AS s FROM t",
    "SELECT id, 1 AS n, a.v FROM (SELECT id, try_parse_json(j) AS v FROM t) AS a WHERE a.v:a::int = 1"
    " UNION ALL SELECT id, 2 AS n, CAST(g AS VARIANT) AS v FROM t",
]  # fmt: skip


KEYS = {QUERIES[0]: ("id", "pos"), QUERIES[1]: ("id", "p"), QUERIES[-1]: ("id", "n")}


def _plain(value: Any) -> Any:
    if type(value).__name__ == "VariantVal":
        return bytes(value.metadata) + bytes(value.value)
    return value


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_rows_and_groups_of_variants_are_sparks_also_after_changes(spark: SparkSession) -> None:
    spark.createDataFrame(ROWS, "id BIGINT, g INT, j STRING").createOrReplaceTempView("t")
    for sql in QUERIES:
        # A view without a key shows variants by their JSON, so that its bytes are others.
        memory = _memory(sql, key=KEYS.get(sql))
        for key, group, text in ROWS:
            memory.upsert("t", {"id": key, "g": group, "j": '{"gone":[true]}'})
            memory.upsert("t", {"id": key + 100, "g": group, "j": text})
        memory.tick()
        for key, group, text in ROWS:
            memory.upsert("t", {"id": key, "g": group, "j": text})
            memory.delete("t", {"id": key + 100})
        memory.tick()
        ours = sorted((list(row.values()) for row in memory.rows("v")), key=repr)
        theirs = [[_plain(value) for value in row] for row in spark.sql(sql).collect()]
        assert ours == sorted(theirs, key=repr), sql


@pytest.mark.parametrize(
    "sql",
    [
        *QUERIES,
        "SELECT try_parse_json(j) AS v, g FROM t",
        "SELECT array(try_parse_json(j)) AS v FROM t",
        "SELECT a.id, b.v FROM (SELECT id, try_parse_json(j) AS v FROM t) AS a"
        " JOIN (SELECT id, try_parse_json(j) AS v FROM t) AS b ON a.v:a::double = b.v:a::double",
        "SELECT id, lag(try_parse_json(j)) OVER (PARTITION BY g ORDER BY id) AS v FROM t",
    ],
)
def test_on_several_shards_a_view_is_the_same(sql: str) -> None:
    seen = []
    for shards in (1, 4):
        memory = _memory(sql, shards)
        for key, group, text in ROWS:
            memory.upsert("t", {"id": key, "g": group, "j": text})
        memory.tick()
        for key, group, text in ROWS[::3]:
            memory.upsert("t", {"id": key, "g": group + 1, "j": f"[{text or 'null'}]"})
            memory.delete("t", {"id": key + 1})
        memory.tick()
        seen.append(sorted(memory.rows("v"), key=repr))
    assert seen[0] == seen[1]
    assert seen[0]


def test_in_the_changelog_a_variant_is_the_text_of_its_json() -> None:
    memory = _memory(
        "SELECT id, parse_json(j) AS v, array(parse_json(j)) AS vs, struct(parse_json(j) AS v) AS s FROM t"
    )
    memory.upsert("t", {"id": 1, "g": 1, "j": '{"b": 1.50, "a": "x"}'})
    memory.upsert("t", {"id": 2, "g": 1, "j": None})
    emitted = memory.tick()
    pairs = record_pairs(memory.graph.views["v"], emitted["v"])
    rows = [orjson.loads(value)["row"] for _, value in sorted(pairs) if value is not None]
    text = '{"a":"x","b":1.5}'
    assert rows == [
        {"id": 1, "v": text, "vs": [text], "s": {"v": text}},
        {"id": 2, "v": None, "vs": [None], "s": {"v": None}},
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT parse_json(j) AS v FROM t",
        "SELECT count(*) AS n FROM t GROUP BY parse_json(j)",
        "SELECT parse_json(j) AS v FROM t UNION SELECT parse_json(j) AS v FROM t",
        "SELECT parse_json(j) AS v FROM t EXCEPT ALL SELECT parse_json(j) AS v FROM t",
        "SELECT id, row_number() OVER (PARTITION BY parse_json(j) ORDER BY id) AS n FROM t",
        "SELECT id FROM t ORDER BY parse_json(j) LIMIT 1",
        "SELECT max(parse_json(j)) AS m FROM t",
        "SELECT a.id FROM t AS a JOIN t AS b ON parse_json(a.j) = parse_json(b.j)",
        "SELECT explode(parse_json(j)) AS x FROM t",
    ],
)
def test_what_compares_variants_is_refused_with_its_place(sql: str) -> None:
    with pytest.raises(SqlTypeError) as caught:
        _memory(sql)
    assert "^" in caught.value.detail


def test_a_view_without_a_key_counts_variants_by_what_they_show() -> None:
    memory = _memory("SELECT parse_json(j) AS v, array(parse_json(j)) AS vs FROM t")
    texts_given = ["1.0", "1.00", "1", '{"b":1,"a":2}', '{"a":2,"b":1}', '"1"']
    for number, text in enumerate(texts_given):
        memory.upsert("t", {"id": number, "g": 1, "j": text})
    emitted = memory.tick()
    pairs = record_pairs(memory.graph.views["v"], emitted["v"])
    counts = {key: orjson.loads(value)["row"]["count"] for key, value in pairs if value}
    assert len(pairs) == 3
    assert sorted(counts.values()) == [1, 2, 3]
    assert len(memory.rows("v")) == len(texts_given)


def test_a_variant_is_no_key() -> None:
    with pytest.raises(SqlTypeError, match="key column 'v'"):
        _memory("SELECT id, parse_json(j) AS v FROM t", key=("v",))


@pytest.mark.thorough  # it ends the JVM four times
def test_a_far_index_fails_and_the_next_request_is_answered() -> None:
    memory = _memory("SELECT id, variant_set(parse_json(j), '$[2000000000]', 1) AS v FROM t")
    memory.upsert("t", {"id": 1, "g": 1, "j": "[]"})
    with pytest.raises(EvaluationError, match="ended in the middle"):
        memory.tick()
    other = _memory("SELECT id, variant_set(parse_json(j), '$[1]', 1) AS v FROM t")
    other.upsert("t", {"id": 1, "g": 1, "j": "[0]"})
    other.tick()
