"""The way to a version of a shard, through the files before it.

Versions form a chain: every file names the version it began from. A snapshot ends the
chain; a merged file leaps over a stretch of it, ten or a hundred versions at a time, so
catching up n ticks reads O(log n) files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tailrace.pipelines.errors import StateFileMissingError
from tailrace.pipelines.state import delta
from tailrace.pipelines.state.files import StateFiles
from tailrace.pipelines.state.store import Version

TIERS = (10, 100)  # versions that a merged file leaps over; a snapshot ends every thousand
KEPT = 20  # merged files of one length that are remembered
MOST_MERGED_BYTES = 32 << 20  # larger stretches are not merged: opening files is not their cost


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach a version: the state to start from, then files in order.

    `start` is the version a cache already holds, or None to begin from nothing.
    """

    start: Version | None
    files: tuple[str, ...]
    depth: int
    merges: tuple[delta.Merge, ...] = ()


def route(files: StateFiles, shard: int, version: Version, known: Version | None) -> Route:
    """The files that lead to `version`, from `known` if it lies on the way.

    Leaps where it can. Files behind a leap may have been swept: a way that is broken there
    is given up for the next best, down to a restore from nothing.
    """
    problem: StateFileMissingError | None = None
    for start, leaps in ((known, True), (known, False), (None, True), (None, False)):
        try:
            return _route(files, shard, version, start, leaps)
        except StateFileMissingError as missing:
            problem = problem or missing
    assert problem is not None
    raise problem


def _route(
    files: StateFiles, shard: int, version: Version, known: Version | None, leaps: bool
) -> Route:
    steps: list[tuple[str, ...]] = []
    at, top, depth = version, Link(0, (), (), None), -1
    start: Version | None = None
    merges: set[delta.Merge] = set()  # older versions remember older merges
    limit = -1 if known is None else tick_of(known)
    while True:
        if at == known:
            start = known
            break
        if not at:
            break
        # Before its files are looked at: what is leapt over may have been swept.
        leap = _leap(files, shard, merges, depth, limit) if leaps else None
        if leap is None:
            headers = _headers(files, shard, at)
            link = Link.of(headers.values())
            if at == version:
                top = link
            else:
                merges.update(link.merges)
                leap = _leap(files, shard, merges, link.depth, limit) if leaps else None
        if leap is not None:
            (_, depth, name), at = leap
            steps.append((name,))
            continue
        steps.append(tuple(n for n, h in headers.items() if not h.snapshot and not h.merged))
        if link.previous == known:
            start = known
            break
        if link.snapshot is not None:
            steps.append((next(name for name, header in headers.items() if header.snapshot),))
            break
        merges.update(link.merges)
        at, depth = link.previous, link.depth - 1
    names = tuple(name for step in reversed(steps) for name in step)
    return Route(start, names, top.depth, top.merges)


@dataclass(frozen=True, slots=True)
class Link:
    """One version in the chain, from the headers of its files."""

    depth: int
    previous: Version
    merges: tuple[delta.Merge, ...]
    snapshot: delta.Header | None

    @classmethod
    def of(cls, headers: Iterable[delta.Header]) -> Link:
        listed = list(headers)
        snapshot = next((header for header in listed if header.snapshot), None)
        merges = {merge for header in listed for merge in header.merges}
        return cls(
            1 if snapshot else max(header.depth for header in listed),
            listed[0].previous,
            tuple(sorted(merges)),
            snapshot,
        )


def _headers(files: StateFiles, shard: int, version: Version) -> dict[str, delta.Header]:
    """The headers of a version's files; a merged one may have been swept."""
    found: dict[str, delta.Header] = {}
    for name in version:
        try:
            found[name] = delta.read_header(files, shard, name)
        except StateFileMissingError:
            if not name.endswith(".merged"):
                raise
    return found


def _leap(
    files: StateFiles, shard: int, merges: Iterable[delta.Merge], depth: int, limit: int
) -> tuple[delta.Merge, Version] | None:
    """The merge that leads to this depth from furthest back, not before tick `limit`, and the
    version it leads from."""
    for merge in sorted(m for m in merges if m[0] == depth and m[2]):
        try:
            base = delta.read_header(files, shard, merge[2]).base
        except StateFileMissingError:
            continue  # swept, because a longer leap was kept
        if base is not None and tick_of(base) >= limit:
            return merge, base
    return None


def tick_of(version: Version) -> int:
    """The tick that made a version; 0 for the empty one."""
    return max((int(name.split("-", 1)[0]) for name in version), default=0)


def due(merges: Iterable[delta.Merge], tier: int, depth: int) -> int | None:
    """Where a merge of `tier` versions up to `depth` begins, if its time has come."""
    last = max((end for end, base, _ in merges if end - base == tier), default=0)
    return depth - tier if depth - last >= tier else None


def kept(merges: Iterable[delta.Merge], tiers: Iterable[int]) -> tuple[delta.Merge, ...]:
    """The merges worth remembering: the last ones of each length."""
    found: list[delta.Merge] = []
    for tier in tiers:
        found += sorted(m for m in merges if m[0] - m[1] == tier)[-KEPT:]
    return tuple(sorted(found))


def merge(
    files: StateFiles,
    shard: int,
    version: Version,
    merges: Iterable[delta.Merge],
    begins: int,
) -> tuple[Version, list[delta.Chunk], tuple[str, ...]] | None:
    """All changes from depth `begins` up to `version`: the version they begin at, the changes,
    and the operators dropped on the way. None where it is not worth it or not possible."""
    try:
        base = _ancestor(files, shard, version, merges, begins)
        way = None if base is None else route(files, shard, version, base)
        if base is None or way is None or way.start != base:
            return None
        merged: dict[str, dict[bytes, bytes | None]] = {}
        dropped: set[str] = set()
        size = 0
        for name in way.files:
            size += files.size(shard, name)
            if size > MOST_MERGED_BYTES:
                return None
            header, chunks = delta.read(files, shard, name)
            for operator in header.dropped:
                dropped.add(operator)
                merged.pop(operator, None)
            for operator, keys, values in chunks:
                merged.setdefault(operator, {}).update(zip(keys, values, strict=True))
    except StateFileMissingError:
        return None
    return base, list(_chunks(merged)), tuple(sorted(dropped))


def _ancestor(
    files: StateFiles, shard: int, version: Version, merges: Iterable[delta.Merge], depth: int
) -> Version | None:
    """The version that lies `depth` deep before `version`; None if a snapshot is between."""
    at = version
    while at:
        link = Link.of(_headers(files, shard, at).values())
        if link.depth == depth:
            return at
        if link.depth < depth or link.snapshot is not None:
            return None
        near = [m for m in merges if m[0] == link.depth and m[1] >= depth]
        leap = _leap(files, shard, near, link.depth, -1)
        at = leap[1] if leap is not None else link.previous
    return () if depth == 0 else None


def _chunks(merged: dict[str, dict[bytes, bytes | None]]) -> Iterator[delta.Chunk]:
    for operator, changes in sorted(merged.items()):
        keys = sorted(changes)
        for first in range(0, len(keys), delta.BATCH_ROWS):
            part = keys[first : first + delta.BATCH_ROWS]
            yield operator, part, [changes[key] for key in part]
