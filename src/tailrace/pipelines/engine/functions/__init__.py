"""The functions that are computed here, by Spark's names; what is not among them is Spark's (see
`spark.catalyst`).

Importing this package registers them all.
"""

from __future__ import annotations

from tailrace.pipelines.engine.functions import (
    collated,
    map_forms,
    one_row,
    scalar,
    times,
    variants,
)

__all__ = ["collated", "map_forms", "one_row", "scalar", "times", "variants"]
