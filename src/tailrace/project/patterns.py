"""What is known of a project's patterns: how they are kept, and what waits in them."""

from __future__ import annotations

import marshal
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from tailrace.errors import TailraceError, UsageError
from tailrace.pipelines.compiler.declared_patterns import CompiledPattern, compile_patterns
from tailrace.pipelines.engine.changelog import json_values
from tailrace.pipelines.engine.graph import Node
from tailrace.pipelines.engine.operators.event_patterns import TOTALS, EventPattern, machine
from tailrace.pipelines.engine.patterns.drawing import Drawing, draw
from tailrace.pipelines.engine.patterns.partition import FOREVER, Partition
from tailrace.pipelines.engine.patterns.steps import parse_steps
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.state.files import StateFiles, open_files
from tailrace.pipelines.state.route import route
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.ticks.pattern_builds import Builds, holds, read_builds
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.pipelines.values.casts import format_timestamp
from tailrace.pipelines.values.rows import to_array
from tailrace.project.errors import MissingInputError
from tailrace.project.explain import answers, known_tables
from tailrace.project.load import Project

MOST_BYTES = 64 << 20  # of state that is looked into: about a second
MOST_PARTIALS = 20  # that are shown with their rows
MOST_ROWS = 25  # of each, the last ones


@dataclass(slots=True)
class Waiting:
    """What waits in the state of a pattern."""

    open: dict[str, int] = field(default_factory=dict)  # partial matches, by their last step
    totals: tuple[int, int, int] = (0, 0, 0)
    oldest: int | None = None
    queued: int = 0
    partials: list[dict[str, Any]] = field(default_factory=list)


def compiled_pattern(project: Project, bootstrap: str, name: str) -> CompiledPattern:
    """A pattern with its types from the log, or the databases."""
    if name not in project.patterns:
        raise MissingInputError(
            f"no pattern {name!r} is declared",
            hint=f"there are: {', '.join(project.patterns) or 'none'}",
        )
    tables = {table.topic: table for table in known_tables(project, bootstrap)}
    found, wrong = compile_patterns(project.patterns.values(), tables)
    if name in wrong:
        raise wrong[name]
    compiled = found[name]
    assert isinstance(compiled, CompiledPattern)
    return compiled


def list_patterns(project: Project, reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every pattern, and how it fares as its process reports."""
    told: dict[str, Any] = {}
    for report in reports:
        told |= report.get("patterns") or {}
    return [
        {
            "name": name,
            "reads": pattern.input.topic,
            "key": list(pattern.key),
            "match": pattern.match,
            "state": told.get(name, {}).get("state", "stopped"),
            "watermark": _shown_ms(next(iter(told.get(name, {}).get("watermarks", {}).values()), None)),
            "dead": told.get(name, {}).get("dead", 0),
            "late": told.get(name, {}).get("late", 0),
            "error": told.get(name, {}).get("error"),
        }
        for name, pattern in project.patterns.items()
    ]  # fmt: skip


def show_pattern(
    project: Project, bootstrap: str, name: str, key: Sequence[str] | None = None
) -> dict[str, Any]:
    """The steps of a pattern and what waits at each as of its last tick; with `key` its partial
    matches and their rows."""
    compiled = compiled_pattern(project, bootstrap, name)
    node = _events(compiled)
    drawing = drawing_of(compiled)
    if key is not None and len(key) != len(compiled.pattern.key):
        raise UsageError(
            f"the key of pattern {name!r} has {len(compiled.pattern.key)} columns, not {len(key)}",
            hint=f"give {', '.join(compiled.pattern.key)}",
        )
    if not answers(bootstrap):
        raise UsageError("the log does not answer", hint="run the project: `tailrace up`")
    with LogReader(bootstrap) as reader:
        builds = read_builds(reader, project.name, name)
    # Of the build that is of this declaration: the shown one, or the one beside it.
    slot = builds.shown
    if not holds(builds.shown_row, compiled) and holds(builds.beside_row, compiled):
        slot = builds.beside
    tick = builds.rows[slot]
    if tick is not None and node.id not in tick.operators:
        tick = None  # the last tick was of the pattern as it was declared before
    waiting = (
        Waiting()
        if tick is None
        else _waiting(project, compiled, node, drawing, tick, key, _files(project, name + slot))
    )
    mark = None if tick is None else tick.watermarks.get(compiled.topic)
    found: dict[str, Any] = {
        "name": name,
        "steps": [
            {"id": step, "variable": variable, "open": waiting.open.get(step, 0)}
            for step, variable in drawing.steps
        ],
        "edges": [list(edge) for edge in drawing.edges],
        "matches": waiting.totals[0],
        "timeouts": waiting.totals[1],
        "retracted": waiting.totals[2],
        "open": sum(waiting.open.values()),
        "oldest_open": _shown(waiting.oldest),
        "queued": waiting.queued,
        "watermark": _shown_ms(mark),
        "tick": 0 if tick is None else tick.number,
        "builds": builds_of(builds, name),
    }
    if key is not None:
        rows = [row for partial in waiting.partials for row in partial["rows"]]
        with LogReader(bootstrap) as reader:
            known = _recorded(reader, compiled, {row["place"] for row in rows})
        for row in rows:  # what the state has of it, where the record is gone
            row["row"] = known.get(row.pop("place")) or row["row"]
        found["partials"] = waiting.partials
    return found


def _recorded(
    reader: LogReader, compiled: CompiledPattern, places: Collection[tuple[int, int]]
) -> dict[tuple[int, int], dict[str, Any]]:
    """Rows as they stand in the log, by partition and offset."""
    topic, found = compiled.topic, {}
    bounds = reader.bounds(topic)
    wanted = [
        Range(topic, partition, offset, offset + 1)
        for partition, offset in sorted(places)
        if bounds.get(partition, (0, 0))[0] <= offset < bounds.get(partition, (0, 0))[1]
    ]
    for records in (records for one in wanted for records in reader.read([one])):
        for offset, value in zip(records.offsets, records.values, strict=True):
            document = orjson.loads(value) if value is not None else {}
            row = document if compiled.plain else document.get("after")
            if row:
                found[records.partition, offset] = row
    return found


# Builds -------------------------------------------------------------------------------------------


def builds_of(builds: Builds, name: str) -> list[dict[str, Any]]:
    """The builds that there are, the shown one first."""
    found: list[dict[str, Any]] = []
    for slot in (builds.shown, builds.beside):
        row = builds.rows[slot]
        if row is None or name not in row.views:
            continue
        shown = slot == builds.shown
        found.append(
            {
                "generation": row.views[name].generation,
                "topic": row.views[name].topic,
                "shown": shown,
                "waits_for": None if shown else row.build.get("mode"),
                "tick": row.number,
                "match": (row.build.get("declared") or {}).get("match"),
            }
        )
    return found


def known_builds(project: Project, bootstrap: str, name: str) -> Builds:
    """The builds of a pattern or percolation; an error for a name that is none, or before its
    first tick."""
    if name not in project.patterns and name not in project.percolations:
        listed = ", ".join([*project.patterns, *project.percolations]) or "none"
        raise MissingInputError(f"no pattern {name!r} is declared", hint=f"there are: {listed}")
    if not answers(bootstrap):
        raise UsageError("the log does not answer", hint="run the project: `tailrace up`")
    with LogReader(bootstrap) as reader:
        builds = read_builds(reader, project.name, name)
    if builds.shown_row is None:
        raise UsageError(f"{name!r} has not ticked yet", hint="run the project: `tailrace up`")
    return builds


def compare_builds(project: Project, bootstrap: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """What only the shown build has found, and what only the one beside it has: all that their
    topics still hold. A match that both found with other values is on both sides."""
    builds = known_builds(project, bootstrap, name)
    if builds.beside_row is None:
        raise UsageError(
            f"nothing is built beside {name!r}",
            hint=f"`tailrace pattern rebuild --hold {name}`, or change its declaration",
        )
    assert builds.shown_row is not None
    with LogReader(bootstrap) as reader:
        here = _found_by(reader, builds.shown_row, name)
        there = _found_by(reader, builds.beside_row, name)
    return {
        "shown": [orjson.loads(value) for value in (here - there).elements()],
        "beside": [orjson.loads(value) for value in (there - here).elements()],
    }


def _found_by(reader: LogReader, row: Tick, name: str) -> Counter[bytes]:
    """What a build has told and not taken back, from all topics it has written."""
    found: Counter[bytes] = Counter()
    for part in row.build.get("told") or [{"topic": name, "from": {}}]:
        begins, ends = part.get("from", {}), part.get("to")
        ranges = [
            Range(part["topic"], p, max(first, int(begins.get(str(p), first))),
                  end if ends is None else min(end, int(ends.get(str(p), end))))
            for p, (first, end) in reader.bounds(part["topic"]).items()
        ]  # fmt: skip
        for records in reader.read(ranges):
            for value in records.values:
                if value is None:
                    continue
                document = orjson.loads(value)
                back = document.pop("op", "match") == "retract"
                found[orjson.dumps(document, option=orjson.OPT_SORT_KEYS)] += -1 if back else 1
    return +found


def explain_pattern(project: Project, bootstrap: str, name: str) -> str:
    """How a pattern is kept, in words."""
    compiled = compiled_pattern(project, bootstrap, name)
    pattern, operator = compiled.pattern, _operator(_events(compiled))
    time = compiled.time
    wait = f"{time.delay_ms / 1000:g} s behind the newest row of each partition"
    late = {
        "correct": "change what was reported: op \"retract\", and a match again",
        "drop": "are counted and dropped",
        "side": f"go to {compiled.topic}.late",
    }[time.late]  # fmt: skip
    lines = [
        f"pattern {name} reads {compiled.topic}, by {', '.join(pattern.key)}, in the order of "
        f"{pattern.order_by}",
        f"  watermark: {wait}; a partition silent for {time.idle_ms / 1000:g} s holds none up",
        f"  late rows: {late}",
    ]
    if time.late == "correct":
        kept = "for ever: give keep=" if time.keep_ms is None else f"for {time.keep_ms / 1000:g} s"
        lines.append(f"  rows are kept {kept}")
    told = (
        "at once, and taken back when a later row changes it"
        if pattern.early
        else "when no later row can change it"
    )
    lines.append(f"  a match is reported {told}")
    if pattern.within_ms is None:
        lines.append("  no within=: a partial match waits for ever")
    lines += [f"  {node.operator.describe()}" for node in compiled.graph.nodes]
    threads = [one for one in operator.pattern.definitions if one.before is not None]
    if threads:
        lines.append("  conditions that look at rows matched before cost one step a thread and row")
    return "\n".join(lines)


def drawing_of(compiled: CompiledPattern) -> Drawing:
    pattern = compiled.pattern
    quoted = [name if f'"{name}"' in pattern.match or f"`{name}`" in pattern.match else name.upper()
              for name in pattern.until]  # fmt: skip
    steps = parse_steps(pattern.match, pattern.contiguity, quoted)
    return draw(steps.tree, _operator(_events(compiled)).pattern.program)


def _events(compiled: CompiledPattern) -> Node:
    return next(one for one in compiled.graph.nodes if isinstance(one.operator, EventPattern))


def _operator(node: Node) -> EventPattern:
    assert isinstance(node.operator, EventPattern)
    return node.operator


# State --------------------------------------------------------------------------------------------


def _files(project: Project, name: str) -> StateFiles:
    state = project.settings.spark.state or str(
        project.settings.state_directory.resolve() / "state"
    )
    return open_files(f"{state}-patterns/{name}")


def _waiting(
    project: Project, compiled: CompiledPattern, node: Node, drawing: Drawing, tick: Tick,
    key: Sequence[str] | None, files: StateFiles,
) -> Waiting:  # fmt: skip
    size = sum(
        files.size(shard, name)
        for shard, version in tick.state.items()
        if version
        for name in route(files, shard, version, None).files
    )
    if size > MOST_BYTES:
        raise TailraceError(
            f"the state of pattern {compiled.pattern.name!r} is too large to look into",
            detail=f"{size >> 20} MiB",
            hint="`tailrace status` and /metrics tell how it fares",
        )
    found = Waiting()
    with (
        tempfile.TemporaryDirectory() as scratch,
        Attempt.begin(files, Path(scratch), tick.state) as attempt,
    ):
        for shard in tick.state:
            _look(attempt.of(shard, node.id), _operator(node), drawing, key, found)
    return found


def _look(
    state: OperatorState, operator: EventPattern, drawing: Drawing, key: Sequence[str] | None,
    found: Waiting,
) -> None:  # fmt: skip
    known = state.get(TOTALS)
    if known is not None:
        totals = marshal.loads(known)
        added = [a + b for a, b in zip(found.totals, totals, strict=True)]
        found.totals = (added[0], added[1], added[2])
    found.queued += sum(1 for _ in state.scan(b"e"))
    run = machine(operator)
    at_time = operator.places[0]
    names = operator.pattern.program.names
    instructions = operator.pattern.program.instructions
    for name, value in list(state.scan(b"k")):
        told = marshal.loads(value)[0]
        partition = Partition(state, name[1:], state.get(b"h" + name[1:]))
        for at in range(told, len(partition)):
            record = partition.record(at)
            if record is None or record.reach != FOREVER:
                continue
            came = run.matcher.came(partition, at)
            if not came:
                continue
            step = drawing.of[came[-1]]
            found.open[step] = found.open.get(step, 0) + 1
            began: Any = partition[at][at_time]
            found.oldest = began if found.oldest is None else min(found.oldest, began)
            if key is None or len(found.partials) >= MOST_PARTIALS:
                continue
            if list(_texts(operator, partition[at], operator.pattern.partition)) != list(key):
                break
            found.partials.append(
                {
                    "began_at": _shown(began),
                    "reached": step,
                    "rows": [
                        {
                            "variable": names[instructions[one].a],
                            "at": _shown(partition[at + place][at_time]),  # type: ignore[arg-type]
                            "row": dict(_values(operator, partition[at + place])),
                            "place": tuple(partition[at + place][i] for i in operator.places[1:]),
                        }
                        for place, one in list(enumerate(came))[-MOST_ROWS:]
                        if names[instructions[one].a] is not None
                    ],
                }
            )


def _values(operator: EventPattern, row: Sequence[object]) -> Iterator[tuple[str, object]]:
    """What a row carries, but for what was computed of it."""
    pattern = operator.pattern
    for name, kind, value in zip(pattern.carried, pattern.carried_types, row, strict=True):
        if not name.startswith("__") and not _computed(name):
            yield name, json_values(pa.chunked_array([to_array([value], kind)]))[0]


def _computed(name: str) -> bool:
    return name[:1] == "e" and name[1:].isdigit()


def _texts(operator: EventPattern, row: Sequence[object], names: Sequence[str]) -> Iterator[str]:
    shown = dict(_values(operator, row))
    for name in names:
        yield str(shown[name])


def _shown(at: int | None) -> str | None:
    return None if at is None else format_timestamp(at).replace(" ", "T") + "Z"


def _shown_ms(at: int | None) -> str | None:
    return None if at is None else _shown(at * 1000)
