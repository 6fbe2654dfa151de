"""Erasing a subject: its keys are destroyed, and nobody can open what was sealed with them.

    1  counted       sealed values of the subject, in every topic of the log
    2  begun         written to `__tailrace_erased`: from here on the subject gets no key again
    3  destroyed     a tombstone for each of its keys
    4  cleaned       the topic of keys is compacted, and read to see that no key is left in it
    5  done          the proof is written beside the beginning

A stop in between leaves a beginning without an end: `finish` goes on at step 3. Owners in other
processes learn of step 2 within a second and forget what they had opened.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.clock import to_datetime
from tailrace.facts.erasures import ERASED, Erased
from tailrace.facts.errors import SubjectUnknownError
from tailrace.facts.failpoints import reached
from tailrace.facts.sealing import KEYS, MARK, Keys

if TYPE_CHECKING:
    from tailrace.client.log import Log

LOOK_SECONDS = 0.25
ROLL_SECONDS = 2.0
ROLL_KEY = "roll"
CHUNK = 4 * 1024 * 1024

UNREACHABLE = (
    "copies of events.key together with old copies (backups, mirrors) of __tailrace_keys",
    "what programs took from the opened events: rows, files and messages they wrote elsewhere",
    "names of streams and the values of fields that are not declared personal",
    "blocks of deleted files, until the disk writes them again",
    "memory of processes that have the topic open, for about a second",
)


@dataclass(slots=True)
class Found:
    """Sealed values of one subject in the topics of a log."""

    counts: dict[str, int] = field(default_factory=dict)
    positions: dict[str, list[int]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at an erasure has found."""

    erased: Erased
    keys_left: int
    """Keys of the subject that can still be read from the topic of keys."""
    values: int
    """Sealed values that are there; nobody can open them if no key is left. Of records: those
    that were not cut out."""
    needles: tuple[str, ...] = ()
    """Where the text that was looked for stands."""

    @property
    def good(self) -> bool:
        left = self.keys_left if self.erased.kind == "subject" else self.values
        return self.erased.state == "done" and not left and not self.needles


def search(log: Log, tag: str, topics: Iterable[str] | None = None) -> Found:
    """Every record whose value or key holds something sealed for this tag."""
    mark = f"{MARK}{tag}.".encode()
    found = Found()
    for topic in sorted(log.topics(internal=True) if topics is None else topics):
        if topic in (KEYS, ERASED) or topic.startswith("__consumer") or topic.startswith("__trans"):
            continue
        told = hashlib.sha256()
        for record in log.read(topic, isolation_level="read_uncommitted"):
            if mark not in (record.value or b"") and mark not in (record.key or b""):
                continue
            place = f"{topic}/{record.partition}"
            found.counts[topic] = found.counts.get(topic, 0) + 1
            first, _ = found.positions.setdefault(place, [record.offset, record.offset])
            found.positions[place] = [first, record.offset]
            told.update(f"{place}:{record.offset}\n".encode() + (record.value or b""))
        if topic in found.counts:
            found.hashes[topic] = told.hexdigest()
    return found


def erase_subject(
    log: Log,
    keys: Keys,
    subject: str,
    reason: str,
    *,
    patience: float = 60.0,
    edges: Mapping[str, int] | None = None,
    beyond: Iterable[str] = (),
) -> Erased:
    """Erase a subject, and wait until it is done; state "begun" if the topic of keys was not
    cleaned in time. Erasing one that is erased gives the erasure there is, finished. `edges` and
    `beyond` go into the proof: rows by sink that are written again, and what else stays."""
    keys.refresh()
    tag = keys.tag(subject)
    known = next(
        (each for each in keys.erasures.values() if each.kind == "subject" and each.tag == tag),
        None,
    )
    if known is None:
        known = _begin(log, keys, tag, subject, reason, dict(edges or {}), list(beyond))
    return finish(log, keys, known.id, patience=patience)


def _begin(
    log: Log,
    keys: Keys,
    tag: str,
    subject: str,
    reason: str,
    edges: dict[str, int],
    beyond: list[str],
) -> Erased:
    found = search(log, tag)
    live = keys.live(tag)
    if not live and not found.counts:
        raise SubjectUnknownError(
            f"nothing is sealed for the subject {subject!r}",
            detail=f"tag {tag}; no key, and no value in any topic of the log",
            hint="a subject is the name and the value of the field in tr.personal: customer:17",
        )
    begun = Erased(
        f"e-{secrets.token_hex(6)}",
        tag,
        reason,
        to_datetime(log.clock.wall_ms()).isoformat(),
        "begun",
        live,
        found.counts,
        found.positions,
        found.hashes,
        [*UNREACHABLE, *beyond],
        edges=edges,
    )
    _keep(keys, begun)
    reached("erasing.begun")
    return begun


def finish(log: Log, keys: Keys, id: str, *, patience: float = 60.0) -> Erased:
    """Go on with an erasure that has begun: destroy the keys, have their topic cleaned, look."""
    erased = erasure(keys, id)
    destroyed = keys.destroy(erased.tag)
    if destroyed:
        erased.keys = sorted({*erased.keys, *destroyed})
    reached("erasing.destroyed")
    if erased.state == "done" and not destroyed:
        return erased
    if _cleaned(log, keys, erased.tag, patience):
        erased.state = "done"
    reached("erasing.cleaned")
    _keep(keys, erased)
    return erased


def finish_begun(log: Log, keys: Keys, *, patience: float = 60.0) -> None:
    """Go on with every erasure that was cut short."""
    keys.refresh()
    for each in list(keys.erasures.values()):
        if each.state != "done" and each.kind == "subject":
            finish(log, keys, each.id, patience=patience)


def erasure(keys: Keys, id: str) -> Erased:
    """Raises ErasureUnknownError."""
    keys.refresh()
    return keys.book.get(id)


def verify(
    log: Log, keys: Keys, id: str, *, needle: str | None = None, places: Iterable[Path] = ()
) -> Verified:
    """Look again: is a key left, how many sealed values are there, and does a text stand
    anywhere: in a record of any topic, or in a file under `places`."""
    erased = erasure(keys, id)
    left = sum(1 for each in keys.raw() if each.tag == erased.tag and each.wrapped is not None)
    values = sum(search(log, erased.tag).counts.values())
    return Verified(erased, left, values, places_of(log, needle, places))


def places_of(log: Log, needle: str | None, places: Iterable[Path]) -> tuple[str, ...]:
    """Where a text stands: records of any topic, files under `places`."""
    found: list[str] = []
    if needle:
        found += _in_topics(log, needle.encode())
        for place in places:
            found += _in_files(place, needle.encode())
    return tuple(found)


def _keep(keys: Keys, erased: Erased) -> None:
    keys.book.keep(erased)
    keys.refresh()


def _cleaned(log: Log, keys: Keys, tag: str, patience: float) -> bool:
    """Have the topic of keys compacted until it holds no key of the tag."""

    def left() -> bool:
        return any(each.tag == tag and each.wrapped is not None for each in keys.raw())

    until = log.clock.monotonic() + patience
    rolled = -ROLL_SECONDS
    while left():
        now = log.clock.monotonic()
        if now - rolled > ROLL_SECONDS:
            rolled = now
            _roll(log, keys)
        if now >= until:
            return False
        log.clock.sleep(LOOK_SECONDS)
    return True


def _roll(log: Log, keys: Keys) -> None:
    """Close the segment that has the tombstones: only closed ones are cleaned."""
    log.alter_topic(KEYS, {"segment.ms": 1})
    try:
        for _ in range(2):
            log.clock.sleep(0.01)
            keys.write(KEYS, ROLL_KEY, None)
    finally:
        log.alter_topic(KEYS, {"segment.ms": None})


def _in_topics(log: Log, needle: bytes) -> Iterator[str]:
    for topic in sorted(log.topics(internal=True)):
        for record in log.read(topic, isolation_level="read_uncommitted"):
            parts: list[Any] = [record.key, record.value, *(value for _, value in record.headers)]
            if any(part is not None and needle in part for part in parts):
                yield f"log:{topic}/{record.partition}:{record.offset}"


def _in_files(place: Path, needle: bytes) -> Iterator[str]:
    for path in sorted(place.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            if _holds(path, needle):
                yield str(path)
        except OSError:
            continue  # gone meanwhile: segments are replaced while we look


def _holds(path: Path, needle: bytes) -> bool:
    kept = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if needle in kept + chunk:
                return True
            kept = chunk[-len(needle) :]
    return False
