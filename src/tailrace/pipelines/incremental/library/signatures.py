"""What the binder must know of a function: how many arguments, of which types.

A function with fixed types is declared with its signature in one line. `plain` functions
take Python's own values (lists, dicts, `Decimal`, `datetime`) instead of physical ones; nested
types are handed over that way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailrace.pipelines.incremental.functions import (
    FUNCTIONS,
    KEEPS_NULL,
    PLAIN,
    Scalar,
    simple,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """`optional`: how many of the last arguments may be missing. `repeated`: the last one may
    stand any number of times."""

    result: pa.DataType
    arguments: tuple[pa.DataType, ...]
    optional: int = 0
    repeated: bool = False

    def types(self, given: int) -> tuple[pa.DataType, ...] | None:
        """The types of `given` arguments; None when that is a wrong number."""
        if self.repeated and given >= len(self.arguments) - self.optional:
            extra = max(0, given - len(self.arguments))
            return (*self.arguments[:given], *(self.arguments[-1:] * extra))
        if not len(self.arguments) - self.optional <= given <= len(self.arguments):
            return None
        return self.arguments[:given]


SIGNATURES: dict[str, Signature] = {}


def declare(
    name: str,
    result: pa.DataType,
    *arguments: pa.DataType,
    optional: int = 0,
    repeated: bool = False,
    keeps_null: bool = False,
) -> Callable[[Scalar], Scalar]:
    """Register a function of physical values with its types."""

    def register(function: Scalar) -> Scalar:
        SIGNATURES[name] = Signature(result, arguments, optional, repeated)
        simple(name, function)
        if keeps_null:
            KEEPS_NULL.add(name)
        return function

    return register


def plain(name: str, *, keeps_null: bool = False) -> Callable[[Scalar], Scalar]:
    """Register a function of Python's own values."""

    def register(function: Scalar) -> Scalar:
        PLAIN[name] = lambda kinds, kind: function
        if keeps_null:
            KEEPS_NULL.add(name)
        return function

    return register


def plain_typed(name: str, *, keeps_null: bool = False) -> Callable[[Any], Any]:
    """Register what makes a function of Python's own values for argument and result types."""

    def register(maker: Callable[[list[pa.DataType], pa.DataType], Scalar]) -> Any:
        PLAIN[name] = maker
        if keeps_null:
            KEEPS_NULL.add(name)
        return maker

    return register


def known(name: str) -> bool:
    """Whether it is computed here."""
    return name in FUNCTIONS or name in PLAIN
