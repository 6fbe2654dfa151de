"""What the compiler makes: shared operators, names, keys, levels, explain."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pytest

from pipelines import harness
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import Size, explain
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.engine.graph import Graph
from tailrace.testing.ticks import MemoryTables, table

TABLES = [
    table("shop.public.orders", "id BIGINT, customer_id BIGINT, amount DECIMAL(10,2)", ["id"]),
    table("shop.public.customers", "id BIGINT, country STRING", ["id"]),
    table("shop.public.log", "word STRING, n INT"),
]
BY_COUNTRY = (
    "SELECT c.country, sum(o.amount) AS total FROM shop.orders o"
    " JOIN shop.customers c ON c.id = o.customer_id GROUP BY c.country"
)


def graph_of(**views: str) -> Graph:
    return compile_views([ViewDefinition(n, sql) for n, sql in views.items()], TABLES)


def kinds(graph: Graph) -> list[str]:
    return sorted(node.operator.kind for node in graph.nodes)


def test_equal_parts_of_two_views_are_one_operator() -> None:
    graph = graph_of(one=BY_COUNTRY, two=f"SELECT max(total) AS m FROM ({BY_COUNTRY})")
    assert kinds(graph).count("join") == 1
    assert kinds(graph).count("keyed") == 2
    assert kinds(graph).count("group") == 2


def test_aliases_and_other_views_do_not_change_an_operators_name() -> None:
    names = {node.id for node in graph_of(one=BY_COUNTRY).nodes}
    renamed = BY_COUNTRY.replace("o.", "x.").replace("orders o", "orders x")
    more = {node.id for node in graph_of(one=renamed, other="SELECT id FROM shop.orders").nodes}
    assert names <= more


def test_another_expression_is_another_operator() -> None:
    one = {node.id for node in graph_of(v=BY_COUNTRY).nodes if node.operator.kind == "group"}
    two = graph_of(v=BY_COUNTRY.replace("sum(o.amount)", "sum(o.amount + 1)"))
    assert not one & {node.id for node in two.nodes}


def test_keys_are_inferred_from_tables_groups_and_joins() -> None:
    graph = graph_of(
        rows="SELECT id, amount FROM shop.orders",
        groups=BY_COUNTRY,
        single="SELECT count(*) AS n FROM shop.orders",
        joined="SELECT o.id, c.country FROM shop.orders o JOIN shop.customers c ON c.id = o.customer_id",
        pairs="SELECT o.id AS a, c.id AS b FROM shop.orders o JOIN shop.customers c ON o.amount = c.id",
        distinct="SELECT DISTINCT country FROM shop.customers",
    )
    assert {name: view.key for name, view in graph.views.items()} == {
        "rows": ("id",),
        "groups": ("country",),
        "single": (),
        "joined": ("id",),
        "pairs": ("a", "b"),
        "distinct": ("country",),
    }
    assert not any(view.bag for view in graph.views.values())


@pytest.mark.parametrize(
    "condition", ["c.id = c.size", "c.id = c.size + o.id", "c.size - 1 = c.id"]
)
@pytest.mark.parametrize("mode", ["JOIN", "LEFT JOIN"])
def test_a_key_compared_within_its_own_table_does_not_make_its_row_the_only_one(
    condition: str, mode: str
) -> None:
    sizes = table("shop.public.sizes", "id BIGINT, customer_id BIGINT, size BIGINT", ["id"])
    sql = f"""SELECT o.id, c.size FROM shop.orders o {mode} shop.sizes c
        ON c.customer_id = o.customer_id AND {condition}"""
    (view,) = compile_views([ViewDefinition("v", sql)], [*TABLES, sizes]).views.values()
    assert view.bag


def test_view_without_a_key_is_a_bag_with_counts() -> None:
    view = graph_of(v="SELECT country FROM shop.customers").views["v"]
    assert view.bag
    assert view.columns == (("country", "STRING"), ("count", "BIGINT"))


def test_result_behind_its_own_group_needs_no_exchange() -> None:
    graph = graph_of(v=BY_COUNTRY)
    result = next(node for node in graph.nodes if node.operator.kind == "result")
    group = next(node for node in graph.nodes if node.operator.kind == "group")
    assert result.edges[0].route is None
    assert result.level == group.level == 2


def test_only_needed_columns_reach_a_join() -> None:
    graph = graph_of(v=BY_COUNTRY)
    join = next(node for node in graph.nodes if node.operator.kind == "join")
    assert join.schema.names == ["country", "sum0", "sum1", "sum2"]
    graph = graph_of(v=BY_COUNTRY.replace("sum(", "max("))
    join = next(node for node in graph.nodes if node.operator.kind == "join")
    assert join.schema.names == ["amount", "country"]


def test_types_are_those_of_spark() -> None:
    graph = graph_of(
        v="SELECT id, amount * 1.5 AS a, amount / 3 AS b, avg(amount) OVER () AS c,"
        " sum(amount) OVER () AS d, id / 2 AS e, amount + id AS f FROM shop.orders"
    )
    assert dict(graph.views["v"].columns) == {
        "id": "BIGINT",
        "a": "DECIMAL(13,3)",
        "b": "DECIMAL(14,6)",
        "c": "DECIMAL(14,6)",
        "d": "DECIMAL(20,2)",
        "e": "DOUBLE",
        "f": "DECIMAL(23,2)",
    }


def test_records_have_the_form_of_the_log() -> None:
    graph = graph_of(v="SELECT id, amount FROM shop.orders")
    memory = MemoryTables(graph)
    memory.upsert("shop.public.orders", {"id": 1, "amount": Decimal("9.90")})
    pairs = record_pairs(graph.views["v"], memory.tick()["v"])
    assert pairs == [(b'{"id":1}', b'{"row":{"id":1,"amount":"9.90"}}')]
    memory.delete("shop.public.orders", {"id": 1})
    assert record_pairs(graph.views["v"], memory.tick()["v"]) == [(b'{"id":1}', None)]


def test_unchanged_rows_emit_nothing() -> None:
    memory = MemoryTables(
        graph_of(v="SELECT customer_id, count(*) AS n FROM shop.orders GROUP BY customer_id")
    )
    memory.upsert("shop.public.orders", {"id": 1, "customer_id": 1, "amount": Decimal("1")})
    memory.tick()
    memory.upsert("shop.public.orders", {"id": 1, "customer_id": 1, "amount": Decimal("2")})
    assert memory.tick() == {}


def test_state_is_empty_when_the_tables_are() -> None:
    memory = MemoryTables(
        graph_of(v=BY_COUNTRY, top=f"SELECT * FROM ({BY_COUNTRY}) ORDER BY total LIMIT 1")
    )
    memory.upsert("shop.public.customers", {"id": 1, "country": "NL"})
    memory.upsert("shop.public.orders", {"id": 1, "customer_id": 1, "amount": Decimal("1")})
    memory.tick()
    assert memory.states.contents()
    memory.delete("shop.public.orders", {"id": 1})
    memory.delete("shop.public.customers", {"id": 1})
    memory.tick()
    assert memory.states.contents() == {}


def test_hot_key_touches_only_the_rows_that_change() -> None:
    memory = MemoryTables(graph_of(v=BY_COUNTRY))
    memory.upsert("shop.public.customers", {"id": 1, "country": "NL"})
    for number in range(500):
        memory.upsert("shop.public.orders", {"id": number, "customer_id": 1, "amount": Decimal(1)})
    memory.tick()
    before = memory.states.contents()
    memory.upsert("shop.public.orders", {"id": 7, "customer_id": 1, "amount": Decimal(5)})
    memory.tick()
    changed = sum(
        before.get(name, {}).get(key) != value
        for name, rows in memory.states.contents().items()
        for key, value in rows.items()
    )
    assert changed <= 6
    assert memory.rows("v") == [{"country": "NL", "total": Decimal("504.00")}]


def test_truncated_table_without_key_loses_its_rows() -> None:
    memory = MemoryTables(graph_of(v="SELECT word FROM shop.log"))
    memory.upsert("shop.public.log", {"word": "a", "n": 1})
    memory.tick()
    memory.truncate("shop.public.log")
    memory.upsert("shop.public.log", {"word": "b", "n": 1})
    memory.tick()
    assert memory.rows("v") == [{"word": "b"}]


def test_explain_shows_the_chain_with_sizes_and_shares() -> None:
    graph = graph_of(v=BY_COUNTRY, w="SELECT id FROM shop.orders WHERE amount > 1")
    keyed = next(
        n for n in graph.nodes if n.operator.describe().startswith("keyed shop.public.orders")
    )
    text = explain(graph, "v", {keyed.id: Size(3, 120)})
    assert "└ join on customer_id = id" in text
    assert "3 rows, 120 bytes; shared with w" in text
    assert "where amount > 1" in explain(graph, "w")


@pytest.mark.parametrize(
    ("sql", "key", "proven"),
    [
        ("SELECT id, k FROM shop.a", "id", True),
        ("SELECT id, k FROM shop.a", "k", False),
        ("SELECT k, s, count(*) AS n FROM shop.a GROUP BY k, s", "k", False),
        ("SELECT k, count(*) AS n FROM shop.a GROUP BY k", "k", True),
        ("SELECT a.id, b.n FROM shop.a JOIN shop.b ON b.id = a.k", "id", True),
        ("SELECT a.id, b.n FROM shop.a JOIN shop.b ON b.k = a.k", "id", False),
        ("SELECT DISTINCT k, s FROM shop.a", "s", False),
        ("SELECT r, n FROM (SELECT n, row_number() OVER (ORDER BY n) AS r FROM shop.c) WHERE r < 4", "r", True),
        ("SELECT r, n FROM (SELECT n, rank() OVER (ORDER BY n) AS r FROM shop.c) WHERE r < 4", "r", False),
    ],
)  # fmt: skip
def test_a_key_that_the_query_does_not_make_unique_is_told(
    sql: str, key: str, proven: bool
) -> None:
    graph = compile_views([ViewDefinition("v", sql, (key,))], harness.TABLES)
    assert graph.views["v"].proven == proven
    assert ("looked at in every tick" in explain(graph, "v")) == (not proven)


def test_a_view_of_sixty_joins_and_subqueries_is_compiled_at_once() -> None:
    """Every join doubled the keys that were known of its rows."""
    facts = table("facts", "id BIGINT, k INT", ["id"])
    names = table("names", "k INT, name STRING", ["k"])
    joins = " ".join(f"LEFT JOIN names n{i} ON n{i}.k = f.k + {i}" for i in range(30))
    shown = ", ".join(f"n{i}.name AS x{i}" for i in range(30))
    counted = ", ".join(f"(SELECT max(k) + {i} FROM names) AS y{i}" for i in range(30))
    sql = f"SELECT f.id, {shown}, {counted} FROM facts f {joins}"
    graph = compile_views([ViewDefinition("v", sql)], [facts, names])
    assert graph.views["v"].key == ("id",)


def test_a_graph_is_sent_as_the_same_bytes_and_read_once() -> None:
    made = graph_of(v=BY_COUNTRY)
    sent = pickle.dumps({"graph": made})
    assert sent == pickle.dumps({"graph": made})
    first, second = (pickle.loads(sent)["graph"] for _ in range(2))
    assert first is second
    assert first == made
    other = graph_of(v="SELECT word, count(*) AS n FROM shop.log GROUP BY word")
    assert pickle.loads(pickle.dumps(other)) == other != first


def test_joins_that_show_a_column_of_one_or_the_other_side_are_two() -> None:
    on = "FROM shop.orders o LEFT JOIN shop.customers c ON o.id = c.id AND o.amount = 1"
    memory = MemoryTables(graph_of(one=f"SELECT o.id {on}", two=f"SELECT c.id, o.amount {on}"))
    memory.upsert("shop.public.orders", {"id": 1, "customer_id": 1, "amount": 2})
    memory.tick()
    assert [row["id"] for row in memory.rows("one")] == [1]
    assert [row["id"] for row in memory.rows("two")] == [None]
    joined = "FROM shop.orders o JOIN shop.customers c ON o.id = c.id GROUP BY"
    both = graph_of(
        one=f"SELECT o.id, sum(c.id) AS n {joined} o.id",
        two=f"SELECT c.id, sum(c.id) AS n {joined} c.id",
    )
    assert kinds(both).count("join") == 2


def test_a_column_of_the_left_is_not_taken_for_the_same_one_of_the_right() -> None:
    on = "FROM shop.log a LEFT JOIN shop.log b ON a.word = b.word AND a.n = b.n + 1"
    memory = MemoryTables(graph_of(one=f"SELECT a.n, a.word {on}", two=f"SELECT a.n, b.word {on}"))
    memory.upsert("shop.public.log", {"word": "x", "n": 1})
    memory.tick()
    assert [row["word"] for row in memory.rows("one")] == ["x"]
    assert [row["word"] for row in memory.rows("two")] == [None]
