"""Whether a file that nobody syncs may still be trusted."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace import unsynced
from tailrace.testing.fake_clock import FakeClock
from tailrace.unsynced import WriteBack, boot_id, file_mark


def test_a_copy_is_another_file_even_under_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x" * 100)
    mark = file_mark(path)
    path.write_bytes(b"y")
    assert file_mark(path) == mark
    shutil.copy2(path, tmp_path / "copy")
    assert file_mark(tmp_path / "copy") != mark
    (tmp_path / "copy").replace(path)
    assert file_mark(path) != mark


def test_a_restored_backup_is_another_file_though_its_inode_may_be_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data"
    marks = set()
    for _ in range(20):
        path.write_bytes(b"x")
        marks.add(file_mark(path))
        path.unlink()
    if len({mark.split()[-1] for mark in marks}) > 1:  # where births are told
        assert len(marks) == 20


def test_an_unknown_boot_is_never_equal_to_that_of_another_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsynced, "_BOOT_ID", tmp_path / "none")
    monkeypatch.delenv("TAILRACE_UNKNOWN_BOOT", raising=False)
    mine = boot_id()
    assert boot_id() == mine
    ask = (
        "import sys; from pathlib import Path; from tailrace import unsynced;"
        "unsynced._BOOT_ID = Path(sys.argv[1]); print(unsynced.boot_id())"
    )
    command = [sys.executable, "-c", ask, str(tmp_path / "none")]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    assert child.stdout.strip() == mine  # a process that this one starts
    environment = {k: v for k, v in os.environ.items() if k != "TAILRACE_UNKNOWN_BOOT"}
    other = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert other.stdout.strip() != mine
    (tmp_path / "none").touch()
    assert boot_id() == mine


class Disk:
    """Counts flushes; the failing one raises."""

    def __init__(self, failing: int = 0) -> None:
        self.failing, self.flushed = failing, 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, number: int) -> None:
        self.gate.wait(30)
        self.flushed += 1
        if self.flushed == self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def until(done: Callable[[], bool]) -> None:
    for _ in range(3000):
        if done():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never happened")


def test_a_file_is_flushed_now_and_then_and_nobody_waits(tmp_path: Path) -> None:
    disk, clock = Disk(), FakeClock()
    path = tmp_path / "data"
    path.touch()
    back = WriteBack(10, disk, clock)
    told: list[int] = []
    disk.gate.clear()
    back.look(path, lambda: told.append(1))
    clock.advance(100)
    back.look(path, lambda: told.append(1))  # the first is still under way
    disk.gate.set()
    until(lambda: not back._running)
    assert disk.flushed == 1
    back.look(path, lambda: told.append(1))
    until(lambda: not back._running)
    back.look(path, lambda: told.append(1))  # not yet again
    until(lambda: not back._running)
    assert disk.flushed == 2
    assert told == []


def test_pages_that_cannot_be_written_are_told_once(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.touch()
    told = threading.Event()
    WriteBack(10, Disk(failing=1)).look(path, told.set)
    assert told.wait(30)


def test_a_file_that_is_gone_is_nothing_to_tell(tmp_path: Path) -> None:
    back = WriteBack(10, Disk())
    told: list[int] = []
    back.look(tmp_path / "none", lambda: told.append(1))
    assert back.wait()
    assert told == []
