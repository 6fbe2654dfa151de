"""MATCH_RECOGNIZE → plan: names, types, and what each condition and measure looks at."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding import subqueries
from tailrace.pipelines.compiler.binding.aggregates import bind_aggregate, bind_order, is_aggregate
from tailrace.pipelines.compiler.binding.scope import Context, Scope, Source
from tailrace.pipelines.compiler.expressions.clock_filters import reads_clock
from tailrace.pipelines.compiler.expressions.literals import interval_parts
from tailrace.pipelines.compiler.expressions.scalar import OPERANDS, Collected, ExpressionBinder
from tailrace.pipelines.compiler.plans.match_recognize import Defined, Look, Match
from tailrace.pipelines.compiler.plans.plan import Field, Plan, Project
from tailrace.pipelines.compiler.syntax.match_recognize import (
    Recognized,
    RowCall,
    RowPattern,
    Semantics,
)
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    rewrite,
    substitute,
    walk,
)
from tailrace.pipelines.engine.operators.match_recognize import Skip
from tailrace.pipelines.engine.patterns.grammar import PatternError, Tree, excludes, variables_of
from tailrace.pipelines.engine.patterns.program import Program, compile_pattern
from tailrace.pipelines.engine.patterns.slots import CLASSIFIER, Variables
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.query import Common, QueryBinder

MOST_ROWS_AWAY = 10_000
# Aggregates whose values stand in the order of the rows unless the call gives another.
_AS_THEY_COME = ("collect_list", "listagg", "first", "any_value")
# What fails for no value, so that it may be computed for rows that no attempt asks about.
_NEVER_FAILS = {
    "and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "<=>", "is null", "is not null",
    "is true", "is false", "in", "coalesce", "like", "case",
}  # fmt: skip


def canonical(name: exp.Expr) -> str:
    """The variable that an identifier means: upper case, unless it is quoted."""
    return name.name if name.args.get("quoted") else name.name.upper()


@dataclass(slots=True)
class Names:
    """The variables of a pattern by number, and its subsets."""

    context: Context
    variables: tuple[str, ...]
    subsets: dict[str, tuple[int, ...]] = field(default_factory=dict)
    every: Variables = None  # what no name means
    spelled: Mapping[str, str] = field(default_factory=dict)  # as CLASSIFIER tells them

    def known(self, name: str) -> bool:
        return name in self.variables or name in self.subsets

    def numbers(self, name: str) -> tuple[int, ...]:
        if name in self.subsets:
            return self.subsets[name]
        return (self.variables.index(name),)

    def of(self, node: exp.Expr, where: str) -> tuple[int, ...]:
        """The variables that a name means, or an error at it."""
        name = canonical(node)
        if not self.known(name):
            self.refuse(node, where)
        return self.numbers(name)

    def refuse(self, node: exp.Expr, where: str) -> NoReturn:
        listed = [*self.variables, *self.subsets]
        near = difflib.get_close_matches(canonical(node), listed, 1)
        hint = f"did you mean {near[0]}?" if near else f"the pattern has: {', '.join(listed)}"
        raise self.context.name_error(
            f"{where}: the pattern has no variable {node.name!r}", node, hint
        )


@dataclass(slots=True)
class MatchBinder(ExpressionBinder):
    """Binds a condition or a measure. What it looks at becomes a column, and one of `looks`.

    `qualifiers` not None: inside an argument, whose columns are those of one row; it gathers the
    variables before them ("" for none). `outside`: what is bound stands beside the clause, where
    no variable is known."""

    names: Names = field(default=cast(Names, None))
    looks: list[Look] = field(default_factory=list)
    defining: bool = False
    qualifiers: set[str] | None = None
    aggregating: bool = False
    semantics: str = ""
    outside: bool = False

    def bind(self, node: exp.Expr) -> Expression:
        match node:
            case Semantics():
                return self._with_semantics(node)
            case RowCall():
                return self._row_call(node)
            case exp.Column() if not isinstance(node.this, exp.Star):
                return self._column(node)
            case exp.Window():
                raise self.context.not_incremental("a window function in MATCH_RECOGNIZE", node)
            case exp.Exists() | exp.Subquery() | exp.In() | exp.Not() if self.qualifiers is None:
                if _asks_query(node):
                    return self._query(node)
        if is_aggregate(node):
            if self.qualifiers is not None:
                raise self.context.type_error(
                    "an aggregate inside an aggregate or a navigation", node,
                    "compute one of them in a measure, the other above it",
                )  # fmt: skip
            return self._aggregate(node)
        return ExpressionBinder.bind(self, node)

    # Rows ---------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Expression:
        if self.qualifiers is None:
            return self._look_at(node, node)
        if self.outside:
            self.qualifiers.add("")
            return ExpressionBinder.bind(self, node)
        parts = node.parts
        plain, name = node, ""
        if len(parts) > 1 and self.names.known(canonical(parts[0])):
            name = canonical(parts[0])
            plain = node.copy()
            part = next(p for p in ("catalog", "db", "table") if plain.args.get(p) is not None)
            plain.set(part, None)
        elif len(parts) > 1 and not self.has("", parts[0].name.lower()):
            self.names.refuse(parts[0], "before a column")
        self.qualifiers.add(name)
        return ExpressionBinder.bind(self, plain)

    def _inside(self, node: exp.Expr) -> tuple[Expression, Variables]:
        """An argument: an expression over the columns of one row, and whose row."""
        before, self.qualifiers = self.qualifiers, set()
        try:
            bound = self.bind(node)
            found = self.qualifiers
        finally:
            self.qualifiers = before
        return bound, self._one_of(found, node)

    def _one_of(self, found: set[str], node: exp.Expr) -> Variables:
        if len(found) > 1:
            shown = " and ".join(sorted(name or "all rows" for name in found))
            raise self.context.name_error(
                f"one aggregate or navigation over the rows of {shown}", node,
                "name one variable before all its columns, or make a SUBSET",
            )  # fmt: skip
        name = next(iter(found), "")
        return self.names.numbers(name) if name else self.names.every

    def _look(self, look: Look) -> Expression:
        for known in self.looks:
            if replace(known, field=look.field) == look:
                return known.field.column
        self.looks.append(look)
        return look.field.column

    def _field(self, name: str, kind: pa.DataType) -> Field:
        return Field(self.context.fresh(name), name, kind)

    def _with_semantics(self, node: Semantics) -> Expression:
        kind = str(node.args["kind"]).lower()
        inner = node.this
        if kind == "final" and self.defining:
            raise self.context.type_error(
                "FINAL in DEFINE: the match is not known yet", node, "RUNNING is the default"
            )
        navigates = isinstance(inner, RowCall) and inner.this in ("FIRST", "LAST")
        if not navigates and not is_aggregate(inner):
            raise self.context.type_error(
                f"{kind.upper()} stands before FIRST, LAST or an aggregate", node
            )
        before, self.semantics = self.semantics, kind
        try:
            return self.bind(inner)
        finally:
            self.semantics = before

    def _row_call(self, node: RowCall) -> Expression:
        name, arguments = str(node.this), node.expressions
        if self.qualifiers is not None:
            if name == "CLASSIFIER" and self.aggregating:
                of = self._classified(node)
                self.qualifiers.add(of)
                return Column(CLASSIFIER, types.STRING)
            if name == "MATCH_NUMBER":
                raise self.context.type_error("MATCH_NUMBER() inside an argument", node)
            raise self.context.type_error(
                f"{name} inside an aggregate or another navigation", node,
                "PREV and NEXT may stand around FIRST and LAST, nothing else may nest",
            )  # fmt: skip
        if name == "MATCH_NUMBER":
            if arguments:
                raise self.context.type_error("MATCH_NUMBER takes no argument", node)
            return self._look(Look("number", self._field("match_number", types.BIGINT)))
        return self._look_at(node, node)

    def _classified(self, node: RowCall) -> str:
        """The variable that CLASSIFIER(u) names; "" for all."""
        arguments = node.expressions
        if not arguments:
            return ""
        if len(arguments) != 1 or not isinstance(arguments[0], exp.Column) or arguments[0].table:
            raise self.context.type_error("CLASSIFIER takes one variable", node)
        self.names.of(arguments[0].this, "CLASSIFIER")
        return canonical(arguments[0].this)

    def _look_at(self, node: exp.Expr, place: exp.Expr) -> Expression:
        """A column, or navigation to one."""
        shift, offset, last = 0, 0, True
        running = self.semantics != "final"
        inner = node
        if isinstance(inner, RowCall) and inner.this in ("PREV", "NEXT"):
            steps = self._steps(inner, 1)
            shift = steps if inner.this == "NEXT" else -steps
            inner = inner.expressions[0]
            if isinstance(inner, Semantics):
                if str(inner.args["kind"]) == "FINAL":
                    if self.defining:
                        raise self.context.type_error(
                            "FINAL in DEFINE: the match is not known yet", inner
                        )
                    running = False
                inner = inner.this
        if isinstance(inner, RowCall) and inner.this in ("FIRST", "LAST"):
            offset, last = self._steps(inner, 0), inner.this == "LAST"
            inner = inner.expressions[0]
        if isinstance(inner, RowCall) and inner.this == "CLASSIFIER":
            name = self._classified(inner)
            numbers = self.names.numbers(name) if name else self.names.every
            made = self._field("classifier", types.STRING)
            return self._look(Look("navigation", made, numbers, last, running, offset, shift))
        value, variables = self._inside(inner)
        if not columns_of(value):
            raise self.context.type_error(
                "a navigation needs a column of a row", place, "write the constant by itself"
            )
        made = self._field("look", value.type)
        return self._look(Look("navigation", made, variables, last, running, offset, shift, value))

    def _steps(self, node: RowCall, default: int) -> int:
        """The offset of a navigation."""
        given = node.expressions
        if not 1 <= len(given) <= 2:
            raise self.context.type_error(f"{node.this} takes a value and an offset", node)
        if len(given) == 1:
            return default
        if not isinstance(given[1], exp.Literal) or not given[1].is_int:
            raise self.context.type_error("an offset is a whole number, 0 or more", given[1])
        steps = int(given[1].this)
        if steps > MOST_ROWS_AWAY:
            raise self.context.type_error(f"an offset is at most {MOST_ROWS_AWAY:,}", given[1])
        return steps

    # Aggregates ---------------------------------------------------------------------------

    def _aggregate(self, node: exp.Expr) -> Expression:
        running, outer = self.semantics != "final", self.collected
        asked = node.copy() if any(map(_is_count_of, node.walk())) else node
        saved = (self.semantics, self.qualifiers, self.aggregating)
        self.semantics, self.qualifiers, self.aggregating = "", set(), True
        self.collected = collected = Collected()
        try:
            for counted in list(asked.walk()):
                if _is_count_of(counted):  # count(A.*) counts the rows of A
                    table = counted.this.args["table"]
                    self.names.of(table, "count")
                    self.qualifiers.add(canonical(table))
                    counted.set("this", exp.Star())
            shown = bind_aggregate(self, asked)
            variables = self._one_of(self.qualifiers, node)
        finally:
            self.semantics, self.qualifiers, self.aggregating = saved
            self.collected = outer
        ordered = any(isinstance(part, exp.Order | exp.WithinGroup) for part in node.walk())
        named: dict[str, Expression] = {}
        for made, call in collected.aggregates:
            come = call.function in _AS_THEY_COME and not ordered
            look = Look("aggregate", made, variables, running=running, call=call, as_they_come=come)
            named[made.id] = self._look(look)
        return substitute(shown, named)

    # Subqueries ---------------------------------------------------------------------------

    def _query(self, node: exp.Expr) -> Expression:
        """A subquery: the same for all rows, or IN (SELECT …) of a value of one row."""
        asked = node.this if isinstance(node, exp.Not) else node
        if isinstance(asked, exp.In):
            whose, variables = self._inside(asked.this)
            navigates = columns_of(whose)
            before, self.qualifiers = self.qualifiers, set()
            try:
                value = self.subquery(node, self)
            finally:
                self.qualifiers = before
            if navigates:
                made = self._field("found", value.type)
                return self._look(Look("navigation", made, variables, value=value))
        else:
            value = self.subquery(node, self)
        made = self._field("asked", value.type)
        return self._look(Look("constant", made, value=value))


def _asks_query(node: exp.Expr) -> bool:
    match node:
        case exp.Exists() | exp.Subquery():
            return True
        case exp.In():
            return node.args.get("query") is not None
        case exp.Not():
            return isinstance(node.this, exp.In) and node.this.args.get("query") is not None
    return False


def _is_count_of(node: exp.Expr) -> bool:
    """count(A.*)"""
    return (
        isinstance(node, exp.Count)
        and isinstance(node.this, exp.Column)
        and isinstance(node.this.this, exp.Star)
        and node.this.args.get("table") is not None
    )


# The clause ---------------------------------------------------------------------------------------


def bind_recognized(binder: QueryBinder, node: Recognized, common: Common) -> Plan:
    """The plan of `relation MATCH_RECOGNIZE (…)`."""
    from tailrace.pipelines.compiler.binding.relations import _relation

    context = binder.context
    inner = Scope()
    below = _relation(binder, node.this, common, inner, None)
    fields = tuple(f for entry in inner.sources for f in entry.fields if f.id not in entry.hidden)
    scope = Scope([Source("", fields)])
    names, program = bind_pattern(context, node)
    work = subqueries.Work(binder, common, below)
    plain = ExpressionBinder(context, scope, subqueries.refuse(context))
    partition = tuple(_partition(plain, part) for part in node.args.get("partition_by") or ())
    order = bind_order(plain, node.args["order"].expressions) if node.args.get("order") else ()
    looks: list[Look] = []

    def conditions(defining: bool) -> MatchBinder:
        return MatchBinder(context, scope, work.bind, names=names, looks=looks, defining=defining)

    definitions = bind_definitions(conditions(True), node, names)
    binding = conditions(False)
    measures = [(item.alias, _measure(binding, item)) for item in node.args.get("measures") or ()]
    _unlike(context, node.args.get("measures") or ())
    rows = node.args["rows"].name if node.args.get("rows") else "one"
    if rows == "unmatched":
        if excludes(tree_of(node)):
            raise context.type_error(
                "{- -} with WITH UNMATCHED ROWS", node.args["pattern"],
                "rows are left out, or all are shown: SHOW EMPTY MATCHES, or no {- -}",
            )  # fmt: skip
        matched = binding._look(Look("matched", binding._field("matched", types.BOOLEAN)))
        measures = [
            (name, Call("case", (matched, bound, Literal(None, bound.type)), bound.type))
            for name, bound in measures
        ]
    within = _within(plain, node, order)
    values = (look.value for look in looks if look.value is not None)
    for expression in (*(b for _, b in measures), *(e for e, _, _ in order), *values):
        refuse_clock(context, expression, node)
    used = set().union(*(columns_of(bound) for _, bound in measures))
    shown_looks = tuple(look.field for look in looks if look.field.id in used)
    shown = _shown(fields, partition, order, rows)
    match = Match(
        work.plan, tuple(f.column for f in partition), order, program, definitions, tuple(looks),
        shown_looks, rows, bind_skip(names, node), within, tuple(dict.fromkeys(shown)),
    )  # fmt: skip
    head: tuple[Field, ...] = shown
    tail: tuple[Field, ...] = ()
    if rows != "one":
        first = {f.id for f in partition} | {e.name for e, _, _ in order if isinstance(e, Column)}
        head = tuple(dict.fromkeys(f for f in shown if f.id in first))
        tail = tuple(f for f in shown if f.id not in first)
    items = [
        *((f.name, cast(Expression, f.column)) for f in head),
        *measures,
        *((f.name, f.column) for f in tail),
    ]
    made = tuple(binder.field(name, bound) for name, bound in items)
    return Project(match, made, tuple(bound for _, bound in items))


def tree_of(node: exp.Expr) -> Tree:
    return cast(RowPattern, node.args["pattern"]).tree


def bind_pattern(context: Context, node: exp.Expr) -> tuple[Names, Program]:
    ready: tuple[Names, Program] | None = node.args["pattern"].meta.get("ready")
    if ready is None:
        tree = tree_of(node)
        variables = tuple(dict.fromkeys(one.name for one in variables_of(tree)))
        try:
            program = compile_pattern(tree, variables)
        except PatternError as error:
            raise context.type_error(error.message, node.args["pattern"], error.hint) from error
        names = Names(context, variables)
    else:
        names, program = ready
    for subset in node.args.get("subsets") or ():
        name = canonical(subset.this)
        if names.known(name):
            raise context.name_error(f"SUBSET {subset.this.name}: the name is taken", subset.this)
        members = [names.of(member, "SUBSET") for member in subset.expressions]
        names.subsets[name] = tuple(sorted({number for one in members for number in one}))
    return names, program


def _partition(plain: ExpressionBinder, part: exp.Expr) -> Field:
    bound = plain.bind(part)
    if not isinstance(part, exp.Column) or not isinstance(bound, Column):
        raise plain.context.not_incremental(
            "PARTITION BY of anything but a column", part, "name it in a subquery"
        )
    plain.context.comparable(bound.type, part)
    return next(f for entry in plain.scope.sources for f in entry.fields if f.id == bound.name)


def bind_definitions(binder: MatchBinder, node: exp.Expr, names: Names) -> tuple[Defined, ...]:
    context = binder.context
    found: dict[str, Defined] = {}
    for item in node.args.get("definitions") or ():
        name = canonical(item.this)
        if name in names.subsets:
            raise context.name_error(
                f"DEFINE {item.this.name}: a subset has no condition", item.this
            )
        if name not in names.variables:
            names.refuse(item.this, "DEFINE")
        if name in found:
            raise context.name_error(f"DEFINE {item.this.name} twice", item.this)
        bound = binder.condition(item.expression, *OPERANDS)
        refuse_clock(context, bound, item)
        number = names.variables.index(name)
        found[name] = _parted(bound, binder.looks, number, names.spelled.get(name, name))
    return tuple(found.get(name, Defined()) for name in names.variables)


def _parted(bound: Expression, looks: list[Look], number: int, name: str) -> Defined:
    """The parts of a condition, by what they look at."""
    known = {look.field.id: look for look in looks}
    row: list[Expression] = []
    near: list[Expression] = []
    before: list[Expression] = []
    for part in conjuncts(_own_name(bound, known, number, name)):
        seen = [known[column] for column in columns_of(part)]
        fails = not all(one.function in _NEVER_FAILS for one in walk(part) if isinstance(one, Call))
        if not all(_is_near(look, number) for look in seen) or (before and fails):
            before.append(part)
            continue
        values = {look.field.id: cast(Expression, look.value) for look in seen}
        plain = substitute(part, values)
        safe = all(one.function in _NEVER_FAILS for one in walk(plain) if isinstance(one, Call))
        if safe and columns_of(plain) and not any(look.shift for look in seen):
            row.append(plain)
        else:
            near.append(part)
    return Defined(conjunction(row), conjunction(near), conjunction(before))


def _own_name(bound: Expression, known: dict[str, Look], number: int, name: str) -> Expression:
    """CLASSIFIER() of the row that is asked about is its variable's name."""

    def change(one: Expression) -> Expression | None:
        look = known.get(one.name) if isinstance(one, Column) else None
        if look is None or look.kind != "navigation" or look.value is not None:
            return None
        own = look.variables is None or number in look.variables
        if own and look.last and not look.offset and not look.shift:
            return Literal(name, types.STRING)
        return None

    return rewrite(bound, change)


def _is_near(look: Look, number: int) -> bool:
    """Whether it looks at the row in question, or at one so far from it."""
    if look.kind == "constant":
        return True
    own = look.variables is None or number in look.variables
    return (
        look.kind == "navigation"
        and own
        and look.last
        and not look.offset
        and look.value is not None
    )


def _measure(binder: MatchBinder, item: exp.Expr) -> Expression:
    bound = binder.bind(item.this)
    binder.context.held(bound.type, item)
    return bound


def _unlike(context: Context, items: Sequence[exp.Expr]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.alias.lower() in seen:
            raise context.name_error(f"two measures are named {item.alias!r}", item)
        seen.add(item.alias.lower())


def refuse_clock(context: Context, expression: Expression, node: exp.Expr) -> None:
    if reads_clock(expression):
        raise context.not_incremental(
            "the present time in MATCH_RECOGNIZE", node, "compare it in a WHERE around the match"
        )


def _within(
    plain: ExpressionBinder,
    node: Recognized,
    order: tuple[tuple[Expression, bool, bool], ...],
) -> tuple[Expression, int] | None:
    given = node.args.get("within")
    if given is None:
        return None
    context = plain.context
    months, days, micros, _ = interval_parts(context, given)
    if months:
        raise context.type_error("WITHIN takes days, hours, minutes and seconds", given)
    length = days * 86_400_000_000 + micros
    if length <= 0:
        raise context.type_error("WITHIN takes a length above zero", given)
    if not order or order[0][0].type not in (types.TIMESTAMP, types.TIMESTAMP_NTZ) or order[0][1]:
        raise context.type_error(
            "WITHIN needs a TIMESTAMP as the first column of ORDER BY, ascending", given
        )
    return order[0][0], length


def bind_skip(names: Names, node: exp.Expr) -> Skip:
    to, named = node.args.get("skip"), node.args.get("skip_to")
    if to is None:
        return Skip("last row")
    if named is None:
        return Skip(to.name)
    return Skip(to.name, names.of(named, "AFTER MATCH SKIP"), canonical(named))


def _shown(
    fields: tuple[Field, ...],
    partition: tuple[Field, ...],
    order: tuple[tuple[Expression, bool, bool], ...],
    rows: str,
) -> tuple[Field, ...]:
    """The columns of the input that the result has, in its order."""
    if rows == "one":
        return partition
    by_id = {f.id: f for f in fields}
    ordered = [by_id[e.name] for e, _, _ in order if isinstance(e, Column) and e.name in by_id]
    return tuple(dict.fromkeys((*partition, *ordered, *fields)))
