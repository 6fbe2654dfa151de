"""A project's own Python files, importable in this process.

Functions of a project are known by name (`pipelines.shop`), to Spark's workers too. The
project's directory comes last on `sys.path`: a file in it that is called `queue.py` or
`secrets.py` is nobody's but the project's, and must not take the place of the library's
module of that name.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import types
from pathlib import Path

FOLDER = "pipelines"
VARIABLE = "TAILRACE_PROJECT"
"""Names the project's directory to the processes that Spark starts."""


def make_importable(home: Path) -> None:
    """Let `import pipelines.…` find the project in `home`, and no other's."""
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
