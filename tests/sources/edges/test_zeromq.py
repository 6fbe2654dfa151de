"""Messages of ZeroMQ as records."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

import tailrace as tr
from tailrace import sources
from tailrace.client.log import Log
from tailrace.errors import TailraceError
from tailrace.sources.edges.zeromq import Messages
from tailrace.sources.errors import SourceDeclarationError


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        opened.create_topic("ticks", partitions=1)
        yield opened


@pytest.fixture
def sender(request: pytest.FixtureRequest) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(request.param) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        yield socket


def wait_for(edge: Messages, count: int) -> None:
    until = time.monotonic() + 60
    while edge.figures()["accepted"] < count:
        assert time.monotonic() < until, edge.figures()
        time.sleep(0.005)


@pytest.mark.parametrize("sender", [zmq.PUSH], indirect=True, ids=["push"])
def test_what_is_pushed_is_written_in_order_with_its_key(log: Log, sender: Any) -> None:
    edge = Messages(sources.ZeroMQ("ticks", pull="tcp://127.0.0.1:*"), log)
    edge.start()
    try:
        sender.connect(edge.address)
        for number in range(500):
            sender.send_multipart([b"k", b"%d" % number])
        sender.send(b"alone")
        sender.send_multipart([b"k", b"v", b"more", b""])
        sender.send_multipart([b"x"] * 101)
        sender.send_multipart([b"", b""])
        wait_for(edge, 503)
        assert edge.figures() == {"received": 504, "refused": 1, "accepted": 503, "lost": 0}
    finally:
        edge.close()
    found = list(log.read("ticks"))
    assert [(one.key, one.value) for one in found[:500]] == [
        (b"k", b"%d" % number) for number in range(500)
    ]
    assert (found[500].key, found[500].value) == (None, b"alone")
    assert [value for _, value in found[501].headers] == [b"more", b""]
    assert (found[502].key, found[502].value) == (b"", b"")


@pytest.mark.parametrize("sender", [zmq.XPUB], indirect=True, ids=["xpub"])
def test_what_is_published_is_taken_by_prefix(log: Log, sender: Any) -> None:
    port = sender.bind_to_random_port("tcp://127.0.0.1")
    declared = sources.ZeroMQ("ticks", subscribe=f"tcp://127.0.0.1:{port}", prefixes=["eu"])
    edge = Messages(declared, log)
    edge.start()
    try:
        assert sender.recv() == b"\x01eu"  # it has subscribed
        for number in range(100):
            sender.send_multipart([b"eu.1" if number % 2 else b"us.1", b"%d" % number])
        wait_for(edge, 50)
    finally:
        edge.close()
    assert [one.value for one in log.read("ticks")] == [b"%d" % n for n in range(1, 100, 2)]


@pytest.mark.parametrize("sender", [zmq.PULL], indirect=True, ids=["pull"])
def test_an_address_that_is_taken_is_told(log: Log, sender: Any) -> None:
    port = sender.bind_to_random_port("tcp://127.0.0.1")
    with pytest.raises(TailraceError, match="cannot use"):
        Messages(sources.ZeroMQ("ticks", pull=f"tcp://127.0.0.1:{port}"), log)


WRONG: list[tuple[Any, str]] = [
    (lambda: sources.ZeroMQ("z"), "one of"),
    (lambda: sources.ZeroMQ("z", subscribe="tcp://a:1", pull="tcp://b:1"), "one of"),
    (lambda: sources.ZeroMQ("z", pull=[]), "no address"),
    (lambda: sources.ZeroMQ("z", pull="127.0.0.1:5"), "no address of ZeroMQ"),
]


@pytest.mark.parametrize(("declare", "why"), WRONG)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(declare: Any, why: str) -> None:
    with pytest.raises(SourceDeclarationError, match=why):
        declare()
