"""How many shards the state of a project has, where its settings do not say.

Shards let cores and hosts work side by side, and each costs a small tick its part: on one it
takes a third less processor time than on four. The number is fixed with the first tick. Where that
runs on a machine of too few cores for levels to pay (see `ways`), one is chosen.
"""

from __future__ import annotations

import os

from tailrace.config import SparkSettings
from tailrace.pipelines.spark.session import cores_of
from tailrace.pipelines.ticks.tick_row import Tick

SEVERAL = 4
FEW_CORES = 3


def number_of_shards(settings: SparkSettings, row: Tick | None) -> int:
    """As the settings say; else as the last tick's row does; else what suits this machine."""
    if settings.shards is not None:
        return settings.shards
    if row is not None:
        return row.shards
    cores = cores_of(settings.master)
    return 1 if cores is not None and min(cores, os.cpu_count() or 1) < FEW_CORES else SEVERAL
