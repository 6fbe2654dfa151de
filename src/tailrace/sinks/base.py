"""The contract between delivery and a target.

Delivery reads the log and hands over `Batch`es: an Arrow table of changes and the
position that the copy has once they are applied. A sink stores both **together**, so
that after any crash `position()` says exactly what is in the copy, or, where the target
has no transactions, applies every row under a condition on its version, so that applying
it again changes nothing.

`open` takes the copy over: it raises the copy's writer epoch, and an `apply` of a writer
with an older epoch raises `SinkFencedError` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, runtime_checkable

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.records.partitioner import partition_for
from tailrace.records.rows import arrow_schema
from tailrace.records.tick import ViewInfo

DELETED = "__deleted"
PARTITION = "__partition"
OFFSET = "__offset"
VERSION = "__version"
AT = "__at"
OWN_COLUMNS = (DELETED, PARTITION, OFFSET, VERSION, AT)
OFFSET_BITS = 44


@dataclass(frozen=True, slots=True)
class Shape:
    """Columns (name, type in Spark's words) and key of the rows.

    Without a key, rows are appended, unless `one_row` says that there is at most one row, as
    in a view that aggregates everything: the next row then takes its place.
    """

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()
    one_row: bool = False

    @property
    def keyed(self) -> bool:
        """Whether a row can replace another; False: rows are only appended."""
        return bool(self.key) or self.one_row

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns)


@dataclass(frozen=True, slots=True)
class SinkPosition:
    """How much of the log is in the copy.

    `offsets` is the next offset per partition of `topic`; `tick` the last tick that is
    in it as a whole (0 for streams). A copy between two ticks has offsets past `tick`.
    `at_ms` is when the newest of it was committed to the log. `one_row`: the copy was kept as
    one of at most one row; older copies of such views have every value their row ever had,
    and their positions lack it.
    """

    topic: str
    generation: int = 1
    tick: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)
    at_ms: int = 0
    one_row: bool = False

    @property
    def lineage(self) -> tuple[str, int, bool]:
        """What positions must agree in for one copy to be continued from the other."""
        return self.topic, self.generation, self.one_row

    def encode(self) -> str:
        document: dict[str, object] = {
            "topic": self.topic,
            "generation": self.generation,
            "tick": self.tick,
            "offsets": {str(p): n for p, n in sorted(self.offsets.items())},
            "at_ms": self.at_ms,
        }
        if self.one_row:
            document["one_row"] = True
        return orjson.dumps(document).decode()


def decode_position(text: str | bytes | None) -> SinkPosition | None:
    """Read what `SinkPosition.encode` wrote; None stays None."""
    if not text:
        return None
    document = orjson.loads(text)
    return SinkPosition(
        topic=document["topic"],
        generation=document["generation"],
        tick=document["tick"],
        offsets={int(p): n for p, n in document["offsets"].items()},
        at_ms=document.get("at_ms", 0),
        one_row=document.get("one_row", False),
    )


def view_shape(view: ViewInfo) -> Shape:
    """The shape of a view's rows: one without key columns has at most one row."""
    return Shape(view.columns, view.key, one_row=not view.key)


def version_of(generation: int, offset: int) -> int:
    """A row's version: grows with every change of its key, in 63 bits.

    A key stays in its partition within a generation, so offsets order its changes.
    """
    return generation << OFFSET_BITS | offset


def forced_versions(position: SinkPosition, keys: Iterable[bytes]) -> list[int]:
    """Versions for rows written by force at `position`: newer than what the log has up to
    there, older than any change that follows it in the partition of the key."""
    partitions = len(position.offsets)
    return [
        version_of(
            position.generation,
            max(0, position.offsets.get(partition_for(key, partitions), 0) - 1),
        )
        if partitions
        else 0
        for key in keys
    ]


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes in the order of the log, and the position after them.

    `changes` has the shape's columns and `__deleted` (bool; then only key columns are
    set), `__partition`, `__offset`, `__version` and `__at` (when the record was written, in
    milliseconds). For sinks that want "latest", every key
    is in it once. `forced`: a repair, to be written whatever version the target has.
    """

    shape: Shape
    changes: pa.Table
    position: SinkPosition
    forced: bool = False

    @property
    def upserts(self) -> pa.Table:
        """The rows to be written, without our own columns."""
        if not self.has_deletes:
            return self.changes.select(list(self.shape.names))
        return self.changes.filter(pc.invert(self.changes[DELETED])).select(list(self.shape.names))

    @property
    def deletes(self) -> pa.Table:
        """The keys to be removed."""
        return self.changes.filter(self.changes[DELETED]).select(list(self.shape.key))

    @property
    def has_deletes(self) -> bool:
        return bool(pc.any(self.changes[DELETED]).as_py())

    def head(self, count: int, previous: SinkPosition | None) -> Batch:
        """The first `count` changes, with the position after them and not further."""
        part = self.changes.slice(0, count)
        offsets = dict(previous.offsets) if previous is not None else {}
        offsets.update(_following(part))
        tick = previous.tick if previous is not None else 0
        position = replace(self.position, tick=tick, offsets=offsets)
        return Batch(self.shape, part, position)

    def tail(self, count: int) -> Batch:
        """Everything after the first `count` changes; the position is the whole batch's."""
        return Batch(self.shape, self.changes.slice(count), self.position)


def _following(changes: pa.Table) -> dict[int, int]:
    last = changes.group_by(PARTITION).aggregate([(OFFSET, "max")])
    return {
        partition: offset + 1
        for partition, offset in zip(
            last[PARTITION].to_pylist(), last[f"{OFFSET}_max"].to_pylist(), strict=True
        )
    }


class Sink(Protocol):
    """One copy. Made closed; used by one thread."""

    wants: ClassVar[Literal["latest", "every"]]

    def open(self, shape: Shape) -> None:
        """Connect, prepare the target for rows of this shape, and take it over.

        Called again after a failure, and with another shape when the view changed.
        """

    def position(self) -> SinkPosition | None:
        """What is in the copy; None when it is new."""

    def apply(self, batch: Batch) -> None:
        """Put the changes and the position in; both or nothing."""

    def close(self) -> None:
        """Let go of the target; safe to call at any time, and twice."""


@runtime_checkable
class Resting(Protocol):
    """A sink that holds something others wait for while it works."""

    def rest(self) -> None:
        """Called when there is nothing more to apply for now."""


@runtime_checkable
class Scrubbing(Protocol):
    """A sink whose target has files that keep what rows held before they were written again."""

    def scrub(self) -> None:
        """Leave nothing of it in them. Raises what `apply` does."""


@runtime_checkable
class Readable(Protocol):
    """A sink whose copy can be compared with the log. With an attribute `repeats = True`
    a scan may give the same row more than once."""

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        """All rows of the copy, in any order, with the shape's columns and types."""


@runtime_checkable
class Partial(Protocol):
    """A readable sink whose copy does not have all columns."""

    def seen(self, shape: Shape) -> Shape:
        """The part of the shape that `scan` gives; the other columns are NULL there."""


@runtime_checkable
class Replaceable(Protocol):
    """A sink that can be filled anew beside the copy in use."""

    wants: ClassVar[Literal["latest", "every"]]

    def open(self, shape: Shape) -> None: ...

    def position(self) -> SinkPosition | None: ...

    def apply(self, batch: Batch) -> None: ...

    def close(self) -> None: ...

    def beside(self) -> Sink:
        """A sink of the same kind that writes to a place beside this one's."""

    def discard(self) -> None:
        """Remove the copy beside, if there is one."""

    def switch(self) -> None:
        """Put the copy beside in place of this one, position included, at once; the one
        in use is kept for `rollback`."""

    def previous(self) -> SinkPosition | None:
        """The position of the copy that the last switch replaced; None: there is none."""

    def rollback(self) -> None:
        """Undo the last switch; what is in use becomes the copy beside."""
