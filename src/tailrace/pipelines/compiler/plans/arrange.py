"""Filters go towards the tables, inner joins take an order in which each has a condition."""

from __future__ import annotations

from dataclasses import replace

from tailrace.pipelines.compiler.expressions.clock_filters import reads_clock, stays_above
from tailrace.pipelines.compiler.plans.join_conditions import is_equality, is_inner, says_something
from tailrace.pipelines.compiler.plans.plan import (
    AsOf,
    Constant,
    Distinct,
    Expand,
    Filter,
    Group,
    Join,
    Match,
    Plan,
    Project,
    Scan,
    SetOperation,
    Top,
    Window,
    ids,
)
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from tailrace.pipelines.values import types

Asked = list[tuple[set[str], set[str]]]  # the sides of each join that has a condition


def arrange(plan: Plan) -> Plan:
    """An equal plan with filters as low as they can go."""
    return _push(plan, [])


def _push(plan: Plan, parts: list[Expression]) -> Plan:
    """`plan` under the filter `parts`."""
    match plan:
        case Filter():
            own = conjuncts(factored(plan.predicate))
            above = [part for part in own if stays_above(part)]
            below = [part for part in own if part not in above]
            return _filtered(_push(plan.input, [*below, *parts]), above)
        case Project():
            values = {f.id: e for f, e in zip(plan.fields, plan.expressions, strict=True)}
            below = [substitute(part, values) for part in parts]
            return replace(plan, input=_push(plan.input, below))
        case Join(mode="inner"):
            return _push_inner(plan, parts)
        case Join():
            return _push_outer(plan, parts)
        case Group():
            return _push_group(plan, parts)
        case Distinct():
            return Distinct(_push(plan.input, parts))
        case SetOperation(mode="union all"):
            inputs = []
            for child in plan.inputs:
                names = {f.id: g.column for f, g in zip(plan.fields, child.fields, strict=True)}
                inputs.append(_push(child, [substitute(part, dict(names)) for part in parts]))
            return replace(plan, inputs=tuple(inputs))
        case SetOperation():
            made: Plan = replace(plan, inputs=tuple(_push(child, []) for child in plan.inputs))
            return _filtered(made, parts)
        case Window():
            top = _first_rows(plan, parts)
            if top is not None:
                return top
            free_of_window, above = _split_window(plan, parts)
            return _filtered(replace(plan, input=_push(plan.input, free_of_window)), above)
        case Top():
            return _filtered(replace(plan, input=_push(plan.input, [])), parts)
        case Expand():
            low = [part for part in parts if columns_of(part) <= ids(plan.input)]
            high = [part for part in parts if not columns_of(part) <= ids(plan.input)]
            return _filtered(replace(plan, input=_push(plan.input, low)), high)
        case AsOf():
            low = [part for part in parts if columns_of(part) <= ids(plan.left)]
            high = [part for part in parts if not columns_of(part) <= ids(plan.left)]
            return _filtered(replace(plan, left=_push(plan.left, low)), high)
        case Match():
            keys = {e.name for e in plan.partition if isinstance(e, Column)}
            low = [
                p for p in parts if columns_of(p) and columns_of(p) <= keys and not reads_clock(p)
            ]
            high = [part for part in parts if part not in low]
            return _filtered(replace(plan, input=_push(plan.input, low)), high)
        case Scan() | Constant():
            return _filtered(plan, parts)


def _filtered(plan: Plan, parts: list[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _split_window(
    plan: Window, parts: list[Expression]
) -> tuple[list[Expression], list[Expression]]:
    """A filter on partition columns alone may go below."""
    keys = {e.name for e in plan.partition if isinstance(e, Column)}
    below = [p for p in parts if columns_of(p) and columns_of(p) <= keys and not reads_clock(p)]
    return below, [p for p in parts if p not in below]


def _first_rows(plan: Window, parts: list[Expression]) -> Plan | None:
    """`row_number() … <= n` needs only the first n rows of each partition."""
    if len(plan.calls) != 1 or plan.calls[0].function != "row_number":
        return None
    number = plan.added[0].id
    for part in parts:
        if not (isinstance(part, Call) and isinstance(part.arguments[0], Column)):
            continue
        limit = part.arguments[-1]
        if part.arguments[0].name != number or not isinstance(limit, Literal):
            continue
        bounds = {"<=": 0, "<": -1, "=": 0}
        if part.function in bounds and isinstance(limit.value, int):
            count = limit.value + bounds[part.function]
            if count < 0:
                return None
            low, rest = _split_window(plan, [p for p in parts if p is not part])
            top = Top(_push(plan.input, low), plan.order, count, 0, plan.partition)
            again = [part, *rest] if part.function == "=" else rest
            return _filtered(replace(plan, input=top), again)
    return None


def _push_group(plan: Group, parts: list[Expression]) -> Plan:
    keys = {
        field.id: key for field, key in zip(plan.fields[: len(plan.keys)], plan.keys, strict=True)
    }
    below: list[Expression] = []
    above: list[Expression] = []
    for part in parts:
        used = columns_of(part)
        # By the clock groups leave, not their rows: there are fewer of them.
        moves = used and used <= keys.keys() and not reads_clock(part)
        (below if moves else above).append(part)
    lowered = [substitute(part, keys) for part in below]
    return _filtered(replace(plan, input=_push(plan.input, lowered)), above)


def _push_outer(plan: Join, parts: list[Expression]) -> Plan:
    left, right = ids(plan.left), ids(plan.right)
    if is_inner(plan.mode, plan.condition, parts, left, right):
        return _push_inner(replace(plan, mode="inner"), parts)
    to_left, to_right, above = [], [], []
    for part in parts:
        used = columns_of(part)
        if plan.mode in ("left", "semi", "anti") and used <= left:
            to_left.append(part)
        elif plan.mode == "right" and used <= right:
            to_right.append(part)
        else:
            above.append(part)
    condition = (
        conjunction(conjuncts(factored(plan.condition))) if plan.condition is not None else None
    )
    made = replace(
        plan, left=_push(plan.left, to_left), right=_push(plan.right, to_right), condition=condition
    )
    return _filtered(made, above)


def _push_inner(plan: Join, parts: list[Expression]) -> Plan:
    """Flatten nested inner joins, hand each relation its own filters, join in an order in
    which every step has an equality where there is one."""
    relations: list[Plan] = []
    conditions: list[Expression] = []
    asked: Asked = []
    _flatten(plan, relations, conditions, asked)
    conditions += parts  # behind those below: what they keep out, these do not see
    flat: list[Expression] = []
    for condition in conditions:
        flat.extend(conjuncts(factored(condition)))
    above = [part for part in flat if stays_above(part)]
    flat = [part for part in flat if part not in above]
    remaining = [part for i, part in enumerate(flat) if part not in flat[:i]]
    placed: list[Plan] = []
    for relation in relations:
        own = [p for p in remaining if columns_of(p) and columns_of(p) <= ids(relation)]
        remaining = [p for p in remaining if p not in own]
        placed.append(_push(relation, own))
    current = placed.pop(_first(placed, remaining))
    while placed:
        chosen = _next(current, placed, remaining)
        relation = placed.pop(chosen)
        one, other = ids(current), ids(relation)
        here = [p for p in remaining if columns_of(p) <= one | other]
        remaining = [p for p in remaining if p not in here]
        meant = any((one & a and other & b) or (one & b and other & a) for a, b in asked)
        current = Join("inner", current, relation, conjunction(here), meant)
    return _filtered(current, [*remaining, *above])


def _flatten(plan: Plan, relations: list[Plan], conditions: list[Expression], asked: Asked) -> None:
    if isinstance(plan, Join) and plan.mode == "inner":
        _flatten(plan.left, relations, conditions, asked)
        _flatten(plan.right, relations, conditions, asked)
        if plan.condition is not None:
            conditions.append(plan.condition)
        if plan.asked or says_something(plan.condition):
            asked.append((ids(plan.left), ids(plan.right)))
    elif isinstance(plan, Filter):
        _flatten(plan.input, relations, conditions, asked)
        conditions.append(plan.predicate)
    else:
        relations.append(plan)


def _first(placed: list[Plan], parts: list[Expression]) -> int:
    """The first relation that a condition ties to one other alone; else simply the first."""
    every = [ids(relation) for relation in placed]
    for position, here in enumerate(every):
        others = [other for other in every if other is not here]
        for used in map(columns_of, parts):
            if used & here and any(used & other and used <= here | other for other in others):
                return position
    return 0


def _next(current: Plan, placed: list[Plan], parts: list[Expression]) -> int:
    here = ids(current)
    for wanted in (is_equality, lambda part: True):
        for position, relation in enumerate(placed):
            other = ids(relation)
            for part in parts:
                used = columns_of(part)
                if used <= here | other and used & here and used & other and wanted(part):
                    return position
    return 0


def factored(predicate: Expression) -> Expression:
    """(a AND x) OR (a AND y) → a AND (x OR y), so that joins find their equalities."""
    if not (isinstance(predicate, Call) and predicate.function in ("and", "or")):
        return predicate
    left, right = (factored(side) for side in predicate.arguments)
    if predicate.function == "and":
        return Call("and", (left, right), types.BOOLEAN)
    a, b = conjuncts(left), conjuncts(right)
    shared = [part for part in a if part in b]
    if not shared:
        return Call("or", (left, right), types.BOOLEAN)
    rest_a = conjunction([part for part in a if part not in shared])
    rest_b = conjunction([part for part in b if part not in shared])
    if rest_a is None or rest_b is None:
        return conjunction(shared) or predicate
    return conjunction([*shared, Call("or", (rest_a, rest_b), types.BOOLEAN)]) or predicate
