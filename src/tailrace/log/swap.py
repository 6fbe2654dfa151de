"""Putting cleaned segments in the place of old ones, whatever happens in between.

The file `swap` in a partition's directory names the groups: `new base: old bases`. Once it
is on disk the change is decided, and every start completes it; before, `.cleaned` files
mean nothing and are removed. Renaming and deleting are repeated without harm.
"""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from tailrace.log.files import FILES, Files

ENDINGS = ("index", "timeindex", "txnindex", "log")
_NAME = "swap"


def decide(directory: Path, groups: list[tuple[int, list[int]]], files: Files = FILES) -> None:
    """Have it on disk that each new base stands for its old ones."""
    files.write_whole(directory / _NAME, orjson.dumps([[base, old] for base, old in groups]))


def complete(directory: Path, files: Files = FILES) -> None:
    """Do what was decided; nothing if nothing was."""
    path = directory / _NAME
    try:
        groups = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return
    for base, old in groups:
        stem = f"{directory}/{base:020d}"
        if os.path.exists(f"{stem}.log.cleaned"):
            # An old side file must not outlive its segment under the new one's name.
            for ending in ENDINGS:
                if os.path.exists(f"{stem}.{ending}.cleaned"):
                    files.rename(f"{stem}.{ending}.cleaned", f"{stem}.{ending}")
        for other in old:
            if other != base:
                for ending in ENDINGS:
                    _remove(f"{directory}/{other:020d}.{ending}", files)
    files.sync_directory(directory)
    files.remove(path)
    files.sync_directory(directory)


def remove_leftovers(directory: Path, files: Files = FILES) -> None:
    """Remove the files of a cleaning that was never decided."""
    for path in directory.glob("*.cleaned"):
        _remove(str(path), files)


def _remove(path: str, files: Files) -> None:
    try:
        files.remove(path)
    except FileNotFoundError:
        return
