"""Which records of a topic are being erased, as its setting `tailrace.erase` says it.

0:5-9,12;3:991      of partition 0 the offsets 5 to 9 and 12, of partition 3 the offset 991
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

ERASE = "tailrace.erase"
Ranges = list[tuple[int, int]]
"""First and last offsets, in order and apart."""


def ranges_of(offsets: Iterable[int]) -> Ranges:
    """The offsets as ranges."""
    found: Ranges = []
    for offset in sorted(set(offsets)):
        if found and found[-1][1] == offset - 1:
            found[-1] = found[-1][0], offset
        else:
            found.append((offset, offset))
    return found


def offsets_of(ranges: Ranges) -> Iterator[int]:
    """The offsets of some ranges, one by one."""
    return (offset for first, last in ranges for offset in range(first, last + 1))


def write_request(wanted: Mapping[int, Ranges]) -> str:
    """The setting's text; "" if nothing is being erased."""
    return ";".join(
        f"{partition}:"
        + ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
        for partition, ranges in sorted(wanted.items())
        if ranges
    )


def read_request(text: str) -> dict[int, Ranges]:
    """Raises ValueError for what is no such text."""
    found: dict[int, Ranges] = {}
    for part in filter(None, text.strip().split(";")):
        number, _, offsets = part.partition(":")
        ranges = found.setdefault(int(number), [])
        for each in offsets.split(","):
            first, dash, last = each.partition("-")
            ranges.append((int(first), int(last) if dash else int(first)))
            if not 0 <= ranges[-1][0] <= ranges[-1][1]:
                raise ValueError(f"{each!r} is no range of offsets")
    return {number: sorted(ranges) for number, ranges in found.items()}


def held(ranges: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    """Whether an offset from `first` to `last` is in the ranges."""
    place = bisect_left(ranges, first, key=lambda each: each[1])
    return place < len(ranges) and ranges[place][0] <= last
