"""Where state files rest: `<root>/<shard>/<tick>-<level>-<hash>.delta`, `.merged` or `.snapshot`.

A file is written once, under a name that ends in the hash of its bytes, and is never
changed. It is on disk, file and directory flushed, before its name is told to anyone,
so a committed tick row can only name files that survive a power cut. What a crash
leaves behind is a file that no row names, or a `.tmp`; both are swept after an hour.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

from tailrace.files import FILES
from tailrace.pipelines.errors import (
    StateError,
    StateFileDamagedError,
    StateFileMissingError,
    StateOwnedError,
)

HASH_BYTES = 10
OWNER = "PROJECT"


class Sink(Protocol):
    """What a state file is written to."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that is written, not yet flushed, and not yet under its name."""

    shard: int
    path: Path
    name: str


class StateFiles(Protocol):
    """A place for state files; local disk or an object store."""

    @property
    def remote(self) -> bool:
        """Whether writing waits for others, so that files are better put side by side."""

    def put(
        self,
        shard: int,
        stem: str,
        suffix: str,
        fill: Callable[[Sink], None],
        drafts: list[Draft] | None = None,
    ) -> str:
        """Write `<stem>-<hash><suffix>` and return that name. It is durable then; with `drafts`
        it may be a draft, noted there, until that is handed to `finish`."""

    def finish(self, drafts: Iterable[Draft]) -> None:
        """Make files out of drafts, durably."""

    def get(self, shard: int, name: str) -> bytes:
        """A file's bytes, checked against the hash in its name."""

    def head(self, shard: int, name: str, length: int) -> bytes:
        """A file's first bytes, not checked."""

    def size(self, shard: int, name: str) -> int:
        """A file's bytes."""

    def claim(self, project: str) -> None:
        """Make the place this project's; StateOwnedError if it is another's."""

    def list(self) -> Iterator[tuple[int, str, float]]:
        """Every file there is: shard, name, seconds since 1970 when it was written."""

    def remove(self, shard: int, name: str) -> None:
        """Remove a file; one that is already gone is fine."""


class _Hashing:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.blake2b(digest_size=HASH_BYTES)

    def write(self, data: bytes, /) -> int:
        self._hash.update(data)
        return self._file.write(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """State files below a directory of this machine, or of a shared file system."""

    root: Path
    remote: ClassVar[bool] = False

    def put(
        self,
        shard: int,
        stem: str,
        suffix: str,
        fill: Callable[[Sink], None],
        drafts: list[Draft] | None = None,
    ) -> str:
        directory = self.root / str(shard)
        with self._writing(shard):
            if not directory.is_dir():
                FILES.make_directories(directory)
            with tempfile.NamedTemporaryFile(dir=directory, suffix=".tmp", delete=False) as file:
                try:
                    sink = _Hashing(file)
                    fill(sink)
                    file.flush()
                except BaseException:
                    os.unlink(file.name)
                    raise
        draft = Draft(shard, Path(file.name), f"{stem}-{sink.digest}{suffix}")
        if drafts is None:
            self.finish([draft])
        else:
            drafts.append(draft)
        return draft.name

    def finish(self, drafts: Iterable[Draft]) -> None:
        # Step by step for all of them: what the file system commits for the first one it has
        # mostly committed for the others, too.
        made = list(drafts)
        try:
            for draft in made:
                with self._writing(draft.shard):
                    _flush(draft.path)
            for draft in made:
                with self._writing(draft.shard):
                    os.replace(draft.path, draft.path.with_name(draft.name))
        except BaseException:
            for draft in made:  # a full disk is tried again and again
                draft.path.unlink(missing_ok=True)
            raise
        for shard in {draft.shard for draft in made}:
            with self._writing(shard):
                _flush(self.root / str(shard))  # too, or the names themselves can be lost

    @contextlib.contextmanager
    def _writing(self, shard: int) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise StateError(
                f"state of shard {shard} cannot be written",
                detail=f"{self.root / str(shard)}: {problem.strerror}",
                hint="free space or fix permissions; the tick is tried again",
            ) from problem

    def get(self, shard: int, name: str) -> bytes:
        try:
            data = (self.root / str(shard) / name).read_bytes()
        except FileNotFoundError as missing:
            raise _missing(shard, name, str(self.root)) from missing
        return checked(data, shard, name)

    def head(self, shard: int, name: str, length: int) -> bytes:
        try:
            with open(self.root / str(shard) / name, "rb") as file:
                return file.read(length)
        except FileNotFoundError as missing:
            raise _missing(shard, name, str(self.root)) from missing

    def size(self, shard: int, name: str) -> int:
        try:
            return (self.root / str(shard) / name).stat().st_size
        except FileNotFoundError as missing:
            raise _missing(shard, name, str(self.root)) from missing

    def claim(self, project: str) -> None:
        path = self.root / OWNER
        try:
            FILES.make_directories(self.root)
            FILES.create_whole(path, project.encode())
            _check_owner((FILES.read_whole(path) or b"").decode(), project, str(self.root))
        except OSError as problem:
            raise StateError(
                "the state directory cannot be written",
                detail=f"{self.root}: {problem.strerror}",
                hint="free space or fix permissions",
            ) from problem

    def list(self) -> Iterator[tuple[int, str, float]]:
        if not self.root.is_dir():
            return
        for directory in sorted(self.root.iterdir()):
            if directory.name.isdecimal():
                for entry in os.scandir(directory):
                    try:
                        yield int(directory.name), entry.name, entry.stat().st_mtime
                    except FileNotFoundError:
                        continue  # removed while listing

    def remove(self, shard: int, name: str) -> None:
        (self.root / str(shard) / name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """State files on any fsspec file system; a file appears by one put.

    `url` is the root, such as `s3://bucket/state`.
    """

    url: str
    options: dict[str, str] = field(default_factory=dict)
    remote: ClassVar[bool] = True

    def _open(self) -> tuple[Any, str]:
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(self.url, **self.options)
        return filesystem, str(path).rstrip("/")

    def put(
        self,
        shard: int,
        stem: str,
        suffix: str,
        fill: Callable[[Sink], None],
        drafts: list[Draft] | None = None,
    ) -> str:
        filesystem, root = self._open()
        with tempfile.NamedTemporaryFile(suffix=suffix) as draft:
            sink = _Hashing(draft)
            fill(sink)
            draft.flush()
            name = f"{stem}-{sink.digest}{suffix}"
            filesystem.makedirs(f"{root}/{shard}", exist_ok=True)
            filesystem.put_file(draft.name, f"{root}/{shard}/{name}")
            sent = draft.tell()
        # That the bytes arrive as they were sent is the protocol's promise (signed or checked
        # by the store); that all of them did is looked at, before a tick row names the file.
        filesystem.invalidate_cache(f"{root}/{shard}")
        found = int(filesystem.size(f"{root}/{shard}/{name}"))
        if found != sent:
            raise StateError(
                f"state of shard {shard} is not whole where it was put",
                detail=f"{self.url}/{shard}/{name} has {found} bytes of {sent}",
                hint="the tick is tried again",
            )
        return name

    def finish(self, drafts: Iterable[Draft]) -> None:
        """There are none: a file that was put is there."""

    def get(self, shard: int, name: str) -> bytes:
        filesystem, root = self._open()
        try:
            return checked(filesystem.cat_file(f"{root}/{shard}/{name}"), shard, name)
        except FileNotFoundError as missing:
            raise _missing(shard, name, self.url) from missing

    def head(self, shard: int, name: str, length: int) -> bytes:
        filesystem, root = self._open()
        try:
            return bytes(filesystem.cat_file(f"{root}/{shard}/{name}", start=0, end=length))
        except FileNotFoundError as missing:
            raise _missing(shard, name, self.url) from missing

    def size(self, shard: int, name: str) -> int:
        filesystem, root = self._open()
        try:
            return int(filesystem.size(f"{root}/{shard}/{name}"))
        except FileNotFoundError as missing:
            raise _missing(shard, name, self.url) from missing

    def claim(self, project: str) -> None:
        filesystem, root = self._open()
        path = f"{root}/{OWNER}"
        if not filesystem.exists(path):
            filesystem.makedirs(root, exist_ok=True)
            try:
                filesystem.pipe_file(path, project.encode(), mode="create")
            except FileExistsError:  # another was faster
                filesystem.invalidate_cache(root)
            except (NotImplementedError, TypeError, ValueError):
                # This store cannot create exclusively: of two projects that claim it in the
                # same moment, the first finds out when it next starts.
                filesystem.pipe_file(path, project.encode())
        _check_owner(filesystem.cat_file(path).decode(), project, self.url)

    def list(self) -> Iterator[tuple[int, str, float]]:
        filesystem, root = self._open()
        filesystem.invalidate_cache()
        for path in filesystem.find(root):
            directory, _, name = str(path).rpartition("/")
            shard = directory.rpartition("/")[2]
            if shard.isdecimal():
                yield int(shard), name, filesystem.modified(path).timestamp()

    def remove(self, shard: int, name: str) -> None:
        filesystem, root = self._open()
        try:
            filesystem.rm_file(f"{root}/{shard}/{name}")
        except FileNotFoundError:
            return


def open_files(location: str | Path) -> StateFiles:
    """The place `location` names: a directory, or a URL such as `s3://bucket/state`."""
    text = str(location)
    return RemoteFiles(text) if "://" in text else LocalFiles(Path(text))


def remove_below(location: str, beginning: str) -> None:
    """Remove the directories `<location>/<name>` where the name is `beginning`, or that and a
    mark without a dash behind it."""

    def fits(name: str) -> bool:
        return name == beginning or (name.rpartition("-")[0] + "-" == beginning)

    if "://" not in location:
        for path in Path(location).glob("*"):
            if fits(path.name):
                shutil.rmtree(path, ignore_errors=True)
        return
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(location)
    if filesystem.exists(root):
        for path in filesystem.ls(root, detail=False):
            if fits(str(path).rstrip("/").rpartition("/")[2]):
                filesystem.rm(path, recursive=True)


def checked(data: bytes, shard: int, name: str) -> bytes:
    """`data`, if it has the hash that `name` promises."""
    promised = name.rpartition(".")[0].rpartition("-")[2]
    found = hashlib.blake2b(data, digest_size=HASH_BYTES).hexdigest()
    if found != promised:
        raise StateFileDamagedError(
            f'state file "{name}" of shard {shard} is damaged',
            detail=f"its {len(data)} bytes hash to {found}",
            hint="put a good copy back, or rebuild: `tailrace view rebuild NAME` for every view, and restart",
        )
    return data


def _check_owner(found: str, project: str, root: str) -> None:
    if found.strip() != project:
        raise StateOwnedError(
            f'the state in {root} is of project "{found.strip()}", not of "{project}"',
            detail="two projects would sweep each other's files",
            hint=f"give each project a directory of its own, or remove {root}/{OWNER} and all beside it",
        )


def _missing(shard: int, name: str, root: str) -> StateFileMissingError:
    return StateFileMissingError(
        f'state file "{name}" of shard {shard} is missing',
        detail=f"a committed tick names it, and {root} does not hold it",
        hint="put it back, or rebuild: `tailrace view rebuild NAME` for every view, and restart",
    )


def _flush(path: Path) -> None:
    """Flush a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
