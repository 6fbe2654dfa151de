"""Rows of which a value is not known, and which are therefore not written yet.

Postgres does not send a value that is stored out of line and did not change. Where our own
copy of the row lacks it (the row was not copied yet, or what was kept is lost), the row's
new version is held back, and the row is read again by key. No reader of the topic ever
meets a row with a value left out.

What is held is durable: a record in `__tailrace_sources` for each key, written in the log
transaction of the source transaction that made the row incomplete, and deleted in the one
that brings the whole row or its delete. Cuts name the table as being copied meanwhile, so
views stay at an earlier cut.

The rule of completion. A row is held from one change on, its *origin*. Later changes of the
same row either bring a value, which is then known, or leave it unchanged. So a value that
is still missing has been the same since the origin, and every snapshot that sees the
origin's transaction, and is not newer than the stream, shows it. Values that are known are
never taken from the snapshot. A held row without origin (of an earlier run, or of another
shape) knows nothing: its snapshot must see every transaction older than the `gate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from tailrace.sources.journal import IncompleteRow, Journal


class Sees(Protocol):
    """A snapshot: `xmin` is the oldest transaction that was running."""

    @property
    def xmin(self) -> int: ...

    def sees(self, xid: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class HeldRow:
    """The newest version of a row as far as it is known; `version` is that of its schema."""

    record: IncompleteRow
    origin: int | None = None
    values: Mapping[str, bytes] = field(default_factory=dict)
    version: int | None = None

    @property
    def op(self) -> str:
        return self.record.op


class IncompleteRows:
    """What a source holds back, by table and record key.

    Changes are visible at once; `flush` adds them to the journal, together with the rows of
    their transaction.
    """

    def __init__(self, journal: Journal, newest_transaction: Callable[[], int]) -> None:
        self._journal = journal
        self._newest_transaction = newest_transaction
        self._tables: dict[str, dict[bytes, HeldRow]] = {}
        self._pending: dict[tuple[str, bytes], IncompleteRow | None] = {}
        self._gate = 0

    def restore(self) -> None:
        """Take over what the log says an earlier run held back."""
        for table, rows in self._journal.incomplete.items():
            self._tables[table] = {key: HeldRow(record) for key, record in rows.items()}
        if self._tables:
            self._gate = self._newest_transaction()

    def __bool__(self) -> bool:
        return bool(self._tables)

    def __contains__(self, table: str) -> bool:
        return table in self._tables

    def keys(self, table: str) -> Mapping[bytes, HeldRow]:
        """The held rows of a table, oldest first."""
        return self._tables.get(table, {})

    def get(self, table: str, key: bytes) -> HeldRow | None:
        rows = self._tables.get(table)
        return None if rows is None else rows.get(key)

    def hold(
        self, table: str, key: bytes, record: IncompleteRow, xid: int,
        values: Mapping[str, bytes], version: int,
    ) -> None:  # fmt: skip
        """Hold a row back, or its next version. A row that came to its key by an insert or a
        change of key ("c") has nothing to do with one that was held there before."""
        rows = self._tables.setdefault(table, {})
        held = rows.get(key)
        if held is None or record.op == "c":
            rows.pop(key, None)
            rows[key] = HeldRow(record, xid, values, version)
            self._pending[table, key] = record
        else:
            if held.version not in (None, version):
                held = self._blank(held)
            rows[key] = replace(held, values=values, version=version)

    def hold_unread(self, table: str, key: bytes, record: IncompleteRow) -> None:
        """Hold a row of which nothing is known but its key."""
        self._tables.setdefault(table, {})[key] = self._blank(HeldRow(record))
        self._pending[table, key] = record

    def _blank(self, held: HeldRow) -> HeldRow:
        """Without what is known of columns that may have other names now."""
        self._gate = self._newest_transaction()
        return HeldRow(held.record)

    def known(self, held: HeldRow, version: int) -> Mapping[str, bytes]:
        """The known values of a held row, in the shape of this version."""
        return held.values if held.version == version else {}

    def completed(
        self, table: str, key: bytes, read: Mapping[str, bytes], snapshot: Sees, version: int
    ) -> dict[str, bytes] | None:
        """The whole row, its missing values as a snapshot has them; None while that cannot
        be told. The stream must have passed everything that the snapshot sees."""
        held = self._tables[table][key]
        if held.version not in (None, version):
            self._tables[table][key] = self._blank(held)
            return None
        if not self.seen(held, snapshot):
            return None
        return {name: held.values.get(name, value) for name, value in read.items()}

    def seen(self, held: HeldRow, snapshot: Sees) -> bool:
        """Whether a snapshot shows the row as it was at its origin or later."""
        if held.origin is None:
            return snapshot.xmin >= self._gate
        return snapshot.sees(held.origin)

    def resolve(self, table: str, key: bytes) -> None:
        """The whole row, or its delete, is being written."""
        rows = self._tables.get(table)
        if rows is not None and rows.pop(key, None) is not None:
            self._pending[table, key] = None
            if not rows:
                del self._tables[table]

    def forget(self, table: str) -> None:
        """Nothing of this table is held any more: it was emptied, or is another one."""
        for key in self._tables.pop(table, {}):
            self._pending[table, key] = None

    def flush(self) -> None:
        """Add what changed to the journal's open log transaction."""
        for (table, key), record in self._pending.items():
            self._journal.record_incomplete(table, key, record)
        self._pending.clear()

    @property
    def waits_for_older(self) -> bool:
        """Whether a held row needs a snapshot that no older transaction is open in."""
        return any(h.origin is None for rows in self._tables.values() for h in rows.values())
