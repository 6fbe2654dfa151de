"""Declarations are given what their parameters say, or refuse it by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

import tailrace as tr
from tailrace import sinks, sources
from tailrace.errors import TailraceError
from tailrace.kinds import misfit

AS_OF = {"name": "v", "rows": "a", "versions": "b", "on": {"a": "b"}, "at": "t", "select": ["a"]}
DECLARED: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (tr.topic, {"name": "t", "schema": "a INT, at TIMESTAMP", "time": "at"}),
    (tr.as_of, AS_OF),
    (tr.stream, {}),
    (sources.SQLite, {"name": "s", "path": "s.db"}),
    (sources.Postgres, {"name": "s", "dsn": "postgresql://x/y"}),
    (sources.MySQL, {"name": "s", "dsn": "mysql://x/y"}),
    (sources.Outbox, {"table": "t"}),
    (sinks.SQLite, {"path": "x.db", "table": "t"}),
    (sinks.DuckDB, {"path": "x.db", "table": "t"}),
    (sinks.Postgres, {"dsn": "postgresql://x/y", "table": "t"}),
    (sinks.MySQL, {"dsn": "mysql://x/y", "table": "t"}),
    (sinks.Redis, {"url": "redis://x", "prefix": "p"}),
    (sinks.Search, {"index": "x"}),
    (sinks.Elasticsearch, {"url": "http://x", "index": "i", "mappings": {"dynamic": "strict"}}),
    (sinks.Delta, {"path": "x", "partition_by": ("a",)}),
    (sinks.Iceberg, {"catalog": {"uri": "sqlite:///x"}, "table": "a.b"}),
    (sinks.Parquet, {"path": Path("x")}),
    (sinks.Topic, {"topic": "t"}),
    (sinks.Email, {"server": "smtp://x", "to": "a@example.org"}),
    (sinks.Webhook, {"url": "http://x"}),
    (sinks.Function, {"function": print}),
]
UNCHECKED = {"to", "inputs", "rows", "versions", "mappings"}
"""Parameters of several forms, which the function itself looks at."""


@pytest.mark.parametrize(
    ("declare", "right"), DECLARED, ids=lambda one: getattr(one, "__name__", "")
)
def test_an_argument_of_another_kind_is_refused_by_name(
    declare: Callable[..., Any], right: dict[str, Any]
) -> None:
    if declare is not tr.stream:
        declare(**right)
    for name in inspect.signature(declare).parameters.keys() - UNCHECKED:
        if (declare, name) == (sinks.Email, "to"):
            continue
        for odd in (2.5j, b"x", {1: 2}, [object()], {"a"}, range):
            if odd is range and (declare, name) == (sinks.Function, "function"):
                continue
            with pytest.raises(TailraceError, match=rf"{name} of \S+ must be .*, not"):
                declare(**{**right, name: odd})


def test_what_is_declared_wrongly_is_told_with_its_place_and_no_value() -> None:
    with pytest.raises(TailraceError, match=r"schema of tr\.topic must be text, Subject or None, not dict") as told:  # fmt: skip
        tr.topic("clicks", {"user": "STRING"})  # type: ignore[arg-type]
    assert Path(__file__).name in told.value.detail
    with pytest.raises(TailraceError) as hidden:
        sources.Postgres("shop", dsn={"password": "hunter2"})  # type: ignore[arg-type]
    assert "hunter2" not in repr(hidden.value)
    # A text is a sequence of letters, none of which is a table.
    with pytest.raises(TailraceError, match=r"exclude of .* must be a list of text, not str"):
        sources.SQLite("shop", "shop.db", exclude="orders")
    with pytest.raises(TailraceError, match=r"watermark= cannot be negative"):
        tr.topic("clicks", schema="at TIMESTAMP", time="at", watermark=-1)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (str | None, [None, "a"], [1, b"a", ["a"]]),
        (int, [0, -3], [True, 1.0, "1", None]),
        (float, [0, 1.5], [False, "1.5"]),
        (bool, [True], [1, None]),
        (str | Sequence[str], ["a", ["a"], ("a", "b"), []], [[1], {"a"}, {"a": 1}, 3]),
        (Mapping[str, Sequence[str]], [{}, {"a": ["b"]}], [{"a": "b"}, {"a": [1]}, {1: ["b"]}, []]),
        (Literal["a", "b"], ["a"], [1, None]),
        (timedelta, [timedelta(1)], ["1 day"]),
        (Callable[..., object], [print, dict], ["print"]),
        (Any, [1, None, object()], []),
        ("OnlyForTypeCheckers", [1, None], []),
    ],
)  # fmt: skip
def test_kinds(kind: object, right: list[object], wrong: list[object]) -> None:
    def declared(x: object) -> None: ...

    declared.__annotations__["x"] = kind
    assert [one for one in right if misfit("f", declared, {"x": one})] == []
    assert [one for one in wrong if not misfit("f", declared, {"x": one})] == []
