"""Typed scalar expressions over the columns of one input.

An expression is a small immutable tree. `sql` is its text in Spark's dialect. `evaluate`
computes it with Arrow; a call that Arrow does not compute keeps its text for Spark (`SPARK`), which
`evaluate` asks for the values.
Function names are Spark's, in lower case; operators are named by their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from tailrace.pipelines.values.function_references import JavaFunction, PythonFunction
from tailrace.pipelines.values.types import ddl, is_decimal

Value: TypeAlias = object
SPARK = "spark"  # a call that Spark computes: its text, and the columns in it
PYTHON = "python"  # a call of a user's function: which it is, and its arguments
PARAMETER = "λ"  # parameters of lambdas are columns whose names begin so

_INFIX = {"+", "-", "*", "/", "%", "=", "<", "<=", ">", ">=", "<>", "<=>", "and", "or", "div",
          "like", "||", "rlike", "&", "|", "^"}  # fmt: skip
# Functions that give other answers than they once did. State holds what they gave: rows that
# came with the old answer would leave with the new one. Whoever changes what a function gives
# for some argument raises its number here (2 the first time); operators that use it have other
# names then, and their views are filled again.
MEANINGS: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the input, by name."""

    name: str
    type: pa.DataType

    @property
    def sql(self) -> str:
        return "`" + self.name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, in the Python form of its type (None for NULL)."""

    value: Value
    type: pa.DataType

    def __eq__(self, other: object) -> bool:
        # 0.0 and -0.0 are equal, and two constants: an expression of one is none of the other.
        return (
            isinstance(other, Literal)
            and (self.value, self.type) == (other.value, other.type)
            and str(self.value) == str(other.value)
        )

    def __hash__(self) -> int:
        return hash((str(self.value), self.type))  # a value may be a list or a dict

    @property
    def sql(self) -> str:
        if isinstance(self.value, PythonFunction | JavaFunction):
            return self.value.name
        return literal_sql(self.value, self.type)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of its arguments; `cast` takes its target from `type`."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType

    @property
    def meaning(self) -> int:
        """A number that is part of its identity: see `MEANINGS`."""
        return MEANINGS.get(self.function, 1)

    @property
    def sql(self) -> str:
        """Its text in Spark's dialect, for people."""
        texts = [argument.sql for argument in self.arguments]
        name = self.function
        if name in _INFIX and len(texts) == 2:
            return f"({texts[0]} {name.upper()} {texts[1]})"
        match name:
            case "spark":
                return spark_text(self)
            case "python":
                return f"{texts[0]}({', '.join(texts[1:])})"
            case "cast" | "try_cast":
                return f"{name.upper()}({texts[0]} AS {ddl(self.type)})"
            case "not":
                return f"(NOT {texts[0]})"
            case "negative":
                return f"(- {texts[0]})"
            case "is null" | "is not null" | "is true" | "is false":
                return f"({texts[0]} {name.upper()})"
            case "case":
                pairs = zip(texts[0:-1:2], texts[1:-1:2], strict=True)
                body = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
                return f"CASE {body} ELSE {texts[-1]} END"
            case "lambda":
                return f"({', '.join(texts[1:])}) -> {texts[0]}"
            case "in":
                return f"({texts[0]} IN ({', '.join(texts[1:])}))"
            case "get_field":
                return f"{texts[0]}.`{self.arguments[1].value}`"  # type: ignore[union-attr]
            case "window_start":
                micros = self.arguments[1].value  # type: ignore[union-attr]
                return f"window({texts[0]}, '{micros} microseconds').start"
            case "add_interval":
                months, days, micros = texts[1:]
                seconds = f"CAST({micros} / 1000000 AS DECIMAL(18,6))"
                return f"({texts[0]} + make_interval(0, {months}, 0, {days}, 0, 0, {seconds}))"
        return f"{name}({', '.join(texts)})"


Expression: TypeAlias = Column | Literal | Call


def spark_text(call: Call) -> str:
    """The text of a call that Spark computes, with its arguments in their places."""
    text, *arguments = call.arguments
    assert isinstance(text, Literal)
    shown = str(text.value)
    for number, argument in enumerate(arguments):
        shown = shown.replace(f"`a{number}`", argument.sql)
    return shown


def literal_sql(value: Value, kind: pa.DataType) -> str:
    """A constant in Spark's dialect, typed so that it reads back as the same type."""
    if value is None:
        return f"CAST(NULL AS {ddl(kind)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, int) and not is_decimal(kind):
        return str(value) if kind == pa.int32() else f"CAST({value} AS {ddl(kind)})"
    return f"CAST('{value}' AS {ddl(kind)})"


def walk(expression: Expression) -> Iterator[Expression]:
    """The tree's nodes, parents first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from walk(argument)


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns it reads; parameters of its own lambdas are none."""
    return {
        node.name
        for node in walk(expression)
        if isinstance(node, Column) and not node.name.startswith(PARAMETER)
    }


def rewrite(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """The tree with every node for which `change` gives something replaced by it."""
    replaced = change(expression)
    if replaced is not None:
        return replaced
    if isinstance(expression, Call):
        arguments = tuple(rewrite(argument, change) for argument in expression.arguments)
        if arguments != expression.arguments:
            return Call(expression.function, arguments, expression.type)
    return expression


def substitute(expression: Expression, values: dict[str, Expression]) -> Expression:
    """The tree with columns replaced by the expressions of that name."""
    return rewrite(
        expression, lambda node: values.get(node.name) if isinstance(node, Column) else None
    )


def conjuncts(expression: Expression | None) -> list[Expression]:
    """The parts of an AND, flattened."""
    if expression is None:
        return []
    if isinstance(expression, Call) and expression.function == "and":
        return [part for side in expression.arguments for part in conjuncts(side)]
    return [expression]


def conjunction(parts: list[Expression]) -> Expression | None:
    """The AND of the parts; None when there are none."""
    result: Expression | None = None
    for part in parts:
        result = part if result is None else Call("and", (result, part), pa.bool_())
    return result
