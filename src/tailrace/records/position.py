"""Positions as text: `<kind>:<name>:<version>`.

    pg:shop:0000000201A2B3C4     a commit of the Postgres source `shop` (LSN, 16 hex digits)
    mysql:shop:000000010000000300000C4A   server 1, file 3, byte 0xC4A of its binlog
    sqlite:shop:00000000000000B4 a change of the SQLite source `shop` (its number)
    tick:shop:184467             a tick of the project `shop`
    log:clicks/3:9912            the record at offset 9912 of partition 3 of `clicks`

A position is *covered* by a view once everything up to it, itself included, is in the
view. Versions of one kind and name are ordered; positions of different names are not
comparable. `sqlite:shop:00000000000000B4.7` lies between two records of one change, such as
rows of a copy: after the seventh of its transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.errors import UsageError

DECIMAL_KINDS = ("tick", "log")


@dataclass(frozen=True, slots=True)
class Position:
    """One point in one history."""

    kind: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}:{self.version}"

    @property
    def number(self) -> int:
        """The version as a number: decimal for ticks and offsets, else hexadecimal."""
        return int(self._parts[0], 10 if self.kind in DECIMAL_KINDS else 16)

    @property
    def ordinal(self) -> int | None:
        """Which record of the change it lies behind; None: behind all of them."""
        return int(self._parts[1]) if len(self._parts) == 2 else None

    @property
    def _parts(self) -> list[str]:
        return self.version.split(".", 1) if self.kind == "sqlite" else [self.version]


def parse_position(text: str) -> Position:
    """Read `<kind>:<name>:<version>`; `UsageError` on anything else."""
    kind, _, rest = text.partition(":")
    name, _, version = rest.rpartition(":")
    position = Position(kind, name, version)
    try:
        if not kind or not name:
            raise ValueError
        if not all(part.isascii() and part.isalnum() for part in position._parts):
            raise ValueError
        _ = position.number, position.ordinal  # reading them is the check
        if kind == "log":
            int(name.rpartition("/")[2])
    except ValueError:
        raise UsageError(
            f"{text!r} is not a position",
            detail="A position is <kind>:<name>:<version>.",
            hint="examples: pg:shop:0000000201A2B3C4, tick:shop:184467, log:clicks/3:9912",
        ) from None
    return position


def covered(
    wanted: Position,
    *,
    project: str,
    tick: int,
    positions: Mapping[str, str],
    inputs: Mapping[str, Mapping[int, int]],
) -> bool | None:
    """Whether a view at `tick` has everything up to `wanted`.

    `positions` are the tick row's source positions, `inputs` its next offsets. None means
    that this view cannot tell: it does not read that source or topic.
    """
    if wanted.kind == "tick":
        return tick >= wanted.number if wanted.name == project else None
    if wanted.kind == "log":
        topic, _, partition = wanted.name.rpartition("/")
        following = inputs.get(topic, {}).get(int(partition))
        return None if following is None else following > wanted.number
    reached = positions.get(wanted.name)
    if reached is None:
        return None
    held = parse_position(reached)
    if held.kind != wanted.kind:
        return None
    if held.kind == "mysql" and held.number >> 64 != wanted.number >> 64:
        return False  # places of two servers have no order
    return held.number >= wanted.number
