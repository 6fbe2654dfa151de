"""Rows that the stream sends without a value, fed to the writer of rows without a server."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.sources import Postgres
from tailrace.sources.journal import Journal
from tailrace.sources.postgres.catalog import CatalogTable
from tailrace.sources.postgres.copies import copy_frame
from tailrace.sources.postgres.copy import WHOLE, Chunk, Snapshot
from tailrace.sources.postgres.incomplete_rows import IncompleteRows
from tailrace.sources.postgres.pgoutput import Relation, RelationColumn
from tailrace.sources.postgres.raw_json import assembled, members
from tailrace.sources.postgres.rows import RowWriter
from tailrace.sources.postgres.table import Transaction, captured_table, shape_of
from tailrace.sources.postgres.toast import RowStore
from tailrace.sources.postgres.types import TypeTable
from tailrace.testing.source_contract import rebuild
from tailrace.testing.source_log import MemorySourceLog, SharedLog

SOURCE = Postgres("shop", "", tables=["documents"])
TOPIC = "shop.public.documents"
RELATION = Relation(
    1, "public", "documents", "d",
    (
        RelationColumn("id", 23, -1, True),
        RelationColumn("title", 25, -1, False),
        RelationColumn("body", 25, -1, False),
    ),
)  # fmt: skip
CATALOG = CatalogTable(RELATION, ("id",), frozenset(["id"]))
Row = tuple[str, str]


def tuple_data(*values: str | bool | None) -> bytes:
    """A pgoutput tuple; True for a value that is not sent."""
    data = struct.pack(">H", len(values))
    for value in values:
        if isinstance(value, str):
            data += b"t" + struct.pack(">I", len(value.encode())) + value.encode()
        else:
            data += b"n" if value is None else b"u"
    return data


def inserted(id: int, title: str, body: str) -> bytes:
    return b"I" + struct.pack(">I", 1) + b"N" + tuple_data(str(id), title, body) + bytes(8)


def updated(id: int, title: str, body: str | bool, old: int | None = None) -> bytes:
    before = b"" if old is None else b"K" + tuple_data(str(old), None, None)
    new = tuple_data(str(id), title, body)
    return b"U" + struct.pack(">I", 1) + before + b"N" + new + bytes(8)


def deleted(id: int) -> bytes:
    return b"D" + struct.pack(">I", 1) + b"K" + tuple_data(str(id), None, None) + bytes(8)


class Writer:
    """One run of a capture, as far as rows go; a transaction's number is its xid."""

    def __init__(
        self, shared: SharedLog, directory: Path, newest: int, touched: bool, cut_off: bool = False
    ) -> None:
        self.journal = Journal(SOURCE, MemorySourceLog(shared))
        self.journal.open()
        self.gate = newest  # a copy's snapshot sees what was streamed before the run
        self.incomplete = IncompleteRows(self.journal, lambda: newest)
        self.incomplete.restore()
        self.store = RowStore(directory)
        types = TypeTable()
        schema = self.journal.register(shape_of(SOURCE, RELATION, CATALOG, types), 0)
        self.table = captured_table(SOURCE, RELATION, schema, types, "db")
        self.table.smallest = 0
        self.table.touched = {} if touched else None
        history = self.journal.records_since(TOPIC, self.store.next_offset)
        for records, end in [] if cut_off else history:
            self.store.apply("public.documents", TOPIC, records, end, 0)
        self.rows = RowWriter(self.journal, self.store, self.incomplete)

    def take(self, xid: int, *messages: bytes) -> None:
        transaction = Transaction(xid * 10, xid, 0, xid)
        self.table.enter(transaction, 1)
        for message in messages:
            kind = {0x49: self.rows.insert, 0x55: self.rows.update, 0x44: self.rows.delete}
            kind[message[0]](self.table, transaction, xid, message)
        for keys, values in self.table.take():
            self.journal.add(TOPIC, keys, values)
        self.table.events = None
        self.incomplete.flush()
        self.cut(xid)

    def cut(self, xid: int) -> None:
        self.journal.cut(xid * 10)
        self.store.commit(self.journal.single_ends())

    def refill(self, mark: int, rows: dict[int, Row], snapshot: Snapshot) -> None:
        """Held rows as a snapshot has them, whose mark the stream has reached."""
        asked = list(self.incomplete.keys("public.documents"))
        wanted = {i: rows[i] for i in (orjson.loads(k)["id"] for k in asked) if i in rows}
        frame = copy_frame(self.table, 1, Transaction(mark, 0, 0, 0), first=False, last=False)
        self.journal.add(
            TOPIC, *self.rows.refilled(self.table, frame, chunk(wanted, snapshot), asked, mark)
        )
        self.incomplete.flush()
        self.journal.cut(mark)

    def copy(self, mark: int, rows: dict[int, Row], snapshot: Snapshot) -> None:
        """A chunk of the first copy."""
        frame = copy_frame(self.table, 1, Transaction(mark, 0, 0, 0), first=True, last=False)
        assert self.table.touched is not None
        for keys, values in self.rows.chunk(
            self.table, frame, chunk(rows, snapshot), self.table.touched, mark
        ):
            self.journal.add(TOPIC, keys, values)
        self.incomplete.flush()
        self.journal.cut(mark)

    def close(self) -> None:
        self.store.close()
        self.journal.close()


def chunk(rows: dict[int, Row], snapshot: Snapshot) -> Chunk:
    lines = [f"{id}\t{title}\t{body}\n" for id, (title, body) in sorted(rows.items())]
    block = "".join(lines).encode()
    return Chunk("public.documents", "m", CATALOG, snapshot, block, len(rows), WHOLE, None)


def sees(xid: int) -> Snapshot:
    """A snapshot that sees every transaction up to this one."""
    return Snapshot(xid + 1, xid + 1, frozenset())


@pytest.fixture
def shared() -> SharedLog:
    return SharedLog()


@pytest.fixture
def writer(shared: SharedLog, tmp_path: Path) -> Any:
    made = Writer(shared, tmp_path / "rows", 100, False)
    yield made
    made.close()


def events(shared: SharedLog) -> list[tuple[str, Any]]:
    found = [orjson.loads(value) for value in shared.values(TOPIC) if value is not None]
    return [(event["op"], event["after"]) for event in found]


def cut_copying(shared: SharedLog) -> list[str]:
    found = orjson.loads(shared.values("shop.transactions")[-1] or b"{}")["copying"]
    assert isinstance(found, list)
    return found


def test_a_row_with_a_value_unknown_is_not_written_before_it_is_known(
    writer: Writer, shared: SharedLog
) -> None:
    writer.take(1, updated(5, "new", True))
    assert events(shared) == []
    assert cut_copying(shared) == ["public.documents"]
    writer.refill(20, {5: ("new", "text")}, sees(1))
    assert events(shared) == [("u", {"id": 5, "title": "new", "body": "text"})]
    assert cut_copying(shared) == []


def test_a_changed_key_takes_the_values_that_are_known(writer: Writer, shared: SharedLog) -> None:
    writer.take(1, updated(7, "new", True, old=5))
    assert events(shared) == [("d", None)]
    # A title that came later wins over the one that was read.
    writer.take(2, updated(7, "newer", True))
    writer.refill(30, {7: ("new", "text")}, sees(1))
    assert events(shared)[1:] == [("c", {"id": 7, "title": "newer", "body": "text"})]


def test_a_snapshot_from_before_the_row_came_to_its_key_completes_nothing(
    writer: Writer, shared: SharedLog
) -> None:
    """Key 7 had another row, which is deleted: its body is not that of the new row."""
    writer.take(1, deleted(7))
    writer.take(2, updated(7, "moved", True, old=5))
    writer.refill(30, {7: ("old", "of another row")}, sees(0))
    assert [op for op, _ in events(shared)] == ["d", "d"]
    writer.refill(31, {7: ("moved", "right")}, sees(2))
    assert events(shared)[2:] == [("c", {"id": 7, "title": "moved", "body": "right"})]


@pytest.mark.parametrize("end", [deleted(5), updated(5, "whole", "body")])
def test_a_whole_row_or_a_delete_ends_the_waiting(
    writer: Writer, shared: SharedLog, end: bytes
) -> None:
    writer.take(1, updated(5, "new", True))
    writer.take(2, end)
    before = events(shared)
    assert len(before) == 1
    writer.refill(30, {5: ("new", "text")}, sees(1))
    assert events(shared) == before
    assert cut_copying(shared) == []


def test_what_is_held_survives_a_restart(shared: SharedLog, tmp_path: Path) -> None:
    first = Writer(shared, tmp_path / "rows", 0, False)
    first.take(1, updated(7, "new", True, old=5))
    first.close()
    second = Writer(shared, tmp_path / "rows", 2, False)
    assert cut_copying(shared) == ["public.documents"]
    # What the earlier run knew of it is gone: an old snapshot does not do.
    second.refill(30, {7: ("old", "text")}, Snapshot(1, 3, frozenset([1])))
    assert [op for op, _ in events(shared)] == ["d"]
    second.refill(31, {7: ("new", "text")}, sees(2))
    assert events(shared)[1:] == [("c", {"id": 7, "title": "new", "body": "text"})]
    second.close()


def test_a_held_row_that_is_gone_from_the_table_becomes_a_delete(
    writer: Writer, shared: SharedLog
) -> None:
    """Its delete was among the changes that a lost slot took with it."""
    writer.take(1, updated(5, "new", True))
    writer.refill(30, {}, sees(1))
    assert events(shared) == [("d", None)]
    assert cut_copying(shared) == []


def test_an_unchanged_value_is_kept_byte_by_byte(writer: Writer, shared: SharedLog) -> None:
    """Numbers that no float holds, and names that come twice, as `json` keeps them."""
    kept = b'{"id":5,"title":"a","body":{"n":12345678901234567890.10,"n":1e400}}'
    writer.store.put("public.documents", b'{"id":5}', kept, 1)
    writer.take(1, updated(5, "b", True))
    (value,) = shared.values(TOPIC)
    assert b'"body":{"n":12345678901234567890.10,"n":1e400}' in (value or b"")


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
), st.dictionaries(st.text(), st.integers()), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]))  # fmt: skip
def test_members_are_the_bytes_of_their_values(
    value: Any, others: dict[str, int], separators: tuple[str, str]
) -> None:
    import json

    document = {**others, "value": value}
    text = json.dumps(document, separators=separators, ensure_ascii=False)
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        return
    found = members(text.encode())
    assert {name: json.loads(raw) for name, raw in found.items()} == document
    assert json.loads(assembled(found)) == document
    assert found["value"].decode() in text


def test_members_nested_deeper_than_python_reads() -> None:
    deep = b"[" * 50_000 + b'"]"' + b"]" * 50_000
    assert members(b'{"a":' + deep + b',"b":1}') == {"a": deep, "b": b"1"}


class Table:
    """A table, its history, and what the stream says of each transaction."""

    def __init__(self, choose: random.Random, size: int) -> None:
        self.choose = choose
        # All behind where the copy begins: whoever moves to the front was not copied.
        self.rows: dict[int, Row] = {i: ("old", f"body {i}") for i in range(size, 2 * size)}
        self.size = size
        self.states: list[dict[int, Row]] = [dict(self.rows)]

    def transaction(self) -> list[bytes]:
        messages: list[bytes] = []
        number = len(self.states)
        for step in range(self.choose.choice([1, 1, 2, 4])):
            messages += self._statement(f"t{number}.{step}")
        self.states.append(dict(self.rows))
        return messages

    def _statement(self, mark: str) -> list[bytes]:
        a, b = self.choose.randrange(2 * self.size), self.choose.randrange(self.size)
        if len(self.rows) > self.size / 2 and self.choose.random() < 0.8:
            a = self.choose.choice(list(self.rows))
        if a not in self.rows:
            self.rows[a] = (mark, f"body {mark}")
            return [inserted(a, *self.rows[a])]
        match self.choose.choice(["delete", "move", "move", "title", "title", "body"]):
            case "delete":
                del self.rows[a]
                return [deleted(a)]
            case "title":
                self.rows[a] = (mark, self.rows[a][1])
                return [updated(a, mark, True)]
            case "body":
                self.rows[a] = (mark, f"body {mark}")
                return [updated(a, *self.rows[a])]
        messages = [] if b not in self.rows or b == a else [deleted(b)]
        self.rows[b] = (mark, self.rows.pop(a)[1])
        old = None if a == b else a
        return [*messages, updated(b, mark, True, old=old)]


@pytest.mark.parametrize("seed", range(25))
def test_copy_refill_kills_and_late_visibility_give_the_table(seed: int, tmp_path: Path) -> None:
    """The first copy, held rows and restarts, against a table that knows its history. A
    transaction may be streamed before snapshots see it."""
    choose = random.Random(seed)
    shared = SharedLog()
    table = Table(choose, 8)
    streamed, mark, run = 0, 10_000, 0
    copied = 7  # ids up to here are copied
    writer = Writer(shared, tmp_path / f"rows{run}", 0, True)
    oldest_hidden = 1
    history: list[list[bytes]] = [[]]

    def snapshot() -> Snapshot:
        """Of now: some of the last transactions are streamed but not visible."""
        nonlocal oldest_hidden
        oldest_hidden = min(max(oldest_hidden, streamed - choose.randrange(6)), streamed + 1)
        return Snapshot(oldest_hidden, oldest_hidden, frozenset())

    while copied < 16 or streamed < 120:
        action = choose.choice(["change"] * 5 + ["copy", "refill", "refill", "kill"])
        if action == "change":
            history.append(table.transaction())
            streamed += 1
            writer.take(streamed, *history[-1])
        elif action in ("copy", "refill"):
            seen = snapshot()
            state = table.states[seen.xmax - 1]
            for _ in range(choose.randrange(3)):  # streamed before the mark
                history.append(table.transaction())
                streamed += 1
                writer.take(streamed, *history[-1])
            mark += 1
            if action == "refill":
                writer.refill(mark * 10, state, seen)
            elif seen.xmin >= writer.gate:
                until = copied + choose.randrange(2)
                writer.copy(
                    mark * 10, {i: r for i, r in state.items() if copied < i <= until}, seen
                )
                copied = until
        else:
            writer.close()
            # Often what was kept is lost, and the topic's history with it.
            run += choose.randrange(4) > 0
            cut_off = choose.random() < 0.8
            writer = Writer(shared, tmp_path / f"rows{run}", streamed + 1, True, cut_off)
            oldest_hidden = max(oldest_hidden, 1)
    oldest_hidden = streamed + 1
    for _ in range(2):
        mark += 1
        writer.refill(mark * 10, table.rows, sees(streamed))
    writer.close()
    assert cut_copying(shared) == []
    assert {
        orjson.loads(key)["id"]: (row["title"], row["body"])
        for key, row in rebuild(shared.records(TOPIC)).items()
    } == table.rows
    check_history(shared, table)


def check_history(shared: SharedLog, table: Table) -> None:
    """Every row in the topic is one the table had, and later ones never come first."""
    last: dict[int, int] = {}
    versions: dict[tuple[int, Row], int] = {}
    for number, state in enumerate(table.states):
        for id, row in state.items():
            versions.setdefault((id, row), number)
    for record in shared.records(TOPIC):
        event = orjson.loads(record.value or b"{}")
        if event.get("after"):
            id, row = event["after"]["id"], (event["after"]["title"], event["after"]["body"])
            number = versions.get((id, row))
            if number is None:
                continue  # a version inside a transaction
            assert number >= last.get(id, 0), (id, row)
            last[id] = number
