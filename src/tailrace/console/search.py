"""A page of a topic's records, filtered, and where the next one begins.

A page goes forward in the log or back from a place, by partition; what it found is put in order
of time. `next` names for each partition where to go on, so that following it meets every record
once. A page looks at a limited number of records, bytes and seconds: where few match, it ends
early with what it has and a `next`, and `scanned` says how many records it looked at.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from tailrace.client.fetcher import Fetcher
from tailrace.client.ranges import Headers, KafkaRanges, Range
from tailrace.clock import SYSTEM, Clock
from tailrace.console.conditions import Condition, within
from tailrace.console.errors import UnknownNameError
from tailrace.console.records import Show, find_starts, read_range, text
from tailrace.console.streams import parse_place
from tailrace.errors import UsageError

MOST_RECORDS = 200_000
MOST_BYTES = 32 << 20
MOST_SECONDS = 4.0
BLOCK = 5_000  # records of one partition between two looks at the limits


@dataclass(frozen=True, slots=True)
class Filter:
    """What a record must have: all that is given. Texts are looked for as they stand."""

    partition: int | None = None
    key: str | None = None
    value: str | None = None
    header: str | None = None  # NAME, or NAME=TEXT
    where: Condition | None = None

    @property
    def everything(self) -> bool:
        return not (self.key or self.value or self.header or self.where)

    def accepts(self, key: bytes | None, value: bytes | None, headers: Headers, show: Show) -> bool:
        if self.key and not _holds(key, self.key):
            return False
        if self.header and not self._has_header(headers):
            return False
        if self.value and not _holds(value, self.value):
            shown = None if show is text else show(value)
            if shown is None or self.value not in shown:
                return False
        return self.where is None or self.where(_row(key, value, show))

    def _has_header(self, headers: Headers) -> bool:
        name, _, wanted = (self.header or "").partition("=")
        return any(
            found == name and (not wanted or _holds(item, wanted)) for found, item in headers or ()
        )


def _holds(data: bytes | None, wanted: str) -> bool:
    return data is not None and wanted.encode() in data


def _row(key: bytes | None, value: bytes | None, show: Show) -> dict[str, Any]:
    """What a condition sees: the fields of the value, a change's row, and `key`."""
    shown = value if show is text else (show(value) or "").encode()
    try:
        found = orjson.loads(shown or b"")
    except orjson.JSONDecodeError:
        found = {}
    if not isinstance(found, dict):
        found = {}
    row = found.get("after") or found.get("before") if "op" in found else None
    return {"key": text(key), **(row if isinstance(row, dict) else {}), **found}


@dataclass(slots=True)
class _Partition:
    """One partition on its way: `at` is the offset to go on from (going back: to go on before)."""

    at: int
    until: int
    found: list[dict[str, Any]] = field(default_factory=list)

    def next_block(self, back: bool, size: int) -> tuple[int, int]:
        if back:
            return max(self.until, self.at - size), self.at
        return self.at, min(self.until, self.at + size)

    def take(self, found: Iterator[dict[str, Any]], end: int, most: int, size: int) -> int:
        """Records of a block that ends at `end`, until there are `most` or `size` characters;
        how many characters they have."""
        held = 0
        for record in found:
            self.found.append(record)
            held += len(record["value"] or "")
            most -= 1
            if most <= 0 or held >= size:
                self.at = record["offset"] + 1
                return held
        self.at = end
        return held

    def take_back(self, found: Iterator[dict[str, Any]], first: int, most: int, size: int) -> int:
        """The same for the last records of a block that begins at `first`, the newest first."""
        last: deque[dict[str, Any]] = deque()
        held = 0
        self.at = first
        for record in found:
            last.append(record)
            held += len(record["value"] or "")
            while len(last) > most or (held > size and len(last) > 1):
                held -= len(last.popleft()["value"] or "")
                self.at = last[0]["offset"] if last else record["offset"] + 1
        self.found += reversed(last)
        return held


def search(
    bootstrap: str,
    topic: str,
    start: str,
    limit: int,
    show: Show = text,
    wanted: Filter | None = None,
    after: str | None = None,
    clock: Clock = SYSTEM,
) -> dict[str, Any]:
    """`{"records", "next", "scanned"}`: up to `limit` records that `wanted` accepts.

    `start` is "latest" (back from the end, the newest first), "earliest", a time, or `offset:N`.
    `after` is the `next` of the page before, with the same `start`.
    """
    wanted = wanted or Filter()
    back = start == "latest"
    reader = KafkaRanges(bootstrap)
    fetcher = Fetcher(bootstrap, timeout=10.0)
    try:
        bounds = reader.bounds(topic)
        if not bounds:
            raise UnknownNameError(f"there is no topic {topic!r}")
        places = _places(bootstrap, topic, start, after, bounds, clock)
        partitions = {
            partition: _Partition(at, bounds[partition][0] if back else bounds[partition][1])
            for partition, at in places.items()
            if partition in bounds and wanted.partition in (None, partition)
        }
        scanned = _scan(fetcher, topic, partitions, back, limit, show, wanted)
    finally:
        fetcher.close()
        reader.close()
    # Each partition gives its records in the order of the log, whatever times they carry: what is
    # left over is then behind all that was taken, and no record comes twice.
    merged = heapq.merge(
        *(each.found for each in partitions.values()),
        key=lambda record: record["timestamp"],
        reverse=back,
    )
    kept = list(islice(merged, limit))
    for record in merged:
        each = partitions[record["partition"]]
        first = record["offset"] + 1 if back else record["offset"]
        each.at = max(each.at, first) if back else min(each.at, first)
    going_on = {
        partition: each.at
        for partition, each in sorted(partitions.items())
        if (each.at > each.until if back else each.at < each.until)
    }
    places_left = ",".join(f"{partition}:{at}" for partition, at in going_on.items())
    return {"records": kept, "next": places_left or None, "scanned": scanned}


def _places(
    bootstrap: str, topic: str, start: str, after: str | None, bounds: Any, clock: Clock
) -> dict[int, int]:
    """Where each partition begins, within what is there."""
    if after is not None:
        places = parse_place(after)
    elif start == "latest":
        places = {partition: end for partition, (_, end) in bounds.items()}
    elif start.startswith("offset:"):
        number = start.removeprefix("offset:")
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            raise UsageError(f"{start!r} is no start", hint="offset:1200")
        places = dict.fromkeys(bounds, int(number))
    else:
        places = find_starts(bootstrap, topic, start, bounds, clock)
    return {
        partition: min(max(at, bounds[partition][0]), bounds[partition][1])
        for partition, at in places.items()
        if partition in bounds
    }


def _scan(
    fetcher: Fetcher,
    topic: str,
    partitions: dict[int, _Partition],
    back: bool,
    limit: int,
    show: Show,
    wanted: Filter,
) -> int:
    """Fill the partitions' `found` by blocks in turns; how many records were looked at."""
    block = limit if wanted.everything else max(limit, BLOCK)
    condition = wanted.where
    if condition is not None:
        wanted = Filter(wanted.partition, wanted.key, wanted.value, wanted.header, within(condition))  # fmt: skip
    until = SYSTEM.monotonic() + MOST_SECONDS
    scanned, held = 0, 0

    def accept(key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        nonlocal scanned
        scanned += 1
        return wanted.accepts(key, value, headers, show)

    while True:
        for partition, each in partitions.items():
            first, end = each.next_block(back, block)
            if first >= end or len(each.found) >= limit:
                continue
            found = read_range(fetcher, Range(topic, partition, first, end), show, accept)
            room = limit - len(each.found)
            if back:
                held += each.take_back(found, first, room, MOST_BYTES - held)
            else:
                held += each.take(found, end, room, MOST_BYTES - held)
            if scanned >= MOST_RECORDS or held >= MOST_BYTES or SYSTEM.monotonic() > until:
                return scanned
        if sum(len(each.found) for each in partitions.values()) >= limit or not any(
            each.next_block(back, 1)[0] < each.next_block(back, 1)[1] for each in partitions.values()
        ):  # fmt: skip
            return scanned
