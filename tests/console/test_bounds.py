"""What one caller can cost the console: bounded time, bounded memory, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from confluent_kafka import Producer

import fresh_loop
from servers.consoles import Console
from servers.running_console import running
from tailrace.console import answering, app, records
from tailrace.console import questions as questions_module
from tailrace.console.errors import TooManyQuestionsError
from tailrace.console.questions import Questions
from tailrace.errors import UsageError
from tailrace.serving.errors import (
    QueryError,
    QueryTimeoutError,
    QueryTooLargeError,
    UnknownViewError,
    ViewsError,
)
from tailrace.serving.reader import Views

ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range + b.range = 7"
Ask = Callable[[str], Coroutine[Any, Any, tuple[bytes, str]]]


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a test knows who answers."""
    monkeypatch.setattr(questions_module, "PROCESSES", 1)


@asynccontextmanager
async def asking(console: Console, **options: Any) -> AsyncIterator[tuple[Questions, Ask]]:
    questions = Questions(console.served.views.directory, **options)

    def ask(sql: str) -> Coroutine[Any, Any, tuple[bytes, str]]:
        return questions.ask({"sql": sql, "limit": 1000})

    try:
        yield questions, ask
    finally:
        await asyncio.to_thread(questions.close)


async def end_processes(questions: Questions, waiting: asyncio.Task[tuple[bytes, str]]) -> None:
    """Kill every process that could answer, whenever the question gets to one."""
    while not waiting.done():
        for process in list(questions._processes):
            process._process.kill()
        await asyncio.sleep(0.05)
    with pytest.raises(QueryTooLargeError):
        await waiting


def test_an_answer_that_python_cannot_hold_ends_no_process(console: Console) -> None:
    async def work() -> None:
        async with asking(console) as (_, ask):
            await ask("SELECT 1")
            for sql in ("SELECT DATE '290000-01-01'", "SELECT TIMESTAMP 'infinity'"):
                with pytest.raises(QueryError):
                    await ask(sql)
            assert (await ask("SELECT 2 AS n"))[0].startswith(b'{"rows":[{"n":2}]')

    fresh_loop.run(work())


def test_a_question_that_takes_too_long_is_ended_and_the_next_is_answered(
    console: Console,
) -> None:
    async def work() -> None:
        async with asking(console, seconds=60) as (questions, ask):
            await ask("SELECT 1")  # the process is there
            for stubborn in (False, True):
                if stubborn:  # as in a function of DuckDB's that nothing interrupts
                    [process] = questions._processes
                    os.kill(process._process.pid, signal.SIGSTOP)
                questions._seconds = 1.5
                with pytest.raises(QueryTimeoutError):
                    await ask(ENDLESS)
                questions._seconds = 60
                page, position = await ask("SELECT sum(orders)::INT AS n FROM open_orders")
                assert orjson.loads(page)["rows"] == [{"n": 3}]
                assert position == "tick:shop:1"

    fresh_loop.run(work())


def test_a_question_has_memory_of_its_own_and_no_more(console: Console) -> None:
    async def work() -> None:
        async with asking(console, memory_bytes=300 << 20) as (_, ask):
            await ask("SELECT 1")
            before = psutil.Process().memory_info().rss
            for query in (
                "SELECT repeat('x', 100000000) FROM range(20)",
                "SELECT len(range(200000000))",
                "SELECT range(200000000)",
            ):
                with pytest.raises((QueryTooLargeError, QueryError)):
                    await ask(query)
                assert orjson.loads((await ask("SELECT 1 AS one"))[0])["rows"] == [{"one": 1}]
            assert psutil.Process().memory_info().rss - before < 100 << 20

    fresh_loop.run(work())


def test_an_answer_ends_where_it_would_get_too_long(console: Console) -> None:
    async def work() -> None:
        async with asking(console) as (_, ask):
            page, _ = await ask("SELECT range AS n, repeat('x', 1000000) AS t FROM range(150)")
            found = orjson.loads(page)
            assert found["next"] == "more"
            assert 10 <= len(found["rows"]) < 100
            assert [row["n"] for row in found["rows"]] == list(range(len(found["rows"])))
            assert len(page) < answering.ANSWER_BYTES + (2 << 20)
            with pytest.raises(QueryTooLargeError):
                await ask(f"SELECT repeat('x', {answering.ANSWER_BYTES + 1})")

    fresh_loop.run(work())


def test_rows_are_paged_by_their_size_too(console: Console, tmp_path: Path) -> None:
    console.ticks.declare("long", ["id"], [("id", "INT"), ("t", "STRING")])
    console.ticks.tick({"long": [({"id": n}, {"id": n, "t": "x" * 1000}) for n in range(9)]})
    console.follower.step(0.1)
    views: Views = console.served.views
    for where in (None, "id >= 0"):
        seen, after, pages = [], None, 0
        while True:
            page = views.rows("long", where=where, after=after, most_bytes=2_500)
            seen += [row["id"] for row in page.rows]
            pages += 1
            after = page.next
            if after is None:
                break
        assert seen == list(range(9))
        assert pages == 5
    assert len(views.rows("long", most_bytes=1).rows) == 1  # one row always goes


def test_a_process_that_dies_costs_one_answer(console: Console) -> None:
    async def work() -> None:
        async with asking(console) as (questions, ask):
            await ask("SELECT 1")
            [process] = questions._processes
            waiting = asyncio.create_task(ask(ENDLESS))
            await end_processes(questions, waiting)
            assert process.ended
            assert orjson.loads((await ask("SELECT 1 AS one"))[0])["rows"] == [{"one": 1}]

    fresh_loop.run(work())


def test_errors_are_those_of_the_views(console: Console) -> None:
    async def work() -> None:
        async with asking(console) as (questions, ask):
            with pytest.raises(QueryError, match="no view 'nothing'"):
                await ask("SELECT * FROM nothing")
            asked = {"where": "orders > 1", "limit": 10, "after": None}
            with pytest.raises(UnknownViewError):
                await questions.ask({"name": "nothing", **asked})
            page, _ = await questions.ask({"name": "open_orders", **asked})
            assert orjson.loads(page)["rows"] == [{"country": "NL", "orders": 2}]

    fresh_loop.run(work())


def test_every_error_of_views_comes_back_as_what_it_was() -> None:
    kinds = [UsageError]
    for kind in (waiting := [ViewsError]):
        kinds.append(kind)
        waiting += kind.__subclasses__()
    assert len(kinds) > 10
    for kind in kinds:
        parts = kind("message", detail="detail", hint="hint").as_dict()
        found = questions_module._error(parts)
        assert type(found) is kind
        assert found.as_dict() == parts


def test_only_so_many_questions_wait(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions_module, "WAITING", 0)

    async def work() -> None:
        async with asking(console) as (questions, ask):
            await ask("SELECT 1")
            waiting = asyncio.create_task(ask(ENDLESS))
            await asyncio.sleep(0)
            with pytest.raises(TooManyQuestionsError):
                await ask("SELECT 1")
            await end_processes(questions, waiting)

    fresh_loop.run(work())


def test_a_batch_that_unpacks_to_much_is_told_and_the_others_are_shown(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGEST_BATCH", 1 << 20)
    settings = {"bootstrap.servers": console.served.bootstrap, "message.max.bytes": 10 << 20}
    for value, codec in ((b"first", "none"), (bytes(4 << 20), "gzip"), (b"last", "gzip")):
        producer = Producer({**settings, "compression.type": codec})
        producer.produce("t", value=value, key=b"k")
        assert producer.flush(30) == 0
    found = console.client.get("/api/topics/t/latest").json()["records"]
    assert [record["offset"] for record in found] == [2, 1, 0]
    last, large, first = (record["value"] for record in found)
    assert (first, last) == ("first", "last")
    assert "not shown" in large


def test_only_so_many_may_watch_the_live_state(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_WATCHING", 3)
    with running(console) as port:
        watching = []
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/api/live")
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.readline().startswith(b"data: ")
            watching.append((connection, answer))
        other = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        other.request("GET", "/api/live")
        refused = other.getresponse()
        assert refused.status == 503
        assert orjson.loads(refused.read())["code"] == "too-many-subscribers"
        for connection, answer in watching:
            answer.close()
            connection.close()
        until = time.monotonic() + 30
        while console.served.watching:
            assert time.monotonic() < until
            time.sleep(0.05)
        other.request("GET", "/api/live")
        assert other.getresponse().status == 200
        other.close()


@pytest.mark.parametrize("begun", [b"GET /", b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: "])
def test_a_head_without_end_is_not_kept(console: Console, begun: bytes) -> None:
    with running(console) as port, socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(begun)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 64 << 20:
                sent += client.send(b"a" * 65536)
        assert sent < 64 << 20  # the console has closed the connection


def test_a_long_head_is_answered(console: Console) -> None:
    with running(console) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for _ in range(8):  # each request has its own limit
            connection.request("GET", "/api/status?x=" + "a" * 60_000)
            answer = connection.getresponse()
            assert answer.read()
            assert answer.status == 200
        connection.close()
