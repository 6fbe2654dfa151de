"""Where rows go that a target does not take: the topic `<sink>.dead`.

A letter is one JSON object: which sink, which record of which topic, the row, and the
error in its four parts. The key is the record's address, so repeats after a crash can be
told apart from new ones; a null value strikes a letter off once its row has arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from tailrace.client.ranges import Range, RangeReader
from tailrace.records.rows import python_rows
from tailrace.security import librdkafka_settings
from tailrace.sinks.base import OFFSET, PARTITION, Batch
from tailrace.sinks.changes import BadRecord
from tailrace.sinks.errors import RowsRefusedError, SinkError
from tailrace.sinks.registry import Copy


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One row that was refused."""

    sink: str
    topic: str
    partition: int
    offset: int
    row: Any
    error: dict[str, str]
    at_ms: int = 0

    @property
    def address(self) -> str:
        return f"{self.topic}/{self.partition}:{self.offset}"

    def encode(self) -> bytes:
        return orjson.dumps(
            {
                "sink": self.sink,
                "topic": self.topic,
                "partition": self.partition,
                "offset": self.offset,
                "row": self.row,
                "error": self.error,
                "at_ms": self.at_ms,
            },
            default=str,
        )


def decode_letter(value: bytes) -> DeadLetter:
    return DeadLetter(**orjson.loads(value))


def letter_of_record(copy: Copy, record: BadRecord, at_ms: int) -> DeadLetter:
    """A letter about a record that is no row."""
    content = record.key if record.value is None else record.value
    return DeadLetter(
        sink=copy.name,
        topic=copy.topic,
        partition=record.partition,
        offset=record.offset,
        row=None if content is None else content.decode(errors="replace"),
        error=RowsRefusedError(record.reason).as_dict(),
        at_ms=at_ms,
    )


def letter_of_row(copy: Copy, batch: Batch, reason: SinkError, at_ms: int) -> DeadLetter:
    """A letter about the first row of a batch, which the target has refused."""
    row: dict[str, Any] = python_rows(batch.changes.slice(0, 1))[0]
    return DeadLetter(
        sink=copy.name,
        topic=batch.position.topic,
        partition=row[PARTITION],
        offset=row[OFFSET],
        row={name: row[name] for name in batch.shape.names},
        error=reason.as_dict(),
        at_ms=at_ms,
    )


class DeadLetters(Protocol):
    """Takes refused rows; returns once they are safe."""

    def write(self, letters: Sequence[DeadLetter]) -> None: ...

    def strike(self, letters: Sequence[DeadLetter]) -> None:
        """Forget letters whose rows have arrived after all."""


class TopicDeadLetters:
    """Dead letters in a topic of the log, written before the sink's position moves."""

    def __init__(self, bootstrap: str, sink: str) -> None:
        self._bootstrap = bootstrap
        self.topic = f"{sink}.dead"
        self._producer: Any = None

    def write(self, letters: Sequence[DeadLetter]) -> None:
        self._send([(letter.address.encode(), letter.encode()) for letter in letters])

    def strike(self, letters: Sequence[DeadLetter]) -> None:
        if letters:
            self._send([(letter.address.encode(), None) for letter in letters])

    def _send(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        from confluent_kafka import Producer

        if self._producer is None:
            self._producer = Producer(
                {
                    **librdkafka_settings(self._bootstrap),
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 1,
                    "log_level": 0,
                }
            )
        failures: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for key, value in records:
            self._producer.produce(self.topic, key=key, value=value, on_delivery=delivered)
        if self._producer.flush(30) or failures:
            raise SinkError(
                "dead letters could not be written",
                detail=failures[0] if failures else "the log did not answer in 30 s",
                hint="see `tailrace status`; the sink tries again",
            )


class ListedDeadLetters:
    """Dead letters in a list, for tests and one-off runs."""

    def __init__(self) -> None:
        self.letters: dict[str, DeadLetter] = {}

    def write(self, letters: Sequence[DeadLetter]) -> None:
        self.letters.update({letter.address: letter for letter in letters})

    def strike(self, letters: Sequence[DeadLetter]) -> None:
        for letter in letters:
            self.letters.pop(letter.address, None)


def read_letters(reader: RangeReader, sink: str) -> list[DeadLetter]:
    """The dead letters of a sink, oldest first, each record once."""
    topic = f"{sink}.dead"
    ranges = [
        Range(topic, partition, start, end)
        for partition, (start, end) in reader.bounds(topic).items()
    ]
    found: dict[str, DeadLetter] = {}
    for chunk in reader.read(ranges):
        for key, value in zip(chunk.keys, chunk.values, strict=True):
            if value is not None:
                letter = decode_letter(value)
                found[letter.address] = letter
            elif key is not None:
                found.pop(key.decode(errors="replace"), None)  # its row has arrived since
    return list(found.values())
