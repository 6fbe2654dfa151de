"""What processes say to each other about one event topic: msgpack, one struct a frame."""

from __future__ import annotations

from typing import Any

import msgspec

from tailrace.facts.records import Stored


class Decide(msgspec.Struct, array_like=True, tag="d", frozen=True):
    """Decide on a stream: a command by name, or events to append."""

    number: int
    partition: int
    stream: str
    id: str
    named: bool
    tried: bool
    command: str | None
    arguments: dict[str, Any]
    events: list[tuple[str, bytes]]
    expected: int | None
    actor: str | None
    cause: str | None
    correlation: str | None
    unless: list[tuple[list[str], list[tuple[str, Any]]]] | None
    after: int


class Look(msgspec.Struct, array_like=True, tag="l", frozen=True):
    """A question: "state", "events" or "read"."""

    number: int
    partition: int
    what: str
    stream: str = ""
    version: int | None = None
    before: int | None = None
    first: int = 1
    last: int | None = None
    query: list[tuple[list[str], list[tuple[str, Any]]]] = []


Said = Decide | Look


class Decided(msgspec.Struct, array_like=True, tag="D", frozen=True):
    """A decision that is durable."""

    number: int
    events: list[tuple[str, bytes]]
    version: int
    position: str | None
    state: bytes
    id: str
    repeated: bool


class State(msgspec.Struct, array_like=True, tag="S", frozen=True):
    number: int
    state: bytes
    version: int
    position: str | None


class Listed(msgspec.Struct, array_like=True, tag="L", frozen=True):
    """Events as they stand in the log, and the offset of the last record looked at."""

    number: int
    stored: list[Stored]
    last: int


class Failed(msgspec.Struct, array_like=True, tag="F", frozen=True):
    """The four parts of an error."""

    number: int
    parts: dict[str, str]


Answered = Decided | State | Listed | Failed

encode = msgspec.msgpack.Encoder().encode
decode_said = msgspec.msgpack.Decoder(Said).decode
decode_answered = msgspec.msgpack.Decoder(Answered).decode
