"""Equal maps as equal values."""

from __future__ import annotations

from tailrace.pipelines.engine.expression import Call, Expression
from tailrace.pipelines.values import types


def map_form(value: Expression) -> Expression:
    """A value with the entries of its maps in the order of their keys, as Spark groups them:
    equal maps are then equal values."""
    if not types.has_map(value.type):
        return value
    return Call("map_form", (value,), value.type)
