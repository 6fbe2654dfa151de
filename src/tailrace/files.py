"""Small files that a crash leaves whole: the old one or the new one, never a part.

`write_whole` replaces a file and `create_whole` makes one that must not be there yet. Both
write a draft beside it (`<name>.tmp`), flush it, give it its name and flush the directory.
A kill or a power cut at any step leaves the old file or the new one, and perhaps the draft,
which nobody reads. A disk that is full leaves the old file and no draft.

`read_whole` takes an empty file for one that is not there: what wrote files in place left
empty ones after a crash, and no small file of ours is empty.

`Files` names every system call whose order decides what survives a power cut, so that a
test replaces them as a whole; `FILES` is the real disk.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from tailrace import modes

READ = os.O_RDONLY | os.O_CLOEXEC
WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class Files:
    """System calls that write files, replaceable as a whole."""

    __slots__ = ()

    pwrite: Callable[[int, bytes | bytearray | memoryview, int], int] = staticmethod(os.pwrite)
    sync_data: Callable[[int], None] = staticmethod(os.fdatasync)
    close: Callable[[int], None] = staticmethod(os.close)

    def open(self, path: str | Path, flags: int = READ) -> int:
        return modes.open_private(path, flags)

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

    def link(self, old: str | Path, new: str | Path) -> None:
        """A second name for a file; FileExistsError if the name is taken."""
        os.link(old, new)

    def remove(self, path: str | Path) -> None:
        os.unlink(path)

    def make_directory(self, path: str | Path) -> None:
        os.mkdir(path)
        os.chmod(path, modes.directory_mode())

    def sync_directory(self, path: str | Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_directories(self, path: str | Path) -> None:
        """Make a directory and those above it, durably; one that is there is fine."""
        path = Path(path)
        if path.is_dir():
            return
        self.make_directories(path.parent)
        with contextlib.suppress(FileExistsError):
            self.make_directory(path)
        self.sync_directory(path.parent)

    def write_whole(
        self, path: str | Path, data: bytes, *, sync: bool = True, shared: bool = False
    ) -> None:
        """Replace the file at `path` by one holding `data`, never by a part of it.

        With `sync`, file and directory are on disk on return; without, a crash of the
        machine may leave the old file, the new one, or an empty one. With `shared`, other
        processes or threads may write the same file at this moment: the last one wins.
        """
        path = str(path)
        draft = self._draft(path, data, sync=sync, shared=shared)
        try:
            self.rename(draft, path)
        except BaseException:
            self._discard(draft)
            raise
        if sync:
            # The rename itself can be lost if only the file is synced.
            self.sync_directory(os.path.dirname(path) or ".")

    def create_whole(self, path: str | Path, data: bytes) -> bool:
        """Make the file at `path`, durably; False if another holds something there already.

        Of several processes that try, on one machine or over a shared file system, one
        succeeds. An empty file is one that a crash left, and is replaced.
        """
        path = str(path)
        directory = os.path.dirname(path) or "."
        draft = self._draft(path, data, sync=True, shared=True)
        try:
            try:
                self.link(draft, path)
            except FileExistsError:
                return self._replace_empty(draft, path, directory)
            except OSError as problem:
                if problem.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                    raise
                return self._replace_empty(draft, path, directory)  # no links on this one
            self.sync_directory(directory)
            return True
        finally:
            self._discard(draft)

    def read_whole(self, path: str | Path) -> bytes | None:
        """What the file at `path` holds; None if there is none, or an empty one."""
        try:
            with open(path, "rb") as file:
                return file.read() or None
        except FileNotFoundError:
            return None

    def _replace_empty(self, draft: str, path: str, directory: str) -> bool:
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Two that both saw the empty file must not both replace it.
            fcntl.flock(held, fcntl.LOCK_EX)
            if self.read_whole(path) is not None:
                return False
            self.rename(draft, path)
            self.sync_directory(directory)
            return True
        finally:
            os.close(held)

    def _draft(self, path: str, data: bytes, *, sync: bool, shared: bool) -> str:
        draft = f"{path}.{secrets.token_hex(4)}.tmp" if shared else f"{path}.tmp"
        descriptor = self.open(draft, WRITE | (os.O_EXCL if shared else os.O_TRUNC))
        try:
            try:
                self.write_all(descriptor, data, 0)
                if sync:
                    self.sync_data(descriptor)
            finally:
                self.close(descriptor)
        except BaseException:
            self._discard(draft)  # on a full disk it would be in the way
            raise
        return draft

    def _discard(self, draft: str) -> None:
        with contextlib.suppress(OSError):
            self.remove(draft)


FILES = Files()
