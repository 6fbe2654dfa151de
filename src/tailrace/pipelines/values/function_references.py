"""Which function of a user's own a call means: for graphs, workers and the JVM of expressions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.pipelines.values.left_out import not_identity


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A user's function of Python, for whoever computes it: `code` is what it does (see `code`),
    module and name say where it is found."""

    code: str
    form: str  # of what it takes: "values", "arrow" or "pandas"
    version: int = 1
    name: str = field(default="", metadata=not_identity("what SQL calls it changes no value"))
    module: str = field(default="", metadata=not_identity("it may move to another file"))
    attribute: str = field(default="", metadata=not_identity("it may move to another file"))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class JavaFunction:
    """A user's function of Java or Scala: a class, and the jars that it is loaded from. `returns` is
    its type in Spark's DDL; empty: what the class says."""

    class_name: str
    returns: str
    jars: tuple[str, ...]  # by content
    version: int = 1
    name: str = field(default="", metadata=not_identity("what SQL calls it changes no value"))
    places: tuple[str, ...] = field(
        default=(), metadata=not_identity("where the jars lie in the project")
    )

    def __str__(self) -> str:
        return self.name
