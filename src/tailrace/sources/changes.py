"""Change streams of one table in Python, sync and async.

Changes come in the order of the topic, only committed ones. Within one partition that is
the order of the source's transactions, and a stream that goes on from the position of the
last change it gave neither repeats nor leaves out one (of Postgres: the last of a
transaction).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import orjson

from tailrace.client.admin import Admin
from tailrace.client.errors import OffsetOutOfRangeError, UnknownTopicError
from tailrace.client.fetcher import Fetcher
from tailrace.clock import SYSTEM
from tailrace.errors import UsageError
from tailrace.records.envelope import Change, read_change
from tailrace.records.position import Position, parse_position
from tailrace.sources.declare import Changes
from tailrace.sources.errors import PositionError, PositionTooOldError

WAIT = 0.25


def follow(wanted: Changes) -> Iterator[Change]:
    """Changes of a table from where it was asked for, then as they happen, for ever."""
    with Fetcher(_bootstrap(wanted)) as fetcher:
        offsets, after = _start(wanted, fetcher)
        held: dict[int, list[Change]] = {}
        while True:
            for partition, offset in offsets.items():
                # With several partitions none may keep the others waiting.
                wait = 0 if held.get(partition) else WAIT / len(offsets)
                records, following, _ = fetcher.fetch(wanted.topic, partition, offset, wait=wait)
                offsets[partition] = following
                read = (read_change(record.key, record.value) for record in records)
                changes = held.pop(partition, []) + [one for one in read if one is not None]
                if following > offset and changes and _is_sqlite(changes[-1]):
                    # What comes after it, if the log has more already, decides on its position.
                    held[partition] = changes[-1:]
                known = len(changes) - len(held.get(partition, []))
                for number, change in enumerate(changes[:known], 1):
                    if after is None or _place(change) > after:
                        yield _positioned(change, changes[number : number + 1], wanted)


async def follow_async(wanted: Changes) -> AsyncIterator[Change]:
    """The same for asyncio; waiting happens in a thread."""
    stream = follow(wanted)
    while True:
        yield await asyncio.to_thread(next, stream)


def _is_sqlite(change: Change) -> bool:
    return change.extra.get("connector") == "sqlite"


def _place(change: Change) -> tuple[int, float]:
    """Where a change stands among those of its source: a transaction of Postgres is one
    place; of SQLite, where one read is one transaction, every record has its own."""
    if _is_sqlite(change):
        return int(change.extra.get("lsn") or 0), change.ordinal or 0
    return change.commit or 0, inf


def _positioned(change: Change, following: list[Change], wanted: Changes) -> Change:
    """A change with the position behind it; `following`: the next one of its partition."""
    number, ordinal = _place(change)
    if change.extra.get("connector") == "mysql":
        # A position of a change knows no server: it is one of this topic's own order.
        kind, version = "mysql", f"{number + 1:016X}"
    elif not _is_sqlite(change):
        kind, version = "pg", f"{number + 1:016X}"
    elif following and _place(following[0])[0] == number:
        kind, version = "sqlite", f"{number:016X}.{ordinal}"
    else:
        kind, version = "sqlite", f"{number:016X}"
    return replace(change, position=str(Position(kind, wanted.table.source, version)))


def _start(wanted: Changes, fetcher: Fetcher) -> tuple[dict[int, int], tuple[int, float] | None]:
    """Offsets to read from, and the place that changes must be later than."""
    admin = Admin.over(fetcher.cluster)
    try:
        ends = admin.topic_end_offsets(wanted.topic)
    except UnknownTopicError as error:
        raise UsageError(
            f'table "{wanted.table.name}" is not captured (there is no topic {wanted.topic})',
            hint="is the source running? see `tailrace source list`",
        ) from error
    if wanted.start == "now":
        return ends, None
    places = [(wanted.topic, partition) for partition in ends]
    first = {place[1]: offset for place, offset in admin.start_offsets(places).items()}
    if wanted.start == "snapshot":
        return first, None
    try:
        position = parse_position(wanted.start)
    except UsageError as error:
        raise PositionError(error.message, detail=error.detail, hint=error.hint) from error
    if position.name != wanted.table.source or position.kind not in ("pg", "sqlite", "mysql"):
        raise PositionError(
            f"{wanted.start} is no position of source {wanted.table.source}",
            hint='"now", "snapshot", or a position of that source',
        )
    since = _complete_since(admin, wanted.topic)
    number, ordinal = position.number & (1 << 64) - 1, position.ordinal
    after: tuple[int, float] = (number, inf if ordinal is None else ordinal)
    if position.kind != "sqlite":
        after = (number - 1, inf)
    # In the middle of a change: its transaction is read once more.
    reached = number if ordinal is None else number - 1
    return _offsets_at(wanted, fetcher, reached, first, since), after


def _complete_since(admin: Admin, topic: str) -> int:
    """The time (milliseconds) from which on a topic promises to hold every change."""
    config = {name: entry.value for name, entry in admin.topic_config(topic).items()}
    if "compact" not in (config.get("cleanup.policy") or ""):
        return 0
    return SYSTEM.wall_ms() - int(config.get("min.compaction.lag.ms") or 0)


def _offsets_at(
    wanted: Changes, fetcher: Fetcher, position: int, first: dict[int, int], since: int
) -> dict[int, int]:
    """Where the cuts say a position stood in the topic's partitions."""
    offsets = dict.fromkeys(first, 0)
    oldest: int | None = None
    forgotten = False
    try:
        for record in fetcher.read_all(f"{wanted.table.source}.transactions"):
            document = orjson.loads(record.value or b"{}")
            if document.get("status") not in ("CUT", "PART"):
                continue
            reached = int(document["position"].rpartition(":")[2], 16) & (1 << 64) - 1
            oldest = reached if oldest is None else oldest
            # The first change after the position may have been compacted away since.
            forgotten |= reached > position and record.timestamp < since
            if document["status"] == "CUT" and reached > position:
                break
            for partition, offset in document["offsets"].get(wanted.topic, {}).items():
                if document["status"] == "CUT":
                    offsets[int(partition)] = offset
    except OffsetOutOfRangeError:
        oldest = None
    behind = oldest is None or position < oldest or forgotten
    if behind or any(offsets[p] < first[p] for p in first):
        raise PositionTooOldError(
            f"changes from {wanted.start} on are not all kept any more",
            detail=f"{wanted.topic} holds every change only from later on.",
            hint=f'declare history={{"{wanted.table.table}": "90 days"}}, or start with "snapshot"',
        )
    return offsets


def _bootstrap(wanted: Changes) -> str:
    """The log to read: as given, else of the project here."""
    given = wanted.bootstrap or os.environ.get("TAILRACE_LOG")
    if given and ":" in given and not given.startswith((".", "/")):
        return given
    from tailrace import config
    from tailrace.telemetry.part import read_reports

    settings = config.load(Path(given or "."))
    for report in read_reports(settings.state_directory):
        if report.get("kind") == "broker" and report.get("address"):
            return str(report["address"])
    return settings.bootstrap
