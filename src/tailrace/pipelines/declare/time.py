"""Event times of devices whose clocks are wrong.

A device notes when something happened and when it sends it, both by its own clock; the
server notes when it receives it. The difference of the last two is the device's offset
(and the time on the way), and added to the event's time gives the time by the server's
clock. An offset beyond `bound` is not believed: it is cut to the bound, and `offset` shows
it for audit. All times are instants; time zones play no part.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tailrace.config import parse_duration
from tailrace.pipelines.declare import View, caller, view_at
from tailrace.pipelines.declare.windows import relation_sql

if TYPE_CHECKING:
    from pyspark.sql import Column

BOUND = "1 day"
# The headers of a record that carry a watermark of its producer (see `ticks.event_time`).
WATERMARK_HEADER = "tailrace.watermark"
PRODUCER_HEADER = "tailrace.producer"


def offset(sent: Column | str, received: Column | str) -> Column:
    """How far a device's clock is behind the server's, in seconds; negative when ahead."""
    from pyspark.sql import functions as F  # noqa: N812

    return (F.unix_micros(_column(received)) - F.unix_micros(_column(sent))) / F.lit(1e6)


def corrected(
    event: Column | str, sent: Column | str, received: Column | str, *, bound: str = BOUND
) -> Column:
    """When it happened by the server's clock, from three times; a TIMESTAMP column."""
    from pyspark.sql import functions as F  # noqa: N812

    limit = int(parse_duration(bound).total_seconds() * 1e6)
    behind = F.unix_micros(_column(received)) - F.unix_micros(_column(sent))
    held = F.greatest(F.lit(-limit), F.least(F.lit(limit), behind))
    return F.timestamp_micros(F.unix_micros(_column(event)) + held)


def corrected_at(
    event: datetime, sent: datetime, received: datetime, *, bound: str = BOUND
) -> datetime:
    """`corrected` for single values."""
    limit = parse_duration(bound)
    return event + max(-limit, min(limit, received - sent))


def watermark(at: datetime, producer: str = "") -> dict[str, bytes]:
    """Headers by which a producer tells that none of its later records in this partition is
    older than `at`; see `tailrace.pipelines.ticks.event_time`."""
    stamp = str(int(at.timestamp() * 1000)).encode()
    return {WATERMARK_HEADER: stamp, PRODUCER_HEADER: producer.encode()}


def corrected_sql(event: str, sent: str, received: str, *, bound: str = BOUND) -> str:
    """`corrected` as an SQL expression, for views."""
    limit = int(parse_duration(bound).total_seconds())
    behind = f"(CAST({received} AS BIGINT) - CAST({sent} AS BIGINT))"
    held = f"greatest(-{limit}, least({limit}, {behind}))"
    return f"CAST(CAST({event} AS BIGINT) + {held} AS TIMESTAMP)"


def offsets(
    name: str, source: object, *, device: str, sent: str, received: str, to: object = ()
) -> View:
    """A view that keeps each device's estimated offset for audit: `offset_seconds` (the
    smallest seen, since the way only adds), `largest_seconds` and `readings`."""
    sql = offsets_sql(relation_sql(source), device, sent, received)
    return view_at(caller(), name, sql, key=device, to=to)


def offsets_sql(source: str, device: str, sent: str, received: str) -> str:
    """The SQL of `offsets`."""
    behind = f"CAST({received} AS BIGINT) - CAST({sent} AS BIGINT)"
    return (
        f"SELECT {device}, min({behind}) AS offset_seconds, max({behind}) AS largest_seconds, "
        f"count(*) AS readings "
        f"FROM {source} GROUP BY {device}"
    )


def _column(given: Column | str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(given) if isinstance(given, str) else given
