"""A new view begins with what the running project already knows.

The operators a new view shares with running ones need not see their topics again. Its fill
copies their state as it stands at the project's last tick, and hands the rows they hold (see
`incremental.contents`) to its own operators as their first changes, in ticks of bounded
size, reading from its own copy: the project may tick on, change or go meanwhile. With the
last of them the fill stands at exactly the cut of that tick, and goes on from there like any
other. What it copied is not taken over in the end; the project has it, or has dropped it
since, and then takes it over too.

                keyed orders ──► join ──► group ──► result           runs
                     └─ rows ──────────► group ──► result            new: starts from rows

Between the first and the last of these ticks the new operators see only a part of the rows,
which never stood together like that: a key may seem to be there twice. No one is shown it;
but if it makes the view fail, the fill begins again, from its topics.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from tailrace.pipelines.incremental.contents import contents, readable
from tailrace.pipelines.incremental.graph import Graph
from tailrace.pipelines.state.store import States
from tailrace.pipelines.ticks.row import Seeding, Tick

_TABLE = "table:"
Left = tuple[str, int, bytes]  # as in `Seeding.left`


def own_operators(graph: Graph, shared: Collection[str]) -> set[str]:
    """The operators between the views of `graph` and the shared ones they begin with."""
    sources = {node.id: [edge.source for edge in node.edges] for node in graph.nodes}
    own: set[str] = set()
    waiting = [view.node for view in graph.views.values()]
    while waiting:
        name = waiting.pop()
        if name in sources and name not in own and name not in shared:
            own.add(name)
            waiting += sources[name]
    return own


def sources_of(graph: Graph, names: Collection[str]) -> set[str]:
    """Everything that `names` depend on, themselves and `table:<topic>` included."""
    sources = {node.id: [edge.source for edge in node.edges] for node in graph.nodes}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += sources.get(name, [])
    return found


def shared_operators(graph: Graph, running: Collection[str], plain: Collection[str]) -> set[str]:
    """The operators whose rows the views of `graph` can begin with; `running` have state.

    A topic is either known by such operators or read from its start, never both, and so are
    all topics of a source: one cut leads through them.
    """
    operators = {node.id: node.operator for node in graph.nodes}
    possible = {name for name in running if name in operators and readable(operators[name])}
    while possible:
        own = own_operators(graph, possible)
        read = _places(graph, own, plain)
        used = {
            edge.source for node in graph.nodes if node.id in own for edge in node.edges
        } & possible
        bad = {
            name
            for name in used
            if (below := sources_of(graph, [name])) & own
            or _tables(below, plain) & read
        }  # fmt: skip
        if not bad:
            return used
        possible -= bad
    return set()


def _places(graph: Graph, own: Collection[str], plain: Collection[str]) -> set[str]:
    """The topics without cuts, and the sources, that operators read by themselves."""
    read = {edge.source for node in graph.nodes if node.id in own for edge in node.edges}
    return _tables(read, plain)


def _tables(names: Collection[str], plain: Collection[str]) -> set[str]:
    topics = {name.removeprefix(_TABLE) for name in names if name.startswith(_TABLE)}
    return {topic if topic in plain else f"{topic.split('.', 1)[0]}." for topic in topics}


def begun(
    last: Tick, graph: Graph, shared: Collection[str], running: Tick, plain: Collection[str]
) -> Tick:
    """The row a fill goes on from when it begins at the cut of `running`."""
    known = _tables(sources_of(graph, shared), plain)

    def covered(topic: str) -> bool:
        return (topic if topic in plain else f"{topic.split('.', 1)[0]}.") in known

    return replace(
        last,
        # Versions of a table are told apart by the ticks that read them.
        number=max(last.number, running.number),
        inputs={topic: by for topic, by in running.inputs.items() if covered(topic)},
        positions={s: at for s, at in running.positions.items() if f"{s}." in known},
        watermarks={topic: at for topic, at in running.watermarks.items() if covered(topic)},
        newest={
            where: seen
            for where, seen in running.newest.items()
            if covered(where.partition("@")[0].rpartition("/")[0])
        },
        seeding=Seeding(
            tuple(sorted(shared)),
            tuple((name, shard, b"") for name in sorted(shared) for shard in range(last.shards)),
        ),
    )


def read_shared(
    graph: Graph, states: States, seeding: Seeding, shards: Collection[int],
    limit: int, level: int | None = None,
) -> tuple[dict[str, dict[int, pa.Table]], tuple[Left, ...]]:  # fmt: skip
    """The next rows of the shared operators (of one level) in these shards, about `limit` of
    each shard, by operator and shard; and what is left there."""
    nodes = {node.id: node for node in graph.nodes}
    found: dict[str, dict[int, pa.Table]] = {}
    left: list[Left] = []
    room = dict.fromkeys(shards, limit)
    for name, shard, after in seeding.left:
        node = nodes[name]
        if shard not in room or (level is not None and node.level != level):
            continue
        if room[shard] <= 0:
            left.append((name, shard, after))
            continue
        rows, place = contents(node.operator, states.of(shard, name), after, room[shard])
        if rows.num_rows:
            found.setdefault(name, {})[shard] = rows
        if place is not None:
            left.append((name, shard, place))
        room[shard] -= rows.num_rows if place is None else room[shard]
    return found, tuple(left)


def rest(seeding: Seeding | None, left: Collection[Left]) -> Seeding | None:
    """What is still to be read after a tick that has left so much."""
    if seeding is None or not left:
        return None
    return replace(seeding, left=tuple(sorted(left)))


def share_read(seeding: Seeding, shards: int) -> float:
    """How much of the shared rows has been read, roughly, from 0 to 1."""
    return 1 - len(seeding.left) / max(len(seeding.shared) * shards, 1)
