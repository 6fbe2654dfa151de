"""Connections that do not know the secret of an event topic's owners."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from tailrace.facts import links as linking
from tailrace.facts.links import Link, Links


class Door:
    """An owner's door, and what came through it."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.came = threading.Semaphore(0)
        self.links = Links(self._frame, lambda link: None)
        self.address = self.links.listen("127.0.0.1:0")
        self.place = ("127.0.0.1", int(self.address.rpartition(":")[2]))

    def _frame(self, link: Link, data: bytes) -> None:
        self.frames.append(data)
        self.came.release()


@pytest.fixture
def door() -> Iterator[Door]:
    opened = Door()
    yield opened
    opened.links.close()


@contextlib.contextmanager
def member(door: Door, secret: str | None = None) -> Iterator[Link]:
    links = Links(lambda link, data: None, lambda link: None)
    try:
        known = door.links.secret if secret is None else secret
        yield links.connect(door.address, known, lambda link, data: None, lambda link: None, 30, lambda: None)  # fmt: skip
    finally:
        links.close()


def test_strangers_take_the_place_of_no_member(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MOST_LINKS", 4)
    monkeypatch.setattr(linking, "MOST_STRANGERS", 4)
    with contextlib.ExitStack() as held:
        for _ in range(30):
            stranger = held.enter_context(socket.create_connection(door.place, 30))
            assert len(stranger.recv(32)) == 32  # it was let in, and says nothing
        with member(door) as link:
            link.send([b"hello"])
            assert door.came.acquire(timeout=30)
    assert door.frames == [b"hello"]


def test_members_have_a_limit_too(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MOST_LINKS", 2)
    with member(door), member(door) as second:
        with pytest.raises(OSError, match=r"closed|reset"), member(door):
            pass
        second.send([b"still here"])
        assert door.came.acquire(timeout=30)
    assert door.frames == [b"still here"]


def test_garbage_ends_its_own_connection_and_no_other(door: Door) -> None:
    with member(door) as link:
        for size in (0, 1, 63, 64, 65, 1000, 300_000):
            stranger = socket.create_connection(door.place, 30)
            with stranger, contextlib.suppress(OSError):
                stranger.sendall(os.urandom(size))
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(65536):
                    pass
        with pytest.raises(OSError), member(door, "another secret"):
            pass
        link.send([b"fine"])
        assert door.came.acquire(timeout=30)
    assert door.frames == [b"fine"]


def test_a_link_made_while_its_side_closes_is_closed(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = Links(lambda link, data: None, lambda link: None)
    took = links._take_changes

    def closes_meanwhile() -> None:
        took()
        links._stopping = True  # the loop ends behind this, before it looks again

    monkeypatch.setattr(links, "_take_changes", closes_meanwhile)
    links._wake()
    with contextlib.suppress(ConnectionAbortedError):
        made = links.connect(door.address, door.links.secret, lambda link, data: None, lambda link: None, 30, lambda: None)  # fmt: skip
        links.close()
        assert made.fileno() == -1
    links.close()
