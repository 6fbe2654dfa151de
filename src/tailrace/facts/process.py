"""Event topics and reactions as a part of a project: owns partitions until it must stop."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.client.errors import ClientError
from tailrace.client.log import connect
from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.erasing import finish_begun
from tailrace.facts.reactions import Reaction
from tailrace.facts.reservations import Reservations

if TYPE_CHECKING:
    from tailrace.client.log import Log
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
) -> None:
    """Own what the groups give us of these topics, and react, until `part` must stop."""
    wanted, react = list(declared), list(reactions)
    while not part.stopping.is_set():
        try:
            with ExitStack() as stack:
                source = stack.enter_context(connect(part.bootstrap))
                index = part.directory / "events"
                opened = [_open(stack, source, index, each) for each in wanted]
                for each in react:
                    stack.enter_context(each.open(source, index=index))
                part.report("running", error=None)
                keys = next((each.keys for each in opened if each.keys is not None), None)
                looked_at = -ERASURE_SECONDS
                while not part.stopping.wait(REPORT_SECONDS):
                    if keys is not None and SYSTEM.monotonic() - looked_at > ERASURE_SECONDS:
                        looked_at = SYSTEM.monotonic()
                        finish_begun(source, keys, patience=0.0)
                    part.report("running", topics={e.declared.name: figures(e) for e in opened})
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


def figures(opened: OpenedEvents[Any]) -> dict[str, object]:
    """What this process knows of the partitions it owns."""
    stamps = [(each.number, each.index.stamp) for each in opened.owned()]
    seconds = sum(stamp.rebuilt_seconds for _, stamp in stamps)
    return {
        "partitions": [number for number, _ in stamps],
        "events": sum(stamp.events for _, stamp in stamps),
        "bytes": sum(stamp.bytes for _, stamp in stamps),
        "streams": sum(stamp.streams for _, stamp in stamps),
        "foreign": sum(stamp.foreign for _, stamp in stamps),
        "rebuilt_events": sum(stamp.rebuilt_events for _, stamp in stamps),
        "rebuilt_seconds": round(seconds, 3),
    }
