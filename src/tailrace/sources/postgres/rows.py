"""From row messages to events: inserts, updates, deletes, key changes, missing values."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping

import numpy
import numpy.typing

from tailrace.records.columns import lengths_of, mask_array
from tailrace.records.envelope import TransactionFrame
from tailrace.sources.base import Keys, Values
from tailrace.sources.compare import Comparison
from tailrace.sources.declare import Postgres
from tailrace.sources.errors import ReplicationProtocolError
from tailrace.sources.journal import IncompleteRow, Journal
from tailrace.sources.postgres.columns import DecodedRows, Piece, decimal, join
from tailrace.sources.postgres.copy import WHOLE, Chunk
from tailrace.sources.postgres.incomplete_rows import IncompleteRows
from tailrace.sources.postgres.pgoutput import Message, read_values
from tailrace.sources.postgres.raw_json import assembled, members
from tailrace.sources.postgres.replication import RowRun
from tailrace.sources.postgres.table import CapturedTable, Transaction
from tailrace.sources.postgres.toast import RowStore


class RowWriter:
    """Adds the events of row messages to their tables' buffers; rows with a value that is
    not known are held back in `incomplete`.

    While `replaying` is set, rows come that an earlier run has written: they change nothing
    that is kept.
    """

    def __init__(self, journal: Journal, store: RowStore, incomplete: IncompleteRows) -> None:
        self._journal = journal
        self._store = store
        self.incomplete = incomplete
        self.replaying = False

    def insert(self, table: CapturedTable, transaction: Transaction, lsn: int, data: bytes) -> None:
        """`I`. Most rows come this way, so it repeats `_add` without its calls."""
        key, after, _ = table.row(data, 6)
        if after is None:  # never for an insert, but the stream decides, not we
            self._incomplete(table, transaction, lsn, data, 6, None, "c")
            return
        if table.touched is not None or key is None or table.name in self.incomplete:
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
        if table.toastable and len(after) >= table.smallest and not self.replaying:
            self._store.put(table.name, key, after, table.schema.version)
        transaction.rows += 1

    def many(self, table: CapturedTable, transaction: Transaction, run: RowRun) -> bool:
        """A run of inserted or updated rows at once; False if they must be taken singly."""
        if table.name in self.incomplete:
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
            keys = rows.key.to_pylist()
            table.touched.update(dict.fromkeys(keys, transaction.xid))
            if table.inserted is not None and run.kind == 0x49:
                table.inserted.update(keys)
        return True

    def _kept(self, table: CapturedTable, rows: DecodedRows) -> list[Piece]:
        """Remember the rows that may be stored out of line; the pieces that make all."""
        if not table.toastable or rows.key is None:
            return rows.pieces
        objects = rows.objects()
        for number in numpy.flatnonzero(lengths_of(objects) >= table.smallest).tolist():
            self._store.put(
                table.name, rows.key[number].as_py(), objects[number].as_py(), table.schema.version
            )
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
        after: bytes, old: list[bytes | None], full: bool,
    ) -> None:  # fmt: skip
        old_key = table.decoder.key_of(old)
        before = table.decoder.assemble(old) if full else b"null"
        if key == old_key:
            self._add(table, transaction, lsn, "u", key, before, after)
            return
        gone = before if full else (old_key or b"null")
        self._add(table, transaction, lsn, "d", old_key, gone, b"null")
        self._add(table, transaction, lsn, "c", key, b"null", after)

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

    def emptied(self, table: CapturedTable, transaction: Transaction, lsn: int) -> None:
        """TRUNCATE of a table without a key: all rows before are gone."""
        self._add(table, transaction, lsn, "t", None, b"null", b"null")

    def _incomplete(
        self, table: CapturedTable, transaction: Transaction, lsn: int, data: bytes,
        position: int, old: list[bytes | None] | None, op: str, *, full: bool = False,
    ) -> None:  # fmt: skip
        """A row with unchanged values that the stream left out."""
        values, _ = read_values(data, position)
        new = table.decoder.json_values(values)
        keyed = set(table.decoder.key)
        if old is not None:
            # The old key is sent whole, also where a key column is stored out of line.
            new = [old[i] if n is None and (full or i in keyed) else n for i, n in enumerate(new)]
        was = table.decoder.key_of(new if old is None else old)
        key = table.decoder.key_of(new)
        if was is not None and not full:
            new = self._completed(table, was, new)
        if all(
            v is not None or not p.captured for p, v in zip(table.decoder.columns, new, strict=True)
        ):
            after = table.decoder.assemble(new)
            if old is not None:
                self._changed(table, transaction, lsn, key, after, old, full)
            else:
                self._add(table, transaction, lsn, op, key, b"null", after)
            return
        if key is None:
            raise ReplicationProtocolError(
                f"a row of {table.name} came without its unchanged values",
                detail="The table has no key by which it could be read again.",
                hint=f"ALTER TABLE {table.name} REPLICA IDENTITY FULL;",
            )
        if was != key:
            op = "c"
            self._add(table, transaction, lsn, "d", was, was or b"null", b"null")
        texts: list[str] | None = None
        if table.key_readable:
            # An unchanged part of the key stands in the old one, which is sent whole.
            before = read_values(data, 6)[0] if old is not None else values
            parts = [
                values[i] if isinstance(values[i], bytes) else before[i] for i in table.decoder.key
            ]
            texts = [part.decode() for part in parts if isinstance(part, bytes)]
        self._hold(table, transaction, key, op, new, texts)

    def _hold(
        self, table: CapturedTable, transaction: Transaction, key: bytes, op: str,
        values: list[bytes | None], texts: list[str] | None,
    ) -> None:  # fmt: skip
        """Write nothing yet: the row is read again until all of it is known."""
        transaction.rows += 1
        if table.touched is not None:
            table.touched[key] = transaction.xid
        if self.replaying:
            return
        self._store.put(table.name, key, None)
        known = {
            plan.name: value
            for plan, value in zip(table.decoder.columns, values, strict=True)
            if value is not None and plan.captured
        }
        self.incomplete.hold(
            table.name,
            key,
            IncompleteRow(op, None if texts is None else tuple(texts), transaction.now_ms),
            transaction.xid,
            known,
            table.schema.version,
        )

    def _add(
        self, table: CapturedTable, transaction: Transaction, lsn: int, op: str,
        key: bytes | None, before: bytes, after: bytes,
    ) -> None:  # fmt: skip
        order = transaction.order = transaction.order + 1
        table_order = table.order = table.order + 1
        frame = table.events
        assert frame is not None
        table.keys.append(key)
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
        transaction.rows += 1
        if op == "d" and key is not None:
            table.keys.append(key)
            table.values.append(None)
        if key is None:
            return
        if table.touched is not None:
            table.touched[key] = transaction.xid
            if table.inserted is not None and op == "c":
                table.inserted.add(key)
        if self.replaying:
            return
        self.incomplete.resolve(table.name, key)
        if table.toastable and (op == "d" or len(after) >= table.smallest):
            self._store.put(table.name, key, None if op == "d" else after, table.schema.version)

    def _completed(
        self, table: CapturedTable, key: bytes, values: list[bytes | None]
    ) -> list[bytes | None]:
        """Unchanged values from the last row we know; those we do not know stay None."""
        held = self.incomplete.get(table.name, key)
        if held is not None:
            row = self.incomplete.known(held, table.schema.version)
        else:
            row = self._kept_row(table, key)
        return [
            row.get(plan.name) if value is None else value
            for plan, value in zip(table.decoder.columns, values, strict=True)
        ]

    def _kept_row(self, table: CapturedTable, key: bytes) -> Mapping[str, bytes]:
        """The values of the last row that was kept, without those of columns that were
        something else then."""
        found = self._store.get(table.name, key)
        if found is None:
            return {}
        same = self._journal.same_columns(table.schema, found.version)
        return {name: value for name, value in members(found.json).items() if name in same}

    def chunk(
        self, table: CapturedTable, frame: TransactionFrame, chunk: Chunk,
        touched: Mapping[bytes, int], lsn: int, comparison: Comparison | None = None,
        known: tuple[set[bytes], TransactionFrame] | None = None,
    ) -> Iterator[tuple[Keys, Values]]:  # fmt: skip
        """Read events of a chunk in pieces, without the rows an unseen transaction has
        changed and, when comparing, without those the log has already. `known` are keys
        that were told as inserted, and the frame of their rows."""
        if comparison is None and table.name not in self.incomplete:
            yield from self._columns_of(table, frame, chunk, touched, lsn, known)
            return
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        line_of = table.decoder.line
        sees = chunk.snapshot.sees
        place = b"%d" % lsn
        inserted, again = known or (set[bytes](), frame)
        fresh, told = (each.head + place + each.middle + place for each in (frame, again))
        order = 0
        for line in chunk.lines:
            key, after = line_of(line)
            op = "r"
            differs = comparison is None or key is None or comparison.differs(key, after)
            if key is not None and (held := self.incomplete.get(table.name, key)) is not None:
                whole = self.complete(table, key, after, chunk)
                if whole is None:
                    continue
                # How it came to its key is news; that it changed before it was read is not.
                op, after = "c" if held.op == "c" else "r", whole
            elif not differs or (
                key is not None and (xid := touched.get(key)) is not None and not sees(xid)
            ):
                continue
            if len(after) >= table.smallest and table.toastable and key is not None:
                self._store.put(table.name, key, after, table.schema.version)
            order += 1
            number = b"%d" % order
            keys.append(key)
            head = told if key in inserted else fresh
            values.append(
                b"".join(
                    (
                        b'{"before":null,"after":', after, head, frame.operations[op], number,
                        b',"data_collection_order":', number, frame.key, number, b'"}',
                    )
                )
            )  # fmt: skip
        yield keys, values

    def complete(self, table: CapturedTable, key: bytes, read: bytes, chunk: Chunk) -> bytes | None:
        """A held row with the values of a row that was read, if they are the right ones; it
        is then held no longer."""
        whole = self.incomplete.completed(
            table.name, key, members(read), chunk.snapshot, table.schema.version
        )
        if whole is None:
            return None
        self.incomplete.resolve(table.name, key)
        return assembled(whole)

    def refilled(
        self, table: CapturedTable, frame: TransactionFrame, chunk: Chunk, asked: Collection[bytes],
        lsn: int,
    ) -> tuple[list[bytes | None], list[bytes | None]]:  # fmt: skip
        """Events of held rows that were read again by key. One that is gone from the table,
        without its delete in the stream, was lost with the changes of a lost slot."""
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        met: set[bytes] = set()
        order = 0
        for line in chunk.lines:
            key, read = table.decoder.line(line)
            assert key is not None
            met.add(key)
            held = self.incomplete.get(table.name, key)
            after = None if held is None else self.complete(table, key, read, chunk)
            if held is None or after is None:
                continue
            order += 1
            keys.append(key)
            values.append(frame.event(held.op, b"null", after, lsn, order, order))
            if table.inserted is not None and held.op == "c":
                table.inserted.add(key)
            if table.toastable and len(after) >= table.smallest:
                self._store.put(table.name, key, after, table.schema.version)
        if chunk.range == WHOLE and chunk.rest is None:
            gone = [
                key
                for key in asked
                if key not in met
                and (held := self.incomplete.get(table.name, key)) is not None
                and self.incomplete.seen(held, chunk.snapshot)
            ]
            for key in gone:
                self.incomplete.resolve(table.name, key)
            more = self.vanished(frame, gone, lsn, order)
            keys, values = keys + more[0], values + more[1]
        return keys, values

    def _columns_of(
        self, table: CapturedTable, frame: TransactionFrame, chunk: Chunk,
        touched: Mapping[bytes, int], lsn: int,
        known: tuple[set[bytes], TransactionFrame] | None,
    ) -> Iterator[tuple[Keys, Values]]:  # fmt: skip
        first = 1
        sees = chunk.snapshot.sees
        for block in chunk.pieces():
            rows = table.columns.from_lines(block)
            if touched and rows.key is not None:
                found = [touched.get(key) for key in rows.key.to_pylist()]
                fresh = numpy.array([xid is None or sees(xid) for xid in found], bool)
                if not fresh.all():
                    rows = _only(rows, fresh)
            for part, framed in _told_apart(rows, frame, known):
                yield part.key, copied_events(framed, part, self._kept(table, part), lsn, first)
                first += part.count

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


def _told_apart(
    rows: DecodedRows, frame: TransactionFrame, known: tuple[set[bytes], TransactionFrame] | None
) -> Iterator[tuple[DecodedRows, TransactionFrame]]:
    """Copied rows, and apart from them those that were told as inserted before."""
    if known is not None and rows.key is not None:
        inserted, again = known
        told = numpy.array([key in inserted for key in rows.key.to_pylist()], bool)
        if told.any():
            yield _only(rows, told), again
            rows = _only(rows, ~told)
    if rows.count:
        yield rows, frame


def _only(rows: DecodedRows, wanted: numpy.typing.NDArray[numpy.bool_]) -> DecodedRows:
    """The rows that are marked."""
    assert rows.key is not None
    mask = mask_array(wanted)
    pieces = [p if isinstance(p, bytes) else p.filter(mask) for p in rows.pieces]
    return DecodedRows(int(wanted.sum()), pieces, rows.key.filter(mask))
