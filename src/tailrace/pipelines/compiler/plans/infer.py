"""What is known of a plan's rows: a key, whether there is at most one."""

from __future__ import annotations

from math import prod

from tailrace.pipelines.compiler.plans.join_conditions import is_equality, is_never
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
    conjuncts,
)

MOST_KEYS = 32
MOST_ROWS = 10_000  # of what is paired with every row of a table


def keys_of(plan: Plan, *, numbered: bool = False) -> list[tuple[str, ...]]:
    """Sets of column ids each of which tells the rows apart; () means at most one row.

    `numbered`: also those by row_number() in its partition, which no view takes for its key
    unless it is declared: every row may get another number."""
    match plan:
        case Scan():
            if plan.table.kind == "bag" or not plan.table.key:
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
        case Match():
            # A window shows every row once.
            return [] if plan.frame is None else keys_of(plan.input, numbered=numbered)
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
    """Whether the query itself says that it has few rows: it may be paired with every row of
    a table."""
    most = most_rows(plan)
    return most is not None and most <= MOST_ROWS


def most_rows(plan: Plan) -> int | None:
    """How many rows it has at most, whatever the tables hold; None: as many as they do."""
    if at_most_one(plan):
        return 1
    match plan:
        case Constant():
            return len(plan.rows)
        case Filter():
            named = _most_named(plan)
            below = most_rows(plan.input)
            return min((n for n in (named, below) if n is not None), default=None)
        case Project() | Distinct() | Window() | Group():
            return most_rows(plan.input)
        case Top():
            below = most_rows(plan.input)
            if plan.partition:
                return below
            return plan.limit if below is None else min(plan.limit, below)
        case Join():
            left, right = most_rows(plan.left), most_rows(plan.right)
            if left is None or plan.mode in ("semi", "anti"):
                return left
            # An outer join shows each row of a side at least once.
            return None if right is None else left * right + left + right
        case SetOperation(mode="union all"):
            counts = [most_rows(child) for child in plan.inputs]
            return sum(n for n in counts if n is not None) if None not in counts else None
        case Expand():
            below, elements = most_rows(plan.input), _most_elements(plan.generator)
            return None if below is None or elements is None else below * max(elements, 1)
        case SetOperation():
            return most_rows(plan.inputs[0])
    return None


def _most_elements(generator: Expression) -> int | None:
    """How many elements the list of a generator has at most, by its text alone."""
    match generator:
        case Call("sequence", (Literal(int(start)), Literal(int(end)), Literal(int(step)))):
            return len(range(start, end, step)) + 1 if step else None
        case Call("sequence", (Literal(int(start)), Literal(int(end)))):
            return abs(end - start) + 1
        case Call("array", elements):
            return len(elements)
    return None


def _most_named(plan: Filter) -> int | None:
    """How many rows the keys that a filter names have: `id IN (1, 2, 3)`."""
    parts = conjuncts(plan.predicate)
    if any(map(is_never, parts)):
        return 0
    named = _given(plan.predicate, ids(plan.input))
    listed: dict[str, int] = {}
    for part in parts:
        match part:
            case Call("in", (Column(name, _), *values), _) if not any(map(columns_of, values)):
                listed[name] = min(len(values), listed.get(name, len(values)))
    found = [
        prod(listed[name] for name in key if name not in named)
        for key in keys_of(plan.input)
        if all(name in named or name in listed for name in key)
    ]
    return min(found, default=None)
