"""Snapshot then changes, without gap or repeat.

Changes come from the history the follower keeps in the same transactions as the rows.
A subscriber reads at its own pace: one that is slow holds nobody up, and one that falls
behind the kept history gets a new snapshot (an event of kind "snapshot" again).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import orjson

from tailrace.serving.errors import HistoryGoneError
from tailrace.serving.store import history_key

if TYPE_CHECKING:
    from tailrace.serving.reader import Snapshot, Views

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A key and its new row; None when it is gone."""

    key: Any
    row: Row | None


@dataclass(frozen=True, slots=True)
class TickChanges:
    """The changes of one view in one tick. `lines` is their JSON, one change a line."""

    tick: int
    lines: bytes

    @property
    def changes(self) -> list[Change]:
        documents = (orjson.loads(line) for line in self.lines.splitlines())
        return [Change(document["key"], document["row"]) for document in documents]


@dataclass(frozen=True, slots=True)
class Event:
    """What a subscriber gets. `tick` is where to resume after it.

    "snapshot": `rows` are all rows now, and earlier ones are void. "changes": `changes`
    of one tick. "idle": nothing happened for a while.
    """

    kind: Literal["snapshot", "changes", "idle"]
    tick: int
    position: str
    rows: tuple[Row, ...] = ()
    changes: tuple[Change, ...] = ()


def changes_after(snapshot: Snapshot, name: str, after: int) -> Iterator[TickChanges]:
    """All changes of a view in ticks later than `after`, oldest first; while the snapshot
    is open. `HistoryGoneError`, at once, if they are not kept."""
    held = snapshot.view(name)
    known_from = max(snapshot.state.history_from, held.history_from)
    if after < known_from or after > snapshot.tick:
        raise HistoryGoneError(
            f"changes of {name!r} after tick {after} are not kept",
            detail=f"The history has ticks {known_from + 1} to {snapshot.tick}.",
            hint="take a snapshot and go on from its tick",
        )
    wanted = name.encode()
    return (
        TickChanges(int.from_bytes(key[:8], "big"), value)
        for key, value in snapshot.history(history_key(after + 1))
        if key[8:] == wanted
    )


def subscribe(views: Views, name: str, *, after: int | None, idle: float) -> Iterator[Event]:
    """See `Views.subscribe`."""
    tick = after
    while True:
        with views.snapshot() as snapshot:
            position = snapshot.position
            now = snapshot.tick
            seen = snapshot.transaction_id
            held = snapshot.view(name)
            events: list[Event] = []
            if tick is None:
                rows = tuple(orjson.loads(value) for _, value in snapshot.scan(name))
                events = [Event("snapshot", now, position, rows=rows)]
            elif held.changed > tick or tick > now:
                try:
                    events = [
                        Event(
                            "changes",
                            batch.tick,
                            f"tick:{snapshot.state.project}:{batch.tick}",
                            changes=tuple(batch.changes),
                        )
                        for batch in changes_after(snapshot, name, tick)
                    ]
                except HistoryGoneError:
                    tick = None
                    continue
        yield from events
        tick = now
        if not events and not views.wait_for_change(seen, idle):
            yield Event("idle", now, position)
