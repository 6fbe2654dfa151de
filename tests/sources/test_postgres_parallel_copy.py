"""One table read by several connections at once."""

from __future__ import annotations

import contextlib
import random
import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any

import orjson
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.capture import SMALL
from tailrace.sources import Postgres
from tailrace.sources.errors import SourceDeclarationError
from tailrace.sources.postgres.copies import recorded_ranges
from tailrace.sources.postgres.copy import WHOLE, Chunk, KeyRange, without

PARALLEL = replace(SMALL, chunk_rows=100, split_rows=500, touched_keys=20)
ITEMS = "CREATE TABLE items (a text, b int, amount int, note text, PRIMARY KEY (a, b))"
FILL = """INSERT INTO items SELECT chr(97 + i % 26) || i % 7, i, i, 'old'
          FROM generate_series(1, {rows}) i"""


def progress(shared: Any) -> list[dict[str, Any]]:
    return [orjson.loads(value) for value in shared.values("__tailrace_sources")]


def written(shared: Any) -> int:
    """Rows in the log, as the progress of the copy says."""
    return max((state.get("rows", 0) for state in progress(shared)), default=0)


def table(running: Any) -> set[tuple[Any, ...]]:
    rows = running.written.table("public.items")
    return {(r["a"], r["b"], r["amount"], r["note"]) for r in rows}


def there(database: Any) -> set[tuple[Any, ...]]:
    return set(database.rows("SELECT a, b, amount, note FROM items"))


def test_a_large_table_is_read_by_several_connections(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(ITEMS, FILL.format(rows=4000), "ANALYZE items")
    with capture(PARALLEL, tables=["items"]) as running:
        running.copied()
    assert table(running) == there(database)
    found = progress(shared)
    assert max(len(state.get("ranges", ())) for state in found) > 4
    # No chunk begins where another one has begun: together they are the table, once.
    del found[-1]["oid"]
    assert found[-1] == {"state": "done", "rows": 4000, "declared": {}}
    assert sum(e["op"] == "r" for e in running.written.events("public.items")) == 4000
    last = [e for e in running.written.events("public.items") if e["source"]["snapshot"] == "last"]
    assert 0 < len(last) <= 100
    running.written.check()


@pytest.mark.parametrize("connections", [1, 2, 7])
def test_a_parallel_copy_equals_the_table_while_keys_move(
    database: Any, capture: Any, connections: int
) -> None:
    database.run(ITEMS, FILL.format(rows=5000), "ANALYZE items")
    stop = threading.Event()

    def move(seed: int) -> None:
        choose = random.Random(seed)
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            while not stop.is_set():
                i = choose.randrange(5000)
                letter = choose.choice("abcmxyz")
                statement = choose.choice(
                    [
                        f"UPDATE items SET a = '{letter}' WHERE b = {i}",
                        f"UPDATE items SET amount = amount + 1 WHERE b BETWEEN {i} AND {i + 20}",
                        f"DELETE FROM items WHERE b = {i}",
                        f"INSERT INTO items VALUES ('{letter}', {i}, 0, 'new') "
                        "ON CONFLICT (a, b) DO UPDATE SET note = 'again'",
                    ]
                )
                with contextlib.suppress(psycopg.errors.UniqueViolation):
                    connection.execute(statement.encode())

    writers = [threading.Thread(target=move, args=(seed,), daemon=True) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        with capture(PARALLEL, tables=["items"], copy_connections=connections) as running:
            running.copied()
            stop.set()
            for writer in writers:
                writer.join(20)
            running.reach(database.position())
    finally:
        stop.set()
    assert table(running) == there(database)
    running.written.check()


def test_a_parallel_copy_goes_on_where_it_was_interrupted(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(ITEMS, FILL.format(rows=6000), "ANALYZE items")
    for _ in range(3):
        before = written(shared)
        with capture(PARALLEL, tables=["items"]) as running:
            running.until(lambda known=before: written(shared) > known)
            database.run("UPDATE items SET amount = -1, a = 'moved' WHERE b % 1000 = 3")
    with capture(PARALLEL, tables=["items"]) as running:
        running.copied()
        running.reach(database.position())
    assert table(running) == there(database)
    # Every chunk was written once: what a restart reads again was never in the log. A row that
    # moved into a range behind may have been read twice.
    assert progress(shared)[-1]["rows"] <= 6000 + 6
    running.written.check()


def test_emptied_and_altered_tables_are_read_again_from_what_is_left(
    database: Any, capture: Any
) -> None:
    database.run(ITEMS, FILL.format(rows=6000), "ANALYZE items")
    with capture(PARALLEL, tables=["items"]) as running:
        running.until(lambda: len(running.written.events("public.items")) > 500)
        database.run("ALTER TABLE items ADD more int DEFAULT 7", "UPDATE items SET amount = 0 WHERE b = 9")  # fmt: skip
        running.until(lambda: len(running.written.events("public.items")) > 1500)
        database.run("TRUNCATE items", "INSERT INTO items SELECT 'z', i, 1, 'after' FROM generate_series(1, 700) i")  # fmt: skip
        running.copied()
        running.reach(database.position())
    assert table(running) == there(database)
    running.written.check()


def test_wide_rows_make_small_chunks(database: Any, capture: Any, shared: Any) -> None:
    """Nobody has analyzed the table: the size of its rows is met, not known."""
    database.run(
        "CREATE TABLE items (id int PRIMARY KEY, body text)",
        "ALTER TABLE items ALTER body SET STORAGE EXTERNAL",
        "ALTER TABLE items SET (autovacuum_enabled = false)",
        "INSERT INTO items SELECT i, repeat(md5(i::text), 20000) FROM generate_series(1, 90) i",
    )
    with capture(replace(SMALL, chunk_rows=1000), tables=["items"]) as running:
        running.copied()
    sizes = [state["rows"] for state in progress(shared) if "rows" in state]
    steps = [after - before for before, after in pairwise(sizes)]
    assert sum(steps) == 90
    # 640 kB a row: never more than fit into 16 MiB and what a read gives at a time.
    assert max(steps) <= 28
    rows = {r["id"]: r["body"] for r in running.written.table("public.items")}
    assert rows == dict(database.rows("SELECT id, body FROM items"))


def test_tables_that_inherit_are_copied_by_themselves(database: Any, capture: Any) -> None:
    database.run(
        "CREATE TABLE items (id int PRIMARY KEY, x text)",
        "CREATE TABLE special (PRIMARY KEY (id)) INHERITS (items)",
        "INSERT INTO items VALUES (1, 'one')",
        "INSERT INTO special VALUES (2, 'two')",
    )
    with capture(tables=["items", "special"]) as running:
        running.copied()
        database.run("UPDATE items SET x = x || '!'")
        running.reach(database.position())
    assert running.written.table("public.items") == [{"id": 1, "x": "one!"}]
    assert running.written.table("public.special") == [{"id": 2, "x": "two!"}]


def test_a_partitioned_table_is_copied_through_its_root(database: Any, capture: Any) -> None:
    database.run(
        ITEMS + " PARTITION BY RANGE (b)",
        "CREATE TABLE items_low PARTITION OF items FOR VALUES FROM (0) TO (1500)",
        "CREATE TABLE items_high PARTITION OF items FOR VALUES FROM (1500) TO (100000)",
        FILL.format(rows=3000),
        "ANALYZE items",
    )
    with capture(PARALLEL, tables=["public.*"]) as running:
        running.copied()
        database.run("UPDATE items SET b = b + 2000 WHERE b % 100 = 1", "DELETE FROM items_low WHERE b % 100 = 2")  # fmt: skip
        running.reach(database.position())
    assert table(running) == there(database)
    assert [t for t in running.written.shared.topics if "items_" in t] == []
    running.written.check()


def test_copying_needs_a_connection() -> None:
    with pytest.raises(SourceDeclarationError):
        Postgres("shop", "dbname=shop", copy_connections=0)


keys = st.sets(st.integers(0, 60), max_size=50).map(sorted)


@given(keys, st.sets(st.integers(0, 60), max_size=6), st.integers(1, 9), st.data())
def test_chunks_in_any_order_cover_every_key_once(
    there: list[int], points: set[int], size: int, data: st.DataObject
) -> None:
    """A model of the readers: any range is read next, and any moment may be a restart."""
    # Borders are mostly keys that are there, where a chunk may end as well.
    points |= set(there[data.draw(st.integers(0, 3)) :: data.draw(st.integers(1, 9))])
    texts: list[tuple[str, ...]] = [(f"{point:02}",) for point in sorted(points)]
    left = [KeyRange(a, b) for a, b in zip([None, *texts], [*texts, None], strict=True)]
    met: list[int] = []
    while left:
        chosen = data.draw(st.sampled_from(left))
        low = -1 if chosen.after is None else int(chosen.after[0])
        high = 99 if chosen.until is None else int(chosen.until[0])
        inside = [key for key in there if low < key <= high][:size]
        rest = KeyRange((f"{inside[-1]:02}",), chosen.until) if len(inside) == size else None
        met += inside
        left = without(left, Chunk("t", "m", *[None] * 2, b"", len(inside), chosen, rest))  # type: ignore[arg-type]
        if data.draw(st.booleans()):
            left = recorded_ranges(orjson.loads(orjson.dumps({"ranges": [r.record for r in left]})))
    assert sorted(met) == there


def test_progress_of_an_earlier_version_is_understood() -> None:
    assert recorded_ranges({"after": None}) == [WHOLE]
    assert recorded_ranges({"after": ["5", "x"]}) == [KeyRange(("5", "x"), None)]
