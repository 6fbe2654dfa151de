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

if TYPE_CHECKING:
    from pyspark.sql import Column

BOUND = "1 day"


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


def offsets_sql(source: str, device: str, sent: str, received: str) -> str:
    """SQL of a view that keeps each device's estimated offset, in seconds, for audit: the
    smallest seen, since the way only adds."""
    behind = f"CAST({received} AS BIGINT) - CAST({sent} AS BIGINT)"
    return (
        f"SELECT {device}, min({behind}) AS offset_seconds, count(*) AS readings "
        f"FROM {source} GROUP BY {device}"
    )


def _column(given: Column | str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(given) if isinstance(given, str) else given
