"""What operators need beside Arrow: sketches and histograms of aggregates, maps as group keys,
collations, the contents of VARIANT.

Importing this package registers what an expression can call of it.
"""

from __future__ import annotations

from tailrace.pipelines.incremental.library import collated, map_forms, one_row, variants

__all__ = ["collated", "map_forms", "one_row", "variants"]
