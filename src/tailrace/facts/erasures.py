"""What was erased from a log: `__tailrace_erased`, compacted.

    <id>           → JSON of `Erased`
    <id>/<place>   → JSON of `Cleared`: a place that was made of the records holds them no more

Nothing in it names anybody: subjects stand there by their tags, keys of records by a hash.
Whoever opens an event topic reads it, and again every second: records that were cut out must
leave the states and indexes they went into, and what was erased whole does not come back.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

import msgspec

from tailrace.client.producer import Producer, ProducerSettings
from tailrace.client.wire_outlet import WireOutlet
from tailrace.clock import to_datetime
from tailrace.errors import UsageError
from tailrace.facts.errors import ErasureUnknownError
from tailrace.facts.reading import EventReader

if TYPE_CHECKING:
    from tailrace.client.log import Log

ERASED = "__tailrace_erased"
SETTINGS = {
    "cleanup.policy": "compact",
    "flush.messages": "1",
    "min.cleanable.dirty.ratio": "0",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "0",
}


class Erased(msgspec.Struct):
    """What the log keeps of an erasure. No name of a subject or of a key."""

    id: str
    tag: str
    """Of the subject; "" where records were erased."""
    reason: str
    at: str
    state: str
    """`begun`, then `done`: nothing of it is left in the log."""
    keys: list[str] = []
    """Keys of the subject that were destroyed."""
    counts: dict[str, int] = {}
    """Sealed values, or records, by topic."""
    positions: dict[str, list[int]] = {}
    """First and last offset of them by partition."""
    hashes: dict[str, str] = {}
    """SHA-256 over positions and values, by topic."""
    unreachable: list[str] = []
    kind: str = "subject"
    """`subject`, `record` or `key`."""
    topic: str = ""
    """Where the records or the key were."""
    digest: str = ""
    """Of the key: see `digest_of`."""
    offsets: dict[str, str] = {}
    """The records by topic, as the setting `tailrace.erase` has them: 0:5-9,12;3:991."""
    edges: dict[str, int] = {}
    """Rows by sink that hold or held opened values: each sink writes them again, with NULL."""

    @property
    def records(self) -> int:
        """How many records were erased: more, if some were found later."""
        return sum(self.counts.values())


class Cleared(msgspec.Struct):
    """A place that was made of erased records, and is written again without them."""

    id: str
    place: str
    """`views of shop`, `pages of shop`."""
    at: str
    records: int
    """Of the erasure when the place was begun to be cleared: see `Erased.records`."""


class Erasures:
    """All erasures of one log. Safe from any thread; close it."""

    def __init__(self, log: Log, timeout: float = 30.0) -> None:
        self._log = log
        self._reader = EventReader(log, timeout)
        self._lock = threading.RLock()
        self._producer: Producer | None = None
        self._there = False
        self._next = 0
        self._keys: dict[tuple[str, str], Erased] = {}
        self.found: dict[str, Erased] = {}
        self._cleared: dict[tuple[str, str], Cleared] = {}

    def close(self) -> None:
        with self._lock:
            self._reader.close()
            if self._producer is not None:
                self._producer.close()
                self._producer = None

    def begin(self) -> None:
        """Make the topic."""
        self._log.ensure_topic(ERASED, 1, SETTINGS)
        self._there = True

    def refresh(self) -> list[Erased]:
        """Read what is new in the topic, if it is there; what has come or changed."""
        came: dict[str, Erased] = {}
        with self._lock:
            if not self._there:
                self._there = self._log.topic(ERASED) is not None
            if not self._there:
                return []
            end = self._log.end_offsets(ERASED)[0]
            for some, _ in self._reader.records(ERASED, 0, self._next, end):
                for record in some:
                    if b"/" in (record.key or b""):
                        self._take_cleared(record.value)
                    elif record.value is not None:
                        one = msgspec.json.decode(record.value, type=Erased)
                        came[one.id] = self.found[one.id] = one
                        if one.kind == "key":
                            self._keys[one.topic, one.digest] = one
            self._next = max(end, self._next)
        return list(came.values())

    def _take_cleared(self, value: bytes | None) -> None:
        if value is not None:
            one = msgspec.json.decode(value, type=Cleared)
            self._cleared[one.id, one.place] = one

    def is_cleared(self, erased: Erased, place: str) -> bool:
        """Whether a place was cleared of all records of an erasure that are known of."""
        found = self._cleared.get((erased.id, place))
        return found is not None and found.records == erased.records

    def clear(self, id: str, place: str, records: int) -> None:
        """Note that a place holds nothing any more of so many records that an erasure had: more
        may have been found since. Durable on return."""
        at = to_datetime(self._log.clock.wall_ms()).isoformat()
        one = Cleared(id, place, at, records)
        self.write(ERASED, f"{id}/{place}", msgspec.json.encode(one))
        self.refresh()

    def get(self, id: str) -> Erased:
        """Raises ErasureUnknownError."""
        self.refresh()
        found = self.found.get(id)
        if found is None:
            raise ErasureUnknownError(
                f"there is no erasure {id!r}", hint="`tailrace erase list` shows them"
            )
        return found

    def of_key(self, topic: str, key: bytes) -> Erased | None:
        """The erasure of this key, if there was one."""
        return self._keys.get((topic, digest_of(topic, key))) if self._keys else None

    def mark(self, topic: str) -> str:
        """Changes when records of the topic were erased: what was made of them is void."""
        ids = [
            each.id
            for each in self.found.values()
            if each.state == "done" and topic in each.offsets
        ]
        return hashlib.blake2b(" ".join(sorted(ids)).encode()).hexdigest()[:16] if ids else ""

    def keep(self, erased: Erased) -> None:
        """Write an erasure as it is now, durable on return."""
        self.write(ERASED, erased.id, msgspec.json.encode(erased))
        self.refresh()

    def write(self, topic: str, key: str, value: bytes | None) -> None:
        """One record into a topic of the project, durable on return."""
        with self._lock:
            if self._producer is None:
                # On our own wire, which shows an embedded log that we are of its project:
                # nobody else writes its topics `__tailrace_…`.
                settings = ProducerSettings(linger_ms=0)
                outlet = WireOutlet(
                    self._log.cluster(), self._log.cluster(), settings, self._log.clock
                )
                self._producer = Producer(outlet, settings, clock=self._log.clock)
            self._producer.send(topic, key=key.encode(), value=value, partition=0).result(60)


def digest_of(topic: str, key: bytes) -> str:
    """What stands for a key that was erased."""
    return hashlib.sha256(topic.encode() + b"\0" + key).hexdigest()[:32]


def check_reason(reason: str | None) -> str:
    """Raises UsageError where there is none."""
    if not reason:
        raise UsageError("an erasure needs a reason", hint='--reason "request 4711"')
    return reason
