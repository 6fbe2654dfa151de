"""The small HTTP server against pages of other sites and callers that want its memory."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tailrace import sources
from tailrace.plain_http import Answer, HttpServer, Request
from tailrace.sources.edges.declare import HTTP, Webhook
from tailrace.sources.edges.runner import make_server


@contextmanager
def serving(
    handle: Callable[[Request], Answer] = lambda request: Answer(200, request.body),
    **settings: int,
) -> Iterator[HttpServer]:
    server = HttpServer("127.0.0.1", 0, handle, refuse=refuse, **settings)
    server.start()
    try:
        yield server
    finally:
        server.close()


def refuse(status: int, reason: str) -> Answer:
    return Answer(status, reason.encode())


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_a_page_of_another_site_can_change_nothing(headers: dict[str, str]) -> None:
    # A browser sends such a body to any address, without a type and without asking before.
    with serving() as server, httpx.Client(base_url=f"http://{server.address}") as client:
        answer = client.post("/subjects/s/versions", content=b"{}", headers=headers)
        assert answer.status_code == 403


def test_our_own_pages_programs_and_links_are_served() -> None:
    with serving() as server, httpx.Client(base_url=f"http://{server.address}") as client:
        own = {"origin": f"http://{server.address}", "sec-fetch-site": "same-origin"}
        assert client.post("/", content=b"x", headers=own).status_code == 200
        assert client.post("/", content=b"x").status_code == 200
        link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert client.get("/", headers=link).status_code == 200
        image = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
        assert client.get("/", headers=image).status_code == 403


def named(edge: HTTP | Webhook) -> int:
    """What a call by another name than this machine's is answered."""
    server = make_server(edge, lambda request: Answer(200), refuse)
    server.start()
    try:
        with httpx.Client(base_url=f"http://{server.address}") as client:
            return client.get("/topics", headers={"host": "evil.example:80"}).status_code
    finally:
        server.close()


def test_an_edge_that_asks_nobody_who_they_are_has_no_other_name() -> None:
    # A page's own name may be made to mean this machine, and then the page is no foreign one.
    place = "127.0.0.1:0"
    assert named(sources.HTTP("in", place, ["clicks"])) == 403
    assert named(sources.HTTP("in", place, ["clicks"], token="long enough")) == 200
    assert named(sources.Webhook("in", place, "whsec_c2VjcmV0")) == 200


def test_bodies_of_all_connections_together_have_a_limit() -> None:
    inside, go = threading.Semaphore(0), threading.Event()

    def hold(request: Request) -> Answer:
        inside.release()
        assert go.wait(60)
        return Answer(200)

    with serving(hold, body_limit_bytes=1000, bodies_limit_bytes=2000) as server:
        body = b"x" * 900

        def ask() -> bytes:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
                sock.sendall(b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 900\r\n\r\n" + body)  # fmt: skip
                return sock.recv(100)

        answers: list[bytes] = []
        asking = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(2)]
        for each in asking:
            each.start()
        for _ in asking:
            assert inside.acquire(timeout=60)
        assert ask().startswith(b"HTTP/1.1 503")
        go.set()
        for each in asking:
            each.join()
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
        assert ask().startswith(b"HTTP/1.1 200")  # what was held was given back


def test_silent_connections_keep_nobody_out() -> None:
    with serving(connections=3) as server, contextlib.ExitStack() as held:
        place = ("127.0.0.1", server.port)
        for number in range(20):
            silent = held.enter_context(socket.create_connection(place, timeout=60))
            silent.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"[: number * 3])
        with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
            for _ in range(3):
                assert client.post("/", content=b"x").content == b"x"


def test_whoever_is_being_answered_is_not_put_out() -> None:
    inside, go = threading.Semaphore(0), threading.Event()

    def hold(request: Request) -> Answer:
        inside.release()
        assert go.wait(60)
        return Answer(200, b"done")

    with serving(hold, connections=1) as server:
        found: list[bytes] = []

        def ask() -> None:
            with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
                found.append(client.get("/").content)

        asking = threading.Thread(target=ask)
        asking.start()
        assert inside.acquire(timeout=60)
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as other:
            assert other.recv(1) == b""  # no room, and hung up on at once
        go.set()
        asking.join()
    assert found == [b"done"]


def test_many_small_chunks_are_the_body_they_say() -> None:
    parts = [b"%d" % (n % 10) for n in range(20_000)]
    sent = b"".join(b"1\r\n" + one + b"\r\n" for one in parts) + b"0\r\nTrailer: x\r\n\r\n"
    with (
        serving() as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock,
    ):
        sock.sendall(
            b"POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + sent
        )
        answer = b""
        while received := sock.recv(65536):
            answer += received
    assert answer.endswith(b"\r\n\r\n" + b"".join(parts))
