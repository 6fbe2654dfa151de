"""Both sides of a mirror, record by record, up to where it has come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tailrace.client.admin import Admin, Place
from tailrace.client.fetcher import Fetcher
from tailrace.mirroring.rows import MirrorRows, Run
from tailrace.records.batch import Record

MOST_DIFFERENCES = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """Records that are not the same: source offsets `first` to `last`."""

    topic: str
    partition: int
    first: int
    last: int
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`compared` records are the same on both sides; `gone` at one of them, by retention, or at
    the source by compaction."""

    compared: int
    gone: int
    differences: tuple[Difference, ...]


def compare(rows: MirrorRows, source: Fetcher, target: Fetcher) -> Comparison:
    """Read every mirrored range of both logs. Raises ClientError."""
    compared = gone = 0
    differences: list[Difference] = []
    for place in sorted(rows.positions):
        for run in rows.runs.get(place, ()):
            same, missing, found = _compare_run(place, run, rows, source, target)
            compared += same
            gone += missing
            differences += islice(found, MOST_DIFFERENCES - len(differences))
    return Comparison(compared, gone, tuple(differences))


def _compare_run(
    place: Place, run: Run, rows: MirrorRows, source: Fetcher, target: Fetcher
) -> tuple[int, int, list[Difference]]:
    first, at, count, _ = run
    name = rows.positions[place].target
    kept = _start(target, (name, place[1])) - at  # what is before it, retention removed
    theirs = {each.offset - first: each for each in _read(source, place, first, first + count)}
    theirs = {number: each for number, each in theirs.items() if number >= kept}
    ours = {each.offset - at: each for each in _read(target, (name, place[1]), at, at + count)}
    gone = count - len(theirs)
    wrong: list[tuple[int, str]] = []
    for number, record in sorted(theirs.items()):
        other = ours.get(number)
        if other is None:
            wrong.append((first + number, "is not at the target"))
        elif _content(record) != _content(other):
            wrong.append((first + number, "is another record at the target"))
    return len(theirs) - len(wrong), gone, list(_ranges(place, wrong))


def _read(fetcher: Fetcher, place: Place, start: int, end: int) -> Iterator[Record]:
    """What is still there of a range."""
    kept = max(start, _start(fetcher, place))
    if kept < end:
        yield from fetcher.read_range(*place, kept, end)


def _start(fetcher: Fetcher, place: Place) -> int:
    return Admin.over(fetcher.cluster).start_offsets([place])[place]


def _content(record: Record) -> tuple[object, ...]:
    return record.key, record.value, record.timestamp, tuple(record.headers)


def _ranges(place: Place, wrong: list[tuple[int, str]]) -> Iterator[Difference]:
    start = 0
    for number in range(1, len(wrong) + 1):
        ended = number == len(wrong) or wrong[number][1] != wrong[start][1]
        if ended or wrong[number][0] != wrong[number - 1][0] + 1:
            yield Difference(*place, wrong[start][0], wrong[number - 1][0], wrong[start][1])
            start = number
