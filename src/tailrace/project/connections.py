"""Mistakes in how a project reaches its databases that show without reaching them.

Variables that are not set, addresses that cannot be one, SQLite files that are not there. A
declaration looks at an address that is written in it; here are those of the environment, too, and
what needs a closer look. The addresses are secrets: no error repeats them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tailrace.config import EnvironmentValue, resolve
from tailrace.errors import MissingVariableError, TailraceError
from tailrace.masking import Secret
from tailrace.project.errors import AddressError, FileMissingError
from tailrace.project.load import Project
from tailrace.sinks.declare import Declaration
from tailrace.sources.declare import MySQL, Postgres, Source, SQLite
from tailrace.sources.edges.declare import Edge
from tailrace.sources.mysql.address import parse_address

Address = str | Path | EnvironmentValue | Secret
SCHEMES = {
    "mysql": ("mysql", "mariadb"),
    "redis": ("redis", "rediss", "unix"),
    "webhook": ("http", "https"),
    "elasticsearch": ("http", "https"),
    "email": ("smtp", "smtps"),
}
EXAMPLES = {
    "postgres": "postgresql://user:***@host:5432/database, or host=… dbname=… user=…",
    "mysql": "mysql://user:***@host:3306/database",
    "redis": "redis://host:6379/0",
    "webhook": "https://host/path",
    "elasticsearch": "https://host:9200",
    "email": "smtp://user:***@host:587",
}


def missing_variables(
    project: Project,
) -> Iterator[tuple[tuple[str, str], MissingVariableError]]:
    """Parts (kind, name) whose declaration refers to a variable the environment lacks."""
    for kind, name, declaration, place in declared(project):
        for field in dataclasses.fields(declaration):
            value = getattr(declaration, field.name)
            for one in _several(value):
                if not isinstance(one, EnvironmentValue):
                    continue
                try:
                    one.resolve()
                except MissingVariableError as error:
                    error.detail = f"{field.name} of {kind} {name}, declared at {place}"
                    yield (kind, name), error


def _several(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, tuple | list) else (value,)


def mistakes(project: Project) -> dict[tuple[str, str], TailraceError]:
    """By part (kind, name), the first thing that is wrong with its connection."""
    found: dict[tuple[str, str], TailraceError] = {}
    for part, missing in missing_variables(project):
        found.setdefault(part, missing)
    for kind, name, declaration, place in declared(project):
        if (kind, name) in found:
            continue
        try:
            _look(f"{kind} {name!r}", declaration, project.directory)
        except TailraceError as error:
            error.detail = "\n".join(filter(None, (error.detail, f"declared at {place}")))
            found[kind, name] = error
    return found


def declared(project: Project) -> Iterator[tuple[str, str, Source | Declaration | Edge, str]]:
    """Every source, sink and edge: kind, name, declaration, and the place of that."""
    for source in project.sources.values():
        yield "source", source.name, source, project.places[source.name]
    for sink in project.sinks.values():
        yield "sink", sink.name, sink.declaration, project.places[sink.subject]
    for edge in project.edges.values():
        yield "edge", edge.name, edge, project.places[f"edge {edge.name}"]


def _look(what: str, declaration: Source | Declaration | Edge, home: Path) -> None:
    match declaration:
        case SQLite(path=path):
            file = home / resolve(path)
            if not file.is_file():
                raise FileMissingError(
                    f"the database of {what} is not there",
                    detail=f"{file} is {'a directory' if file.is_dir() else 'no file'}",
                    hint="make it first, or correct path=",
                )
        case Postgres(dsn=dsn):
            _judge_postgres(what, dsn)
        case MySQL(name=name, dsn=dsn):
            parse_address(name, resolve(dsn))
        case Declaration():
            named = (getattr(declaration, name, None) for name in ("dsn", "url", "server"))
            address = next(filter(None, named), None)
            if address is None:
                return
            if declaration.kind == "postgres":
                _judge_postgres(what, address)
            elif declaration.kind in SCHEMES:
                _judge(what, declaration.kind, address)


def _judge(what: str, kind: str, address: Address) -> None:
    """Refuse an address of another scheme, or without a host."""
    try:
        url = urlsplit(resolve(address))
        good = url.scheme in SCHEMES[kind] and (url.port is None or url.port > 0)
        if kind == "mysql":
            good = good and bool(url.path.strip("/"))
        elif kind != "redis":
            good = good and bool(url.hostname)
    except ValueError:
        good = False
    if not good:
        raise AddressError(f"the address of {what} is malformed", hint=EXAMPLES[kind])


def _judge_postgres(what: str, address: Address) -> None:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        return  # whoever runs it is told what to install
    try:
        conninfo_to_dict(resolve(address))
    except ProgrammingError:
        # Its own words may repeat a part of the address.
        raise AddressError(
            f"the address of {what} is malformed", hint=EXAMPLES["postgres"]
        ) from None
