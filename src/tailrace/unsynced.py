"""Caches whose pages nobody waits for: whether a file may still be trusted.

A cache that is written without a sync is whole after a kill, since the pages are the kernel's.
It is not after a crash of the kernel, in a copy that was made while it was written, and once the
disk has refused a page. So:

- `file_mark` is written into a cache and compared when it is opened: the boot it was written in,
  and which file it was (device, inode, time of birth; a copy or a restored backup is another one).
  Where the kernel tells no boot, every start of a project is one of its own: never equal.
- `WriteBack` flushes the file now and then, in a thread, for no other reason than to hear of
  pages that could not be written; whoever owns the cache throws it away then.

What is not noticed: the whole disk put back to a snapshot of itself within one boot.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import struct
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from tailrace.clock import SYSTEM, Clock

log = logging.getLogger(__name__)

FLUSH_EVERY_SECONDS = 10.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN_BOOT = "TAILRACE_UNKNOWN_BOOT"  # shared by the processes of one start
_AT_FDCWD, _STATX_BTIME = -100, 0x800
_BIRTH_OFFSET = 80  # of stx_btime in struct statx
_statx = getattr(ctypes.CDLL(None), "statx", None)


def boot_id() -> str:
    """The kernel's identity since it started; pages not synced survive as long.

    Where it cannot be told: one of this process and those it starts."""
    try:
        return _BOOT_ID.read_text().strip() or _unknown()
    except OSError:
        return _unknown()


def _unknown() -> str:
    return os.environ.setdefault(_UNKNOWN_BOOT, f"unknown-{uuid.uuid4()}")


def file_mark(path: Path) -> str:
    """What tells this file, in this boot, from every other and from copies of it."""
    status = path.stat()
    return f"{boot_id()} {status.st_dev:x} {status.st_ino:x} {_birth(path)}"


def _birth(path: Path) -> str:
    """When a file was made; empty where the system does not tell."""
    found = ctypes.create_string_buffer(256)
    if _statx is None or _statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, found) != 0:
        return ""
    (mask,) = struct.unpack_from("=I", found)
    if not mask & _STATX_BTIME:
        return ""
    seconds, nanos = struct.unpack_from("=qI", found, _BIRTH_OFFSET)
    return f"{seconds}.{nanos:09d}"


class WriteBack:
    """Flushes files that are written without a sync, each at most every few seconds."""

    def __init__(
        self,
        every: float = FLUSH_EVERY_SECONDS,
        flush: Callable[[int], None] = os.fdatasync,
        clock: Clock = SYSTEM,
    ) -> None:
        self._every, self._flush, self._clock = every, flush, clock
        self.forget()

    def forget(self) -> None:
        """Begin as new: of the process that was forked no thread runs here."""
        self._guard = threading.Lock()
        self._begun: dict[Path, float] = {}
        self._running: set[Path] = set()

    def look(self, path: Path, failed: Callable[[], None]) -> None:
        """Flush the file, if it is time, without waiting for it. `failed` is called in another
        thread if pages of it could not be written: what it holds cannot be trusted."""
        now = self._clock.monotonic()
        with self._guard:
            if path in self._running or now - self._begun.get(path, -math.inf) < self._every:
                return
            self._begun[path] = now
            self._running.add(path)
        threading.Thread(target=self._run, args=(path, failed), daemon=True).start()

    def _run(self, path: Path, failed: Callable[[], None]) -> None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                self._flush(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            pass  # it was thrown away meanwhile
        except OSError as problem:
            log.error("cache thrown away", extra={"path": str(path), "why": str(problem)})
            failed()
        finally:
            with self._guard:
                self._running.discard(path)

    def wait(self, timeout: float = 30.0) -> bool:
        """Wait until nothing is being flushed; for tests and for the end of a process."""
        deadline = self._clock.monotonic() + timeout
        while self._clock.monotonic() < deadline:
            with self._guard:
                if not self._running:
                    return True
            self._clock.sleep(0.005)
        return False


WRITE_BACK = WriteBack()
os.register_at_fork(after_in_child=WRITE_BACK.forget)
