"""Event topics and reactions as a part of a project: owns partitions until it must stop."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.client.errors import ClientError
from tailrace.client.log import connect
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import TailraceError
from tailrace.facts import excising
from tailrace.facts.declare import Events
from tailrace.facts.erasing import finish_begun
from tailrace.facts.erasures import Erasures
from tailrace.facts.reactions import Reaction
from tailrace.facts.reservations import Reservations
from tailrace.facts.subjects import register

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.client.schemas import Schemas
    from tailrace.facts.opened import OpenedEvents
    from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)
REPORT_SECONDS = 1.0
PAUSE_SECONDS = 2.0
ERASURE_SECONDS = 10.0
"""Between two looks for erasures that were cut short."""


def run(
    declared: Iterable[Events[Any] | Reservations],
    part: Part,
    reactions: Iterable[Reaction] = (),
    schemas: Schemas | None = None,
) -> None:
    """Own what the groups give us of these topics, and react, until `part` must stop. Their types
    are registered at `schemas` first; a registry that is away is waited for."""
    wanted, react = list(declared), list(reactions)
    while not part.stopping.is_set():
        try:
            with ExitStack() as stack:
                if schemas is not None:
                    for one in wanted:
                        if isinstance(one, Events):
                            register(schemas, one)
                source = stack.enter_context(connect(part.bootstrap))
                index = part.directory / "events"
                opened = [_open(stack, source, index, each) for each in wanted]
                for each in react:
                    stack.enter_context(each.open(source, index=index))
                part.report("running", error=None)
                rates = {each.declared.name: Rate(part.clock) for each in opened}
                keys = next((each.keys for each in opened if each.keys is not None), None)
                book = stack.enter_context(closing(Erasures(source)))
                looked_at = -ERASURE_SECONDS
                while not part.stopping.wait(REPORT_SECONDS):
                    if SYSTEM.monotonic() - looked_at > ERASURE_SECONDS:
                        looked_at = SYSTEM.monotonic()
                        if keys is not None:
                            finish_begun(source, keys, patience=0.0)
                        excising.finish_begun(source, book, patience=0.0)
                    told = {each.declared.name: figures(each) for each in opened}
                    for name, rate in rates.items():
                        told[name]["rate"] = rate.of(told[name]["written"])
                    part.report("running", topics=told)
        except (ClientError, TailraceError) as error:
            waiting = isinstance(error, ClientError)
            part.report("lagging" if waiting else "failed", error=error.as_dict())
            log.warning("event topics wait", extra={"error": str(error)})
            part.stopping.wait(PAUSE_SECONDS)


def _open(
    stack: ExitStack, source: Log, index: Path, declared: Events[Any] | Reservations
) -> OpenedEvents[Any]:
    if isinstance(declared, Reservations):
        return stack.enter_context(declared.open(source, index=index)).opened
    return stack.enter_context(declared.open(source, index=index))


class Rate:
    """Events a second, between two looks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at, self._count = clock.monotonic(), 0

    def of(self, count: int) -> float:
        now = self._clock.monotonic()
        grown, self._count = max(0, count - self._count), count
        passed, self._at = max(now - self._at, 1e-3), now
        return round(grown / passed, 1)


def figures(opened: OpenedEvents[Any]) -> dict[str, Any]:
    """What this process knows of the partitions it owns."""
    working = [each for each in opened.working() if each.serving]
    stamps = [(each.number, each.partition.index.stamp) for each in working]
    seconds = sum(stamp.rebuilt_seconds for _, stamp in stamps)
    return {
        "partitions": [number for number, _ in stamps],
        "commands": sum(each.commands for each in working),
        "rejected": sum(each.rejected for each in working),
        "written": sum(each.written for each in working),
        "waiting": sum(each.waiting for each in working),
        "longest_decision_ms": max((each.longest_ms for each in working), default=0),
        "owned": [
            {"partition": each.number, "waiting": each.waiting, "events": stamp.events}
            for each, (_, stamp) in zip(working, stamps, strict=True)
        ],
        "events": sum(stamp.events for _, stamp in stamps),
        "bytes": sum(stamp.bytes for _, stamp in stamps),
        "streams": sum(stamp.streams for _, stamp in stamps),
        "foreign": sum(stamp.foreign for _, stamp in stamps),
        "rebuilt_events": sum(stamp.rebuilt_events for _, stamp in stamps),
        "rebuilt_seconds": round(seconds, 3),
    }
