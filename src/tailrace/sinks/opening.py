"""Sealed values at the edge: the columns that `open=` names are delivered as plain text.

Batches stay sealed until the target gets them, so dead letters and whatever else is written to
the log hold sealed values only. A value of an erased subject is NULL, in what is delivered from
then on and in the rows that the target has: those are found by the subject's tag in the topic the
copy is made from, and their newest row is written again (`suspects`). Which erasures that was done
for is kept in a file beside the copy's other files; without it the rows are written once more,
which changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

import orjson
import pyarrow as pa

from tailrace.client.ranges import Range, RangeReader
from tailrace.files import FILES
from tailrace.records.rows import normal_key
from tailrace.sinks.base import Batch, SinkPosition, decode_position
from tailrace.sinks.errors import RowsRefusedError, ShapeError

SEALED = "tr1."
_TAG = re.compile(rb"tr1\.([0-9a-f]{16})\.")


class Opener(Protocol):
    """Opens sealed values with the project's key. Made closed; used by one thread."""

    def open(self, text: str) -> str | None:
        """The plain text of a sealed value, None if its subject was erased; any other text as it
        is. Raises RowsRefusedError for a sealed value that cannot be opened."""

    def erased(self) -> frozenset[str]:
        """The tags of all erased subjects, at most a second old."""

    def close(self) -> None: ...


def opened(table: pa.Table, columns: Collection[str], opener: Opener | None) -> pa.Table:
    """A table with the plain values of these columns."""
    for name in columns if opener is not None else ():
        place = table.schema.get_field_index(name)
        if place < 0:
            continue  # a stream whose rows had no such column yet
        kind = table.schema.field(place).type
        if not pa.types.is_string(kind):
            raise ShapeError(
                f"column {name!r} cannot be opened: it is no text",
                detail=f"open= names it, and it is {kind}",
                hint="open= takes columns that hold a sealed field as it is",
            )
        assert opener is not None
        values = [
            opener.open(value) if value is not None and value.startswith(SEALED) else value
            for value in table.column(place).to_pylist()
        ]
        table = table.set_column(place, table.schema.field(place), pa.array(values, kind))
    return table


def opened_batch(batch: Batch, columns: Collection[str], opener: Opener | None) -> Batch:
    """A batch as the target gets it. Raises RowsRefusedError."""
    if opener is None or not columns:
        return batch
    if keys := sorted({*columns} & {*batch.shape.key}):
        raise ShapeError(
            f"open= names the key column {keys[0]!r}",
            detail="rows are found by their key, and a key cannot become NULL",
            hint="open columns beside the key",
        )
    changes = opened(batch.changes, columns, opener)
    return Batch(batch.shape, changes, batch.position, batch.forced)


class Lenient:
    """Opens what can be opened; the rest is NULL. For rows that are written again."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self.erased = opener.erased
        self.close = opener.close

    def open(self, text: str) -> str | None:
        try:
            return self._opener.open(text)
        except RowsRefusedError:
            return None


def suspects(
    reader: RangeReader, position: SinkPosition, tags: Collection[str]
) -> dict[bytes, bytes | None]:
    """Keys that at some time held a value of these subjects, as far as the log remembers, with
    the newest record of each up to a position."""
    wanted = {tag.encode() for tag in tags}
    bounds = reader.bounds(position.topic)
    ranges = [
        Range(position.topic, partition, bounds[partition][0], end)
        for partition, end in position.offsets.items()
        if partition in bounds and end > bounds[partition][0]
    ]
    newest: dict[bytes, bytes | None] = {}
    for chunk in reader.read(ranges) if wanted else ():
        end = position.offsets[chunk.partition]
        for offset, key, value in zip(chunk.offsets, chunk.keys, chunk.values, strict=True):
            if offset >= end:
                break
            try:
                name = normal_key(key)
            except ValueError:
                continue  # no row: it is among the dead letters
            if name in newest or (value and not wanted.isdisjoint(_TAG.findall(value))):
                newest[name] = value
    return newest


class WrittenAgain:
    """For which erased subjects the rows of a copy were written again: a file, with the position
    the copy had. A copy that is behind it was restored or replaced, so the file is void."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._tags: frozenset[str] = frozenset()
        self._at: SinkPosition | None = None
        known = FILES.read_whole(path) if path is not None else None
        if known is not None:
            self._tags, self._at = _decode(known)

    def look(self, found: SinkPosition | None) -> None:
        """Take the position with which the copy was found."""
        at = self._at
        if at is not None and (
            found is None or at.lineage != found.lineage or _behind(found.offsets, at.offsets)
        ):
            self.forget()

    def missing(self, erased: frozenset[str]) -> frozenset[str]:
        """The subjects whose rows are still to be written."""
        return erased - self._tags

    def note(self, erased: frozenset[str], here: SinkPosition) -> None:
        """The rows of all of these are written; durable on return."""
        self._tags, self._at = erased, here
        if self._path is not None:
            FILES.make_directories(self._path.parent)
            document = {"tags": sorted(erased), "position": here.encode()}
            FILES.write_whole(self._path, orjson.dumps(document))

    def forget(self) -> None:
        """Another copy is in use now."""
        self._tags, self._at = frozenset(), None
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def was_written_again(path: Path, tag: str) -> bool:
    """Whether a copy's rows of this subject were written again since it was erased."""
    known = FILES.read_whole(path)
    return known is not None and tag in _decode(known)[0]


def again_file(state: Path, name: str) -> Path:
    """Where a copy keeps for which erased subjects its rows were written again."""
    return state / "sinks" / f"{name}.erased"


def _behind(here: Mapping[int, int], at: Mapping[int, int]) -> bool:
    return any(here.get(partition, 0) < offset for partition, offset in at.items())


def _decode(known: bytes) -> tuple[frozenset[str], SinkPosition | None]:
    try:
        document = orjson.loads(known)
        return frozenset(document["tags"]), decode_position(document["position"])
    except (ValueError, KeyError, TypeError):
        return frozenset(), None  # what is damaged is as good as none
