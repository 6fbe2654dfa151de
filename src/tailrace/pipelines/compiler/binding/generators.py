"""What makes many rows of one: explode and its like, hopping and session windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context, Scope
from tailrace.pipelines.compiler.binding.stars import written_out
from tailrace.pipelines.compiler.expressions.calls import duration, name_and_arguments
from tailrace.pipelines.compiler.expressions.interval_calls import constant_parts
from tailrace.pipelines.compiler.expressions.spark_calls import by_spark
from tailrace.pipelines.compiler.expressions.variant_calls import CHILD, exactly
from tailrace.pipelines.compiler.plans.plan import (
    Constant,
    Expand,
    Field,
    Filter,
    Plan,
    Window,
    WindowCall,
)
from tailrace.pipelines.engine.evaluate import folded
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

GENERATORS = {
    "explode": (False, False), "explode_outer": (False, True), "posexplode": (True, False),
    "posexplode_outer": (True, True), "inline": (False, False), "inline_outer": (False, True),
    "json_tuple": (False, True), "stack": (False, False),
    "variant_explode": (False, False), "variant_explode_outer": (False, True),
}  # fmt: skip


def generator_name(node: exp.Expr) -> str:
    """`explode` … for a call of one; else empty."""
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    if not isinstance(inner, exp.Func | exp.Anonymous):
        return ""
    name, _ = name_and_arguments(inner)
    return name if name in GENERATORS else ""


def bind_generator(
    binder: ExpressionBinder, node: exp.Expr, plan: Plan, names: list[str], outer: bool
) -> Expand:
    """The plan with the rows that a generator gives; `names` are given by the query."""
    context = binder.context
    name = generator_name(node)
    _, raw = name_and_arguments(written_out(binder, node))
    position, keeps = GENERATORS[name]
    if name == "json_tuple":
        return _json_tuple(binder, plan, raw, names, node)
    if name == "stack":
        return _stack(binder, plan, [binder.bind(part) for part in raw], names, outer, node)
    if len(raw) != 1:
        raise context.type_error("wrong number of arguments", node)
    bound = binder.bind(raw[0])
    if name.startswith("variant"):
        whole = exactly(binder, bound, types.VARIANT, node)
        bound = Call("variant_children", (whole,), pa.list_(CHILD))
        name = "inline"
    kind = bound.type
    if pa.types.is_map(kind) and not name.startswith("inline"):
        entries = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        bound = Call("map_entries", (bound,), pa.list_(entries))
        columns = [("key", kind.key_type), ("value", kind.item_type)]
        fields = True
    elif not pa.types.is_list(kind):
        raise context.type_error(f"{name} takes an array or a map, not {types.ddl(kind)}", node)
    elif name.startswith("inline"):
        if not pa.types.is_struct(kind.value_type):
            raise context.type_error("inline takes an array of structs", node)
        columns = [(field.name, field.type) for field in kind.value_type]
        fields = True
    else:
        columns, fields = [("col", kind.value_type)], False
    if position:
        columns.insert(0, ("pos", types.INT))
    if names and len(names) != len(columns):
        raise context.type_error(
            f"{name} gives {len(columns)} columns, {len(names)} are named", node
        )
    added = tuple(
        Field(context.fresh(shown), shown, of)
        for shown, (_, of) in zip(names or [n for n, _ in columns], columns, strict=True)
    )
    return Expand(plan, bound, added, fields, position, outer or keeps)


def _json_tuple(
    binder: ExpressionBinder, plan: Plan, raw: list[exp.Expr], names: list[str], node: exp.Expr
) -> Expand:
    """json_tuple(text, 'a', 'b'): one row with a column for each name."""
    if len(raw) < 2:
        raise binder.context.type_error("json_tuple takes a text and the names of fields", node)
    text = binder.bind(raw[0])
    parts: list[Expression] = []
    wanted: list[tuple[str, pa.DataType]] = []
    for number, item in enumerate(raw[1:]):
        key = binder.bind(item)
        if not isinstance(key, Literal):
            raise binder.context.not_incremental("json_tuple with a name that is no constant", node)
        if not text.type == key.type == types.STRING:
            raise binder.context.type_error("json_tuple takes texts alone", node)
        parts += [
            Literal(f"c{number}", types.STRING),
            by_spark(binder, _MEMBER, (text, key), node),
        ]
        wanted.append((f"c{number}", types.STRING))
    row = pa.struct(wanted)
    made = Call("array", (Call("named_struct", tuple(parts), row),), pa.list_(row))
    if names and len(names) != len(wanted):
        raise binder.context.type_error(
            f"json_tuple gives {len(wanted)} columns, {len(names)} are named", node
        )
    added = tuple(
        Field(binder.context.fresh(shown), shown, types.STRING)
        for shown in (names or [n for n, _ in wanted])
    )
    return Expand(plan, made, added, True, False, False)


# The last value of a name that is not null.
_MEMBER = (
    "try_element_at(map_values(map_filter(from_json({0}, 'MAP<STRING, STRING>'),"
    " (`k`, `v`) -> `k` = {1} AND `v` IS NOT NULL)), -1)"
)


def _stack(
    binder: ExpressionBinder,
    plan: Plan,
    given: list[Expression],
    names: list[str],
    outer: bool,
    node: exp.Expr,
) -> Expand:
    """stack(n, a, b, …): the values in n rows, what is missing at the end is NULL."""
    count = given[0].value if given and isinstance(given[0], Literal) else None
    if not isinstance(count, int) or count < 1 or len(given) < 2:
        raise binder.context.type_error("stack takes a constant number of rows, then values", node)
    values = given[1:]
    width = -(-len(values) // count)
    columns: list[tuple[list[Expression], pa.DataType]] = []
    for column in range(width):
        cells = [
            values[at] if at < len(values) else Literal(None, types.NULL)
            for at in range(column, count * width, width)
        ]
        columns.append(binder.alike(cells, node))
    shown = names or [f"col{number}" for number in range(width)]
    if len(shown) != width:
        raise binder.context.type_error(
            f"stack gives {width} columns, {len(shown)} are named", node
        )
    row = pa.struct([(f"c{number}", kind) for number, (_, kind) in enumerate(columns)])
    rows = []
    for number in range(count):
        parts: list[Expression] = []
        for at, (cells, _) in enumerate(columns):
            parts += [Literal(f"c{at}", types.STRING), cells[number]]
        rows.append(Call("named_struct", tuple(parts), row))
    made = Call("array", tuple(rows), pa.list_(row))
    added = tuple(
        Field(binder.context.fresh(name), name, kind)
        for name, (_, kind) in zip(shown, columns, strict=True)
    )
    return Expand(plan, made, added, True, False, outer)


MOST_OF_A_RANGE = 1_000_000


def bind_range(binder: ExpressionBinder, node: exp.Anonymous) -> Plan:
    """range([start,] end[, step[, parts]]) in FROM: whole numbers in a column `id`."""
    context = binder.context
    if not 1 <= len(node.expressions) <= 4:
        raise context.type_error("range([start,] end[, step])", node)
    numbers = []
    for part in node.expressions:
        value = folded(binder.coerce(binder.bind(part), types.BIGINT, part))
        if not isinstance(value, Literal):
            raise context.not_incremental("range takes constants", part, "sequence takes columns")
        if not isinstance(value.value, int):
            raise context.type_error("range takes whole numbers", part)
        numbers.append(value.value)
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) > 2 else 1
    if step == 0:
        raise context.type_error("a range by steps of 0", node)
    rows = range(start, end, step)
    if len(rows) > MOST_OF_A_RANGE:
        raise context.not_incremental(
            f"a range of {len(rows):,} rows", node, f"a view takes up to {MOST_OF_A_RANGE:,}"
        )
    added = Field(context.fresh("id"), "id", types.BIGINT)
    if not rows:
        return Constant((added,), ())
    ends = (Literal(number, types.BIGINT) for number in (rows[0], rows[-1], step))
    whole = Call("sequence", tuple(ends), pa.list_(types.BIGINT))
    return Expand(Constant((), ((),)), whole, (added,), False, False, False)


def expand_items(
    binder: ExpressionBinder, node: exp.Select, plan: Plan, scope: Scope
) -> tuple[Plan, dict[int, tuple[Field, ...]]]:
    """Generators among the SELECT items: the plan with their rows, and the columns of each."""
    found: dict[int, tuple[Field, ...]] = {}
    for number, item in enumerate(node.expressions):
        if not generator_name(item):
            continue
        if found:
            raise binder.context.not_incremental("two generators in one SELECT", item)
        if node.args.get("group") is not None:
            raise binder.context.not_incremental(
                "a generator beside GROUP BY", item, "use LATERAL VIEW"
            )
        names: list[str] = []
        inner = item
        if isinstance(item, exp.Aliases):
            names, inner = [e.name for e in item.expressions], item.this
        elif isinstance(item, exp.Alias):
            names, inner = [item.alias], item.this
        expanded = bind_generator(binder, inner, plan, names, False)
        plan, found[number] = expanded, expanded.added
    return plan, found


# Windows of time ----------------------------------------------------------------------------------


def expand_windows(
    binder: ExpressionBinder, node: exp.Select, plan: Plan, context: Context
) -> tuple[Plan, dict[str, Expression]]:
    """window(…) and session_window(…) of a GROUP BY: the plan in which every row has its
    window, and the expression that each call then means, by its text."""
    group = node.args.get("group")
    if group is None:
        return _in_windows(binder, node, plan, node.expressions), {}
    meanings: dict[str, Expression] = {}
    parts = [_named(node, part) for part in group.expressions]
    for part in parts:
        if not isinstance(part, exp.Anonymous):
            continue
        name = part.name.lower()
        if name not in ("tumble", "session_window") or part.sql() in meanings:
            continue
        if meanings:
            raise context.not_incremental("two windows of time in one GROUP BY", part)
        if name == "session_window":
            others = [other for other in parts if other is not part]
            plan, meaning = _sessions(binder, part, others, plan)
        else:
            plan, meaning = _windows(binder, part, plan)
        meanings[part.sql()] = meaning
    if not meanings:
        plan = _in_windows(binder, node, plan, [*node.expressions, *parts])
    return plan, meanings


def _in_windows(
    binder: ExpressionBinder, node: exp.Select, plan: Plan, parts: list[exp.Expr]
) -> Plan:
    """The plan without the rows that have no time, where a window(…) stands in `parts`: Spark
    shows none of them."""
    calls = [call for part in parts for call in part.find_all(exp.Anonymous)]
    known = set[str]()
    for call in calls:
        if call.name.lower() != "tumble" or not call.expressions or call.sql() in known:
            continue
        known.add(call.sql())
        if call.find_ancestor(exp.Select) is node and call.find_ancestor(exp.Lambda) is None:
            moment = _moment(binder, call.expressions[0])
            plan = Filter(plan, Call("is not null", (moment,), types.BOOLEAN))
    return plan


def _named(node: exp.Select, part: exp.Expr) -> exp.Expr:
    """What GROUP BY 1 or GROUP BY alias stands for."""
    if isinstance(part, exp.Literal) and part.is_int and int(part.this) <= len(node.expressions):
        item = node.expressions[int(part.this) - 1]
        inner: exp.Expr = item.this if isinstance(item, exp.Alias) else item
        return inner
    if isinstance(part, exp.Column) and not part.table:
        for item in node.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == part.name.lower():
                named: exp.Expr = item.this
                if isinstance(named, exp.Anonymous):
                    return named
    return part


def _moment(binder: ExpressionBinder, part: exp.Expr) -> Expression:
    value = binder.bind(part)
    if value.type in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        return value
    return binder.coerce(value, types.TIMESTAMP, part)


def _span(binder: ExpressionBinder, part: exp.Expr) -> int:
    value = binder.bind(part)
    micros = duration(str(value.value)) if isinstance(value, Literal) else None
    parts = constant_parts(value)
    if micros is None and parts is not None and not parts[0]:
        micros = parts[1] * 86_400_000_000 + parts[2]
    if micros is None:
        raise binder.context.type_error(
            f"{part.sql('spark')} is no constant duration", part, "write '10 minutes'"
        )
    return int(micros)


def _windows(binder: ExpressionBinder, node: exp.Anonymous, plan: Plan) -> tuple[Plan, Expression]:
    arguments = list(node.expressions)
    if not 2 <= len(arguments) <= 4:
        raise binder.context.type_error("window(time, size, slide, offset)", node)
    moment = _moment(binder, arguments[0])
    size = _span(binder, arguments[1])
    slide = _span(binder, arguments[2]) if len(arguments) > 2 else size
    offset = _span(binder, arguments[3]) if len(arguments) > 3 else 0
    if slide > size:
        raise binder.context.type_error("a window slides by at most its size", node)
    if size // slide > 10_000:
        raise binder.context.type_error("a row in more than 10,000 windows", node)
    plan = Filter(plan, Call("is not null", (moment,), types.BOOLEAN))
    kind = pa.struct([("start", moment.type), ("end", moment.type)])
    width = Literal(size, types.BIGINT)
    if slide == size and not offset:
        return plan, Call("window", (moment, width), kind)
    numbers = (width, Literal(slide, types.BIGINT), Literal(offset, types.BIGINT))
    starts = Call("window_starts", (moment, *numbers), pa.list_(moment.type))
    start = Field(binder.context.fresh("start"), "start", moment.type)
    expanded = Expand(plan, starts, (start,), False, False, False)
    return expanded, Call("make_window", (start.column, width), kind)


def _sessions(
    binder: ExpressionBinder, node: exp.Anonymous, others: list[exp.Expr], plan: Plan
) -> tuple[Plan, Expression]:
    """Rows of one group whose times are no further apart than the gap."""
    if len(node.expressions) != 2:
        raise binder.context.type_error("session_window(time, gap)", node)
    moment = _moment(binder, node.expressions[0])
    gap = _span(binder, node.expressions[1])
    partition = tuple(binder.bind(other) for other in others)
    plan = Filter(plan, Call("is not null", (moment,), types.BOOLEAN))
    calls, added = [], []
    for name in ("session_start", "session_end"):
        calls.append(WindowCall(name, (moment,), moment.type, ("range", None, 0), (gap,)))
        added.append(Field(binder.context.fresh(name), name, moment.type))
    window = Window(plan, partition, ((moment, False, True),), tuple(calls), tuple(added))
    kind = pa.struct([("start", moment.type), ("end", moment.type)])
    return window, Call("make_session", tuple(field.column for field in added), kind)


def is_window(bound: Expression) -> bool:
    """Whether it is a window of time, in any of its forms."""
    return isinstance(bound, Call) and bound.function in ("window", "make_window", "make_session")


def window_keys(bound: Call) -> list[Column | Call]:
    """The plain values that tell windows apart."""
    match bound.function:
        case "window":
            return [Call("window_start", bound.arguments, bound.arguments[0].type)]
        case "make_window":
            return [bound.arguments[0]]  # type: ignore[list-item]
    return list(bound.arguments)  # type: ignore[arg-type]
