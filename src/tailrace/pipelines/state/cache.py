"""The cache of a shard on this host: an LMDB environment of committed ticks only.

    <directory>/<boot id>/<shard>/data.mdb      one database per operator, and a stamp
    <directory>/<boot id>/<shard>.lock          held while the cache is brought up to date

The stamp names the version the cache holds. One rule leads to another version: if the
cache lies on the way, the files in between are applied; in every other case the cache is
deleted and restored. There is no undo, so recovery and daily work are the same code.

A write transaction of LMDB holds every page it changes in memory until it ends, and a key
at random changes a page of its own. So files are applied a few hundred keys at a time, and
all transactions but the last leave a stamp that says which files are being applied: nobody
reads such a cache. Whoever finds it applies the same files again, which ends at the same
rows since files hold values and not differences; if his way leads elsewhere he restores.
Pages that one transaction left are taken by the next but one: the file grows with what it
holds, not with what is changed.

Pages are changed where they are mapped, which costs half of writing them. A mapped page that
finds no room on the disk would end the process; so room is reserved in the file before each
piece for all pages it can take, and a full disk is an error like any other. The file is as
large as its map. Who needs a larger one enlarges the file, others see its size and open it
anew; it is opened under the lock, since opening it with a smaller map would cut it.

LMDB does not sync here. The pages survive a crash of the process, not of the kernel:
hence the boot id in the path. The stamp says of which file it is, so that a copy of a cache is
not taken for it, and how many entries each database has, so that one whose pages are not those
that were written is not believed. Now and then the file is flushed, in a thread, to hear of pages
that could not be written. A cache of which one of these is told is deleted and restored. Readers
in other processes keep the file they opened, so deleting a cache under them is safe; they notice
by its inode.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lmdb
import orjson

from tailrace.modes import file_mode, make_private
from tailrace.pipelines.errors import StateError
from tailrace.pipelines.state import delta
from tailrace.pipelines.state.files import StateFiles
from tailrace.pipelines.state.mapped import map_ahead
from tailrace.pipelines.state.route import Route, route
from tailrace.pipelines.state.store import Version
from tailrace.unsynced import WRITE_BACK, boot_id, file_mark

LEAST_MAP = 64 << 20  # the file is as large as its map, most of it a hole
_MAP_GROWS = 4  # times, when it is full
LONGEST_PLAIN_KEY = 478
_DIGEST_BYTES = 32
_STAMP_DATABASE = b"!stamp"
_ATTEMPTS = 8
KEYS_AT_ONCE = 512  # of one write transaction; at most a page of 4 KB each, and their branches
_PAGE_NUMBER_BYTES = 8  # in LMDB's list of free pages
_SPARE_PAGES = 64  # for the stamp, new databases and the list of free pages
_RESERVED_AT_ONCE = 1 << 20
_DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.PanicError)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a cache holds.

    With `toward` it holds a mixture: `version` (None: nothing), and some of the changes of
    those files, which lead on from there.
    """

    version: Version | None
    depth: int
    merges: tuple[delta.Merge, ...] = ()
    toward: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # entries, by operator
    mark: str = ""  # of the file: see `unsynced`


@dataclass(slots=True)
class _Opened:
    environment: Any
    inode: int
    pid: int
    size: int  # of the map, and of the file
    reserved: int = 0  # bytes from the beginning of the file that have their place on the disk


# LMDB allows one handle per environment and process, and Python workers serve many
# tasks; what is remembered here is only a handle, checked by inode before each use.
_opened: dict[Path, _Opened] = {}


def close_opened() -> None:
    """Close the environments this process has open; the next use opens them again."""
    for opened in _opened.values():
        if opened.pid == os.getpid():
            opened.environment.close()
    _opened.clear()


def stored_key(key: bytes) -> bytes:
    """`key` as LMDB holds it, which allows 511 bytes: long keys are cut and hashed.

    Plain keys are at most LONGEST_PLAIN_KEY long, so the two cannot be confused, and the
    value of a long key is preceded by the key itself.
    """
    if len(key) <= LONGEST_PLAIN_KEY:
        return key
    digest = hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()
    return key[:LONGEST_PLAIN_KEY] + digest


def stored_pair(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A pair as LMDB holds it."""
    if len(key) <= LONGEST_PLAIN_KEY:
        return key, value
    return stored_key(key), len(key).to_bytes(4, "big") + key + value


def loaded_pair(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    """The reverse of `stored_pair`."""
    if len(key) <= LONGEST_PLAIN_KEY:
        return key, value
    length = int.from_bytes(value[:4], "big")
    return value[4 : 4 + length], value[4 + length :]


class _MapFull(Exception):
    """The map must have `args[0]` bytes."""


class ShardCache:
    """One shard's cache; `reading` gives a transaction that sees exactly one version."""

    def __init__(
        self, files: StateFiles, directory: Path, shard: int, limit: int | None = None
    ) -> None:
        self._files = files
        self._limit = limit
        self._root = directory / boot_id()
        self._path = self._root / str(shard)
        self._shard = shard

    @contextlib.contextmanager
    def reading(self, version: Version) -> Iterator[tuple[Any, Any, Stamp]]:
        """An environment, a read transaction on it that sees `version`, and its stamp."""
        for _ in range(_ATTEMPTS):
            environment = self._environment()
            try:
                begun = environment.begin()
            except lmdb.MapResizedError:
                continue  # enlarged since it was looked at: it is opened anew
            with begun as transaction:
                stamp = read_stamp(environment, transaction)
                if stamp is not None and stamp.version == version and not stamp.toward:
                    self._used()
                    with self._undamaged():
                        yield environment, transaction, stamp
                    return
            self.bring_to(version)
        raise StateError(
            f"the cache of shard {self._shard} does not stay at one version",
            detail=f"{self._path} was changed {_ATTEMPTS} times by others while it was opened",
            hint="is another driver of this project running on this host?",
        )

    def bring_to(self, version: Version) -> None:
        """Make the cache hold `version`: catch up if it is behind, else restore."""
        with self._locked():
            environment = self._environment(locked=True)
            with environment.begin() as transaction:
                stamp = read_stamp(environment, transaction)
            known = None if stamp is None else stamp.version
            if stamp is not None and known == version and not stamp.toward:
                return
            way = route(self._files, self._shard, version, known)
            try:
                if stamp is not None and not _goes_on(stamp, way):
                    if way.start is not None:
                        way = route(self._files, self._shard, version, None)
                    self.delete()
                    environment, stamp = self._environment(locked=True), None
                while not self._applied(environment, way, version, stamp):
                    environment = self._environment(locked=True)
                    with environment.begin() as transaction:
                        stamp = read_stamp(environment, transaction)
            except _DAMAGE as damage:
                self.delete()
                raise self._damaged(damage) from damage
            except (lmdb.Error, OSError) as problem:
                raise StateError(
                    f"the cache of shard {self._shard} cannot be written",
                    detail=f"{self._path}: {problem}",
                    hint="free space on that disk; the cache is restored by itself",
                ) from problem
            if self._limit is not None:
                evict(self._root, self._limit, self._shard)
            WRITE_BACK.look(self._path / "data.mdb", self._give_up)

    def _give_up(self) -> None:
        """Pages could not be written: whoever uses the cache notices that it is gone."""
        with self._locked():
            shutil.rmtree(self._path, ignore_errors=True)

    @contextlib.contextmanager
    def _undamaged(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as damage:
            with self._locked():
                self.delete()
            raise self._damaged(damage) from damage

    def _damaged(self, damage: Exception) -> StateError:
        return StateError(
            f"the cache of shard {self._shard} is damaged",
            detail=f"{self._path}: {damage}",
            hint="it is deleted and restored by itself; look at the disk",
        )

    def _used(self) -> None:
        """Note that the cache is in use, for `evict`."""
        if self._limit is not None:
            with contextlib.suppress(OSError):
                os.utime(self._root / f"{self._shard}.lock")

    def delete(self) -> None:
        """Forget the cache; the next reader restores it."""
        opened = _opened.pop(self._path, None)
        if opened is not None and opened.pid == os.getpid():
            opened.environment.close()
        shutil.rmtree(self._path, ignore_errors=True)

    def used_bytes(self) -> int:
        """How much disk the cache takes."""
        data = self._path / "data.mdb"
        return data.stat().st_blocks * 512 if data.exists() else 0

    def _applied(
        self, environment: Any, way: Route, version: Version, expected: Stamp | None
    ) -> bool:
        """Apply the files of `way`; False: the map was too small, and is larger now."""
        try:
            self._apply(environment, way, version, expected)
        except _MapFull as full:
            opened = _opened.pop(self._path)
            opened.environment.close()
            size = opened.size
            while size < full.args[0]:
                size *= _MAP_GROWS
            os.truncate(self._path / "data.mdb", size)
            return False
        return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        make_private(self._root)
        with open(self._root / f"{self._shard}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _apply(
        self, environment: Any, way: Route, version: Version, expected: Stamp | None
    ) -> None:
        between = Stamp(way.start, 0, (), way.files)
        mark = file_mark(self._path / "data.mdb")
        before = {} if expected is None else expected.counts
        between = replace(between, counts=before, mark=mark)
        with _Pieces(environment, between, self._reserve) as pieces:
            if read_stamp(environment, pieces.transaction) != expected:
                return  # another process was faster; the caller looks again
            for name in way.files:
                header, chunks = delta.read(self._files, self._shard, name)
                for operator in header.dropped:
                    pieces.drop(operator)
                for operator, keys, values in chunks:
                    pieces.put(operator, keys, values)
            pieces.finish(Stamp(version, way.depth, way.merges, (), pieces.counts(before), mark))

    def _reserve(self, length: int) -> None:
        """Give the first `length` bytes of the file their place on the disk."""
        opened = _opened[self._path]
        if length <= opened.reserved:
            return
        length = -(-length // _RESERVED_AT_ONCE) * _RESERVED_AT_ONCE
        if length > opened.size:
            raise _MapFull(length)
        descriptor = os.open(self._path / "data.mdb", os.O_RDWR)
        try:
            _allocate(descriptor, opened.reserved, length - opened.reserved)
        finally:
            os.close(descriptor)
        opened.reserved = length

    def _environment(self, *, locked: bool = False) -> Any:
        """The environment, opened if need be; `locked`: the caller holds the lock."""
        data = self._path / "data.mdb"
        opened = _opened.get(self._path)
        if opened is not None:
            with contextlib.suppress(FileNotFoundError):
                found = data.stat()
                same = found.st_ino == opened.inode and found.st_size == opened.size
                if opened.pid == os.getpid() and same:
                    return opened.environment
            del _opened[self._path]
            if opened.pid == os.getpid():
                opened.environment.close()
        with contextlib.nullcontext() if locked else self._locked():
            make_private(self._path)
            size = LEAST_MAP
            while data.exists() and size < data.stat().st_size:
                size *= _MAP_GROWS
            environment = _open(self._path, size)
            if not _is_sound(environment, data):
                environment.close()
                shutil.rmtree(self._path)
                make_private(self._path)
                environment = _open(self._path, size)
            environment.reader_check()
            used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
            map_ahead(data, used)
            _opened[self._path] = _Opened(environment, data.stat().st_ino, os.getpid(), size)
        return environment


def _open(path: Path, size: int) -> Any:
    return lmdb.open(
        str(path),
        mode=file_mode(),
        map_size=size,
        max_dbs=1024,
        max_readers=1024,
        sync=False,
        metasync=False,
        writemap=True,
        readahead=False,  # where memory is short it drives out what is needed next
    )


def _is_sound(environment: Any, data: Path) -> bool:
    """Whether a cache is the file it says, with the databases it says; a new one is."""
    try:
        with environment.begin() as transaction:
            stamp = read_stamp(environment, transaction)
            if stamp is None:
                return bool(environment.stat()["entries"] == 0)
            if stamp.mark != file_mark(data):
                return False
            if stamp.toward:
                return True  # a mixture: nobody reads it
            return all(
                transaction.stat(
                    environment.open_db(operator.encode(), txn=transaction, create=False)
                )["entries"]
                == count
                for operator, count in stamp.counts.items()
            )
    except (lmdb.Error, ValueError, KeyError, TypeError):
        return False


def _allocate(descriptor: int, offset: int, length: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, offset, length)


def _goes_on(stamp: Stamp, way: Route) -> bool:
    """Whether the files of `way` lead on from what a cache with `stamp` holds."""
    if stamp.version != way.start:
        return False
    return way.files[: len(stamp.toward)] == stamp.toward


class _Pieces:
    """Changes to a cache, in write transactions of bounded size. A context manager; what is
    not finished stays `between` versions, or as it was if the first transaction has not ended.
    """

    def __init__(self, environment: Any, between: Stamp, reserve: Callable[[int], None]) -> None:
        self._environment = environment
        self._between = between
        self._reserve = reserve
        self._touched: dict[str, bool] = {}  # operators; whether they are still there
        self._begin()

    def __enter__(self) -> _Pieces:
        return self

    def __exit__(self, *_: object) -> None:
        self.transaction.abort()  # nothing happens to one that has ended

    def drop(self, operator: str) -> None:
        """Remove an operator's database."""
        database = self._database(operator)
        stat = self.transaction.stat(database)
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        self._take(pages * _PAGE_NUMBER_BYTES // stat["psize"], stat["psize"])
        self.transaction.drop(database)
        self._touched[operator] = False

    def put(self, operator: str, keys: list[bytes], values: list[bytes | None]) -> None:
        """Give keys their values; None removes one."""
        first = 0
        while first < len(keys):
            if not self._room:
                self._end_piece()
            last = first + self._room
            some, given = keys[first:last], values[first:last]
            database = self._database(operator)
            self._take_for(database, given)
            _put(self.transaction, database, some, given)
            self._room -= len(some)
            first = last

    def _take_for(self, database: Any, values: list[bytes | None]) -> None:
        """Reserve for as many changes: each takes a leaf anew and may split it, with the
        branches above; long values have pages of their own."""
        stat = self.transaction.stat(database)
        count, size = len(values), stat["psize"]
        branches = min(count * stat["depth"], stat["branch_pages"]) + stat["depth"]
        long = sum(len(value) // size + 1 for value in values if value and 4 * len(value) > size)
        self._take(2 * (count + branches) + long, size)

    def _take(self, pages: int, size: int) -> None:
        self._pages += pages
        self._reserve(self._pages * size)

    def counts(self, before: Mapping[str, int]) -> dict[str, int]:
        """How many entries each database has now; `before`: those that were not touched."""
        left = {name: count for name, count in before.items() if name not in self._touched}
        there = [name for name, kept in self._touched.items() if kept]
        stat = self.transaction.stat
        return left | {name: stat(self._database(name))["entries"] for name in there}

    def finish(self, stamp: Stamp) -> None:
        """End the last transaction: the cache holds what `stamp` says."""
        _write_stamp(self._environment, self.transaction, stamp)
        self.transaction.commit()

    def _end_piece(self) -> None:
        _write_stamp(self._environment, self.transaction, self._between)
        self.transaction.commit()
        self._begin()

    def _begin(self) -> None:
        self.transaction = self._environment.begin(write=True)
        self._room = KEYS_AT_ONCE
        # What the file may take in this transaction; free pages inside it come on top.
        self._pages = self._environment.info()["last_pgno"] + 1
        try:
            self._take(_SPARE_PAGES, self._environment.stat()["psize"])
        except BaseException:
            self.transaction.abort()
            raise

    def _database(self, operator: str) -> Any:
        self._touched[operator] = True
        return self._environment.open_db(operator.encode(), txn=self.transaction)


def _put(transaction: Any, database: Any, keys: list[bytes], values: list[bytes | None]) -> None:
    pairs = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    if len(max(keys, key=len, default=b"")) > LONGEST_PLAIN_KEY:
        pairs = [stored_pair(key, value) for key, value in pairs]
    if pairs:
        with transaction.cursor(database) as cursor:
            cursor.putmulti(pairs)
    if len(pairs) < len(keys):
        for key, value in zip(keys, values, strict=True):
            if value is None:
                transaction.delete(stored_key(key), db=database)


def read_stamp(environment: Any, transaction: Any) -> Stamp | None:
    """What a cache holds; None for a new one."""
    try:
        database = environment.open_db(_STAMP_DATABASE, txn=transaction, create=False)
    except (lmdb.NotFoundError, lmdb.ReadonlyError):
        return None
    text = transaction.get(b"stamp", db=database)
    if text is None:
        return None
    fields = orjson.loads(text)
    merges = delta.read_merges(fields.get("merges"))
    version = None if fields["version"] is None else tuple(fields["version"])
    toward, counts = tuple(fields.get("toward", ())), fields.get("counts", {})
    return Stamp(version, fields["depth"], merges, toward, counts, fields.get("mark", ""))


def _write_stamp(environment: Any, transaction: Any, stamp: Stamp) -> None:
    database = environment.open_db(_STAMP_DATABASE, txn=transaction)
    text = orjson.dumps(
        {
            "version": stamp.version,
            "depth": stamp.depth,
            "merges": stamp.merges,
            "toward": stamp.toward,
            "counts": stamp.counts,
            "mark": stamp.mark,
        }
    )
    transaction.put(b"stamp", text, db=database)


def evict(root: Path, limit: int, keep: int) -> list[int]:
    """Delete caches until all of them take at most `limit` bytes, the one longest unused
    first; never that of shard `keep`, nor one being brought up to date. Their shards."""
    found: list[tuple[float, int, int]] = []
    for data in root.glob("*/data.mdb"):
        with contextlib.suppress(OSError, ValueError):
            shard = int(data.parent.name)
            used_at = (root / f"{shard}.lock").stat().st_mtime
            found.append((used_at, shard, data.stat().st_blocks * 512))
    total = sum(size for _, _, size in found)
    gone: list[int] = []
    for _, shard, size in sorted(found):
        if total <= limit:
            break
        if shard == keep:
            continue
        with open(root / f"{shard}.lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # Whoever has it open keeps the file, and notices by its inode.
            shutil.rmtree(root / str(shard), ignore_errors=True)
        total -= size
        gone.append(shard)
    return gone


def sweep_other_boots(directory: Path) -> None:
    """Remove caches written before the kernel last started: their pages may be torn."""
    if directory.is_dir():
        for path in directory.iterdir():
            if path.is_dir() and path.name != boot_id():
                shutil.rmtree(path, ignore_errors=True)
