"""The log's only door to the disk.

`Files` names every system call whose order decides what survives a power cut, those of
small files (`tailrace.files`) and those of segments; a test replaces it with one that
records syncs. `Descriptor` counts its users, because a segment
may be deleted or swapped while a send from it is still queued.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from tailrace import files
from tailrace.files import READ as READ
from tailrace.files import WRITE as WRITE


def tells_of_errors(release: str) -> bool:
    """Whether `syncfs` of a kernel of this release reports failed writes: since 5.8."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) >= (5, 8)


SYNCFS_TELLS = tells_of_errors(os.uname().release)


class Files(files.Files):
    """System calls of the log, replaceable as a whole."""

    __slots__ = ()

    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)

    def forget_cached(self, number: int) -> None:
        """Let pages that are not waiting to be written leave memory: the next read is the disk's.

        The pages of a failed write wait for nothing; the kernel counts them as written.
        """
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)

    def sync_filesystem(self, path: str | Path, held: int | None = None) -> None:
        """Everything on the filesystem that holds `path` is on disk on return.

        `held` is a descriptor of a file there. Errors since it was opened are reported; over
        a new one, an error that another program was told of would not be.
        """
        import ctypes

        descriptor = os.open(path, READ | os.O_DIRECTORY) if held is None else os.dup(held)
        try:
            library = ctypes.CDLL(None, use_errno=True)
            if library.syncfs(descriptor) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), str(path))
        finally:
            os.close(descriptor)


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
