"""What taking over a changed project does, worked out before anything is done.

Views are compared as the running ticks do it: by the operators that a view's SQL is compiled
to, against those whose state the last tick row names. So a view whose text changed and whose
operators did not goes on, and one whose text did not change, but what it reads did, is filled.
Everything else is compared by marks (`project.marks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tailrace.project.marks import RESTARTING, Marks

if TYPE_CHECKING:
    from tailrace.pipelines.engine.graph import Graph
    from tailrace.pipelines.reading.reader import LogReader
    from tailrace.pipelines.ticks.tick_row import Tick
    from tailrace.project.load import Project

NEW, FILL, RESTART, REMOVE, RECONFIGURE, WAIT = (
    "new",
    "rebuild",
    "restart",
    "remove",
    "take over",
    "needs a restart of `tailrace up`",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs: what becomes of it, and about how many records that reads."""

    kind: str  # view, stream, topic, source, sink, events, pattern, percolation, edge, settings
    name: str
    change: str
    records: int | None = None
    detail: str = ""
    topics: tuple[str, ...] = ()  # left over, for dropping

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "topics": list(self.topics)}


def changes(before: Marks, project: Project, now: Marks, bootstrap: str) -> list[Change]:
    """What differs between what runs (`before`) and `project`, in the order it is done."""
    from tailrace.pipelines.reading.reader import LogReader

    found = [
        Change("settings", f"[{name}]", WAIT)
        for name in RESTARTING
        if before.sections[name] != now.sections[name]
    ]
    for named in sorted(before.waiting.keys() | now.waiting.keys()):
        if before.waiting.get(named) != now.waiting.get(named):
            kind, _, name = named.partition(" ")
            both = named in before.waiting and named in now.waiting
            built = both and kind in ("pattern", "percolation")
            detail = (
                "it is then built beside the one that runs, and takes its place" if built else ""
            )
            found.append(Change(kind, name, WAIT, detail=detail))
    for name, detail in (("tick", "from the next tick on"), ("topics", "topics that are new")):
        if before.sections[name] != now.sections[name]:
            found.append(Change("settings", f"[{name}]", RECONFIGURE, detail=detail))
    if before.indexes != now.indexes:
        detail = "the process that serves views starts again and builds them"
        found.append(Change("settings", "indexes of views", RECONFIGURE, detail=detail))
    for name in sorted(before.topics.keys() & now.topics.keys()):
        if before.topics[name] != now.topics[name]:
            detail = "what reads it does so by the new declaration"
            found.append(Change("topic", name, RECONFIGURE, detail=detail))
    found += _marked("source", before.sources, now.sources, "goes on from where it is in the log")
    found += _marked("events", before.events, now.events, "its owners go on from the log")
    with LogReader(bootstrap) as reader:
        found += _views(before, project, now, reader)
        found += _streams(before.streams, now.streams, reader)
        found += _sinks(before, project, now, found, reader)
    return found


def _marked(
    kind: str, before: Mapping[str, str], now: Mapping[str, str], restarted: str
) -> Iterator[Change]:
    for name in now.keys() - before.keys():
        yield Change(kind, name, NEW)
    for name in sorted(now.keys() & before.keys()):
        if now[name] != before[name]:
            yield Change(kind, name, RESTART, detail=f"its declaration changed; {restarted}")
    for name in sorted(before.keys() - now.keys()):
        yield Change(kind, name, REMOVE, detail="its process ends; its topics stay")


def _views(before: Marks, project: Project, now: Marks, reader: LogReader) -> list[Change]:
    from tailrace.pipelines.compiler import compile_views, problems
    from tailrace.pipelines.errors import SqlTableError
    from tailrace.pipelines.reading.catalog import read_catalog
    from tailrace.pipelines.ticks.carried import as_carried
    from tailrace.pipelines.ticks.driver import last_row
    from tailrace.project.places import tell_place
    from tailrace.project.undescribed import undescribed

    # Tables that a source which begins now will describe are not known yet.
    described = before.sources != now.sources
    views = list(project.views.values())
    row = last_row(reader, project.name)
    tables = [*read_catalog(reader).tables.values()]
    if views:
        tables += undescribed(project, tables)
    functions = project.functions.values()
    wrong = problems(views, tables, functions) if views else {}
    right = [view for view in views if view.name not in wrong]
    graph = as_carried(compile_views(right, tables, functions), row) if right else None
    found: list[Change] = []
    for view in views:
        name = view.name
        fresh = name not in before.views
        if name in wrong or graph is None:
            if fresh or before.views[name] != now.views[name]:
                problem = wrong[name]
                if not (isinstance(problem, SqlTableError) and described):
                    tell_place(problem, view, project.places[name], project.directory)
                    raise problem
                words = " ".join(problem.message.split())
                found.append(Change("view", name, NEW if fresh else FILL, detail=f"waits: {words}"))
            continue
        if row is not None and _keeps(row, graph, name):
            if fresh or before.views[name] != now.views[name]:
                detail = "the same operators: nothing is read again"
                found.append(Change("view", name, NEW if fresh else RECONFIGURE, 0, detail))
            continue
        shown = row is not None and name in row.views
        if not fresh and before.views[name] == now.views[name] and not shown:
            continue  # is being filled for the first time
        detail = "what it shows now stays until it is filled" if shown else ""
        if row is not None and _shares(row, graph, name):
            detail = ", ".join(filter(None, ("begins with rows of running operators", detail)))
        count = _records(reader, graph, name)
        found.append(Change("view", name, NEW if fresh else FILL, count, detail))
    for name in sorted(before.views.keys() - now.views.keys()):
        topics = () if row is None else _topics_of(row, name)
        kept = _count(reader, topics)
        detail = f"its rows are no longer served; `tailrace view drop {name}` deletes its topics"
        found.append(Change("view", name, REMOVE, kept, detail, topics))
    return found


def _keeps(row: Tick, graph: Graph, name: str) -> bool:
    from tailrace.pipelines.ticks.failed_views import subgraph

    needed = {node.id for node in subgraph(graph, [name]).nodes}
    return row.keeps(name, graph.views[name].node) and needed <= set(row.operators)


def _shares(row: Tick, graph: Graph, name: str) -> bool:
    from tailrace.pipelines.ticks.failed_views import subgraph

    return bool({node.id for node in subgraph(graph, [name]).nodes} & set(row.operators))


def _records(reader: LogReader, graph: Graph, name: str) -> int:
    from tailrace.pipelines.ticks.failed_views import subgraph

    return _count(reader, tuple(subgraph(graph, [name]).tables))


def _count(reader: LogReader, topics: tuple[str, ...]) -> int:
    """Offsets between the first and the last record of topics: about as many records."""
    known = reader.topics()
    bounds = [reader.bounds(topic) for topic in topics if topic in known]
    return sum(high - low for by in bounds for low, high in by.values())


def _topics_of(row: Tick, name: str) -> tuple[str, ...]:
    topics = [generation.info.topic for generation in row.others.get(name, ())]
    if name in row.views:
        topics.append(row.views[name].topic)
    return tuple(dict.fromkeys(topics))


def _streams(
    before: Mapping[str, str], now: Mapping[str, str], reader: LogReader
) -> Iterator[Change]:
    for one in _marked("stream", before, now, "goes on from its checkpoint"):
        if one.change == RESTART:
            yield replace(
                one, detail="its code or declaration changed; goes on from its checkpoint"
            )
        elif one.change == REMOVE:
            known = reader.topics()
            names = (one.name, f"{one.name}.dead", f"{one.name}.retry")
            topics = tuple(topic for topic in names if topic in known)
            detail = "it stops; its topics and its checkpoint stay"
            yield replace(one, records=_count(reader, topics), detail=detail, topics=topics)
        else:
            yield one


def _sinks(
    before: Marks, project: Project, now: Marks, found: list[Change], reader: LogReader
) -> Iterator[Change]:
    filled = {one.name for one in found if one.kind == "view" and one.change == FILL}
    for one in _marked("sink", before.sinks, now.sinks, "goes on from where its target is"):
        if one.change == REMOVE:
            yield replace(one, detail="its process ends; its target keeps its rows")
        elif one.change == NEW:
            sink = project.sinks[one.name]
            of = f"of {sink.source} {sink.subject} → {sink.declaration.place}"
            begins = sink.declaration.start == "now"
            yield replace(one, records=0 if begins else _count(reader, (sink.topic,)), detail=of)
        else:
            yield one
    for name, sink in project.sinks.items():
        if before.sinks.get(name) == now.sinks[name] and sink.subject in filled:
            detail = f"changes to the new rows of {sink.subject} once they are filled"
            yield Change("sink", name, RECONFIGURE, detail=detail)
