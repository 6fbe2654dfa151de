"""The FROM clause: tables, views, subqueries, joins, LATERAL, VALUES."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.compiler.binding import generators, match_recognize, subqueries, temporal
from tailrace.pipelines.compiler.binding.scope import Scope, Source
from tailrace.pipelines.compiler.expressions.calls import bind_call, name_and_arguments
from tailrace.pipelines.compiler.expressions.scalar import OPERANDS, ExpressionBinder
from tailrace.pipelines.compiler.plans.outer_joins import around_inner
from tailrace.pipelines.compiler.plans.plan import (
    Constant,
    Field,
    Filter,
    Join,
    Plan,
    Project,
    Scan,
    free,
)
from tailrace.pipelines.compiler.syntax.match_recognize import Recognized
from tailrace.pipelines.compiler.syntax.parse import parse, place
from tailrace.pipelines.compiler.syntax.refused import REFUSED
from tailrace.pipelines.engine.evaluate import ONE_ROW, evaluate
from tailrace.pipelines.engine.expression import (
    Call,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from tailrace.pipelines.errors import NotIncrementalError, PipelineError
from tailrace.pipelines.values import types
from tailrace.pipelines.values.columns import VERSIONED_AT

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.query import Common, QueryBinder


def source(alias: str, plan: Plan) -> Source:
    return Source(alias, plan.fields)


def bind_from(
    binder: QueryBinder, node: exp.Select, common: Common, outer: Scope | None
) -> tuple[Plan, Scope]:
    """The plan of a FROM clause, and the names it brings."""
    scope = Scope([], outer)
    clause = node.args.get("from_")
    if clause is None:
        return Constant((), ((),)), scope
    if clause.this.args.get("version"):
        raise binder.context.not_incremental(
            "FOR SYSTEM_TIME AS OF is for a join with the row whose time it takes", clause.this
        )
    plan = _relation(binder, clause.this, common, scope, outer)
    for join in [*(clause.this.args.get("joins") or ()), *(node.args.get("joins") or ())]:
        plan = _join(binder, plan, join, common, scope, outer)
    for lateral in node.args.get("laterals") or ():
        plan = _generated(binder, plan, lateral, scope, bool(lateral.args.get("outer")))
    return plan, scope


def _generated(
    binder: QueryBinder, plan: Plan, lateral: exp.Lateral, scope: Scope, outer: bool
) -> Plan:
    """LATERAL VIEW explode(…) t AS x: the plan with the generator's rows."""
    if not generators.generator_name(lateral.this):
        raise binder.context.not_incremental(
            "this LATERAL is not kept incrementally", lateral,
            "LATERAL VIEW takes explode, posexplode, inline and json_tuple",
        )  # fmt: skip
    alias = lateral.args.get("alias")
    names = [column.name for column in alias.args.get("columns") or ()] if alias else []
    expressions = ExpressionBinder(binder.context, scope, subqueries.refuse(binder.context))
    made = generators.bind_generator(expressions, lateral.this, plan, names, outer)
    scope.sources.append(Source(alias.name if alias else "", made.added))
    return made


def _generated_by_join(binder: QueryBinder, plan: Plan, node: exp.Join, scope: Scope) -> Plan:
    """JOIN LATERAL explode(…): with LEFT also rows without elements."""
    condition = node.args.get("on")
    outer = (node.side or "").upper() == "LEFT"
    made = _generated(binder, plan, node.this, scope, outer)
    if condition is None or _is_true(condition):
        return made
    bind = ExpressionBinder(binder.context, scope, subqueries.refuse(binder.context))
    return Filter(made, bind.condition(condition))


def _is_true(condition: exp.Expr | None) -> bool:
    return condition is None or (isinstance(condition, exp.Boolean) and bool(condition.this))


def _generates(binder: QueryBinder, node: exp.Join) -> bool:
    """Whether it adds the elements that a generator makes of a row, with LEFT and without a
    condition also rows that have none."""
    if not isinstance(node.this, exp.Lateral):
        return False
    left, on = (node.side or "").upper() == "LEFT", node.args.get("on")
    written = on is not None and "start" in on.meta  # the parser adds an ON true of its own
    makes = any(map(generators.generator_name, node.this.walk()))
    if left and makes and _is_true(on) and not written:
        raise binder.context.not_incremental(
            "LEFT JOIN LATERAL of a generator without ON", node.this,
            "write ON true: without it Spark leaves out the rows that have no elements",
        )  # fmt: skip
    return bool(generators.generator_name(node.this.this)) and (not left or _is_true(on))


def _relation(
    binder: QueryBinder, node: exp.Expr, common: Common, scope: Scope, outer: Scope | None
) -> Plan:
    """One entry of FROM; its names are added to `scope`."""
    alias = node.alias
    before: tuple[str, ...] = ()
    names = (
        [column.name for column in node.args["alias"].args.get("columns") or ()]
        if node.args.get("alias")
        else []
    )
    match node:
        case exp.Table():
            binder.context.only(node, "this", "db", "catalog", "alias", "joins", "version")
            if isinstance(node.this, exp.Func):
                plan = _function(binder, node.this, names, outer)
            else:
                plan = _table(binder, node, common)
                if not alias and isinstance(plan, Scan):
                    *parts, last = plan.table.topic.lower().split(".")
                    before = tuple(parts) if last == node.name.lower() else ()
                alias = alias or node.name
        case exp.Subquery() if _is_join(node.this):
            plan, inner = _in_parentheses(binder, node, common, outer)
            if not alias:
                for entry in inner.sources:
                    _unique(binder, entry.alias, scope, node)
                scope.sources.extend(inner.sources)
                return plan
            shown = [f for entry in inner.sources for f in entry.fields if f.id not in entry.hidden]
            plan = Project(plan, tuple(shown), tuple(f.column for f in shown))
        case exp.Subquery():
            plan = binder.query(node.this, common, outer)
            plan = binder._ordered(node, plan, common, outer)
        case exp.Values():
            plan = bind_values(binder, node)
        case Recognized():
            plan = match_recognize.bind_recognized(binder, node, common)
        case exp.Lateral():
            if isinstance(node.this, exp.Subquery):
                plan = binder.query(node.this.this, common, scope)
            else:
                plan = _function(binder, node.this, names, scope)
        case _:
            raise binder.context.not_incremental(f"{node.key} in FROM is not known", node)
    from tailrace.pipelines.compiler.binding.query import rename

    plan = rename(binder.context, plan, node.args.get("alias"))
    _unique(binder, alias, scope, node)
    unseen = {f.id for f in plan.fields if f.name == VERSIONED_AT}
    scope.sources.append(Source(alias, plan.fields, unseen, before))
    where = place(binder.context.sql, node)
    binder.context.places |= {f.id: where for f in plan.fields}
    return plan


def _is_join(node: exp.Expr) -> bool:
    """Whether it is what stands in the parentheses of `(b JOIN c ON …)`."""
    if isinstance(node, exp.Table | Recognized):
        return True
    return isinstance(node, exp.Subquery) and bool(node.args.get("joins"))


def _in_parentheses(
    binder: QueryBinder, node: exp.Subquery, common: Common, outer: Scope | None
) -> tuple[Plan, Scope]:
    """(b JOIN c ON …) as one entry of FROM, and the names it brings."""
    binder.context.only(node, "this", "alias", "joins")
    inner = Scope([], outer)
    plan = _relation(binder, node.this, common, inner, outer)
    for join in node.this.args.get("joins") or ():
        plan = _join(binder, plan, join, common, inner, outer)
    return plan, inner


def _unique(binder: QueryBinder, alias: str, scope: Scope, node: exp.Expr) -> None:
    if alias and any(alias.lower() == known.alias.lower() for known in scope.sources):
        raise binder.context.name_error(
            f"there are two tables {alias!r}", node, "give one an alias"
        )


def _table(binder: QueryBinder, node: exp.Table, common: Common) -> Plan:
    if not node.db and node.name.lower() in common:
        return common[node.name.lower()]()
    view = binder.catalog.view(node)
    if view is not None:
        return binder.view_plan(view, node)
    query = binder.catalog.query(node)
    if query is not None:
        return binder.query(parse(query, binder.context.view), {}, None)
    table = binder.catalog.table(binder.context, node)
    fields = tuple(
        Field(binder.context.fresh(column.name), column.name, column.type)
        for column in table.schema
    )
    names = tuple(table.schema.names)
    if node.args.get("version") is not None and table.kind == "history":
        # Which version it was: since when it has been valid.
        fields += (Field(binder.context.fresh("version"), VERSIONED_AT, types.TIMESTAMP),)
        names += (VERSIONED_AT,)
    return Scan(table, fields, names)


def _function(binder: QueryBinder, node: exp.Func, names: list[str], around: Scope | None) -> Plan:
    """A function that gives a table: range(…), or a generator of constants and of columns of
    the query around."""
    scope = ExpressionBinder(binder.context, Scope([], around), subqueries.refuse(binder.context))
    if isinstance(node, exp.Anonymous) and node.name.lower() == "range":
        return generators.bind_range(scope, node)
    if generators.generator_name(node):
        return generators.bind_generator(scope, node, Constant((), ((),)), names, False)
    if name_and_arguments(node)[0] in REFUSED:
        return bind_call(scope, node)  # type: ignore[return-value]  # raises the reason
    raise binder.context.not_incremental(
        f"the function {node.sql('spark')} in FROM", node, "LATERAL VIEW explode(…)"
    )


def bind_values(binder: QueryBinder, node: exp.Values) -> Plan:
    """VALUES: constants of common types."""
    scope = ExpressionBinder(binder.context, Scope(), subqueries.refuse(binder.context))
    rows: list[list[Expression]] = []
    for item in node.expressions:
        parts = item.expressions if isinstance(item, exp.Tuple) else [item]
        rows.append([scope.bind(part) for part in parts])
        if len(rows[-1]) != len(rows[0]):
            raise binder.context.type_error("the rows of VALUES have as many columns", item)
    columns = [scope.alike(list(column), node) for column in zip(*rows, strict=True)]
    fields = tuple(
        Field(binder.context.fresh(f"col{i + 1}"), f"col{i + 1}", kind)
        for i, (_, kind) in enumerate(columns)
    )
    found = [[_constant(binder, value, node) for value in values] for values, _ in columns]
    return Constant(fields, tuple(zip(*found, strict=True)))


def _constant(binder: QueryBinder, value: Expression, node: exp.Expr) -> object:
    """The value of an expression over no columns; arrays and structs as tuples."""
    if isinstance(value, Literal):
        return value.value
    try:
        if not columns_of(value):
            return _tuples(evaluate(value, ONE_ROW)[0].as_py())
    except PipelineError as error:
        raise binder.context.not_incremental(
            f"VALUES must be constants: {error.message}", node
        ) from error
    raise binder.context.not_incremental("VALUES must be constants", node)


def _tuples(value: object) -> object:
    if isinstance(value, dict):
        return tuple(map(_tuples, value.values()))
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _join(
    binder: QueryBinder,
    left: Plan,
    node: exp.Join,
    common: Common,
    scope: Scope,
    outer: Scope | None,
) -> Plan:
    before = list(scope.sources)
    if _generates(binder, node):
        return _generated_by_join(binder, left, node, scope)
    version = node.this.args.get("version") if isinstance(node.this, exp.Table) else None
    right = _relation(binder, node.this, common, scope, outer)
    for join in node.this.args.get("joins") or () if isinstance(node.this, exp.Table) else ():
        right = _join(binder, right, join, common, scope, outer)
    added = [entry for entry in scope.sources if not any(entry is known for known in before)]
    mode = _mode(binder, node, before, added)
    waiting: list[exp.Expr] = []
    condition = _condition(binder, node, scope, before, added, waiting)
    lateral = bool(free(right) & {field.id for field in left.fields})
    if waiting and mode != "inner":
        if version is not None or lateral:
            raise binder.context.not_incremental(
                "a subquery in the ON of this join", waiting[0], "put it into WITH and join that"
            )
        left, right, more, waiting = _beside(binder, left, right, waiting, scope, common)
        condition = conjunction([*conjuncts(condition), *more])
    if version is not None:
        joined = temporal.bind_as_of(binder, node, left, right, condition, version, scope, mode)
    elif lateral:
        joined = subqueries.bind_lateral(binder, node, left, right, condition, mode)
    else:
        if condition is None and mode in ("semi", "anti"):
            condition = Literal(True, types.BOOLEAN)
        joined = Join(mode if not waiting else "inner", left, right, condition)
    if waiting:
        joined = _with_subqueries(binder, joined, waiting, scope, common)
        if mode != "inner":
            joined = around_inner(mode, left, right, joined)
    if node.args.get("using") and mode not in ("semi", "anti"):
        joined = _merge_using(binder, node, joined, scope, before, added, mode)
    if mode in ("semi", "anti"):
        scope.sources[:] = before
    return joined


def _mode(binder: QueryBinder, node: exp.Join, before: list[Source], added: list[Source]) -> str:
    """The kind of a join. NATURAL is USING of the names that both sides have."""
    side, kind = (node.side or "").lower(), (node.kind or "").lower()
    if node.method and node.method.upper() == "NATURAL":
        ours, theirs = (_visible(entries) for entries in (before, added))
        shared = [name for key, name in ours.items() if key in theirs]
        node.set("using", [exp.to_identifier(name) for name in shared])
    binder.context.only(node, "this", "side", "kind", "on", "using", "method")
    if kind in ("semi", "anti"):
        return kind
    if side in ("left", "right", "full"):
        return side
    if kind not in ("", "inner", "cross"):
        raise binder.context.not_incremental(f"a join of kind {kind!r}", node)
    return "inner"


def _visible(entries: list[Source]) -> dict[str, str]:
    """The names of columns that need no table before them."""
    return {
        f.name.lower(): f.name
        for entry in entries
        for f in entry.fields
        if f.id not in entry.hidden
    }


def _condition(
    binder: QueryBinder,
    node: exp.Join,
    scope: Scope,
    before: list[Source],
    added: list[Source],
    waiting: list[exp.Expr],
) -> Expression | None:
    """ON or USING. Conjuncts with a subquery go to `waiting`."""
    expressions = ExpressionBinder(binder.context, scope, subqueries.refuse(binder.context))
    using = node.args.get("using")
    if using:
        parts: list[Expression] = []
        for name in using:
            sides = []
            for group in (list(before), added):
                column = exp.column(name.name)
                column.this.meta.update(name.meta)
                from tailrace.pipelines.compiler.binding.scope import resolve

                sides.append(resolve(binder.context, Scope(group), column).column)
            parts.append(expressions.compare("=", sides[0], sides[1], node))
        return conjunction(parts)
    on = node.args.get("on")
    if on is None:
        return None
    if on.find(exp.Query) is None:
        return expressions.condition(on)
    from tailrace.pipelines.compiler.binding.query import flat_and

    parts = []
    for part in flat_and(on):
        if part.find(exp.Query) is not None:
            waiting.append(part)
        else:
            parts.append(expressions.condition(part, *OPERANDS))
    return conjunction(parts)


def _beside(
    binder: QueryBinder,
    left: Plan,
    right: Plan,
    waiting: list[exp.Expr],
    scope: Scope,
    common: Common,
) -> tuple[Plan, Plan, list[Expression], list[exp.Expr]]:
    """Conditions with subqueries in the ON of an outer join: what the subquery says becomes a
    column of the side it asks about. Those that ask about both are given back."""
    sides = [right, left]
    found: list[Expression] = []
    both: list[exp.Expr] = []
    for part in waiting:
        for at, side in enumerate(sides):
            work = subqueries.Work(binder, common, side)
            try:
                bound = ExpressionBinder(binder.context, scope, work.bind).condition(part)
            except NotIncrementalError:
                continue  # it asks about more than this side knows
            if not free(work.plan) & {f.id for f in sides[1 - at].fields}:
                sides[at] = work.plan
                found.append(bound)
                break
        else:
            both.append(part)
    return sides[1], sides[0], found, both


def _with_subqueries(
    binder: QueryBinder, joined: Plan, waiting: list[exp.Expr], scope: Scope, common: Common
) -> Plan:
    """Conditions with subqueries in the ON of an inner join: they may as well stand behind it."""
    work = subqueries.Work(binder, common, joined)
    expressions = ExpressionBinder(binder.context, scope, work.bind)
    for part in waiting:
        if not subqueries.bind_top_level(work, part, expressions):
            predicate = expressions.condition(part)
            work.plan = Filter(work.plan, predicate)
    return work.plan


def _merge_using(
    binder: QueryBinder,
    node: exp.Join,
    joined: Plan,
    scope: Scope,
    before: list[Source],
    added: list[Source],
    mode: str,
) -> Plan:
    """USING shows one column for the pair: hide the other, or merge them when outer."""
    names = [name.name.lower() for name in node.args["using"]]
    if mode in ("inner", "left"):
        for entry in added:
            entry.hidden |= {f.id for f in entry.fields if f.name.lower() in names}
        return joined
    merged: list[tuple[Field, Expression]] = []
    for name in names:
        left = next(
            f for s in before for f in s.fields if f.name.lower() == name and f.id not in s.hidden
        )
        right = next(
            f for s in added for f in s.fields if f.name.lower() == name and f.id not in s.hidden
        )
        kind = types.common(left.type, right.type) or left.type
        made = Field(binder.context.fresh(name), left.name, kind)
        sides = tuple(
            f.column if f.type == kind else Call("cast", (f.column,), kind) for f in (left, right)
        )
        merged.append((made, Call("coalesce", sides, kind)))
        for entry in before:
            if left in entry.fields:
                entry.hidden.add(left.id)
        for entry in added:
            if right in entry.fields:
                entry.hidden.add(right.id)
    scope.sources.insert(0, Source("", tuple(field for field, _ in merged)))
    return Project(
        joined,
        (*joined.fields, *(field for field, _ in merged)),
        (*(field.column for field in joined.fields), *(bound for _, bound in merged)),
    )
