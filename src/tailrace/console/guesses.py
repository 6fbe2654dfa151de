"""Wrong tokens, counted by the address they came from."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

from tailrace.clock import SYSTEM, Clock

MOST = 10
SECONDS = 60.0
REMEMBERED = 10_000


class Guesses:
    """An address may be wrong `MOST` times in `SECONDS`. Bounded: the oldest are forgotten."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()  # since when, how many

    def exhausted(self, address: str) -> bool:
        """Whether this address has been wrong too often lately."""
        began, count = self._wrong.get(_network(address), (0.0, 0))
        return count >= MOST and self._clock.monotonic() - began < SECONDS

    def count(self, address: str) -> None:
        """Remember that this address was wrong."""
        now, who = self._clock.monotonic(), _network(address)
        began, count = self._wrong.pop(who, (now, 0))
        if now - began >= SECONDS:
            began, count = now, 0
        self._wrong[who] = (began, count + 1)
        while len(self._wrong) > REMEMBERED:
            self._wrong.popitem(last=False)


def _network(address: str) -> str:
    """One caller may have all addresses of an IPv6 network of 64 bits."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
