"""The broker's loop by itself."""

from __future__ import annotations

import socket
from collections.abc import Callable

from tailrace.broker.loop import GONE, READ, Loop
from tailrace.clock import SystemClock


def test_an_event_of_a_closed_socket_is_not_given_to_the_next_one_with_its_number() -> None:
    """Both ends hang up at once; whoever hears of it first closes the other and opens a new one."""
    loop = Loop(SystemClock())
    watched = {}
    kept = []
    heard: list[int] = []

    def hung_up(mine: int) -> Callable[[int], None]:
        def on_event(mask: int) -> None:
            assert mask & GONE
            loop.forget(mine)
            watched.pop(mine).close()
            ((other, stale),) = watched.items()
            loop.forget(other)
            watched.clear()
            stale.close()
            fresh = [socket.socketpair() for _ in range(2)]
            kept.extend(each for pair in fresh for each in pair)
            assert {mine, other} & {each.fileno() for each in kept}
            for each in kept:
                loop.watch(each.fileno(), READ, heard.append)
            loop.call_later(0.02, loop.stop)

        return on_event

    peers = []
    for _ in range(2):
        ours, theirs = socket.socketpair()
        watched[ours.fileno()] = ours
        peers.append(theirs)
    for number in watched:
        loop.watch(number, READ, hung_up(number))
    for each in peers:
        each.close()
    loop.run()
    assert heard == []
    kept[0].sendall(b"x")  # the new ones are heard from the next round on
    loop.call_later(0.02, loop.stop)
    loop.run()
    assert heard
    for each in kept:
        loop.forget(each.fileno())
        each.close()
    loop.close()
