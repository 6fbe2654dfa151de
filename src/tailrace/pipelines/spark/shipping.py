"""A project's own Python files for the executors of a cluster.

Functions of a project are known to Spark's workers by name (`pipelines.shop`), as they are
on this machine, so the workers of other machines must be able to import them: they get the
project's Python files as one archive. Files of tests and of hidden or virtual-environment
folders stay at home.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.modes import make_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEFT_OUT = frozenset({"tests", "__pycache__", "node_modules", "site-packages"})
_PACKAGE = "pipelines"


def ship(spark: SparkSession, home: Path, archive: Path, jars: Iterable[Path] = ()) -> None:
    """Send the Python files of the project in `home`, and the jars of its functions, to every
    executor; nothing where Spark runs in this machine's own processes, which import them from where
    they are."""
    if not (spark.sparkContext.master or "").startswith("local"):
        pack(home, archive)
        spark.sparkContext.addPyFile(str(archive))
        for jar in jars:  # for the JVM of expressions: Spark's own never loads them
            spark.sparkContext.addFile(str(jar))


def pack(home: Path, archive: Path) -> None:
    """Write the archive, replaced whole."""
    make_private(archive.parent)
    draft = archive.with_suffix(".tmp")
    with zipfile.ZipFile(draft, "w") as packed:
        names = {str(path.relative_to(home)) for path in _files(home)}
        for name in sorted(names):
            packed.write(home / name, name)
        if f"{_PACKAGE}/__init__.py" not in names:  # else another `pipelines` might come first
            packed.writestr(f"{_PACKAGE}/__init__.py", "")
    draft.replace(archive)


def _files(home: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(home):
        below[:] = [
            name
            for name in below
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not (Path(folder, name) / "pyvenv.cfg").exists()
        ]
        yield from (Path(folder, name) for name in names if name.endswith(".py"))
