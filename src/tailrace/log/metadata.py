"""The journal of topics: names, ids, places of partitions, settings; quotas, users, tokens, access rules.

`metadata/journal` in every data directory, one line an event: eight hex digits of CRC-32C,
a space, a JSON object with a rising number `n`. Each line is synced before its effect can
be seen. `metadata/snapshot` holds one such line with everything up to its `n` and lets the
journal begin again. A torn last line never took effect and is dropped. A line that is
damaged or missing before the end is taken from another data directory; if none has it, that
is an error that names the file, because topics could be missing.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tailrace.log.errors import MetadataDamagedError, UnknownFormatError
from tailrace.log.files import FILES, WRITE, Files
from tailrace.records.checksum import crc32c

log = logging.getLogger(__name__)

FORMAT = 1
_LINES_BEFORE_SNAPSHOT = 1000


@dataclass(slots=True)
class TopicEntry:
    """One topic as the journal knows it."""

    name: str
    id: uuid.UUID
    places: list[str]
    """Id of the data directory of each partition, in order."""
    overrides: dict[str, str] = field(default_factory=dict)
    created_at: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "id": str(self.id),
            "places": self.places,
            "overrides": self.overrides,
            "created_at": self.created_at,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TopicEntry:
        return cls(
            value["name"],
            uuid.UUID(value["id"]),
            list(value["places"]),
            dict(value["overrides"]),
            value["created_at"],
        )


@dataclass(slots=True)
class Catalogue:
    """Everything the journal says."""

    number: int = 0
    epoch: int = 0
    """Leader epoch of all partitions; grows with every start after a crash."""
    topics: dict[str, TopicEntry] = field(default_factory=dict)
    broker: dict[str, str] = field(default_factory=dict)
    """Dynamic broker settings."""
    quotas: list[dict[str, Any]] = field(default_factory=list)
    """Each with `user` and `client_id` (null: does not matter, "": the default) and `values`."""
    users: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """What is kept of users' passwords: by name, then by mechanism of SCRAM."""
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Delegation tokens by their id."""
    acls: dict[tuple[Any, ...], None] = field(default_factory=dict)
    """Access rules, in the order they were added; the broker knows what their fields mean."""

    def quota_entries(self) -> Iterator[tuple[tuple[str | None, str | None], dict[str, float]]]:
        """Whom each quota is for, and its values."""
        for each in self.quotas:
            yield (each["user"], each["client_id"]), each["values"]

    def apply(self, event: dict[str, Any]) -> None:
        match event["op"]:
            case "snapshot":
                self.epoch = event["epoch"]
                self.broker = dict(event["broker"])
                self.quotas = list(event.get("quotas", ()))
                self.acls = {tuple(each): None for each in event.get("acls", ())}
                self.topics = {each["name"]: TopicEntry.from_json(each) for each in event["topics"]}
                self.users = {name: dict(each) for name, each in event.get("users", {}).items()}
                self.tokens = dict(event.get("tokens", {}))
            case "create":
                entry = TopicEntry.from_json(event["topic"])
                self.topics[entry.name] = entry
            case "delete":
                self.topics.pop(event["name"], None)
            case "partitions":
                self.topics[event["name"]].places += event["places"]
            case "config":
                self.topics[event["name"]].overrides = dict(event["overrides"])
            case "broker":
                self.broker = dict(event["values"])
            case "quota":
                whom = (event["user"], event["client_id"])
                self.quotas = [
                    one for one in self.quotas if (one["user"], one["client_id"]) != whom
                ]
                if event["values"]:
                    self.quotas.append(
                        {"user": whom[0], "client_id": whom[1], "values": event["values"]}
                    )
            case "user":
                kept = self.users.setdefault(event["name"], {})
                for mechanism, credential in event["credentials"].items():
                    if credential is None:
                        kept.pop(mechanism, None)
                    else:
                        kept[mechanism] = credential
                if not kept:
                    del self.users[event["name"]]
            case "token":
                if event["values"] is None:
                    self.tokens.pop(event["id"], None)
                else:
                    self.tokens[event["id"]] = event["values"]
            case "acls":
                for each in event["remove"]:
                    self.acls.pop(tuple(each), None)
                for each in event["add"]:
                    self.acls[tuple(each)] = None
            case "epoch":
                self.epoch = event["epoch"]
            case operation:
                raise UnknownFormatError(
                    f'the journal of topics holds an unknown event "{operation}"',
                    hint="it was written by a newer Tailrace; use that one",
                )
        self.number = event["n"]

    def content(self) -> dict[str, Any]:
        """All of it, to be compared."""
        event = self.snapshot_event()
        event["topics"] = {each["name"]: each for each in event["topics"]}
        event["quotas"] = sorted(event["quotas"], key=str)
        event["acls"] = set(map(tuple, event.get("acls", ())))
        return event

    def snapshot_event(self) -> dict[str, Any]:
        some = {
            "users": self.users,
            "tokens": self.tokens,
            "acls": [list(each) for each in self.acls],
        }
        return {
            "op": "snapshot",
            "n": self.number,
            "format": FORMAT,
            "epoch": self.epoch,
            "broker": self.broker,
            "quotas": self.quotas,
            **{name: value for name, value in some.items() if value},
            "topics": [entry.as_json() for entry in self.topics.values()],
        }


@dataclass(slots=True)
class _Found:
    """What one directory says."""

    path: Path
    snapshot: dict[str, Any] | None = None
    events: dict[int, dict[str, Any]] = field(default_factory=dict)
    size: int = 0
    """Bytes of the journal that are whole."""
    lines: int = 0
    broken_at: int | None = None
    """Where a line is damaged that is not the last."""

    def alone(self) -> Catalogue | None:
        """What this directory says without the others; None if lines are missing."""
        catalogue = Catalogue()
        if self.snapshot is not None:
            catalogue.apply(self.snapshot)
        for number in sorted(self.events):
            if number > catalogue.number:
                if number != catalogue.number + 1:
                    return None
                catalogue.apply(self.events[number])
        return None if self.broken_at is not None else catalogue


class Journal:
    """The journal in all data directories that are there.

    A directory that missed a line (its disk was full, its sync failed) is behind: it gets a
    snapshot of everything before its next line, so that no journal has a hole. On opening,
    the directories complete each other; what none of them has is an error, and so is what
    two of them tell differently.
    """

    def __init__(self, directories: Sequence[Path], files: Files = FILES) -> None:
        self._files = files
        self._directories = [directory / "metadata" for directory in directories]
        self._descriptors: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}
        self._behind: set[Path] = set()
        self._lines = 0
        self.on_failed_sync: Callable[[Path], None] | None = None
        """Called with the directory of a journal whose sync failed."""
        self.catalogue = Catalogue()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def append(self, event: dict[str, Any]) -> None:
        """Have `event` on disk in every directory that takes it, then take effect.

        Raises `OSError` if no directory took it; then nothing has changed.
        """
        event = {**event, "n": self.catalogue.number + 1}
        line = _encode(event)
        kept = 0
        failure: OSError | None = None
        for directory in self._directories:
            try:
                if directory in self._behind:
                    self._catch_up(directory)
                self._files.write_all(self._descriptors[directory], line, self._sizes[directory])
                self._sync(directory)
            except OSError as error:
                failure = error
                self._fall_behind(directory, error)
                continue
            self._sizes[directory] += len(line)
            kept += 1
        if not kept and failure is not None:
            # The line may be on a disk all the same: nothing else may bear its number.
            self.catalogue.number += 1
            raise failure
        self.catalogue.apply(event)
        self._lines += 1
        if self._lines >= _LINES_BEFORE_SNAPSHOT:
            self.snapshot()

    def snapshot(self) -> None:
        """Write everything as one line and begin the journal anew."""
        for directory in self._directories:
            try:
                self._catch_up(directory)
            except OSError as error:
                self._fall_behind(directory, error)
        if not self._behind:
            self._lines = 0

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            self._files.close(descriptor)
        self._descriptors = {}

    def _sync(self, directory: Path) -> None:
        try:
            self._files.sync_data(self._descriptors[directory])
        except OSError:
            if self.on_failed_sync is not None:
                self.on_failed_sync(directory)
            raise

    def _fall_behind(self, directory: Path, error: OSError) -> None:
        if directory not in self._behind:
            log.error(
                "the journal of topics misses a line",
                extra={"path": str(directory), "error": str(error)},
            )
        self._behind.add(directory)

    def _catch_up(self, directory: Path) -> None:
        """Have everything so far in one directory, as a snapshot. Its old journal is cut off
        only then: until it is, the lines that the snapshot covers are skipped by number."""
        # A refused line may stand at the journal's end with a number of its own: first away
        # with it, or a crash before the end of this would bring it back behind the snapshot.
        self._files.truncate(self._descriptors[directory], self._sizes[directory])
        self._files.write_whole(directory / "snapshot", _encode(self.catalogue.snapshot_event()))
        self._files.truncate(self._descriptors[directory], 0)
        self._sync(directory)
        self._sizes[directory] = 0
        self._behind.discard(directory)

    def _open(self) -> None:
        found: list[_Found] = []
        for directory in self._directories:
            if not directory.exists():
                self._files.make_directory(directory)
                self._files.sync_directory(directory.parent)
            each = self._read(directory)
            found.append(each)
            self._sizes[directory] = each.size
            self._lines = max(self._lines, each.lines)
        self.catalogue = _joined(found)
        for each in found:
            alone = each.alone()
            if alone is None or alone.number < self.catalogue.number:
                self._behind.add(each.path)
            elif len(found) > 1 and alone.content() != self.catalogue.content():
                raise MetadataDamagedError(
                    "two journals of topics contradict each other",
                    detail=f"{each.path} and another, at number {alone.number}",
                    hint="start with the data directories of one log only, or restore one of them",
                )
        for directory in self._directories:
            path = directory / "journal"
            fresh = not path.exists()
            descriptor = self._files.open(path, WRITE)
            self._descriptors[directory] = descriptor
            if fresh:
                self._files.sync_directory(directory)
            elif os.fstat(descriptor).st_size > self._sizes[directory]:
                self._files.truncate(descriptor, self._sizes[directory])
        for directory in sorted(self._behind):
            # A directory that is new, or was away, learns what it missed.
            try:
                self._catch_up(directory)
            except OSError as error:
                log.warning(
                    "the journal of topics stays behind",
                    extra={"path": str(directory), "error": str(error)},
                )

    def _read(self, directory: Path) -> _Found:
        found = _Found(directory)
        snapshot = directory / "snapshot"
        if snapshot.exists():
            event = _decode(snapshot.read_bytes().rstrip(b"\n"))
            if event is None:
                raise _damaged(snapshot, 0)
            if event.get("format") != FORMAT:
                raise UnknownFormatError(
                    f"{snapshot} has format {event.get('format')}",
                    hint="it was written by a newer Tailrace; use that one",
                )
            found.snapshot = event
        path = directory / "journal"
        data = path.read_bytes() if path.exists() else b""
        position, torn = 0, None
        while position < len(data):
            end = data.find(b"\n", position)
            event = _decode(data[position:end]) if end >= 0 else None
            if event is not None:
                if torn is not None:
                    found.broken_at, torn = torn, None
                found.events[event["n"]] = event
                found.lines += 1
                found.size = end + 1
            elif torn is None:
                torn = position
            if end < 0:
                break
            position = end + 1
        if torn is not None:
            log.warning(
                "torn line of the journal dropped", extra={"path": str(path), "position": torn}
            )
        return found


def _joined(found: list[_Found]) -> Catalogue:
    """What all directories say together; raises `MetadataDamagedError` if that is not enough,
    or not one thing."""
    catalogue = Catalogue()
    snapshots = [each.snapshot for each in found if each.snapshot is not None]
    if snapshots:
        catalogue.apply(max(snapshots, key=lambda each: int(each["n"])))
    events: dict[int, tuple[dict[str, Any], Path]] = {}
    for each in found:
        for number, event in each.events.items():
            if number <= catalogue.number:
                continue
            known, path = events.setdefault(number, (event, each.path))
            if known != event:
                raise MetadataDamagedError(
                    "two journals of topics contradict each other",
                    detail=f"{path} and {each.path}, at number {number}",
                    hint="start with the data directories of one log only, or restore one of them",
                )
    for number in sorted(events):
        if number != catalogue.number + 1:
            broken = next((each for each in found if each.broken_at is not None), None)
            if broken is not None:
                raise _damaged(broken.path / "journal", broken.broken_at or 0)
            raise _damaged(
                events[number][1] / "journal", 0, f"number {catalogue.number + 1} is missing"
            )
        catalogue.apply(events[number][0])
    return catalogue


def _damaged(path: Path, position: int, detail: str = "") -> MetadataDamagedError:
    return MetadataDamagedError(
        "the journal of topics is damaged",
        detail=f"{path}, {detail or f'byte {position}'}",
        hint="restore it from a copy or from another data directory; segments are untouched",
    )


def _encode(event: dict[str, Any]) -> bytes:
    body = orjson.dumps(event)
    return b"%08x %b\n" % (crc32c(body), body)


def _decode(line: bytes) -> dict[str, Any] | None:
    if len(line) < 10 or line[8:9] != b" ":
        return None
    body = line[9:]
    try:
        if int(line[:8], 16) != crc32c(body):
            return None
        value = orjson.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "op" in value and "n" in value else None
