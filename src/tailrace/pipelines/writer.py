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

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
from pyspark import TaskContext

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.errors import StreamChangedError
from tailrace.pipelines.reader import kept_reader, read_all
from tailrace.records.rows import python_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKERS_TOPIC = "__tailrace_markers"
MARKERS_CONFIG = {"cleanup.policy": "compact"}
_MASK = (1 << 64) - 1


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

    def __init__(self, bootstrap: str, stream: str, key: Sequence[str]) -> None:
        self._options = {"bootstrap": bootstrap, "stream": stream, "topic": stream}
        self._key = list(key)
        self._query = ""
        self._known = threading.Event()
        self.rows = 0
        self.failure: BaseException | None = None

    def begin(self, query: str) -> None:
        """Tell the id of the query that has started."""
        self._query = query
        self._known.set()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self._known.wait()
        options, key, query = self._options, self._key, self._query

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            records: list[tuple[bytes | None, bytes]] = []
            for rows in batches:
                records += encode_rows(rows, key)
            if records:
                context = TaskContext.get()
                assert context is not None
                marker = Marker(query, batch, fingerprint(records))
                write_slot(options, context.partitionId(), marker, records)
            yield pa.record_batch([pa.array([len(records)], pa.int64())], names=["rows"])

        try:
            self.rows += sum(frame.mapInArrow(task, "rows BIGINT").toArrow()["rows"].to_pylist())
        except Exception as problem:
            self.failure = problem  # Spark passes on only its text, in a larger one
            raise


def write_slot(
    options: Mapping[str, str],
    slot: int,
    marker: Marker,
    records: list[tuple[bytes | None, bytes]],
) -> bool:
    """Write one slot's rows of one batch; False if an earlier attempt had written them."""
    bootstrap, stream = options["bootstrap"], options["stream"]
    with TransactionalWriter(bootstrap, f"tailrace.{stream}.{slot}") as writer:
        writer.init()
        last = read_marker(bootstrap, stream, slot)
        if last is not None and last.query != marker.query:
            raise StreamChangedError(
                f'the output of stream "{stream}" belongs to another checkpoint',
                detail=f"slot {slot} was last written by query {last.query}, now {marker.query}",
                hint="put the checkpoint back, or `tailrace pipeline reset` to begin anew",
            )
        if last is not None and last.batch >= marker.batch:
            if last.batch == marker.batch and last.fingerprint != marker.fingerprint:
                raise StreamChangedError(
                    f'batch {marker.batch} of stream "{stream}" gave other rows when repeated',
                    detail=f"slot {slot} has committed {last.fingerprint}, now {marker.fingerprint}",
                    hint="make the function deterministic, or `tailrace pipeline reset NAME`",
                )
            return False
        topic = options["topic"]
        keys = [key for key, _ in records]
        writer.send_columns(topic, None, keys, [value for _, value in records])
        writer.flush()
        writer.send(MARKERS_TOPIC, 0, f"{stream}/{slot}".encode(), marker.encode())
        writer.commit()
    return True


def read_marker(bootstrap: str, stream: str, slot: int) -> Marker | None:
    """The last committed marker of a slot."""
    value = kept_reader(bootstrap).last_value(MARKERS_TOPIC, 0, f"{stream}/{slot}".encode())
    return None if value is None else Marker(**orjson.loads(value))


def forget_markers(bootstrap: str, stream: str) -> None:
    """Delete the markers of all slots of a stream, so that another checkpoint may write."""
    prefix = f"{stream}/".encode()
    keys = {
        key
        for records in read_all(kept_reader(bootstrap), MARKERS_TOPIC)
        for key in records.keys
        if key is not None and key.startswith(prefix)
    }
    with TransactionalWriter(bootstrap, f"tailrace.{stream}.reset") as writer:
        writer.init()
        for key in sorted(keys):
            writer.send(MARKERS_TOPIC, 0, key, None)
        writer.commit()


def encode_rows(rows: pa.RecordBatch, key: list[str]) -> list[tuple[bytes | None, bytes]]:
    """Rows as records: the value is the JSON of the row, the key that of its key columns."""
    plain = python_rows(pa.Table.from_batches([rows]))
    return [
        (orjson.dumps({name: row[name] for name in key}) if key else None, orjson.dumps(row))
        for row in plain
    ]


def fingerprint(records: list[tuple[bytes | None, bytes]]) -> str:
    """A digest of the set of records; their order may differ from run to run."""
    total = 0
    for key, value in records:
        digest = hashlib.blake2b((key or b"") + b"\0" + value, digest_size=8).digest()
        total = (total + int.from_bytes(digest, "big")) & _MASK
    return f"{len(records)}-{total:016x}"
