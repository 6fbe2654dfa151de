"""Row patterns in windows: `measure OVER w`, and functions over the rows of each row's match.

    WINDOW w AS (PARTITION BY … ORDER BY … MEASURES … ROWS BETWEEN CURRENT ROW AND …
                 AFTER MATCH SKIP … INITIAL | SEEK PATTERN (…) SUBSET … DEFINE …)

A row has at most one match, so a window is one `Match` with a frame: it shows every row once,
with what the query asks of its match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from tailrace.pipelines.compiler.binding import subqueries
from tailrace.pipelines.compiler.binding.aggregates import (
    RANKING,
    bind_order,
    bind_window,
    is_aggregate,
    key_in_order,
)
from tailrace.pipelines.compiler.binding.match_recognize import (
    MatchBinder,
    Names,
    bind_definitions,
    bind_pattern,
    bind_skip,
    refuse_clock,
    tree_of,
)
from tailrace.pipelines.compiler.binding.scope import Scope, Source
from tailrace.pipelines.compiler.expressions.calls import name_and_arguments
from tailrace.pipelines.compiler.plans.match_recognize import Defined, Look, Match
from tailrace.pipelines.compiler.plans.plan import Plan
from tailrace.pipelines.compiler.syntax.match_recognize import Framed, RowCall
from tailrace.pipelines.engine.expression import Call, Expression, Literal, columns_of
from tailrace.pipelines.engine.operators.match_recognize import Frame
from tailrace.pipelines.engine.patterns.grammar import excludes
from tailrace.pipelines.engine.patterns.program import Program
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

_OF_THE_FRAME = {"first_value": "FIRST", "last_value": "LAST", "nth_value": "FIRST",
                 "first": "FIRST", "last": "LAST", "any_value": "FIRST"}  # fmt: skip


@dataclass(slots=True)
class FramedWindow:
    """One window with a pattern, and what the query has asked of it so far."""

    node: Framed
    binder: ExpressionBinder
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    names: Names
    program: Program
    looks: list[Look] = field(default_factory=list)
    definitions: tuple[Defined, ...] = ()
    measures: dict[str, exp.Expr] = field(default_factory=dict)  # by name in small letters
    used: set[str] = field(default_factory=set)

    def reading(self, *, defining: bool = False, outside: bool = False) -> MatchBinder:
        """Binds what is in the window; `outside`: an argument of a function over it."""
        context, scope = self.binder.context, self.binder.scope
        fields = tuple(f for s in scope.sources for f in s.fields if f.id not in s.hidden)
        return MatchBinder(
            context, scope if outside else Scope([Source("", fields)]),
            subqueries.refuse(context), names=self.names, looks=self.looks,
            defining=defining, outside=outside,
        )  # fmt: skip

    def asked(self, bound: Expression, node: exp.Expr) -> Expression:
        """An expression over looks, once it is known to be one that a window may have."""
        refuse_clock(self.binder.context, bound, node)
        for look in self.looks:
            if look.kind == "number":
                raise self.binder.context.type_error("MATCH_NUMBER() in a window", node)
        self.used |= columns_of(bound)
        return bound

    def measure(self, node: exp.Column) -> Expression:
        """`m OVER w`: NULL for a row without a match."""
        context = self.binder.context
        item = self.measures.get(node.name.lower()) if not node.table else None
        if item is None:
            listed = ", ".join(one.alias for one in self.measures.values()) or "none"
            raise context.name_error(
                f"the window has no measure {node.name!r}", node, f"it has: {listed}"
            )
        binding = self.reading()
        bound = self.asked(binding.bind(item.this), item)
        context.held(bound.type, item)
        found = binding._look(Look("matched", binding._field("matched", types.BOOLEAN)))
        self.used |= columns_of(found)
        return Call("case", (found, bound, Literal(None, bound.type)), bound.type)

    def function(self, node: exp.Window) -> Expression:
        """A function over the rows of the match; over none where there is no match."""
        context, inner = self.binder.context, node.this
        name, arguments = name_and_arguments(
            inner.this if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls) else inner
        )
        binding = self.reading(outside=True)
        if name in _OF_THE_FRAME:
            if isinstance(inner, exp.IgnoreNulls):
                raise context.not_incremental("IGNORE NULLS over a row pattern", node)
            given = list(arguments[:1])
            if name == "nth_value":
                steps = arguments[1] if len(arguments) == 2 else None
                if not isinstance(steps, exp.Literal) or not steps.is_int or not int(steps.this):
                    raise context.type_error("nth_value takes a value and a place from 1 on", node)
                given.append(exp.Literal.number(int(steps.this) - 1))
            call = RowCall(this=_OF_THE_FRAME[name], expressions=[g.copy() for g in given])
            return self.asked(binding.bind(call), node)
        if not is_aggregate(inner):
            raise context.not_incremental(f"window function {name!r} is not known", node)
        return self.asked(binding.bind(inner), node)

    def plan(self, below: Plan) -> Plan:
        """The rows of `below`, each with what was asked of its match."""
        node = self.node
        end = node.args.get("end")
        shown = tuple(look.field for look in self.looks if look.field.id in self.used)
        return Match(
            below, self.partition, self.order, self.program, self.definitions,
            tuple(self.looks), shown, "each", bind_skip(self.names, node), None,
            tuple(dict.fromkeys(below.fields)),
            Frame(None if end is None else int(end.name), bool(node.args.get("seek"))),
        )  # fmt: skip


def bind_framed(binder: ExpressionBinder, node: exp.Window) -> Expression:
    """A measure or a function OVER a window with a PATTERN."""
    context, collected = binder.context, binder.collected
    if collected is None:
        raise context.type_error("a window function is not allowed here", node)
    framed = cast(Framed, node.args["framed"])
    if not isinstance(node.this, exp.Column):
        name, _ = name_and_arguments(node.this)
        if name in RANKING and name not in _OF_THE_FRAME:  # looks at no frame
            plain = node.copy()
            plain.set("framed", None)
            return bind_window(binder, plain)
    window = collected.framed.get(framed.meta["start"])
    if window is None:
        window = collected.framed[framed.meta["start"]] = _window(binder, node, framed)
    if isinstance(node.this, exp.Column):
        return window.measure(node.this)
    return window.function(node)


def _window(binder: ExpressionBinder, node: exp.Window, framed: Framed) -> FramedWindow:
    context = binder.context
    partition = tuple(
        key_in_order(binder, binder.bind(part), part)
        for part in node.args.get("partition_by") or ()
    )
    for part in partition:
        context.comparable(part.type, node)
    order = bind_order(binder, node.args["order"].expressions) if node.args.get("order") else ()
    names, program = bind_pattern(context, framed)
    if any(program.anchored):
        raise context.type_error("^ or $ in a window", framed.args["pattern"])
    if excludes(tree_of(framed)):
        raise context.type_error("{- -} in a window, which shows every row", framed.args["pattern"])
    window = FramedWindow(framed, binder, partition, order, names, program)
    window.definitions = bind_definitions(window.reading(defining=True), framed, names)
    for look in window.looks:
        if look.kind == "number":
            raise context.type_error("MATCH_NUMBER() in a window", framed)
    for item in framed.args.get("measures") or ():
        if item.alias.lower() in window.measures:
            raise context.name_error(f"two measures are named {item.alias!r}", item)
        window.measures[item.alias.lower()] = item
    bind_skip(names, framed)
    for expression, _, _ in order:
        refuse_clock(context, expression, framed)
    return window
