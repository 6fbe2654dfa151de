"""What the tables looked like: every version of every captured table, and what changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from tailrace.client.ranges import Range, RangeReader

_COLUMN = ("type", "nullable")


def schema_history(reader: RangeReader, sources: Iterable[str]) -> list[dict[str, Any]]:
    """The tables of `sources` with their versions, oldest first, each with its changes."""
    tables: dict[str, dict[int, dict[str, Any]]] = {}
    for source in sources:
        topic = f"{source}.schemas"
        ranges = [Range(topic, p, first, end) for p, (first, end) in reader.bounds(topic).items()]
        for chunk in reader.read(ranges):
            for value in chunk.values:
                if value is not None:
                    found = orjson.loads(value)
                    tables.setdefault(found["topic"], {})[found["version"]] = found
    return [
        {"table": name, "versions": list(_versions(versions))}
        for name, versions in sorted(tables.items())
    ]


def _versions(versions: dict[int, dict[str, Any]]) -> Iterable[dict[str, Any]]:
    before: dict[str, Any] | None = None
    for number in sorted(versions):
        now = versions[number]
        yield {
            "version": number,
            "position": now.get("position"),
            "key": now["key"],
            "columns": now["columns"],
            "changes": [] if before is None else differences(before, now),
        }
        before = now


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What an operator would say changed between two versions."""
    old = {column["name"]: column for column in before["columns"]}
    new = {column["name"]: column for column in after["columns"]}
    said = [f"+ {name} {new[name]['type']}" for name in new if name not in old]
    said += [f"− {name} {old[name]['type']}" for name in old if name not in new]
    for name in old.keys() & new.keys():
        if any(old[name].get(what) != new[name].get(what) for what in _COLUMN):
            said.append(f"~ {name}: {_told(old[name])} → {_told(new[name])}")
    if before["key"] != after["key"]:
        said.append(f"key: {', '.join(before['key'])} → {', '.join(after['key'])}")
    if not said and list(old) != list(new):
        said.append("columns in another order")
    return said


def _told(column: dict[str, Any]) -> str:
    return f"{column['type']}{'' if column.get('nullable', True) else ' not null'}"
