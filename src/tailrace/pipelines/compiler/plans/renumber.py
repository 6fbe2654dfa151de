"""A plan with every id replaced: what makes two copies of one plan different relations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from typing import cast

import pyarrow as pa

from tailrace.pipelines.compiler.plans.plan import Field, Plan
from tailrace.pipelines.engine.expression import PARAMETER, Column
from tailrace.pipelines.engine.graph import TableInput


def renumber(plan: Plan, prefix: str, keep: Collection[str] = ()) -> Plan:
    """The same plan; every id carries `prefix`, but for those to `keep` (columns of a query
    around it)."""
    return cast(Plan, _change(plan, prefix, keep))


def _change(value: object, prefix: str, keep: Collection[str]) -> object:
    if isinstance(value, Field):
        return Field(f"{prefix}.{value.id}", value.name, value.type)
    if isinstance(value, Column):
        if value.name in keep or value.name.startswith(PARAMETER):
            return value
        return Column(f"{prefix}.{value.name}", value.type)
    if isinstance(value, TableInput | pa.DataType | str):
        return value
    if isinstance(value, tuple):
        return tuple(_change(part, prefix, keep) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: _change(getattr(value, f.name), prefix, keep) for f in fields(value)}
        )
    return value
