"""The HTTP API of INTERFACE, and the page.

Answers about views carry `Tailrace-Position`; `?at_least=POSITION&timeout=5s` waits
until the views have reached it, and is 504 if they do not. Errors are the four parts
as JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from tailrace import __version__
from tailrace.client.errors import ClientError, RequestError, UnknownTopicError
from tailrace.config import parse_duration
from tailrace.connectors.errors import ConnectorError
from tailrace.console.answering import ANSWER_BYTES, encode
from tailrace.console.cluster import add_cluster
from tailrace.console.cluster_watch import ClusterWatch
from tailrace.console.conditions import Condition, compile_condition
from tailrace.console.connectors import add_connectors
from tailrace.console.demo import Shop, add_demo, is_demo
from tailrace.console.errors import (
    ConditionTimeoutError,
    LogUnreachableError,
    TooManyQuestionsError,
    TooManySubscribersError,
    UnknownNameError,
    ViewerError,
)
from tailrace.console.events import add_events
from tailrace.console.feed import ChangesResponse, Feed
from tailrace.console.figures import Figures
from tailrace.console.gauges import publish_parts
from tailrace.console.history import EVERY_SECONDS
from tailrace.console.live import Live
from tailrace.console.lookup import no_row
from tailrace.console.mirrors import add_mirrors
from tailrace.console.operate import add_operations
from tailrace.console.page import Page
from tailrace.console.questions import Questions
from tailrace.console.reactions import add_reactions
from tailrace.console.streams import change_events, record_events
from tailrace.console.subjects import add_subjects
from tailrace.errors import ConfigValueError, TailraceError, UsageError
from tailrace.facts.errors import (
    CommandArgumentsError,
    CommandFailedError,
    CommandIdReusedError,
    CommandResultError,
    CommandUnknownError,
    EventsError,
    EvolveFailedError,
    OutcomeUnknownError,
    OwnerMissingError,
    PartitionLostError,
    Rejected,
    VersionConflictError,
)
from tailrace.facts.metrics import publish_events
from tailrace.mirroring.errors import MirrorError
from tailrace.node.health import status_of
from tailrace.node.history import read_history
from tailrace.pipelines.errors import PipelineError
from tailrace.pipelines.streams.progress import publish_reports
from tailrace.project import graph as project_graph
from tailrace.project.errors import MissingInputError
from tailrace.project.load import Project
from tailrace.project.search import search
from tailrace.serving.errors import (
    HistoryGoneError,
    PositionTimeoutError,
    PositionUnknownError,
    QueryError,
    QueryTimeoutError,
    QueryTooLargeError,
    UnknownViewError,
    ViewKeyError,
    ViewsNotReadyError,
)
from tailrace.serving.keys import read_part
from tailrace.serving.reader import Views
from tailrace.sinks.errors import SinkError, UnknownSinkError
from tailrace.telemetry.metrics import exposition
from tailrace.telemetry.part import read_reports

STATIC = Path(__file__).parent / "static"
LIVE_EVERY = 1.0
MOST_SECONDS = 300.0
MOST_WATCHING = 500
_STATUS: dict[type[TailraceError], int] = {
    UnknownViewError: 404,
    ViewerError: 403,
    HistoryGoneError: 410,
    UnknownNameError: 404,
    UnknownSinkError: 404,
    UnknownTopicError: 404,
    RequestError: 400,
    ClientError: 503,
    SinkError: 409,
    MirrorError: 409,
    ConnectorError: 409,
    PipelineError: 409,
    PositionTimeoutError: 504,
    QueryTimeoutError: 504,
    ConditionTimeoutError: 504,
    ViewsNotReadyError: 503,
    LogUnreachableError: 503,
    TooManySubscribersError: 503,
    TooManyQuestionsError: 503,
    MissingInputError: 404,
    PositionUnknownError: 400,
    ViewKeyError: 400,
    QueryError: 400,
    QueryTooLargeError: 400,
    Rejected: 422,
    VersionConflictError: 409,
    CommandIdReusedError: 409,
    CommandUnknownError: 404,
    CommandArgumentsError: 400,
    OwnerMissingError: 503,
    OutcomeUnknownError: 503,
    PartitionLostError: 503,
    CommandFailedError: 500,
    CommandResultError: 500,
    EvolveFailedError: 500,
    EventsError: 409,
    UsageError: 400,
    ConfigValueError: 400,
}

Where = Annotated[str | None, Query(max_length=10_000)]
AtLeast = Annotated[str | None, Query(max_length=500)]
Timeout = Annotated[str, Query(max_length=30)]


class SqlQuestion(BaseModel):
    """A SELECT over the project's views."""

    sql: str = Field(min_length=1, max_length=100_000)
    limit: int = Field(default=100_000, ge=1, le=100_000)


class Json(Response):
    """orjson's bytes, with decimals and times as text."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)


@dataclass(slots=True)
class Served:
    """What the routes stand on."""

    project: Project
    bootstrap: str
    views: Views
    figures: Figures
    feed: Feed | None = None
    questions: Questions | None = None
    cluster: ClusterWatch | None = None  # of a log that is not the embedded one
    watching: int = 0  # subscribers of the live state
    closing: asyncio.Event | None = None  # set when the server is to end: streams then do


def create_app(served: Served) -> FastAPI:
    """The application; `served` is closed by its owner, not here."""
    live = Live(served.project, served.figures, served.cluster)
    shop: Shop | None = None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        served.closing = asyncio.Event()
        served.feed = Feed(served.views)
        served.feed.start()
        questions = served.questions = Questions(served.views.directory)
        sampling = asyncio.create_task(_sample(live))
        with closing(shop) if shop is not None else nullcontext():
            yield
            sampling.cancel()
            await served.feed.stop()
            await run_in_threadpool(books.close)
            await run_in_threadpool(doors.close)
            await run_in_threadpool(questions.close)

    app = FastAPI(
        title="Tailrace",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        default_response_class=Json,
    )
    app.add_exception_handler(TailraceError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    _add_project(app, served, live)
    _add_topics(app, served)
    _add_views(app, served)
    doors = add_events(app, served, Json)
    books = add_reactions(app, served, doors, Json)
    add_operations(app, served, live, Json)
    add_cluster(app, served, Json)
    add_mirrors(app, served, Json)
    add_subjects(app, served, Json)
    add_connectors(app, served, Json)
    if is_demo():
        shop = add_demo(app, served, Json)
    _add_page(app)
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TailraceError)
    status = next((s for kind, s in _STATUS.items() if isinstance(error, kind)), 500)
    return Json(error.as_dict(), status_code=status)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    answer = UsageError("the request is not of the form this call takes", detail=found)
    return Json(answer.as_dict(), status_code=422)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"error": str(error.detail).lower(), "detail": "", "hint": "see /api/docs", "code": "http"}  # fmt: skip
    return Json(body, status_code=error.status_code, headers=error.headers)


async def _sample(live: Live) -> None:
    """Keep the history going while nobody watches."""
    while True:
        await run_in_threadpool(live.state)
        await asyncio.sleep(EVERY_SECONDS)


def _add_project(app: FastAPI, served: Served, live: Live) -> None:
    @app.get("/api/status")
    async def status() -> Response:
        """Every part; `ready` when all of them run."""
        # A few small files: quicker read here than after a wait for a thread.
        return Json(status_of(served.project.settings))

    @app.get("/api/graph")
    def graph() -> Response:
        """The topology, and which pages that not every project needs have something to show."""
        project = served.project
        optional = {
            "patterns": project.patterns,
            "percolations": project.percolations,
            "events": project.events,
            "mirrors": project.mirrors,
            "connectors": project.settings.connect.listen,
        }
        pages = [name for name, declared in optional.items() if declared]
        return Json({**project_graph.build(project).as_dict(), "pages": pages})

    @app.get("/api/live")
    async def watch() -> Response:
        """Status and figures once a second, and the views' position as soon as they move:
        server-sent events."""
        feed = served.feed
        assert feed is not None
        if served.watching >= MOST_WATCHING:
            raise TooManySubscribersError(
                f"{MOST_WATCHING} pages watch already", hint="close one, or ask /api/status"
            )

        async def events() -> AsyncGenerator[bytes]:
            now = asyncio.get_running_loop().time
            served.watching += 1
            try:
                while True:
                    yield b"data: " + await run_in_threadpool(live.encoded) + b"\n\n"
                    until = now() + LIVE_EVERY
                    while (left := until - now()) > 0:
                        if await feed.moved(left):
                            position = served.views.position.encode()
                            yield b"event: position\ndata: " + position + b"\n\n"
            finally:
                served.watching -= 1

        return _event_stream(served, events())

    @app.get("/api/alarms")
    def current_alarms() -> Response:
        """What deserves attention now."""
        return Json(live.state()["alarms"])

    @app.get("/api/history/events")
    def happened(limit: Annotated[int, Query(ge=1, le=1000)] = 200) -> Response:
        """What happened to the parts, the newest first: ends, starts, take-overs."""
        return Json({"events": read_history(served.project.settings.state_directory, limit)})

    @app.get("/metrics")
    def metrics() -> Response:
        """Prometheus."""
        reports = read_reports(served.project.settings.state_directory)
        publish_reports(reports)
        publish_events(reports)
        publish_parts(live.state()["parts"], live.state()["alarms"])
        return Response(exposition(), media_type="text/plain; version=0.0.4")


def _add_topics(app: FastAPI, served: Served) -> None:
    from tailrace.console.records import shown_by
    from tailrace.console.search import Filter, search

    @app.get("/api/topics")
    def topics() -> Response:
        """Every topic with its figures."""
        return Json({"topics": served.figures.topics})

    @app.get("/api/topics/{name}")
    def topic(name: str) -> Response:
        """Settings and partitions of a topic."""
        return Json(served.figures.topic(name))

    @app.get("/api/topics/{name}/latest")
    async def newest(
        name: str,
        start: Annotated[str, Query(alias="from", max_length=40)] = "latest",
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        partition: Annotated[int | None, Query(ge=0)] = None,
        key: Annotated[str | None, Query(max_length=1000)] = None,
        value: Annotated[str | None, Query(max_length=1000)] = None,
        header: Annotated[str | None, Query(max_length=1000)] = None,
        where: Where = None,
        after: Annotated[str | None, Query(max_length=20_000)] = None,
    ) -> Response:
        """A page of records: the newest, the oldest, from a time or `offset:N`; with texts in
        key, value or a header (`NAME=TEXT`), or a condition on the value; `after` is the `next`
        of the page before."""
        condition = await _condition(where) if where else None
        wanted = Filter(partition, key, value, header, condition)
        show = shown_by(served.project, name)
        return Json(
            await run_in_threadpool(
                search, served.bootstrap, name, start, limit, show, wanted, after
            )
        )

    @app.get("/api/topics/{name}/records")
    async def records(
        name: str,
        start: Annotated[str, Query(alias="from", max_length=1000)] = "latest",
        where: Where = None,
        last_event_id: Annotated[str | None, Header(max_length=10_000)] = None,
    ) -> Response:
        """Records as they come, resumable by Last-Event-ID (server-sent events)."""
        condition = await _condition(where) if where else None
        events = await run_in_threadpool(
            record_events, served.bootstrap, name, start, last_event_id, condition
        )
        return _event_stream(served, events)

    @app.get("/api/tables/{name}/changes")
    async def table_changes(
        name: str,
        start: Annotated[str, Query(max_length=1000)] = "snapshot",
        where: Where = None,
        last_event_id: Annotated[str | None, Header(max_length=10_000)] = None,
    ) -> Response:
        """A captured table: its rows, then its changes (server-sent events)."""
        topic = project_graph.table_topic(served.project, name)
        condition = await _condition(where) if where else None
        events = await run_in_threadpool(
            change_events, served.bootstrap, topic, start, last_event_id, condition
        )
        return _event_stream(served, events)

    @app.get("/api/groups")
    def groups() -> Response:
        """Every consumer group with its lag."""
        return Json({"groups": served.figures.groups})

    @app.get("/api/groups/{name}")
    def group(name: str) -> Response:
        """Members and partitions of a group."""
        return Json(served.figures.group(name))


def _add_views(app: FastAPI, served: Served) -> None:
    views = served.views

    async def reach(at_least: str | None, timeout: str) -> None:
        if at_least:
            assert served.feed is not None
            seconds = min(parse_duration(timeout).total_seconds(), MOST_SECONDS)
            await served.feed.wait(at_least, seconds)

    async def answered(question: dict[str, Any]) -> Response:
        assert served.questions is not None
        page, position = await served.questions.ask(question)
        headers = {"Tailrace-Position": position}
        return Response(page, headers=headers, media_type="application/json")

    async def asked(
        work: Callable[[], Any], at_least: str | None, timeout: str
    ) -> tuple[Any, dict[str, str]]:
        await reach(at_least, timeout)

        def both() -> tuple[Any, str]:
            return work(), views.position

        value, position = await run_in_threadpool(both)
        return value, {"Tailrace-Position": position}

    @app.get("/api/views")
    async def listed() -> Response:
        """The views, their keys and columns."""

        def describe() -> list[dict[str, Any]]:
            with views.snapshot() as snapshot:
                return [
                    {
                        "name": name,
                        "key": list(snapshot.view(name).info.key or ()),
                        "columns": [list(column) for column in snapshot.view(name).info.columns],
                        "rows": snapshot.count(name),
                    }
                    for name in snapshot.names
                ]

        found, headers = await asked(describe, None, "0")
        return Json({"views": found}, headers=headers)

    @app.get("/api/views/{name}")
    async def rows(
        name: str,
        where: Where = None,
        limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
        after: Annotated[str | None, Query(max_length=100_000)] = None,
        key: Annotated[list[str] | None, Query()] = None,
        at_least: AtLeast = None,
        timeout: Timeout = "5s",
    ) -> Response:
        """Rows of a view; with `key=` (several for a composite key) the one row."""
        if key is not None:
            return await one(name, key, at_least, timeout)
        if where is not None and where.strip():
            await reach(at_least, timeout)
            return await answered({"name": name, "where": where, "limit": limit, "after": after})
        page, headers = await asked(
            lambda: views.rows(name, limit=limit, after=after, most_bytes=ANSWER_BYTES),
            at_least,
            timeout,
        )
        return Response(encode(page), headers=headers, media_type="application/json")

    @app.get("/api/views/{name}/changes")
    async def changes(
        name: str,
        last_event_id: Annotated[str | None, Header()] = None,
        after: Annotated[int | None, Query(ge=0)] = None,
        where: Where = None,
    ) -> Response:
        """Snapshot, then changes, resumable by Last-Event-ID (server-sent events)."""
        condition = (where, await _condition(where)) if where else None
        start = int(last_event_id) if last_event_id and last_event_id.isdigit() else after
        await run_in_threadpool(views.describe, name)  # an unknown view is 404, not a stream
        assert served.feed is not None
        return ChangesResponse(served.feed, name, start, condition)

    @app.get("/api/views/{name}/explain")
    async def explain(name: str) -> Response:
        """How the view is kept up to date."""
        from tailrace.project.explain import explain_view

        view = served.project.views.get(name)
        if view is None:
            raise UnknownNameError(f"there is no view {name!r}")
        text = await run_in_threadpool(explain_view, served.project, served.bootstrap, name)
        return Json({"text": text, "sql": view.sql.strip()})

    @app.get("/api/views/{name}/{key:path}")
    async def single(
        name: str, key: str, at_least: AtLeast = None, timeout: Timeout = "5s"
    ) -> Response:
        """One row by its key; with an empty one the row of a view that has at most one."""
        keyless = not key and not (await run_in_threadpool(views.describe, name)).key
        return await one(name, [] if keyless else [key], at_least, timeout)

    async def one(name: str, key: list[str], at_least: str | None, timeout: str) -> Response:
        parts = [read_part(part) for part in key]
        row, headers = await asked(lambda: views.get(name, parts), at_least, timeout)
        if row is None:
            return Json(no_row(name, parts).as_dict(), status_code=404, headers=headers)
        return Json({"row": row}, headers=headers)

    @app.get("/api/search/{name}")
    def search_index(
        name: str,
        q: Annotated[str, Query(min_length=1, max_length=10_000)],
        limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    ) -> Response:
        """Rows of a full-text copy that match, best first; `*` matches all."""
        found = search(served.project, name, q, limit)
        return Json({"rows": [{"score": one["score"], **one["row"]} for one in found]})

    @app.post("/api/sql")
    async def sql(
        question: SqlQuestion, at_least: AtLeast = None, timeout: Timeout = "5s"
    ) -> Response:
        """One SELECT over the views, all at one tick."""
        await reach(at_least, timeout)
        return await answered({"sql": question.sql, "limit": question.limit})


def _add_page(app: FastAPI) -> None:
    page = Page(STATIC)

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return page.answer("index.html", request.headers)

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str, request: Request) -> Response:
        return page.answer(f"assets/{name}", request.headers)

    @app.get("/api/docs", include_in_schema=False)
    def docs() -> Response:
        """The API in words, without scripts from other hosts."""
        lines = ["Tailrace API (OpenAPI: /api/openapi.json)", ""]
        for path, methods in sorted(app.openapi()["paths"].items()):
            for method, about in methods.items():
                lines.append(f"{method.upper():<5} {path:<36} {about.get('description', '')}")
        return Response("\n".join(lines) + "\n", media_type="text/plain; charset=utf-8")


async def _condition(text: str) -> Condition:
    return await run_in_threadpool(compile_condition, text)


def _event_stream(served: Served, events: AsyncGenerator[bytes]) -> StreamingResponse:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _until_closing(served, events), media_type="text/event-stream", headers=headers
    )


async def _until_closing(served: Served, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """The events, until there are no more, the server is to end, or nobody listens."""
    assert served.closing is not None
    closing = asyncio.ensure_future(served.closing.wait())
    following: asyncio.Future[bytes] | None = None
    try:
        while True:
            following = asyncio.ensure_future(anext(events))
            await asyncio.wait({following, closing}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                return
            try:
                event = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield event
    finally:
        # No await here: whoever left has cancelled this task, and every wait in it.
        closing.cancel()
        ending = asyncio.ensure_future(_end(events, following))
        _endings.add(ending)
        ending.add_done_callback(_endings.discard)


_endings: set[asyncio.Future[None]] = set()  # so that they are not forgotten half-way


async def _end(events: AsyncGenerator[bytes], following: asyncio.Future[bytes] | None) -> None:
    """Let a stream clean up after itself: its reader, its place among the subscribers."""
    if following is not None:
        following.cancel()
        await asyncio.wait({following})
        if not following.cancelled():
            following.exception()  # looked at, so that nobody warns about it
    await events.aclose()
