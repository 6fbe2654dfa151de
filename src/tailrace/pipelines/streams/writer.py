"""Writing a stream's rows into its topic exactly once.

Every write task of a micro-batch is a slot with a transactional id of its own,
`tailrace.<stream>.<slot>`. A task takes the id first, which fences and ends an earlier
attempt at it, and only then reads the slot's marker in `__tailrace_markers` (key
`<stream>/<slot>`: query, batch, fingerprint). A marker of this batch or a later one means
the rows are in the log already: nothing is written. Else the rows, the marker last, commit.
A batch that failed half way is repeated by Spark with the same id and the same ranges;
slots that had committed find their markers.

Spark's Python sinks know no update mode, so a micro-batch is written by a batch function
(`BatchWriter`) and not by a data source.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import orjson
import pyarrow as pa
from pyspark import TaskContext

from tailrace.client.errors import ProducerFencedError
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.errors import StreamChangedError, told
from tailrace.pipelines.reading.reader import kept_reader, read_all
from tailrace.records.columns import by_partition, bytes_array
from tailrace.records.decode import Headers
from tailrace.records.json_bytes import json_bytes
from tailrace.records.rows import python_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKERS_TOPIC = "__tailrace_markers"
MARKERS_CONFIG = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class Marker:
    """What a slot has last written."""

    query: str
    batch: int
    fingerprint: str

    def encode(self) -> bytes:
        return orjson.dumps(
            {"query": self.query, "batch": self.batch, "fingerprint": self.fingerprint}
        )


class BatchWriter:
    """Writes the micro-batches of one streaming query; given to Spark as its batch function.

    `query` is Spark's id of the query, which lives in its checkpoint. It is known only
    once the query has started, so the first batch waits for it.
    """

    def __init__(
        self,
        bootstrap: str,
        stream: str,
        key: Sequence[str],
        topic: str | None = None,
        form: str = "json",
        clock: Clock = SYSTEM,
    ) -> None:
        self._options = {"bootstrap": bootstrap, "stream": stream, "topic": topic or stream}
        self._key = list(key)
        self._form = form
        self._query = ""
        self._known = threading.Event()
        self._clock = clock
        self.rows = 0
        self.failure: BaseException | None = None
        self.busy_since: float | None = None

    def begin(self, query: str) -> None:
        """Tell the id of the query that has started."""
        self._query = query
        self._known.set()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self._known.wait()
        options, key, query, form = self._options, self._key, self._query, self._form

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            pieces = [encode(rows, key, form) for rows in batches if rows.num_rows]
            count = sum(len(piece) for piece in pieces)
            if count:
                context = TaskContext.get()
                assert context is not None
                marker = Marker(query, batch, fingerprint(pieces))
                write_slot(options, context.partitionId(), marker, pieces)
            yield pa.record_batch([pa.array([count], pa.int64())], names=["rows"])

        self.busy_since = self._clock.monotonic()
        try:
            self.rows += sum(frame.mapInArrow(task, "rows BIGINT").toArrow()["rows"].to_pylist())
        except Exception as problem:
            self.failure = problem  # Spark passes on only its text, in a larger one
            raise
        finally:
            self.busy_since = None


def write_slot(
    options: Mapping[str, str],
    slot: int,
    marker: Marker,
    pieces: Sequence[Outgoing],
    *,
    patience: float = 60.0,
    clock: Clock = SYSTEM,
) -> bool:
    """Write one slot's rows of one batch; False if another attempt has written them.

    Of two attempts at once (speculation, a task believed dead) the later one takes the slot
    over. The earlier is fenced and waits until the other's rows are there: it is no failure.
    """
    try:
        return _write_slot(options, slot, marker, pieces)
    except ProducerFencedError:
        until = clock.monotonic() + patience
        while clock.monotonic() < until:
            last = read_marker(options["bootstrap"], options["stream"], slot)
            if last is not None and last.query == marker.query and last.batch >= marker.batch:
                return False
            clock.sleep(0.1)
        raise


def _write_slot(
    options: Mapping[str, str], slot: int, marker: Marker, pieces: Sequence[Outgoing]
) -> bool:
    bootstrap, stream = options["bootstrap"], options["stream"]
    with TransactionalWriter(bootstrap, f"tailrace.{stream}.{slot}") as writer:
        writer.init()
        last = read_marker(bootstrap, stream, slot)
        if last is not None and last.query != marker.query:
            raise told(
                StreamChangedError(
                    f'the output of stream "{stream}" belongs to another checkpoint',
                    detail=f"slot {slot} was last written by query {last.query}, now {marker.query}",
                    hint="put the checkpoint back, or `tailrace pipeline reset` to begin anew",
                )
            )
        if last is not None and last.batch >= marker.batch:
            if last.batch == marker.batch and last.fingerprint != marker.fingerprint:
                raise told(
                    StreamChangedError(
                        f'batch {marker.batch} of stream "{stream}" gave other rows when repeated',
                        detail=f"slot {slot} has committed {last.fingerprint}, now {marker.fingerprint}",
                        hint="make the function deterministic, or `tailrace pipeline reset NAME`",
                    )
                )
            return False
        for piece in pieces:
            _send(writer, options["topic"], piece)
        writer.flush()
        writer.send(MARKERS_TOPIC, 0, f"{stream}/{slot}".encode(), marker.encode())
        writer.commit()
    return True


def read_marker(bootstrap: str, stream: str, slot: int | str) -> Marker | None:
    """The last committed marker of a slot."""
    value = kept_reader(bootstrap).last_value(MARKERS_TOPIC, 0, f"{stream}/{slot}".encode())
    return None if value is None else Marker(**orjson.loads(value))


def marker_name(stream: str, topic: str) -> str:
    """Under which name a stream's output into a topic keeps its markers."""
    return stream if topic == stream else f"{stream}:{topic}"


def read_markers(bootstrap: str, name: str) -> list[bytes]:
    """The keys of all markers of an output that are there."""
    prefix = f"{name}/".encode()
    found: dict[bytes, bool] = {}
    for records in read_all(kept_reader(bootstrap), MARKERS_TOPIC):
        for key, value in zip(records.keys, records.values, strict=True):
            if key is not None and key.startswith(prefix):
                found[key] = value is not None
    return sorted(key for key, alive in found.items() if alive)


def forget_markers(bootstrap: str, stream: str) -> None:
    """Delete the markers of all outputs of a stream, so that another checkpoint may write."""
    reader = kept_reader(bootstrap)
    prefixes = (f"{stream}/".encode(), f"{stream}:".encode())
    keys = {
        key
        for records in read_all(reader, MARKERS_TOPIC)
        for key in records.keys
        if key is not None and key.startswith(prefixes)
    }
    with TransactionalWriter(bootstrap, f"tailrace.{stream}.reset") as writer:
        writer.init()
        for key in sorted(keys):
            writer.send(MARKERS_TOPIC, 0, key, None)
        writer.commit()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Records to be written, as Arrow columns of bytes; `keys` None if none has a key."""

    keys: pa.Array | None
    values: pa.Array
    headers: Sequence[Headers] | None = None

    @classmethod
    def of(cls, keys: Sequence[bytes] | None, values: Sequence[bytes]) -> Outgoing:
        """From lists."""
        return cls(None if keys is None else bytes_array(keys), bytes_array(values))

    def __len__(self) -> int:
        return len(self.values)


def _send(writer: TransactionalWriter, topic: str, piece: Outgoing) -> None:
    """Keep a piece for the log: by column, unless its records have headers."""
    if piece.headers is not None:
        keys = None if piece.keys is None else piece.keys.to_pylist()
        writer.send_columns(topic, None, keys, piece.values.to_pylist(), None, piece.headers)
    elif piece.keys is None:
        writer.send_columns(topic, writer.partition_of(topic, None), None, piece.values)
    else:
        count = writer.partitions_of(topic)
        for partition, keys, values in by_partition(piece.keys, piece.values, count):
            writer.send_columns(topic, partition, keys, values)


def encode(rows: pa.RecordBatch, key: Sequence[str], form: str) -> Outgoing:
    """Rows as records. `json`: the value is the JSON of the row, the key that of its key
    columns. `raw`: columns value, and if there are any key and headers."""
    if form == "raw":
        return _raw(rows)
    plain = python_rows(pa.Table.from_batches([rows]))
    keys: list[bytes] | None = None
    if key:
        keys = [json_bytes({name: row[name] for name in key}) for row in plain]
    return Outgoing.of(keys, [json_bytes(row) for row in plain])


def _raw(rows: pa.RecordBatch) -> Outgoing:
    names = rows.schema.names
    headers: list[Headers] | None = None
    if "headers" in names and rows.column("headers").null_count < len(rows):
        headers = [
            tuple((one["key"], one["value"]) for one in each or ())
            for each in rows.column("headers").to_pylist()
        ]
    keys = rows.column("key").cast(pa.binary()) if "key" in names else None
    if keys is not None and keys.null_count == len(keys):
        keys = None
    return Outgoing(keys, rows.column("value").cast(pa.binary()), headers)


def fingerprint(pieces: Sequence[Outgoing]) -> str:
    """A digest of the set of records; their order may differ from run to run."""
    total = count = size = 0
    for piece in pieces:
        count += len(piece)
        values = _present(piece.values)
        size += sum(map(len, values))
        if piece.keys is None:
            total += sum(map(crc32, values))
        else:
            total += sum(map(crc32, values, map(crc32, _present(piece.keys))))
    return f"{count}-{size}-{total:x}"


def _present(column: pa.Array) -> list[bytes]:
    """The values of a column; a null is told from an empty value by what it stands for."""
    found: list[bytes | None] = column.to_pylist()
    return [b"\xff\xffnull" if value is None else value for value in found]
