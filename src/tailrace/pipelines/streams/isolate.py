"""Finding the records a function fails on, so that the others can go on.

The batch that failed is read again and the function run over it as a batch: in pieces,
and a piece that fails in halves, until single records remain. Those are left out from then
on (`held`), each with a letter. A function that fails on any input, on every record of a
batch, or on no single one, is not a matter of records: its error stands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.reading.decode import dead_letter
from tailrace.pipelines.reading.forms import Piece, ddl_of, form_records
from tailrace.pipelines.reading.ranges import kept_ranges
from tailrace.pipelines.streams.checkpoint import HeldFile, Letter, StreamFiles
from tailrace.pipelines.streams.dead_letters import decoded, retry_headers
from tailrace.pipelines.streams.failures import last_words, passes
from tailrace.pipelines.streams.left_out import (
    ATTEMPT,
    Blocker,
    Held,
    Origin,
    dead_record,
    position_of,
    retried,
)
from tailrace.pipelines.streams.queries import Streams
from tailrace.pipelines.streams.source import Position, Reading
from tailrace.pipelines.streams.writer import MARKERS_TOPIC, Marker, read_marker
from tailrace.records.decode_columns import EMPTY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

PIECE_RECORDS = 20_000
MOST_POISON = 50
ALL_OF = 10  # records of a batch that all fail: then it is the function's fault
STACK_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True)
class Poison:
    """One record the function fails on."""

    record: DeadRecord
    location: Origin
    attempt: int


class TooMuchPoison(Exception):
    """So many records fail that the function is at fault, not they."""


class Isolation:
    """Looks through the failed batch of one output of a stream."""

    def __init__(self, spark: SparkSession, streams: Streams, stream: Stream, topic: str) -> None:
        self._spark = spark
        self._streams = streams
        self._stream = stream
        self._topic = topic
        self._files = streams.files(stream)
        self._options = streams.options(stream)

    def find(self) -> list[Poison]:
        """The poison in the batch that was last begun; empty if the error is another."""
        pieces = [list(self._pieces(number)) for number in range(len(self._options))]
        whole = [self._table(number, parts) for number, parts in enumerate(pieces)]
        if self._fails([table.schema.empty_table() for table in whole]) is not None:
            return []
        found: list[Poison] = []
        try:
            for number, parts in enumerate(pieces):
                for piece in parts:
                    self._search(number, piece, whole, found)
        except TooMuchPoison:
            log.warning("too many records fail", extra={"stream": self._stream.name})
            return []
        read = sum(len(piece) for parts in pieces for piece in parts)
        if len(found) == read >= ALL_OF:
            log.warning("every record fails", extra={"stream": self._stream.name})
            return []
        return found

    def _search(
        self, number: int, piece: Piece, whole: Sequence[pa.Table], found: list[Poison]
    ) -> None:
        tables = list(whole)
        tables[number] = self._table(number, [piece])
        problem = self._fails(tables)
        if problem is None:
            return
        if len(piece) > 1:
            half = len(piece) // 2
            self._search(number, piece.only(range(half)), whole, found)
            self._search(number, piece.only(range(half, len(piece))), whole, found)
            return
        if passes(problem) and self._fails(tables) is None:
            return  # the worker was gone for another reason
        if len(found) >= MOST_POISON:
            raise TooMuchPoison
        stack = str(problem)[:STACK_CHARACTERS]
        record = dead_record(piece, 0, last_words(problem) or type(problem).__name__, stack)
        found.append(Poison(record, piece.location(0), int(dict(record.headers).get(ATTEMPT) or 0)))

    def _fails(self, tables: Sequence[pa.Table]) -> BaseException | None:
        """The error of the function over these rows, if it has one."""
        try:
            outputs = self._streams.call(
                self._stream, [self._frame(*one) for one in enumerate(tables)]
            )
            outputs[self._topic].write.format("noop").mode("overwrite").save()
        except Exception as problem:
            return problem.__cause__ or problem
        return None

    def _frame(self, number: int, table: pa.Table) -> DataFrame:
        return self._spark.createDataFrame(table, schema=ddl_of(self._options[number]))

    def _table(self, number: int, pieces: Sequence[Piece]) -> pa.Table:
        options = self._options[number]
        tables = [form_records(piece, options)[0] for piece in pieces]
        if not tables:
            tables = [form_records(Piece("", 0, EMPTY), options)[0]]
        return pa.concat_tables(tables).combine_chunks()

    def _pieces(self, number: int) -> Iterator[Piece]:
        """The records of the failed batch that an input brought, without those left out."""
        options, held = self._options[number], self._files.held().held
        reading = Reading(dict(options))
        log_ranges = kept_ranges(options["bootstrap"])
        again = f"{self._stream.name}.retry"
        for start, end in self._bounds(number, reading):
            names = [*end.offsets]
            bounds = log_ranges.bounds(log_ranges.named(names))
            for one in reading.ranges(start, end, bounds):
                told = log_ranges.read(one.range, go_on=True, unreadable=_told_already)
                for records in told:
                    piece = Piece(one.range.topic, one.range.partition, records)
                    if one.range.topic == again:
                        piece = retried(piece, reading.reads)
                    piece, _ = held.sift(piece)
                    for first in range(0, len(piece), PIECE_RECORDS):
                        yield piece.only(range(first, min(first + PIECE_RECORDS, len(piece))))

    def _bounds(self, number: int, reading: Reading) -> Iterator[tuple[Position, Position]]:
        """Where the failed batch starts and ends for the sources that are this input's."""
        logged = self._files.batch_offsets(self._topic)
        if logged is None:
            return
        again = f"{self._stream.name}.retry"
        for start, end in zip(*logged, strict=True):
            if end is None:
                continue
            until = Position.of(end)
            topics = [topic for topic in until.offsets if topic != again]
            if all(reading.reads(topic) for topic in topics):
                if start is None:
                    began = self._files.starts()[number]
                    assert began is not None  # it has read a batch
                    offsets = {topic: dict(by) for topic, by in began.offsets.items()}
                    yield Position(offsets, until.ids), until
                else:
                    yield Position.of(start), until
                return  # a source that stands in the plan twice has read the same


def hold(files: StreamFiles, stream: Stream, found: Sequence[Poison], bootstrap: str) -> HeldFile:
    """Leave these records out from now on, and write their letters: to the retry topic while
    attempts are left, else to the dead letters."""
    before = files.held()
    blocked = dict(before.held.blocked)
    letters: list[Letter] = []
    for poison in found:
        record = poison.record
        blocks = stream.on_error == "block" and record.key is not None
        if blocks:
            assert record.key is not None
            origin = (record.topic, record.partition, record.offset)
            blocked.setdefault(record.key, Blocker(origin, poison.location))
        letters.append(
            {
                "letter": orjson.loads(dead_letter(record)),
                "again": not blocks and poison.attempt < stream.retries,
            }
        )
    skipped = before.held.skipped | {poison.location for poison in found}
    after = HeldFile(before.version + 1, Held(skipped, blocked), tuple(letters))
    files.hold(after)
    deliver(bootstrap, stream.name, after)
    return after


def deliver(bootstrap: str, stream: str, held: HeldFile) -> None:
    """Write the letters of the newest version of what is held, once."""
    if not held.letters:
        return
    with TransactionalWriter(bootstrap, f"tailrace.{stream}.held") as writer:
        writer.init()
        last = read_marker(bootstrap, stream, "held")
        if last is not None and last.batch >= held.version:
            return
        for one in held.letters:
            letter = one["letter"]
            key, value = decoded(letter["key"]), decoded(letter["value"])
            if one["again"]:
                writer.send(f"{stream}.retry", None, key, value, retry_headers(letter))
            else:
                position = str(letter["position"]).encode()
                headers = (
                    ("tailrace.reason", str(letter["reason"]).encode()[:1000]),
                    ("tailrace.position", position),
                )
                writer.send(f"{stream}.dead", 0, position, orjson.dumps(letter), headers)
        marker = Marker("held", held.version, "")
        writer.send(MARKERS_TOPIC, 0, f"{stream}/held".encode(), marker.encode())
        writer.commit()


def release(files: StreamFiles, waiting: Mapping[str, Letter]) -> list[str]:
    """Unblock the keys whose letter is no longer among those that wait (by position); the
    positions they waited behind."""
    before = files.held()
    free = {
        key: blocker
        for key, blocker in before.held.blocked.items()
        if position_of(blocker.origin) not in waiting
    }
    if not free:
        return []
    blocked = {key: one for key, one in before.held.blocked.items() if key not in free}
    files.hold(replace(before, held=Held(before.held.skipped, blocked)))
    return [position_of(blocker.origin) for blocker in free.values()]


def _told_already(_: DeadRecord) -> None:
    """A batch that cannot be read: the data source has written its letter."""
