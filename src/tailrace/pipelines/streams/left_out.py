"""Records a stream leaves out: poison found before, and keys that wait behind it.

The driver decides (see `isolate`) and hands the decision to every reading task in the
option `held`, so a repeated batch leaves out the same records. A record of a blocked key
goes to the dead letters too, with the position it waits behind; other keys go on.

A record that is to be tried again is in `<stream>.retry`, as it was, with three headers
more: `tailrace.origin` (its first position), `tailrace.timestamp` and `tailrace.attempt`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson

from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.errors import UndecodableRecordError, told
from tailrace.pipelines.reading.decode import dead_headers, dead_key, dead_letter
from tailrace.pipelines.reading.forms import Piece, Unreadable
from tailrace.records.decode import Headers
from tailrace.records.decode_columns import RecordColumns
from tailrace.security import address_of, librdkafka_settings

ORIGIN, TIMESTAMP, ATTEMPT = "tailrace.origin", "tailrace.timestamp", "tailrace.attempt"
Origin = tuple[str, int, int]  # topic, partition, offset


def position_of(origin: Origin) -> str:
    """A position as text, `log:<topic>/<partition>:<offset>`."""
    return f"log:{origin[0]}/{origin[1]}:{origin[2]}"


def parse_position(text: str) -> Origin:
    """Topic, partition and offset of a position."""
    place, _, offset = text.removeprefix("log:").rpartition(":")
    topic, _, partition = place.rpartition("/")
    return topic, int(partition), int(offset)


@dataclass(frozen=True, slots=True)
class Blocker:
    """The record a key waits behind: where it was first, and where it was read."""

    origin: Origin
    location: Origin

    def holds(self, piece: Piece, index: int) -> bool:
        """Whether a record of its key came after it."""
        location = piece.location(index)
        if piece.origins is not None:  # read from the retry topic, as somebody asked for
            return location[:2] == self.location[:2] and location[2] > self.location[2]
        return location[:2] != self.origin[:2] or location[2] > self.origin[2]


@dataclass(frozen=True, slots=True)
class Held:
    """Locations of records to leave out, and blocked keys."""

    skipped: frozenset[Origin] = frozenset()
    blocked: Mapping[bytes, Blocker] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Held:
        return cls.decode(options.get("held", "{}"))

    @classmethod
    def decode(cls, text: str | bytes) -> Held:
        document = orjson.loads(text)
        return cls(
            frozenset(parse_position(one) for one in document.get("skipped", ())),
            {
                base64.b64decode(key): Blocker(parse_position(origin), parse_position(location))
                for key, (origin, location) in document.get("blocked", {}).items()
            },
        )

    def encode(self) -> str:
        return orjson.dumps(
            {
                "skipped": sorted(position_of(one) for one in self.skipped),
                "blocked": {
                    base64.b64encode(key).decode(): [
                        position_of(blocker.origin),
                        position_of(blocker.location),
                    ]
                    for key, blocker in sorted(self.blocked.items())
                },
            }
        ).decode()

    def sift(self, piece: Piece) -> tuple[Piece, list[DeadRecord]]:
        """The records that may be processed, and letters for those of blocked keys."""
        if not self.skipped and not self.blocked:
            return piece, []
        keys = piece.records.keys.to_pylist() if self.blocked else None
        kept: list[int] = []
        waiting: list[DeadRecord] = []
        for index in range(len(piece)):
            if piece.location(index) in self.skipped:
                continue
            blocker = None if keys is None else self.blocked.get(keys[index] or b"")
            if blocker is not None and blocker.holds(piece, index):
                behind = position_of(blocker.origin)
                reason = f"its key is blocked: it waits behind {behind}"
                waiting.append(dead_record(piece, index, reason, blocked_by=behind))
                continue
            kept.append(index)
        return (piece if len(kept) == len(piece) else piece.only(kept)), waiting


def dead_record(
    piece: Piece, index: int, reason: str, stack: str = "", blocked_by: str = ""
) -> DeadRecord:
    """One record of a piece, as a letter."""
    topic, partition, offset = piece.origin(index)
    records = piece.records
    return DeadRecord(
        topic,
        partition,
        offset,
        reason,
        records.keys[index].as_py(),
        records.values[index].as_py(),
        () if records.headers is None else records.headers[index],
        int(records.timestamps[index]),
        stack,
        blocked_by,
    )


def bury(
    options: Mapping[str, str],
    piece: Piece | None,
    unreadable: Sequence[Unreadable],
    letters: Sequence[DeadRecord],
) -> None:
    """Send records to the dead-letter topic, keyed by position: a repeated batch
    overwrites its own letters. Without such a topic the first is an error."""
    dead = [dead_record(piece, one.index, one.reason) for one in unreadable if piece is not None]
    if "dead" not in options:
        first = (*dead, *letters)[0]
        raise told(
            UndecodableRecordError(
                f"record {first.offset} of {first.topic}/{first.partition} cannot be read",
                detail=first.reason,
                hint='option("dead", TOPIC) sends such records there and goes on',
            )
        )
    from confluent_kafka import Producer

    producer = Producer({**librdkafka_settings(address_of(options)), "log_level": 0})
    for record in (*dead, *letters):
        producer.produce(
            options["dead"],
            dead_letter(record),
            dead_key(record),
            headers=dict(dead_headers(record)),
        )
    if producer.flush(60):
        raise UndecodableRecordError(
            "dead letters could not be written", hint="is the log reachable from the workers?"
        )


def retried(piece: Piece, reads: Callable[[str], bool]) -> Piece:
    """Records of the retry topic as they first were, those whose topic `reads` accepts."""
    kept: list[int] = []
    origins: list[Origin] = []
    times: list[int] = []
    tails: list[Headers] = []
    for index, headers in enumerate(piece.records.headers or ()):
        named = dict(headers)
        origin = named.get(ORIGIN)
        if origin is None or not reads(parse_position(origin.decode())[0]):
            continue
        kept.append(index)
        origins.append(parse_position(origin.decode()))
        times.append(int(named.get(TIMESTAMP) or piece.records.timestamps[index]))
        tails.append(tuple(pair for pair in headers if pair[0] not in (ORIGIN, TIMESTAMP)))
    records = piece.only(kept).records
    return Piece(
        piece.topic,
        piece.partition,
        RecordColumns(
            records.offsets, np.array(times, np.int64), records.keys, records.values, tails
        ),
        origins,
    )
