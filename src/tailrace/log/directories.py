"""Data directories: their identity, their lock, the notes of a clean stop.

`meta.properties` names the cluster and the directory, so that a disk that comes back
under another path is known again and a foreign one refused. `.lock` is held by the one
process that has the directory open. `clean-stop` is written last by a clean stop and
removed first by the next start: if it is there, no segment need be read. `boot-id` holds
the kernel's boot id of the last start: if it is still the same after a crash, everything
written is there, synced or not. `sync-failed` says that a sync failed: the page cache may
hold what the disk does not, and says nothing of it. The next start empties the cache and
goes by the disk, as after a power cut; it removes the mark once it is through. If not even
the mark could be written, the missing `boot-id` stands for it. `wall-clock` holds the time
of the last checkpoint, in milliseconds since 1970, for comparing at the next start, and how
many seconds that clock was to be in doubt still (`clock_watch`).
"""

from __future__ import annotations

import base64
import errno
import fcntl
import logging
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from tailrace import modes
from tailrace.log.checkpoints import Offsets, read_offsets, read_properties, write_properties
from tailrace.log.errors import (
    DirectoryLockedError,
    ForeignDirectoryError,
    MetadataDamagedError,
    StorageError,
    UnknownFormatError,
)
from tailrace.log.files import FILES, Files
from tailrace.log.recovery import CleanState
from tailrace.modes import make_private
from tailrace.records.checksum import crc32c

log = logging.getLogger(__name__)

FORMAT = "1"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
CLEAN_STOP = "clean-stop"
BOOT_ID = "boot-id"
SYNC_FAILED = "sync-failed"
CLOCK = "wall-clock"


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
    """Whether the machine has run on since the last start and no sync failed: no write can be
    missing."""
    sync_failed: bool = False
    """Whether a sync failed before this start."""
    recovery_points: Offsets = field(default_factory=dict)
    log_starts: Offsets = field(default_factory=dict)
    cleaned: Offsets = field(default_factory=dict)
    """What the three checkpoints on the disk hold."""
    noted_ms: int = 0
    """The wall clock noted before this start; 0 if none was."""
    clock_wait_seconds: int = 0
    """How long that clock was to be in doubt still."""
    modified_ms: list[int] = field(default_factory=list)
    """When the checkpoints were written, as their files say."""

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

    Raises `DirectoryLockedError`, `UnknownFormatError`, `ForeignDirectoryError`,
    `MetadataDamagedError`, or `OSError` if the disk is gone.
    """
    make_private(path)
    lock = _lock(path)
    try:
        sync_failed = _sync_failed(path)
        if sync_failed:
            log.error(
                "a sync failed before this start: what is not on the disk is gone",
                extra={"path": str(path)},
            )
            _empty_cache(path, files)
        properties = _read_meta(path)
        if properties is None:
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
        if cluster_id not in (None, properties["cluster.id"]):
            raise ForeignDirectoryError(
                f"{path} belongs to another log",
                detail=f"its cluster id is {properties['cluster.id']}, not {cluster_id}",
                hint="name the data directories of one log only",
            )
        directory = DataDirectory(path, properties["directory.id"], properties["cluster.id"], lock)
        directory.noted_ms, directory.clock_wait_seconds = _read_clock(path)
        directory.modified_ms = [
            int(os.stat(path / name).st_mtime * 1000)
            for name in (RECOVERY_POINTS, LOG_STARTS, CLEANED)
            if (path / name).exists()
        ]
        directory.clean = _take_clean_stop(path, files)
        directory.sync_failed = sync_failed
        if sync_failed:
            directory.clean = None
        else:
            directory.same_boot = _note_boot(path, files)
        directory.recovery_points = read_offsets(path / RECOVERY_POINTS)
        directory.log_starts = read_offsets(path / LOG_STARTS)
        directory.cleaned = read_offsets(path / CLEANED)
    except BaseException:
        os.close(lock)
        raise
    return directory


def _read_meta(path: Path) -> dict[str, str] | None:
    """What `meta.properties` says; None in a directory that is to be begun.

    Raises `MetadataDamagedError` where the file is not whole, or missing beside data: a new
    identity would orphan every partition.
    """
    file = path / "meta.properties"
    there = file.exists()
    try:
        properties = read_properties(file)
    except UnicodeDecodeError:
        properties = {}
    if properties.get("tailrace.format", FORMAT) != FORMAT or (
        properties and "tailrace.format" not in properties
    ):
        return properties  # refused by its format
    missing = [name for name in ("cluster.id", "directory.id") if not properties.get(name)]
    if (
        not there
        and not (path / "metadata").exists()
        and not any(path.glob("*/partition.metadata"))
    ):
        return None
    if missing:
        raise MetadataDamagedError(
            f"{file} {'is damaged' if there else 'is missing'}",
            detail=f"it does not say {' and '.join(missing)}, which tell whose data this is",
            hint="restore it from a copy; every data directory of a log has the same cluster.id, "
            "and metadata/journal names the directories' ids",
        )
    return properties


def write_clean_stop(
    directory: DataDirectory, states: Mapping[tuple[str, int], CleanState], files: Files
) -> None:
    """Note that everything is on disk, and where it ends."""
    body = orjson.dumps([[topic, index, asdict(state)] for (topic, index), state in states.items()])
    files.write_whole(directory.path / CLEAN_STOP, b"%08x %b" % (crc32c(body), body))


def write_clock(directory: DataDirectory, now_ms: int, wait_seconds: float, files: Files) -> None:
    """Note the wall clock without a jump in doubt, and how long the doubt lasts still. A power
    cut may take the note."""
    files.write_whole(directory.path / CLOCK, b"%d %d\n" % (now_ms, wait_seconds), sync=False)


def _read_clock(path: Path) -> tuple[int, int]:
    try:
        now_ms, wait_seconds = (path / CLOCK).read_bytes().split()
        return int(now_ms), int(wait_seconds)
    except (FileNotFoundError, ValueError):
        return 0, 0


def mark_failed_sync(path: Path, files: Files) -> None:
    """Have the next start know that a sync failed in this data directory."""
    for sync in (True, False):
        try:
            # Unsynced it is as good: it matters to this boot of the machine only.
            files.write_whole(path / SYNC_FAILED, b"a sync failed\n", sync=sync)
            return
        except OSError as error:
            problem = error
    try:
        files.remove(path / BOOT_ID)
    except OSError as error:
        log.critical(
            "a failed sync cannot be noted: restart the machine before the broker",
            extra={"path": str(path), "error": f"{problem}; {error}"},
        )


def settle(directory: DataDirectory, files: Files) -> None:
    """Take the mark of a failed sync away: what the disk holds is known, and taken over."""
    try:
        _note_boot(directory.path, files)
        files.remove(directory.path / SYNC_FAILED)
        files.sync_directory(directory.path)
    except FileNotFoundError:
        pass  # the missing boot id was the mark
    except OSError as error:
        log.warning("the mark of a failed sync stays", extra={"error": str(error)})
        return
    directory.sync_failed = False


def _sync_failed(path: Path) -> bool:
    if (path / SYNC_FAILED).exists():
        return True
    return bool(_boot()) and (path / "meta.properties").exists() and not (path / BOOT_ID).exists()


def _empty_cache(path: Path, files: Files) -> None:
    for folder, _, names in os.walk(path):
        for name in filter(lambda each: os.path.isfile(f"{folder}/{each}"), names):
            number = files.open(f"{folder}/{name}")
            try:
                files.forget_cached(number)
            finally:
                files.close(number)


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


def _boot() -> str:
    """The kernel's id of this boot; empty if it does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _note_boot(path: Path, files: Files) -> bool:
    """Note this boot of the machine; whether the last start was in it."""
    now = _boot()
    if not now:
        return False
    note = path / BOOT_ID
    try:
        before = note.read_text("ascii", errors="replace").strip()
    except FileNotFoundError:
        before = ""
    if before != now:
        try:
            files.write_whole(note, f"{now}\n".encode(), sync=False)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise  # a full disk can still be read from
    return before == now


def _lock(path: Path) -> int:
    lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, modes.file_mode())
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
