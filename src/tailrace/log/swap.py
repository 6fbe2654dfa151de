"""Putting cleaned segments in the place of old ones, whatever happens in between.

The file `swap` in a partition's directory names the groups: new base, old bases, whether
there is an index of aborted transactions. Once it is on disk the change is decided, and
every start completes it; before, `.cleaned` files mean nothing and are removed. Renaming
and deleting are repeated without harm.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import orjson

from tailrace.log.errors import StorageError
from tailrace.log.files import FILES, Files

ENDINGS = ("index", "timeindex", "txnindex", "log")
_NAME = "swap"


class Group(NamedTuple):
    """One new segment and those it stands for."""

    base: int
    old: list[int]
    aborted: bool
    """Whether it has an index of aborted transactions."""


def decide(directory: Path, groups: list[Group], files: Files = FILES) -> None:
    """Have it on disk that each new segment stands for its old ones."""
    files.write_whole(directory / _NAME, orjson.dumps([list(group) for group in groups]))


def decided(directory: Path) -> bool:
    """Whether there is a decision that is not carried out."""
    return (directory / _NAME).exists()


def complete(directory: Path, files: Files = FILES) -> None:
    """Do what was decided; nothing if nothing was. After an `OSError`, do it again."""
    path = directory / _NAME
    try:
        groups = [Group(*each) for each in orjson.loads(path.read_bytes())]
    except FileNotFoundError:
        return
    except (ValueError, TypeError) as error:
        # Written whole and synced: a bad disk or a hand. Which segments stand for which is known
        # by nothing else.
        raise StorageError(
            f"the decision of a compaction {path} is damaged",
            detail=str(error),
            hint="put a good copy back and start again; no segment was touched",
        ) from error
    # It may have been left between its writing and this sync.
    files.sync_directory(directory)
    for group in groups:
        stem = f"{directory}/{group.base:020d}"
        if not group.aborted:
            _remove(f"{stem}.txnindex", files)
        for ending in ENDINGS:
            if os.path.exists(f"{stem}.{ending}.cleaned"):
                files.rename(f"{stem}.{ending}.cleaned", f"{stem}.{ending}")
        for other in group.old:
            if other != group.base:
                for ending in ENDINGS:
                    _remove(f"{directory}/{other:020d}.{ending}", files)
    files.sync_directory(directory)
    files.remove(path)
    # A decision that came back after a power cut would take the next cleaning for its own.
    files.sync_directory(directory)


def remove_leftovers(directory: Path, files: Files = FILES) -> None:
    """Remove the files of a cleaning that was never decided."""
    if decided(directory):
        return
    for pattern in ("*.cleaned", "*.cleaned.tmp", f"{_NAME}.tmp"):
        for path in directory.glob(pattern):
            _remove(str(path), files)


def _remove(path: str, files: Files) -> None:
    try:
        files.remove(path)
    except FileNotFoundError:
        return
