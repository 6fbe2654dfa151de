"""Event topics as inputs of views: what SQL sees of them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tailrace.facts.errors import EventsDeclarationError
from tailrace.facts.spark_types import columns_of
from tailrace.pipelines.engine.identity import identify
from tailrace.pipelines.reading.event_rows import EventType, event_table, state_table
from tailrace.pipelines.values.types import parse_type

if TYPE_CHECKING:
    from tailrace.facts.declare import Events
    from tailrace.pipelines.engine.graph import TableInput


def event_tables(declared: Iterable[Events[Any]]) -> list[TableInput]:
    """Every event topic as a stream, and the states of those that publish them as a table.

    Raises EventsDeclarationError for one whose names SQL cannot tell apart.
    """
    return [table for each in declared for table in tables_of(each)]


def tables_of(declared: Events[Any]) -> Iterator[TableInput]:
    """The inputs that one event topic is."""
    types = tuple(
        EventType(
            each.name,
            each.version,
            _schema(each.cls, each.personal),
            tuple(each.upcasts.items()),
        )
        for each in declared.types
    )
    try:
        yield event_table(declared.name, types, _upcasts(types))
        if declared.publish:
            yield state_table(declared.name, _schema(declared.state))
    except ValueError as error:
        raise EventsDeclarationError(
            f"SQL cannot read the event topic {declared.name!r}",
            detail=f"{error}\ndeclared at {declared.declared_at}",
            hint="rename the type or the field; capital and small letters are one in SQL",
        ) from error


def _upcasts(types: tuple[EventType, ...]) -> str:
    """What the upcasts do, as a hash over their code; comments and layout are no part of it."""
    steps = [(each.name, version, _code(step)) for each in types for version, step in each.upcasts]
    return identify(sorted(steps)) if steps else ""


def _code(function: Callable[..., Any]) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):  # made at a prompt, or written in C
        return f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    try:
        return ast.unparse(ast.parse(text))
    except SyntaxError:  # a lambda in the middle of a line
        return text


def _schema(cls: type, sealed: Container[str] = ()) -> pa.Schema:
    """The fields of a class as columns; those that are sealed in the log are text in it."""
    return pa.schema(
        [(name, parse_type("STRING" if name in sealed else kind)) for name, kind in columns_of(cls)]
    )
