from __future__ import annotations

import threading

import pytest

from tailrace.serving import query
from tailrace.serving.errors import QueryError, QueryTimeoutError
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views
from tailrace.testing.changelogs import random_project


@pytest.fixture
def views(tmp_path):
    writer = random_project(3, 6)
    with Follower(tmp_path / "views", writer.log, "shop") as follower:
        follower.step(0)
        with Views(tmp_path / "views") as made:
            made.expected = len(writer.contents["orders"])
            yield made


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orders VALUES (1, 'x', NULL)",
        "DELETE FROM orders",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW orders",
        "ATTACH '/tmp/x.db' AS x",
        "COPY (SELECT 1) TO '/tmp/tailrace-written.csv'",
        "COPY orders FROM '/etc/passwd'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/tailrace-written.csv'",
        "EXPLAIN ANALYZE CREATE TABLE orders AS SELECT 1 AS id",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "EXPORT DATABASE '/tmp/x'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM 'https://example.org/x.parquet'",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM sqlite_scan('x', 'y')",
        "SELECT * FROM query('DELETE FROM orders')",
        "SELECT 1; SELECT 2",
        "",
        ";",
        "SELEC 1",
        "SELECT * FROM nothing",
        "SELECT CAST('x' AS INT) FROM orders",
        "SELECT list(a.range) FROM range(1000000000) a",
        "SELECT " + "(" * 100_000 + "1",
    ],
)
def test_whatever_is_no_question_about_the_views_is_refused(views, statement, tmp_path):
    with pytest.raises(QueryError):
        views.sql(statement)
    assert views.sql("SELECT count(*) AS n FROM orders").rows == [{"n": views.expected}]
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize(
    "condition",
    [
        "true) UNION ALL SELECT 99999 WHERE (true",
        "true UNION ALL SELECT 99999",
        "true) OR (true",
        "true; DELETE FROM orders",
        "true ORDER BY 1",
        "1, 2",
        "'",
        "nothing = 1",
        "id IN (SELECT * FROM read_text('/etc/passwd'))",
        "EXISTS (SELECT 1 FROM totals)",
        "\x00",
        "(" * 100_000,
    ],
)
def test_a_condition_is_an_expression_and_nothing_else(views, condition):
    with pytest.raises(QueryError):
        views.rows("orders", where=condition)


def test_only_as_much_of_an_answer_is_made_as_is_asked_for(views):
    page = views.sql("SELECT range AS n FROM range(100000000000)", limit=3)
    assert [row["n"] for row in page.rows] == [0, 1, 2]
    assert page.next == "more"
    assert views.sql("SELECT * FROM range(3)", limit=3).next is None


def test_a_question_that_takes_too_long_is_ended_and_holds_up_nobody(views):
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b"
    engine = query.Engine(seconds=1.0)
    done = threading.Event()
    told = []

    def ask():
        with views.snapshot() as snapshot:
            try:
                engine.table(snapshot, slow)
            except QueryTimeoutError as error:
                told.append(error)
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    with views.snapshot() as snapshot:
        assert engine.table(snapshot, "SELECT 1 AS one").to_pylist() == [{"one": 1}]
        with pytest.raises(QueryTimeoutError):
            list(
                engine.filter(
                    snapshot.view("orders").info, snapshot.scan("orders"), f"id < ({slow})"
                )
            )
    thread.join()
    engine.close()
    assert [error.code for error in told] == ["view-query-timeout"]


def test_questions_from_several_threads_do_not_meet(views):
    wrong = []

    def ask(number):
        for _ in range(10):
            rows = views.sql(f"SELECT count(*) AS n, {number} AS m FROM orders").rows
            if rows != [{"n": views.expected, "m": number}]:
                wrong.append(rows)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    "joined",
    [
        "orders o JOIN totals t USING (country)",
        "orders NATURAL JOIN totals",
        "ORDERS o JOIN Totals t ON o.country = t.country",
        "(SELECT * FROM orders) o JOIN (SELECT country FROM totals) USING (country)",
    ],
)
def test_columns_may_be_joined_by_name_and_views_named_in_any_case(views, joined):
    by_condition = "orders o JOIN totals t ON t.country = o.country"
    (expected,) = views.sql(f"SELECT count(*) AS n, sum(id) AS ids FROM {by_condition}").rows
    assert expected["n"] > 0
    assert views.sql(f"SELECT count(*) AS n, sum(id) AS ids FROM {joined}").rows == [expected]


def test_a_view_that_is_not_there_is_told_with_the_nearest(views):
    with pytest.raises(QueryError, match="there is no view 'order'") as told:
        views.sql('SELECT * FROM "order"')
    assert told.value.hint == "did you mean 'orders'?"
    with pytest.raises(QueryError) as told:
        views.sql("SELECT * FROM nothing")
    assert told.value.hint == "views: orders, totals"


def test_a_column_that_is_not_there_is_told_by_name(views):
    with pytest.raises(QueryError, match="cannot be answered") as told:
        views.sql("SELECT nothing FROM orders JOIN totals USING (country)")
    assert '"nothing"' in told.value.detail
