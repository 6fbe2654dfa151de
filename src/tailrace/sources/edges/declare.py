"""Declarations of edges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, TypeAlias
from urllib.parse import urlsplit
from zlib import crc32

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
from tailrace.sources.edges.datagrams import is_group
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

    `register` has the provider make the hook when the edge starts: `api`, the address of its list
    of hooks, `url`, where it reaches this edge, `token`, and `events` (a list in one text).
    `tailrace source drop` removes it. Stripe makes the secret itself, so that none need be given.
    """

    name: str
    listen: str
    secret: Hidden | Sequence[Hidden] = field(default=(), metadata=SECRET)
    path: str = "/"
    scheme: str = "standard"
    tolerance: str = "5 minutes"
    topic: str | None = None
    limit: str | int = "1 MiB"
    cert: str | Path | None = None
    key: str | Path | None = None
    register: Mapping[str, Hidden] | None = field(default=None, metadata=SECRET)
    kind: ClassVar[str] = "webhook"

    def __post_init__(self) -> None:
        _check(self)
        if self.scheme not in SCHEMES:
            raise _wrong(
                self.name, f"unknown scheme {self.scheme!r}", f"one of {', '.join(SCHEMES)}"
            )
        if self.register is not None:
            self._check_registration(self.register)
        if not self.secrets and not (self.register is not None and self.scheme == "stripe"):
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

    def _check_registration(self, given: Mapping[str, Hidden]) -> None:
        example = 'register={"api": "https://api.github.com/repos/NAME/hooks", "url": "https://…", "token": tr.env("…")}'  # fmt: skip
        for name in given.keys() - {"api", "url", "token", "events"}:
            raise _wrong(self.name, f"register= knows no {name!r}", example)
        for name in ("api", "url"):
            value = given.get(name)
            if not value:
                raise _wrong(self.name, f"register= needs {name!r}", example)
            if isinstance(value, str):
                host = urlsplit(value).hostname or ""
                if not value.startswith("https://") and not (
                    value.startswith("http://") and (name == "url" or is_loopback(host))
                ):
                    raise _wrong(
                        self.name, f"{name!r} of register= is no https:// address", example
                    )

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
    this machine or meant (`insecure=True`). `registry`: the address of a schema registry
    (`http://USER:PASSWORD@HOST:PORT`), for bodies in Avro, JSON Schema and Protobuf.
    """

    name: str
    listen: str
    topics: Sequence[str]
    token: Hidden | None = field(default=None, metadata=SECRET)
    limit: str | int = "16 MiB"
    cert: str | Path | None = None
    key: str | Path | None = None
    insecure: bool = False
    registry: Hidden | None = field(default=None, metadata=SECRET)
    kind: ClassVar[str] = "http"

    def __post_init__(self) -> None:
        _check(self)
        if not self.topics:
            raise _wrong(self.name, "no topics may be written", 'topics=["clicks"]')
        for topic in self.topics:
            if not _NAME.fullmatch(topic):
                raise _wrong(self.name, f"{topic!r} is no name of a topic", 'topics=["clicks"]')
        if isinstance(self.registry, str) and not self.registry.startswith(("http://", "https://")):
            raise _wrong(self.name, "registry= is no address", 'registry="http://127.0.0.1:8081"')
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


@dataclass(frozen=True, slots=True)
class Multicast:
    """Numbered datagrams of a multicast group, in order and each once, as records of the topic
    `name` (or `topic`); with `send=` the other way: the records of that topic to the group.

    A datagram is `TRM1`, the sender's number (u32), its sequence (u64), the payload. What is
    missing is asked for over TCP at `repair`, the address of the sender, where a sending edge
    listens. What nobody has, or what does not come within `patience` (5 seconds; half a second
    without `repair`), is counted as lost. `interface` is the address of the network card (IPv6:
    its name). A sending edge numbers its partitions from `source`; `hops` is how many routers a
    datagram may pass.
    """

    name: str
    group: str
    interface: str | None = None
    repair: str | None = None
    send: str | None = None
    topic: str | None = None
    patience: str | None = None
    source: int | None = None
    hops: int = 1
    buffer: str | int = "8 MiB"
    kind: ClassVar[str] = "multicast"

    def __post_init__(self) -> None:
        _check(self)
        host, port = parse_address(self.group)
        if not is_group(host):
            raise _wrong(self.name, f"{host} is no multicast group", 'group="239.1.1.1:7400"')
        if not port and self.send is not None:
            raise _wrong(self.name, "a port must be named to send", 'group="239.1.1.1:7400"')
        if self.send is not None and self.topic is not None:
            raise _wrong(self.name, "it sends one topic or writes one", "leave out send= or topic=")
        if self.source is not None and not 0 <= self.source < 2**32 - 100_000:
            raise _wrong(self.name, "source is no number of 32 bits", "source=1")
        if not 0 <= self.hops <= 255:
            raise _wrong(self.name, "hops is from 0 to 255", "hops=1")
        try:
            if self.repair is not None:
                parse_address(self.repair)
            parse_duration(self.patience or "1 second")
        except ConfigError as error:
            raise _wrong(self.name, error.message, error.hint) from error

    @property
    def listen(self) -> str:
        return self.group

    @property
    def number(self) -> int:
        """The number of the sender of partition 0."""
        return crc32(self.name.encode()) >> 1 if self.source is None else self.source

    @property
    def wait(self) -> timedelta:
        given = self.patience or ("5 seconds" if self.repair else "500 ms")
        return parse_duration(given)

    @property
    def buffer_bytes(self) -> int:
        return parse_size(self.buffer)

    @property
    def written(self) -> str:
        return self.topic or self.name

    @property
    def writes(self) -> Sequence[str]:
        """The topics it writes."""
        return () if self.send is not None else (self.written,)


@dataclass(frozen=True, slots=True)
class ZeroMQ:
    """Messages of ZeroMQ as records of the topic `name` (or `topic`): the first frame is the key,
    the second the value, further ones are headers `frame`; a single frame is the value.

    `subscribe`: addresses of PUB sockets, to which it connects, for the messages that begin with
    one of `prefixes`. `pull`: addresses at which it takes what PUSH sockets send. `bind` turns
    round which side listens. Whoever reaches an address can send.
    """

    name: str
    subscribe: str | Sequence[str] | None = None
    pull: str | Sequence[str] | None = None
    topic: str | None = None
    prefixes: Sequence[str] = ("",)
    bind: bool | None = None
    limit: str | int = "16 MiB"
    kind: ClassVar[str] = "zeromq"

    def __post_init__(self) -> None:
        _check(self)
        if (self.subscribe is None) == (self.pull is None):
            raise _wrong(
                self.name, "one of subscribe and pull is wanted", 'pull="tcp://127.0.0.1:5557"'
            )
        for address in self.addresses:
            if not re.fullmatch(r"(tcp://.+:[0-9*]+|ipc://.+|inproc://.+)", address):
                raise _wrong(
                    self.name,
                    f"{address!r} is no address of ZeroMQ",
                    "tcp://HOST:PORT or ipc://PATH",
                )
        if not self.addresses:
            raise _wrong(self.name, "no address", 'pull="tcp://127.0.0.1:5557"')

    @property
    def addresses(self) -> Sequence[str]:
        given = self.subscribe if self.pull is None else self.pull
        return (given,) if isinstance(given, str) else tuple(given or ())

    @property
    def binds(self) -> bool:
        return self.pull is not None if self.bind is None else self.bind

    @property
    def listen(self) -> str:
        return ", ".join(self.addresses)

    @property
    def written(self) -> str:
        return self.topic or self.name

    @property
    def writes(self) -> Sequence[str]:
        """The topics it writes."""
        return (self.written,)


Edge: TypeAlias = Webhook | HTTP | StatsD | Multicast | ZeroMQ


def _hidden(value: Hidden) -> Hidden:
    return Secret(value) if isinstance(value, str) else value


def _check(edge: Webhook | HTTP | StatsD | Multicast | ZeroMQ) -> None:
    wrong = misfit_field(f"{type(edge).__name__}({edge.name!r})", edge)
    if wrong is not None:
        variable = next((one.name for one in _given(edge) if isinstance(one, EnvironmentValue)), "")
        hint = f'read it when the file is loaded: os.environ["{variable}"]' if variable else ""
        raise SourceDeclarationError(wrong, hint=hint)
    if not _NAME.fullmatch(edge.name):
        raise _wrong(edge.name, "the name is no name of a topic", "letters, digits, . _ and -")
    try:
        if not isinstance(edge, ZeroMQ):
            parse_address(edge.listen)
        parse_size(edge.buffer if isinstance(edge, StatsD | Multicast) else edge.limit)
    except ConfigError as error:
        raise _wrong(edge.name, error.message, error.hint) from error
    if isinstance(edge, Webhook | HTTP) and (edge.cert is None) != (edge.key is None):
        raise _wrong(edge.name, "a certificate and its key go together", "cert= and key=")


def _given(edge: Webhook | HTTP | StatsD | Multicast | ZeroMQ) -> list[object]:
    return [getattr(edge, each.name) for each in fields(edge) if not each.metadata.get("secret")]


def _wrong(name: str, what: str, hint: str) -> SourceDeclarationError:
    return SourceDeclarationError(f"edge {name!r}: {what}", hint=hint)
