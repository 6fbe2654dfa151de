"""The journal of topics: names, ids, places of partitions, settings.

`metadata/journal` in every data directory, one line an event: eight hex digits of CRC-32C,
a space, a JSON object with a rising number `n`. Each line is synced before its effect can
be seen. `metadata/snapshot` holds one such line with everything up to its `n` and lets the
journal begin anew. A torn last line never took effect and is dropped; damage before the
end is an error that names the file, because topics could be missing.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator, Sequence
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
                self.topics = {each["name"]: TopicEntry.from_json(each) for each in event["topics"]}
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
            case "epoch":
                self.epoch = event["epoch"]
            case operation:
                raise UnknownFormatError(
                    f'the journal of topics holds an unknown event "{operation}"',
                    hint="it was written by a newer Tailrace; use that one",
                )
        self.number = event["n"]

    def snapshot_event(self) -> dict[str, Any]:
        return {
            "op": "snapshot",
            "n": self.number,
            "format": FORMAT,
            "epoch": self.epoch,
            "broker": self.broker,
            "quotas": self.quotas,
            "topics": [entry.as_json() for entry in self.topics.values()],
        }


class Journal:
    """The journal in all data directories that are there; the newest one counts."""

    def __init__(self, directories: Sequence[Path], files: Files = FILES) -> None:
        self._files = files
        self._directories = [directory / "metadata" for directory in directories]
        self._descriptors: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}
        self._lines = 0
        self.catalogue = Catalogue()
        self._open()

    def append(self, event: dict[str, Any]) -> None:
        """Have `event` on disk in every directory, then take effect.

        Raises `OSError` if no directory took it; then nothing has changed.
        """
        event = {**event, "n": self.catalogue.number + 1}
        line = _encode(event)
        kept = 0
        failure: OSError | None = None
        for directory in self._directories:
            descriptor = self._descriptors[directory]
            try:
                self._files.write_all(descriptor, line, self._sizes[directory])
                self._files.sync_data(descriptor)
            except OSError as error:
                failure = error
                self._files.truncate(descriptor, self._sizes[directory])
                continue
            self._sizes[directory] += len(line)
            kept += 1
        if not kept and failure is not None:
            raise failure
        self.catalogue.apply(event)
        self._lines += 1
        if self._lines >= _LINES_BEFORE_SNAPSHOT:
            self.snapshot()

    def snapshot(self) -> None:
        """Write everything as one line and begin the journal anew."""
        line = _encode(self.catalogue.snapshot_event())
        for directory in self._directories:
            self._files.write_whole(directory / "snapshot", line)
            # Lines of the old journal that the snapshot covers are skipped by number.
            self._files.truncate(self._descriptors[directory], 0)
            self._files.sync_data(self._descriptors[directory])
            self._sizes[directory] = 0
        self._lines = 0

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            self._files.close(descriptor)
        self._descriptors = {}

    def _open(self) -> None:
        best = Catalogue()
        behind: list[Path] = []
        found: list[tuple[Path, Catalogue]] = []
        for directory in self._directories:
            if not directory.exists():
                self._files.make_directory(directory)
                self._files.sync_directory(directory.parent)
            catalogue, size, lines = self._read(directory)
            self._sizes[directory] = size
            self._lines = max(self._lines, lines)
            found.append((directory, catalogue))
            if catalogue.number > best.number:
                best = catalogue
            path = directory / "journal"
            fresh = not path.exists()
            descriptor = self._files.open(path, WRITE)
            self._descriptors[directory] = descriptor
            if fresh:
                self._files.sync_directory(directory)
            elif os.fstat(descriptor).st_size > size:
                self._files.truncate(descriptor, size)
        self.catalogue = best
        behind = [directory for directory, each in found if each.number < best.number]
        if behind:
            # A directory that is new, or was away, learns what it missed.
            self.snapshot()

    def _read(self, directory: Path) -> tuple[Catalogue, int, int]:
        """(what is said there, bytes of the journal that are whole, lines)."""
        catalogue = Catalogue()
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
            catalogue.apply(event)
        path = directory / "journal"
        data = path.read_bytes() if path.exists() else b""
        position = lines = 0
        while position < len(data):
            end = data.find(b"\n", position)
            event = _decode(data[position:end]) if end >= 0 else None
            if event is None:
                rest = data[end + 1 :] if end >= 0 else b""
                if any(_decode(line) is not None for line in rest.split(b"\n")):
                    raise _damaged(path, position)
                log.warning(
                    "torn line of the journal dropped",
                    extra={"path": str(path), "position": position},
                )
                break
            if event["n"] > catalogue.number:
                catalogue.apply(event)
            position = end + 1
            lines += 1
        return catalogue, position, lines


def _damaged(path: Path, position: int) -> MetadataDamagedError:
    return MetadataDamagedError(
        "the journal of topics is damaged",
        detail=f"{path}, byte {position}",
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
