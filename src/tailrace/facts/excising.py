"""Erasing records: they are cut out of the log, wherever it has copies of them.

    1  found     the records, and copies of them in other topics of the log
    2  begun     written to `__tailrace_erased`: a key that is erased gets no new events
    3  deleted   of a table's key: a last record that deletes it, for all who follow the table
    4  cut       the log writes segments and archive again (`log.erasing`)
    5  looked    every record is read again, and more that came meanwhile is cut
    6  done      the proof is written beside the beginning

A stop in between leaves a beginning without an end: `finish` goes on at step 3. The log itself goes
on with step 4 after a stop of its own. Owners of event topics learn of step 6 within a second,
throw their indexes away and read again. Apache Kafka cannot rewrite its segments: it is refused.

Copies are found by their address. Dead letters, rows that came too late and records that wait to
be tried again carry the position of the record they were made from; published states carry its key.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from tailrace.clock import to_datetime
from tailrace.errors import UsageError
from tailrace.facts.erasing import Verified, places_of
from tailrace.facts.erasures import Erased, Erasures, digest_of
from tailrace.facts.errors import ErasureRefusedError, RecordsMissingError
from tailrace.facts.failpoints import reached
from tailrace.records.erased_offsets import (
    ERASE,
    held,
    offsets_of,
    ranges_of,
    read_request,
    write_request,
)
from tailrace.records.event_headers import ERASED as ERASED_HEADER
from tailrace.records.event_headers import ERASED_TYPE, EVENT, STATE_TOPIC

if TYPE_CHECKING:
    from pathlib import Path

    from tailrace.client.log import Log
    from tailrace.client.record import LogRecord as Record

LOOK_SECONDS = 0.1
OWNERS_SECONDS = 1.5
"""By then owners have read what has begun: see `FollowErasures`."""
_POSITION = re.compile(r"(?:log:)?(?P<topic>[a-zA-Z0-9._-]+)/(?P<partition>\d+):(?P<offset>\d+)\Z")
_COPIES = (".dead", ".late", ".retry")
"""How the names of topics end that hold records which say where they came from."""
_ADDRESS = re.compile(rb"(?:\A|[:\s])([a-zA-Z0-9._-]+)/(\d+):(\d+)\Z")
Place = tuple[str, int, int]
"""Topic, partition, offset."""

NOT_IN_THE_LOG = (
    "what reactions, streams and programs made of the records: their states, rows, files and messages",
    "copies of the log: mirrors and backups; erase the same there",
    "blocks of deleted files, until the disk writes them again",
    "keys of records, and names of streams",
)


@dataclass(slots=True)
class Found:
    """Records to be erased, and what stands for them in the proof."""

    places: dict[str, dict[int, set[int]]] = field(default_factory=dict)
    _hashes: dict[str, Any] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        offsets = self.places.setdefault(record.topic, {}).setdefault(record.partition, set())
        if record.offset in offsets:
            return
        offsets.add(record.offset)
        told = self._hashes.setdefault(record.topic, hashlib.sha256())
        address = f"{record.topic}/{record.partition}:{record.offset}\n".encode()
        told.update(address + (record.value or b""))

    def holds(self, topic: str, partition: int, offset: int) -> bool:
        return offset in self.places.get(topic, {}).get(partition, ())

    @property
    def counts(self) -> dict[str, int]:
        """Records by topic."""
        return {
            topic: sum(map(len, partitions.values())) for topic, partitions in self.places.items()
        }

    @property
    def hashes(self) -> dict[str, str]:
        return {topic: told.hexdigest() for topic, told in self._hashes.items()}

    @property
    def positions(self) -> dict[str, list[int]]:
        """First and last offset by partition."""
        return {
            f"{topic}/{number}": [min(offsets), max(offsets)]
            for topic, partitions in self.places.items()
            for number, offsets in sorted(partitions.items())
        }

    @property
    def offsets(self) -> dict[str, str]:
        """As the log is asked to erase them."""
        return {
            topic: write_request({n: ranges_of(each) for n, each in partitions.items()})
            for topic, partitions in self.places.items()
        }


def parse_position(text: str) -> Place:
    """`log:accounts/3:991`, as answers of commands and histories have it."""
    found = _POSITION.match(text)
    if found is None:
        raise UsageError(f"{text!r} is no position", hint="log:accounts/3:991")
    return found["topic"], int(found["partition"]), int(found["offset"])


def find_records(log: Log, positions: Iterable[str]) -> Found:
    """These records and their copies. Raises RecordsMissingError for one that is not there."""
    wanted = {parse_position(each) for each in positions}
    _refuse_own({topic for topic, _, _ in wanted})
    found = Found()
    for topic in sorted({topic for topic, _, _ in wanted}):
        if log.topic(topic) is None:
            raise RecordsMissingError(f"there is no topic {topic!r}")
        offsets = {place[1:] for place in wanted if place[0] == topic}
        keys: set[bytes] = set()
        for record in _read(log, topic):
            if (record.partition, record.offset) in offsets:
                found.add(record)
                if _event(record) and record.key is not None:
                    keys.add(record.key)
        missing = [each for each in sorted(offsets) if not found.holds(topic, *each)]
        if missing:
            number, offset = missing[0]
            raise RecordsMissingError(
                f"there is no record at log:{topic}/{number}:{offset}",
                detail=f"{len(missing)} of {len(offsets)} positions in {topic!r} hold nothing",
                hint="it was deleted or compacted already, or the position is mistyped",
            )
        _find_keys(log, f"{topic}{STATE_TOPIC}", keys, found)
    _find_copies(log, found)
    return found


def find_key(log: Log, topic: str, key: str) -> tuple[Found, set[bytes]]:
    """The records of a key and their copies; the key as it stands in the topic. Raises
    RecordsMissingError if nothing has it."""
    _refuse_own({topic})
    if log.topic(topic) is None:
        raise RecordsMissingError(f"there is no topic {topic!r}")
    found, keys = Found(), set[bytes]()
    for record in _read(log, topic):
        if record.key is not None and is_key(record.key, key):
            keys.add(record.key)
            found.add(record)
    _find_keys(log, f"{topic}{STATE_TOPIC}", keys, found)
    _find_copies(log, found)
    return found, keys


def is_key(key: bytes, text: str) -> bool:
    """Whether a record's key is what somebody typed: the same text, the same JSON, or the one
    field of a table's key."""
    if key == text.encode():
        return True
    try:
        told = orjson.loads(key)
    except orjson.JSONDecodeError:
        return False
    try:
        if told == orjson.loads(text):
            return True
    except orjson.JSONDecodeError:
        pass
    if isinstance(told, dict) and set(told) == {"schema", "payload"}:
        told = told["payload"]
    return isinstance(told, dict) and len(told) == 1 and str(next(iter(told.values()))) == text


def erase_records(
    log: Log,
    book: Erasures,
    positions: Iterable[str],
    reason: str,
    *,
    patience: float = 60.0,
    unreachable: Sequence[str] = (),
) -> Erased:
    """Erase single records; state "begun" if the log has not cut them out in time. `unreachable`:
    what the caller knows of what was made of them, for the proof."""
    _refuse_kafka(log)
    found = find_records(log, positions)
    return _begin(log, book, "record", found, reason, patience, unreachable=unreachable)


def erase_key(
    log: Log,
    book: Erasures,
    topic: str,
    key: str,
    reason: str,
    *,
    patience: float = 60.0,
    unreachable: Sequence[str] = (),
) -> Erased:
    """Erase all records of a key. One that is erased already is looked through again."""
    _refuse_kafka(log)
    book.refresh()
    found, keys = find_key(log, topic, key)
    gone = (book.of_key(topic, each) for each in (key.encode(), *sorted(keys)))
    known = next(filter(None, gone), None)
    if known is not None:
        return finish(log, book, known.id, patience=patience)
    if not keys:
        raise RecordsMissingError(
            f"no record of {topic!r} has the key {key!r}",
            hint="a key is typed as it stands in the topic: acc-1, 17, '{\"id\": 17}'",
        )
    if len(keys) > 1:
        raise UsageError(
            f"{key!r} is more than one key of {topic!r}",
            detail=", ".join(each.decode(errors="replace") for each in sorted(keys)),
            hint="type the whole key",
        )
    digest = digest_of(topic, next(iter(keys)))
    return _begin(
        log, book, "key", found, reason, patience,
        topic=topic, digest=digest, unreachable=unreachable,
    )  # fmt: skip


def _begin(
    log: Log,
    book: Erasures,
    kind: str,
    found: Found,
    reason: str,
    patience: float,
    *,
    topic: str = "",
    digest: str = "",
    unreachable: Sequence[str] = (),
) -> Erased:
    book.begin()
    begun = Erased(
        f"e-{secrets.token_hex(6)}",
        "",
        reason,
        to_datetime(log.clock.wall_ms()).isoformat(),
        "begun",
        counts=found.counts,
        positions=found.positions,
        hashes=found.hashes,
        unreachable=[*unreachable, *NOT_IN_THE_LOG],
        kind=kind,
        topic=topic,
        digest=digest,
        offsets=found.offsets,
    )
    book.keep(begun)
    reached("excising.begun")
    return finish(log, book, begun.id, patience=patience)


def finish(log: Log, book: Erasures, id: str, *, patience: float = 60.0) -> Erased:
    """Go on with an erasure of records until nothing of it is left, or the time is over."""
    erased = book.get(id)
    until = log.clock.monotonic() + patience
    began = log.clock.monotonic()
    if erased.kind == "key":
        _delete_row(log, erased)
        reached("excising.deleted")
    while True:
        asked = _ask(log, erased)
        reached("excising.asked")
        while any(_asked(log, topic) for topic in asked):
            if log.clock.monotonic() >= until:
                return erased
            log.clock.sleep(LOOK_SECONDS)
        reached("excising.cut")
        if erased.kind == "key" and _is_events(log, erased.topic):
            # An owner that had not read of it may have written one more.
            left = OWNERS_SECONDS - (log.clock.monotonic() - began)
            if erased.state != "done" and left > 0:
                log.clock.sleep(left)
        if not _take_new(log, erased) and not any(_left(log, erased).values()):
            break  # else another erasure took our request back, or there are more records
        erased.state = "begun"
        book.keep(erased)
        if log.clock.monotonic() >= until:
            return erased
    if erased.state != "done":
        erased.state = "done"
        book.keep(erased)
    return erased


def finish_begun(log: Log, book: Erasures, *, patience: float = 60.0) -> None:
    """Go on with every erasure of records that was cut short."""
    book.refresh()
    for each in list(book.found.values()):
        if each.state != "done" and each.kind != "subject":
            finish(log, book, each.id, patience=patience)


def records_left(log: Log, erased: Erased) -> int:
    """Records of an erasure that are still there: looked at one by one."""
    counts = (len(each) for left in _left(log, erased).values() for each in left.values())
    return sum(counts) + len(_of_key(log, erased))


def verify(
    log: Log, book: Erasures, id: str, *, needle: str | None = None, places: Iterable[Path] = ()
) -> Verified:
    """Look again: are the records slots, and does a text stand anywhere."""
    erased = book.get(id)
    return Verified(erased, 0, records_left(log, erased), places_of(log, needle, places))


# Steps ------------------------------------------------------------------------


def _ask(log: Log, erased: Erased) -> list[str]:
    """Ask the log for what is left; the topics."""
    asked = []
    for topic, left in _left(log, erased).items():
        present = _asked(log, topic)
        if left:
            for number, ranges in read_request(present).items():
                left.setdefault(number, set()).update(offsets_of(ranges))
            log.alter_topic(
                topic, {ERASE: write_request({n: ranges_of(each) for n, each in left.items()})}
            )
        if left or present:
            asked.append(topic)
    return asked


def _left(log: Log, erased: Erased) -> dict[str, dict[int, set[int]]]:
    """What is still there of the records of an erasure, by topic, deleted ones left out."""
    found: dict[str, dict[int, set[int]]] = {}
    for topic, text in erased.offsets.items():
        if log.topic(topic) is None:
            continue
        wanted = read_request(text)
        left = found.setdefault(topic, {})
        for record in _read(log, topic):
            place = wanted.get(record.partition, [])
            if held(place, record.offset, record.offset) and not _is_slot(record):
                left.setdefault(record.partition, set()).add(record.offset)
    return found


def _asked(log: Log, topic: str) -> str:
    if log.topic(topic) is None:
        return ""
    return log.topic_config(topic).get(ERASE) or ""


def _take_new(log: Log, erased: Erased) -> bool:
    """Add what has come under the key since it was looked for; whether there was any."""
    more = _of_key(log, erased)
    if not more:
        return False
    found = Found()
    for record in more:
        found.add(record)
    _find_copies(log, found)
    for topic, text in found.offsets.items():
        both = read_request(erased.offsets.get(topic, ""))
        for number, ranges in read_request(text).items():
            both[number] = ranges_of(offsets_of([*both.get(number, []), *ranges]))
        erased.offsets[topic] = write_request(both)
        erased.counts[topic] = erased.counts.get(topic, 0) + found.counts[topic]
    for place, (first, last) in found.positions.items():
        known = erased.positions.get(place, [first, last])
        erased.positions[place] = [min(first, known[0]), max(last, known[1])]
    return True


def _of_key(log: Log, erased: Erased) -> list[Record]:
    """Records of the key of an erasure that hold anything but its deletion."""
    if erased.kind != "key":
        return []
    return [
        record
        for topic in (erased.topic, f"{erased.topic}{STATE_TOPIC}")
        if log.topic(topic) is not None
        for record in _read(log, topic)
        if record.key is not None
        and digest_of(erased.topic, record.key) == erased.digest
        and record.value is not None
        and not _is_slot(record)
        and not _deletes(record)
    ]


def _delete_row(log: Log, erased: Erased) -> None:
    """Of a table or of published states: say that the key's row is gone. Whoever follows it,
    views, copies and sinks, deletes what was made of the row."""
    for topic in (erased.topic, f"{erased.topic}{STATE_TOPIC}"):
        if log.topic(topic) is None or _is_events(log, topic):
            continue
        if "compact" not in (log.topic_config(topic).get("cleanup.policy") or ""):
            continue
        last: Record | None = None
        for record in _read(log, topic):
            if record.key is not None and digest_of(erased.topic, record.key) == erased.digest:
                last = record
        if last is None or last.value is None:
            continue
        with log.producer() as producer:
            if (gone := _deletion(last)) is not None:
                producer.send(topic, key=last.key, value=gone, partition=last.partition)
            producer.send(topic, key=last.key, value=None, partition=last.partition)


def _deletion(record: Record) -> bytes | None:
    """The change that deletes a captured row, with nothing of it but its key; None where rows
    are deleted by a null."""
    try:
        change = orjson.loads(record.value or b"")
        key = orjson.loads(record.key or b"")
    except orjson.JSONDecodeError:
        return None
    if not isinstance(change, dict) or not isinstance(key, dict) or "op" not in change:
        return None
    if change["op"] == "d":
        return None
    names = {**(change.get("after") or {}), **(change.get("before") or {})}
    before = {name: key.get(name) for name in names}
    return orjson.dumps({**change, "op": "d", "before": before, "after": None})


def _deletes(record: Record) -> bool:
    """Whether a record says that its row is gone, and nothing of the row but its key."""
    try:
        change = orjson.loads(record.value or b"")
        key = orjson.loads(record.key or b"")
    except orjson.JSONDecodeError:
        return False
    if not isinstance(change, dict) or not isinstance(key, dict) or change.get("op") != "d":
        return False
    before = change.get("before") or {}
    return all(value is None or key.get(name) == value for name, value in before.items())


# Reading ----------------------------------------------------------------------


def _read(log: Log, topic: str) -> Iterator[Record]:
    return iter(log.read(topic, isolation_level="read_uncommitted"))


def _find_keys(log: Log, topic: str, keys: set[bytes], found: Found) -> None:
    """Records of these keys in a topic that is kept beside another, if there is one."""
    if not keys or log.topic(topic) is None:
        return
    for record in _read(log, topic):
        if record.key in keys and record.value is not None:
            found.add(record)


def _find_copies(log: Log, found: Found) -> None:
    """Records of other topics that were made of those found, and say so."""
    places = {
        (topic.encode(), b"%d" % number, b"%d" % offset)
        for topic, partitions in found.places.items()
        for number, offsets in partitions.items()
        for offset in offsets
    }
    for topic in log.topics():
        if not topic.endswith(_COPIES):
            continue
        for record in _read(log, topic):
            texts = [record.key, *(value for _, value in record.headers)]
            for text in texts:
                match = _ADDRESS.search(text) if text is not None and len(text) < 400 else None
                if match is not None and match.groups() in places and not _is_slot(record):
                    found.add(record)


def _event(record: Record) -> bool:
    return bool(record.headers) and record.headers[0][0] == EVENT


def _is_slot(record: Record) -> bool:
    """Whether it is what an erasure has left."""
    if not record.headers:
        return False
    name, value = record.headers[0]
    if name == EVENT:
        return bool(value == ERASED_TYPE.encode() and record.value == b"{}")
    return bool(name == ERASED_HEADER and record.value is None)


def _is_events(log: Log, topic: str) -> bool:
    return log.topic_config(topic).get("tailrace.events") == "true"


def _refuse_own(topics: set[str]) -> None:
    for topic in topics:
        if topic.startswith("__"):
            raise ErasureRefusedError(
                f"{topic} holds what the log itself goes by",
                hint="erase the subject, the records or the key it was made for",
            )


def _refuse_kafka(log: Log) -> None:
    """Raises ErasureRefusedError on a log that cannot rewrite its segments."""
    name = next(iter(log.topics(internal=True)), None)
    if name is None or ERASE in log.topic_config(name):
        return
    raise ErasureRefusedError(
        "Apache Kafka cannot take single records out of a topic",
        detail="only the embedded log can write its segments again",
        hint="declare personal fields and erase the subject, or copy the topic without the records "
        "to a new one and switch over to it",
    )


__all__ = [
    "NOT_IN_THE_LOG",
    "Found",
    "erase_key",
    "erase_records",
    "find_key",
    "find_records",
    "finish",
    "finish_begun",
    "is_key",
    "parse_position",
    "records_left",
    "verify",
]
