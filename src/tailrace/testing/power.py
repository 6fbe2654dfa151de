"""A disk whose power can be cut.

`PowerFiles` does every system call for real and notes what a careful disk would still
hold after a power cut: a file's bytes as of its last sync, a directory's names as of its
own last sync. `cut` builds, in another directory, one of the states such a disk may be
found in: what was synced is there, what was not may be there in part, or not at all.

`LyingCache` is a disk that refuses a write once and a page cache that does not say so
later, as Linux has them: the pages whose write failed count as clean, the next sync has
nothing to do and succeeds, and readers get what never reached the disk until the pages
leave memory.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

from tailrace.log.files import READ, Files


class PowerFiles(Files):
    """System calls that remember what is safe."""

    __slots__ = ("_contents", "_held", "_names", "root")

    def __init__(self, root: Path) -> None:
        self.root = root
        self._contents: dict[int, bytes] = {}
        """Inode → bytes as of its last sync."""
        self._names: dict[str, dict[str, int]] = {}
        """Directory → name → inode, as of its last sync."""
        self._held: list[int] = []
        """Descriptors that keep inodes from being used again under another name."""

    def open(self, path: str | Path, flags: int = READ) -> int:
        number = super().open(path, flags)
        if flags & os.O_CREAT:
            self._held.append(os.dup(number))
        return number

    def release(self) -> None:
        """Let go of everything held, once the disk is no longer needed."""
        while self._held:
            os.close(self._held.pop())

    def sync_data(self, number: int) -> None:
        status = os.fstat(number)
        if status.st_ino not in self._contents:
            self._held.append(os.dup(number))  # made before this layer, or by others
        self._contents[status.st_ino] = os.pread(number, status.st_size, 0)

    def sync_directory(self, path: str | Path) -> None:
        self._names[str(path)] = _listing(str(path))

    def sync_filesystem(self, path: str | Path, held: int | None = None) -> None:
        for folder, _, names in os.walk(path):
            self.sync_directory(folder)
            for name in names:
                number = os.open(f"{folder}/{name}", READ)
                self.sync_data(number)
                os.close(number)

    def cut(self, target: Path, chance: random.Random) -> None:
        """Build in `target` what the disk may hold when the machine is up again."""
        # The root itself was there before anything was written.
        self._build(str(self.root), target, chance)
        for path in target.rglob("boot-id"):
            path.write_text("another boot\n")

    def _build(self, source: str, target: Path, chance: random.Random) -> None:
        target.mkdir()
        now, safe = _listing(source), self._names.get(source, {})
        names = dict(safe)
        # Names made or removed since the last sync of the directory may have reached it.
        for name in sorted({*now, *safe}):
            if now.get(name) != safe.get(name) and chance.random() < 0.5:
                if name in now:
                    names[name] = now[name]
                else:
                    names.pop(name, None)
        for name, inode in sorted(names.items()):
            path = f"{source}/{name}"
            if now.get(name) == inode and os.path.isdir(path):
                self._build(path, target / name, chance)
                continue
            current = _bytes(path) if now.get(name) == inode else None
            (target / name).write_bytes(self._survivor(inode, current, chance))

    def _survivor(self, inode: int, current: bytes | None, chance: random.Random) -> bytes:
        """What may be left of a file."""
        safe = self._contents.get(inode, b"")
        if current is None or not current.startswith(safe):
            # Written over since the sync: any mixture, but mostly one of the two.
            return safe if current is None or chance.random() < 0.5 else current
        more = chance.randrange(len(current) - len(safe) + 1)
        kept = bytearray(current[: len(safe) + more])
        if more > 40 and chance.random() < 0.3:
            hole = chance.randrange(len(safe), len(kept) - 20)
            kept[hole : hole + 20] = bytes(20)  # a block that never reached the disk
        return bytes(kept)


class LyingCache(Files):
    """System calls over a disk below a page cache; files are told apart by their inodes.

    What the real files hold is the cache. `refuse` decides which syncs fail, each time a
    file is synced; `evict` lets all clean pages leave memory, so that the real files hold
    what the disk does. Names are always safe here.
    """

    __slots__ = ("_dirty", "_disk", "_held", "refuse", "refused")

    def __init__(self) -> None:
        self.refuse: Callable[[str], bool] = lambda path: False
        """Called with the path of a file that is about to be synced."""
        self.refused: list[str] = []
        self._disk: dict[int, bytearray] = {}
        """Inode → what the disk holds; a file that is not here was never written through here."""
        self._dirty: dict[int, list[tuple[int, int]]] = {}
        self._held: dict[int, int] = {}
        """Inode → a descriptor, so that no other file gets its number."""

    def refuse_once(self, ending: str = "") -> None:
        """Let the next sync of a file whose path ends so fail, and no later one."""

        def refuse(path: str) -> bool:
            if path.endswith(ending):
                self.refuse = lambda path: False
                return True
            return False

        self.refuse = refuse

    def open(self, path: str | Path, flags: int = READ) -> int:
        number = super().open(path, flags)
        inode = os.fstat(number).st_ino
        if flags & os.O_CREAT and inode not in self._held:
            self._held[inode] = os.dup(number)
            self._disk[inode] = bytearray(os.pread(number, os.fstat(number).st_size, 0))
        return number

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, position: int) -> int:
        written = os.pwrite(number, data, position)
        inode = os.fstat(number).st_ino
        self._dirty.setdefault(inode, []).append((position, position + written))
        return written

    def sync_data(self, number: int) -> None:
        status = os.fstat(number)
        path = os.readlink(f"/proc/self/fd/{number}")
        dirty = self._dirty.pop(status.st_ino, [])
        if dirty and self.refuse(path):
            self.refused.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        disk = self._disk.setdefault(status.st_ino, bytearray())
        del disk[status.st_size :]
        disk += bytes(status.st_size - len(disk))
        for first, last in dirty:
            data = os.pread(number, last - first, first)
            disk[first : first + len(data)] = data

    def sync_directory(self, path: str | Path) -> None:
        """Names are safe at once."""

    def sync_filesystem(self, path: str | Path, held: int | None = None) -> None:
        for inode, number in self._held.items():
            if self._dirty.get(inode):
                self.sync_data(number)

    def forget_cached(self, number: int) -> None:
        self._evict(os.fstat(number).st_ino, number)

    def evict(self) -> None:
        """Let every clean page leave memory."""
        for inode, number in self._held.items():
            self._evict(inode, number)

    def release(self) -> None:
        """Let go of every file."""
        while self._held:
            os.close(self._held.popitem()[1])

    def _evict(self, inode: int, number: int) -> None:
        disk = self._disk.get(inode)
        if disk is None or self._dirty.get(inode):
            return  # pages that wait to be written stay
        number = self._held[inode]
        os.ftruncate(number, 0)
        os.pwrite(number, disk, 0)


def _listing(path: str) -> dict[str, int]:
    try:
        with os.scandir(path) as entries:
            return {entry.name: entry.inode() for entry in entries}
    except FileNotFoundError:
        return {}


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
