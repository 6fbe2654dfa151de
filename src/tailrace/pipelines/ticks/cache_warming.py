"""Caches are brought up to date in the pause after a tick, not at the beginning of the next.

The state of a tick counts from its commit on, and a task that finds a cache behind applies what
is missing (see `state.cache`). Where tasks run on this host, the driver does the same as soon
as it has nothing else to do: a change that comes then waits for a tick of less work. Whoever
comes first holds the lock of the cache, so nothing is done twice, and a driver that
dies here leaves what any other process would have left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.pipelines.errors import StateError
from tailrace.pipelines.state.cache import ShardCache
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.state.store import Version

if TYPE_CHECKING:
    from tailrace.pipelines.ticks.driver import TickSettings
    from tailrace.pipelines.ticks.tick_row import Tick


def catch_up(settings: TickSettings, tick: Tick) -> None:
    """Bring the caches of this host to what `tick` has left."""
    bring_to(settings.state, Path(settings.cache), settings.cache_limit, tick.state)


def bring_to(state: str, cache: Path, limit: int | None, versions: Mapping[int, Version]) -> None:
    """Bring the caches in a directory to these versions of the state in `state`."""
    files = open_files(state)
    for shard, version in versions.items():
        # What is wrong with a cache is told by the tick that needs it.
        with contextlib.suppress(StateError, OSError):
            ShardCache(files, cache, shard, limit).bring_to(tuple(version))
