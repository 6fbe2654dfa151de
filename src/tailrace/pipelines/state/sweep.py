"""Removing state files that no committed tick needs any more."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.pipelines.errors import StateFileMissingError
from tailrace.pipelines.state.files import StateFiles
from tailrace.pipelines.state.route import route
from tailrace.pipelines.state.store import Version


def live_files(files: StateFiles, versions: Mapping[int, Version]) -> dict[int, set[str]]:
    """The files each shard can be restored from: back to the last snapshot."""
    return {
        shard: set(route(files, shard, version, None).files)
        | set(version)  # a snapshot or merged file that came with the version
        for shard, version in versions.items()
    }


def sweep(files: StateFiles, versions: Mapping[int, Version], *, older_than: float) -> int:
    """Remove files written before `older_than` (seconds since 1970) that `versions` do not need.

    Returns how many. Files of attempts that are still running are younger than any
    sensible limit; the caller takes an hour.
    """
    try:
        live = live_files(files, versions)
    except StateFileMissingError:
        return 0  # something is wrong already: remove nothing more
    removed = 0
    for shard, name, written_at in list(files.list()):
        if written_at < older_than and name not in live.get(shard, set()):
            files.remove(shard, name)
            removed += 1
    return removed
