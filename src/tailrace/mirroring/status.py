"""How a mirror is, from its rows and, where it answers, the source.

The document is that of `tailrace mirror status --json` and of `GET /api/mirrors/NAME`. A lag in
records counts offsets, so markers of transactions as well; `lag_ms` is the age of the oldest record
that has not arrived. What a source that does not answer would say is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.client.admin import Admin, Place
from tailrace.client.errors import ClientError
from tailrace.client.fetcher import Fetcher
from tailrace.clock import SYSTEM, Clock
from tailrace.mirroring.rows import RUNNING, MirrorRows, Position

STOPPED = "stopped"
MOST_ASKED = 20  # partitions whose oldest record is looked at


def document(
    name: str, rows: MirrorRows, source: str | None, clock: Clock = SYSTEM
) -> dict[str, Any]:
    """`source`: the address to ask, if it shall be."""
    ends, lag_ms = _ask(rows.positions, source, clock)
    partitions = []
    for place, position in sorted(rows.positions.items()):
        end = None if ends is None else ends.get(place)
        stop = rows.stopped.get(place)
        one: dict[str, Any] = {
            "topic": place[0],
            "partition": place[1],
            "mirrored": position.next,
            "source_end": end,
            "lag_records": None if end is None else max(0, end - position.next),
        }
        if stop is not None:
            one["stopped"] = {"code": stop.code, "message": stop.message, "detail": stop.detail}
        partitions.append(one)
    state = rows.state.state if rows.state else None
    return {
        "name": name,
        "state": STOPPED if state == RUNNING and rows.stopped else state,
        "lag_records": None if ends is None else sum(each["lag_records"] or 0 for each in partitions),
        "lag_ms": lag_ms,
        "records": rows.records,
        "conflicts": rows.conflicts,
        "topics": partitions,
    }  # fmt: skip


def _ask(
    positions: Mapping[Place, Position], source: str | None, clock: Clock
) -> tuple[dict[Place, int] | None, int | None]:
    if source is None:
        return None, None
    try:
        with Admin(source, timeout=5.0, clock=clock) as admin:
            here = {topic.name for topic in admin.list_topics()}
            ends = admin.end_offsets(place for place in positions if place[0] in here)
        lag = {place: end - positions[place].next for place, end in ends.items()}
        behind = sorted((place for place in lag if lag[place] > 0), key=lambda place: -lag[place])
        with Fetcher(source, timeout=5.0, clock=clock) as fetcher:
            ages = [0]
            for place in behind[:MOST_ASKED]:
                try:
                    found = fetcher.fetch(*place, positions[place].next).records
                except ClientError:
                    continue  # it is gone, which is a stop of its own
                ages += [clock.wall_ms() - each.timestamp for each in found[:1]]
        return ends, max(0, *ages) if len(ages) > 1 else 0
    except ClientError:
        return None, None
