"""Data directories: their identity, their lock, the notes of a clean stop.

`meta.properties` names the cluster and the directory, so that a disk that comes back
under another path is known again and a foreign one refused. `.lock` is held by the one
process that has the directory open. `clean-stop` is written last by a clean stop and
removed first by the next start: if it is there, no segment need be read. `boot-id` holds
the kernel's boot id of the last start: if it is still the same after a crash, everything
written is there, synced or not.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from tailrace.log.checkpoints import Offsets, read_offsets, read_properties, write_properties
from tailrace.log.errors import DirectoryLockedError, StorageError, UnknownFormatError
from tailrace.log.files import FILES, Files
from tailrace.log.recovery import CleanState
from tailrace.records.checksum import crc32c

FORMAT = "1"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
CLEAN_STOP = "clean-stop"
BOOT_ID = "boot-id"


@dataclass(slots=True)
class DataDirectory:
    """One data directory, locked."""

    path: Path
    id: str
    cluster_id: str
    lock: int
    failure: StorageError | None = None
    clean: dict[tuple[str, int], CleanState] | None = None
    """What the clean stop before this start noted; None after a crash."""
    same_boot: bool = False
    """Whether the machine has run on since the last start: no write can be missing."""
    recovery_points: Offsets | None = None
    log_starts: Offsets | None = None
    cleaned: Offsets | None = None

    def close(self) -> None:
        os.close(self.lock)


def short_id(number: uuid.UUID) -> str:
    """22 characters, as Kafka writes ids."""
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def random_id() -> uuid.UUID:
    """A new id whose short form never begins with "-", as Kafka's: tools take it for an option."""
    while short_id(found := uuid.uuid4()).startswith("-"):
        pass
    return found


def open_directory(path: Path, cluster_id: str | None, files: Files = FILES) -> DataDirectory:
    """Lock `path`, making it if need be, and read what the last stop left.

    Raises `DirectoryLockedError`, `UnknownFormatError`, or `OSError` if the disk is gone.
    """
    path.mkdir(parents=True, exist_ok=True)
    lock = _lock(path)
    try:
        properties = read_properties(path / "meta.properties")
        if not properties:
            properties = {
                "version": "1",
                "cluster.id": cluster_id or short_id(random_id()),
                "directory.id": short_id(random_id()),
                "tailrace.format": FORMAT,
            }
            write_properties(path / "meta.properties", properties, files)
        written = properties.get("tailrace.format")
        if written != FORMAT:
            raise UnknownFormatError(
                f"{path} has format {written or 'of another program'}",
                detail=f"this Tailrace knows format {FORMAT}",
                hint="use the version that wrote it, or another directory",
            )
        directory = DataDirectory(path, properties["directory.id"], properties["cluster.id"], lock)
        directory.clean = _take_clean_stop(path, files)
        directory.same_boot = _note_boot(path)
        directory.recovery_points = read_offsets(path / RECOVERY_POINTS)
        directory.log_starts = read_offsets(path / LOG_STARTS)
        directory.cleaned = read_offsets(path / CLEANED)
    except BaseException:
        os.close(lock)
        raise
    return directory


def write_clean_stop(
    directory: DataDirectory, states: Mapping[tuple[str, int], CleanState], files: Files
) -> None:
    """Note that everything is on disk, and where it ends."""
    body = orjson.dumps([[topic, index, asdict(state)] for (topic, index), state in states.items()])
    files.write_whole(directory.path / CLEAN_STOP, b"%08x %b" % (crc32c(body), body))


def _take_clean_stop(path: Path, files: Files) -> dict[tuple[str, int], CleanState] | None:
    note = path / CLEAN_STOP
    try:
        data = note.read_bytes()
    except FileNotFoundError:
        return None
    # Gone before anything is written: a crash from now on is a crash.
    files.remove(note)
    files.sync_directory(path)
    try:
        if int(data[:8], 16) != crc32c(data[9:]):
            return None
        rows = orjson.loads(data[9:])
        return {(topic, index): CleanState(**state) for topic, index, state in rows}
    except (ValueError, TypeError):
        return None


def _note_boot(path: Path) -> bool:
    """Note this boot of the machine; whether the last start was in it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            now = file.read().strip()
    except OSError:
        return False
    note = path / BOOT_ID
    try:
        before = note.read_text("ascii", errors="replace").strip()
    except FileNotFoundError:
        before = ""
    if before != now:
        try:
            note.write_text(now + "\n", "ascii")
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise  # a full disk can still be read from
    return before == now


def _lock(path: Path) -> int:
    lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise DirectoryLockedError(
            f"{path} is in use", detail=f"process {owner or 'unknown'} has it open"
        ) from None
    try:
        # As wide as any: the file need not grow on a full disk.
        os.pwrite(lock, b"%-20d\n" % os.getpid(), 0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            os.close(lock)
            raise
    return lock
