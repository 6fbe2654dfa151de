"""Small summaries of many values (see `values.sketches`), and what streams compute with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.pipelines.values.sketches import Distinct, Frequent, Heavy, Members, Quantiles, merged

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = [
    "Distinct", "Frequent", "Heavy", "Members", "Quantiles", "bloom_filter_agg", "merged", "might_contain",
]  # fmt: skip


def bloom_filter_agg(column: Column | str, expected: int = 10_000, share: float = 0.01) -> Column:
    """An aggregate for PySpark: a Bloom filter of the column's values, as BINARY."""
    from pyspark.sql import functions as F  # noqa: N812

    def build(values: list[object] | None) -> bytes:
        return bytes(Members.of((v for v in values or () if v is not None), expected, share))

    return F.udf(build, "binary", useArrow=False)(F.collect_set(column))


def might_contain(members: Column | str, value: Column | str) -> Column:
    """For PySpark: may `value` be in the filter? NULL if either is NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    def ask(data: bytes | None, wanted: object) -> bool | None:
        if data is None or wanted is None:
            return None
        return wanted in Members.from_bytes(bytes(data))

    return F.udf(ask, "boolean", useArrow=False)(members, value)
