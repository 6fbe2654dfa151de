"""Which copies a project declares, and which class keeps each kind."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tailrace.config import EnvironmentValue, resolve
from tailrace.errors import ComponentMissingError
from tailrace.sinks.base import Sink
from tailrace.sinks.declare import Declaration
from tailrace.sinks.errors import SinkDeclarationError

# kind → (module in tailrace.sinks, class, extra to install)
KINDS = {
    "sqlite": ("sqlite", "SQLiteSink", ""),
    "postgres": ("postgres", "PostgresSink", "postgres"),
    "mysql": ("mysql", "MySQLSink", "mysql"),
    "duckdb": ("duckdb", "DuckDBSink", "duckdb"),
    "redis": ("redis", "redis_sink", "redis"),
    "search": ("search", "SearchSink", "search"),
    "elasticsearch": ("elasticsearch", "ElasticsearchSink", ""),
    "delta": ("delta", "delta_sink", "delta"),
    "parquet": ("parquet", "parquet_sink", "delta"),
    "iceberg": ("iceberg", "IcebergSink", "iceberg"),
    "webhook": ("webhook", "WebhookSink", ""),
    "email": ("email", "EmailSink", ""),
    "topic": ("topic", "TopicSink", ""),
    "function": ("function", "FunctionSink", ""),
}


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy a project keeps: what is copied, and where to."""

    name: str
    subject: str
    topic: str
    source: Literal["view", "stream"]
    key: tuple[str, ...]
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a sink may need besides its declaration: where the project lives."""

    directory: Path
    bootstrap: str = ""

    @property
    def home(self) -> Path:
        """The project's own directory, which relative paths in declarations start from."""
        return self.directory.parent if self.directory.name == ".tailrace" else self.directory

    def path(self, declared: str | EnvironmentValue | Path) -> Path:
        """A declared path, made absolute."""
        text = declared if isinstance(declared, Path) else resolve(declared)
        return self.home.absolute() / text


def copies_of(declared: Iterable[object]) -> list[Copy]:
    """All copies of the views and streams among `declared` (anything with `to`)."""
    copies: list[Copy] = []
    taken: set[str] = set()
    for item in declared:
        for target in getattr(item, "to", ()) or ():
            if not isinstance(target, Declaration):
                named = getattr(target, "name", None)
                raise SinkDeclarationError(
                    f"to= of {getattr(item, 'name', item)!r} names a {type(target).__name__}"
                    f"{f' {named!r}' if named else ''}, which is no sink",
                    detail=_place(item),
                    hint="take one from tailrace.sinks",
                )
            subject = str(item.name)  # type: ignore[attr-defined]
            name = target.name or _free(f"{subject}.{target.kind}", taken)
            if name in taken:
                raise SinkDeclarationError(
                    f"two sinks are called {name!r}",
                    detail=_place(item),
                    hint="give one of them another name=",
                )
            if target in [copy.declaration for copy in copies if copy.subject == subject]:
                raise SinkDeclarationError(
                    f"to= of {subject!r} names the same {target.kind} sink twice",
                    detail=_place(item),
                    hint="leave one of them out",
                )
            taken.add(name)
            copies.append(
                Copy(
                    name=name,
                    subject=subject,
                    topic=str(getattr(item, "topic", subject)),
                    source="view" if hasattr(item, "sql") else "stream",
                    key=tuple(_key_of(item)),
                    declaration=target,
                )
            )
    return copies


def _place(declared: object) -> str:
    place = getattr(declared, "declared_at", None)
    return "" if place is None else f"declared at {place}"


def _key_of(item: object) -> Iterable[str]:
    """What tells the rows of a copy apart: of matches that is not the key of the records."""
    own: Iterable[str] | None = getattr(item, "told_apart_by", None)
    return (getattr(item, "key", None) or ()) if own is None else own


def _free(name: str, taken: set[str]) -> str:
    number, chosen = 1, name
    while chosen in taken:
        number += 1
        chosen = f"{name}-{number}"
    return chosen


def make_sink(copy: Copy, surroundings: Surroundings) -> Sink:
    """The sink of a copy, not opened yet."""
    module, kind, extra = KINDS[copy.declaration.kind]
    try:
        made = getattr(importlib.import_module(f"tailrace.sinks.{module}"), kind)
    except ModuleNotFoundError as missing:
        raise ComponentMissingError(
            f"a {copy.declaration.kind} sink needs the package {missing.name!r}",
            hint=f"pip install 'tailrace[{extra}]'" if extra else "",
        ) from missing
    sink: Sink = made(copy, surroundings)
    return sink
