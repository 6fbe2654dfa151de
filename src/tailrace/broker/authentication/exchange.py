"""What a SASL mechanism is to the broker: one message at a time, until it knows who this is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tailrace.broker.principals import Principal


class Refused(Exception):
    """The log-in failed. The message goes to the client and must not say which part was wrong."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to answer, and who it is if that is known now."""

    answer: bytes
    principal: Principal | None = None
    expires_at_ms: int | None = None
    """When the credentials end, on the wall clock; None if they do not."""
    by_token: bool = False
    """Whether it was a delegation token that was shown."""


Later = Callable[[], Step]
"""Work for another thread: reading keys, deriving one from a password. May raise Refused."""


class Exchange(Protocol):
    """One log-in by one mechanism."""

    def step(self, message: bytes) -> Step | Later:
        """Raises Refused."""
