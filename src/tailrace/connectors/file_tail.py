"""Log files, followed: each line, or each record of several lines, is a record. Every line once.

A file is known by device, inode and its first bytes (up to 256), so it is the same after a rename, and
another one after its inode was used again. Its offset is the end of the last whole line, with those
first bytes and the ones before the end: where they are not in the file any more it was truncated, and
is read from its start. A file that was rotated away is read until it is quiet. A copy or a
`.gz` of a file that was read, named as that one with a suffix, is read from where that one was.
"""

from __future__ import annotations

import base64
import codecs
import glob
import gzip
import hashlib
import io
import os
import re
import stat
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from tailrace import __version__
from tailrace.clock import SYSTEM
from tailrace.connectors.base import Offsets, Settings, SourceConnector, SourceRecord, SourceTask
from tailrace.connectors.config import Config, Setting
from tailrace.connectors.lines import Joiner, LinePattern, last_end, newline_of, split

HEAD_BYTES = 256
BEFORE_BYTES = 64
_CHUNK_BYTES = 1 << 20
_GONE_WITH_NUMBERS = re.compile(r"(?:[._-]?\d+)+|\.(?:gz|old|bak)\b")
_ROTATED = re.compile(r"(?:[._-]\d[\d._-]*)?(?:\.(?:gz|old|bak))?$")
_TEXT = {"type": "string", "optional": False}


def _encoding(value: object) -> str | None:
    try:
        codecs.lookup(str(value))
    except LookupError:
        return "there is no such encoding"
    return None


def _pattern(value: object) -> str | None:
    if not value:
        return None
    try:
        LinePattern(str(value))
    except ValueError as error:
        return str(error)
    return None


class FileTail(SourceConnector):
    """Follows the files of one or more globs. Tasks share them by name."""

    version = __version__
    defaults = {"value.converter": "string"}
    config = Config(
        Setting("path", list, required=True, help="Globs of the files to follow, with commas; ** is any directory below."),
        Setting("topic", required=True, help="The topic to write to; the key is the file's path, so that a file stays in order."),
        Setting("encoding", default="utf-8", check=_encoding, importance="medium", help="The encoding of the files. Bytes that are no UTF-8 are passed on as they are."),
        Setting("multiline.pattern", default="", check=_pattern, importance="medium", help="A pattern, found in the first 512 characters of a line, that tells records of several lines."),
        Setting("multiline.match", default="start", choices=("start", "continue"), importance="medium", help="start: the pattern is found in the first line of each record; continue: in every other."),
        Setting("multiline.timeout.ms", int, default=2000, least=1, importance="low", help="After how long without another line the last record counts as whole."),
        Setting("multiline.max.lines", int, default=1000, least=1, importance="low", help="A record of more lines ends there."),
        Setting("line.max.bytes", int, default=900_000, least=64, importance="low", help="A longer line becomes several records, each but the first with the header tailrace.continued."),
        Setting("batch.bytes", int, default=_CHUNK_BYTES, least=1024, importance="low", help="How much is read for a transaction."),
        Setting("start", default="beginning", choices=("beginning", "end"), importance="medium", help="Where files begin that are there when the connector first runs."),
        Setting("scan.interval.ms", int, default=1000, least=10, importance="low", help="How often new and rotated files are looked for."),
        Setting("quiet.ms", int, default=5000, least=10, importance="low", help="After how long without another line a file that was rotated away counts as read."),
        Setting("task.number", int, default=0, importance="low", help="Set for each task."),
        Setting("task.count", int, default=1, importance="low", help="Set for each task."),
    )  # fmt: skip

    def tasks(self, settings: Settings, most: int) -> list[Mapping[str, str]]:
        return [{"task.number": str(n), "task.count": str(most)} for n in range(most)]

    class Task(SourceTask):
        def start(self, settings: Settings, offsets: Offsets) -> None:
            self._tail = _Tail(settings, offsets)

        def poll(self) -> Sequence[SourceRecord] | None:
            return self._tail.poll()

        def stop(self) -> None:
            if hasattr(self, "_tail"):
                self._tail.close()


def family(path: str) -> str:
    """What files have in common that one task must read: more than those rotated from one."""
    directory, name = os.path.split(path)
    return os.path.join(directory, _GONE_WITH_NUMBERS.sub("", name))


def base(path: str) -> str:
    """The name of a file before it was rotated: without `.1`, `-20261119`, `.gz` at its end."""
    directory, name = os.path.split(path)
    return os.path.join(directory, _ROTATED.sub("", name) or name)


@dataclass(slots=True)
class Known:
    """How far a file was read: what an offset says."""

    position: int
    head: bytes
    before: bytes
    path: str
    at: int = 0  # when that was, in milliseconds since 1970

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Known:
        return cls(
            int(offset["position"]),
            base64.b64decode(offset.get("head", "")),
            base64.b64decode(offset.get("before", "")),
            str(offset.get("path", "")),
            int(offset.get("at", 0)),
        )

    def offset(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "head": base64.b64encode(self.head).decode(),
            "before": base64.b64encode(self.before).decode(),
            "path": self.path,
            "at": SYSTEM.wall_ms(),
        }

    def is_in(self, file: BinaryIO) -> bool:
        """Whether a file has what was read, as far as it was read."""
        head = _read_at(file, 0, len(self.head))
        if head != self.head:
            return False
        start = self.position - len(self.before)
        return _read_at(file, start, len(self.before)) == self.before


@dataclass(slots=True)
class Followed:
    """One open file."""

    path: str
    name: str  # the path it was first seen at: its records' key
    partition: dict[str, Any]
    file: BinaryIO
    known: Known
    packed: bool
    joiner: Joiner
    kept: bytes = b""  # read, but no whole line
    reached: int = 0  # how much was read of it, kept and held lines included
    gone: bool = False  # it is not at its path any more
    quiet_since: float = 0.0
    continuing: bool = False  # the last record was a piece of a line
    done: bool = False

    def offset(self) -> dict[str, Any]:
        return replace(self.known, path=self.name).offset()


class _Tail:
    """All files of one task."""

    def __init__(self, settings: Settings, offsets: Offsets) -> None:
        self._followed: dict[tuple[int, int], Followed] = {}
        self._settings = settings
        self._topic = str(settings["topic"])
        self._encoding = codecs.lookup(str(settings["encoding"])).name
        self._newline = newline_of(self._encoding)
        self._offsets = offsets
        self._stored = {
            (one["device"], one["inode"]): Known.of(offset)
            for one, offset in offsets.listed()
            if "device" in one and "inode" in one
        }
        self._finished: dict[
            tuple[int, int], tuple[int, int]
        ] = {}  # size and time of the last change
        self._due: list[SourceRecord] = []  # offsets of files that have nothing new for us
        self._held: dict[tuple[int, int], tuple[int, float]] = {}
        self._scan_at = 0.0
        self._at_end = settings["start"] == "end" and not self._stored
        self._turn = 0
        self._here: set[tuple[int, int]] = set()
        self._looked_at = SYSTEM.wall_ms()
        self._before: dict[str, int] | None = self._read_before()

    def close(self) -> None:
        for each in self._followed.values():
            each.file.close()

    def __del__(self) -> None:
        self.close()  # a test that kills a task only forgets it

    # Which files ---------------------------------------------------------------------

    def _mine(self, path: str) -> bool:
        count: int = self._settings["task.count"]
        digest = hashlib.blake2b(os.fsencode(family(path)), digest_size=8).digest()
        number: int = self._settings["task.number"]
        return int.from_bytes(digest, "big") % count == number

    def _find_rotated(self, since: Mapping[str, int]) -> None:
        """Files that were renamed out of the globs unseen: those we know and have not read to their
        end, and those of the same family that were written to after we last looked (`since`)."""
        for directory in {os.path.dirname(name) for name in since}:
            found: list[tuple[int, str, os.stat_result]] = []
            with suppress(OSError), os.scandir(directory or ".") as entries:
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            path = os.path.join(directory, entry.name)
                            found.append((status.st_mtime_ns, path, status))
            for changed, path, status in sorted(found, key=lambda one: one[0]):
                own, key = base(path), (status.st_dev, status.st_ino)
                known = self._stored.get(key)
                if own not in since or key in self._followed or key in self._here:
                    continue
                unread = known is not None and status.st_size > known.position
                unseen = known is None and changed // 1_000_000 > since[own]
                if (unread or unseen) and not path.endswith(".gz"):
                    with suppress(OSError):
                        self._take(path, status, gone=True)

    def _read_before(self) -> dict[str, int]:
        """When each family of files was last read, by the offsets."""
        found: dict[str, int] = {}
        for known in self._stored.values():
            if known.path and self._mine(known.path):
                own = base(known.path)
                found[own] = max(found.get(own, 0), known.at)
        return found

    def _scan(self) -> None:
        """Look for files that came, and for those that went."""
        now = SYSTEM.monotonic()
        if now < self._scan_at:
            return
        self._scan_at = now + self._settings["scan.interval.ms"] / 1000
        looked_at, self._looked_at = self._looked_at, SYSTEM.wall_ms()
        here: dict[tuple[int, int], str] = {}
        for pattern in self._settings["path"]:
            for path in sorted(glob.glob(pattern, recursive=True)):
                with suppress(OSError):
                    status = os.stat(path)
                    if not stat.S_ISREG(status.st_mode) or not self._mine(path):
                        continue
                    key = (status.st_dev, status.st_ino)
                    here.setdefault(key, path)
        self._here = set(here)
        since, self._before = self._before or {}, None
        for key, followed in self._followed.items():
            path_now = here.get(key)
            moved = path_now != followed.path
            if moved and not followed.gone:
                followed.quiet_since = now
                since.setdefault(base(followed.path), looked_at)
            # Renamed within the globs, it may still be written to for a while: read on until quiet.
            followed.gone = moved
        if since:
            self._find_rotated(since)
        for key, path in here.items():
            if key not in self._followed:
                with suppress(OSError):
                    self._take(path, os.stat(path), gone=False)
        self._at_end = False
        for key in set(self._finished) - set(here):
            del self._finished[key]

    def _take(self, path: str, status: os.stat_result, *, gone: bool) -> None:
        key = (status.st_dev, status.st_ino)
        if status.st_size == 0 or self._finished.get(key) == _as_it_is(status):
            return
        packed = path.endswith(".gz")
        file: BinaryIO = _unpacked(path) if packed else open(path, "rb", buffering=0)  # noqa: SIM115
        try:
            known = self._recognise(key, path, file, status, packed)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            file.close()
            return  # it is being written: the next look may find it whole
        except BaseException:
            file.close()
            raise
        if known is None:
            file.close()
            return
        if self._at_end and not gone and known.position == 0 and not packed:
            known = self._end_of(file, status.st_size, path)
        partition = {"device": key[0], "inode": key[1]}
        followed = Followed(
            path,
            self._name(known, path, gone),
            partition,
            file,
            known,
            packed,
            self._joiner(),
            reached=known.position,
        )
        followed.quiet_since = SYSTEM.monotonic()
        followed.gone = gone
        if packed:
            file.seek(known.position)
        self._followed[key] = followed
        self._finished.pop(key, None)
        stored = self._stored.get(key)
        if known.position and (stored is None or stored.head != known.head or stored.position != known.position):  # fmt: skip
            # Known from another: that one's offset may be overwritten when its inode is used again.
            self._due.append(SourceRecord(partition, followed.offset(), ""))

    def _name(self, known: Known, path: str, gone: bool) -> str:
        """The key of its records: those of a rotated file go on under the name it had."""
        if known.position and known.path:
            return known.path
        if gone:
            own = base(path)
            others = (one for one in self._stored.values() if base(one.path) == own)
            return max(others, key=lambda one: one.at, default=known).path or path
        return path

    def _end_of(self, file: BinaryIO, size: int, path: str) -> Known:
        """Behind the last whole line of a file."""
        start = max(0, size - _CHUNK_BYTES)
        data = _read_at(file, start, size - start)
        end = start + last_end(data, self._newline)
        known = Known(end, b"", b"", path)
        _remember(known, file)
        return known

    def _recognise(
        self, key: tuple[int, int], path: str, file: BinaryIO, status: os.stat_result, packed: bool
    ) -> Known | None:
        """How far this file was read; None: it is not clear yet."""
        stored = self._stored.get(key)
        if stored is not None and not packed and stored.is_in(file):
            return Known(stored.position, stored.head, stored.before, stored.path or path)
        own = base(path)
        if path == own:
            return Known(0, b"", b"", path)  # what is written to now is nobody's copy
        # A copy of a file that was read: it has what was read of that one, where it was.
        others = [each.known for each in self._followed.values()] + list(self._stored.values())
        unfinished = False
        for other in sorted(others, key=lambda one: -one.position):
            if not other.position or base(other.path) != own:
                continue
            if other.is_in(file):
                live = self._live(other)
                if live is None or packed or live.gone or _shrunk(live):
                    return Known(other.position, other.head, other.before, path)
                # Both are there: a copy is being made, or is a mere copy.
                return None if self._is_read(key, file, status, live) else self._waited(key, status, path)  # fmt: skip
            begins = len(other.head) == HEAD_BYTES and _read_at(file, 0, HEAD_BYTES) == other.head
            unfinished = unfinished or begins
        if unfinished and not packed:
            # It begins like one that was read further: perhaps its copy is not whole yet.
            return self._waited(key, status, path)
        return Known(0, b"", b"", path)

    def _waited(self, key: tuple[int, int], status: os.stat_result, path: str) -> Known | None:
        """A file that may be the copy of another is one of its own once it stays as it is."""
        before = self._held.get(key)
        now = SYSTEM.monotonic()
        if before is None or before[0] != status.st_size:
            self._held[key] = (status.st_size, now)
            return None
        if now - before[1] < self._settings["quiet.ms"] / 1000:
            return None
        del self._held[key]
        return Known(0, b"", b"", path)

    def _live(self, known: Known) -> Followed | None:
        return next((each for each in self._followed.values() if each.known is known), None)

    def _is_read(
        self, key: tuple[int, int], file: BinaryIO, status: os.stat_result, live: Followed
    ) -> bool:
        """Whether a copy has nothing but what was read from the original."""
        size = status.st_size
        start = max(0, size - BEFORE_BYTES)
        before = _read_at(file, start, size - start)
        if live.known.position < size or before != _read_at(live.file, start, size - start):
            return False
        known = Known(size, _read_at(file, 0, min(HEAD_BYTES, size)), before, live.name)
        self._finished[key] = _as_it_is(status)
        self._stored[key] = known
        self._held.pop(key, None)
        self._due.append(SourceRecord({"device": key[0], "inode": key[1]}, known.offset(), ""))
        return True

    # Reading -------------------------------------------------------------------------

    def poll(self) -> Sequence[SourceRecord] | None:
        self._scan()
        if self._due:
            due, self._due = self._due, []
            return due
        # What was rotated away comes first, the oldest before the others: lines stay in order.
        gone = [one for one in self._followed.items() if one[1].gone]
        live = [one for one in self._followed.items() if not one[1].gone]
        turn = self._turn % len(live) if live else 0
        for key, followed in [*gone, *live[turn:], *live[:turn]]:
            records = self._read(key, followed)
            if records:
                self._turn += 1
                return records
        return None

    def _read(self, key: tuple[int, int], followed: Followed) -> list[SourceRecord] | None:
        now = SYSTEM.monotonic()
        try:
            if not followed.packed and _was_truncated(followed):
                self._begin_again(followed)
            data = self._more(followed)
        except (OSError, EOFError, zlib.error):
            data = b""
            followed.done = True
        ending = False
        if data:
            followed.quiet_since = now
            followed.reached += len(data)
            followed.kept += data
        else:
            quiet = now - followed.quiet_since
            if followed.done or followed.packed or (followed.gone and quiet > self._settings["quiet.ms"] / 1000):  # fmt: skip
                ending = True
            elif not (followed.joiner.waiting and quiet > self._settings["multiline.timeout.ms"] / 1000):  # fmt: skip
                return None
        records = self._lines(followed, ending=ending, quiet=not data)
        if ending:
            self._followed.pop(key, None)
            self._stored[key] = followed.known
            with suppress(OSError):
                self._finished[key] = _as_it_is(os.fstat(followed.file.fileno()))
            followed.file.close()
        return records

    def _more(self, followed: Followed) -> bytes:
        size = self._settings["batch.bytes"]
        if followed.packed:
            return followed.file.read(size) or b""
        return _read_at(followed.file, followed.reached, size)

    def _begin_again(self, followed: Followed) -> None:
        followed.known = Known(0, b"", b"", followed.name)
        followed.kept, followed.reached = b"", 0
        followed.joiner, followed.continuing = self._joiner(), False
        followed.quiet_since = SYSTEM.monotonic()
        # A copy of what was there before may have been waiting for this.
        self._scan_at = 0.0

    def _joiner(self) -> Joiner:
        return Joiner(
            str(self._settings["multiline.pattern"]),
            starts=self._settings["multiline.match"] == "start",
            most_lines=self._settings["multiline.max.lines"],
            encoding=self._encoding,
        )

    # Lines ---------------------------------------------------------------------------

    def _lines(self, followed: Followed, *, ending: bool, quiet: bool) -> list[SourceRecord] | None:
        """The records in what was read; the file's position moves behind them."""
        kept, longest = followed.kept, self._settings["line.max.bytes"]
        end = len(kept) if ending else last_end(kept, self._newline)
        piece = not end and len(kept) > longest
        if piece:
            end = self._cut(kept, longest)
        whole, followed.kept = kept[:end], kept[end:]
        if followed.joiner.active and not piece:
            consumed, values = self._joined(followed, whole, flush=ending or quiet)
        else:
            consumed, values = whole, self._decoded(whole, followed.known.position)
        if not consumed:
            return None
        continued = followed.continuing
        followed.continuing = piece
        self._moved(followed, consumed)
        return self._records(followed, values, longest, continued)

    def _joined(
        self, followed: Followed, whole: bytes, *, flush: bool
    ) -> tuple[bytes, list[str | bytes]]:
        joiner, newline = followed.joiner, self._newline
        lines = split(whole, newline) if whole else []
        if lines and not lines[-1]:
            lines.pop()
        done = [record for line in lines if (record := joiner.add(line)) is not None]
        if flush and (last := joiner.flush()) is not None:
            done.append(last)
        raw = [newline.join(record) for record in done]
        consumed = newline.join(raw) + newline if raw else b""
        at_start = followed.known.position == 0
        if flush and whole and not whole.endswith(newline):
            consumed = consumed[: -len(newline)]  # the last line of a file without an end
        return consumed, [self._text(one, at_start and not n) for n, one in enumerate(raw)]

    def _decoded(self, data: bytes, position: int) -> list[str | bytes]:
        """Whole lines, all decoded at once if they can be."""
        newline = self._newline
        if data.endswith(newline):
            data = data[: -len(newline)]
        elif not data:
            return []
        try:
            text = data.decode(self._encoding)
        except UnicodeDecodeError:
            parts = split(data, newline)
            return [self._text(one, position == 0 and not n) for n, one in enumerate(parts)]
        if position == 0 and text.startswith("\ufeff"):
            text = text[1:]
        if "\r" in text:
            return [line.removesuffix("\r") for line in text.split("\n")]
        return list(text.split("\n"))

    def _text(self, line: bytes, first: bool) -> str | bytes:
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError:
            if self._encoding == "utf-8":
                return line.removesuffix(b"\r")
            text = line.decode(self._encoding, "replace")
        if first and text.startswith("\ufeff"):
            text = text[1:]
        return text.replace("\r\n", "\n").removesuffix("\r")

    def _cut(self, data: bytes, most: int) -> int:
        """Where a line that is too long is cut: between two characters."""
        end = most - most % len(self._newline)
        # "utf-16" without a mark, as behind the first piece, means the machine's own order.
        named = f"{self._encoding}-le" if self._encoding in ("utf-16", "utf-32") else self._encoding
        decoder = codecs.getincrementaldecoder(named)("replace")
        decoder.decode(data[:end])
        begun = len(decoder.getstate()[0])  # bytes of a character whose end is missing
        return end - begun if begun < end else end

    def _moved(self, followed: Followed, consumed: bytes) -> None:
        """The position goes behind what became records."""
        known = followed.known
        head = known.head
        if len(head) < HEAD_BYTES and len(head) == known.position:
            head = (head + consumed)[:HEAD_BYTES]
        before = (known.before + consumed)[-BEFORE_BYTES:]
        followed.known = Known(known.position + len(consumed), head, before, followed.name)

    def _records(
        self, followed: Followed, values: list[str | bytes], longest: int, continued: bool
    ) -> list[SourceRecord]:
        # One offset for all: they are one transaction.
        offset, partition = followed.offset(), followed.partition
        topic, key = self._topic, followed.name
        if continued or max(map(len, values), default=0) * 4 > longest:
            rows = _pieces(values, longest, continued)
        else:
            rows = [(value, ()) for value in values]
        return [
            SourceRecord(partition, offset, topic, key, value, headers, None, None, None, _TEXT)
            for value, headers in rows
        ]


_Headers = tuple[tuple[str, str], ...]
_CONTINUED: _Headers = (("tailrace.continued", "true"),)


def _pieces(
    values: Sequence[str | bytes], longest: int, continued: bool
) -> list[tuple[str | bytes, _Headers]]:
    """Lines that are too long, in pieces."""
    found: list[tuple[str | bytes, _Headers]] = []
    for value in values:
        if len(value if isinstance(value, bytes) else value.encode("utf-8", "replace")) <= longest:
            found.append((value, _CONTINUED if continued else ()))
        else:
            step = longest // 4
            for start in range(0, len(value), step):
                more = continued or start > 0
                found.append((value[start : start + step], _CONTINUED if more else ()))
        continued = False
    return found


def _read_at(file: BinaryIO, start: int, count: int) -> bytes:
    if count <= 0:
        return b""
    if isinstance(file, io.FileIO):
        return os.pread(file.fileno(), count, start)
    file.seek(start)
    return file.read(count)


def _as_it_is(status: os.stat_result) -> tuple[int, int]:
    """What is another once a file was written to, or its inode has become another file's."""
    return status.st_size, status.st_mtime_ns


def _unpacked(path: str) -> BinaryIO:
    found: Any = gzip.open(path, "rb")  # noqa: SIM115
    return found  # type: ignore[no-any-return]


def _remember(known: Known, file: BinaryIO) -> None:
    known.head = _read_at(file, 0, min(HEAD_BYTES, known.position))
    start = max(0, known.position - BEFORE_BYTES)
    known.before = _read_at(file, start, known.position - start)


def _shrunk(followed: Followed) -> bool:
    return os.fstat(followed.file.fileno()).st_size < followed.known.position


def _was_truncated(followed: Followed) -> bool:
    size = os.fstat(followed.file.fileno()).st_size
    if size < followed.reached:
        return True
    return size > followed.reached and not followed.known.is_in(followed.file)
