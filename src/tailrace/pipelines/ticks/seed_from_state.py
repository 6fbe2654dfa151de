"""A new view begins with what the running project already knows.

The operators a new view shares with running ones need not see their topics again. Its fill
copies their state as it stands at the project's last tick, and hands the rows they hold (see
`engine.contents`) to its own operators as their first changes, in ticks of bounded
size, reading from its own copy: the project may tick on, change or go meanwhile. With the
last of them the fill stands at exactly the cut of that tick, and goes on from there like any
other. What it copied is not taken over in the end; the project has it, or has dropped it
since, and then takes it over too.

                keyed orders ──► join ──► group ──► result           runs
                     └─ rows ──────────► group ──► result            new: starts from rows

A table of the same source that no running operator reads is read from its topic, from the
start to where that cut leaves it, in the same ticks.

Between the first and the last of these ticks the new operators see only a part of the rows,
which never stood together like that: a key may seem to be there twice. No one is shown it;
but if it makes the view fail, the fill begins again, from its topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from tailrace.pipelines.engine.contents import contents, readable
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.errors import PipelineError
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.state.store import States
from tailrace.pipelines.ticks.planner import Plan, cursor, parse_cuts
from tailrace.pipelines.ticks.tick_row import Offsets, Seeding, Tick

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


def shared_operators(graph: Graph, running: Collection[str]) -> set[str]:
    """The operators whose rows the views of `graph` can begin with; `running` have state.

    A topic is either known by such operators or read from its start, never both.
    """
    operators = {node.id: node.operator for node in graph.nodes}
    possible = {name for name in running if name in operators and readable(operators[name])}
    while possible:
        own = own_operators(graph, possible)
        read = _read_by(graph, own)
        used = {
            edge.source for node in graph.nodes if node.id in own for edge in node.edges
        } & possible
        bad = {
            name
            for name in used
            if (below := sources_of(graph, [name])) & own or _topics(below) & read
        }
        if not bad:
            return used
        possible -= bad
    return set()


def _read_by(graph: Graph, own: Collection[str]) -> set[str]:
    """The topics that operators read by themselves."""
    return _topics(e.source for node in graph.nodes if node.id in own for e in node.edges)


def _topics(names: Iterable[str]) -> set[str]:
    return {name.removeprefix(_TABLE) for name in names if name.startswith(_TABLE)}


def _source(topic: str) -> str:
    return topic.split(".", 1)[0]


def unread(
    graph: Graph, shared: Collection[str], running: Tick, plain: Collection[str]
) -> dict[str, Mapping[int, int]]:
    """Tables that the fill reads from their start although it begins at the cut of `running`:
    where that cut leaves each."""
    known = {_source(topic) for topic in _topics(sources_of(graph, shared)) - set(plain)}
    read = _read_by(graph, own_operators(graph, shared)) - set(plain)
    return {topic: running.inputs.get(topic, {}) for topic in read if _source(topic) in known}


def is_copied(topics: Iterable[str], running: Tick, reader: LogReader) -> bool:
    """Whether all of these tables are copied whole at the cut of `running`, as far as that
    is known: until then their views wait."""
    for source in {_source(topic) for topic in topics}:
        at = cursor(running, source)
        last = Range(f"{source}.transactions", 0, at - 1, at)
        try:
            cuts = [cut for records in reader.read([last]) for cut in parse_cuts(records)]
        except PipelineError:
            return False
        if not cuts or not cuts[-1].copying.isdisjoint(topics):
            return False
    return True


def begun(
    last: Tick, graph: Graph, shared: Collection[str], running: Tick, plain: Collection[str]
) -> Tick:
    """The row a fill goes on from when it begins at the cut of `running`."""
    topics = _topics(sources_of(graph, shared))
    sources = {_source(topic) for topic in topics - set(plain)}
    ends = unread(graph, shared, running, plain)

    def covered(topic: str) -> bool:
        return topic in topics if topic in plain else _source(topic) in sources

    return replace(
        last,
        # Versions of a table are told apart by the ticks that read them.
        number=max(last.number, running.number),
        inputs={
            topic: by
            for topic, by in running.inputs.items()
            if covered(topic) and topic not in ends
        },
        positions={s: at for s, at in running.positions.items() if s in sources},
        watermarks={topic: at for topic, at in running.watermarks.items() if covered(topic)},
        newest={
            where: seen
            for where, seen in running.newest.items()
            if covered(where.partition("@")[0].rpartition("/")[0])
        },
        seeding=Seeding(
            tuple(sorted(shared)),
            tuple((name, shard, b"") for name in sorted(shared) for shard in range(last.shards)),
            ends,
        ),
    )


def go_on(last: Tick, reader: LogReader, limit: int) -> Plan:
    """The next tick of a fill that begins with rows: some of them, and some records of the
    topics beside them."""
    seeding = last.seeding
    assert seeding is not None
    inputs = {topic: dict(by) for topic, by in last.inputs.items()}
    ranges: list[Range] = []
    room = limit
    for topic, by in sorted(seeding.ends.items()):
        read = inputs.setdefault(topic, {})
        firsts = {p: low for p, (low, _) in reader.bounds(topic).items()} if by else {}
        for partition, end in sorted(by.items()):
            start = max(read.get(partition, 0), firsts.get(partition, 0))
            stop = min(end, start + room)
            if stop > start:
                ranges.append(Range(topic, partition, start, stop))
                room -= stop - start
            read[partition] = max(start, stop)
    return Plan(tuple(ranges), inputs, last.positions, None, seeding=seeding)


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


def rest(seeding: Seeding | None, left: Collection[Left], inputs: Offsets) -> Seeding | None:
    """What is still to be read after a tick that has left so much, and has read so far."""
    if seeding is None or not (left or _share_of_topics(seeding, inputs) < 1):
        return None
    return replace(seeding, left=tuple(sorted(left)))


def _share_of_topics(seeding: Seeding, inputs: Offsets) -> float:
    wanted = sum(sum(by.values()) for by in seeding.ends.values())
    missing = sum(
        max(end - inputs.get(topic, {}).get(partition, 0), 0)
        for topic, by in seeding.ends.items()
        for partition, end in by.items()
    )
    return 1 - missing / wanted if wanted else 1.0


def share_read(seeding: Seeding, shards: int, inputs: Offsets) -> float:
    """How much has been read of the shared rows and of the topics beside them, whichever is
    less; roughly, from 0 to 1."""
    rows = 1 - len(seeding.left) / max(len(seeding.shared) * shards, 1)
    return min(rows, _share_of_topics(seeding, inputs))
