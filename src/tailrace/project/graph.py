"""The topology of a project: what feeds what.

Nodes are sources, tables (change topics), topics, streams, views and sinks; an edge
points from what is read to what reads it. The graph is acyclic, or `build` refuses it.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tailrace.mirroring.plan import OWN_LOG, MirrorPlan
from tailrace.pipelines.declare import Pattern, Percolation, Stream, View
from tailrace.pipelines.errors import ViewError
from tailrace.project.errors import (
    AmbiguousTableError,
    CycleError,
    HistoryNeededError,
    MissingInputError,
    NameClashError,
)
from tailrace.project.load import Project
from tailrace.project.places import tell_place
from tailrace.records.event_headers import STATE_TOPIC
from tailrace.sinks.declare import Topic as TopicSink
from tailrace.sources.declare import Inserts, Source, TableRef, default_schema, for_table, patterns
from tailrace.sources.edges.declare import Multicast


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One thing in the topology; `name` is unique, `kind` says what it is."""

    name: str
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Topology:
    """Nodes in an order in which every input comes before its readers, and edges."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "nodes": [asdict(node) for node in self.nodes],
            "edges": [{"from": a, "to": b} for a, b in self.edges],
        }

    def made_of(self, name: str, through: Collection[str] | None = None) -> list[GraphNode]:
        """What reads a topic, and what reads that, as far as it goes: by way of nodes of these
        kinds, or of any."""
        reached = {name}
        found: list[GraphNode] = []
        for node in self.nodes:  # inputs come first
            if any(reader == node.name and giver in reached for giver, reader in self.edges):
                if through is None or node.kind in through:
                    reached.add(node.name)
                found.append(node)
        return found

    def text(self) -> str:
        """A tree of readers under each node that reads nothing."""
        readers: dict[str, list[str]] = {}
        for giver, reader in self.edges:
            readers.setdefault(giver, []).append(reader)
        kinds = {node.name: node for node in self.nodes}
        read = {reader for _, reader in self.edges}

        def lines(name: str, depth: int) -> Iterator[str]:
            node = kinds[name]
            yield f"{'  ' * depth}{'└ ' if depth else ''}{node.kind} {node.label}"
            for reader in readers.get(name, []):
                yield from lines(reader, depth + 1)

        roots = [node.name for node in self.nodes if node.name not in read]
        return "\n".join(line for root in roots for line in lines(root, 0))

    def mermaid(self) -> str:
        """The same as a Mermaid flowchart."""
        shapes = {
            "source": "[({})]", "edge": "[({})]", "connector": "[({})]", "table": "[[{}]]", "topic": "[[{}]]",
            "stream": "({})", "pattern": "{{{{{}}}}}", "percolation": "{{{{{}}}}}", "view": "({})", "sink": "[/{}/]",
            "mirror": "{{{{{}}}}}", "cluster": "[({})]",
        }  # fmt: skip
        numbers = {node.name: f"n{index}" for index, node in enumerate(self.nodes)}
        out = ["flowchart LR"]
        for node in self.nodes:
            label = node.label.replace('"', "'")
            out.append(f"  {numbers[node.name]}" + shapes[node.kind].format(f'"{label}"'))
        out += [f"  {numbers[a]} --> {numbers[b]}" for a, b in self.edges]
        return "\n".join(out)


def build(project: Project) -> Topology:
    """The topology, or an error that names the declaration at fault."""
    _refuse_taken_names(project)
    nodes: dict[str, GraphNode] = {}
    edges: list[tuple[str, str]] = []

    def add(name: str, kind: str, label: str) -> str:
        nodes.setdefault(name, GraphNode(name, kind, label))
        return name

    for source in project.sources.values():
        add(f"source:{source.name}", "source", source.name)
        for pattern in patterns(source):
            if "*" not in pattern:
                table = source.table(pattern)
                add(table.topic, "table", table.topic)
                edges.append((f"source:{source.name}", table.topic))
    for topic in project.topics.values():
        add(topic.name, "topic", topic.name)
    for declared in project.events.values():
        add(declared.name, "topic", declared.name)
        if declared.publish:
            add(declared.state_topic, "topic", declared.state_topic)
            edges.append((declared.name, declared.state_topic))
    for edge in project.edges.values():
        add(f"edge:{edge.name}", "edge", edge.name)
        edges += [(f"edge:{edge.name}", add(name, "topic", name)) for name in edge.writes]
        if isinstance(edge, Multicast) and edge.send is not None:
            edges.append((add(edge.send, "topic", edge.send), f"edge:{edge.name}"))
    for name, given in project.settings.connect.connectors.items():
        add(f"connector:{name}", "connector", name)
        if "topic" in given:
            edges.append((f"connector:{name}", add(given["topic"], "topic", given["topic"])))
        for topic_name in filter(None, map(str.strip, given.get("topics", "").split(","))):
            edges.append((add(topic_name, "topic", topic_name), f"connector:{name}"))
    for stream in project.streams.values():
        add(stream.name, "stream", stream.name)
    for events in project.patterns.values():
        add(events.name, "pattern", events.name)
        if events.timeouts:
            name = f"{events.name}.timeouts"
            edges.append((events.name, add(name, "topic", name)))
    for percolation in project.percolations:
        add(percolation, "percolation", percolation)
    for view in project.views.values():
        add(view.name, "view", view.name)
    for stream in project.streams.values():
        edges += [(stream.name, add(topic.name, "topic", topic.name)) for topic in stream.outputs]
    for reader, giver in _readings(project):
        if giver not in nodes:
            table_source = giver.split(".", 1)[0]
            add(giver, "table", giver)
            edges.append((f"source:{table_source}", giver))
        edges.append((giver, reader))
    for plan in project.mirrors.values():
        _add_mirror(project, plan, add, edges)
    for sink in project.sinks.values():
        add(f"sink:{sink.name}", "sink", sink.name)
        edges.append((sink.subject, f"sink:{sink.name}"))
        target = sink.declaration
        if (
            isinstance(target, TopicSink)
            and target.bootstrap is None
            and target.topic in project.topics
        ):
            edges.append((f"sink:{sink.name}", target.topic))
    unique = list(dict.fromkeys(edges))
    return Topology(tuple(_ordered(nodes, unique, project.places)), tuple(unique))


def _add_mirror(
    project: Project,
    plan: MirrorPlan,
    add: Callable[[str, str, str], str],
    edges: list[tuple[str, str]],
) -> None:
    """A mirror between the clusters it reads and writes. The project's own log stands as the topics
    that the project names; where records go both ways a cluster has a node for each direction, so
    that nothing runs in a circle."""
    node = add(f"mirror:{plan.name}", "mirror", plan.name)
    own = OWN_LOG not in project.settings.clusters
    wanted = re.compile(plan.topics_pattern)
    named = [name for name in (*project.topics, *project.streams) if wanted.fullmatch(name)]
    if plan.source != OWN_LOG or not own:
        edges.append((add(f"from:{plan.source}", "cluster", plan.source), node))
    else:
        edges.extend((name, node) for name in named)
    if plan.target != OWN_LOG or not own:
        edges.append((node, add(f"to:{plan.target}", "cluster", plan.target)))
    elif plan.source != plan.target:
        edges.extend((node, name) for name in named if name in project.topics)


def writers(project: Project) -> dict[str, str]:
    """Topics that a part of the project writes, and what they hold."""
    taken = _side_topics(project)
    for source in project.sources.values():
        for pattern in patterns(source):
            if "*" not in pattern:
                topic = source.table(pattern).topic
                taken[topic] = f"the changes of a table of source {source.name}"
    taken |= {name: f"the events of {name}" for name in project.events}
    taken |= {name: f"the rows of stream {name}" for name in project.streams}
    taken |= {name: f"what pattern {name} finds" for name in project.patterns}
    taken |= {name: f"what percolation {name} finds" for name in project.percolations}
    return taken | {name: f"the rows of view {name}" for name in project.views}


def _side_topics(project: Project) -> dict[str, str]:
    """Topics beside those that are declared, and what they hold."""
    taken = {f"{project.name}.dead": "the records that views of the project cannot read"}
    for known in project.sources:
        taken[f"{known}.transactions"] = f"the transactions of source {known}"
        taken[f"{known}.schemas"] = f"the schemas of source {known}"
    for edge in project.edges.values():
        taken |= dict.fromkeys(edge.writes, f"what edge {edge.name} takes in")
    for stream in project.streams:
        taken |= {
            f"{stream}.{end}": f"dead letters of stream {stream}" for end in ("dead", "retry")
        }
    for sink in project.sinks:
        taken.setdefault(f"{sink}.dead", f"dead letters of sink {sink}")
    for declared in project.events.values():
        if declared.publish:
            taken[declared.state_topic] = f"the states of the event topic {declared.name}"
    for topic in project.topics.values():
        if topic.time is not None:
            taken[f"{topic.name}.late"] = f"late rows of topic {topic.name}"
    for pattern in project.patterns.values():
        taken[f"{pattern.name}.dead"] = f"dead letters of pattern {pattern.name}"
        if pattern.timeouts:
            taken[f"{pattern.name}.timeouts"] = f"what pattern {pattern.name} waited for in vain"
    for name in project.percolations:
        taken[f"{name}.dead"] = f"dead letters of percolation {name}"
    for reaction in project.reactions.values():
        taken[reaction.topic] = f"what reaction {reaction.name} records"
    if project.settings.registry.listen is not None:
        taken["_schemas"] = "the schemas of the project's registry"
    if project.settings.connect.listen is not None:
        given = project.settings.connect.settings
        for kind, name in (("config", "configs"), ("offset", "offsets"), ("status", "status")):
            topic_name = given.get(f"{kind}.storage.topic", f"connect-{name}")
            taken[topic_name] = "what the project's worker for connectors keeps"
    return taken


def _refuse_taken_names(project: Project) -> None:
    """What writes the topic of its name must be alone with it: views, streams, patterns, events."""
    taken = _side_topics(project)
    matchers = (one.name for one in project.matchers)
    for name in (*project.views, *project.streams, *matchers, *project.events):
        parts = name.split(".")
        source = project.sources.get(parts[0])
        if source is not None and len(parts) == 3 and _captures(source, parts[1], parts[2]):
            taken[name] = f"the changes of a table of source {source.name}"
        base, _, number = name.rpartition(".")
        if base in project.views and number.isdigit():
            taken[name] = f"generation {number} of view {base}, if there is one"
        if name in taken:
            raise _clash(project, name, f"its topic holds {taken[name]}")
    cased: dict[str, str] = {}
    for name in project.views:
        other = cased.setdefault(name.casefold(), name)
        if other != name:
            raise _clash(
                project, name, f"{other!r} is declared at {project.places[other]}; SQL does not "
                "tell capital letters from small ones",
            )  # fmt: skip


def _clash(project: Project, name: str, why: str) -> NameClashError:
    error = NameClashError(
        f"the name {name!r} is taken",
        detail=f"{why}\ndeclared at {project.places[name]}",
        hint="rename it; names become topics",
    )
    error.about = (name,)
    return error


def _readings(project: Project) -> Iterator[tuple[str, str]]:
    """(reader, what it reads) for every stream and view."""
    for stream in project.streams.values():
        for given in stream.inputs:
            if isinstance(given, Inserts) and given.table.history is None:
                raise HistoryNeededError(
                    f"{stream.name} reads the inserts of {given.table.name}, which has no history",
                    detail=f"declared at {project.places[stream.name]}",
                    hint=f'give the source history={{"{given.table.table}": "90 days"}}',
                )
            table = getattr(given, "table", None)
            if isinstance(table, TableRef):
                _refuse_uncaptured(project, stream, table)
            if (
                isinstance(given, Stream | View | Pattern | Percolation)
                and given.name not in project.places
            ):
                raise _missing(project, stream.name, given.name)
            yield stream.name, given.topic
    for pattern in project.matchers:
        read = pattern.input
        if isinstance(read, Inserts) and read.table.history is None:
            raise HistoryNeededError(
                f"{pattern.name} reads the inserts of {read.table.name}, which has no history",
                detail=f"declared at {project.places[pattern.name]}",
                hint=f'give the source history={{"{read.table.table}": "90 days"}}',
            )
        if isinstance(read, Pattern | Percolation) and read.name not in project.places:
            raise _missing(project, pattern.name, read.name)
        yield pattern.name, read.topic
        if isinstance(pattern, Percolation):
            table = pattern.queries
            if isinstance(table, TableRef):
                _refuse_uncaptured(project, pattern, table)
            yield pattern.name, table.topic
    for view in project.views.values():
        for parts in tables_of(view):
            try:
                yield view.name, resolve_table(project, view, parts)
            except (MissingInputError, AmbiguousTableError) as error:
                error.about = (view.name,)
                error.detail = place_of_table(view, parts) or error.detail
                tell_place(error, view, project.places[view.name], project.directory)
                raise


def _refuse_uncaptured(project: Project, stream: Stream | Percolation, table: TableRef) -> None:
    source = project.sources.get(table.source)
    if source is None or not _captures(source, table.schema, table.table):
        raise _missing(project, stream.name, f"{table.source}.{table.table}")


def tables_of(view: View) -> list[tuple[str, ...]]:
    """The names of the tables a view's SQL reads, without its own CTEs."""
    from sqlglot import exp

    from tailrace.pipelines.compiler.syntax.parse import parse

    try:
        tree = parse(view.sql, view.name)
    except ViewError:
        return []  # the compiler tells it better, with line and column
    inner = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    found: dict[tuple[str, ...], None] = {}
    for table in tree.find_all(exp.Table):
        parts = tuple(part.name for part in table.parts)
        if parts and not (len(parts) == 1 and parts[0] in inner):
            found[parts] = None
    return list(found)


def place_of_table(view: View, parts: tuple[str, ...]) -> str:
    """Where a view's SQL names a table."""
    from sqlglot import exp

    from tailrace.pipelines.compiler.syntax.parse import parse, place

    for table in parse(view.sql, view.name).find_all(exp.Table):
        if tuple(part.name for part in table.parts) == parts:
            return place(view.sql, table)
    return ""


def resolve_table(project: Project, view: View, parts: tuple[str, ...]) -> str:
    """The topic that `shop.orders`, `shop.public.orders` or a bare name stands for."""
    name = ".".join(parts)
    if name in project.views or name in project.streams or name in project.topics:
        return name
    if name in project.percolations:
        return name
    if name.removesuffix(".timeouts") in project.patterns:
        known = project.patterns[name.removesuffix(".timeouts")]
        if known.name == name or known.timeouts:
            return name
    if parts[0] in project.events:
        return _events_topic(project, view, parts)
    if len(parts) == 1:
        raise _missing(project, view.name, name)
    source = project.sources.get(parts[0])
    if source is None:
        raise _missing(project, view.name, name)
    if len(parts) == 3:
        if not _captures(source, parts[1], parts[2]):
            raise _missing(project, view.name, name)
        return name
    fitting = _schemas_with(source, parts[1])
    if not fitting:
        raise _missing(project, view.name, name)
    if len(fitting) > 1:
        raise AmbiguousTableError(
            f"{name} could be any of {', '.join(f'{schema}.{parts[1]}' for schema in fitting)}",
            detail=f"in view {view.name}, {project.places[view.name]}",
            hint=f"write {parts[0]}.{fitting[0]}.{parts[1]}",
        )
    return f"{parts[0]}.{fitting[0]}.{parts[1]}"


def _events_topic(project: Project, view: View, parts: tuple[str, ...]) -> str:
    """The topic behind `accounts`, `accounts.deposited` (the events of one type) and
    `accounts.state`."""
    declared = project.events[parts[0]]
    name = ".".join(parts)
    types = {each.name.lower() for each in declared.types}
    if len(parts) == 1:
        return name
    if len(parts) == 2 and parts[1].lower() == STATE_TOPIC[1:] and declared.publish:
        return f"{declared.name}{STATE_TOPIC}"
    if len(parts) == 2 and parts[1].lower() in types:
        return declared.name
    error = _missing(project, view.name, name)
    if parts[1].lower() == STATE_TOPIC[1:]:
        error.hint = f'publish the states: tr.events("{declared.name}", …, publish=True)'
    raise error


def table_topic(project: Project, name: str) -> str:
    """The change topic of a captured table, by `shop.orders` or `shop.public.orders`."""
    parts = tuple(name.split("."))
    source = project.sources.get(parts[0])
    if source is not None and len(parts) == 2:
        fitting = _schemas_with(source, parts[1])
        if len(fitting) == 1:
            return f"{parts[0]}.{fitting[0]}.{parts[1]}"
    if source is not None and len(parts) == 3 and _captures(source, parts[1], parts[2]):
        return name
    raise MissingInputError(
        f"no source captures the table {name!r}", hint="write source.table or source.schema.table"
    )


def _schemas_with(source: Source, table: str) -> list[str]:
    """The schemas the source's patterns name in which it captures `table`."""
    default = default_schema(source)
    named = {pattern.rpartition(".")[0] or default for pattern in patterns(source)}
    return [schema for schema in sorted(named) if _captures(source, schema, table)]


def _captures(source: Source, schema: str, table: str) -> bool:
    default = default_schema(source)
    for pattern in patterns(source):
        pattern_schema, _, pattern_table = pattern.rpartition(".")
        if fnmatch.fnmatch(schema, pattern_schema or default) and fnmatch.fnmatch(
            table, pattern_table
        ):
            return for_table(dict.fromkeys(source.exclude, True), schema, table) is None
    return False


def _missing(project: Project, reader: str, name: str) -> MissingInputError:
    known = [
        *project.views,
        *project.streams,
        *(one.name for one in project.matchers),
        *project.topics,
    ]
    for declared in project.events.values():
        known += [
            declared.name,
            *(f"{declared.name}.{each.name.lower()}" for each in declared.types),
        ]
        known += [declared.state_topic] if declared.publish else []
    for source in project.sources.values():
        known += [f"{source.name}.{pattern}" for pattern in patterns(source)]
    near = difflib.get_close_matches(name, known, n=1)
    return MissingInputError(
        f"{reader} reads {name}, which nothing provides",
        detail=f"declared at {project.places[reader]}",
        hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'nothing yet'}",
    )


def _ordered(
    nodes: dict[str, GraphNode], edges: list[tuple[str, str]], places: Mapping[str, str]
) -> list[GraphNode]:
    waiting = {name: {giver for giver, reader in edges if reader == name} for name in nodes}
    done: list[GraphNode] = []
    while waiting:
        ready = [name for name, givers in waiting.items() if not givers]
        if not ready:
            circle = _circle(waiting)
            error = CycleError(
                f"{' → '.join(circle)} feed each other in a circle"
                if len(circle) > 2
                else f"{circle[0]} reads itself",
                detail="\n".join(
                    f"{name} is declared at {places[name]}"
                    for name in circle[:-1]
                    if name in places
                ),
                hint="read one of them from a topic that another project writes"
                if len(circle) > 2
                else "read the tables it is made of",
            )
            error.about = tuple(circle)
            raise error
        for name in ready:
            del waiting[name]
            done.append(nodes[name])
        for givers in waiting.values():
            givers.difference_update(ready)
    return done


def _circle(waiting: dict[str, set[str]]) -> list[str]:
    path = [next(iter(waiting))]
    while True:
        giver = next(name for name in waiting[path[-1]] if name in waiting)
        if giver in path:
            return [*path[path.index(giver) :], giver][::-1]
        path.append(giver)
