"""The views of a project → one operator graph.

    syntax/       text → sqlglot's tree, errors that point into the text, what is refused
    binding/      names and types → a relational plan, subqueries taken apart into joins
    expressions/  scalar expressions and calls, by Spark's rules
    plans/        the plan; filters go towards the tables, joins take an order; what is known of its rows
    lowering/     plan → operators; what is computed again whole, and what can be forgotten
    explain       what a view does, in words
    event_pattern, declared_patterns, declared_percolations: other declarations → their graphs

`_compile` is the order of the passes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.binding.catalog import Catalog
from tailrace.pipelines.compiler.binding.query import QueryBinder
from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.expressions.functions import FunctionLike
from tailrace.pipelines.compiler.lowering.lower import Lowering
from tailrace.pipelines.compiler.lowering.recompute import needs_clock, needs_watermark, recomputed
from tailrace.pipelines.compiler.lowering.strict import (
    clock_refused,
    refuse_recomputing,
    watermark_refused,
)
from tailrace.pipelines.compiler.plans.arrange import arrange
from tailrace.pipelines.compiler.plans.dependencies import is_unique
from tailrace.pipelines.compiler.plans.infer import best_key
from tailrace.pipelines.compiler.plans.plan import Field, Plan, Project
from tailrace.pipelines.compiler.syntax.parse import parse, place, point
from tailrace.pipelines.compiler.syntax.understood import refuse_what_is_not_understood
from tailrace.pipelines.engine.expression import Call, Expression
from tailrace.pipelines.engine.graph import Graph, TableInput, ViewPlan
from tailrace.pipelines.engine.unforeseen import unforeseen
from tailrace.pipelines.errors import SqlNameError, SqlTypeError, UnforeseenError, ViewError
from tailrace.pipelines.values.types import ddl, has_variant


class ViewLike(Protocol):
    """A declared view (`tailrace.pipelines.declare.View`)."""

    @property
    def name(self) -> str: ...
    @property
    def sql(self) -> str: ...
    @property
    def key(self) -> tuple[str, ...] | None: ...
    @property
    def policy(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view by its parts, for whoever has no declaration."""

    name: str
    sql: str
    key: tuple[str, ...] | None = None
    policy: str = "auto"


def compile_views(
    views: Iterable[ViewLike],
    tables: Iterable[TableInput],
    functions: Iterable[FunctionLike] = (),
) -> Graph:
    """One graph for all views. A view may read the others by their bare names, and call `functions`.

    Raises the error of the first view that cannot be compiled; it points into the SQL.
    """
    declared = {view.name: view for view in views}
    catalog = Catalog(tables, {name: view.sql for name, view in declared.items()}, functions)
    lowering = Lowering()
    plans: dict[str, ViewPlan] = {}
    for view in declared.values():
        try:
            plans[view.name] = _compile(lowering, view, declared, catalog)
        except TailraceError:
            raise
        except Exception as defect:
            raise _defect(view, defect) from defect
    return Graph(lowering.tables, tuple(lowering.nodes.values()), plans)


def problems(
    views: Iterable[ViewLike],
    tables: Iterable[TableInput],
    functions: Iterable[FunctionLike] = (),
) -> dict[str, ViewError]:
    """What is wrong with each view that cannot be compiled; one does not hide another."""
    declared = {view.name: view for view in views}
    catalog = Catalog(tables, {name: view.sql for name, view in declared.items()}, functions)
    found: dict[str, ViewError] = {}
    for view in declared.values():
        try:
            _compile(Lowering(), view, declared, catalog)
        except ViewError as error:
            found[view.name] = error
        except Exception as defect:  # one view's, whatever it is: the others are judged
            found[view.name] = _defect(view, defect)
    return found


def _defect(view: ViewLike, problem: Exception) -> UnforeseenError:
    error = unforeseen(problem, f"compiling view {view.name!r}\n{point(view.sql, 1, 1)}")
    error.view = view.name
    error.__cause__ = problem
    return error


def _compile(
    lowering: Lowering, view: ViewLike, declared: Mapping[str, ViewLike], catalog: Catalog
) -> ViewPlan:
    context = Context(view.name, view.sql, view.policy, catalog.times, catalog.functions)
    plan = arrange(_bind(context, declared, catalog, ()))
    _check_names(context, view, plan)
    key = _key(context, view, plan)
    if key is None:
        plan = _told_apart(context, plan)
    lowering.places = context.places
    texts = {name: one.sql for name, one in declared.items()}
    if needs_watermark(plan, whole=view.policy == "full"):
        raise watermark_refused(view.name, texts)
    if view.policy in ("strict", "incremental") and needs_clock(plan):
        raise clock_refused(view.name, texts)
    try:
        node = lowering.result(view.name, recomputed(lowering, plan, view.policy), key)
    except ViewError as error:  # below this, a plan does not know whose it is
        error.message = f"view {view.name!r}: {error.message}"
        raise
    if view.policy == "strict":
        refuse_recomputing(view.name, texts, lowering.nodes, node)
    columns = tuple((f.name, ddl(f.type)) for f in plan.fields)
    if key is None:
        columns = (*columns, ("count", "BIGINT"))
    return ViewPlan(
        view.name,
        node,
        tuple(f.name for f in plan.fields) if key is None else key,
        columns,
        view.sql,
        bag=key is None,
        policy=view.policy,
        proven=key is None or _proven(plan, key),
    )


def _proven(plan: Plan, key: tuple[str, ...]) -> bool:
    """Whether the query itself makes a key unique."""
    return is_unique(plan, [field.id for field in plan.fields if field.name in key])


def _bind(
    context: Context,
    declared: Mapping[str, ViewLike],
    catalog: Catalog,
    around: tuple[str, ...],
) -> Plan:
    def view_plan(name: str, node: exp.Table) -> Plan:
        if name == context.view or name in around:
            raise context.name_error(
                f"reads itself through {' → '.join((*around, context.view, name))}",
                node,
                "views are computed one after the other: read a table, or a view that reads "
                "none of these",
            )
        inner = Context(name, declared[name].sql, context.policy, catalog.times, catalog.functions)
        return _renumbered(context, _bind(inner, declared, catalog, (*around, context.view)))

    binder = QueryBinder(context, catalog, view_plan)
    tree = parse(context.sql, context.view)
    refuse_what_is_not_understood(context, tree)
    if not around and isinstance(tree, exp.Select):
        _check_items(context, tree)
    return binder.query(tree, {}, None)


def _check_items(context: Context, tree: exp.Select) -> None:
    """Two columns of one name, where the text shows them."""
    seen: set[str] = set()
    for item in tree.expressions:
        name = item.alias_or_name.lower() if not item.is_star else ""
        if name and name in seen:
            raise context.name_error(
                f"two columns are named {item.alias_or_name!r}", item, "give one of them an alias"
            )
        seen.add(name)


def _renumbered(context: Context, plan: Plan) -> Plan:
    """Another view's plan with ids that cannot meet this one's."""
    from tailrace.pipelines.compiler.plans.renumber import renumber

    return renumber(plan, context.fresh("view"))


def _check_names(context: Context, view: ViewLike, plan: Plan) -> None:
    seen: set[str] = set()
    for field in plan.fields:
        if field.name.lower() in seen:
            raise SqlNameError(
                f"view {view.name!r}: two columns are named {field.name!r}",
                detail=_selected(context, field.name),
                hint="give one of them an alias",
            )
        seen.add(field.name.lower())


def _told_apart(context: Context, plan: Plan) -> Plan:
    """The plan of a bag, whose rows are known by what they show: variants of one JSON text
    become one, or their counts would be written over each other."""
    if not any(has_variant(field.type) for field in plan.fields):
        return plan
    fields = tuple(Field(context.fresh(f.name), f.name, f.type) for f in plan.fields)
    shown: list[Expression] = [
        Call("variant_normal", (f.column,), f.type) if has_variant(f.type) else f.column
        for f in plan.fields
    ]
    return Project(plan, fields, tuple(shown))


def _key(context: Context, view: ViewLike, plan: Plan) -> tuple[str, ...] | None:
    """The declared key, or the one that follows from the query; None makes a bag."""
    names = {f.name.lower(): f.name for f in plan.fields}
    if view.key is not None:
        for part in view.key:
            if part.lower() not in names:
                near = difflib.get_close_matches(part, names.values(), 1)
                raise SqlNameError(
                    f"view {view.name!r}: key column {part!r} is not in the result",
                    detail=_selected(context),
                    hint=f"did you mean {near[0]!r}?"
                    if near
                    else f"columns: {', '.join(names.values())}",
                )
        chosen = tuple(names[part.lower()] for part in view.key)
        for field in plan.fields:
            if field.name in chosen and has_variant(field.type):
                raise SqlTypeError(
                    f"view {view.name!r}: key column {field.name!r} is a {ddl(field.type)}",
                    detail=_selected(context, field.name),
                    hint="variants have no equality: declare other columns, or cast it",
                )
        return chosen
    found = best_key(plan)
    if found is None:
        if "count" in names:
            raise ViewError(
                f"view {view.name!r} has no key and a column named 'count'",
                detail=_selected(context, "count"),
                hint="rename it, or declare a key: a view without one carries a count of its own",
            )
        return None
    shown = {f.id: f.name for f in plan.fields}
    return tuple(shown[part] for part in found)


def _selected(context: Context, name: str = "") -> str:
    """Where the text says what the result's columns are; or the last of that name."""
    tree = parse(context.sql, context.view)
    select = tree.find(exp.Select)
    if select is None:
        return ""
    called = [item for item in select.expressions if item.alias_or_name.lower() == name.lower()]
    shown = exp.Tuple(expressions=[item.copy() for item in called[-1:] or select.expressions])
    return place(context.sql, shown)
