"""What is known of a plan's rows: a key, whether there is at most one."""

from __future__ import annotations

from tailrace.pipelines.incremental.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
)
from tailrace.pipelines.incremental.sql.arrange import is_equality
from tailrace.pipelines.incremental.sql.plan import (
    AsOf,
    Constant,
    Distinct,
    Expand,
    Filter,
    Group,
    Join,
    Plan,
    Project,
    Scan,
    SetOperation,
    Top,
    Window,
    ids,
)

MOST_KEYS = 32
MOST_ROWS = 10_000  # of constants that are paired with every row of a table


def keys_of(plan: Plan, *, numbered: bool = False) -> list[tuple[str, ...]]:
    """Sets of column ids each of which tells the rows apart; () means at most one row.

    `numbered`: also those by row_number() in its partition, which no view takes for its key
    unless it is declared: every row may get another number."""
    match plan:
        case Scan():
            if plan.table.kind not in ("table", "history") or not plan.table.key:
                return []
            names = dict(zip(plan.columns, plan.fields, strict=True))
            return [tuple(names[name].id for name in plan.table.key if name in names)]
        case Constant():
            return [()] if len(plan.rows) <= 1 else []
        case Filter():
            return keys_of(plan.input, numbered=numbered)
        case Window():
            found = keys_of(plan.input, numbered=numbered)
            return [*found, *_numbers(plan)] if numbered else found
        case Top():
            return (
                [()]
                if plan.limit <= 1 and not plan.partition
                else keys_of(plan.input, numbered=numbered)
            )
        case Project():
            shown: dict[str, str] = {}
            for field, expression in zip(plan.fields, plan.expressions, strict=True):
                if isinstance(expression, Call) and expression.function == "make_window":
                    expression = expression.arguments[0]  # as good as the window's start
                elif isinstance(expression, Call) and expression.function == "make_session":
                    for part in expression.arguments:
                        if isinstance(part, Column):
                            shown.setdefault(part.name, field.id)
                if isinstance(expression, Column):
                    shown.setdefault(expression.name, field.id)
            return [
                tuple(dict.fromkeys(shown[part] for part in key))
                for key in keys_of(plan.input, numbered=numbered)
                if all(part in shown for part in key)
            ]
        case Group():
            return [tuple(field.id for field in plan.fields[: len(plan.keys)])]
        case Distinct():
            return [
                *keys_of(plan.input, numbered=numbered),
                tuple(field.id for field in plan.fields),
            ]
        case Join():
            return _join_keys(plan, numbered)
        case AsOf():
            return keys_of(plan.left, numbered=numbered)
        case Expand():
            whole = plan.generator
            counted = isinstance(whole, Call) and whole.function == "sequence"
            if not plan.position and not counted:  # the elements of a sequence all differ
                return []
            return [(*key, plan.added[0].id) for key in keys_of(plan.input, numbered=numbered)]
        case SetOperation():
            if plan.mode in ("intersect", "except"):
                return [tuple(field.id for field in plan.fields)]
            return []


def _numbers(plan: Window) -> list[tuple[str, ...]]:
    """Each row_number() together with the columns of its partition."""
    parts = [part.name for part in plan.partition if isinstance(part, Column)]
    if len(parts) != len(plan.partition):
        return []
    return [
        (*parts, field.id)
        for field, call in zip(plan.added, plan.calls, strict=True)
        if call.function == "row_number"
    ]


def _join_keys(plan: Join, numbered: bool) -> list[tuple[str, ...]]:
    left = keys_of(plan.left, numbered=numbered)
    if plan.mode in ("semi", "anti"):
        return left
    right = keys_of(plan.right, numbered=numbered)
    equal_left = _given(plan.condition, ids(plan.left))
    equal_right = _given(plan.condition, ids(plan.right))
    found: list[tuple[str, ...]] = []
    if plan.mode in ("inner", "left") and any(set(key) <= equal_right for key in right):
        found.extend(left)  # every left row meets at most one right row
    if plan.mode in ("inner", "right") and any(set(key) <= equal_left for key in left):
        found.extend(right)
    if plan.mode != "full":
        found.extend((*a, *b) for a in left for b in right)
    return _smallest(found)


def _given(condition: Expression | None, own: set[str]) -> set[str]:
    """The columns of a side that equal something which is known without that side."""
    found: set[str] = set()
    for part in conjuncts(condition):
        if isinstance(part, Call) and is_equality(part):
            for one, other in (part.arguments, part.arguments[::-1]):
                if isinstance(one, Column) and not columns_of(other) & own:
                    found.add(one.name)
    return found & own


def _smallest(keys: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The keys none of which holds another: a join of many tables has a great many others.
    What shows all columns of a key shows those of the smaller one."""
    kept: list[tuple[str, ...]] = []
    for key in sorted(dict.fromkeys(tuple(dict.fromkeys(key)) for key in keys), key=len):
        if len(kept) < MOST_KEYS and not any(set(known) <= set(key) for known in kept):
            kept.append(key)
    return kept


def best_key(plan: Plan) -> tuple[str, ...] | None:
    """The shortest key, or None."""
    return min(keys_of(plan), key=len, default=None)


def at_most_one(plan: Plan) -> bool:
    """Whether it has a single row at most: a total, or the row of a key that is named."""
    if () in keys_of(plan):
        return True
    if isinstance(plan, Filter):
        named = _given(plan.predicate, ids(plan.input))
        return at_most_one(plan.input) or any(set(key) <= named for key in keys_of(plan.input))
    return isinstance(plan, Project) and at_most_one(plan.input)


def few(plan: Plan) -> bool:
    """Whether it is one row at most, or rows that the query itself names: what may be paired
    with every row of a table."""
    rows = _written(plan)
    return rows is not None and rows <= MOST_ROWS


def _written(plan: Plan) -> int | None:
    """At most how many rows the query itself names: VALUES, range(…), pairs of them."""
    if at_most_one(plan):
        return 1
    match plan:
        case Constant():
            return len(plan.rows)
        case Project() | Filter() | Distinct():
            return _written(plan.input)
        case Expand(
            input, Call("sequence", (Literal(int(start)), Literal(int(end)), Literal(int(step))))
        ):
            rows = _written(input)
            return None if rows is None else rows * (len(range(start, end, step)) + 1)
        case Join("inner", left, right):
            sides = _written(left), _written(right)
            return None if sides[0] is None or sides[1] is None else sides[0] * sides[1]
    return None
