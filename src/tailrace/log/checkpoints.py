"""Kafka's small text files: offsets by partition, leader epochs, properties.

A checkpoint is: version 0, the number of lines, then the lines.
`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint` and
`cleaner-offset-checkpoint` in a data directory hold `topic partition offset`;
`leader-epoch-checkpoint` in a partition's directory holds `epoch start-offset`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

from tailrace.log.files import FILES, Files

Offsets = dict[tuple[str, int], int]


def read_offsets(path: Path) -> Offsets:
    """The offsets in a checkpoint; empty if it is missing or not whole."""
    lines = _lines(path)
    offsets: Offsets = {}
    for line in lines:
        parts = line.split(" ")
        if len(parts) == 3:
            try:
                offsets[parts[0], int(parts[1])] = int(parts[2])
            except ValueError:
                return {}
    return offsets


def write_offsets(
    path: Path, offsets: Mapping[tuple[str, int], int], files: Files = FILES, *, sync: bool = True
) -> None:
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
    _write(path, lines, files, sync)


class LeaderEpochs:
    """Which leader epoch began at which offset, for one partition."""

    __slots__ = ("epochs", "starts")

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.starts: list[int] = []

    @property
    def latest(self) -> int:
        return self.epochs[-1] if self.epochs else -1

    def assign(self, epoch: int, offset: int) -> None:
        """`epoch` begins at `offset`; later entries, of a log since cut, are forgotten."""
        while self.epochs and (self.starts[-1] >= offset or self.epochs[-1] >= epoch):
            self.epochs.pop()
            self.starts.pop()
        self.epochs.append(epoch)
        self.starts.append(offset)

    def cut_end(self, offset: int) -> None:
        """Forget epochs that begin at `offset` or later."""
        while self.starts and self.starts[-1] >= offset:
            self.epochs.pop()
            self.starts.pop()

    def cut_start(self, offset: int) -> None:
        """Forget epochs that end before `offset`; the one that holds it begins there."""
        place = bisect_right(self.starts, offset) - 1
        if place > 0:
            del self.epochs[:place]
            del self.starts[:place]
        if self.starts and self.starts[0] < offset:
            self.starts[0] = offset

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """(largest epoch ≤ `epoch`, where the next one begins); (−1, −1) if there is none."""
        place = bisect_right(self.epochs, epoch) - 1
        if place < 0:
            return (epoch, self.starts[0]) if self.epochs else (-1, -1)
        following = place + 1
        return (
            self.epochs[place],
            self.starts[following] if following < len(self.starts) else end_offset,
        )

    def at(self, offset: int) -> int:
        """The epoch in which `offset` was written; −1 if unknown."""
        place = bisect_right(self.starts, offset) - 1
        return self.epochs[place] if place >= 0 else -1

    def write(self, path: Path, files: Files = FILES, *, sync: bool = False) -> None:
        lines = [f"{epoch} {start}" for epoch, start in zip(self.epochs, self.starts, strict=True)]
        _write(path, lines, files, sync)

    @classmethod
    def read(cls, path: Path) -> LeaderEpochs:
        """The epochs in the file; none if it is missing or not whole."""
        epochs = cls()
        for line in _lines(path):
            try:
                epoch, start = map(int, line.split(" "))
            except ValueError:
                return cls()
            epochs.epochs.append(epoch)
            epochs.starts.append(start)
        return epochs


def read_properties(path: Path) -> dict[str, str]:
    """`name=value` lines of a Java properties file; empty if it is missing."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")
    return {name.strip(): value.strip() for name, value in pairs}


def write_properties(path: Path, values: Mapping[str, str], files: Files = FILES) -> None:
    text = "".join(f"{name}={value}\n" for name, value in values.items())
    files.write_whole(path, text.encode())


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text("ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    try:
        if int(lines[0]) != 0 or int(lines[1]) != len(lines) - 2:
            return []
    except (IndexError, ValueError):
        return []
    return lines[2:]


def _write(path: Path, lines: list[str], files: Files, sync: bool) -> None:
    text = "\n".join(["0", str(len(lines)), *lines]) + "\n"
    files.write_whole(path, text.encode("ascii"), sync=sync)
