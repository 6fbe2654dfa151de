"""From row messages to events: inserts, updates, deletes, key changes, missing values."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

import numpy
import orjson

from tailrace.records.columns import lengths_of, mask_array
from tailrace.records.envelope import TransactionFrame
from tailrace.sources.base import Keys, Values
from tailrace.sources.compare import Comparison
from tailrace.sources.declare import Postgres
from tailrace.sources.journal import Journal
from tailrace.sources.postgres.columns import DecodedRows, Piece, decimal, join
from tailrace.sources.postgres.copy import Chunk
from tailrace.sources.postgres.pgoutput import Message, read_values
from tailrace.sources.postgres.replication import RowRun
from tailrace.sources.postgres.table import CapturedTable, Transaction
from tailrace.sources.postgres.toast import SMALLEST, RowStore


class RowWriter:
    """Adds the events of row messages to their tables' buffers.

    `incomplete` holds, per table being copied, the rows written with missing values: the
    copy reads them, and its row fills them.
    """

    def __init__(self, journal: Journal, store: RowStore) -> None:
        self._journal = journal
        self._store = store
        self._incomplete_rows: dict[str, dict[bytes, tuple[bytes, list[str]]]] = {}

    def insert(self, table: CapturedTable, transaction: Transaction, lsn: int, data: bytes) -> None:
        """`I`. Most rows come this way, so it repeats `_add` without its calls."""
        key, after, _ = table.row(data, 6)
        if after is None:  # never for an insert, but the stream decides, not we
            self._incomplete(table, transaction, lsn, data, 6, None, "c")
            return
        if table.touched is not None or key is None:
            self._add(table, transaction, lsn, "c", key, b"null", after)
            return
        order = transaction.order = transaction.order + 1
        table_order = table.order = table.order + 1
        number = b"%d" % order
        place = b"%d" % lsn
        head, middle, operation, identity = table.inserts
        table.keys.append(key)
        table.values.append(
            b"".join(
                (
                    b'{"before":null,"after":', after, head, place, middle, place, operation,
                    number, b',"data_collection_order":',
                    number if order == table_order else b"%d" % table_order, identity, number,
                    b'"}',
                )
            )
        )  # fmt: skip
        if table.toastable and len(after) >= SMALLEST:
            self._store.put(table.name, key, after)
        transaction.rows += 1

    def many(self, table: CapturedTable, transaction: Transaction, run: RowRun) -> bool:
        """A run of inserted or updated rows at once; False if they must be taken singly."""
        if table.name in self._incomplete_rows:
            return False
        rows = table.columns.from_tuples(run.data, run.tuples)
        frame = table.events
        if rows is None or frame is None:
            return False
        lsn = decimal(run.lsns)
        first = numpy.arange(1, rows.count + 1, dtype=numpy.int64)
        order = decimal(first + transaction.order)
        same = transaction.order == table.order
        values = join(
            [
                b'{"before":null,"after":', *self._kept(table, rows), frame.head, lsn,
                frame.middle, lsn, frame.operations["c" if run.kind == 0x49 else "u"], order,
                b',"data_collection_order":', order if same else decimal(first + table.order),
                frame.key, order, b'"}',
            ]
        )  # fmt: skip
        transaction.order += rows.count
        table.order += rows.count
        transaction.rows += rows.count
        table.add_columns(rows.key, values)
        if table.touched is not None and rows.key is not None:
            table.touched.update(dict.fromkeys(rows.key.to_pylist(), transaction.xid))
        return True

    def _kept(self, table: CapturedTable, rows: DecodedRows) -> list[Piece]:
        """Remember the rows that may be stored out of line; the pieces that make all."""
        if not table.toastable or rows.key is None:
            return rows.pieces
        objects = rows.objects()
        for number in numpy.flatnonzero(lengths_of(objects) >= SMALLEST).tolist():
            self._store.put(table.name, rows.key[number].as_py(), objects[number].as_py())
        return [objects]

    def update(self, table: CapturedTable, transaction: Transaction, lsn: int, data: bytes) -> None:
        """`U`: with the old key (K) if it changed, the old row (O) under FULL, or neither."""
        marker = data[5]
        if marker == 0x4E:  # N
            key, after, _ = table.row(data, 6)
            if after is None:
                self._incomplete(table, transaction, lsn, data, 6, None, "u")
            else:
                self._add(table, transaction, lsn, "u", key, b"null", after)
            return
        old, end = read_values(data, 6)
        old_json = table.decoder.json_values(old)
        key, after, _ = table.row(data, end + 1)
        if after is None:
            self._incomplete(
                table, transaction, lsn, data, end + 1, old_json, "u", full=marker == 0x4F
            )
            return
        self._changed(table, transaction, lsn, key, after, old_json, marker == 0x4F)

    def _changed(
        self, table: CapturedTable, transaction: Transaction, lsn: int, key: bytes | None,
        after: bytes, old: list[bytes | None], full: bool, missing: list[str] | None = None,
    ) -> None:  # fmt: skip
        old_key = table.decoder.key_of(old)
        before = table.decoder.assemble(old) if full else b"null"
        if key == old_key:
            self._add(table, transaction, lsn, "u", key, before, after, missing)
            return
        gone = before if full else (old_key or b"null")
        self._add(table, transaction, lsn, "d", old_key, gone, b"null")
        self._add(table, transaction, lsn, "c", key, b"null", after, missing)

    def delete(self, table: CapturedTable, transaction: Transaction, lsn: int, data: bytes) -> None:
        """`D`: the key alone (K), or the whole row under FULL (O)."""
        values, _ = read_values(data, 6)
        old = table.decoder.json_values(values)
        key = table.decoder.key_of(old)
        before = table.decoder.assemble(old) if data[5] == 0x4F else key or b"null"
        self._add(table, transaction, lsn, "d", key, before, b"null")

    def deleted(self, table: CapturedTable, transaction: Transaction, lsn: int, key: bytes) -> None:
        """A row that TRUNCATE took."""
        self._add(table, transaction, lsn, "d", key, key, b"null")

    def _incomplete(
        self, table: CapturedTable, transaction: Transaction, lsn: int, data: bytes,
        position: int, old: list[bytes | None] | None, op: str, *, full: bool = False,
    ) -> None:  # fmt: skip
        """A row with unchanged values that the stream left out."""
        values, _ = read_values(data, position)
        new = table.decoder.json_values(values)
        if old is not None and full:
            new = [o if n is None else n for n, o in zip(new, old, strict=True)]
        elif old is not None:
            # The old key is sent whole, also where a key column is stored out of line.
            keyed = set(table.decoder.key)
            new = [old[i] if n is None and i in keyed else n for i, n in enumerate(new)]
        was = table.decoder.key_of(new if old is None else old)
        if not full and was is not None:
            new = self._completed(table, was, new)
        missing = [
            plan.name
            for plan, value in zip(table.decoder.columns, new, strict=True)
            if value is None and plan.captured
        ]
        key = table.decoder.key_of(new)
        after = table.decoder.assemble(new)
        if old is not None:
            self._changed(table, transaction, lsn, key, after, old, full, missing)
        else:
            self._add(table, transaction, lsn, op, key, b"null", after, missing)

    def _add(
        self, table: CapturedTable, transaction: Transaction, lsn: int, op: str,
        key: bytes | None, before: bytes, after: bytes, missing: list[str] | None = None,
    ) -> None:  # fmt: skip
        order = transaction.order = transaction.order + 1
        table_order = table.order = table.order + 1
        frame = table.events
        assert frame is not None
        table.keys.append(key)
        if missing:
            table.values.append(frame.event(op, before, after, lsn, order, table_order, missing))
        else:
            number = b"%d" % order
            place = b"%d" % lsn
            table.values.append(
                b"".join(
                    (
                        b'{"before":', before, b',"after":', after, frame.head, place,
                        frame.middle, place, frame.operations[op], number,
                        b',"data_collection_order":', b"%d" % table_order, frame.key, number,
                        b'"}',
                    )
                )
            )  # fmt: skip
        if op == "d" and key is not None:
            table.keys.append(key)
            table.values.append(None)
            if table.toastable:
                self._store.put(table.name, key, None)
        elif len(after) >= SMALLEST and table.toastable and key is not None:
            self._store.put(table.name, key, after)
        transaction.rows += 1
        if table.touched is not None and key is not None:
            table.touched[key] = transaction.xid
            if missing:
                self._incomplete_rows.setdefault(table.name, {})[key] = (after, missing)
            elif table.name in self._incomplete_rows:
                self._incomplete_rows[table.name].pop(key, None)

    def _completed(
        self, table: CapturedTable, key: bytes, values: list[bytes | None]
    ) -> list[bytes | None]:
        """Unchanged values from the last row we know; those we do not know stay None."""
        found = self._store.get(table.name, key)
        if found is None:
            return values
        row = orjson.loads(found)
        return [
            orjson.dumps(row[plan.name]) if value is None and plan.name in row else value
            for plan, value in zip(table.decoder.columns, values, strict=True)
        ]

    def copied(self, table: str) -> None:
        """A copy has ended: what is still missing stays so."""
        self._incomplete_rows.pop(table, None)

    def chunk(
        self, table: CapturedTable, frame: TransactionFrame, chunk: Chunk,
        touched: Mapping[bytes, int], lsn: int, comparison: Comparison | None = None,
    ) -> Iterator[tuple[Keys, Values]]:  # fmt: skip
        """Read events of a chunk in pieces, without the rows an unseen transaction has
        changed and, when comparing, without those the log has already."""
        if comparison is None and table.name not in self._incomplete_rows:
            yield from self._columns_of(table, frame, chunk, touched, lsn)
            return
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        line_of = table.decoder.line
        sees = chunk.snapshot.sees
        place = b"%d" % lsn
        head = frame.head + place + frame.middle + place + frame.operations["r"]
        order = 0
        incomplete = self._incomplete_rows.get(table.name, {})
        for line in chunk.lines:
            key, after = line_of(line)
            if touched and key is not None:
                xid = touched.get(key)
                if xid is not None and not sees(xid):
                    if key not in incomplete:
                        continue
                    after = _filled(after, *incomplete[key])
            if comparison is not None and key is not None and not comparison.differs(key, after):
                continue
            if incomplete and key is not None:
                incomplete.pop(key, None)
            if len(after) >= SMALLEST and table.toastable and key is not None:
                self._store.put(table.name, key, after)
            order += 1
            number = b"%d" % order
            keys.append(key)
            values.append(
                b"".join(
                    (
                        b'{"before":null,"after":', after, head, number,
                        b',"data_collection_order":', number, frame.key, number, b'"}',
                    )
                )
            )  # fmt: skip
        yield keys, values

    def _columns_of(
        self, table: CapturedTable, frame: TransactionFrame, chunk: Chunk,
        touched: Mapping[bytes, int], lsn: int,
    ) -> Iterator[tuple[Keys, Values]]:  # fmt: skip
        first = 1
        sees = chunk.snapshot.sees
        for block in chunk.pieces():
            rows = table.columns.from_lines(block)
            if touched and rows.key is not None:
                found = [touched.get(key) for key in rows.key.to_pylist()]
                fresh = numpy.array([xid is None or sees(xid) for xid in found], bool)
                if not fresh.all():
                    mask = mask_array(fresh)
                    pieces = [p if isinstance(p, bytes) else p.filter(mask) for p in rows.pieces]
                    rows = DecodedRows(int(fresh.sum()), pieces, rows.key.filter(mask))
            yield rows.key, copied_events(frame, rows, self._kept(table, rows), lsn, first)
            first += rows.count

    def vanished(
        self, frame: TransactionFrame, gone: list[bytes], lsn: int, order: int
    ) -> tuple[list[bytes | None], list[bytes | None]]:
        """Deletes of rows that the log has and the table has not."""
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        for number, key in enumerate(gone, order + 1):
            keys += [key, key]
            values += [frame.event("d", key, b"null", lsn, number, number), None]
        return keys, values

    def message(
        self, transaction: Transaction | None, message: Message, source: Postgres, now_ms: int
    ) -> None:
        """What `pg_logical_emit_message` sent, as an event of `<source>.transactions`."""
        document: dict[str, object] = {
            "status": "MESSAGE",
            "op": "m",
            "source": source.name,
            "id": None if transaction is None else transaction.id,
            "lsn": message.lsn,
            "message": {
                "prefix": message.prefix,
                "content": base64.b64encode(message.content).decode(),
            },
            "ts_ms": now_ms if transaction is None else transaction.committed_ms,
        }
        if transaction is None:
            self._journal.note(document)
        else:
            transaction.order += 1
            transaction.notes.append(document)


def copied_events(
    frame: TransactionFrame, rows: DecodedRows, objects: list[Piece], lsn: int, first: int = 1
) -> Values:
    """The `r` events of copied rows, numbered from `first` on."""
    place = b"%d" % lsn
    order = decimal(numpy.arange(first, first + rows.count, dtype=numpy.int64))
    events: Values = join(
        [
            b'{"before":null,"after":', *objects, frame.head, place, frame.middle, place,
            frame.operations["r"], order, b',"data_collection_order":', order, frame.key, order,
            b'"}',
        ]
    )  # fmt: skip
    return events


def _filled(copied: bytes, newer: bytes, missing: list[str]) -> bytes:
    """A newer row whose missing values are those of the copied row: they did not change."""
    row, values = orjson.loads(copied), orjson.loads(newer)
    return orjson.dumps({k: row[k] if k in missing else values.get(k) for k in row})
