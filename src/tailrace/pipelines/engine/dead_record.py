"""A record that became no rows: the reason, and what was found."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.records.decode import Headers


@dataclass(frozen=True, slots=True)
class DeadRecord:
    """A record that could not be read, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    stack: str = ""
    blocked_by: str = ""  # the position it waits behind, where its key is blocked
