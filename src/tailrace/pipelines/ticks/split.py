"""A small tick of many views in several tasks, each with some of the views.

Views that share no operator but the first ones on their tables need nothing of each other: no
exchange lies between them. Every task reads the same ranges and runs the first operators it
needs; only one task writes the state of each. So a shard has several files of one tick, which
touch different operators, as the levels of a large tick do.

                      ┌► keyed orders ──► join ──► group ──► result       one task
    topic of orders ──┤
                      └► keyed orders ──► top ──► result                  another
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.pipelines.engine.execute import TABLE
from tailrace.pipelines.engine.graph import Graph

REPEATED = frozenset({"keyed", "bag", "stream"})  # cheap enough to run in every task
WORTH_SECONDS = 0.02  # of work that are worth a task of their own, which reads the same once more
WHOLE_EVERY = 64  # ticks; parts write no snapshots, so every so often a tick has none
_USUAL_SECONDS = 10e-6  # of an operator for a change, before it is known better
_NEWEST = 0.3  # what the last tick counts in a mean
_TELLING = 100  # changes: what a smaller tick takes has little to do with how many they are


@dataclass(frozen=True, slots=True)
class Part:
    """What one task of several does: it runs `nodes` and writes the state of `owned`."""

    number: int
    count: int  # of the parts
    nodes: frozenset[str]
    owned: frozenset[str]


@dataclass(slots=True)
class Costs:
    """What operators took for a change in the ticks so far. Only speed depends on it."""

    seconds: dict[str, float] = field(default_factory=dict)  # by operator, for one change

    def learn(self, spent: Mapping[str, float], records: int) -> None:
        """Take in what operators took in a tick of so many changes."""
        if records < _TELLING:
            return
        for name, seconds in spent.items():
            found = seconds / records
            self.seconds[name] = found + (1 - _NEWEST) * (self.seconds.get(name, found) - found)

    def of(self, name: str) -> float:
        return self.seconds.get(name, _USUAL_SECONDS)


def parts(graph: Graph, most: int, records: int, costs: Costs) -> tuple[Part, ...]:
    """The views of `graph` in at most `most` parts that take about the same time, each enough
    of it for so many changes; none if one task is as good."""
    first = {
        node.id
        for node in graph.nodes
        if node.operator.kind in REPEATED and all(e.source.startswith(TABLE) for e in node.edges)
    }
    groups: dict[str, set[str]] = {}  # by node: all it is connected with
    for node in graph.nodes:
        if node.id in first:
            continue
        group = {node.id}
        for edge in node.edges:
            group |= groups.get(edge.source, set())
        groups.update(dict.fromkeys(group, group))
    listed = sorted(sorted(group) for group in {id(g): g for g in groups.values()}.values())
    taking = [(records * sum(map(costs.of, names)), names) for names in listed]
    count = min(most, len(listed), int(sum(seconds for seconds, _ in taking) / WORTH_SECONDS))
    if count < 2:
        return ()
    made: list[tuple[float, set[str]]] = [(0.0, set()) for _ in range(count)]
    for seconds, names in sorted(taking, reverse=True):
        lightest = min(range(count), key=lambda number: made[number][0])
        made[lightest] = (made[lightest][0] + seconds, made[lightest][1] | set(names))
    sources = {node.id: {edge.source for edge in node.edges} for node in graph.nodes}
    found: list[Part] = []
    owned: set[str] = set()
    for number, (_, chosen) in enumerate(made):
        needed = chosen | (first & set[str]().union(*(sources[name] for name in chosen)))
        found.append(Part(number, count, frozenset(needed), frozenset(needed - owned)))
        owned |= needed
    return tuple(found)
