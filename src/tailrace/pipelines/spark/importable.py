"""A project's own Python files, importable in this process.

Functions of a project are known by name (`pipelines.shop`), to Spark's workers too. The
project's directory comes last on `sys.path`: a file in it that is called `queue.py` or
`secrets.py` is nobody's but the project's, and must not take the place of the library's
module of that name.

Its files are always compiled from their text. Python knows what it compiled before by the file's
size and its second: of a number that was changed twice within a second it would keep the first.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import time
import types
from collections.abc import Mapping
from importlib.abc import PathEntryFinder
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path
from typing import Any

from tailrace.files import FILES

FOLDER = "pipelines"
VARIABLE = "TAILRACE_PROJECT"
"""Names the project's directory to the processes that Spark starts."""


class _FromText(importlib.machinery.SourceFileLoader):
    """Neither reads nor writes what was compiled before."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path} is compiled each time")


_homes: set[Path] = set()


def _finder(entry: str) -> PathEntryFinder:
    """For `sys.path_hooks`: what finds the modules of a directory of one of the projects."""
    path = Path(entry)
    if _homes.isdisjoint((path, *path.parents)) or "site-packages" in path.parts:
        raise ImportError(f"{entry} is of no project")
    extensions = (importlib.machinery.ExtensionFileLoader, EXTENSION_SUFFIXES)
    return importlib.machinery.FileFinder(entry, extensions, (_FromText, SOURCE_SUFFIXES))


def _compile_always(home: Path) -> None:
    if home in _homes:
        return
    _homes.add(home)
    if _finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _finder)
    for entry in list(sys.path_importer_cache):
        if Path(entry).is_relative_to(home):
            del sys.path_importer_cache[entry]


def make_importable(home: Path) -> None:
    """Let `import pipelines.…` find the project in `home`, and no other's."""
    _compile_always(home)
    for name in [name for name in sys.modules if name.split(".")[0] == FOLDER]:
        del sys.modules[name]  # another project's, loaded before in this process
    if str(home) not in sys.path:
        sys.path.append(str(home))
    # A package made by hand: the first `pipelines` on sys.path might be someone else's.
    package = types.ModuleType(FOLDER)
    package.__path__ = [str(home / FOLDER)]
    package.__spec__ = importlib.machinery.ModuleSpec(FOLDER, None, is_package=True)
    sys.modules[FOLDER] = package
    importlib.invalidate_caches()


def make_named_importable() -> None:
    """The same for the project that the environment names, if it names one."""
    if home := os.environ.get(VARIABLE):
        make_importable(Path(home))


def forget_modules(home: Path) -> None:
    """Have every file of the project in `home` imported again by whoever imports it next."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("tailrace", "__main__"):
            continue
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(home) and "site-packages" not in Path(file).parts:
            del sys.modules[name]
    make_importable(home)


def mark_changed(home: Path) -> None:
    """Tell the workers that Spark has started on this machine to import the project's files
    again, before the next task of each."""
    marker = _marker(home)
    FILES.make_directories(marker.parent)
    FILES.write_whole(marker, str(time.time_ns()).encode(), sync=False)


class Freshness:
    """In a worker: imports of the project's files that are as new as the files."""

    def __init__(self) -> None:
        home = os.environ.get(VARIABLE)
        self._home = None if home is None else Path(home)
        self._seen = self._look()

    def renew(self) -> None:
        """Forget what was imported, if the project was changed since the last time."""
        seen = self._look()
        if seen != self._seen and self._home is not None:
            self._seen = seen
            forget_modules(self._home)

    def _look(self) -> tuple[int, int] | None:
        if self._home is None:
            return None
        try:
            found = _marker(self._home).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def _marker(home: Path) -> Path:
    return home / ".tailrace" / "spark" / "changed"
