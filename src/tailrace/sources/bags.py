"""Tables without a key: their topic alone says which rows there are, and how often.

Their rows have no record key and all stand in partition 0. Nothing that is committed overlaps:
the first copy is one log transaction, and what changed before it is in it, so it is not
written beside it. Every later copy (asked for, another shape or key, a lost slot, a log of
an earlier version) stands behind a `t` event in the same log transaction: it empties what
came before. A key that is dropped deletes the rows under their keys first; a key that is
added begins with a `t`.

`bag` in the copy's state is the schema version the rows were copied in: rows without a key
are told apart by all their columns, so another version needs another copy. Logs of earlier
versions have no such word; they may hold rows twice, and their tables are copied once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.records.envelope import TransactionFrame
from tailrace.sources.journal import Journal

# The states of a copy that is still to be made.
ACTIVE = ("copying", "again")
PIECE = 10_000


def is_waiting(state: Mapping[str, Any], *, keyed: bool) -> bool:
    """Whether a table's copy must begin with what `emptied` gives."""
    if keyed:
        return bool(state.get("bag"))
    return state.get("state") in ACTIVE


def is_outdated(state: Mapping[str, Any], version: int | None) -> bool:
    """Whether the copied rows of a table without a key are not those of this version."""
    return state.get("state") == "done" and state.get("bag") != version


def emptied(
    journal: Journal, topic: str, state: Mapping[str, Any], frame: TransactionFrame, lsn: int,
    order: int,
) -> int:  # fmt: skip
    """Say in a table's topic that all rows before are gone; the ordinal reached.

    Reads the topic where rows may have had keys, so what was added before must be committed.
    """
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    if journal.is_empty(topic):
        return order
    if not state.get("bag"):
        for key in journal.live_keys(topic):
            order += 1
            keys += [key, key]
            values += [frame.event("d", key, b"null", lsn, order, order), None]
            if len(values) >= PIECE:
                journal.add(topic, keys, values)
                journal.spill()
                keys, values = [], []
    order += 1
    keys.append(None)
    values.append(frame.event("t", b"null", b"null", lsn, order, order))
    journal.add(topic, keys, values)
    return order


def truncate_note(transaction: str, table: str, topic: str, now_ms: int) -> dict[str, object]:
    """The same in `<source>.transactions`."""
    return {
        "status": "TRUNCATE",
        "op": "t",
        "id": transaction,
        "table": table,
        "topic": topic,
        "reason": "the table is copied again",
        "ts_ms": now_ms,
    }
