"""A mirror as a running part of a project."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tailrace.client.admin import Admin, Place
from tailrace.client.errors import AuthenticationError, BrokerUnavailableError, ClientError
from tailrace.client.fetcher import Fetcher
from tailrace.mirroring.errors import MirrorFailedOverError, MirrorFencedError, MirrorShardError
from tailrace.mirroring.plan import PREFIX, MirrorPlan
from tailrace.mirroring.relay import Mirror
from tailrace.mirroring.rows import FAILED_OVER, read_rows
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0
LAG_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
PARKED_SECONDS = 2.0


def run(plan: MirrorPlan, source: str, target: str, part: Part, shard: int = 0) -> None:
    """Mirror until `part.stopping` is set. An end that does not answer is waited for; a mirror that
    was failed over waits for the fail-back; one with a successor ends."""
    pause = FIRST_PAUSE
    while not part.stopping.is_set():
        try:
            with begin(plan, source, target, part, shard) as mirror:
                pause = FIRST_PAUSE
                _go(mirror, part)
        except (MirrorFailedOverError, MirrorShardError) as error:
            part.report("lagging", error=error.as_dict())
            wait = PARKED_SECONDS if isinstance(error, MirrorFailedOverError) else FIRST_PAUSE
            part.stopping.wait(wait)
        except MirrorFencedError:
            if not _failed_over(plan.name, target):
                raise
        except AuthenticationError:
            raise
        except ClientError as error:
            state = "lagging" if isinstance(error, BrokerUnavailableError) else "failed"
            part.report(state, error=error.as_dict())
            log.warning("mirror waits", extra={"mirror": plan.name, "reason": str(error)})
            part.stopping.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def begin(plan: MirrorPlan, source: str, target: str, part: Part, shard: int = 0) -> Mirror:
    """The mirror of a project's plan, or one shard of it; sites are the names of its clusters."""
    return Mirror(
        plan.name,
        source,
        target,
        topics=plan.topics_pattern,
        names=plan.names,
        source_name=plan.source if plan.names == PREFIX else "",
        groups=plan.groups_pattern,
        site=plan.source,
        others=plan.others,
        cut=plan.cut,
        conflicts=plan.conflicts,
        pin=plan.pin,
        shard=(shard, plan.shards),
        timeout=20.0,
        clock=part.clock,
    )


def _failed_over(name: str, target: str) -> bool:
    with Admin(target, timeout=20.0) as admin, Fetcher(target, timeout=20.0) as fetcher:
        rows = read_rows(admin, fetcher).get(name)
    return rows is not None and rows.state is not None and rows.state.state == FAILED_OVER


def _go(mirror: Mirror, part: Part) -> None:
    reported = asked = -1e9
    behind: Mapping[Place, int] = {}
    caught_up_at = part.clock.monotonic()
    while not part.stopping.is_set():
        mirror.cycle()
        now = part.clock.monotonic()
        if now - reported < REPORT_SECONDS:
            continue
        reported = now
        if now - asked >= LAG_SECONDS:
            asked = now
            behind = mirror.lag()
        lag = sum(behind.values())
        if not lag:
            caught_up_at = now
        first = next(iter(mirror.stopped.values()), None)
        part.report(
            "running" if first is None else "lagging",
            error=None if first is None else first.as_dict(),
            lag=lag,
            behind_seconds=round(now - caught_up_at, 1),
            records=mirror.rows.records,
            mirrored=mirror.records,
            conflicts=mirror.rows.conflicts,
            partitions=len(mirror.rows.positions),
            stops=[error.as_dict() for error in mirror.stopped.values()],
        )
    mirror.finish()
