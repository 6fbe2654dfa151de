"""An operator's name says all it computes: what differs has two names, or one view would be
computed by the other's operator."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.engine.operators.top import Top
from tailrace.testing.ticks import MemoryTables, Row, table

LOG = [table("shop.public.log", "word STRING, wkb BINARY, xs ARRAY<INT>, ys ARRAY<INT>")]
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def beside(one: str, two: str, tables: list[TableInput], rows: dict[str, Row]) -> list[list[Row]]:
    """What two views of one project show, after it is found that each is what it is alone."""

    def shown(**views: str) -> list[list[Row]]:
        definitions = [ViewDefinition(name, sql) for name, sql in views.items()]
        memory = MemoryTables(compile_views(definitions, tables))
        for topic, row in rows.items():
            memory.upsert(topic, row)
        memory.tick()
        return [memory.rows(name) for name in views]

    both = shown(one=one, two=two)
    assert both == shown(one=one) + shown(two=two)
    assert both == shown(two=two, one=one)[::-1]
    return both


# Each pair differs by a type that is no value of its arguments.
TYPES = {
    "from_json": (
        "CAST(from_json(word, 'a INT').a AS STRING)",
        "CAST(from_json(word, 'a DOUBLE').a AS STRING)",
    ),
    "from_csv": (
        "CAST(from_csv(word, 'a STRING').a AS STRING)",
        "CAST(from_csv(word, 'b STRING, a STRING').a AS STRING)",
    ),
    "variant_get": (
        "CAST(variant_get(parse_json(word), '$.a', 'int') AS STRING)",
        "CAST(variant_get(parse_json(word), '$.a', 'double') AS STRING)",
    ),
    "try_variant_get": (
        "CAST(try_variant_get(parse_json(word), '$.a', 'int') AS STRING)",
        "CAST(try_variant_get(parse_json(word), '$.a', 'double') AS STRING)",
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_calls_that_differ_by_a_type_alone_are_two(name: str) -> None:
    one, two = (
        f"SELECT {value} AS k, count(*) AS n FROM shop.log GROUP BY 1" for value in TYPES[name]
    )
    shown = beside(one, two, LOG, {"shop.public.log": {"word": '{"a": 1}'}})
    assert shown[0] != shown[1]


def test_zipped_arrays_of_other_names_are_two() -> None:
    one, two = (
        f"SELECT to_json(arrays_zip({a}, {b})) AS k, count(*) AS n"
        f" FROM (SELECT xs AS {a}, ys AS {b} FROM shop.log) GROUP BY 1"
        for a, b in ("pq", "rs")
    )
    shown = beside(one, two, LOG, {"shop.public.log": {"xs": [1], "ys": [2]}})
    assert [row["k"] for rows in shown for row in rows] == ['[{"p":1,"q":2}]', '[{"r":1,"s":2}]']


def test_a_shape_on_a_globe_is_none_on_a_plane() -> None:
    plane = "SELECT st_srid(st_geomfromwkb(wkb, 4326)) AS k, count(*) AS n FROM shop.log GROUP BY 1"
    globe = plane.replace("st_geomfromwkb(wkb, 4326)", "st_geogfromwkb(wkb)")
    graph = compile_views([ViewDefinition("one", plane), ViewDefinition("two", globe)], LOG)
    assert [node.operator.kind for node in graph.nodes].count("group") == 2


@pytest.mark.parametrize("shown", ["", ", sum(l.n) AS n"])
def test_a_column_is_not_taken_for_one_renamed_to_its_name(shown: str) -> None:
    tables = [
        table("shop.public.l", "id BIGINT, k INT, m INT, n INT", ["id"]),
        table("shop.public.r", "id BIGINT, k INT, k_2 INT", ["id"]),
    ]
    one, two = (
        f"SELECT l.k AS a, r.{name} AS b{shown} FROM shop.l JOIN shop.r ON l.k = r.k AND l.m = r.k_2"
        + (f" GROUP BY l.k, r.{name}" if shown else "")
        for name in ("k", "k_2")
    )
    rows = {
        "shop.public.l": {"id": 1, "k": 1, "m": 2, "n": 5},
        "shop.public.r": {"id": 1, "k": 1, "k_2": 2},
    }
    assert [row["b"] for rows in beside(one, two, tables, rows) for row in rows] == [1, 2]


@pytest.mark.parametrize(
    ("one", "two"), [("o.c", "r.c"), ("o.c, r.c AS d", "o.c, r.c_2 AS d"), ("r.c", "r.c_2 AS c")]
)
def test_versions_show_a_column_of_one_or_the_other_side(one: str, two: str) -> None:
    tables = [
        table("s.public.orders", "id BIGINT, at TIMESTAMP, c STRING", ["id"]),
        table("s.public.rates", "c STRING, c_2 STRING", ["c"], "history"),
    ]
    on = "FROM s.orders o LEFT JOIN s.rates FOR SYSTEM_TIME AS OF o.at r ON r.c = o.c"
    for rates in ("x", "y"):
        rows: dict[str, Row] = {
            "s.public.rates": {
                "c": rates, "c_2": "z", "__versioned_at": START, "__copied": False,
            },
            "s.public.orders": {"id": 1, "at": START, "c": "x"},
        }  # fmt: skip
        beside(f"SELECT {one} {on}", f"SELECT {two} {on}", tables, rows)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, d FROM t ORDER BY `k desc`, {} LIMIT 1",
        "SELECT k, d, rank() OVER (PARTITION BY `k desc` ORDER BY {}) AS n FROM t",
        "SELECT `k desc` % 5 AS d, max(k) AS k, max(`k desc`) AS m,"
        " listagg(k, ' ') WITHIN GROUP (ORDER BY {}) AS n FROM t GROUP BY 1",
    ],
)
def test_a_column_is_not_taken_for_another_and_the_words_behind_it(sql: str) -> None:
    schema = pa.schema([("k", pa.int32()), ("d", pa.int32()), ("k desc", pa.int32())])
    tables = [TableInput("t", "t", schema, kind="bag")]
    definitions = [
        ViewDefinition(name, sql.format(f"{order} NULLS LAST"))
        for name, order in (("one", "k DESC"), ("two", "`k desc`"))
    ]
    rows = [{"k": k, "d": k, "k desc": d} for k, d in ((1, 5), (3, 5), (7, 0), (260, 0))]
    shown = []
    for views in (definitions, definitions[:1], definitions[1:]):
        memory = MemoryTables(compile_views(views, tables))
        for row in rows:
            memory.upsert("t", row)
        memory.tick()
        shown.append({view.name: memory.rows(view.name) for view in views})
    assert shown[0] == shown[1] | shown[2]
    assert shown[0]["one"] != shown[0]["two"]


def test_operators_that_are_described_alike_are_never_taken_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Top, "describe", lambda self: "the first rows")
    first = "SELECT word FROM shop.log ORDER BY word LIMIT 1"
    second = "SELECT word FROM shop.log ORDER BY word DESC LIMIT 1"
    views = [ViewDefinition("a", first), ViewDefinition("b", second, policy="strict")]
    memory = MemoryTables(compile_views(views, LOG))
    for word in ("x", "y"):
        memory.upsert("shop.public.log", {"word": word})
    memory.tick()
    assert [row["word"] for view in "ab" for row in memory.rows(view)] == ["x", "y"]
