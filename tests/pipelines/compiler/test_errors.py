"""SQL that cannot be kept: an error with a code that points into the text."""

from __future__ import annotations

import pickle

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views, problems
from tailrace.pipelines.errors import (
    EvaluationError,
    KeyNotUniqueError,
    NotIncrementalError,
    SqlNameError,
    SqlSyntaxError,
    SqlTypeError,
    ViewError,
)
from tailrace.testing.ticks import MemoryTables, run_ticks, table

TABLES = [
    table("shop.public.orders", "id BIGINT, customer_id BIGINT, n INT, status STRING", ["id"]),
    table("shop.public.customers", "id BIGINT, country STRING", ["id"]),
    table("shop.archive.customers", "id BIGINT, country STRING", ["id"]),
]


def compiled(sql: str, key: tuple[str, ...] | None = None) -> object:
    return compile_views([ViewDefinition("v", sql, key)], TABLES)


@pytest.mark.parametrize(
    ("sql", "kind", "message", "marked"),
    [
        ("SELECT FROM WHERE", SqlSyntaxError, "does not parse", ""),
        ("DELETE FROM shop.orders", SqlSyntaxError, "not one query", ""),
        ("SELEC id FROM shop.orders", SqlSyntaxError, "does not parse", "FROM"),
        ("", SqlSyntaxError, "has no SQL", ""),
        ("-- nothing", SqlSyntaxError, "has no SQL", ""),
        ("SELECT id FROM shop.orders; SELECT 2", SqlSyntaxError, "not one query", "2"),
        (
            "SELECT id FROM shop.orders WHERE n IN (SELECT id, country FROM shop.public.customers)",
            SqlTypeError, "compares 1 and the subquery has 2", "id, country",
        ),
        ("SELECT idd FROM shop.orders", SqlNameError, "'idd' does not exist", "idd"),
        ("SELECT x.id FROM shop.orders o", SqlNameError, "no table 'x'", "x.id"),
        ("SELECT id FROM shop.nothing", SqlNameError, "no table or view", "shop.nothing"),
        ("SELECT id FROM shop.customers", SqlNameError, "could be several", "shop.customers"),
        (
            "SELECT id FROM shop.orders o JOIN shop.public.customers c ON c.id = o.id",
            SqlNameError, "ambiguous", "id",
        ),
        ("SELECT status + DATE '2026-01-01' FROM shop.orders", SqlTypeError, "no meaning", "status + DATE"),
        ("SELECT date(status) - DATE '2026-01-01' AS d FROM shop.orders", SqlTypeError, "cannot hold an interval", "date(status)"),
        ("SELECT max(date(status) - DATE '2026-01-01') AS d FROM shop.orders", SqlTypeError, "cannot hold an interval", "max"),
        ("SELECT array(date(status) - DATE '2026-01-01') AS d FROM shop.orders", SqlTypeError, "an interval", "array"),
        ("SELECT 1 AS one FROM shop.orders GROUP BY date(status) - DATE '2026-01-01'", SqlTypeError, "cannot hold", "date(status)"),
        ("SELECT array_contains(array(n), NULL) AS x FROM shop.orders", SqlTypeError, "NULL_TYPE", "array_contains"),
        ("SELECT arrays_zip(xs, xs) AS x FROM (SELECT array(n) AS xs FROM shop.orders) q", SqlTypeError, "two fields of one name: xs$", "arrays_zip"),
        ("SELECT from_json(status, 'a INT, b INT, a INT') AS x FROM shop.orders", SqlTypeError, "two fields of one name: a", "from_json"),
        ("SELECT hash(map(status, n)) AS x FROM shop.orders", SqlTypeError, r'"hash\(map\(status, n\)\)"', "hash"),
        ("SELECT date_trunc(status, now()) AS x FROM shop.orders", SqlTypeError, "must be a constant", "date_trunc"),
        ("SELECT o.id FROM shop.orders o, range(20000) r", NotIncrementalError, "every row with every row", ""),
        ("SELECT id FROM shop.orders WHERE n", SqlTypeError, "condition", "n"),
        ("SELECT id FROM shop.orders WHERE NULL", SqlTypeError, "VOID where a condition", "NULL"),
        ("SELECT CASE WHEN NULL THEN 1 END AS x FROM shop.orders", SqlTypeError, "condition", "NULL"),
        ("SELECT count(*) FILTER (WHERE NULL) AS x FROM shop.orders", SqlTypeError, "condition", "NULL"),
        ("SELECT o.id FROM shop.orders o LEFT JOIN shop.orders p ON NULL", SqlTypeError, "condition", "NULL"),
        ("SELECT '1' + NULL AS x FROM shop.orders", SqlTypeError, "STRING \\+ VOID", "'1' + NULL"),
        ("SELECT o.n + * AS x FROM shop.orders o", SqlNameError, "not allowed here", "*"),
        ("SELECT x.* FROM shop.orders o", SqlNameError, "'x' does not exist", "x"),
        ("SELECT n.* FROM shop.orders", SqlTypeError, "INT has no fields", "n.*"),
        ("SELECT * EXCEPT (nope) FROM shop.orders", SqlNameError, "'nope' does not exist", "nope"),
        ("SELECT count(o.*) AS c FROM shop.orders o", SqlNameError, "not of Spark", "o.*"),
        ("SELECT status + INTERVAL 1 MONTH AS x FROM shop.orders", SqlTypeError, "INTERVAL MONTH", "status"),
        ("SELECT CAST(INTERVAL '90' MINUTE AS DOUBLE) AS x FROM shop.orders", SqlTypeError, "CAST_WITHOUT_SUGGESTION", "'90'"),
        ("SELECT now() + INTERVAL '1.5' DAY AS x FROM shop.orders", SqlTypeError, "only seconds", "'1.5'"),
        ("SELECT now() + INTERVAL '1 25' DAY TO HOUR AS x FROM shop.orders", SqlTypeError, "25 is more than", "'1 25'"),
        ("SELECT now() + INTERVAL '1 month 2 days' AS x FROM shop.orders", SqlTypeError, "months and of days", "'1 month"),
        ("SELECT o.id FROM shop.orders o, LATERAL range(o.n) r", NotIncrementalError, "range takes constants", "o.n"),
        (
            "SELECT o.id, x FROM shop.orders o LEFT JOIN LATERAL explode(array(o.n)) e(x)",
            NotIncrementalError, "without ON", "explode(array(o.n))",
        ),
        ("SELECT nosuch(n) FROM shop.orders", SqlNameError, "unknown function", "nosuch"),
        ("SELECT to_number(status, '9..9') r FROM shop.orders", SqlTypeError, "INVALID_FORMAT", "to_number"),
        ("SELECT to_char(n, status) r FROM shop.orders", SqlTypeError, "foldable", "to_char"),
        ("SELECT try_reflect(status) r FROM shop.orders", NotIncrementalError, "not computed", "try_reflect"),
        ("SELECT rand() r FROM shop.orders", NotIncrementalError, "not deterministic", "rand"),
        ("SELECT status, count(*) c FROM shop.orders", SqlNameError, "neither grouped", "status"),
        ("SELECT id, id FROM shop.orders", SqlNameError, "two columns", "id FROM"),
        ("SELECT id FROM shop.orders WHERE status = 'open", SqlSyntaxError, "does not parse", "'open"),
        ("SELECT id,, n FROM shop.orders", SqlSyntaxError, "does not parse", ", n"),
        ("SELECT id, FROM shop.orders", SqlSyntaxError, "does not parse", "FROM"),
        ("SELECT uuid() u FROM shop.orders", NotIncrementalError, "not deterministic", "uuid"),
        ("SELECT shuffle(array(n)) u FROM shop.orders", NotIncrementalError, "not deterministic", "shuffle"),
        ("SELECT upper(array(n)) u FROM shop.orders", SqlTypeError, "cannot become STRING", "upper"),
        ("SELECT array_contains(n, 1) u FROM shop.orders", SqlTypeError, "requires the .ARRAY. type", "array_contains"),
        ("SELECT lower(status, 1) u FROM shop.orders", SqlTypeError, "number of arguments", "lower"),
        ("SELECT from_json(status, 'a WRONG') u FROM shop.orders", SqlTypeError, "PARSE_SYNTAX_ERROR", "from_json"),
        ("SELECT grouping(n) g FROM shop.orders GROUP BY n", SqlTypeError, "ROLLUP", ""),
        ("SELECT window(id, 'soon') w, count(*) c FROM shop.orders GROUP BY 1", SqlTypeError, "become TIMESTAMP|duration", ""),
        ("SELECT explode(n) u FROM shop.orders", SqlTypeError, "an array or a map", ""),
        ("SELECT sum(n) OVER (ORDER BY status RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) s FROM shop.orders", SqlTypeError, "no distance", ""),
        (
            "SELECT o.id FROM shop.orders o, shop.public.customers c",
            NotIncrementalError, "every row with every row", "shop.public.customers",
        ),
        ("SELECT percentile(n, 0.5, 2) p FROM shop.orders", SqlTypeError, "no frequency", "percentile"),
        ("SELECT max(n, id) m FROM shop.orders", NotIncrementalError, "EXPRESSIONS id", "id"),
        (
            "SELECT n, count(*) c FROM shop.orders GROUP BY DISTINCT ROLLUP(n)",
            NotIncrementalError, "GROUP BY DISTINCT", "n",
        ),
        (
            "SELECT n, count(*) c FROM shop.orders GROUP BY ALL WITH ROLLUP",
            NotIncrementalError, "GROUP BY ALL with grouping sets", "",
        ),
        (
            "SELECT n, count(*) c FROM shop.orders GROUP BY n GROUPING SETS ((n), (id))",
            SqlNameError, "not listed", "n",
        ),
        (
            "SELECT DISTINCT status FROM shop.orders ORDER BY id LIMIT 2",
            SqlNameError, "SELECT DISTINCT", "",
        ),
        ("SELECT id FROM shop.orders TABLESAMPLE (10 PERCENT)", NotIncrementalError, "TABLESAMPLE", ""),
        ("SELECT sum(n) OVER nowhere s FROM shop.orders", SqlNameError, "no window", ""),
        (
            "SELECT id FROM shop.orders UNION ALL BY NAME SELECT 1 id, 2 ID",
            SqlNameError, "two columns are named 'ID'", "",
        ),
        ("SELECT id FROM shop.orders UNION ALL SELECT 1, 2", SqlTypeError, "columns on one side", ""),
        (
            "SELECT id FROM shop.orders WHERE n > ALL (SELECT n FROM shop.orders)",
            NotIncrementalError, "not of Spark's SQL", "",
        ),
    ],
)  # fmt: skip
def test_bad_sql_is_refused_with_the_place(
    sql: str, kind: type[ViewError], message: str, marked: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        compiled(sql)
    assert "v" in caught.value.message or kind is NotIncrementalError
    if marked:
        line, marks = caught.value.detail.splitlines()[-2:]
        start = marks.index("^")
        assert line[start:].startswith(marked)


def test_a_dropped_source_column_is_pointed_at() -> None:
    sql = "SELECT id,\n       status\nFROM shop.orders"
    without = [table("shop.public.orders", "id BIGINT, state STRING", ["id"])]
    with pytest.raises(SqlNameError, match="'status' does not exist") as caught:
        compile_views([ViewDefinition("v", sql)], without)
    assert "line 2:        status" in caught.value.detail
    assert "state" in caught.value.hint


def test_one_bad_view_does_not_hide_another() -> None:
    views = [
        ViewDefinition("good", "SELECT id FROM shop.orders"),
        ViewDefinition("bad", "SELECT nothing FROM shop.orders"),
        ViewDefinition("worse", "SELECT id FROM bad"),
        ViewDefinition("last", "SELECT rand() AS r FROM shop.orders"),
    ]
    found = problems(views, TABLES)
    assert sorted(found) == ["bad", "last", "worse"]
    assert all("^" in error.detail for error in found.values())


def test_error_names_the_line_of_a_long_query() -> None:
    with pytest.raises(SqlNameError) as caught:
        compiled("SELECT id\nFROM shop.orders\nWHERE stat = 'open'")
    assert caught.value.detail.startswith("line 3: WHERE stat")
    assert "did you mean 'status'?" in caught.value.hint


def test_key_that_is_not_a_column_is_refused() -> None:
    with pytest.raises(SqlNameError, match="key column 'country'"):
        compiled("SELECT id FROM shop.orders", ("country",))


def test_view_that_reads_itself_is_refused() -> None:
    views = [ViewDefinition("x", "SELECT id FROM y"), ViewDefinition("y", "SELECT id FROM x")]
    with pytest.raises(SqlNameError, match="reads itself"):
        compile_views(views, TABLES)


def test_key_that_is_not_unique_stops_the_tick_and_shows_the_rows() -> None:
    rows = [("upsert", "shop.public.orders", {"id": i, "n": 7, "status": f"s{i}"}) for i in (1, 2)]
    with pytest.raises(KeyNotUniqueError, match="key is not unique") as caught:
        run_ticks("SELECT n, status FROM shop.orders", TABLES, [rows], keys={"v": ["n"]})
    assert '1 × {"n":7,"status":"s1"}' in caught.value.detail
    assert '1 × {"n":7,"status":"s2"}' in caught.value.detail


def test_rows_in_errors_are_shown_as_people_write_them() -> None:
    rows = [("upsert", "shop.public.orders", {"id": i, "n": i}) for i in (20773, 20774)]
    sql = """SELECT 1 AS one, date_add(DATE '1970-01-01', n) AS on_day,
        CAST(n AS DECIMAL(10, 2)) AS paid, TIMESTAMP '2026-11-16 12:00:00' AS at FROM shop.orders"""
    with pytest.raises(KeyNotUniqueError) as caught:
        run_ticks(sql, TABLES, [rows], keys={"v": ["one"]})
    expected = '{"one":1,"on_day":"2026-11-16","paid":"20773.00","at":"2026-11-16T12:00:00Z"}'
    assert f"1 × {expected}" in caught.value.detail


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("n + 1", "overflows"),
        ("n * n", "overflows"),
        ("1 / (n - n)", "division by zero"),
        ("CAST(status AS INT)", "cannot be cast"),
        ("n % 0", "division by zero"),
        ("add_months(DATE '2020-01-01', n)", "add_months: year .* out of range"),
        ("timestamp_seconds(CAST(n AS BIGINT)) + make_interval(0, n)", "out of range"),
        ("regexp_replace(status, '(', '')", "INVALID_PARAMETER_VALUE.PATTERN"),
        ("raise_error(status)", "x"),
        ("assert_true(n < 0)", "'n < 0' is not true!"),
    ],
)
def test_expression_that_fails_stops_the_tick(expression: str, message: str) -> None:
    rows = [("upsert", "shop.public.orders", {"id": 1, "n": 2**31 - 1, "status": "x"})]
    with pytest.raises(EvaluationError, match=message):
        run_ticks(f"SELECT id, {expression} x FROM shop.orders", TABLES, [rows])


def test_branch_that_is_not_taken_is_not_computed() -> None:
    rows = [("upsert", "shop.public.orders", {"id": i, "n": i - 1}) for i in (1, 2)]
    sql = "SELECT id, CASE WHEN n <> 0 THEN 10 / n END x FROM shop.orders WHERE n = 0 OR 4 / n > 1"
    (after,) = run_ticks(sql, TABLES, [rows])
    assert sorted(row["x"] or 0 for row in after["v"]) == [0, 10.0]


def test_scalar_subquery_with_two_rows_stops_the_tick() -> None:
    rows = [("upsert", "shop.public.orders", {"id": i, "n": i}) for i in (1, 2)]
    with pytest.raises(EvaluationError, match="more than one row"):
        run_ticks("SELECT id, (SELECT n FROM shop.orders) x FROM shop.orders", TABLES, [rows])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o.id, 10 / i.n x FROM shop.orders o JOIN shop.items i ON o.id = i.order_id",
        "SELECT o.id, 10 / i.n x FROM shop.orders o LEFT JOIN shop.items i ON o.id = i.order_id",
        "SELECT o.id, 10 / i.n x FROM shop.orders o JOIN"
        " (SELECT order_id, sum(n) n FROM shop.items GROUP BY order_id) i ON o.id = i.order_id",
        "SELECT o.id, 10 / (SELECT max(n) FROM shop.items i WHERE i.order_id = o.id) x"
        " FROM shop.orders o",
        "SELECT o.id, 2D x FROM shop.orders o JOIN shop.items i"
        " ON o.id = i.order_id AND o.n / i.n > 0",
    ],
)
def test_a_pair_of_rows_that_never_met_is_no_error(sql: str) -> None:
    # In the second tick the order meets the item as it is, not as it was before.
    items = table("shop.public.items", "id BIGINT, order_id BIGINT, n INT", ["id"])
    after = run_ticks(
        sql,
        [*TABLES, items],
        [
            [("upsert", "shop.public.items", {"id": 1, "order_id": 1, "n": 0})],
            [
                ("upsert", "shop.public.orders", {"id": 1, "n": 10}),
                ("upsert", "shop.public.items", {"id": 1, "order_id": 1, "n": 5}),
            ],
        ],
    )
    assert after[-1]["v"] == [{"id": 1, "x": 2.0}]


def test_what_a_subquery_keeps_out_is_not_computed_above_it() -> None:
    rows = [("upsert", "shop.public.orders", {"id": i, "n": i - 1}) for i in (1, 2)]
    sql = """SELECT o.id FROM (SELECT * FROM shop.orders WHERE n <> 0) o
        JOIN shop.orders p ON o.id = p.id WHERE 10 / o.n > 1"""
    (after,) = run_ticks(sql, TABLES, [rows])
    assert after["v"] == [{"id": 2}]


def test_two_rows_of_a_scalar_subquery_matter_only_to_a_row_that_meets_them() -> None:
    items = table("shop.public.items", "id BIGINT, order_id BIGINT, n INT", ["id"])
    sql = "SELECT id, (SELECT n FROM shop.items i WHERE i.order_id = o.id) x FROM shop.orders o"
    before = [
        ("upsert", "shop.public.orders", {"id": 2, "n": 1}),
        *(("upsert", "shop.public.items", {"id": i, "order_id": 1, "n": i}) for i in (1, 2)),
        ("upsert", "shop.public.items", {"id": 3, "order_id": 2, "n": 7}),
    ]
    met = ("upsert", "shop.public.orders", {"id": 1, "n": 1})
    one_left = ("delete", "shop.public.items", {"id": 1})
    after = run_ticks(sql, [*TABLES, items], [before, [met, one_left]])
    assert after[0]["v"] == [{"id": 2, "x": 7}]
    assert sorted(row["x"] for row in after[1]["v"]) == [2, 7]
    with pytest.raises(EvaluationError, match="more than one row"):
        run_ticks(sql, [*TABLES, items], [before, [met]])


def test_graph_survives_pickling() -> None:
    graph = compiled("SELECT status, count(*) c FROM shop.orders GROUP BY status")
    again = pickle.loads(pickle.dumps(graph))
    memory = MemoryTables(again)
    memory.upsert("shop.public.orders", {"id": 1, "status": "open"})
    memory.tick()
    assert memory.rows("v") == [{"status": "open", "c": 1}]


def test_a_wrong_key_points_at_the_columns_of_the_result() -> None:
    with pytest.raises(SqlNameError, match="'customer' is not in the result") as caught:
        compiled("SELECT id,\n  customer_id FROM shop.orders", ("customer",))
    assert caught.value.detail.splitlines() == ["line 1: SELECT id,", "               ^^^"]
    assert caught.value.hint == "did you mean 'customer_id'?"


def test_an_unknown_table_is_suggested() -> None:
    with pytest.raises(SqlNameError) as caught:
        compiled("SELECT id FROM shop.ordres")
    assert "did you mean 'shop.orders'?" in caught.value.hint
