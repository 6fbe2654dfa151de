"""Small things streams need, on any DataFrame: the same on a stream and on a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tailrace.config import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def deduplicated(frame: DataFrame, by: str | Sequence[str], *, time: str, within: str) -> DataFrame:
    """Each row once: the first of those that agree in `by` (a message id, or a position as
    `["record.topic", "record.partition", "record.offset"]`) within `within` of each other
    by the event-time column `time`.

    On a stream Spark keeps the ids of that time as state; `time` gets a watermark of it.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    names = {f"__by{number}": name for number, name in enumerate(_names(by))}
    wide = frame.withColumns({alias: F.col(name) for alias, name in names.items()})
    if frame.isStreaming:
        found = wide.withWatermark(time, within).dropDuplicatesWithinWatermark(list(names))
        return found.drop(*names)
    seconds = parse_duration(within).total_seconds()
    before = F.lag(time).over(Window.partitionBy(*names).orderBy(time))
    apart = F.unix_micros(time) - F.unix_micros(before) > F.lit(int(seconds * 1e6))
    return (
        wide.withColumn("__first", before.isNull() | apart).where("__first").drop("__first", *names)
    )


def latest(frame: DataFrame, key: str | Sequence[str], *, order: str | Sequence[str]) -> DataFrame:
    """A stream as a table: the row of each key that comes last by `order` (an event time, or
    `["record.partition", "record.offset"]`). On a stream use `output_mode="update"`."""
    from pyspark.sql import functions as F  # noqa: N812

    rank = F.struct(*(F.col(name).alias(f"o{n}") for n, name in enumerate(_names(order))))
    found = frame.groupBy(*_names(key)).agg(
        F.max_by(F.struct(*(F.col(f"`{name}`") for name in frame.columns)), rank).alias("__last")
    )
    return found.select("__last.*")


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
