"""A project's functions of Java and Scala on their way to Spark: names in texts, jars on a host.

In a text a function is called by a name that says which class of which jars it is, so that two
projects, or two versions of a jar, never meet in the JVM that all processes of a host share.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.spark.importable import VARIABLE
from tailrace.pipelines.values.function_references import JavaFunction

_PREFIX = "tailrace_function_"
_homes: list[Path] = []  # of the projects that this process has loaded


def name_of(function: JavaFunction) -> str:
    """Its name in a text. What the user calls it is part of it: Spark's errors show that."""
    parts = [function.class_name, function.returns, *function.jars, function.version, function.name]
    return _PREFIX + hashlib.blake2b(orjson.dumps(parts), digest_size=16).hexdigest()


def shown(message: str, functions: Iterable[JavaFunction]) -> str:
    """A message with the names that the user gave."""
    for function in functions:
        message = message.replace(f"`{name_of(function)}`", function.name)
        message = message.replace(name_of(function), function.name)
    return message


def told(functions: Iterable[JavaFunction]) -> list[dict[str, Any]]:
    """What the JVM must know of functions; EvaluationError where a jar is missing here."""
    return [
        {
            "name": name_of(function),
            "shown": function.name,
            "class": function.class_name,
            "returns": function.returns,
            "contents": list(function.jars),
            "jars": [
                str(_jar(function, place, content))
                for place, content in zip(function.places, function.jars, strict=True)
            ],
        }
        for function in dict.fromkeys(functions)
    ]


def remember_home(home: Path) -> None:
    """Look for jars in a project's directory, too."""
    if home not in _homes:
        _homes.append(home)


def content_of(jar: Path) -> str:
    """The hash of a jar. Raises OSError."""
    found = jar.stat()
    return _content_of(jar, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _content_of(jar: Path, _changed: int, _size: int) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _jar(function: JavaFunction, place: str, content: str) -> Path:
    """Where a jar lies on this host: in the project, or where Spark has put it."""
    folders = list(_homes)
    if named := os.environ.get(VARIABLE):
        folders.append(Path(named))
    paths = [folder / place for folder in folders]
    spark = sys.modules.get("pyspark.core.files")  # in a worker it has been told the directory
    root = getattr(getattr(spark, "SparkFiles", None), "_root_directory", None)
    if root is not None:
        paths.append(Path(root) / Path(place).name)
    others = False
    for path in paths:
        try:
            if content_of(path) == content:
                return path
            others = True
        except OSError:
            continue
    raise EvaluationError(
        f"function {function.name}: {place} {'is another jar' if others else 'is missing'} on this host",
        detail=f"looked in {', '.join(str(path.parent) for path in paths) or 'no directory'}",
        hint="the jar of the project's directory must be on every host; start the project again",
    )
