"""What operators do, in the words of SQL: "join on customer_id = id", "group by country: count(*)".

Between operators columns have names of their own (`e0`, `sum1`, `id_2`). Here each is followed back
to what the query says: a column of a table, or the expression it stands for. For people alone;
nothing else depends on these texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tailrace.pipelines.engine.graph import Edge, Graph, Node
from tailrace.pipelines.engine.operators.aggregates import Aggregate
from tailrace.pipelines.engine.operators.counts import Counts
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.keyed import Facts, Keyed, KeylessTable
from tailrace.pipelines.engine.operators.result import BagResult, Result
from tailrace.pipelines.engine.operators.sumjoin import SumJoin
from tailrace.pipelines.engine.operators.top import Top
from tailrace.pipelines.engine.operators.window import Window, WindowFunction

LONGEST = 160  # of one expression; a longer one is cut in its middle
_NAME = re.compile(r"`((?:[^`]|``)+)`")
_NUMBER = re.compile(r"CAST\('?(-?\d+(?:\.\d+)?)'? AS (?:\w*INT|DECIMAL\(\d+,\d+\))\)")
_DEFAULT_FRAME = ("range", None, 0)


@dataclass(frozen=True, slots=True)
class Said:
    """A column in the words of the query; `table` where it is a column of one."""

    text: str
    table: str = ""

    @property
    def full(self) -> str:
        return f"{self.table}.{self.text}" if self.table else self.text


Columns = Mapping[str, Said]


class Wording:
    """The operators of a graph in words."""

    def __init__(self, graph: Graph) -> None:
        self._columns: dict[str, Columns] = {
            f"table:{topic}": {name: Said(name, topic.rpartition(".")[2]) for name in table.schema.names}
            for topic, table in graph.tables.items()
        }  # fmt: skip
        self._words: dict[str, str] = {}
        for node in sorted(graph.nodes, key=lambda one: one.level):
            self._follow(node, {one.id: one for one in graph.nodes})

    def of(self, node: Node) -> str:
        """One line about a node."""
        return self._words[node.id]

    def where(self, edge: Edge) -> str | None:
        """The condition on an edge, if it has one."""
        if edge.projection is None or edge.projection.where is None:
            return None
        return _expression(edge.projection.where.sql, self._columns.get(edge.source, {}))

    def _follow(self, node: Node, nodes: Mapping[str, Node]) -> None:
        if node.id in self._words:
            return
        for edge in node.edges:  # one that needs no exchange has the level of what reads it
            if edge.source in nodes:
                self._follow(nodes[edge.source], nodes)
        given = [self._arriving(edge) for edge in node.edges]
        self._words[node.id] = _words(node, given)
        self._columns[node.id] = _leaving(node, given)

    def _arriving(self, edge: Edge) -> Columns:
        known = self._columns.get(edge.source, {})
        if edge.projection is None:
            return known
        return {name: _followed(said.sql, known) for name, said in edge.projection.columns}


def _followed(sql: str, known: Columns) -> Said:
    """What an expression over known columns stands for."""
    plain = _NAME.fullmatch(sql)
    if plain is not None:
        name = plain[1].replace("``", "`")
        return known.get(name, Said(name))
    return Said(_expression(sql, known))


def _expression(sql: str, known: Columns) -> str:
    text = _NAME.sub(lambda found: _said(found[1].replace("``", "`"), known), sql)
    text = _NUMBER.sub(r"\1", text)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST * 2 // 3]} … {text[-LONGEST // 4 :]}"
    return _bare(text)


def _bare(text: str) -> str:
    """A text without the parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1]


def _said(name: str, known: Columns) -> str:
    return known[name].text if name in known else name


def _listed(names: Iterable[str], known: Columns) -> str:
    return ", ".join(_said(name, known) for name in names)


def _leaving(node: Node, given: Sequence[Columns]) -> Columns:
    """What the columns of a node's output stand for."""
    operator, names = node.operator, node.schema.names
    match operator:
        case Join() if operator.mode in ("semi", "anti"):
            return {name: given[0].get(name, Said(name)) for name in names}
        case Join():
            sides = [(one, given[0]) for one in operator.left]
            sides += [(one, given[1]) for one in operator.right]
            return _told_apart({out: side.get(one, Said(one)) for out, (one, side) in zip(names, sides, strict=True)})  # fmt: skip
        case SumJoin():
            amounts = _amounts(operator, given[0])
            kept = [given[0].get(one, Said(one)) for one in operator.kept]
            kept += [given[1].get(one, Said(one)) for one in operator.other]
            # A prefix of the output is columns, the rest is amounts.
            return dict(zip(names, [*kept, *amounts], strict=False))
        case Group():
            keys = {name: given[0].get(name, Said(name)) for name in operator.keys}
            found = {one.name: Said(_aggregate(one, given[0])) for one in operator.aggregates}
            return {name: found.get(name) or keys.get(name) or Said(name) for name in names}
        case Window():
            carried = [given[0].get(one, Said(one)) for one in operator.columns]
            made = [Said(_function(one, operator, given[0])) for one in operator.functions]
            return dict(zip(names, [*carried, *made], strict=False))
        case _:
            first = given[0] if given else {}
            return {name: first.get(name, Said(name)) for name in names}


def _told_apart(columns: Mapping[str, Said]) -> Columns:
    """Columns of one name with their tables; of a table beside itself, numbered."""
    twice = Counter(said.text for said in columns.values())
    found: dict[str, Said] = {}
    for name, said in columns.items():
        text = said.full if twice[said.text] > 1 else said.text
        if any(text == other.text for other in found.values()):
            text = f"{said.table}.{name}" if said.table else name
        found[name] = Said(text) if text != said.text else said
    return found


def _amounts(join: SumJoin, given: Columns) -> list[Said]:
    """What a join adds up: how many rows, and of each measure its count and its sum."""
    measures = [given.get(one, Said(one)) for one in join.measures]
    if join.added:
        return measures
    found = [Said("*")]
    for measure, summed in zip(measures, join.summed, strict=True):
        found += [measure, measure] if summed else [measure]
    return found


def _words(node: Node, given: Sequence[Columns]) -> str:
    operator = node.operator
    match operator:
        case Keyed() | KeylessTable() | Facts():
            kind = "stream" if isinstance(operator, Facts) else "table"
            keyless = " without a key" if isinstance(operator, KeylessTable) else ""
            return f"{kind} {operator.table}{keyless}: {', '.join(operator.schema.names)}"
        case Join():
            on = _condition(operator.left_keys, operator.right_keys, operator.null_safe, given)
            ends = "".join(f" until {one.column} + {one.adds}" for one in operator.expiry or ())
            apart = operator.between.describe() if operator.between is not None else ""
            named = {"inner": "join", "semi": "join where there is a match", "anti": "join where there is no match"}  # fmt: skip
            name = named.get(operator.mode, f"{operator.mode} join")
            return f"{name} on {on}{ends}{apart}" if on else f"cross {name}{ends}{apart}"
        case SumJoin():
            on = _condition(operator.keys, operator.other_keys, operator.null_safe, given)
            what = dict.fromkeys(said.text for said in _amounts(operator, given[0]))
            kept = ", ".join(one for one in what if one != "*") or "how many rows"
            return f"{'left join' if operator.outer else 'join'} on {on}, adding up {kept}"
        case Group():
            listed = ", ".join(_aggregate(one, given[0]) for one in operator.aggregates)
            keys = f"group by {_listed(operator.keys, given[0])}" if operator.keys else "over all rows"  # fmt: skip
            return f"{keys}: {listed}" if listed else keys
        case Top():
            each = f" of each {_listed(operator.partition, given[0])}" if operator.partition else ""
            skip = f" after {operator.offset}" if operator.offset else ""
            order = f" by {_order(operator.order, given[0])}" if operator.order else ""
            return f"first {operator.limit}{skip}{order}{each}"
        case Window():
            return ", ".join(_function(one, operator, given[0]) for one in operator.functions)
        case Counts():
            mode = f"{operator.mode} of" if operator.mode != "distinct" else "distinct"
            return f"{mode} {_listed(operator.schema.names, given[0])}"
        case Result() | BagResult():
            return operator.describe()  # its columns are the view's
        case _:
            known = {n: said.text for columns in reversed(given) for n, said in columns.items()}
            internal = {name: text for name, text in known.items() if name != text}
            return re.sub(r"\w+", lambda found: internal.get(found[0], found[0]), operator.describe())  # fmt: skip


def _condition(
    left: Sequence[str], right: Sequence[str], null_safe: Sequence[bool], given: Sequence[Columns]
) -> str:
    parts = []
    for one, other, safe in zip(left, right, null_safe, strict=True):
        ours, theirs = given[0].get(one, Said(one)), given[1].get(other, Said(other))
        same = ours.text == theirs.text
        a, b = (ours.full, theirs.full) if same else (ours.text, theirs.text)
        parts.append(f"{a} {'<=>' if safe else '='} {b}")
    return " and ".join(parts)


def _aggregate(aggregate: Aggregate, given: Columns) -> str:
    arguments = list(dict.fromkeys(_said(name, given) for name in aggregate.arguments))
    listed = ", ".join((*arguments, *map(str, aggregate.parameters))) or "*"
    # Equal places are ordered by the value, so that the answer is one; nobody wrote that.
    wanted = [one for one in aggregate.order if _said(one[0], given) not in arguments]
    order = f" order by {_order(wanted, given)}" if wanted else ""
    condition = f" filter (where {_said(aggregate.condition, given)})" if aggregate.condition else ""  # fmt: skip
    distinct = "distinct " if aggregate.distinct else ""
    return f"{aggregate.function}({distinct}{listed}{order}){condition}{aggregate.kept}"


def _order(order: Sequence[tuple[str, bool, bool]], given: Columns) -> str:
    """As written: NULLs stand first in ascending order and last in descending, unless said."""
    return ", ".join(
        f"{_said(name, given)}{' desc' if descending else ''}"
        + ("" if nulls_first != descending else f" nulls {'first' if nulls_first else 'last'}")
        for name, descending, nulls_first in order
    )


def _function(function: WindowFunction, window: Window, given: Columns) -> str:
    listed = ", ".join((*(_said(one, given) for one in function.arguments), *map(str, function.parameters)))  # fmt: skip
    over = []
    if window.partition:
        over.append(f"partition by {_listed(window.partition, given)}")
    if window.order:
        over.append(f"order by {_order(window.order, given)}")
    if function.frame != _DEFAULT_FRAME and window.order:
        kind, start, end = function.frame
        over.append(f"{kind} between {_bound(start, 'preceding')} and {_bound(end, 'following')}")
    condition = f" filter (where {_said(function.condition, given)})" if function.condition else ""
    return f"{function.function}({listed}){condition} over ({' '.join(over)})"


def _bound(at: int | float | None, unbounded: str) -> str:
    if at is None:
        return f"unbounded {unbounded}"
    if at == 0:
        return "current row"
    return f"{abs(at)} {'preceding' if at < 0 else 'following'}"
