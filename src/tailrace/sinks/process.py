"""A sink as a process: deliver, report, do what is asked, wait out what fails."""

from __future__ import annotations

import logging
import random
from datetime import timedelta
from pathlib import Path

from tailrace.client.errors import ClientError
from tailrace.client.ranges import KafkaRanges, RangeReader
from tailrace.errors import TailraceError
from tailrace.sinks.beginnings import beginning_of, record
from tailrace.sinks.dead_letters import TopicDeadLetters, read_letters
from tailrace.sinks.delivery import Delivery, DeliverySettings
from tailrace.sinks.errors import SinkError, SinkFencedError, TargetUnavailableError
from tailrace.sinks.opening import Opener
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.sinks.requests import SinkRequest, take
from tailrace.sinks.verify import Verifier
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)


def run(
    copy: Copy, part: Part, settings: DeliverySettings | None = None, opener: Opener | None = None
) -> None:
    """Keep one copy in step until `part` must stop.

    A target that does not answer is waited for; a copy that cannot go on (another shape,
    ahead of the log) is parked, reported as failed, and looked at again now and then.
    """
    settings = settings or DeliverySettings()
    reader = KafkaRanges(part.bootstrap)
    sink = make_sink(copy, Surroundings(part.directory, part.bootstrap))
    letters = TopicDeadLetters(part.bootstrap, copy.name)
    delivery = Delivery(
        copy,
        sink,
        reader,
        part.project,
        letters,
        settings=settings,
        clock=part.clock,
        memory=part.directory / "sinks" / f"{copy.name}.columns",
        opener=opener,
    )
    pause = settings.first_pause
    reported = 0.0
    part.report("running", error=None, place=copy.declaration.place)
    try:
        if (begins := beginning_of(copy)) is not None:
            record(part.directory, reader, part.project, [begins])
        while not part.stopping.is_set():
            if request := take(part.directory, copy.name):
                part.report(answered=_obey(delivery, request, reader, part.directory, opener))
            try:
                delivery.step(timeout=0.2)
                delivery.forget_erased()
                pause = settings.first_pause
                if part.clock.monotonic() - reported >= 1:
                    reported = part.clock.monotonic()
                    _report(part, delivery, "running", None)
            except SinkFencedError:
                raise
            except (TargetUnavailableError, ClientError) as error:
                delivery.close()
                _report(part, delivery, "lagging", error)
                log.warning(
                    "target does not answer", extra={"sink": copy.name, "error": str(error)}
                )
                # Spread out, so that sinks of one target do not come back all at once.
                _rest(part, copy, pause * random.uniform(0.5, 1))
                pause = min(pause * 2, settings.longest_pause)
            except TailraceError as error:
                delivery.close()
                _report(part, delivery, "failed", error)
                log.error("sink is parked", extra={"sink": copy.name, "error": str(error)})
                _rest(part, copy, settings.parked_pause)
        _report(part, delivery, "stopped", None)
    finally:
        delivery.close()
        reader.close()
        if opener is not None:
            opener.close()


def _obey(
    delivery: Delivery,
    request: SinkRequest,
    reader: RangeReader,
    directory: Path,
    opener: Opener | None,
) -> dict[str, object]:
    """Do what was asked; the answer says how it went."""
    count = 0
    try:
        match request.work:
            case "replay":
                delivery.replay()
            case "switch":
                delivery.switch()
            case "rollback":
                delivery.rollback()
            case "repair":
                count = _repair(delivery, request.keys, reader, directory, opener)
            case "retry":
                count = delivery.retry(read_letters(reader, delivery.copy.name))
            case _:
                raise SinkError(f"a sink does not know how to {request.work!r}")
    except TailraceError as error:
        delivery.close()
        return {"id": request.id, "count": count, "error": error.as_dict()}
    return {"id": request.id, "count": count, "error": None}


def _repair(
    delivery: Delivery,
    keys: tuple[bytes, ...],
    reader: RangeReader,
    directory: Path,
    opener: Opener | None,
) -> int:
    copy = delivery.copy
    with Verifier(
        copy.name,
        delivery.sink,
        reader,
        delivery.goal(5.0).shape,
        wrapped=copy.source == "view",
        scratch=directory / "sinks",
        columns=copy.declaration.open,
        opener=opener,
    ) as verifier:
        return verifier.repair(keys)


def _rest(part: Part, copy: Copy, pause: timedelta) -> None:
    """Wait, but not when there is something to do."""
    until = part.clock.monotonic() + pause.total_seconds()
    path = part.directory / "sinks" / f"{copy.name}.request"
    while part.clock.monotonic() < until and not path.exists():
        if part.stopping.wait(min(0.2, max(0.0, until - part.clock.monotonic()))):
            return


def _report(part: Part, delivery: Delivery, state: str, error: TailraceError | None) -> None:
    position = delivery.position
    part.report(
        state,
        error=None if error is None else error.as_dict(),
        freshness_ms=delivery.freshness_ms(),
        position=None if position is None else position.encode(),
        dead_letters=delivery.refused,
        lag=delivery.lag,
        behind_ms=delivery.behind_ms,
        delete_retention_ms=delivery.settings.delete_retention // timedelta(milliseconds=1),
    )
