"""Declarations of edges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, TypeAlias

from tailrace.config import (
    SECRET,
    EnvironmentValue,
    hide,
    parse_address,
    parse_duration,
    parse_size,
)
from tailrace.errors import ConfigError
from tailrace.kinds import misfit_field
from tailrace.loopback import is_loopback
from tailrace.masking import Secret
from tailrace.sources.errors import SourceDeclarationError

SCHEMES = ("standard", "github", "stripe")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
Hidden: TypeAlias = str | EnvironmentValue | Secret


@dataclass(frozen=True, slots=True)
class Webhook:
    """Signed calls of a provider, each a record of the topic `name` (or `topic`), its body as it
    came.

    `secret` signs them, by Standard Webhooks, or as GitHub or Stripe do (`scheme`); several are
    tried in turn, so that a key can be rotated. A call whose time is further off than `tolerance` is
    refused. It is answered when its record is committed, with the record's position; one with the id
    of an earlier call of the last day gets the same answer and writes nothing.
    """

    name: str
    listen: str
    secret: Hidden | Sequence[Hidden] = field(metadata=SECRET)
    path: str = "/"
    scheme: str = "standard"
    tolerance: str = "5 minutes"
    topic: str | None = None
    limit: str | int = "1 MiB"
    cert: str | Path | None = None
    key: str | Path | None = None
    kind: ClassVar[str] = "webhook"

    def __post_init__(self) -> None:
        _check(self)
        if self.scheme not in SCHEMES:
            raise _wrong(
                self.name, f"unknown scheme {self.scheme!r}", f"one of {', '.join(SCHEMES)}"
            )
        if not self.secrets:
            raise _wrong(
                self.name, "no secret: anybody could call it", 'secret=tr.env("HOOK_SECRET")'
            )
        if not self.path.startswith("/"):
            raise _wrong(self.name, "the path does not begin with a slash", 'path="/hooks"')
        try:
            parse_duration(self.tolerance)
        except ConfigError as error:
            raise _wrong(self.name, error.message, 'tolerance="5 minutes"') from error
        object.__setattr__(self, "secret", tuple(self.secrets))
        hide(self)
        object.__setattr__(self, "secret", tuple(_hidden(one) for one in self.secrets))

    @property
    def secrets(self) -> Sequence[Hidden]:
        given = self.secret
        return given if isinstance(given, list | tuple) else (given,) if given else ()

    @property
    def patience(self) -> timedelta:
        return parse_duration(self.tolerance)

    @property
    def written(self) -> str:
        return self.topic or self.name

    @property
    def writes(self) -> Sequence[str]:
        """The topics it writes."""
        return (self.written,)


@dataclass(frozen=True, slots=True)
class HTTP:
    """Records over HTTP, as Kafka's REST proxy takes them: `POST /topics/TOPIC`.

    Only `topics` are written. The records of a request become visible together, and it is answered
    after the commit with their partitions and offsets. `token`: what callers send as
    `Authorization: Bearer …`; without one everybody who reaches the address may write, which must be
    this machine or meant (`insecure=True`).
    """

    name: str
    listen: str
    topics: Sequence[str]
    token: Hidden | None = field(default=None, metadata=SECRET)
    limit: str | int = "16 MiB"
    cert: str | Path | None = None
    key: str | Path | None = None
    insecure: bool = False
    kind: ClassVar[str] = "http"

    def __post_init__(self) -> None:
        _check(self)
        if not self.topics:
            raise _wrong(self.name, "no topics may be written", 'topics=["clicks"]')
        for topic in self.topics:
            if not _NAME.fullmatch(topic):
                raise _wrong(self.name, f"{topic!r} is no name of a topic", 'topics=["clicks"]')
        host, _ = parse_address(self.listen)
        guarded = self.token is not None and self.cert is not None
        if not (is_loopback(host) or guarded or self.insecure):
            raise _wrong(
                self.name,
                f"whoever reaches {self.listen} could write, or overhear the token",
                "give token=, cert= and key=, or insecure=True behind a proxy or a firewall",
            )
        hide(self)

    @property
    def writes(self) -> Sequence[str]:
        """The topics it writes."""
        return self.topics


@dataclass(frozen=True, slots=True)
class StatsD:
    """Metrics over UDP, of StatsD and DogStatsD, aggregated and written every `flush` to the topic
    `name` (or `topic`): `{"name", "type", "value", "tags", "at"}`.

    Whoever reaches the address can send. `buffer` is the room the kernel is asked for; what it
    drops is counted.
    """

    name: str
    listen: str
    flush: str = "10 seconds"
    topic: str | None = None
    buffer: str | int = "8 MiB"
    kind: ClassVar[str] = "statsd"

    def __post_init__(self) -> None:
        _check(self)
        try:
            if not timedelta(0) < parse_duration(self.flush):
                raise _wrong(self.name, "flush must take some time", 'flush="10 seconds"')
        except ConfigError as error:
            raise _wrong(self.name, error.message, 'flush="10 seconds"') from error

    @property
    def every(self) -> timedelta:
        return parse_duration(self.flush)

    @property
    def buffer_bytes(self) -> int:
        return parse_size(self.buffer)

    @property
    def written(self) -> str:
        return self.topic or self.name

    @property
    def writes(self) -> Sequence[str]:
        """The topics it writes."""
        return (self.written,)


Edge: TypeAlias = Webhook | HTTP | StatsD


def _hidden(value: Hidden) -> Hidden:
    return Secret(value) if isinstance(value, str) else value


def _check(edge: Webhook | HTTP | StatsD) -> None:
    wrong = misfit_field(f"{type(edge).__name__}({edge.name!r})", edge)
    if wrong is not None:
        raise SourceDeclarationError(wrong)
    if not _NAME.fullmatch(edge.name):
        raise _wrong(edge.name, "the name is no name of a topic", "letters, digits, . _ and -")
    try:
        parse_address(edge.listen)
        parse_size(edge.buffer if isinstance(edge, StatsD) else edge.limit)
    except ConfigError as error:
        raise _wrong(edge.name, error.message, error.hint) from error
    if not isinstance(edge, StatsD) and (edge.cert is None) != (edge.key is None):
        raise _wrong(edge.name, "a certificate and its key go together", "cert= and key=")


def _wrong(name: str, what: str, hint: str) -> SourceDeclarationError:
    return SourceDeclarationError(f"edge {name!r}: {what}", hint=hint)
