"""The only door to the disk.

`Files` names every system call whose order decides what survives a power cut; a test
replaces it with one that records syncs. `Descriptor` counts its users, because a segment
may be deleted or swapped while a send from it is still queued.
"""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

READ = os.O_RDONLY | os.O_CLOEXEC
WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class Files:
    """System calls of the log, replaceable as a whole."""

    __slots__ = ()

    pwrite: Callable[[int, bytes | bytearray | memoryview, int], int] = staticmethod(os.pwrite)
    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    sync_data: Callable[[int], None] = staticmethod(os.fdatasync)
    close: Callable[[int], None] = staticmethod(os.close)

    def open(self, path: str | Path, flags: int = READ) -> int:
        return os.open(path, flags, 0o644)

    def write_all(self, number: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all of `data` or raise: a disk that fills takes a part without complaint."""
        view, done = memoryview(data), 0
        while done < len(view):
            written = self.pwrite(number, view[done:], position + done)
            if written <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += written

    def rename(self, old: str | Path, new: str | Path) -> None:
        os.rename(old, new)

    def remove(self, path: str | Path) -> None:
        os.unlink(path)

    def make_directory(self, path: str | Path) -> None:
        os.mkdir(path)

    def sync_directory(self, path: str | Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_filesystem(self, path: str | Path) -> None:
        """Everything on the filesystem that holds `path` is on disk on return."""
        import ctypes

        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            library = ctypes.CDLL(None, use_errno=True)
            if library.syncfs(descriptor) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), str(path))
        finally:
            os.close(descriptor)

    def write_whole(self, path: str | Path, data: bytes, *, sync: bool = True) -> None:
        """Replace the file at `path` by one holding `data`, never by a part of it.

        With `sync`, file and directory are on disk on return; without, a crash of the
        machine may leave the old file, the new one, or an empty one.
        """
        path = str(path)
        waiting = f"{path}.tmp"
        descriptor = self.open(waiting, WRITE | os.O_TRUNC)
        try:
            self.write_all(descriptor, data, 0)
            if sync:
                self.sync_data(descriptor)
        finally:
            self.close(descriptor)
        self.rename(waiting, path)
        if sync:
            # The rename itself can be lost if only the file is synced.
            self.sync_directory(os.path.dirname(path) or ".")


FILES = Files()


class Descriptor:
    """An open file that is closed when its last user lets go."""

    __slots__ = ("_close", "number", "users")

    def __init__(self, number: int, files: Files = FILES) -> None:
        self.number = number
        self.users = 1
        self._close = files.close

    def acquire(self) -> Descriptor:
        self.users += 1
        return self

    def release(self) -> None:
        self.users -= 1
        if self.users == 0:
            self._close(self.number)


class OpenFiles:
    """Descriptors of sealed segments, the least used closed first.

    `get` returns an acquired descriptor: release it when done.
    """

    def __init__(self, files: Files = FILES, limit: int = 512) -> None:
        self._files = files
        self._limit = limit
        self._open: OrderedDict[str, Descriptor] = OrderedDict()

    def get(self, path: str) -> Descriptor:
        descriptor = self._open.get(path)
        if descriptor is None:
            descriptor = Descriptor(self._files.open(path), self._files)
            self._open[path] = descriptor
            if len(self._open) > self._limit:
                self._open.popitem(last=False)[1].release()
        else:
            self._open.move_to_end(path)
        return descriptor.acquire()

    def forget(self, path: str) -> None:
        """Let go of `path`, because it was deleted or replaced."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            descriptor.release()

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].release()
