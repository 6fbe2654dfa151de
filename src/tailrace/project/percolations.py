"""What is known of a project's percolations: their queries, what each costs, what matches."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.errors import UsageError
from tailrace.pipelines.compiler.declared_patterns import compile_patterns
from tailrace.pipelines.compiler.declared_percolations import CompiledPercolation
from tailrace.pipelines.engine.operators.percolate import ID, VERSION, id_json, rows_of
from tailrace.pipelines.engine.percolate.batch import Documents
from tailrace.pipelines.engine.percolate.queries import Answers, QuerySet
from tailrace.pipelines.reading.decode import decode
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.state.route import route
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.ticks.pattern_builds import holds, read_builds
from tailrace.pipelines.values.rows import Row
from tailrace.project.errors import MissingInputError
from tailrace.project.explain import answers, known_tables
from tailrace.project.load import Project
from tailrace.records.rows import read_objects

DOCUMENTS = 1_000  # events that queries are tried against, to tell what they cost
MOST_DOCUMENTS = 100_000
MOST_BYTES = 256 << 20  # of state that is looked into
MOST_SHOWN = 1_000  # queries


@dataclass(frozen=True, slots=True)
class Held:
    """The queries of a percolation as of its last tick (0: there is none yet)."""

    compiled: CompiledPercolation
    tick: int
    rows: Mapping[bytes, tuple[int, Row]]
    queries: QuerySet

    def shown(self, key: bytes) -> dict[str, Any]:
        """A query as an answer has it."""
        version, row = self.rows[key]
        columns = self.compiled.operator.queries
        kinds = columns.schema
        values = {
            name: id_json(row[at], kinds.field(name).type)
            for at, name in enumerate(columns.columns)
            if name in columns.carried
        }
        identity = id_json(row[0], kinds.field(0).type)
        return {ID: identity, VERSION: version, "query": row[1], **values}


def compiled_percolation(project: Project, bootstrap: str, name: str) -> CompiledPercolation:
    """A percolation with its types from the log, or the databases."""
    if name not in project.percolations:
        raise MissingInputError(
            f"no percolation {name!r} is declared",
            hint=f"there are: {', '.join(project.percolations) or 'none'}",
        )
    tables = {table.topic: table for table in known_tables(project, bootstrap)}
    found, wrong = compile_patterns(project.matchers, tables)
    if name in wrong:
        raise wrong[name]
    compiled = found[name]
    assert isinstance(compiled, CompiledPercolation)
    return compiled


def list_percolations(
    project: Project, reports: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Every percolation, and how it fares as its process reports."""
    told: dict[str, Any] = {}
    for report in reports:
        told |= report.get("patterns") or {}
    return [
        {
            "name": name,
            "reads": declared.input.topic,
            "queries_of": declared.queries.topic,
            "text": [f"{column}:{language}" if language else column for column, language in declared.text],
            "fields": list(declared.fields),
            "state": told.get(name, {}).get("state", "stopped"),
            "tick": told.get(name, {}).get("tick", 0),
            "lag": told.get(name, {}).get("lag"),
            "dead": told.get(name, {}).get("dead", 0),
            "error": told.get(name, {}).get("error"),
        }
        for name, declared in project.percolations.items()
    ]  # fmt: skip


def held_queries(project: Project, bootstrap: str, name: str) -> Held:
    """The queries in force, from the state of the last committed tick."""
    compiled = compiled_percolation(project, bootstrap, name)
    if not answers(bootstrap):
        raise UsageError("the log does not answer", hint="run the project: `tailrace up`")
    queries = QuerySet(compiled.operator.queries.fields)
    rows: dict[bytes, tuple[int, Row]] = {}
    with LogReader(bootstrap) as reader:
        builds = read_builds(reader, project.name, name)
    node = compiled.percolate
    # Of the build that is of this declaration: the shown one, or the one beside it.
    slot = builds.shown
    if not holds(builds.shown_row, compiled) and holds(builds.beside_row, compiled):
        slot = builds.beside
    tick = builds.rows[slot]
    if tick is None or node.id not in tick.operators:
        return Held(compiled, 0, rows, queries)
    state = project.settings.spark.state or str(
        project.settings.state_directory.resolve() / "state"
    )
    files = open_files(f"{state}-patterns/{name}{slot}")
    version = tick.state.get(0, ())
    size = sum(files.size(0, one) for one in route(files, 0, version, None).files) if version else 0
    if size > MOST_BYTES:
        raise UsageError(
            f"the queries of percolation {name!r} are too many to look into",
            detail=f"{size >> 20} MiB of state",
            hint="`tailrace pipeline status` and /metrics tell how it fares",
        )
    with (
        tempfile.TemporaryDirectory() as scratch,
        Attempt.begin(files, Path(scratch), tick.state) as attempt,
    ):
        for key, since, row in rows_of(attempt.of(0, node.id)):
            rows[key] = (since, row)
            queries.put(key, str(row[1]))
    return Held(compiled, tick.number, rows, queries)


def show_percolation(
    project: Project, bootstrap: str, name: str, documents: int = DOCUMENTS
) -> dict[str, Any]:
    """The queries of a percolation, dearest first: how often each was a candidate, matched, and
    what that cost, against the last events of the stream."""
    if not 0 <= documents <= MOST_DOCUMENTS:
        raise UsageError(f"documents is 0 to {MOST_DOCUMENTS:,}, not {documents}")
    held = held_queries(project, bootstrap, name)
    unanchored = set(held.queries.unanchored())
    costs = {key: [0, 0, 0.0] for key in held.rows}
    count = 0
    for batch in _last_documents(held.compiled, bootstrap, documents):
        count += batch.count
        _try(held.queries, batch, costs)
    order = sorted(costs, key=lambda key: (-costs[key][2], -costs[key][0], key))
    return {
        "name": name,
        "tick": held.tick,
        "count": len(held.rows),
        "documents": count,
        "queries": [
            {
                **held.shown(key),
                "candidates": int(costs[key][0]),
                "matches": int(costs[key][1]),
                "micros": round(costs[key][2] * 1e6, 1),
                "always": key in unanchored,
            }
            for key in order[:MOST_SHOWN]
        ],
    }


def _try(queries: QuerySet, batch: Documents, costs: dict[bytes, list[float]]) -> None:
    """Add what each query does with some documents."""
    answers = Answers(queries, batch)
    for key, about in costs.items():
        candidate = queries.candidacy(key, answers)
        if not candidate:
            continue
        began = SYSTEM.monotonic()
        bits = queries.answer(key, answers)
        about[2] += SYSTEM.monotonic() - began
        about[0] += candidate.bit_count()
        about[1] += bits.bit_count()


def _last_documents(
    compiled: CompiledPercolation, bootstrap: str, wanted: int
) -> Iterator[Documents]:
    """The last events of the stream, in batches."""
    table = compiled.graph.tables[compiled.topic]
    plain = replace(table, schema=table.recorded, order=None)
    with LogReader(bootstrap) as reader:
        bounds = reader.bounds(compiled.topic)
        each = -(-wanted // max(len(bounds), 1))
        ranges = [
            Range(compiled.topic, partition, max(first, end - each), end)
            for partition, (first, end) in sorted(bounds.items())
            if end > first and each
        ]
        for records in reader.read(ranges):
            envelope = compiled.topic not in compiled.plain_topics
            rows = decode(plain, records, 1, envelope=envelope).rows
            for first in range(0, rows.num_rows, DOCUMENTS):
                yield compiled.operator.documents(rows.slice(first, DOCUMENTS))


def try_event(
    project: Project, bootstrap: str, name: str, event: object, query: str | None = None
) -> dict[str, Any]:
    """Which stored queries match an event, and why; with `query` (an id as text) what that one
    has of it and what it lacks."""
    held = held_queries(project, bootstrap, name)
    batch = held.compiled.operator.documents(_event_row(held.compiled, event))
    matches = [match.key for match in held.queries.match(batch)]
    answers = Answers(held.queries, batch)
    found: dict[str, Any] = {"name": name, "tick": held.tick, "queries": len(held.rows)}
    found["matches"] = [
        {**held.shown(key), "because": held.queries.reasons(key, answers)[0]}
        for key in sorted(matches)[:MOST_SHOWN]
    ]
    found["count"] = len(matches)
    if query is not None:
        key = next((key for key in held.rows if str(held.shown(key)[ID]) == query), None)
        if key is None:
            raise UsageError(
                f"percolation {name!r} holds no query {query!r}",
                detail=f"as of tick {held.tick} it holds {len(held.rows)}",
                hint=f"one that cannot be read is in the topic {name}.dead",
            )
        has, lacks = held.queries.reasons(key, answers)
        found["query"] = {**held.shown(key), "matches": key in matches, "has": has, "lacks": lacks}
    return found


def _event_row(compiled: CompiledPercolation, event: object) -> pa.Table:
    schema = compiled.graph.tables[compiled.topic].recorded
    if not isinstance(event, dict):
        raise UsageError("an event is a JSON object", hint='--event \'{"title": "red boat"}\'')
    unknown = [name for name in event if name not in schema.names]
    if unknown:
        raise UsageError(
            f"{compiled.topic} has no column {unknown[0]!r}",
            hint=f"columns: {', '.join(schema.names)}",
        )
    rows, refused = read_objects([orjson.dumps(event)], schema)
    if refused:
        raise UsageError(
            f"this is no row of {compiled.topic}", detail=refused[0].reason,
            hint=f"columns: {', '.join(f'{field.name} {field.type}' for field in schema)}",
        )  # fmt: skip
    return rows


def explain_percolation(project: Project, bootstrap: str, name: str) -> str:
    """How a percolation is kept, in words, with the queries that cost most by their form."""
    held = held_queries(project, bootstrap, name)
    declared, compiled = held.compiled.pattern, held.compiled
    always = held.queries.unanchored()
    bare = "all" if declared.every else "any"
    lines = [
        f"percolation {name} matches queries of {declared.queries.topic} against {compiled.topic}",
        f"  bare words: {bare} of them; a query counts from the tick that reads it",
        *(f"  {node.operator.describe()}" for node in compiled.graph.nodes),
        f"  {len(held.rows)} {'query' if len(held.rows) == 1 else 'queries'} as of tick {held.tick}",
        f"  {len(always)} looked at for every event: no word or value that they need",
    ]
    lines += [f"    {held.shown(key)[ID]}: {held.rows[key][1][1]}" for key in sorted(always)[:20]]
    return "\n".join(lines)
