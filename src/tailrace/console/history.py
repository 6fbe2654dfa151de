"""Figures of the last half hour: lag, freshness, retained WAL, batch times.

Taken every five seconds from what the parts report, so that a chart has a past when a
page is opened. Bounded by time and by the number of figures.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

EVERY_SECONDS = 5.0
KEPT = 360
MOST_SERIES = 5_000


class History:
    """Series of (time, value) by name; safe to use from several threads."""

    def __init__(self) -> None:
        self._series: dict[str, deque[tuple[int, float]]] = {}
        self._guard = threading.Lock()

    def take(self, state: Mapping[str, Any]) -> None:
        """Remember what a live state says."""
        at = int(state["at"])
        with self._guard:
            for name, value in figures_of(state):
                series = self._series.get(name)
                if series is None:
                    if len(self._series) >= MOST_SERIES:
                        continue
                    series = self._series[name] = deque(maxlen=KEPT)
                series.append((at, value))
            oldest = at - round(EVERY_SECONDS * KEPT * 1000)
            for name in [n for n, s in self._series.items() if s[-1][0] < oldest]:
                del self._series[name]

    def series(self, name: str) -> dict[str, list[float]]:
        """The times (ms) and values of one figure; empty if it was never seen."""
        with self._guard:
            kept = list(self._series.get(name, ()))
        return {"at": [at for at, _ in kept], "values": [value for _, value in kept]}


def figures_of(state: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The figures of a live state that are worth a chart, by the page's names for them."""
    yield "all:rate", sum(topic["rate"] for topic in state["topics"] if not topic.get("internal"))
    for topic in state["topics"]:
        yield f"topic:{topic['name']}", topic["rate"]
    for group in state["groups"]:
        yield f"group:{group['name']}", group["lag"]
    for part in state["parts"]:
        name = f"part:{part['kind']}-{part['name']}"
        for fact, series in (
            ("freshness_ms", name),
            ("lag", f"{name}:lag"),
            ("wal_retained_bytes", f"{name}:wal"),
            ("tick_ms", f"{name}:tick"),
            ("tick_rows", f"{name}:rows"),
        ):
            if isinstance(value := part.get(fact), int | float):
                yield series, value
        for stream, progress in (part.get("streams") or {}).items():
            if isinstance(took := progress.get("milliseconds"), int | float):
                yield f"stream:{stream}", took
