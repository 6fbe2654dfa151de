"""What conditions and measures see of a match: each is a column to the expressions above it.

`variables` are numbers of the program's variables, None for all of them; `running`: only the
rows up to the current one count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from tailrace.pipelines.engine.expression import Expression
from tailrace.pipelines.engine.operators.aggregates import Aggregate

Variables: TypeAlias = tuple[int, ...] | None
CLASSIFIER = "classifier()"  # the column of a row's variable, in arguments of aggregates


@dataclass(frozen=True, slots=True)
class Navigation:
    """A value of one row: the first or last of `variables`, `offset` rows of them further, then
    `shift` rows of the partition. `column` of the input; "" for the row's variable."""

    column: str
    type: pa.DataType
    variables: Variables
    last: bool = True
    running: bool = True
    offset: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class MatchNumber:
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same in all rows: the column of any of them."""

    column: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Matched:
    """Whether the row belongs to a match; false for rows WITH UNMATCHED ROWS."""

    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate of the rows of `variables`. Arguments and condition are expressions over the
    columns of a row and its `CLASSIFIER`; `aggregate` names them a0, a1 …"""

    aggregate: Aggregate
    variables: Variables
    running: bool
    arguments: tuple[Expression, ...]
    condition: Expression | None = None
    directions: tuple[tuple[bool, bool], ...] = ()

    @property
    def type(self) -> pa.DataType:
        return self.aggregate.type


Slot: TypeAlias = Navigation | MatchNumber | Constant | Matched | Aggregated
