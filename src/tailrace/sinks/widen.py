"""Whether a column of a target still holds what a view has in it.

Types are compared by their names, as the databases tell them: `integer`, `int(11)`,
`numeric(12,2)`, `character varying(10)`. A type that is not known here is left alone:
the target itself refuses what it cannot take, row by row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tailrace.sinks.base import Shape
from tailrace.sinks.errors import ShapeError
from tailrace.sinks.sql import sql_type

DIGITS = {
    "tinyint": 2, "smallint": 4, "int2": 4, "mediumint": 6, "int": 9, "integer": 9, "int4": 9,
    "bigint": 18, "int8": 18, "hugeint": 38,
}  # fmt: skip
FLOATS = {"real": 1, "float": 1, "float4": 1, "double": 2, "double precision": 2, "float8": 2}
TEXTS = ("text", "longtext", "mediumtext", "string", "jsonb", "json")
UNLIMITED = 1000


@dataclass(frozen=True, slots=True)
class _Kind:
    family: Literal["integer", "float", "decimal", "text", "boolean", "date", "moment", "other"]
    whole: int = 0
    fraction: int = 0


def _kind(name: str) -> _Kind:
    word = name.lower().strip()
    base, numbers = re.sub(r"\(.*?\)", "", word).strip(), re.findall(r"\d+", word)
    if word == "tinyint(1)" or base in ("boolean", "bool"):
        return _Kind("boolean")
    if base in DIGITS:
        return _Kind("integer", DIGITS[base])
    if base in FLOATS:
        return _Kind("float", FLOATS[base])
    if base in ("numeric", "decimal"):
        if not numbers:
            return _Kind("decimal", UNLIMITED, UNLIMITED)
        scale = int(numbers[1]) if len(numbers) > 1 else 0
        return _Kind("decimal", int(numbers[0]) - scale, scale)
    if base in TEXTS or base.startswith(("varchar", "char", "character")):
        return _Kind("text")
    if base == "date":
        return _Kind("date")
    if base.startswith(("timestamp", "datetime")):
        return _Kind("moment")
    return _Kind("other")


def change_of(held: str, wanted: str) -> Literal["keep", "widen", "park"]:
    """What must become of a column of type `held` so that it takes all of `wanted`."""
    old, new = _kind(held), _kind(wanted)
    match (old.family, new.family):
        case ("text" | "other", _) | (_, "other"):
            return "keep"
        case (_, "text"):
            return "widen"
        case ("integer", "integer") | ("float", "float"):
            return "keep" if old.whole >= new.whole else "widen"
        case ("integer", "float") | ("date", "moment"):
            return "widen"
        case ("integer", "decimal"):
            return "widen" if new.whole >= old.whole else "park"
        case ("decimal", "integer"):
            return "keep" if old.whole > new.whole else "widen" if old.fraction == 0 else "park"
        case ("decimal", "decimal"):
            if old.whole >= new.whole and old.fraction >= new.fraction:
                return "keep"
            return "widen" if new.whole >= old.whole and new.fraction >= old.fraction else "park"
        case ("float", "integer" | "decimal") | ("boolean", "integer") | ("integer", "boolean"):
            return "keep"
    return "keep" if old.family == new.family else "park"


def columns_to_widen(
    shape: Shape, held: Mapping[str, str], types: Mapping[str, str], table: str, policy: str
) -> list[tuple[str, str]]:
    """Columns whose type must grow, with the view's type in Spark's words; `ShapeError` if
    they may not, or if no type holds both."""
    wider: list[tuple[str, str]] = []
    for name, ddl in shape.columns:
        if name not in held:
            continue
        wanted = sql_type(ddl, types)
        change = change_of(held[name], wanted)
        if change == "park" or (change == "widen" and policy != "widen"):
            raise ShapeError(
                f"column {name!r} of table {table!r} cannot hold what comes",
                detail=f"It is {held[name]}, the values are {wanted}. Nothing is lost: the copy "
                "waits and goes on from here.",
                hint=f"change the column to {wanted}, or let the sink do it: "
                'schema_change="widen"; or cast the value in the query'
                if change == "widen"
                else f"change it to {wanted}, or build the copy anew with `tailrace sink replay`",
            )
        if change == "widen":
            wider.append((name, ddl))
    return wider
