"""Policy strict: no operator may go through all of its input because of one row.

The refusal points at what asks for it: the window, the aggregate or the join in the view's
text, or in the text of a view it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from tailrace.pipelines.compiler.expressions.clock_filters import WATERMARK
from tailrace.pipelines.compiler.expressions.scalar import CLOCK, CLOCK_WORDS
from tailrace.pipelines.compiler.lowering.recompute import whole_input
from tailrace.pipelines.compiler.syntax.parse import parse, place
from tailrace.pipelines.engine.graph import Node, Operator
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.window import Window
from tailrace.pipelines.errors import NotIncrementalError


def refuse_recomputing(
    view: str, texts: Mapping[str, str], nodes: Mapping[str, Node], last: str
) -> None:
    """Raise if an operator behind `last` goes through all of its input; `texts` is the SQL
    of all views."""
    waiting = [last]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in nodes:
            continue
        seen.add(name)
        node = nodes[name]
        why = whole_input(node)
        if why:
            where = place_of(view, texts, node.operator)
            raise NotIncrementalError(
                f"view {view!r} is strict: {why}",
                detail=where or node.operator.describe(),
                hint='give it keys (PARTITION BY, GROUP BY, an equality), or policy="auto"',
            )
        waiting += [edge.source for edge in node.edges]


def clock_refused(view: str, texts: Mapping[str, str]) -> NotIncrementalError:
    """The error of a strict view that needs the clock otherwise than in a filter of moments."""
    return NotIncrementalError(
        f"view {view!r}: the clock may only stand in a filter such as"
        " `placed_at > now() - interval '1 hour'`",
        detail=_place(view, texts, _clock_outside_filters) or _place(view, texts, _is_clock),
        hint='with policy="auto" this part is computed again in every tick',
    )


def watermark_refused(view: str, texts: Mapping[str, str]) -> NotIncrementalError:
    """The error of a watermark that is no bound of a filter."""
    return NotIncrementalError(
        f"view {view!r}: a watermark may only stand in a filter such as"
        " `at <= watermark('clicks') - interval '1 hour'`",
        detail=_place(view, texts, lambda node: node.name.lower() == WATERMARK),
        hint="compare a time with it, in WHERE, and with nothing else that is the clock",
    )


def _is_clock(node: exp.Expr) -> bool:
    called = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return isinstance(node, CLOCK) or called in CLOCK_WORDS


def _clock_outside_filters(node: exp.Expr) -> bool:
    return _is_clock(node) and node.find_ancestor(exp.Where, exp.Having, exp.Join) is None


def place_of(view: str, texts: Mapping[str, str], operator: Operator) -> str:
    """Where the text of a view, or of one it reads, asks for such an operator."""
    return _place(view, texts, _asks(operator))


def _place(view: str, texts: Mapping[str, str], asks: Callable[[exp.Expr], bool]) -> str:
    waiting, seen = [view], set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        tree = parse(texts[name], name)
        found = next((node for node in tree.walk() if asks(node)), None)
        shown = place(texts[name], found) if found is not None else ""
        if shown:
            return shown if name == view else f"in view {name!r}:\n{shown}"
        waiting += [t.name for t in tree.find_all(exp.Table) if not t.db and t.name in texts]
    return ""


def _asks(operator: Operator) -> Callable[[exp.Expr], bool]:
    match operator:
        case Window():
            return _window_of_all
        case Group():
            wanted = {aggregate.function for aggregate in operator.aggregates}
            return lambda node: _aggregate_of_all(node, wanted)
        case Join():
            return _without_equality
    return lambda node: False


def _window_of_all(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window) and not node.args.get("partition_by")


def _aggregate_of_all(node: exp.Expr, wanted: set[str]) -> bool:
    """A call of one of these aggregates in a SELECT without GROUP BY."""
    if not isinstance(node, exp.Func) or isinstance(node, _SUMS):
        return False
    called = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    around = node.find_ancestor(exp.Select)
    return (
        (isinstance(node, exp.AggFunc) or called.lower() in wanted)
        and around is not None
        and around.args.get("group") is None
        and not isinstance(node.parent, exp.Window)
    )


_SUMS = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)  # these are followed row by row


def _without_equality(node: exp.Expr) -> bool:
    """A join whose condition compares no column of the two sides for equality; or a
    subquery that is bound to the query around it without one."""
    if isinstance(node, exp.Join):
        condition = node.args.get("on")
        return not node.args.get("using") and not any(_equalities(condition))
    if isinstance(node, exp.Exists) or (
        isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join | exp.In)
    ):
        inner = node.find(exp.Select)
        return inner is not None and not any(_equalities(inner.args.get("where")))
    return False


def _equalities(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if condition is None:
        return
    for node in condition.find_all(exp.EQ, exp.NullSafeEQ):
        sides = [{c.table for c in side.find_all(exp.Column)} for side in (node.left, node.right)]
        if all(sides) and sides[0] != sides[1]:
            yield node
