"""What keeps views from going on where the last tick stopped, found before anything runs.

- the state was written in a form this version does not read;
- an input topic was deleted and created again, or has lost records that were not read yet;
- a topic is gone, or the beginning of one whose rows have no key.

Going on would give wrong numbers in silence, and so would a fill from what is left. The views
that this concerns are stopped and shown as they last were; the others go on. The way out is a
rebuild that somebody asks for: it fills a view anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing

import orjson

from tailrace.client.admin import Admin
from tailrace.clock import Clock
from tailrace.errors import TailraceError
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.errors import DataLostError, StateVersionError
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.ticks.tick_row import Stopped, Tick

LOOK_EVERY_SECONDS = 5.0


def formats(graph: Graph) -> dict[str, int]:
    """The form in which each kind of operator keeps its state; 1 where it never changed."""
    return {node.operator.kind: getattr(node.operator, "format", 1) for node in graph.nodes}


def identities(bootstrap: str, topics: Iterable[str]) -> dict[str, str]:
    """The identity of every topic there is; one created again has another."""
    with Admin(bootstrap) as admin:
        return named_ids(admin, topics)


def named_ids(admin: Admin, topics: Iterable[str]) -> dict[str, str]:
    """`identities`, over connections that are open."""
    return {name: number.hex() for name, number in admin.topic_ids(topics).items()}


class TopicWatch:
    """Notices topics that were deleted, or created again, while they are read."""

    def __init__(self, bootstrap: str, clock: Clock) -> None:
        self._admin = Admin(bootstrap, clock=clock)
        self._clock = clock
        self._looked_at = clock.monotonic()
        self._known: dict[str, str] = {}

    def take(self, known: Mapping[str, str]) -> None:
        """Which topics those are that earlier ticks have read."""
        self._known |= known

    def of(self, topics: Iterable[str]) -> dict[str, str]:
        """The identity of every topic read; one that has appeared is looked up once."""
        wanted = list(topics)
        new = [topic for topic in wanted if topic not in self._known]
        if new:
            self._known |= named_ids(self._admin, new)
        return {topic: self._known[topic] for topic in wanted if topic in self._known}

    def look(self, topics: Iterable[str], last: Tick, reader: LogReader) -> None:
        """Now and then: raise if one of them cannot be read on."""
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK_EVERY_SECONDS:
            return
        self._looked_at = now
        wanted = list(topics)
        ids = named_ids(self._admin, wanted)
        for topic in wanted:
            problem = lost(last, topic, reader, ids)
            if problem is not None:
                raise problem

    def check(self, topics: Collection[str], last: Tick, reader: LogReader) -> None:
        """Raise if what a tick has just read is not of the topics it goes on from: then
        nothing of it may be committed."""
        ids = named_ids(self._admin, topics)
        for topic in topics:
            if topic in self._known and ids.get(topic) != self._known[topic]:
                problem = lost(last, topic, reader, ids)
                if problem is not None:
                    raise problem

    def close(self) -> None:
        self._admin.close()


def hindrances(
    row: Tick, graph: Graph, reader: LogReader, bootstrap: str
) -> dict[str, TailraceError]:
    """By view, why it cannot go on from `row`; views without hindrance are not named."""
    kept = {node.id for node in graph.nodes} & set(row.operators)
    bad_kinds = _other_forms(row, graph)
    bad_topics = {
        topic: problem
        for topic in graph.tables
        if (problem := lost(row, topic, reader, identities(bootstrap, {topic: None}))) is not None
    }
    edges = {node.id: node for node in graph.nodes}
    found: dict[str, TailraceError] = {}
    for name, view in graph.views.items():
        if not row.keeps(name, view.node):
            continue  # it is filled anyway
        waiting, seen = [view.node], set[str]()
        while waiting and name not in found:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            topic = here.removeprefix("table:")
            if here.startswith("table:"):
                if topic in bad_topics:
                    found[name] = bad_topics[topic]
                continue
            node = edges[here]
            if node.operator.kind in bad_kinds and here in kept:
                before, now = bad_kinds[node.operator.kind]
                found[name] = StateVersionError(
                    f'view "{name}" keeps its {node.operator.kind} state in form {before}',
                    detail=f"this version reads and writes form {now}",
                    hint=f"`tailrace view rebuild {name}`, then start again; or run the version before",
                )
            waiting += [edge.source for edge in node.edges]
    return found


def remembered(stopped: Stopped) -> TailraceError:
    """The error of a view that was stopped before."""
    why = stopped.why
    kind = next(
        (k for k in (DataLostError, StateVersionError) if k.code == why["code"]), DataLostError
    )
    return kind(why["error"], detail=why.get("detail", ""), hint=why.get("hint", ""))


def _other_forms(row: Tick, graph: Graph) -> dict[str, tuple[int, int]]:
    now = formats(graph)
    read = {n.operator.kind: getattr(n.operator, "reads", ()) for n in graph.nodes}
    return {
        kind: (row.formats.get(kind, 1), form)
        for kind, form in now.items()
        if row.formats.get(kind, 1) not in (form, *read[kind])
    }


def lost(row: Tick, topic: str, reader: LogReader, ids: Mapping[str, str]) -> DataLostError | None:
    """Why `topic` cannot be read on from where `row` stopped; None if it can."""
    read = {partition: at for partition, at in row.inputs.get(topic, {}).items() if at}
    if not read:
        return None
    hint = "`tailrace view rebuild NAME` for the views that read it, then start again"
    if topic not in ids:
        return DataLostError(
            f'topic "{topic}" is gone',
            detail=f"it was read up to {_places(topic, read)}",
            hint=f"create it again and {hint}",
        )
    known = row.topics.get(topic)
    bounds = reader.bounds(topic)
    behind = {p: at for p, at in read.items() if at > bounds.get(p, (0, 0))[1]}
    if behind or (known is not None and known != ids[topic]):
        return DataLostError(
            f'topic "{topic}" was deleted and created again',
            detail=f"it was read up to {_places(topic, read)}; other records stand there now",
            hint=hint,
        )
    gone = {p: at for p, at in read.items() if at < bounds.get(p, (0, 0))[0]}
    if gone:
        return DataLostError(
            f"records of {_places(topic, gone)} are gone before they were read",
            detail=", ".join(f"{topic}/{p} begins at {bounds[p][0]} now" for p in gone),
            hint=f"lengthen retention.ms, and {hint}",
        )
    return None


def check_beginnings(graph: Graph, row: Tick, ranges: Iterable[Range], reader: LogReader) -> None:
    """Raise for a table without a key that is read for the first time and whose topic has lost
    its beginning: what left later would count against rows that nobody has seen. A `t` that is
    still there makes up for all before it."""
    for one in ranges:
        known = one.partition in row.inputs.get(one.topic, {})
        if graph.tables[one.topic].kind != "bag" or known or not one.start:
            continue
        if not _is_emptied(one, reader):
            source, _, table = one.topic.partition(".")
            raise DataLostError(
                f'topic "{one.topic}" has lost its beginning, and its table has no key',
                detail=f"{one.topic}/{one.partition} begins at {one.start}; rows from before are gone",
                hint=f"`tailrace source snapshot {source} --table {table}` writes all rows again",
            )


def _is_emptied(begins: Range, reader: LogReader) -> bool:
    """Whether a `t` stands anywhere in a partition from a range's start on."""
    _, end = reader.bounds(begins.topic)[begins.partition]
    whole = Range(begins.topic, begins.partition, begins.start, end)
    with closing(reader.read([whole])) as held:
        return any(
            _empties(key, value)
            for records in held
            for key, value in zip(records.keys, records.values, strict=True)
        )


def _empties(key: bytes | None, value: bytes | None) -> bool:
    if key is not None or value is None or b'"t"' not in value:
        return False
    try:
        return bool(orjson.loads(value)["op"] == "t")
    except (ValueError, KeyError, TypeError):
        return False


def _places(topic: str, offsets: Mapping[int, int]) -> str:
    return ", ".join(f"{topic}/{partition}:{at}" for partition, at in sorted(offsets.items()))
