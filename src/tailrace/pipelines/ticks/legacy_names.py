"""The names that operators had before `identity`: hashes of texts.

Kept so that state of such a name is found again, and for nothing else (see `ticks.carried`). The
texts here are as they were then and never change, whatever operators say about themselves now.
An operator that could not be said then has no such name: one of a newer class, with a newer
field that is not at its default, or with a function whose meaning has changed since.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from tailrace.pipelines.compiler.lowering.lower import state_forms
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal, Value
from tailrace.pipelines.engine.graph import Edge, Node, Operator, Projection
from tailrace.pipelines.engine.identity import encode
from tailrace.pipelines.engine.operators.aggregates import ORDERED, Aggregate
from tailrace.pipelines.engine.operators.as_of import AsOf, History
from tailrace.pipelines.engine.operators.clock import Clock
from tailrace.pipelines.engine.operators.counts import Constants, Counts, UnionAll
from tailrace.pipelines.engine.operators.expand import Expand
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.keyed import Facts, Keyed, KeylessTable
from tailrace.pipelines.engine.operators.recompute import Recompute
from tailrace.pipelines.engine.operators.result import BagResult, Result
from tailrace.pipelines.engine.operators.spans import (
    Condition,
    Every,
    Moment,
    Months,
    Shift,
    Some,
    Truncation,
    Truth,
)
from tailrace.pipelines.engine.operators.sumjoin import SumJoin
from tailrace.pipelines.engine.operators.top import Top
from tailrace.pipelines.engine.operators.window import Window, WindowFunction
from tailrace.pipelines.values.types import STRING, VARIANT, ddl, is_decimal

# What those texts knew; all but `schema`, which operators have in common.
_FIELDS = {
    "Aggregate": "name function arguments argument_types type distinct condition order parameters grows",
    "AsOf": "left_keys right_keys time left right outer kept_ms facts table null_safe",
    "BagResult": "view expiry",
    "Between": "left right from_what to_what least most",
    "Call": "function arguments type",
    "Clock": "condition values columns streams",
    "Column": "name type",
    "Constants": "rows",
    "Counts": "mode",
    "Edge": "source projection route",
    "Every": "parts",
    "Expand": "source columns fields position outer",
    "Expiry": "column adds times",
    "Facts": "table",
    "Graph": "tables nodes views",
    "Group": "keys aggregates expiry rows",
    "History": "table",
    "Join": "mode left_keys right_keys null_safe left right expiry between",
    "Keyed": "table",
    "KeylessTable": "table",
    "Literal": "value type",
    "Moment": "value operator steps",
    "Months": "count",
    "Node": "id operator edges level identity",
    "Projection": "columns where",
    "Recompute": "graph reason clock",
    "Result": "view key unique expiry",
    "Shift": "micros",
    "Some": "parts",
    "SumJoin": "outer keys other_keys null_safe kept other measures summed added",
    "TableInput": "name topic key kind kept_ms time",
    "Top": "partition order limit offset columns",
    "Truncation": "unit",
    "Truth": "value",
    "UnionAll": "",
    "ViewPlan": "name node key columns sql bag policy finish proven",
    "Window": "partition order functions carried columns carried_types expiry",
    "WindowFunction": "function arguments argument_types type frame parameters condition",
}
_INFIX = {"+", "-", "*", "/", "%", "=", "<", "<=", ">", ">=", "<>", "<=>", "and", "or", "div",
          "like", "||", "rlike", "&", "|", "^"}  # fmt: skip
_TYPED = {"from_json", "from_csv", "from_xml", "variant_get", "try_variant_get", "arrays_zip",
          "shape_of_wkb"}  # fmt: skip


class _Unsayable(Exception):
    """It could not be said then."""


def legacy_names(nodes: Iterable[Node]) -> dict[str, str]:
    """The earlier name of every node that had one, by its id; `nodes` have their inputs first."""
    known: dict[str, Node] = {}
    names: dict[str, str] = {}
    for node in nodes:
        known[node.id] = node
        try:
            names[node.id] = _name(node, known, names)
        except _Unsayable:
            continue
    return names


def _name(node: Node, known: Mapping[str, Node], names: Mapping[str, str]) -> str:
    _check(node.operator)
    text = [node.operator.kind, _text(node.operator), str(node.schema)]
    own, looked_up = state_forms(node.operator, [_types(edge, known) for edge in node.edges])
    text += [f"form {own}"] * (own > 1) + [f"keys in form {looked_up}"] * (looked_up > 1)
    for edge in node.edges:
        _check(edge)
        shown = _projection(edge.projection) if edge.projection else "*"
        text.append(f"{_source(edge, names)} {shown} {edge.route}")
    digest = hashlib.blake2b("\n".join(text).encode(), digest_size=8).hexdigest()
    return f"{node.operator.kind}-{digest}"


def _source(edge: Edge, names: Mapping[str, str]) -> str:
    if edge.source.startswith("table:"):
        return edge.source
    if edge.source not in names:
        raise _Unsayable
    return names[edge.source]


def _types(edge: Edge, known: Mapping[str, Node]) -> dict[str, pa.DataType]:
    if edge.projection is not None:
        return {name: bound.type for name, bound in edge.projection.columns}
    below = known.get(edge.source)
    return {field.name: field.type for field in below.schema} if below is not None else {}


def _check(value: object) -> None:
    """Raise _Unsayable unless everything in a structure could be said."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        said = _FIELDS.get(type(value).__name__)
        if said is None or getattr(value, "meaning", 1) != 1:
            raise _Unsayable
        for field in dataclasses.fields(value):
            found = getattr(value, field.name)
            if field.name == "schema" or field.name in said.split():
                _check(found)
            elif field.default is dataclasses.MISSING or encode(field.default) != encode(found):
                raise _Unsayable
    elif isinstance(value, tuple | list):
        for part in value:
            _check(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            _check(part)


# Operators ------------------------------------------------------------------------------------


def _text(operator: Operator) -> str:
    match operator:
        case Keyed() | KeylessTable() | Facts():
            return f"{operator.kind} {operator.table} ({', '.join(operator.schema.names)})"
        case History():
            return f"history of {operator.table}"
        case Counts():
            return f"{operator.mode} of ({', '.join(operator.schema.names)})"
        case UnionAll():
            return f"union all ({', '.join(operator.schema.names)})"
        case Constants():
            return f"constants {operator.rows!r}"
        case Expand():
            outer = " outer" if operator.outer else ""
            return f"expand{outer} {operator.source} → {', '.join(operator.schema.names)}"
        case Group():
            listed = ", ".join(map(_aggregate, operator.aggregates))
            of = f" of {operator.rows}" if operator.rows else ""
            return f"group by ({', '.join(operator.keys)}) {listed}{of}"
        case Join():
            return _join(operator)
        case SumJoin():
            return _sum_join(operator)
        case AsOf():
            return _as_of(operator)
        case Window():
            return _window(operator)
        case Top():
            return _top(operator)
        case Clock():
            topics = " and ".join(topic for topic, _ in operator.streams)
            of = f", the clock being the watermark of {topics}," if topics else ""
            condition = _condition(operator.condition, operator.values)
            return f"while {condition}{of} → {', '.join(operator.columns)}"
        case Recompute():
            return _recompute(operator)
        case Result():
            unique = "unique " if operator.unique else ""
            return f"result {operator.view} {unique}key ({', '.join(operator.key)})"
        case BagResult():
            return f"result {operator.view} as a bag"
    raise _Unsayable


def _aggregate(aggregate: Aggregate) -> str:
    inner = ", ".join((*aggregate.arguments, *map(str, aggregate.parameters))) or "*"
    order = "".join(
        f" {_in_order(name)}{' desc' if desc else ''}{' nulls first' if nulls else ''}"
        for name, desc, nulls in aggregate.order
    )
    kept = ""
    if aggregate.grows:
        ordered = aggregate.function in ORDERED
        kept = " of rows that only come" if ordered else " as a sketch"
    return (
        f"{aggregate.function}({'distinct ' if aggregate.distinct else ''}{inner}"
        f"{' order by' + order if order else ''})"
        f"{' filter ' + aggregate.condition if aggregate.condition else ''}: {aggregate.type}"
        f"{kept}"
    )


def _join(join: Join) -> str:
    on = _on(join.left_keys, join.right_keys, join.null_safe)
    ends = "".join(f" until {one.column} + {one.adds}" for one in join.expiry or ())
    apart = ""
    if join.between is not None:
        apart = f" counting {join.between.right} - {join.between.left}"
        apart += f" in {join.between.least}..{join.between.most}"
    shown = _columns(join.schema.names, len(join.left), join.right)
    ours, theirs = {*join.left_keys, *join.left}, {*join.right_keys, *join.right}
    alike = not ours.isdisjoint(join.right) or not theirs.isdisjoint(join.left)
    sides = f" ({len(join.left)} of the left)" if alike else ""
    return f"{join.mode} join on {on or 'everything'} → {shown}{sides}{ends}{apart}"


def _sum_join(join: SumJoin) -> str:
    on = _on(join.keys, join.other_keys, join.null_safe)
    names = join.schema.names[: -join.width]
    shown = _columns(names, len(join.kept), join.other)
    shown += f" ({len(join.kept)} of the summed)" * bool(names)
    calls = "".join("s" if one else "c" for one in join.summed)
    what = f"{', '.join(join.measures)} ({calls}{' added' if join.added else ''})"
    kind = "outer" if join.outer else "inner"
    return f"{kind} join on {on} → {shown or 'nothing'}; keeps sums of {what}"


def _as_of(join: AsOf) -> str:
    on = _on(join.left_keys, join.right_keys, join.null_safe or (False,) * len(join.left_keys))
    kind = "left as-of join" if join.outer else "as-of join"
    kept = "for ever" if join.kept_ms is None else f"for {_duration(join.kept_ms)}"
    what = "rows and replaced versions" if join.facts else "replaced versions"
    shown = _columns(join.schema.names, len(join.left), join.right)
    if not {*join.left_keys, join.time, *join.left}.isdisjoint(join.right):
        shown += f" ({len(join.left)} of the left)"
    return f"{kind} on {on} at {join.time} → {shown}; keeps {what} {kept}"


def _window(window: Window) -> str:
    order = ", ".join(
        f"{_in_order(name)}{' desc' if desc else ''}{' nf' if nulls else ''}"
        for name, desc, nulls in window.order
    )
    listed = ", ".join(map(_function, window.functions))
    by = ", ".join(window.partition)
    return f"window by ({by}) order ({order}) {listed} → {', '.join(window.columns)}"


def _function(function: WindowFunction) -> str:
    shown = ", ".join((*function.arguments, *map(str, function.parameters)))
    condition = f" filter {function.condition}" if function.condition else ""
    return f"{function.function}({shown}){condition} {function.frame}: {function.type}"


def _top(top: Top) -> str:
    order = ", ".join(
        f"{_in_order(name)}{' desc' if desc else ''}{' nulls first' if nulls else ' nulls last'}"
        for name, desc, nulls in top.order
    )
    each = f" of each ({', '.join(top.partition)})" if top.partition else ""
    skip = f" after {top.offset}" if top.offset else ""
    return f"first {top.limit}{skip} by ({order}){each} → {', '.join(top.columns)}"


def _recompute(part: Recompute) -> str:
    inner = legacy_names(part.graph.nodes)
    steps = []
    for node in part.graph.nodes:
        edges = [
            (_source(edge, inner), edge.projection and _projection(edge.projection))
            for edge in node.edges
        ]
        steps.append(f"{_text(node.operator)} of {edges}")
    mark = hashlib.blake2b("; ".join(steps).encode(), digest_size=6).hexdigest()
    return f"recompute {mark} ({part.reason}) → {', '.join(part.schema.names)}"


def _condition(condition: Condition, names: Sequence[str]) -> str:
    match condition:
        case Truth():
            return names[condition.value]
        case Every():
            return "(" + " and ".join(_condition(part, names) for part in condition.parts) + ")"
        case Some():
            return "(" + " or ".join(_condition(part, names) for part in condition.parts) + ")"
        case Moment():
            steps = map(_step, condition.steps)
            return " ".join([names[condition.value], condition.operator, "clock", *steps])


def _step(step: Shift | Months | Truncation) -> str:
    match step:
        case Shift():
            return f"{step.micros:+} µs"
        case Months():
            return f"{step.count:+} months"
        case Truncation():
            return f"from its {step.unit}"


def _on(left: Sequence[str], right: Sequence[str], null_safe: Sequence[bool]) -> str:
    pairs = zip(left, right, null_safe, strict=True)
    return " and ".join(f"{a} {'<=>' if safe else '='} {b}" for a, b, safe in pairs)


def _columns(names: Sequence[str], left: int, right: Sequence[str]) -> str:
    """The columns of a join by name; the first `left` of them are the left side's, and `right`
    are the others as their own side calls them."""
    listed = list(names[:left])
    for name, own in zip(names[left:], right, strict=False):  # a semi join shows none of them
        base, _, number = name.rpartition("_")
        taken = number.isdecimal() and base in names[: len(listed)]
        listed.append(f"{name} by its own name" if taken and name == own else name)
    return ", ".join(listed)


def _in_order(name: str) -> str:
    return f"`{name}`" if " " in name else name


def _duration(milliseconds: int) -> str:
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("seconds", 1_000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


# Expressions ----------------------------------------------------------------------------------


def _projection(projection: Projection) -> str:
    body = ", ".join(f"{_sql(bound)} AS `{name}`" for name, bound in projection.columns)
    return body if projection.where is None else f"{body} WHERE {_sql(projection.where)}"


def _sql(bound: Expression) -> str:
    match bound:
        case Column():
            return "`" + bound.name.replace("`", "``") + "`"
        case Literal():
            return _literal(bound.value, bound.type)
        case Call():
            return _call(bound)


def _call(call: Call) -> str:
    texts = [_sql(argument) for argument in call.arguments]
    name = call.function
    if name in _INFIX and len(texts) == 2:
        return f"({texts[0]} {name.upper()} {texts[1]})"
    match name:
        case "cast" | "try_cast":
            return f"{name.upper()}({texts[0]} AS {ddl(call.type)})"
        case "not":
            return f"(NOT {texts[0]})"
        case "negative":
            return f"(- {texts[0]})"
        case "is null" | "is not null" | "is true" | "is false":
            return f"({texts[0]} {name.upper()})"
        case "case":
            pairs = zip(texts[0:-1:2], texts[1:-1:2], strict=True)
            body = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
            return f"CASE {body} ELSE {texts[-1]} END"
        case "lambda":
            return f"({', '.join(texts[1:])}) -> {texts[0]}"
        case "in":
            return f"({texts[0]} IN ({', '.join(texts[1:])}))"
        case "get_field":
            return f"{texts[0]}.`{call.arguments[1].value}`"  # type: ignore[union-attr]
        case "window_start":
            micros = call.arguments[1].value  # type: ignore[union-attr]
            return f"window({texts[0]}, '{micros} microseconds').start"
        case "add_interval":
            months, days, micros = texts[1:]
            seconds = f"CAST({micros} / 1000000 AS DECIMAL(18,6))"
            return f"({texts[0]} + make_interval(0, {months}, 0, {days}, 0, 0, {seconds}))"
    if name in _TYPED and call.type != VARIANT:
        texts.append(_literal(ddl(call.type), STRING))
    return f"{name}({', '.join(texts)})"


def _literal(value: Value, kind: pa.DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {ddl(kind)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, int) and not is_decimal(kind):
        return str(value) if kind == pa.int32() else f"CAST({value} AS {ddl(kind)})"
    return f"CAST('{value}' AS {ddl(kind)})"
