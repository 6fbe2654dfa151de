"""Queries → plans: FROM, WHERE, GROUP BY, HAVING, windows, SELECT, ORDER BY … LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding import generators, grouping, relations, stars, subqueries
from tailrace.pipelines.compiler.binding.aggregates import Order, bind_order
from tailrace.pipelines.compiler.binding.catalog import Catalog
from tailrace.pipelines.compiler.binding.scope import Context, Scope
from tailrace.pipelines.compiler.expressions.scalar import OPERANDS, Collected, ExpressionBinder
from tailrace.pipelines.compiler.plans.plan import (
    Distinct,
    Field,
    Filter,
    Plan,
    Project,
    SetOperation,
    Top,
    Window,
)
from tailrace.pipelines.engine.expression import Call, Expression, Literal
from tailrace.pipelines.values import types

Common = Mapping[str, Callable[[], Plan]]
_USED = "used"  # in the meta of a query of WITH that was read


class QueryBinder:
    """Binds one view. `view_plan` gives a fresh plan of another view by its name."""

    def __init__(
        self, context: Context, catalog: Catalog, view_plan: Callable[[str, exp.Table], Plan]
    ) -> None:
        self.context, self.catalog, self.view_plan = context, catalog, view_plan

    def query(self, node: exp.Expr, common: Common, outer: Scope | None) -> Plan:
        """The plan of a query; its fields carry the names of the result's columns."""
        if isinstance(node, exp.Subquery):
            return self._ordered(node, self.query(node.this, common, outer), common, outer)
        with_node = node.args.get("with_")
        if with_node is not None:
            common = self._common(with_node, common, outer)
        match node:
            case exp.Select():
                plan = self._select(node, common, outer)
            case exp.SetOperation():
                plan = self._ordered(node, self._set(node, common, outer), common, outer)
            case exp.Values():
                plan = relations.bind_values(self, node)
            case _:
                raise self.context.not_incremental(
                    f"{node.key} is not a query a view can keep", node
                )
        for item in with_node.expressions if with_node is not None else ():
            if _USED not in item.meta:  # what nobody reads must be right, too
                common[item.alias.lower()]()
        return plan

    def _common(self, node: exp.Expr, common: Common, outer: Scope | None) -> Common:
        if node.args.get("recursive"):
            raise self.context.not_incremental("WITH RECURSIVE is not kept incrementally", node)
        known = dict(common)
        for item in node.expressions:
            before = dict(known)

            def make(item: exp.Expr = item, before: Common = before) -> Plan:
                item.meta[_USED] = True
                plan = self.query(item.this, before, outer)
                return rename(self.context, plan, item.args["alias"])

            known[item.alias.lower()] = make
        return known

    # SELECT -------------------------------------------------------------------------------

    def _select(self, node: exp.Select, common: Common, outer: Scope | None) -> Plan:
        self.context.only(
            node, "expressions", "from_", "joins", "where", "group", "having", "qualify", "order",
            "limit", "offset", "distinct", "with_", "laterals", "windows",
        )  # fmt: skip
        inline_windows(self.context, node)
        plan, scope = relations.bind_from(self, node, common, outer)
        work = subqueries.Work(self, common, plan)
        where = node.args.get("where")
        if where is not None:
            work.plan = self._where(where.this, work, scope)
        collected = Collected()
        binder = ExpressionBinder(
            self.context, scope, work.bind, collected, inner_subquery=work.bind_below
        )
        work.plan, binder.windows = generators.expand_windows(binder, node, work.plan, self.context)
        work.plan, made = generators.expand_items(binder, node, work.plan, scope)
        work.deferred = True
        self._name_window(node, binder)
        items = self._items(node, binder, scope, made)
        having, qualify = node.args.get("having"), node.args.get("qualify")
        aliases = {name.lower(): bound for name, bound in items}
        having_bound = _asked(binder, aliases, having)
        qualify_bound = _asked(binder, aliases, qualify)
        order = self._order(node, binder, items, work)
        group = node.args.get("group")
        rewriter = grouping.Rewriter.none()
        if group is not None or collected.aggregates or having is not None:
            work.plan, rewriter = grouping.bind_group(self, node, work, binder, items, aliases)
        change = rewriter.apply
        items = [(name, change(bound, node)) for name, bound in items]
        order = tuple((change(bound, node), d, n) for bound, d, n in order)
        if rewriter.active:
            work.rewrite_conditions(lambda bound: change(bound, node))
        work.attach()
        if having_bound is not None:
            work.plan = Filter(work.plan, change(having_bound, node))
        for framed in collected.framed.values():
            if rewriter.active:
                raise self.context.not_incremental(
                    "a row pattern in a window of a query with GROUP BY", framed.node,
                    "group in a subquery or in WITH",
                )  # fmt: skip
            work.plan = framed.plan(work.plan)
        work.plan = self._windows(work.plan, collected, lambda bound: change(bound, node))
        if qualify_bound is not None:
            work.plan = Filter(work.plan, change(qualify_bound, node))
        return self._finish(node, work.plan, items, order, rewriter)

    def _name_window(self, node: exp.Select, binder: ExpressionBinder) -> None:
        """`GROUP BY window(…)` makes a column `window`."""
        group = node.args.get("group")
        for part in group.expressions if group is not None else ():
            for call, name in (("tumble", "window"), ("session_window", "session_window")):
                if isinstance(part, exp.Anonymous) and part.name.lower() == call:
                    binder.aliases.setdefault(name, binder.bind(part))

    def _where(self, node: exp.Expr, work: subqueries.Work, scope: Scope) -> Plan:
        binder = ExpressionBinder(self.context, scope, work.bind)
        parts = flat_and(node)
        for part in parts:
            if not subqueries.bind_top_level(work, part, binder):
                predicate = binder.condition(part, *(OPERANDS if len(parts) > 1 else ()))
                work.plan = Filter(work.plan, predicate)
        return work.plan

    def _items(
        self,
        node: exp.Select,
        binder: ExpressionBinder,
        scope: Scope,
        made: Mapping[int, tuple[Field, ...]],
    ) -> list[tuple[str, Expression]]:
        """`made`: the columns of items that are generators."""
        items: list[tuple[str, Expression]] = []
        for number, item in enumerate(node.expressions):
            if number in made:
                items.extend((column.name, column.column) for column in made[number])
                continue
            if stars.star_of(item):
                items.extend(stars.columns_of(binder, item))
                continue
            bound = self._item(item, number, node, binder)
            self.context.held(bound.type, item)
            name = item.alias or (item.name if isinstance(item, exp.Column) else item.sql("spark"))
            items.append((name, bound))
            if item.alias:
                binder.aliases.setdefault(item.alias.lower(), bound)
                binder.aliases = {
                    alias: value
                    for alias, value in binder.aliases.items()
                    if not any(f.name.lower() == alias for s in scope.sources for f in s.fields)
                }
        return items

    def _item(
        self, item: exp.Expr, number: int, node: exp.Select, binder: ExpressionBinder
    ) -> Expression:
        """An item of SELECT. A subquery that GROUP BY names by place or alias is joined below."""
        group = node.args.get("group")
        if group is None or item.find(exp.Query) is None or binder.inner_subquery is None:
            return binder.bind(item)
        names = {part.name.lower() for part in group.expressions if isinstance(part, exp.Column)}
        places = {part.name for part in group.expressions if isinstance(part, exp.Literal)}
        if item.alias.lower() not in names - {""} and str(number + 1) not in places:
            return binder.bind(item)
        return replace(binder, subquery=binder.inner_subquery).bind(item)

    def _order(
        self,
        node: exp.Select,
        binder: ExpressionBinder,
        items: list[tuple[str, Expression]],
        work: subqueries.Work,
    ) -> Order:
        """ORDER BY. Without a LIMIT it says nothing about a set of rows; it must be right, though:
        then it is bound aside."""
        order = node.args.get("order")
        if order is None:
            return ()
        limited = node.args.get("limit") is not None or node.args.get("offset") is not None
        if not limited:
            if [*map(_word, order.expressions)] == ["ALL"]:
                return ()
            aside = subqueries.Work(self, work.common, work.plan)
            binder = replace(binder, subquery=aside.bind, collected=Collected())
        # A bare name means a column of the result first, as in Spark.
        shown = {name.lower(): bound for name, bound in items}
        inner = replace(binder, aliases={**binder.aliases, **shown})
        bound = bind_order(inner, order.expressions)
        placed = self._by_place(order, bound, [bound for _, bound in items])
        return placed if limited else ()

    def _by_place(self, order: exp.Expr, bound: Order, columns: list[Expression]) -> Order:
        """ORDER BY 2 means the second column."""
        for item, (key, _, _) in zip(order.expressions, bound, strict=True):
            place = key.value if isinstance(key, Literal) and type(key.value) is int else 1
            if not 0 < place <= len(columns):
                raise self.context.name_error(
                    f"ORDER BY {place}: there are {len(columns)} columns", item
                )
        return tuple(
            (columns[e.value - 1], d, n)
            if isinstance(e, Literal) and type(e.value) is int
            else (e, d, n)
            for e, d, n in bound
        )

    def _windows(
        self, plan: Plan, collected: Collected, change: Callable[[Expression], Expression]
    ) -> Plan:
        """One window plan per distinct PARTITION BY … ORDER BY."""
        for use in collected.windows:
            partition = tuple(change(part) for part in use.partition)
            order = tuple((change(e), d, n) for e, d, n in use.order)
            call = replace(
                use.call,
                arguments=tuple(change(a) for a in use.call.arguments),
                condition=change(use.call.condition) if use.call.condition is not None else None,
            )
            if isinstance(plan, Window) and (plan.partition, plan.order) == (partition, order):
                plan = replace(plan, calls=(*plan.calls, call), added=(*plan.added, use.field))
            else:
                plan = Window(plan, partition, order, (call,), (use.field,))
        return plan

    def _finish(
        self,
        node: exp.Select,
        plan: Plan,
        items: list[tuple[str, Expression]],
        order: tuple[tuple[Expression, bool, bool], ...],
        rewriter: grouping.Rewriter,
    ) -> Plan:
        limit, offset = self._limit(node)
        fields = tuple(self.field(name, bound) for name, bound in items)
        bounds = tuple(bound for _, bound in items)
        if node.args.get("distinct") is not None:
            for field, item in zip(fields, node.expressions, strict=False):
                self.context.comparable(field.type, item)
            plan = Distinct(Project(plan, fields, bounds))
            shown = self._shown_order(node, plan, limited=limit is not None)
            return plan if limit is None else Top(plan, shown, limit, offset)
        if limit is not None:
            plan = Top(plan, order, limit, offset)
        return Project(plan, fields, bounds)

    def _shown_order(self, node: exp.Select, plan: Plan, *, limited: bool) -> Order:
        """ORDER BY of a SELECT DISTINCT: it sees the rows that are shown, and those alone."""
        order = node.args.get("order")
        if order is None or (not limited and [*map(_word, order.expressions)] == ["ALL"]):
            return ()
        named = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
        shown = {field.name.lower() for field in plan.fields}
        for column in order.find_all(exp.Column):
            name = column.name.lower()
            if name not in shown or (column.table and name in named):
                raise self.context.name_error(
                    "ORDER BY of a SELECT DISTINCT names something it does not show", column
                )
        if order.find(exp.AggFunc) is not None:
            raise self.context.name_error(
                "ORDER BY of a SELECT DISTINCT counts what it does not show", order
            )
        items = [item.copy() for item in order.expressions]
        for item in items:
            for column in item.find_all(exp.Column):
                column.set("table", None)
        scope = Scope([relations.source("", plan)])
        binder = ExpressionBinder(self.context, scope, subqueries.refuse(self.context))
        bound = bind_order(binder, items)
        return self._by_place(order, bound, [field.column for field in plan.fields])

    def _limit(self, node: exp.Expr) -> tuple[int | None, int]:
        numbers: list[int | None] = []
        for part in ("limit", "offset"):
            clause = node.args.get(part)
            if clause is None:
                numbers.append(None)
                continue
            value = clause.expression if clause.expression is not None else clause.args.get("count")
            if not isinstance(value, exp.Literal) or not value.is_int:
                raise self.context.type_error(f"{part.upper()} needs a whole number", clause)
            numbers.append(int(value.this))
        limit, offset = numbers
        if limit is None and offset is not None:
            limit = 1 << 62
        return limit, offset or 0

    def _ordered(self, node: exp.Expr, plan: Plan, common: Common, outer: Scope | None) -> Plan:
        """ORDER BY … LIMIT behind a set operation or a parenthesised query."""
        limit, offset = self._limit(node)
        order = node.args.get("order")
        if limit is None and (order is None or order.find(exp.Query) is not None):
            return plan
        scope = Scope([relations.source("", plan)], outer)
        binder = ExpressionBinder(self.context, scope, subqueries.refuse(self.context))
        bound: Order = ()
        if order is not None:
            columns: list[Expression] = [field.column for field in plan.fields]
            bound = self._by_place(order, bind_order(binder, order.expressions), columns)
        return plan if limit is None else Top(plan, bound, limit, offset)

    # UNION, INTERSECT, EXCEPT --------------------------------------------------------------

    def _set(self, node: exp.SetOperation, common: Common, outer: Scope | None) -> Plan:
        named = ("by_name",) if isinstance(node, exp.Union) else ()
        self.context.only(
            node, "this", "expression", "distinct", "with_", "order", "limit", "offset", *named
        )
        left, right = self.query(node.left, common, outer), self.query(node.right, common, outer)
        if node.args.get("by_name"):
            left, right = (
                self._by_name(left, (left, right), node),
                self._by_name(right, (left, right), node),
            )
        if len(left.fields) != len(right.fields):
            raise self.context.type_error(
                f"{len(left.fields)} columns on one side, {len(right.fields)} on the other", node
            )
        kinds: list[pa.DataType] = []
        for a, b in zip(left.fields, right.fields, strict=True):
            kind = types.common(a.type, b.type)
            if kind is None:
                raise self.context.type_error(
                    f"{types.ddl(a.type)} and {types.ddl(b.type)} do not fit in column {a.name!r}",
                    node,
                )
            kinds.append(kind)
        left, right = (self._as_kinds(side, kinds) for side in (left, right))
        fields = tuple(
            Field(self.context.fresh(f.name), f.name, kind)
            for f, kind in zip(left.fields, kinds, strict=True)
        )
        distinct = bool(node.args.get("distinct"))
        if distinct or not isinstance(node, exp.Union):
            for kind in kinds:
                self.context.comparable(kind, node)
        match node:
            case exp.Union():
                union = SetOperation("union all", (left, right), fields)
                return Distinct(union) if distinct else union
            case exp.Intersect():
                return SetOperation(
                    "intersect" if distinct else "intersect all", (left, right), fields
                )
            case exp.Except():
                return SetOperation("except" if distinct else "except all", (left, right), fields)
        raise self.context.not_incremental(f"{node.key} is not known", node)

    def _by_name(self, plan: Plan, sides: tuple[Plan, Plan], node: exp.Expr) -> Plan:
        """One side of a UNION BY NAME with the columns of both, the left one's in front; those
        it does not have are NULL."""
        own: dict[str, Field] = {}
        for field in plan.fields:
            if own.setdefault(field.name.lower(), field) is not field:
                raise self.context.name_error(
                    f"two columns are named {field.name!r}", node, "BY NAME needs one of each name"
                )
        wanted = {field.name.lower(): field for side in sides[::-1] for field in side.fields}
        order = dict.fromkeys(field.name.lower() for side in sides for field in side.fields)
        bounds = tuple(
            own[name].column if name in own else Literal(None, wanted[name].type) for name in order
        )
        fields = tuple(
            self.field(wanted[name].name, bound) for name, bound in zip(order, bounds, strict=True)
        )
        return Project(plan, fields, bounds)

    def _as_kinds(self, plan: Plan, kinds: list[pa.DataType]) -> Plan:
        if all(field.type == kind for field, kind in zip(plan.fields, kinds, strict=True)):
            return plan
        bounds = tuple(
            f.column if f.type == kind else Call("cast", (f.column,), kind)
            for f, kind in zip(plan.fields, kinds, strict=True)
        )
        fields = tuple(
            Field(self.context.fresh(f.name), f.name, kind)
            for f, kind in zip(plan.fields, kinds, strict=True)
        )
        return Project(plan, fields, bounds)

    def field(self, name: str, bound: Expression) -> Field:
        """A fresh column for an expression."""
        return Field(self.context.fresh(name), name, bound.type)


_WINDOW_PARTS = ("partition_by", "order", "spec", "framed")


def inline_windows(context: Context, node: exp.Select) -> None:
    """`OVER w` with `WINDOW w AS (…)` → `OVER (…)`; a query inside has windows of its own."""
    named: dict[str, exp.Expr] = {}
    for window in node.args.get("windows") or ():
        if named.setdefault(window.name.lower(), window) is not window:
            raise context.name_error(f"there are two windows {window.name!r}", window)
    used = (use for use in node.find_all(exp.Window) if use.parent_select is node)
    for use in [*named.values(), *used]:
        seen = set[str]()
        while (alias := use.args.get("alias")) is not None:
            if any(use.args.get(part) for part in _WINDOW_PARTS):
                raise context.not_incremental(
                    f"the window {alias.name!r} with more beside it", use, "write all of it out"
                )
            found = named.get(alias.name.lower())
            if found is None or alias.name.lower() in seen:
                raise context.name_error(f"there is no window {alias.name!r}", use)
            seen.add(alias.name.lower())
            for part in (*_WINDOW_PARTS, "alias"):
                value = found.args.get(part)
                use.set(part, value.copy() if isinstance(value, exp.Expr) else value)


def rename(context: Context, plan: Plan, alias: exp.Expr | None) -> Plan:
    """The plan with the column names of an alias (`t(a, b)`), if it has some."""
    columns = (alias.args.get("columns") or ()) if alias is not None else ()
    if alias is None or not columns:
        return plan
    names = [column.name for column in columns]
    if len(names) != len(plan.fields):
        raise context.name_error(
            f"{len(names)} names for {len(plan.fields)} columns", alias, "name all of them"
        )
    fields = tuple(
        Field(f"{field.id}'", name, field.type)
        for name, field in zip(names, plan.fields, strict=True)
    )
    return Project(plan, fields, tuple(field.column for field in plan.fields))


def _with_aliases(binder: ExpressionBinder, aliases: Mapping[str, Expression]) -> ExpressionBinder:
    """The binder with SELECT aliases added, where no column of FROM has that name."""
    known = {f.name.lower() for source in binder.scope.sources for f in source.fields}
    extra = {name: bound for name, bound in aliases.items() if name not in known}
    return replace(binder, aliases={**binder.aliases, **extra})


def _asked(
    binder: ExpressionBinder, aliases: Mapping[str, Expression], clause: exp.Expr | None
) -> Expression | None:
    """What HAVING or QUALIFY asks; as in Spark a text or a bare NULL will do."""
    if clause is None:
        return None
    return _with_aliases(binder, aliases).condition(clause.this, *OPERANDS)


def flat_and(node: exp.Expr) -> list[exp.Expr]:
    """The parts of an AND."""
    if isinstance(node, exp.Paren):
        return flat_and(node.this)
    if isinstance(node, exp.And):
        return flat_and(node.this) + flat_and(node.expression)
    return [node]


def _word(item: exp.Expr) -> str:
    """The word that an item of ORDER BY is, if it is one."""
    inner = item.this if isinstance(item, exp.Ordered) else item
    return inner.name.upper() if isinstance(inner, exp.Column | exp.Var | exp.All) else ""
