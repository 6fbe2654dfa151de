"""Names in a query: which column a name means."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.plans.plan import Field
from tailrace.pipelines.compiler.syntax.parse import place
from tailrace.pipelines.errors import (
    NotIncrementalError,
    SqlNameError,
    SqlTableError,
    SqlTypeError,
    ViewError,
)
from tailrace.pipelines.spark.catalyst.schema import crosses
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.functions import FunctionLike
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder
    from tailrace.pipelines.engine.expression import Expression
INTERVAL_HINT = "its days: CAST(d1 - d2 AS INT); its parts: extract(HOUR FROM t1 - t2)"


@dataclass(slots=True)
class Source:
    """One entry of a FROM clause. `hidden` columns (of USING) answer only to `alias.name`.
    `place`: of a table without an alias, the names before its own."""

    alias: str
    fields: tuple[Field, ...]
    hidden: set[str] = field(default_factory=set)
    place: tuple[str, ...] = ()

    def is_named(self, *names: str) -> bool:
        """Whether `t`, `shop.t` or `shop.public.t`, in small letters, is this entry."""
        *before, name = names
        if self.alias.lower() != name:
            return False
        rest = iter(self.place)
        return all(part in rest for part in before)


@dataclass(slots=True)
class Scope:
    """The entries of one FROM clause, and the query around it."""

    sources: list[Source] = field(default_factory=list)
    parent: Scope | None = None


class Context:
    """What all passes over one view share: its text, fresh ids, errors that point."""

    def __init__(
        self,
        view: str,
        sql: str,
        policy: str = "auto",
        times: Mapping[str, tuple[str, str]] | None = None,
        functions: Mapping[str, FunctionLike] | None = None,
    ) -> None:
        self.view, self.sql, self.policy = view, sql, policy
        self.times = times or {}  # of streams by name: topic and column of the event time
        self.functions = functions or {}  # the project's own, by their names in small letters
        self.places: dict[str, str] = {}  # where the relation of a column stands
        self._numbers = count(1)

    def fresh(self, name: str) -> str:
        return f"{name}#{next(self._numbers)}"

    def name_error(self, message: str, node: exp.Expr, hint: str = "") -> ViewError:
        return self._error(SqlNameError, message, node, hint)

    def table_error(self, message: str, node: exp.Expr, hint: str = "") -> ViewError:
        return self._error(SqlTableError, message, node, hint)

    def type_error(self, message: str, node: exp.Expr, hint: str = "") -> ViewError:
        return self._error(SqlTypeError, message, node, hint)

    def not_incremental(self, message: str, node: exp.Expr, hint: str = "") -> ViewError:
        return self._error(NotIncrementalError, message, node, hint)

    def held(self, kind: pa.DataType, node: exp.Expr) -> None:
        """Refuse what lives inside an expression alone."""
        if kind == types.INTERVAL:
            raise self.type_error("a view cannot hold an interval", node, INTERVAL_HINT)
        if not crosses(kind):
            raise self.type_error(
                "a view cannot hold a geometry or an interval", node,
                "st_asbinary gives what it can hold of a geometry",
            )  # fmt: skip

    def comparable(self, kind: pa.DataType, node: exp.Expr, *, maps: bool = False) -> None:
        """Refuse what compares values that have no order and no equality. `maps`: those that
        are brought into one form first (see `map_form`)."""
        self.held(kind, node)
        if types.has_variant(kind):
            raise self.type_error(
                f"{types.ddl(kind)} has no order and no equality", node,
                "cast it, or take a part of it by variant_get, to a type that has them",
            )  # fmt: skip
        if types.has_map(kind) and not maps:
            raise self.type_error(
                f"{types.ddl(kind)} is not compared", node,
                "compare its entries: array_sort(map_entries(…)); GROUP BY and count(DISTINCT …)"
                " take a map as it is",
            )  # fmt: skip

    def only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node with parts that nobody here reads: they would be ignored."""
        for name, value in node.args.items():
            if value and name not in known:
                shown = value.sql("spark") if isinstance(value, exp.Expr) else name.strip("_")
                raise self.not_incremental(
                    f"{name.strip('_').replace('_', ' ')} is not kept incrementally here: {shown}",
                    node,
                )

    def _error(self, kind: type[ViewError], message: str, node: exp.Expr, hint: str) -> ViewError:
        error = kind(
            f"view {self.view!r}: {message}",
            detail=place(self.sql, node),
            hint=hint or _HINTS.get(kind, ""),
        )
        error.view = self.view
        return error


_HINTS: dict[type[ViewError], str] = {
    SqlNameError: "correct the name at the mark; it means what FROM, WITH, WINDOW and SELECT bring",
    SqlTypeError: "CAST(… AS …) makes a type fit; docs/reference/view-sql.md lists the functions",
    NotIncrementalError: "docs/reference/view-sql.md lists what a view can keep",
}


def refuse(context: Context) -> Callable[[exp.Expr, ExpressionBinder], Expression]:
    """For clauses in which a subquery has no place."""

    def bind(node: exp.Expr, binder: ExpressionBinder) -> Expression:
        raise context.not_incremental(
            "a subquery is not kept incrementally here", node,
            "join its table, or compute it in WITH and name its column here",
        )  # fmt: skip

    return bind


def resolve(context: Context, scope: Scope, node: exp.Column) -> Field:
    """The column a name means, here or in an enclosing query."""
    *names, name = (part.name.lower() for part in node.parts)
    around: Scope | None = scope
    while around is not None:
        found = [
            (source, column)
            for source in around.sources
            if not names or source.is_named(*names)
            for column in source.fields
            if column.name.lower() == name and (names or column.id not in source.hidden)
        ]
        if len(found) > 1:
            places = ", ".join(f"{source.alias}.{column.name}" for source, column in found)
            raise context.name_error(
                f"column {node.sql()!r} is ambiguous", node, f"one of {places}"
            )
        if found:
            return found[0][1]
        around = around.parent
    if names and not any(source.is_named(*names) for source in scope.sources):
        aliases = ", ".join(source.alias for source in scope.sources)
        shown = ".".join(part.name for part in node.parts[:-1])
        raise context.name_error(f"there is no table {shown!r} here", node, f"here are: {aliases}")
    known = sorted({c.name for source in scope.sources for c in source.fields})
    near = difflib.get_close_matches(node.name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"columns here: {', '.join(known)}"
    raise context.name_error(f"column {node.sql()!r} does not exist", node, hint)
