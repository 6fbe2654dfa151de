"""Connectors that can be had: those that come along, and those in directories of plugins.

A plugin is a module or package in a directory; every subclass of SourceConnector or SinkConnector
that it defines is a connector, called `module.Class`. Modules are imported in processes of their
own, never in the worker.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tailrace.connectors.base import Connector, SinkConnector, SourceConnector
from tailrace.connectors.common import default_version
from tailrace.connectors.errors import PluginError
from tailrace.connectors.names import BUILT_IN


def modules(directories: Iterable[str | Path]) -> list[tuple[str, str]]:
    """Every plugin as its directory and the name of its module."""
    found: list[tuple[str, str]] = []
    for directory in directories:
        for path in sorted(Path(directory).iterdir()):
            if path.name.startswith((".", "_")):
                continue
            if (path.suffix == ".py" and path.is_file()) or (path / "__init__.py").is_file():
                found.append((str(directory), path.stem))
    return found


def make_importable(directories: Sequence[str | Path]) -> None:
    for directory in reversed([str(Path(one).absolute()) for one in directories]):
        if directory not in sys.path:
            sys.path.insert(0, directory)


def connectors_in(module: str) -> Iterator[type[Connector]]:
    """The connectors that a module defines. Raises PluginError."""
    try:
        found = import_module(module)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginError(
            f"the plugin {module} cannot be imported", detail=f"{type(error).__name__}: {error}"
        ) from error
    for each in vars(found).values():
        if (
            isinstance(each, type)
            and issubclass(each, SourceConnector | SinkConnector)
            and each.__module__.partition(".")[0] == module.partition(".")[0]
            and not each.__name__.startswith("_")
        ):
            yield each


def load(where: str) -> type[Connector]:
    """The class at `module:Class`. Raises PluginError."""
    module, _, name = where.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PluginError(f"there is no connector {where}", detail=str(error)) from error
    if not (isinstance(found, type) and issubclass(found, SourceConnector | SinkConnector)):
        raise PluginError(f"{where} is no connector")
    return found


def kind_of(connector: type[Connector]) -> str:
    return "source" if issubclass(connector, SourceConnector) else "sink"


def keeps_itself(connector: type[Connector]) -> bool:
    """Whether its task reads and writes by itself (`independent`)."""
    return connector.independent


def describe(connector: type[Connector], name: str, where: str) -> dict[str, Any]:
    """What a worker keeps of a connector."""
    return {
        "class": name,
        "where": where,
        "type": kind_of(connector),
        "version": default_version(connector.version),
        "defaults": dict(connector.defaults),
        "definitions": [each.definition() for each in connector.config],
    }


def described_built_in() -> list[dict[str, Any]]:
    return [describe(load(where), name, where) for name, where in BUILT_IN.items()]


def described(module: str) -> list[dict[str, Any]]:
    return [
        describe(each, f"{each.__module__}.{each.__name__}", f"{each.__module__}:{each.__name__}")
        for each in connectors_in(module)
    ]
