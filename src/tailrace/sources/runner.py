"""A source as a running part of a project: works, and connects again when it must."""

from __future__ import annotations

import errno
import logging
import sqlite3
from contextlib import suppress

from tailrace.client.errors import BrokerUnavailableError, RequestTimeoutError
from tailrace.errors import TailraceError
from tailrace.sources.control import pause_path, paused
from tailrace.sources.declare import MySQL, Postgres, Source
from tailrace.sources.errors import (
    BinlogChecksumError,
    ServerUnreachableError,
    SlotTakenError,
    StateStorageError,
)
from tailrace.sources.log import BrokerSourceLog
from tailrace.telemetry.part import Part

__all__ = ["attempt", "pause_path", "paused", "run"]

log = logging.getLogger(__name__)

# What passes by itself: the other side restarts, or an earlier run is still ending.
PASSING = (
    ServerUnreachableError,
    SlotTakenError,
    StateStorageError,
    BinlogChecksumError,
    BrokerUnavailableError,
    RequestTimeoutError,
)
LONGEST_PAUSE = 5.0


def run(source: Source, part: Part) -> None:
    """Capture until `part.stopping`; returns after a clean stop, raises what is final."""
    pause = 0.1
    part.report("starting", error=None)
    if isinstance(source, Postgres):
        import pyarrow

        # Arrow's own pools keep what a chunk took; this process works in small pieces.
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    while not part.stopping.is_set():
        if paused(part.directory, source.name):
            part.report("stopped", reason="paused")
            part.stopping.wait(0.5)
            continue
        started_at = part.clock.monotonic()
        try:
            attempt(source, part)
        except PASSING as error:
            if part.clock.monotonic() - started_at > 10:
                pause = 0.1
            log.warning("capture interrupted", extra={"source": source.name, "error": str(error)})
            # Where the disk is full the report cannot be written either; it was logged.
            with suppress(OSError):
                part.report("lagging", error=error.as_dict())
            part.stopping.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        except TailraceError as error:
            part.report("failed", error=error.as_dict())
            raise
    part.report("stopped", error=None)


def attempt(source: Source, part: Part) -> None:
    """One life of a source: from connecting until it stops or something breaks."""
    source_log = BrokerSourceLog(part.bootstrap, source.name)
    try:
        _capture(source, source_log, part)
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StateStorageError(
            f"the state of source {source.name!r} in {part.directory} cannot be written",
            detail=str(error),
            hint="make room on that disk; capture goes on by itself",
        ) from error
    finally:
        source_log.close()


def _capture(source: Source, source_log: BrokerSourceLog, part: Part) -> None:
    if isinstance(source, Postgres):
        from tailrace.sources.postgres.capture import PostgresCapture

        PostgresCapture(source, source_log, part).work()
    elif isinstance(source, MySQL):
        from tailrace.sources.mysql.capture import MySQLCapture

        MySQLCapture(source, source_log, part).work()
    else:
        from tailrace.sources.sqlite.capture import SQLiteCapture

        SQLiteCapture(source, source_log, part).work()
