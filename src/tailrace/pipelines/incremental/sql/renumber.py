"""A plan with every id replaced: what makes two copies of one plan different relations."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import cast

import pyarrow as pa

from tailrace.pipelines.incremental.expression import Column
from tailrace.pipelines.incremental.graph import TableInput
from tailrace.pipelines.incremental.sql.plan import Field, Plan


def renumber(plan: Plan, prefix: str) -> Plan:
    """The same plan; every id carries `prefix`."""
    return cast(Plan, _change(plan, prefix))


def _change(value: object, prefix: str) -> object:
    if isinstance(value, Field):
        return Field(f"{prefix}.{value.id}", value.name, value.type)
    if isinstance(value, Column):
        return Column(f"{prefix}.{value.name}", value.type)
    if isinstance(value, TableInput | pa.DataType | str):
        return value
    if isinstance(value, tuple):
        return tuple(_change(part, prefix) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: _change(getattr(value, f.name), prefix) for f in fields(value)}
        )
    return value
