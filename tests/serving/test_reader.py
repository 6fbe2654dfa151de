from __future__ import annotations

import subprocess
import sys
import threading
import time
from decimal import Decimal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.errors import UsageError
from tailrace.serving.errors import (
    HistoryGoneError,
    PositionTimeoutError,
    PositionUnknownError,
    QueryError,
    UnknownViewError,
    ViewKeyError,
    ViewsNotReadyError,
)
from tailrace.serving.follower import Follower, FollowerSettings
from tailrace.serving.reader import Views, open_views
from tailrace.testing.changelogs import MemoryLog, TickWriter, random_project


@pytest.fixture
def writer():
    log = MemoryLog()
    made = TickWriter(log)
    made.declare(
        "totals",
        ["country"],
        [("country", "STRING"), ("orders", "BIGINT"), ("value", "DECIMAL(12,2)")],
    )
    made.declare(
        "lines", ["order", "line"], [("order", "BIGINT"), ("line", "INT"), ("item", "STRING")]
    )
    made.tick(
        {
            "totals": [
                ({"country": c}, {"country": c, "orders": n, "value": f"{n}.50"})
                for n, c in enumerate(["BE", "DE", "FR", "NL", "PL"], 1)
            ],
            "lines": [
                ({"order": o, "line": n}, {"order": o, "line": n, "item": f"i{n % 3}"})
                for o in range(10)
                for n in range(5)
            ],
        },
        positions={"shop": "pg:shop:0000000000000100"},
    )
    return made


@pytest.fixture
def follower(tmp_path, writer):
    with Follower(
        tmp_path / "views",
        writer.log,
        "shop",
        settings=FollowerSettings(indexes={"lines": ("item",)}),
    ) as made:
        made.step(0)
        yield made


@pytest.fixture
def views(tmp_path, follower):
    with open_views(tmp_path) as made:
        yield made


def nl(orders):
    return ({"country": "NL"}, {"country": "NL", "orders": orders, "value": "1.00"})


def test_get_finds_rows_by_simple_and_composite_keys(views):
    assert views["totals"].get("NL") == {"country": "NL", "orders": 4, "value": "4.50"}
    assert views["totals"].get("XX") is None
    assert views["lines"].get(3, 2)["item"] == "i2"
    assert views["lines"].get("3", "2")["item"] == "i2"
    assert views["lines"].get({"line": 2, "order": 3})["item"] == "i2"


def test_the_row_of_a_view_of_one_row_is_found_without_a_key(writer, follower, views):
    writer.declare("total", [], [("n", "BIGINT")])
    for n in (5, 6):
        writer.tick({"total": [({}, {"n": n})]})
        follower.step(0)
        assert views["total"].get() == views.get("total", ()) == views.get("total", {}) == {"n": n}
        assert views["total"].rows().rows == [{"n": n}]
    with pytest.raises(ViewKeyError) as caught:
        views["total"].get(6)
    assert "at most one row" in caught.value.hint
    events = views["total"].changes(after=writer.tick_number - 1, idle=0.01)
    assert [(c.key, c.row) for c in next(events).changes] == [({}, {"n": 6})]
    events.close()
    writer.tick({"total": [({}, None)]})
    follower.step(0)
    assert views["total"].get() is None


@pytest.mark.parametrize("key", [(1,), (1, 2, 3), ("x", 2), {"other": 1}])
def test_a_key_that_does_not_fit_is_an_error_with_the_key_columns(views, key):
    with pytest.raises(ViewKeyError) as caught:
        views.get("lines", key)
    assert "(order, line)" in caught.value.detail


def test_an_unknown_view_is_an_error_that_lists_the_known(views):
    with pytest.raises(UnknownViewError) as caught:
        views["nothing"].get(1)
    assert "lines, totals" in caught.value.detail


def test_pages_give_every_row_once(views):
    seen, after = [], None
    while True:
        page = views.rows("lines", limit=7, after=after)
        seen += page.rows
        after = page.next
        if after is None:
            break
    assert len(seen) == 50
    assert len({(r["order"], r["line"]) for r in seen}) == 50


@pytest.mark.parametrize("where", ["item = 'i1' AND \"order\" > 6", {"item": "i1"}])
def test_where_filters_with_pages(views, where):
    expected = views.sql(
        "SELECT * FROM lines WHERE item = 'i1'"
        + (' AND "order" > 6' if isinstance(where, str) else "")
    ).rows
    seen, after = [], None
    while True:
        page = views.rows("lines", where=where, limit=2, after=after)
        assert len(page.rows) <= 2
        seen += page.rows
        after = page.next
        if after is None:
            break
    assert sorted(map(str, seen)) == sorted(map(str, expected))
    assert seen


@pytest.mark.parametrize(
    "where", ["nothing = 1", "item = ", "1=1); DROP TABLE x; SELECT (1", "item = 'a' --"]
)
def test_a_condition_that_cannot_be_answered_is_an_error(views, where):
    if where.endswith("--"):
        assert views.rows("lines", where=where).rows == []
        return
    with pytest.raises(QueryError):
        views.rows("lines", where=where)


@pytest.mark.parametrize("limit", [0, 100_001])
def test_a_limit_out_of_range_is_refused(views, limit):
    with pytest.raises(UsageError):
        views.rows("lines", limit=limit)


def test_sql_joins_views_and_writes_values_as_the_log_does(views):
    page = views.sql(
        "SELECT t.country, t.value + 1 AS v, count(*) AS n FROM totals t JOIN lines l "
        "ON l.\"order\" = t.orders WHERE t.country = 'NL' GROUP BY ALL"
    )
    assert page.rows == [{"country": "NL", "v": "5.50", "n": 5}]
    assert page.position == "tick:shop:1"
    assert views.arrow("SELECT sum(value) AS v FROM totals")["v"].to_pylist() == [Decimal("17.50")]
    assert views["totals"].sql("SELECT count(*) AS n FROM this").rows == [{"n": 5}]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM totals",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY totals TO '/tmp/never'",
        "SET threads = 8",
        "ATTACH '/tmp/never.db'",
        "SELECT * FROM nothing",
        "SELEC",
        "INSTALL httpfs",
        "PRAGMA database_list",
    ],
)
def test_sql_only_reads_and_only_views(views, query):
    with pytest.raises(QueryError):
        views.sql(query)
    assert views.sql("SELECT 1 AS one").rows == [{"one": 1}]


def test_variables_of_the_process_are_not_tables(views):
    import pyarrow as pa

    secret = pa.table({"x": [1]})
    with pytest.raises(QueryError):
        views.sql("SELECT * FROM secret")
    assert secret.num_rows == 1


def test_a_snapshot_stays_at_its_tick(views, writer, follower):
    with views.snapshot() as snapshot:
        writer.tick({"totals": [nl(99)]})
        follower.step(0)
        assert snapshot.get("totals", "NL")["orders"] == 4
        assert snapshot.position == "tick:shop:1"
    assert views["totals"].get("NL")["orders"] == 99


def test_cached_scans_follow_the_changes(views, writer, follower):
    assert views.sql("SELECT sum(orders) AS n FROM totals").rows == [{"n": 15}]
    writer.tick({"totals": [nl(14)]})
    follower.step(0)
    assert views.sql("SELECT sum(orders) AS n FROM totals").rows == [{"n": 25}]


def test_waiting_for_a_position(views, writer, follower):
    assert views.wait("pg:shop:0000000000000100") == "tick:shop:1"
    with pytest.raises(PositionTimeoutError):
        views.wait("pg:shop:0000000000000101", timeout=0.05)
    with pytest.raises(PositionUnknownError):
        views.wait("pg:other:0000000000000001", timeout=0.05)

    def later():
        time.sleep(0.1)
        writer.tick({"totals": [nl(7)]}, positions={"shop": "pg:shop:0000000000000200"})
        follower.step(0)

    thread = threading.Thread(target=later)
    thread.start()
    row = views["totals"].get("NL", at_least="pg:shop:0000000000000101", timeout=20)
    thread.join()
    assert row["orders"] == 7
    assert views.wait("tick:shop:2") == "tick:shop:2"


def test_waiting_for_an_append_and_for_what_another_view_has_answered(views, writer, follower):
    writer.tick({"totals": [nl(7)]}, inputs={"clicks": {0: 40, 3: 9913}})
    follower.step(0)
    assert views.wait("log:clicks/3:9912") == "tick:shop:2"
    with pytest.raises(PositionTimeoutError):
        views.wait("log:clicks/3:9913", timeout=0.05)
    with pytest.raises(PositionUnknownError):
        views.wait("log:clicks/7:1", timeout=0.05)
    answered = views["lines"].rows(limit=1).position
    assert views["totals"].get("NL", at_least=answered)["orders"] == 7


def test_a_reader_of_changes_that_pauses_keeps_nobody_waiting_and_misses_nothing(
    views, writer, follower
):
    slow, quick = views["totals"].changes(idle=0.01), views["totals"].changes(idle=0.01)
    assert (next(slow).kind, next(quick).kind) == ("snapshot", "snapshot")
    for n in range(2, 30):
        writer.tick({"totals": [nl(n)]})
        follower.step(0)
        assert next(event for event in quick if event.kind == "changes").tick == n
    seen = [next(event for event in slow if event.kind == "changes") for _ in range(2, 30)]
    assert [event.tick for event in seen] == list(range(2, 30))
    assert [event.changes[0].row["orders"] for event in seen] == list(range(2, 30))


@pytest.mark.parametrize("text", ["", "pg:shop", "pg:shop:xyz", "tick:shop:ff", "log:clicks:1"])
def test_text_that_is_no_position_is_refused(views, text):
    with pytest.raises(UsageError):
        views.wait(text)


def test_before_the_first_tick_the_views_are_not_ready(tmp_path):
    with Views(tmp_path / "none") as views, pytest.raises(ViewsNotReadyError):
        views.get("totals", "NL")


def test_changes_after_a_tick_are_those_of_the_later_ticks(views, writer, follower):
    writer.tick({"totals": [nl(8)]})
    writer.tick({"lines": [({"order": 0, "line": 0}, None)]})
    writer.tick({"totals": [({"country": "NL"}, None)]})
    follower.step(0)
    batches = views.changes("totals", 1)
    assert [(b.tick, [(c.key, c.row) for c in b.changes]) for b in batches] == [
        (2, [nl(8)]),
        (4, [({"country": "NL"}, None)]),
    ]
    assert views.changes("totals", 4) == []
    with pytest.raises(HistoryGoneError):
        views.changes("totals", 0)


def test_the_history_keeps_to_its_bound(tmp_path):
    writer = random_project(3, 1)
    with Follower(
        tmp_path, writer.log, "shop", settings=FollowerSettings(history_bytes=3000)
    ) as follower:
        follower.step(0)
        for n in range(50):
            writer.tick({"totals": [nl(n), ({"country": f"X{n}"}, None)]})
            follower.step(0)
        assert follower.state.history_bytes <= 3000
        with Views(tmp_path) as views:
            known = follower.state.history_from
            assert 0 < known < 51
            assert len(views.changes("totals", known)) == 51 - known
            with pytest.raises(HistoryGoneError):
                views.changes("totals", known - 1)


def test_a_subscriber_gets_a_snapshot_then_every_change(views, writer, follower):
    events = views["totals"].changes(idle=0.01)
    first = next(events)
    assert first.kind == "snapshot"
    assert len(first.rows) == 5
    assert next(events).kind == "idle"
    writer.tick({"totals": [nl(8)]})
    writer.tick({"totals": [nl(9)]})
    follower.step(0)
    got = [next(events), next(events)]
    assert [(e.kind, e.tick, e.changes[0].row["orders"]) for e in got] == [
        ("changes", 2, 8),
        ("changes", 3, 9),
    ]
    resumed = views.subscribe("totals", after=2, idle=0.01)
    assert next(resumed).changes[0].row["orders"] == 9
    assert next(resumed).kind == "idle"


def test_a_subscriber_behind_the_history_gets_a_new_snapshot(views, writer, follower):
    events = views.subscribe("totals", after=0, idle=0.01)
    assert next(events).kind == "snapshot"


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), pauses=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_a_subscriber_that_applies_events_always_has_the_view(tmp_path_factory, seed, pauses):
    import random

    from tailrace.testing.changelogs import write_random_tick

    chance = random.Random(seed)
    writer = random_project(seed, 1, keys=8, changes=6)
    directory = tmp_path_factory.mktemp("views")
    with (
        Follower(
            directory, writer.log, "shop", settings=FollowerSettings(history_bytes=1500)
        ) as follower,
        Views(directory) as views,
    ):
        follower.step(0)
        held: dict[bytes, dict] = {}
        events = views.subscribe("orders", idle=0.001)
        for count in pauses:
            for _ in range(count):
                write_random_tick(writer, chance, keys=8, changes=6)
                follower.step(0)
            while (event := next(events)).kind != "idle":
                if event.kind == "snapshot":
                    held = {orjson.dumps({"id": row["id"]}): row for row in event.rows}
                for change in event.changes:
                    key = orjson.dumps(change.key)
                    if change.row is None:
                        held.pop(key, None)
                    else:
                        held[key] = change.row
            assert held == writer.contents["orders"]


ASK = """
import sys
from tailrace.serving.reader import open_views
with open_views(sys.argv[1]) as views:
    print(views["totals"].get("NL")["orders"], flush=True)
    print(views.wait("tick:shop:2", timeout=60), views["totals"].get("NL")["orders"])
"""


def test_another_process_reads_while_the_follower_writes(tmp_path, writer, follower):
    process = subprocess.Popen(
        [sys.executable, "-c", ASK, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "4\n"
        writer.tick({"totals": [nl(5)]})
        follower.step(0)
        assert process.stdout.readline() == "tick:shop:2 5\n"
    assert process.returncode == 0


def test_threads_that_ask_first_all_at_once_are_all_answered(tmp_path):
    writer = TickWriter(MemoryLog())
    writer.declare("a", ["id"], [("id", "BIGINT")])
    writer.tick({"a": [({"id": 1}, {"id": 1})]})
    with Follower(tmp_path, writer.log, "shop") as follower:
        follower.step(0)
    for _ in range(30):
        found: list[object] = []
        together = threading.Barrier(4)
        with Views(tmp_path) as views:

            def look(views=views, together=together, found=found):
                together.wait()
                found.append(views.get("a", 1))

            threads = [threading.Thread(target=look) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert found == [{"id": 1}] * 4


def test_readers_in_threads_always_see_one_tick(tmp_path):
    log = MemoryLog()
    writer = TickWriter(log)
    for name in ("a", "b"):
        writer.declare(name, ["id"], [("id", "BIGINT"), ("n", "BIGINT")])

    def both(n):
        writer.tick({name: [({"id": 1}, {"id": 1, "n": n})] for name in ("a", "b")})

    both(0)
    wrong: list[object] = []
    done = threading.Event()
    with Follower(tmp_path, log, "shop") as follower, Views(tmp_path) as views:
        follower.step(0)

        def look():
            while not done.is_set():
                with views.snapshot() as snapshot:
                    pair = (snapshot.get("a", 1)["n"], snapshot.get("b", 1)["n"], snapshot.tick - 1)
                if len(set(pair)) != 1:
                    wrong.append(pair)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(1, 200):
            both(n)
            follower.step(0)
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []
