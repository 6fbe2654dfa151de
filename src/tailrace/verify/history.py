"""What every client saw, as columns in a folder; the only thing a verdict is made from.

    history.json         settings, producers, consumers, leaders, faults (see `About`)
    sends.arrow          a row per record that was sent
    transactions.arrow   a row per transaction
    log.arrow            the final committed read, in order, partition by partition
    polls.arrow          a row per record that a consumer was given, in that consumer's order
    replicas.arrow       what in-sync replicas said of their own ends after an acknowledgement

All numbers are small and dense. A *producer* is one session of a client: after an outcome that
stays unknown a client goes on under a new number, so that a late copy of the old request breaks
no order. A *consumer* is one client between two rebalances. Times are nanoseconds of one clock.
A record carries its run, producer and sequence (`encode_payload`), so that a reader knows it again.

The files are Arrow IPC files without compression: they are mapped into memory, not read.
"""

from __future__ import annotations

import struct
import threading
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from tailrace.files import FILES
from tailrace.verify.errors import HistoryError

Column = NDArray[Any]
Columns = dict[str, Column]
FORMAT = 1

_TYPES: dict[str, str] = {"i": "int32", "q": "int64", "B": "uint8"}
TABLES: dict[str, dict[str, str]] = {
    "sends": {
        "producer": "i",
        "sequence": "q",
        "partition": "i",
        "offset": "q",
        "status": "B",
        "transaction": "q",
        "sent_at": "q",
        "answered_at": "q",
    },
    "transactions": {"transaction": "q", "asked_at": "q", "answered_at": "q"},
    "log": {"partition": "i", "offset": "q", "producer": "i", "sequence": "q"},
    "polls": {
        "consumer": "i",
        "partition": "i",
        "offset": "q",
        "producer": "i",
        "sequence": "q",
        "polled_at": "q",
    },
    "replicas": {"partition": "i", "offset": "q", "replica": "i", "end": "q", "asked_at": "q"},
}
OPTIONAL = ("transactions", "replicas")


class Status(IntEnum):
    """What became of a record, as its producer knows it."""

    ACKNOWLEDGED = 0  # in a transaction: its commit was
    FAILED = 1  # refused, so it may not be there
    UNKNOWN = 2
    ABORTED = 3  # the commit was never asked for


@dataclass(frozen=True, slots=True)
class ProducerAbout:
    """A session of a producer; `kind` is plain, idempotent or transactional."""

    id: int
    client: str
    kind: str


@dataclass(frozen=True, slots=True)
class ConsumerAbout:
    """A client between two rebalances. `starts` are the partitions it began at their very start,
    `ends` those that it read to their end."""

    id: int
    client: str
    group: str | None = None
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaderAbout:
    """From `at` on a partition was led by `leader` (−1: by none), with these replicas in sync."""

    partition: int
    at: int
    leader: int
    epoch: int
    in_sync: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultAbout:
    """A fault: from `at` until `until` the node was gone, paused, or its connections cut."""

    kind: str
    node: str
    at: int
    until: int


@dataclass(frozen=True, slots=True)
class About:
    """`history.json`. `groups` were read to their end by their members together."""

    run: str = ""
    began_at: int = 0
    ended_at: int = 0
    began: str = ""
    log: str = ""
    topic: str = ""
    partitions: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    producers: tuple[ProducerAbout, ...] = ()
    consumers: tuple[ConsumerAbout, ...] = ()
    groups: tuple[str, ...] = ()
    leaders: tuple[LeaderAbout, ...] = ()
    faults: tuple[FaultAbout, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A history in memory; `tables` has every table, empty where its file is not there."""

    about: About
    tables: Mapping[str, Columns]

    def __getitem__(self, table: str) -> Columns:
        return self.tables[table]


class Rows:
    """Rows being recorded; safe from several threads."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._columns = {name: array(kind) for name, kind in TABLES[table].items()}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def extend(self, **columns: Sequence[int] | array[int]) -> None:
        """Add rows; every column, all of one length."""
        with self._lock:
            for name, own in self._columns.items():
                own.extend(columns[name])

    def columns(self) -> Columns:
        with self._lock:
            return {
                name: np.frombuffer(own.tobytes(), _TYPES[own.typecode])
                for name, own in self._columns.items()
            }


def empty(table: str) -> Columns:
    """A table without rows."""
    return {name: np.zeros(0, _TYPES[kind]) for name, kind in TABLES[table].items()}


def make_history(about: About, **rows: Mapping[str, Sequence[int]] | Columns) -> History:
    """A history from columns by table; for tests and tools. Raises HistoryError."""
    tables: dict[str, Columns] = {}
    for table, types in TABLES.items():
        given = rows.get(table)
        tables[table] = (
            empty(table)
            if given is None
            else {name: np.asarray(given[name], _TYPES[kind]) for name, kind in types.items()}
        )
    history = History(about, tables)
    _validate(history)
    return history


def write_history(folder: str | Path, history: History) -> None:
    """Write all files; `history.json` last, so that a folder that has it is whole."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for table, columns in history.tables.items():
        batch = pa.record_batch({name: pa.array(column) for name, column in columns.items()})
        place = str(folder / f"{table}.arrow")
        with pa.OSFile(place, "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
    document = {"format": FORMAT, **asdict(history.about)}
    FILES.write_whole(folder / "history.json", orjson.dumps(document, option=orjson.OPT_INDENT_2))


def history_folder(folder: str | Path) -> Path:
    """Where the files are: `folder` itself, or its folder `history`. Raises HistoryError."""
    for place in (Path(folder), Path(folder) / "history"):
        if (place / "history.json").is_file():
            return place
    raise HistoryError(
        f"{folder} holds no history",
        hint="give a folder that `tailrace verify` wrote; `tailrace verify list` shows them",
    )


def read_about(folder: str | Path) -> About:
    """`history.json` alone."""
    place = history_folder(folder) / "history.json"
    try:
        document = orjson.loads(place.read_bytes())
        if document.pop("format", None) != FORMAT:
            raise HistoryError(f"{place} is of another format", detail=f"this reads {FORMAT}")
        return About(
            **{
                **{each.name: document[each.name] for each in fields(About)},
                "producers": tuple(ProducerAbout(**each) for each in document["producers"]),
                "consumers": tuple(_consumer(each) for each in document["consumers"]),
                "groups": tuple(document["groups"]),
                "leaders": tuple(
                    LeaderAbout(**{**each, "in_sync": tuple(each["in_sync"])})
                    for each in document["leaders"]
                ),
                "faults": tuple(FaultAbout(**each) for each in document["faults"]),
            }
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HistoryError(f"{place} cannot be read", detail=repr(error)[:300]) from error


def read_history(folder: str | Path) -> History:
    """The history in a folder. Raises HistoryError."""
    place = history_folder(folder)
    about = read_about(place)
    tables = {table: _read_table(place / f"{table}.arrow", table) for table in TABLES}
    history = History(about, tables)
    _validate(history)
    return history


def _consumer(document: Mapping[str, Any]) -> ConsumerAbout:
    return ConsumerAbout(
        **{
            **document,
            "starts": tuple(document.get("starts", ())),
            "ends": tuple(document.get("ends", ())),
        }
    )


def _read_table(path: Path, table: str) -> Columns:
    if not path.exists() and table in OPTIONAL:
        return empty(table)
    try:
        with pa.memory_map(str(path)) as source:
            found = pa.ipc.open_file(source).read_all()
        columns: Columns = {}
        for name, kind in TABLES[table].items():
            column = found.column(name)
            if column.null_count:
                raise HistoryError(f"{path} has rows without {name}")
            whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            numbers = whole.to_numpy(zero_copy_only=False)
            if not np.issubdtype(numbers.dtype, np.integer):
                raise HistoryError(f"{path} has no whole numbers in {name}")
            as_kept = numbers.astype(_TYPES[kind], copy=False)
            if as_kept.dtype != numbers.dtype and not np.array_equal(as_kept, numbers):
                raise HistoryError(f"{path} has numbers that are too large in {name}")
            columns[name] = as_kept
        return columns
    except (OSError, pa.ArrowException, KeyError) as error:
        raise HistoryError(f"{path} cannot be read", detail=str(error)[:300]) from error


def _validate(history: History) -> None:
    for table, columns in history.tables.items():
        if len({len(column) for column in columns.values()}) > 1:
            raise HistoryError(f"the columns of {table} differ in length")
    sends = history["sends"]
    for name in ("producer", "sequence", "partition"):
        if len(sends[name]) and int(sends[name].min()) < 0:
            raise HistoryError(f"sends has a negative {name}")
    if len(sends["status"]) and int(sends["status"].max()) > max(Status):
        raise HistoryError("sends has a status that does not exist")
    if len(polls := history["polls"]["consumer"]) and int(polls.min()) < 0:
        raise HistoryError("polls has a negative consumer")


# Payloads --------------------------------------------------------------------

_PAYLOAD = struct.Struct(">8siqI")  # run, producer, sequence, checksum of what is before it
PAYLOAD_BYTES = _PAYLOAD.size
_BODY = struct.Struct(">8siq")


def encode_payloads(run: bytes, producer: int, first: int, count: int, size: int) -> list[bytes]:
    """The values of `count` records from sequence `first` on, each of `size` bytes."""
    filler = b"\x00" * (size - PAYLOAD_BYTES)
    pack, body, checksum = _PAYLOAD.pack, _BODY.pack, zlib.crc32
    return [
        pack(run, producer, sequence, checksum(body(run, producer, sequence))) + filler
        for sequence in range(first, first + count)
    ]


def decode_payload(run: bytes, value: bytes | None) -> tuple[int, int]:
    """Producer and sequence; (−1, −1) for what no producer of this run wrote."""
    if value is None or len(value) < PAYLOAD_BYTES:
        return -1, -1
    whose, producer, sequence, checksum = _PAYLOAD.unpack_from(value)
    if whose != run or zlib.crc32(memoryview(value)[: _BODY.size]) != checksum:
        return -1, -1
    return producer, sequence


def decode_payloads(run: bytes, values: Sequence[bytes | None]) -> Iterator[tuple[int, int]]:
    """`decode_payload` of each."""
    for value in values:
        yield decode_payload(run, value)
