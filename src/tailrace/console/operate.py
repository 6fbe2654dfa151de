"""Routes that look deeper, and those that change something: an operator's hands.

Everything that changes something is a POST with a JSON body; a reset only shows what it
would do until `execute` is true.
"""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Query, Response
from pydantic import BaseModel, Field

from tailrace.client.ranges import KafkaRanges, Range
from tailrace.console.errors import UnknownNameError
from tailrace.console.live import Live
from tailrace.console.records import text
from tailrace.console.schemas import schema_history
from tailrace.console.topic_operations import add_topic_operations
from tailrace.errors import UsageError
from tailrace.project.load import Project
from tailrace.telemetry.part import read_reports

if TYPE_CHECKING:
    from tailrace.console.app import Served

MOST_LETTERS = 500
MOST_DIFFERENCES = 100
Answer = type[Response]
_looking = threading.Lock()  # into the state of a pattern: it is read from its files
_verifying = threading.Lock()  # a comparison reads everything: one at a time


class ResetQuestion(BaseModel):
    """Where a group goes on: earliest, latest, an offset, or a time."""

    to: str = Field(min_length=1, max_length=60)
    topics: list[str] | None = Field(default=None, max_length=1000)
    execute: bool = False


class VerifyQuestion(BaseModel):
    """Whether differences are repaired as the log has them."""

    repair: bool = False


def add_operations(app: FastAPI, served: Served, live: Live, answer: Answer) -> None:
    """All of them."""
    _add_groups(app, served, live, answer)
    _add_copies(app, served, answer)
    _add_pipelines(app, served, answer)
    _add_patterns(app, served, answer)
    _add_percolations(app, served, answer)
    _add_letters(app, served, answer)
    _add_past(app, served, answer)
    add_topic_operations(app, served, answer)


def _add_groups(app: FastAPI, served: Served, live: Live, answer: Answer) -> None:
    @app.get("/api/history")
    def history(name: Annotated[str, Query(max_length=500)]) -> Response:
        """A figure over the last half hour: group:NAME, topic:NAME, part:KIND-NAME."""
        return answer(live.history.series(name))

    @app.post("/api/groups/{name}/reset")
    def reset(name: str, question: ResetQuestion) -> Response:
        """Move a group's offsets; without `execute` only say what would change."""
        return answer(reset_group(served.bootstrap, name, question))

    @app.get("/api/schemas")
    def schemas() -> Response:
        """Every version of every captured table."""
        reader = KafkaRanges(served.bootstrap)
        try:
            return answer({"tables": schema_history(reader, served.project.sources)})
        finally:
            reader.close()


def reset_group(bootstrap: str, name: str, question: ResetQuestion) -> dict[str, Any]:
    """Plan a reset, and carry it out if told to; a group with members is refused."""
    from tailrace.client.admin import Admin
    from tailrace.client.groups import Groups
    from tailrace.client.reset import target_offsets

    with Admin(bootstrap, timeout=10.0) as admin:
        groups = Groups(admin)
        committed = groups.offsets(name)
        wanted = set(question.topics or ()) or {topic for topic, _ in committed}
        places = sorted(place for place in committed if place[0] in wanted)
        if not places:
            raise UnknownNameError(
                f"group {name!r} has no offsets there to move",
                hint=f"it has committed in: {', '.join(sorted({t for t, _ in committed})) or 'nothing'}",
            )
        moved = target_offsets(admin, places, question.to)
        if question.execute:
            groups.commit(name, moved)
    return {
        "group": name,
        "executed": question.execute,
        "partitions": [
            {"topic": topic, "partition": index, "from": committed[topic, index], "to": moved[topic, index]}
            for topic, index in places
        ],
    }  # fmt: skip


def _add_copies(app: FastAPI, served: Served, answer: Answer) -> None:
    @app.get("/api/sinks")
    def sinks() -> Response:
        """Sinks: view, target."""
        return answer(
            {
                "sinks": [
                    {
                        "name": copy.name,
                        "of": copy.subject,
                        "to": copy.declaration.place,
                        "kind": copy.declaration.kind,
                    }
                    for copy in served.project.sinks.values()
                ]
            }
        )

    @app.post("/api/sinks/{name}/verify")
    def verify(name: str, question: VerifyQuestion) -> Response:
        """Compare a copy with the log at one position; with `repair`, mend it."""
        from tailrace.project import copies

        copies.find_copy(served.project, name)
        if not _verifying.acquire(blocking=False):
            raise UsageError("another comparison runs", hint="wait until it has ended")
        try:
            with copies.opened_copy(served.project, served.bootstrap, name) as opened:
                verifier = opened.verifier()
                found = verifier.compare()
                repaired = copies.repair(opened, verifier, found) if question.repair else 0
        finally:
            _verifying.release()
        document = copies.verification_document(found, MOST_DIFFERENCES)
        return answer({**document, "repaired": repaired})


def _add_pipelines(app: FastAPI, served: Served, answer: Answer) -> None:
    @app.get("/api/pipelines")
    def pipelines() -> Response:
        """Views and streams: batch times, rows, watermarks, late and dead records."""
        return answer(pipelines_of(served))

    @app.get("/api/plans/{name}")
    def plan(name: str) -> Response:
        """The operators of a view as nodes and edges."""
        from tailrace.project.explain import draw_view

        return answer(draw_view(served.project, served.bootstrap, name))

    @app.get("/api/state/{name}")
    def state(name: str) -> Response:
        """Rows and bytes each operator of a view keeps."""
        from tailrace.project.explain import state_of_view

        return answer(state_of_view(served.project, served.bootstrap, name))


def pipelines_of(served: Served) -> dict[str, Any]:
    """What the process that runs the pipelines reports, by view and stream."""
    project = served.project
    report = report_of(project, "pipelines")
    records = {topic["name"]: topic["records"] for topic in served.figures.topics}
    filling = report.get("filling") or {}
    streams = report.get("streams") or {}
    views = [
        {
            "name": name,
            "declared": str(view.declared_at) if view.declared_at else None,
            "filling": name in filling,
            "error": (report.get("failed") or {}).get(name),
            "records": records.get(name, 0),
        }
        for name, view in project.views.items()
    ]
    return {
        "state": report.get("state", "stopped"),
        "tick": {
            "number": report.get("tick"),
            "milliseconds": report.get("tick_ms"),
            "rows": report.get("tick_rows"),
            "lag": report.get("lag"),
            "freshness_ms": report.get("freshness_ms"),
        },
        "error": report.get("error"),
        "dead": records.get(f"{project.name}.dead", 0),
        "late": report.get("late") or {},
        "forgotten": report.get("forgotten") or {},
        "watermarks": _watermarks(served),
        "views": views,
        "streams": [
            {
                "name": name,
                "declared": str(stream.declared_at) if stream.declared_at else None,
                "progress": streams.get(name),
                "records": records.get(name, 0),
                "late": records.get(f"{name}.late", 0),
                "dead": records.get(f"{name}.dead", 0),
            }
            for name, stream in project.streams.items()
        ],
    }


def _watermarks(served: Served) -> Mapping[str, int]:
    """Event time that has passed, by topic, as of the last tick; empty before it."""
    from tailrace.errors import TailraceError
    from tailrace.pipelines.ticks.tick_row import parse

    if not served.project.views or not served.figures.reachable:
        return {}
    from tailrace.records.tick import TICKS_TOPIC

    reader = KafkaRanges(served.bootstrap, timeout=2.0)
    found: Mapping[str, int] = {}
    try:
        first, end = reader.bounds(TICKS_TOPIC).get(0, (0, 0))
        for chunk in reader.read([Range(TICKS_TOPIC, 0, max(first, end - 50), end)]):
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                if key == served.project.name.encode() and value is not None:
                    found = parse(value).watermarks
    except TailraceError:
        return {}
    finally:
        reader.close()
    return found


def _add_patterns(app: FastAPI, served: Served, answer: Answer) -> None:
    from tailrace.project import patterns

    @app.get("/api/patterns")
    def listed() -> Response:
        """The patterns of events, and how they fare."""
        reports = read_reports(served.project.settings.state_directory)
        return answer({"patterns": patterns.list_patterns(served.project, reports)})

    @app.get("/api/patterns/{name}")
    def pattern(
        name: str, key: Annotated[list[str] | None, Query(max_length=10_000)] = None
    ) -> Response:
        """The steps of a pattern and how many partial matches have come to each; with `key=`
        (several for a composite key) the partial matches of one key with their rows."""
        with _looking:
            return answer(patterns.show_pattern(served.project, served.bootstrap, name, key))

    @app.get("/api/patterns/{name}/explain")
    def explain(name: str) -> Response:
        """How a pattern is kept."""
        text = patterns.explain_pattern(served.project, served.bootstrap, name)
        return answer({"text": text, "match": served.project.patterns[name].match})


class EventQuestion(BaseModel):
    """An event to hold against stored queries, and the id of one to say more about."""

    event: dict[str, Any]
    query: str | None = Field(default=None, max_length=1000)


def _add_percolations(app: FastAPI, served: Served, answer: Answer) -> None:
    from tailrace.project import percolations

    @app.get("/api/percolations")
    def listed() -> Response:
        """The percolations, and how they fare."""
        reports = read_reports(served.project.settings.state_directory)
        found = percolations.list_percolations(served.project, reports)
        return answer({"percolations": found})

    @app.get("/api/percolations/{name}")
    def percolation(
        name: str,
        documents: Annotated[int, Query(ge=0, le=100_000)] = 1_000,
    ) -> Response:
        """The queries, dearest first: candidates, matches and cost over the last events."""
        with _looking:
            found = percolations.show_percolation(served.project, served.bootstrap, name, documents)
        return answer(found)

    @app.get("/api/percolations/{name}/explain")
    def explain(name: str) -> Response:
        """How a percolation is kept."""
        with _looking:
            text = percolations.explain_percolation(served.project, served.bootstrap, name)
        return answer({"text": text})

    @app.post("/api/percolations/{name}/test")
    def test(name: str, question: EventQuestion) -> Response:
        """Which queries match an event, and why; nothing is written."""
        with _looking:
            found = percolations.try_event(
                served.project, served.bootstrap, name, question.event, question.query
            )
        return answer(found)


def _add_letters(app: FastAPI, served: Served, answer: Answer) -> None:
    @app.get("/api/dead-letters/{name}")
    def letters(name: str) -> Response:
        """Records that a view, a stream or a sink could not take, and why."""
        found = letters_of(served, name)
        return answer({"total": len(found), "letters": found[:MOST_LETTERS]})

    @app.post("/api/dead-letters/{name}/retry")
    def retry(name: str) -> Response:
        """Try them again: a sink writes the rows, a stream reads the records once more."""
        return answer({"retried": retry_letters_of(served, name)})


def letters_of(served: Served, name: str) -> list[dict[str, Any]]:
    """Letters of a sink or a pipeline in one form, newest last."""
    if name in served.project.sinks:
        from tailrace.sinks.dead_letters import read_letters

        reader = KafkaRanges(served.bootstrap)
        try:
            return [
                {
                    "record": one.address,
                    "reason": one.error.get("detail") or one.error.get("error"),
                    "content": one.row,
                }
                for one in read_letters(reader, name)
            ]
        finally:
            reader.close()
    from tailrace.pipelines.streams.dead_letters import letters

    return [
        {
            "record": str(one.get("position", "")).removeprefix("log:"),
            "reason": one.get("reason"),
            "content": None if one.get("value") is None else text(b64decode(one["value"])),
            "stack": one.get("stack"),
        }
        for one in letters(served.bootstrap, _letters_topic(served.project, name))
    ]


def retry_letters_of(served: Served, name: str) -> int:
    """How many were taken this time."""
    if name in served.project.sinks:
        from tailrace.project.copies import opened_copy, retry

        with opened_copy(served.project, served.bootstrap, name) as opened:
            return retry(opened)
    topic = _letters_topic(served.project, name)
    if name in served.project.views:
        raise UsageError(
            "a table's old record must not be written again behind newer ones",
            hint=f"correct the cause, then `tailrace pipeline reset {name}` reads everything again",
        )
    from tailrace.pipelines.streams.dead_letters import retry_letters

    return retry_letters(served.bootstrap, topic)


def _letters_topic(project: Project, name: str) -> str:
    if name in project.views:
        return f"{project.name}.dead"  # views share the letters of their project
    if name in project.streams:
        return f"{name}.dead"
    raise UnknownNameError(f"no view, stream or sink {name!r} is declared")


def _add_past(app: FastAPI, served: Served, answer: Answer) -> None:
    @app.get("/api/past/{name}")
    def past(
        name: str,
        tick: Annotated[int | None, Query(ge=0)] = None,
        at: Annotated[int | None, Query(ge=0, description="milliseconds since 1970")] = None,
        position: Annotated[str | None, Query(max_length=500)] = None,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 500,
    ) -> Response:
        """A view as it was: at a tick, a time or a position; without any, how far back."""
        return answer(view_in_the_past(served, name, tick, at, position, limit))


def view_in_the_past(
    served: Served, name: str, tick: int | None, at: int | None, position: str | None, limit: int
) -> dict[str, Any]:
    """The span of ticks the log names, and the rows at the one asked for."""
    from tailrace.client.admin import Admin
    from tailrace.serving.past import TimeMachine

    if name not in served.project.views:
        raise UnknownNameError(f"no view {name!r} is declared")
    reader = KafkaRanges(served.bootstrap)
    try:
        machine = TimeMachine(reader, served.project.name)
        span = machine.span()
        about = None if span is None else [{"tick": m.tick, "at": m.at_ms} for m in span]
        if span is None or (tick, at, position) == (None, None, None):
            return {"span": about, "rows": None}
        if tick is not None:
            row = machine.at_tick(tick)
        elif at is not None:
            row = machine.at_time(at)
        else:
            assert position is not None
            row = machine.at_position(position)
        topic = row.views[name].topic if name in row.views else name
        with Admin(served.bootstrap, timeout=10.0) as admin:
            config = admin.topic_config(topic) if admin.describe_topic(topic) else {}
        kept = config["min.compaction.lag.ms"].value if config else None
        found = machine.view(name, row, kept_ms=int(kept or 0), limit=limit)
    finally:
        reader.close()
    return {
        "span": about,
        "tick": found.moment.tick,
        "at": found.moment.at_ms,
        "position": found.position,
        "key": list(found.view.key),
        "rows": found.rows,
    }


def report_of(project: Project, kind: str) -> dict[str, Any]:
    """The last words of the first part of a kind; empty if it never ran."""
    reports = read_reports(project.settings.state_directory)
    return next((report for report in reports if report.get("kind") == kind), {})
