"""What every source must keep, as functions over the records it wrote.

`rebuild` is the naive reader: it applies a change topic from its beginning. The checks
raise AssertionError with what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import orjson

from tailrace.sources.base import LogRecord

Row = dict[str, Any]


def rebuild(records: Iterable[LogRecord]) -> dict[bytes, Row]:
    """The table a change topic describes, by record key."""
    rows: dict[bytes, Row] = {}
    for record in records:
        assert record.key is not None, "a record without key in the topic of a keyed table"
        if record.value is None:
            rows.pop(record.key, None)
            continue
        event = orjson.loads(record.value)
        if event["op"] == "d":
            rows.pop(record.key, None)
        else:
            rows[record.key] = event["after"]
    return rows


def check_events(records: Iterable[LogRecord]) -> None:
    """Idempotency keys are unique, commits never go back, orders grow in a transaction."""
    seen: set[str] = set()
    last: tuple[int, int, int] = (0, 0, 0)
    for record in records:
        if record.value is None:
            continue
        event = orjson.loads(record.value)
        identity = event["idempotency_key"]
        assert identity not in seen, f"event {identity} was written twice"
        seen.add(identity)
        epoch, commit, ordinal = (int(x) for x in identity.split("-"))
        assert commit == event["source"]["commit_lsn"]
        assert ordinal == event["transaction"]["total_order"]
        assert (epoch, commit, ordinal) > last, f"{identity} came after {last}"
        last = (epoch, commit, ordinal)


def check_tombstones(records: Iterable[LogRecord]) -> None:
    """Every delete of a keyed table is followed at once by its tombstone, and only a delete."""
    waiting: bytes | None = None
    for record in records:
        if record.value is None:
            assert record.key == waiting, f"tombstone of {record.key!r} without its delete"
            waiting = None
            continue
        assert waiting is None, f"no tombstone after the delete of {waiting!r}"
        if orjson.loads(record.value)["op"] == "d":
            waiting = record.key
    assert waiting is None


def check_cuts(transactions: Iterable[LogRecord], ends: Mapping[str, Mapping[int, int]]) -> None:
    """Positions of cuts never go back, their offsets grow, and none passes the end."""
    position = ""
    reached: dict[tuple[str, str], int] = {}
    opened: str | None = None
    for record in transactions:
        assert record.value is not None
        document = orjson.loads(record.value)
        match document["status"]:
            case "BEGIN":
                assert opened is None, f"{opened} has no END"
                opened = document["id"]
            case "END":
                assert opened == document["id"], f"END of {document['id']} without BEGIN"
                opened = None
            case "CUT":
                assert opened is None, f"a cut inside {opened}"
                text = f"{document['epoch']:08}:{document['position']}"
                assert text >= position, f"cut {text} after {position}"
                position = text
                for topic, partitions in document["offsets"].items():
                    for partition, offset in partitions.items():
                        before = reached.get((topic, partition), 0)
                        assert offset >= before, f"{topic}/{partition} went back to {offset}"
                        assert offset <= ends[topic][int(partition)]
                        reached[topic, partition] = offset


def check_transactions_are_whole(
    transactions: Iterable[LogRecord], topics: Mapping[str, Iterable[LogRecord]]
) -> None:
    """Every END's count equals the events of that transaction in the change topics."""
    found: dict[str, int] = {}
    for records in topics.values():
        for record in records:
            if record.value is not None:
                event = orjson.loads(record.value)
                name = event["transaction"]["id"]
                if not name.startswith("copy:"):
                    found[name] = found.get(name, 0) + 1
    for record in transactions:
        document = orjson.loads(record.value or b"{}")
        if document.get("status") == "MESSAGE" and document.get("id"):
            found[document["id"]] = found.get(document["id"], 0) + 1
        elif document.get("status") == "END":
            counted = found.pop(document["id"], 0)
            assert counted == document["event_count"], (document, counted)
    assert not found, f"events of transactions without END: {found}"


class Captured(Protocol):
    """What a capture has written so far."""

    def table(self, table: str) -> list[Row]: ...

    def events(self, table: str) -> list[Row]: ...

    def notes(self, status: str | None = None) -> list[Row]: ...

    def check(self) -> None:
        """All checks of this module, over every topic."""


class Capture(Protocol):
    """A capture that runs until its context ends."""

    written: Captured

    def reach(self, position: str) -> None:
        """Wait for a cut at or behind `position`."""

    def copied(self) -> None:
        """Wait until no first copy is running."""

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; raises what ended the capture before."""

    def __enter__(self) -> Capture: ...

    def __exit__(self, *error: object) -> None: ...


class SourceCase(Protocol):
    """A database of one kind, and its capture into a log that survives restarts."""

    schema: str

    def execute(self, *statements: str) -> None:
        """Run SQL that every kind understands, each statement in its own transaction;
        a list joined by `;` is one transaction."""

    def alter(self, statement: str) -> None:
        """Run an ALTER TABLE in the way the documentation of this source tells."""

    def rows(self, query: str) -> list[tuple[Any, ...]]: ...

    def columns(self, table: str) -> list[str]: ...

    def position(self) -> str:
        """Where the database is now."""

    def capture(self, *, fail_after: int | None = None) -> Capture:
        """Start capturing; with `fail_after` the log goes away at that commit."""


class SourceContract:
    """The suite every source passes. Subclass it and give a fixture `case`."""

    TABLE = "CREATE TABLE items (id INTEGER PRIMARY KEY, name VARCHAR(50), amount INTEGER)"

    def _expected(self, case: SourceCase) -> list[Row]:
        rows = case.rows("SELECT id, name, amount FROM items")
        found = [{"id": i, "name": n, "amount": a} for i, n, a in rows]
        return sorted(found, key=lambda row: f'{{"id":{row["id"]}}}')

    def _same(self, case: SourceCase, running: Capture) -> None:
        assert running.written.table(f"{case.schema}.items") == self._expected(case)
        running.written.check()

    def test_rows_from_before_and_after_are_complete(self, case: SourceCase) -> None:
        case.execute(self.TABLE, *[f"INSERT INTO items VALUES ({i}, 'n', {i})" for i in range(250)])
        with case.capture() as running:
            case.execute(
                "UPDATE items SET amount = 0 WHERE id % 3 = 0", "DELETE FROM items WHERE id > 200"
            )
            running.copied()
            case.execute("INSERT INTO items VALUES (999, 'late', 1)")
            running.reach(case.position())
        self._same(case, running)

    def test_changes_of_one_row_keep_their_order(self, case: SourceCase) -> None:
        case.execute(self.TABLE, "INSERT INTO items VALUES (1, 'n', 0)")
        with case.capture() as running:
            running.copied()
            case.execute(*[f"UPDATE items SET amount = {i} WHERE id = 1" for i in range(1, 60)])
            running.reach(case.position())
        amounts = [e["after"]["amount"] for e in running.written.events(f"{case.schema}.items")]
        assert amounts == list(range(60))
        self._same(case, running)

    def test_a_transaction_is_written_whole_or_not_at_all(self, case: SourceCase) -> None:
        case.execute(self.TABLE)
        with case.capture() as running:
            running.copied()
            case.execute(
                "BEGIN; INSERT INTO items VALUES (1, 'a', 1); INSERT INTO items VALUES (2, 'b', 2); COMMIT",
                "BEGIN; INSERT INTO items VALUES (3, 'c', 3); ROLLBACK",
            )
            running.reach(case.position())
        self._same(case, running)
        events = running.written.events(f"{case.schema}.items")
        assert [e["transaction"]["total_order"] for e in events] == [1, 2]

    def test_a_changed_key_is_a_delete_and_an_insert(self, case: SourceCase) -> None:
        case.execute(self.TABLE, "INSERT INTO items VALUES (1, 'n', 0)")
        with case.capture() as running:
            running.copied()
            case.execute("UPDATE items SET id = 7 WHERE id = 1")
            running.reach(case.position())
        events = running.written.events(f"{case.schema}.items")
        assert [e["op"] for e in events] == ["r", "d", "c"]
        self._same(case, running)

    def test_a_restart_at_every_commit_loses_and_repeats_nothing(self, case: SourceCase) -> None:
        case.execute(self.TABLE, *[f"INSERT INTO items VALUES ({i}, 'n', {i})" for i in range(220)])
        for attempt in range(8):
            running = case.capture(fail_after=attempt % 4)
            case.execute(
                f"UPDATE items SET amount = amount + 1 WHERE id % 5 = {attempt % 5}",
                f"BEGIN; DELETE FROM items WHERE id = {attempt}; "
                f"INSERT INTO items VALUES ({1000 + attempt}, 'x', 0); COMMIT",
            )
            try:
                with running:
                    running.reach(case.position())
                    running.copied()
            except ConnectionError:
                continue
        with case.capture() as running:
            running.reach(case.position())
            running.copied()
        self._same(case, running)

    def test_an_added_column_is_a_new_version(self, case: SourceCase) -> None:
        case.execute(self.TABLE, "INSERT INTO items VALUES (1, 'n', 0)")
        with case.capture() as running:
            running.copied()
            case.execute(
                "ALTER TABLE items ADD COLUMN note VARCHAR(20)",
                "INSERT INTO items (id, name, amount, note) VALUES (2, 'm', 1, 'new')",
            )
            running.reach(case.position())
        last = running.written.events(f"{case.schema}.items")[-1]
        assert last["after"] == {"id": 2, "name": "m", "amount": 1, "note": "new"}
        assert last["source"]["schema_version"] == 2
        running.written.check()

    def test_renamed_and_dropped_columns_are_new_versions(self, case: SourceCase) -> None:
        case.execute(self.TABLE, "INSERT INTO items VALUES (1, 'n', 0)")
        with case.capture() as running:
            running.copied()
            case.alter("ALTER TABLE items RENAME COLUMN name TO title")
            case.execute("INSERT INTO items VALUES (2, 'm', 1)")
            case.alter("ALTER TABLE items DROP COLUMN amount")
            case.execute(
                "INSERT INTO items (id, title) VALUES (3, 'o')", "UPDATE items SET title = 'p'"
            )
            running.reach(case.position())
        found = {
            event["after"]["id"]: event["after"]
            for event in running.written.events(f"{case.schema}.items")
        }
        assert found == {i: {"id": i, "title": "p"} for i in (1, 2, 3)}
        events = running.written.events(f"{case.schema}.items")
        assert {"id": 2, "title": "m", "amount": 1} in [event["after"] for event in events]
        versions = [event["source"]["schema_version"] for event in events]
        assert versions == sorted(versions)
        assert versions[-1] == 3
        running.written.check()
