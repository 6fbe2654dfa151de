"""Small files: a kill, a power cut or a full disk at any step leaves the old one or the new."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailrace.files import FILES, READ, Files
from tailrace.testing.power import PowerFiles

OLD, NEW = b"old and short", b"new, and a good deal longer than what was there before"
Work = Callable[[Files, Path], object]


class Killed(BaseException):
    """The process is gone; nothing of it runs any more."""


class Dying(PowerFiles):
    """A disk whose user is killed before the system call number `left`."""

    def __init__(self, root: Path, left: int) -> None:
        super().__init__(root)
        self.left = left

    def step(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    def open(self, path: str | Path, flags: int = READ) -> int:
        self.step()
        return super().open(path, flags)

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, at: int) -> int:  # type: ignore[override]
        self.step()
        return os.pwrite(number, data[:7], at)  # a call may take less than it was given

    def sync_data(self, number: int) -> None:
        self.step()
        super().sync_data(number)

    def rename(self, old: str | Path, new: str | Path) -> None:
        self.step()
        super().rename(old, new)

    def link(self, old: str | Path, new: str | Path) -> None:
        self.step()
        super().link(old, new)

    def remove(self, path: str | Path) -> None:
        self.step()
        super().remove(path)

    def sync_directory(self, path: str | Path) -> None:
        self.step()
        super().sync_directory(path)


def replace(files: Files, path: Path) -> object:
    return files.write_whole(path, NEW)


def replace_among_others(files: Files, path: Path) -> object:
    return files.write_whole(path, NEW, shared=True)


def create(files: Files, path: Path) -> object:
    return files.create_whole(path, NEW)


def die_at_every_step(
    tmp_path: Path, before: bytes | None, work: Work
) -> list[tuple[bool, bytes | None, set[bytes | None]]]:
    """For every step: whether it was done, what a kill leaves, what power cuts leave."""
    found = []
    for left in range(100):
        root = tmp_path / f"killed-{left}"
        root.mkdir()
        path = root / "note"
        files = Dying(root, -1)
        if before is not None:
            files.write_whole(path, before) if before else path.touch()
            files.sync_directory(root)
        files.left = left
        done = True
        try:
            work(files, path)
        except Killed:
            done = False
        cuts = set()
        for seed in range(20):
            target = tmp_path / f"cut-{left}-{seed}"
            files.cut(target, random.Random(seed))
            cuts.add(FILES.read_whole(target / "note"))
        files.release()
        found.append((done, FILES.read_whole(path), cuts))
        if done:
            return found
    raise AssertionError("it never ends")


@pytest.mark.parametrize("work", [replace, replace_among_others])
@pytest.mark.parametrize("before", [None, OLD])
def test_a_kill_or_a_power_cut_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, before: bytes | None, work: Work
) -> None:
    found = die_at_every_step(tmp_path, before, work)
    assert len(found) > 5
    for done, killed, cuts in found:
        assert killed in (before, NEW)
        assert cuts <= {before, NEW}
        if done:
            assert killed == NEW
            assert cuts == {NEW}


@pytest.mark.parametrize("before", [None, b""])
def test_a_file_that_is_made_once_is_whole_or_not_there(
    tmp_path: Path, before: bytes | None
) -> None:
    found = die_at_every_step(tmp_path, before, create)
    assert len(found) > 5
    for done, killed, cuts in found:
        assert killed in (None, NEW)
        assert cuts <= {None, NEW}
        if done:
            assert cuts == {NEW}


def test_a_file_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "note"
    assert FILES.create_whole(path, OLD)
    assert not FILES.create_whole(path, NEW)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["note"]


@pytest.mark.parametrize("empty", [False, True])
def test_of_many_that_make_a_file_one_succeeds(tmp_path: Path, empty: bool) -> None:
    for turn in range(20):
        path = tmp_path / f"note-{turn}"
        if empty:
            path.touch()  # left by a crash
        names = [b"%d" % number for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda name, path=path: FILES.create_whole(path, name), names))
        assert made.count(True) == 1
        assert path.read_bytes() == names[made.index(True)]
    assert not list(tmp_path.glob("*.tmp"))


def test_a_file_system_without_links_makes_files_once_too(tmp_path: Path) -> None:
    class Linkless(Files):
        def link(self, old: str | Path, new: str | Path) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    path = tmp_path / "note"
    assert Linkless().create_whole(path, OLD)
    assert not Linkless().create_whole(path, NEW)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["note"]


def test_many_that_replace_a_file_leave_one_of_them_whole(tmp_path: Path) -> None:
    path = tmp_path / "note"
    texts = [bytes([65 + number]) * (1 + 5000 * number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            list(pool.map(lambda text: FILES.write_whole(path, text, shared=True), texts))
            assert path.read_bytes() in texts
    assert os.listdir(tmp_path) == ["note"]


class Refusing(Files):
    """A disk that refuses one kind of call."""

    def __init__(self, call: str, code: int) -> None:
        self.call, self.code = call, code

    def refuse(self, call: str) -> None:
        if call == self.call:
            raise OSError(self.code, os.strerror(self.code))

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, at: int) -> int:  # type: ignore[override]
        if at:
            self.refuse("pwrite")
        return os.pwrite(number, data[:7], at)

    def sync_data(self, number: int) -> None:  # type: ignore[override]
        self.refuse("sync_data")
        os.fdatasync(number)

    def rename(self, old: str | Path, new: str | Path) -> None:
        self.refuse("rename")
        super().rename(old, new)

    def link(self, old: str | Path, new: str | Path) -> None:
        self.refuse("link")
        super().link(old, new)


@pytest.mark.parametrize("work", [replace, replace_among_others])
@pytest.mark.parametrize(
    ("call", "code"),
    [("pwrite", errno.ENOSPC), ("sync_data", errno.EIO), ("rename", errno.EDQUOT)],
)
def test_a_disk_that_refuses_leaves_the_old_file_and_no_draft(
    tmp_path: Path, work: Work, call: str, code: int
) -> None:
    path = tmp_path / "note"
    path.write_bytes(OLD)
    with pytest.raises(OSError) as problem:
        work(Refusing(call, code), path)
    assert problem.value.errno == code
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["note"]


@pytest.mark.parametrize(
    ("call", "code"),
    [("pwrite", errno.ENOSPC), ("sync_data", errno.EIO), ("link", errno.EIO)],
)
def test_a_disk_that_refuses_a_new_file_leaves_none(tmp_path: Path, call: str, code: int) -> None:
    with pytest.raises(OSError):
        Refusing(call, code).create_whole(tmp_path / "note", NEW)
    assert os.listdir(tmp_path) == []


def test_an_empty_file_is_no_file(tmp_path: Path) -> None:
    assert FILES.read_whole(tmp_path / "note") is None
    (tmp_path / "note").touch()
    assert FILES.read_whole(tmp_path / "note") is None
    FILES.write_whole(tmp_path / "note", b"\n")
    assert FILES.read_whole(tmp_path / "note") == b"\n"


def test_directories_are_made_durably(tmp_path: Path) -> None:
    files = PowerFiles(tmp_path / "root")
    (tmp_path / "root").mkdir()
    path = tmp_path / "root" / "one" / "two" / "note"
    files.make_directories(path.parent)
    files.make_directories(path.parent)
    files.write_whole(path, NEW)
    for seed in range(20):
        target = tmp_path / f"cut-{seed}"
        files.cut(target, random.Random(seed))
        assert (target / "one" / "two" / "note").read_bytes() == NEW
    files.release()
