"""Caches are brought up to date in the pause after a tick, not at the beginning of the next.

The state of a tick counts from its commit on, and a task that finds a cache behind applies what
is missing (see `state.cache`). Where tasks run on this host, the driver does the same as soon
as it has nothing else to do: a change that comes then waits for a tick of less work. Whoever
comes first holds the lock of the cache, so nothing is done twice, and a driver that
dies here leaves what any other process would have left.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tailrace.pipelines.errors import StateError
from tailrace.pipelines.state.cache import ShardCache
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.row import Tick


def catch_up(settings: TickSettings, tick: Tick) -> None:
    """Bring the caches of this host to what `tick` has left."""
    files = open_files(settings.state)
    for shard, version in tick.state.items():
        cache = ShardCache(files, Path(settings.cache), shard, settings.cache_limit)
        # What is wrong with a cache is told by the tick that needs it.
        with contextlib.suppress(StateError, OSError):
            cache.bring_to(tuple(version))
