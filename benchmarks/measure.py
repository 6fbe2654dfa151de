"""CPU time of a process and all below it, a table with goals, and memory limits."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil


@dataclass(slots=True)
class Took:
    """What a piece of work took: seconds, and CPU seconds of everybody who worked on it."""

    seconds: float = 0.0
    cpu: float = 0.0


def cpu_seconds(process: psutil.Process | None = None) -> float:
    """CPU seconds of a process and all below it, brokers left out."""
    root = process or psutil.Process()
    total = 0.0
    for one in [root, *root.children(recursive=True)]:
        try:
            times = one.cpu_times()
            if "broker" not in " ".join(one.cmdline()):
                total += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return total


@contextlib.contextmanager
def measured() -> Iterator[Took]:
    """What the body takes, with all child processes."""
    took = Took()
    before, began = cpu_seconds(), time.perf_counter()
    yield took
    took.seconds, took.cpu = time.perf_counter() - began, cpu_seconds() - before


def written_by(pid: int) -> int:
    """Bytes that a process has handed to the disk since it began; 0 if it is gone."""
    try:
        return int(psutil.Process(pid).io_counters().write_bytes)
    except psutil.Error:
        return 0


def touch_pages(directory: Path, size: int) -> None:
    """Have the kernel hold `size` bytes of free memory that have been written before.

    On a virtual machine the first write to a page may have to wait until the host finds
    memory for it, which costs more than everything a broker does with the page; what comes
    first in a run would be measured slower than what comes after it.
    """
    block = os.urandom(1 << 20)
    path = directory / "touched"
    with path.open("wb", buffering=0) as file:
        for _ in range(size >> 20):
            file.write(block)
    path.unlink()


@dataclass(slots=True)
class Table:
    """One table: what, ours, beside what, ratio, goal."""

    missed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"  {'':<52}{'rows/s':>12}{'rows/CPU-s':>13}{'ratio':>8}  goal", flush=True)

    def speed(self, what: str, rows: int, took: Took) -> None:
        """A line without a goal."""
        rate, per_cpu = rows / took.seconds, rows / max(took.cpu, 1e-9)
        print(f"  {what:<52}{rate:>12,.0f}{per_cpu:>13,.0f}", flush=True)

    def ratio(self, what: str, ratio: float, goal: float | None, *, most: bool = False) -> None:
        """A ratio and its goal: at least, or with `most` at most."""
        sign = "≤" if most else "≥"
        met = goal is None or (ratio <= goal if most else ratio >= goal)
        wanted = "" if goal is None else f"{sign} {goal:g}x {'met' if met else 'MISSED'}"
        if not met:
            self.missed.append(what)
        print(f"  {what:<52}{'':>25}{ratio:>7.2f}x  {wanted}", flush=True)

    def figure(self, what: str, text: str) -> None:
        print(f"  {what:<52}{text}", flush=True)


@contextlib.contextmanager
def memory_limit(bytes_: int, name: str) -> Iterator[MemoryLimit | None]:
    """A control group that holds its processes, page cache included, to `bytes_`; None where
    this machine lets nobody make one (the caller says so)."""
    limit = MemoryLimit.make(bytes_, name)
    try:
        yield limit
    finally:
        if limit is not None:
            limit.remove()


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A control group of version 2, or of version 1 where that is mounted."""

    path: Path
    version: int

    @classmethod
    def make(cls, bytes_: int, name: str) -> MemoryLimit | None:
        root = Path("/sys/fs/cgroup")
        candidates = ((root, 2, "memory.max"), (root / "memory", 1, "memory.limit_in_bytes"))
        for parent, version, setting in candidates:
            path = parent / f"{name}-{os.getpid()}"
            try:
                if version == 2:
                    if "memory" not in (parent / "cgroup.controllers").read_text().split():
                        continue
                    (parent / "cgroup.subtree_control").write_text("+memory")
                path.mkdir()
                (path / setting).write_text(str(bytes_))
            except OSError:
                with contextlib.suppress(OSError):
                    path.rmdir()
                continue
            return cls(path, version)
        return None

    def take(self, pid: int) -> None:
        """Put a process into the group; those it forks later are in it too."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def pids(self) -> list[int]:
        """The processes in the group."""
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]

    @property
    def most_bytes(self) -> int:
        """The most that was in use at once."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        try:
            return int((self.path / name).read_text())
        except OSError:
            return 0

    def remove(self) -> None:
        parent = self.path.parent
        for pid in self.pids():
            with contextlib.suppress(OSError):
                (parent / "cgroup.procs").write_text(str(pid))
        with contextlib.suppress(OSError):
            self.path.rmdir()
