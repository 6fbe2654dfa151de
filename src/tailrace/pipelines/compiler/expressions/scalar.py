"""sqlglot's scalar expressions → typed expressions, by Spark's rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context, Scope, resolve
from tailrace.pipelines.compiler.binding.stars import BOUND, written_out
from tailrace.pipelines.compiler.expressions.calls import bind_call, name_and_arguments
from tailrace.pipelines.compiler.expressions.clock_filters import WATERMARK, bind_watermark
from tailrace.pipelines.compiler.expressions.collations import compared
from tailrace.pipelines.compiler.expressions.interval_calls import (
    constant_interval,
    has_clock,
    is_known,
    negated,
    parts_of,
    scaled,
    signed,
)
from tailrace.pipelines.compiler.expressions.like_calls import (
    escaped,
    is_like_several,
    like_several,
)
from tailrace.pipelines.compiler.expressions.literals import bind_literal, interval_parts
from tailrace.pipelines.compiler.expressions.spark_calls import by_spark
from tailrace.pipelines.compiler.expressions.spark_text import type_text
from tailrace.pipelines.compiler.plans.plan import AggregateCall, Field, WindowCall
from tailrace.pipelines.compiler.syntax.parse import dialect
from tailrace.pipelines.compiler.syntax.refused import VOLATILE
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values import types
from tailrace.pipelines.values.casts import castable

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.match_windows import FramedWindow

INFIX: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}  # fmt: skip
ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
}  # fmt: skip
NONDETERMINISTIC = (
    exp.Rand, exp.Randn, exp.Uuid,
)  # fmt: skip
CLOCK_WORDS = ("now", "curdate")
CLOCK_COLUMNS = ("current_time", "localtime")
_MOMENTS = (types.TIMESTAMP, types.TIMESTAMP_NTZ)
OPERANDS = (types.NULL, types.STRING)  # what AND, OR and NOT take for truth values
CLOCK = (
    exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtime, exp.Localtimestamp
)  # fmt: skip


@dataclass(slots=True)
class WindowUse:
    """A window function met in a SELECT list."""

    field: Field
    call: WindowCall
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]


@dataclass(slots=True)
class Collected:
    """What expressions left to be done by the query around them."""

    aggregates: list[tuple[Field, AggregateCall]] = field(default_factory=list)
    windows: list[WindowUse] = field(default_factory=list)
    framed: dict[int, FramedWindow] = field(default_factory=dict)  # by their place in the text


@dataclass(slots=True)
class ExpressionBinder:
    """Binds the expressions of one clause.

    `collected` None: aggregates and window functions are not allowed here. `subquery` binds
    EXISTS, IN (SELECT …) and scalar subqueries, `inner_subquery` those inside an aggregate.
    """

    context: Context
    scope: Scope
    subquery: Callable[[exp.Expr, ExpressionBinder], Expression]
    collected: Collected | None = None
    aliases: dict[str, Expression] = field(default_factory=dict)
    parameters: dict[str, Column] = field(default_factory=dict)  # of the lambdas around
    depth: int = 0
    windows: dict[str, Expression] = field(default_factory=dict)  # of time, by their text
    inner_subquery: Callable[[exp.Expr, ExpressionBinder], Expression] | None = None

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node; an error points at it."""
        if is_like_several(node):
            return like_several(self, node)
        if node.args.get("negate"):
            positive = node.copy()
            positive.set("negate", None)
            return Call("not", (self.condition(positive, *OPERANDS),), types.BOOLEAN)
        match node:
            case exp.Paren():
                return self.bind(node.this)
            case exp.Alias():
                return self.bind(node.this)
            case exp.Star():
                raise self.context.name_error("* is not allowed here", node)
            case exp.Column():
                if BOUND in node.meta:
                    return cast(Expression, node.meta[BOUND])
                if isinstance(node.this, exp.Star):
                    raise self.context.name_error("* is not allowed here", node)
                if not node.table and node.name.lower() in self.aliases:
                    return self.aliases[node.name.lower()]
                if node.table:
                    return self._qualified(node)
                if node.name.lower() in CLOCK_COLUMNS and not self._is_column(node):
                    return self._clock(node)
                return resolve(self.context, self.scope, node).column
            case exp.Literal() | exp.Null() | exp.Boolean():
                return bind_literal(self.context, node)
            case exp.Escape():
                return self.bind(escaped(self.context, node))
            case exp.HexString():
                digits = str(node.this)
                return Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), types.BINARY)
            case exp.Neg():
                if node.this.is_int and isinstance(node.this, exp.Literal):
                    return bind_literal(self.context, node.this, negative=True)
                inner = self.bind(node.this)
                if inner.type == types.INTERVAL:
                    return negated(self, inner, node)
                inner = self.number(inner, node, texts=True)
                if isinstance(inner, Literal) and isinstance(inner.value, int | float | Decimal):
                    return Literal(-inner.value, inner.type)
                return Call("negative", (inner,), inner.type)
            case exp.And() | exp.Or():
                name = "and" if isinstance(node, exp.And) else "or"
                sides = (self.condition(s, *OPERANDS) for s in (node.this, node.expression))
                return Call(name, tuple(sides), types.BOOLEAN)
            case exp.Not():
                if isinstance(node.this, exp.In) and node.this.args.get("query"):
                    return self.subquery(node, self)
                return Call("not", (self.condition(node.this, *OPERANDS),), types.BOOLEAN)
            case exp.Exists() | exp.Subquery():
                return self.subquery(node, self)
            case exp.In():
                return self._in(node)
            case exp.Is():
                return self._is(node)
            case exp.NullSafeNEQ():
                same = self.compare("<=>", self.bind(node.this), self.bind(node.expression), node)
                return Call("not", (same,), types.BOOLEAN)
            case exp.Between():
                return self._between(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                otherwise = node.args.get("false")
                if otherwise is None:
                    raise self.context.type_error("if takes a condition and two values", node)
                return self.choose(
                    [(self.condition(node.this, types.NULL), self.bind(node.args["true"]))],
                    self.bind(otherwise),
                    node,
                )
            case exp.Cast():
                return self._cast(node)
            case exp.Interval():
                return self._interval(node)
            case exp.Identifier():
                if node.name.lower() in self.parameters:
                    return self.parameters[node.name.lower()]
            case exp.Bracket():
                return self._bracket(node)
            case exp.JSONExtract() if node.args.get("variant_extract"):
                return self._path(node)
            case exp.Dot():
                return take_field(self.context, self.bind(node.this), node.expression.name, node)
            case exp.Window():
                from tailrace.pipelines.compiler.binding.aggregates import bind_window

                return bind_window(self, node)
        kind = type(node)
        if self.windows and kind is exp.Anonymous and node.sql() in self.windows:
            return self.windows[node.sql()]
        if kind in INFIX:
            left, right = self._apart(node.this, node.expression, node)
            return self.compare(INFIX[kind], left, right, node)
        if kind in ARITHMETIC:
            return self.arithmetic(
                ARITHMETIC[kind], self.bind(node.this), self.bind(node.expression), node
            )
        if kind in NONDETERMINISTIC or (
            isinstance(node, exp.Func) and name_and_arguments(node)[0] in VOLATILE
        ):
            raise self.context.not_incremental(
                f"{node.sql('spark')} is not deterministic", node, "compute it before it is stored"
            )
        if kind in CLOCK or (isinstance(node, exp.Anonymous) and node.name.lower() in CLOCK_WORDS):
            return self._clock(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() == WATERMARK:
            return bind_watermark(self.context, node)
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return grouping_call(self, node)
        from tailrace.pipelines.compiler.binding.aggregates import bind_aggregate, is_aggregate

        if is_aggregate(node):
            return bind_aggregate(self, node)
        return bind_call(self, node)

    def _clock(self, node: exp.Expr) -> Expression:
        """The present time; what depends on it otherwise than by filters is recomputed."""
        now = Call("now", (), types.TIMESTAMP)
        if isinstance(node, exp.CurrentDate) or node.name.lower() == "curdate":
            return Call("cast", (now,), types.DATE)
        if isinstance(node, exp.CurrentTime | exp.Localtime | exp.Column):
            return self._clock_time(now, node)
        if isinstance(node, exp.Localtimestamp):
            return Call("cast", (now,), types.TIMESTAMP_NTZ)
        return now

    def _is_column(self, node: exp.Column) -> bool:
        around: Scope | None = self.scope
        while around is not None:
            if any(f.name.lower() == node.name.lower() for s in around.sources for f in s.fields):
                return True
            around = around.parent
        return bool(node.table)

    def _qualified(self, node: exp.Column) -> Expression:
        """A name with others before it: tables come before columns, columns before fields."""
        parts = node.parts
        for at in range(len(parts) - 1, -1, -1):
            names = [part.name.lower() for part in parts[: at + 1]]
            if not at and names[0] in self.aliases:
                bound = self.aliases[names[0]]
            elif self.has(*names):
                named = node.copy()
                before: list[exp.Expr | None] = [None] * (len(parts) - 1 - at)
                before += [part.copy() for part in parts[: at + 1]]
                for place, part in zip(
                    ("this", "table", "db", "catalog"), before[::-1], strict=False
                ):
                    named.set(place, part)
                bound = resolve(self.context, self.scope, named).column
            else:
                continue
            for part in parts[at + 1 :]:
                bound = take_field(self.context, bound, part.name, node)
            return bound
        return resolve(self.context, self.scope, node).column

    def has(self, *names: str) -> bool:
        """Whether there is such a column, here or in a query around; of any table if the
        column's name is all there is."""
        *table, column = names
        around: Scope | None = self.scope
        while around is not None:
            for source in around.sources:
                named = not table or source.is_named(*table)
                if named and any(f.name.lower() == column for f in source.fields):
                    return True
            around = around.parent
        return False

    def condition(self, node: exp.Expr, *taken: pa.DataType) -> Expression:
        """A node that must be a truth value; one of the types `taken` becomes one."""
        bound = self.bind(node)
        if bound.type in taken:
            return self.coerce(bound, types.BOOLEAN, node)
        if bound.type != types.BOOLEAN:
            raise self.context.type_error(
                f"{types.ddl(bound.type)} where a condition is needed", node
            )
        return bound

    def number(self, bound: Expression, node: exp.Expr, *, texts: bool = False) -> Expression:
        """A value that must be a number; a bare NULL is a DOUBLE, with `texts` a text too."""
        if bound.type == types.NULL or (texts and bound.type == types.STRING):
            return self.coerce(bound, types.DOUBLE, node)
        if not types.is_numeric(bound.type):
            raise self.context.type_error(f"{types.ddl(bound.type)} is not a number", node)
        return bound

    def coerce(
        self, bound: Expression, kind: pa.DataType, node: exp.Expr, *, written: bool = False
    ) -> Expression:
        """`bound` as `kind`; constants at once. `written`: by a CAST of the query."""
        if bound.type == kind:
            return bound
        known = castable(bound.type, kind)
        if not known and (written or types.VARIANT in (bound.type, kind)):
            return by_spark(self, f"CAST({{0}} AS {type_text(kind)})", [bound], node)
        if isinstance(bound, Literal) and known:
            from tailrace.pipelines.values.casts import cast_array

            try:
                value = cast_array(pa.array([bound.value], bound.type), kind)[0].as_py()
            except (EvaluationError, pa.ArrowInvalid) as error:
                raise self.context.type_error(
                    f"{bound.sql} is no {types.ddl(kind)}", node
                ) from error
            return Literal(value, kind)
        if not known:
            raise self.context.type_error(
                f"{types.ddl(bound.type)} cannot become {types.ddl(kind)}", node
            )
        return Call("cast", (bound,), kind)

    def alike(
        self, bounds: list[Expression], node: exp.Expr
    ) -> tuple[list[Expression], pa.DataType]:
        """Expressions brought to their common type."""
        kind = bounds[0].type
        for bound in bounds[1:]:
            wider = types.common(kind, bound.type)
            if wider is None:
                raise self.context.type_error(
                    f"{types.ddl(kind)} and {types.ddl(bound.type)} do not fit together", node
                )
            kind = wider
        return [self.coerce(bound, kind, node) for bound in bounds], kind

    def compare(self, name: str, left: Expression, right: Expression, node: exp.Expr) -> Expression:
        left, right = compared(self, [left, right], node)
        if types.INTERVAL in (left.type, right.type):
            return by_spark(self, f"({{0}} {name} {{1}})", [left, right], node)
        right = _fitted(right, left.type)
        left = _fitted(left, right.type)
        right = _named_like(right, left.type)
        (left, right), kind = self.alike([left, right], node)
        self.context.comparable(kind, node)
        return Call(name, (left, right), types.BOOLEAN)

    def _apart(
        self, left: exp.Expr, right: exp.Expr, node: exp.Expr
    ) -> tuple[Expression, Expression]:
        """The sides of a comparison. A span between two moments is none that a view can hold:
        `a - b < INTERVAL …` is `a < b + INTERVAL …`."""
        if isinstance(left.unnest(), exp.Interval) and isinstance(right.unnest(), exp.Sub):
            larger, smaller = self._apart(right, left, node)
            return smaller, larger
        span = left.unnest()
        if isinstance(span, exp.Sub) and isinstance(right.unnest(), exp.Interval):
            ends = [self.bind(span.this), self.bind(span.expression)]
            length = interval_parts(self.context, right.unnest())  # type: ignore[arg-type]
            dates = all(end.type == types.DATE for end in ends) and not length[2]
            if (dates or all(end.type in _MOMENTS for end in ends)) and not length[0]:
                return ends[0], self.arithmetic("+", ends[1], self.bind(right), node)
        return self.bind(left), self.bind(right)

    def arithmetic(
        self, name: str, left: Expression, right: Expression, node: exp.Expr
    ) -> Expression:
        written = f"{types.ddl(left.type)} {name} {types.ddl(right.type)}"
        if types.is_time(left.type) or types.is_time(right.type):
            return by_spark(self, f"({{0}} {name} {{1}})", [left, right], node)
        if name == "*" and right.type == types.INTERVAL:
            left, right = right, left
        if name == "*" and types.is_integer(right.type) and is_known(left):
            return scaled(self, left, right, node)
        if types.INTERVAL in (left.type, right.type) and not _moves(name, left, right):
            return by_spark(self, f"({{0}} {name} {{1}})", [left, right], node)
        if types.is_temporal(left.type) or types.is_temporal(right.type):
            return self._time_arithmetic(name, left, right, node)
        if types.NULL in (left.type, right.type):
            other = types.common(left.type, right.type)
            if other == types.NULL:
                other = types.BIGINT if name == "div" else types.DOUBLE
            left, right = self.coerce(left, other, node), self.coerce(right, other, node)
        if types.is_decimal(left.type) and types.is_integer(right.type):
            right = _as_decimal(right)
        elif types.is_decimal(right.type) and types.is_integer(left.type):
            left = _as_decimal(left)
        kind = types.arithmetic(name, left.type, right.type)
        if kind is None:
            raise self.context.type_error(f"{written} has no meaning", node)
        if not types.is_decimal(kind) and not (name == "div" and types.is_decimal(left.type)):
            operand = kind if name != "div" else types.BIGINT
            left, right = self.coerce(left, operand, node), self.coerce(right, operand, node)
        return Call(name, (left, right), kind)

    def _time_arithmetic(
        self, name: str, left: Expression, right: Expression, node: exp.Expr
    ) -> Expression:
        if name == "+" and left.type == types.INTERVAL:
            left, right = right, left
        if name in ("+", "-") and right.type == types.INTERVAL and types.is_temporal(left.type):
            months, days, micros = parts_of(self, right, node)
            sign = 1 if name == "+" else -1
            kind = left.type
            if kind == types.DATE and has_clock(right, micros):
                kind, left = types.TIMESTAMP, self.coerce(left, types.TIMESTAMP, node)
            parts = (signed(sign, months, types.INT), signed(sign, days, types.INT))
            return Call("add_interval", (left, *parts, signed(sign, micros, types.BIGINT)), kind)
        if name in ("+", "-") and left.type == types.DATE and types.is_integer(right.type):
            amount = right if name == "+" else Call("negative", (right,), right.type)
            return Call("date_add", (left, self.coerce(amount, types.INT, node)), types.DATE)
        others = (left.type, right.type)
        if name == "+" and types.NULL in others:
            kind = left.type if right.type == types.NULL else right.type
            return Literal(None, types.TIMESTAMP if kind == types.DATE else kind)
        if name == "-" and all(types.is_temporal(k) or k in OPERANDS for k in others):
            return by_spark(self, "({0} - {1})", [left, right], node)
        raise self.context.type_error(
            f"{types.ddl(left.type)} {name} {types.ddl(right.type)} has no meaning here", node,
            "use timestampdiff or datediff",
        )  # fmt: skip

    def choose(
        self,
        branches: list[tuple[Expression, Expression]],
        otherwise: Expression | None,
        node: exp.Expr,
    ) -> Expression:
        """CASE from conditions and values, values brought to one type."""
        values = [value for _, value in branches]
        values.append(otherwise if otherwise is not None else Literal(None, types.NULL))
        if any(value.type in (types.INTERVAL, types.GEOGRAPHY) for value in values):
            return self._chosen_by_spark(branches, values[-1], node)
        values, kind = self.alike(values, node)
        parts: list[Expression] = []
        for (when, _), value in zip(branches, values, strict=False):
            parts += [when, value]
        return Call("case", (*parts, values[-1]), kind)

    def _between(self, node: exp.Between) -> Expression:
        self.context.only(node, "this", "low", "high")
        low, high = node.args["low"], node.args["high"]
        if isinstance(node.this.unnest(), exp.Sub):  # of moments, perhaps
            sides = [self._apart(node.this, low, node), self._apart(node.this, high, node)]
        else:
            value = self.bind(node.this)
            sides = [(value, self.bind(low)), (value, self.bind(high))]
        above, below = (
            self.compare(sign, *pair, node) for sign, pair in zip((">=", "<="), sides, strict=True)
        )
        return Call("and", (above, below), types.BOOLEAN)

    def _case(self, node: exp.Case) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        branches = []
        for branch in node.args["ifs"]:
            when = (
                self.condition(branch.this)
                if subject is None
                else self.compare("=", subject, self.bind(branch.this), branch)
            )
            branches.append((when, self.bind(branch.args["true"])))
        default = node.args.get("default")
        return self.choose(branches, self.bind(default) if default is not None else None, node)

    def _in(self, node: exp.In) -> Expression:
        self.context.only(node, "this", "query", "expressions")
        node = cast(exp.In, written_out(self, node))
        if node.args.get("query") is not None:
            return self.subquery(node, self)
        bounds = [self.bind(node.this), *(self.bind(e) for e in node.expressions)]
        if any(bound.type == types.INTERVAL for bound in bounds):
            places = ", ".join(f"{{{place}}}" for place in range(1, len(bounds)))
            return by_spark(self, f"({{0}} IN ({places}))", bounds, node)
        bounds, kind = self.alike(compared(self, bounds, node), node)
        self.context.comparable(kind, node)
        return Call("in", tuple(bounds), types.BOOLEAN)

    def _is(self, node: exp.Is) -> Expression:
        value = self.bind(node.this)
        other = node.expression
        if isinstance(other, exp.Null) and value.type in (types.INTERVAL, types.GEOGRAPHY):
            return by_spark(self, "({0} IS NULL)", [value], node)
        if isinstance(other, exp.Null):
            return Call("is null", (value,), types.BOOLEAN)
        if isinstance(other, exp.Boolean):
            (value, _), _ = self.alike([value, Literal(True, types.BOOLEAN)], node)
            return Call("is true" if other.this else "is false", (value,), types.BOOLEAN)
        return self.compare("<=>", value, self.bind(other), node)

    def _cast(self, node: exp.Cast) -> Expression:
        self.context.only(node, "this", "to", "_type", "safe")
        trying = isinstance(node, exp.TryCast)
        if isinstance(node.to.this, exp.Interval):
            units = node.to.this.args["unit"].sql().upper()
            word = "TRY_CAST" if trying else "CAST"
            bound = self.bind(node.this)
            return by_spark(self, f"{word}({{0}} AS INTERVAL {units})", [bound], node)
        try:
            kind = types.parse_type(node.to.sql(dialect()))
        except ValueError as error:
            raise self.context.type_error(str(error), node) from error
        bound = self.bind(node.this)
        if kind == types.TIME and isinstance(bound, Literal) and _FINER.search(str(bound.value)):
            raise self.context.not_incremental("a time of day with nanoseconds", node)
        if trying and castable(bound.type, kind):
            return Call("try_cast", (bound,), kind)
        if trying:
            return by_spark(self, f"TRY_CAST({{0}} AS {type_text(kind)})", [bound], node)
        return self.coerce(bound, kind, node, written=True)

    def _chosen_by_spark(
        self, branches: list[tuple[Expression, Expression]], otherwise: Expression, node: exp.Expr
    ) -> Expression:
        given = [part for branch in branches for part in branch]
        whens = " ".join(f"WHEN {{{2 * at}}} THEN {{{2 * at + 1}}}" for at in range(len(branches)))
        return by_spark(
            self, f"(CASE {whens} ELSE {{{len(given)}}} END)", [*given, otherwise], node
        )

    def _bracket(self, node: exp.Bracket) -> Expression:
        """xs[0] and m['key']."""
        if len(node.expressions) != 1:
            raise self.context.type_error("one index in [ ]", node)
        whole, index = self.bind(node.this), self.bind(node.expressions[0])
        if pa.types.is_struct(whole.type) and isinstance(index, Literal):
            return take_field(self.context, whole, str(index.value), node)
        return by_spark(self, "({0})[{1}]", [whole, index], node)

    def _path(self, node: exp.JSONExtract) -> Expression:
        """v:a.b[0]['c d']."""
        path = "$"
        for part in node.expression.expressions[1:] if node.expression else ():
            match part:
                case exp.JSONPathKey() if '"' not in str(part.this):
                    path += f'["{part.this}"]'
                case exp.JSONPathSubscript() if isinstance(part.this, int) and part.this >= 0:
                    path += f"[{part.this}]"
                case _:
                    raise self.context.type_error("this path is not known here", node)
        given = [self.bind(node.this), Literal(path, types.STRING)]
        return by_spark(self, "variant_get({0}, {1}, 'variant')", given, node)

    def _clock_time(self, now: Expression, node: exp.Expr) -> Expression:
        """current_time([digits]), localtime([digits])."""
        from tailrace.pipelines.engine.evaluate import folded

        given = node.this if isinstance(node, exp.Func) else None
        digits = folded(self.bind(given)) if isinstance(given, exp.Expr) else Literal(6, types.INT)
        kind = types.TIMES.get(digits.value) if isinstance(digits, Literal) else None  # type: ignore[call-overload]
        if kind is None:
            raise self.context.type_error("a time of day has 0, 3 or 6 digits of a second", node)
        return Call("cast", (now,), kind)

    def _interval(self, node: exp.Interval) -> Expression:
        return constant_interval(*interval_parts(self.context, node))


def _moves(name: str, left: Expression, right: Expression) -> bool:
    """Whether it is a time that a span whose parts are known here moves."""
    if name == "+" and left.type == types.INTERVAL:
        left, right = right, left
    return is_known(right) and name in ("+", "-") and types.is_temporal(left.type)


_FINER = re.compile(r"\.[0-9]{7}")


def take_field(context: Context, whole: Expression, name: str, node: exp.Expr) -> Expression:
    """A field of a struct; NULL has any."""
    if whole.type == types.NULL:
        return whole
    if not pa.types.is_struct(whole.type):
        raise context.type_error(f"{types.ddl(whole.type)} has no fields", node)
    found = [f for f in whole.type if f.name.lower() == name.lower()]
    if not found:
        names = ", ".join(f.name for f in whole.type)
        raise context.name_error(f"there is no field {name!r}", node, f"fields: {names}")
    if isinstance(whole, Call) and whole.function == "make_session":
        return whole.arguments[0 if found[0].name == "start" else 1]
    if isinstance(whole, Call) and whole.function == "make_window":
        start, size = whole.arguments
        zero = Literal(0, types.INT)
        end = Call("add_interval", (start, zero, zero, size), start.type)
        return start if found[0].name == "start" else end
    if isinstance(whole, Call) and whole.function == "window":
        start = Call("window_start", whole.arguments, found[0].type)
        if found[0].name == "start":
            return start
        zero = Literal(0, types.INT)
        return Call("add_interval", (start, zero, zero, whole.arguments[1]), start.type)
    return Call("get_field", (whole, Literal(found[0].name, types.STRING)), found[0].type)


def grouping_call(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """grouping(x), grouping_id(x, y): the GROUP BY around it says what they are."""
    if isinstance(node, exp.GroupingId):
        parts = tuple(binder.bind(part) for part in node.expressions)
        return Call("grouping_id", parts, types.BIGINT)
    raw = node.expressions or [node.this]
    if len(raw) != 1:
        raise binder.context.type_error("grouping() takes one column", node)
    return Call("grouping", (binder.bind(raw[0]),), types.TINYINT)


def _fitted(bound: Expression, kind: pa.DataType) -> Expression:
    """A constant in the type of what it is compared with, where that changes no value."""
    if not isinstance(bound, Literal) or bound.type == kind or isinstance(bound.value, bool):
        return bound
    if not isinstance(bound.value, int | Decimal):
        return bound
    if types.is_integer(kind) and bound.value == int(bound.value):
        limit = 1 << (kind.bit_width - 1)
        return Literal(int(bound.value), kind) if -limit <= bound.value < limit else bound
    if types.is_decimal(kind):
        unscaled = Decimal(bound.value).scaleb(kind.scale)
        if unscaled == int(unscaled) and abs(unscaled) < 10**kind.precision:
            return Literal(Decimal(bound.value), kind)
    return bound


def _as_decimal(bound: Expression) -> Expression:
    if isinstance(bound, Literal) and isinstance(bound.value, int):
        digits = max(1, len(str(abs(bound.value))))
        return Literal(Decimal(bound.value), pa.decimal128(digits, 0))
    return Call("cast", (bound,), types.as_decimal(bound.type))


def _named_like(bound: Expression, other: pa.DataType) -> Expression:
    """Structs of the same types are compared by the places of their fields, whatever these
    are called; where the types differ Spark wants the same names."""
    kind = bound.type
    if kind == other or not (pa.types.is_struct(kind) and pa.types.is_struct(other)):
        return bound
    same = [field.type for field in kind] == [field.type for field in other]
    return Call("cast", (bound,), other) if same else bound
