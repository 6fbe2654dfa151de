"""Sinks as a project declares them: frozen values, checked when they are made.

`name` tells copies apart in `tailrace sink …`; without one it is `<view>.<kind>`.
Connections may be `tr.env("NAME")`, read only when the sink runs. Connections, headers and
options are secrets: nothing prints them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, Literal

from tailrace.analyzers import LANGUAGES, is_language
from tailrace.config import SECRET, EnvironmentValue, hide, parse_address, shown
from tailrace.kinds import misfit_field
from tailrace.masking import Secret, host_of
from tailrace.sinks.errors import SinkDeclarationError

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
Text = str | EnvironmentValue
Hidden = str | EnvironmentValue | Secret
SchemaChange = Literal["add", "widen", "park"]
SCHEMA_CHANGES = ("add", "widen", "park")
TYPES_OF_FIELDS = ("text", "keyword", "integer", "float", "date", "boolean", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What every sink can be told.

    `whole`: everything up to a tick (whole source transactions) in one transaction of the
    target, however large. `columns`: types in Spark's words for a stream's columns that
    cannot be told from its JSON. `start`: a new copy begins with everything the log has
    ("earliest") or with the next change ("now"). `open`: columns that hold personal fields of
    events, sealed in the log, and delivered as plain text.
    """

    kind: ClassVar[str] = ""

    name: str | None = None
    start: Literal["earliest", "now"] = "earliest"
    whole: bool = False
    batch_rows: int = 20_000
    columns: Mapping[str, str] = field(default_factory=dict)
    open: tuple[str, ...] | list[str] = ()

    def __post_init__(self) -> None:
        if wrong := misfit_field(f"sinks.{type(self).__name__}", self):
            raise SinkDeclarationError(wrong)
        hide(self)
        if self.batch_rows < 1:
            raise SinkDeclarationError("batch_rows must be at least 1")
        if self.start not in ("earliest", "now"):
            raise SinkDeclarationError(
                f"start cannot be {self.start!r}", hint='"earliest" or "now"'
            )
        self._check()

    def _check(self) -> None:
        """Raise `SinkDeclarationError` for values that exclude each other."""

    @property
    def place(self) -> str:
        """Where the copy is, for people; never a password."""
        return self.kind

    @property
    def pace(self) -> timedelta | None:
        """How long to wait between batches, so that changes gather; None: not at all."""
        return None


def _need_address(given: Hidden, schemes: tuple[str, ...], example: str) -> None:
    """Refuse an address of another service, or none; its text is never told."""
    if isinstance(given, EnvironmentValue):
        return  # read when the sink runs
    text = given.reveal() if isinstance(given, Secret) else given
    scheme, separator, rest = text.partition("://")
    fits = bool(separator) and scheme.lower() in schemes and bool(rest.strip("/"))
    _need(
        fits, f"the address must begin with {' or '.join(f'{one}://' for one in schemes)}", example
    )


def _need_place(given: Text | Path, parameter: str) -> None:
    _need(isinstance(given, EnvironmentValue) or str(given).strip(), f"{parameter}= is empty")


def _need(condition: object, message: str, hint: str = "") -> None:
    if not condition:
        raise SinkDeclarationError(message, hint=hint)


def _check_change(given: str) -> None:
    _need(
        given in SCHEMA_CHANGES,
        f"unknown schema_change {given!r}",
        f"one of {', '.join(SCHEMA_CHANGES)}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table(Declaration):
    """A table in a database. `schema_change`: "add" adds nullable columns and never alters
    one that is there, "widen" also widens the types of columns (which may rewrite the table
    under a lock), "park" stops at any change."""

    table: str = ""
    create: bool = True
    schema_change: SchemaChange = "add"

    def _check(self) -> None:
        _need(self.table, f"a {self.kind} sink needs table=", 'the name of the table, such as table="reporting.orders"')  # fmt: skip
        _check_change(self.schema_change)

    @property
    def place(self) -> str:
        return f"{self.kind} table {self.table}"


@dataclass(frozen=True, slots=True)
class Postgres(_Table):
    """Rows in a Postgres table, merged from COPY, position in the same transaction."""

    kind: ClassVar[str] = "postgres"
    dsn: Hidden = field(metadata=SECRET)

    def _check(self) -> None:
        _Table._check(self)
        text = self.dsn.reveal() if isinstance(self.dsn, Secret) else self.dsn
        if not isinstance(text, str) or "=" not in text.partition("://")[0]:  # host=… dbname=…
            _need_address(self.dsn, ("postgres", "postgresql"), "postgres://user@host:5432/db")


@dataclass(frozen=True, slots=True)
class MySQL(_Table):
    """Rows in a MySQL or MariaDB table: `mysql://user:password@host:port/database`.

    TLS by MySQL's own names: `?ssl-mode=VERIFY_IDENTITY` (or VERIFY_CA, REQUIRED, DISABLED)
    with `ssl-ca=`, `ssl-cert=` and `ssl-key=` (paths). `ssl-ca` alone means VERIFY_IDENTITY;
    without any of them the connection is not encrypted.
    """

    kind: ClassVar[str] = "mysql"
    dsn: Hidden = field(metadata=SECRET)

    def _check(self) -> None:
        _Table._check(self)
        _need_address(self.dsn, ("mysql", "mariadb"), "mysql://user:password@host:3306/database")


@dataclass(frozen=True, slots=True)
class SQLite(_Table):
    """Rows in a table of an SQLite file."""

    kind: ClassVar[str] = "sqlite"
    path: Text | Path

    def _check(self) -> None:
        _Table._check(self)
        _need_place(self.path, "path")


@dataclass(frozen=True, slots=True)
class DuckDB(_Table):
    """Rows in a table of a DuckDB file, which is open only while a batch is written."""

    kind: ClassVar[str] = "duckdb"
    path: Text | Path

    def _check(self) -> None:
        _Table._check(self)
        _need_place(self.path, "path")


@dataclass(frozen=True, slots=True)
class Redis(Declaration):
    """`<prefix>:<key>` per row, by compare-and-set on the position.

    `format` "hash", "json" or "string" (the first column that is not in the key);
    `mode` "invalidate" deletes the entry instead of writing it. `expire` lets entries
    live that long after their last change; `tombstones` is how long the versions of
    deletes are known, and must outlive what can be replayed.
    """

    kind: ClassVar[str] = "redis"
    url: Hidden = field(metadata=SECRET)
    prefix: str
    format: Literal["hash", "json", "string"] = "hash"
    mode: Literal["update", "invalidate"] = "update"
    expire: timedelta | None = None
    tombstones: timedelta = timedelta(days=8)
    batch_rows: int = field(default=2_000, kw_only=True)

    def _check(self) -> None:
        _need(self.prefix, "a redis sink needs prefix=", 'keys begin with it: prefix="customer"')
        _need_address(self.url, ("redis", "rediss", "unix"), "redis://user:password@host:6379/0")
        _need(
            self.format in ("hash", "json", "string"),
            f"unknown format {self.format!r}",
            "one of hash, json, string",
        )
        _need(
            self.mode in ("update", "invalidate"),
            f"unknown mode {self.mode!r}",
            "update or invalidate",
        )

    @property
    def place(self) -> str:
        return f"redis {self.prefix}:*"


@dataclass(frozen=True, slots=True)
class Search(Declaration):
    """An embedded full-text index in a directory.

    `fields` names columns and how to treat them: "text" (searched word by word,
    "text:en" with stemming), "keyword", "integer", "float", "date", "boolean", "json".
    Without it strings are text and the rest by type.
    """

    kind: ClassVar[str] = "search"
    index: Text | Path
    fields: Mapping[str, str] | None = None

    def _check(self) -> None:
        _need_place(self.index, "index")
        for column, treatment in (self.fields or {}).items():
            _need(
                treatment.split(":")[0] in TYPES_OF_FIELDS,
                f"field {column!r} cannot be {treatment!r}",
                f"one of {', '.join(TYPES_OF_FIELDS)}; text may name a language, text:en",
            )
            kind, colon, language = treatment.partition(":")
            _need(
                not colon or (kind == "text" and is_language(language)),
                f"field {column!r} cannot be {treatment!r}",
                f"text may name a language: {', '.join(LANGUAGES)}",
            )

    @property
    def place(self) -> str:
        return f"search index {shown(self.index)}"


@dataclass(frozen=True, slots=True)
class Elasticsearch(Declaration):
    """Documents in an Elasticsearch or OpenSearch index, `_id` = key, external versions.

    `index` is an alias that points at `<index>-<generation>`; `mappings` becomes part of
    the index template.
    """

    kind: ClassVar[str] = "elasticsearch"
    url: Hidden = field(metadata=SECRET)
    index: str
    mappings: Mapping[str, Any] | None = None
    headers: Mapping[str, Hidden] = field(default_factory=dict, metadata=SECRET)

    def _check(self) -> None:
        _need(self.index == self.index.lower(), f"index {self.index!r} must be lower case")
        odd = (
            not self.index
            or self.index[0] in "_-+."
            or any(c in self.index for c in ' "*\\<|,>/?#:')
        )
        _need(
            not odd, f"{self.index!r} cannot be the name of an index", "letters, digits, '-', '_'"
        )
        _need_address(self.url, ("http", "https"), "https://search:9200")

    @property
    def place(self) -> str:
        return f"elasticsearch index {self.index}"


@dataclass(frozen=True, slots=True)
class Delta(Declaration):
    """A Delta table: "current" rows, or "history" with one row per version of a key
    (`valid_from`, `valid_to`, `current`)."""

    kind: ClassVar[str] = "delta"
    path: Text | Path
    mode: Literal["current", "history"] = "current"
    options: Mapping[str, Hidden] = field(default_factory=dict, metadata=SECRET)
    partition_by: tuple[str, ...] = ()

    def _check(self) -> None:
        _need(
            self.mode in ("current", "history"), f"unknown mode {self.mode!r}", "current or history"
        )
        _need_place(self.path, "path")
        twice = len(set(self.partition_by)) < len(self.partition_by)
        _need(not twice, "partition_by= names a column twice")

    @property
    def place(self) -> str:
        return f"delta table {shown(self.path)}"


@dataclass(frozen=True, slots=True)
class Parquet(Declaration):
    """Parquet files in a directory: the "current" rows, or the "history" of all changes."""

    kind: ClassVar[str] = "parquet"
    path: Text | Path
    mode: Literal["current", "history"] = "history"

    def _check(self) -> None:
        _need(
            self.mode in ("current", "history"), f"unknown mode {self.mode!r}", "current or history"
        )
        _need_place(self.path, "path")

    @property
    def place(self) -> str:
        return f"parquet files in {shown(self.path)}"


@dataclass(frozen=True, slots=True)
class Iceberg(Declaration):
    """Changes appended to an Iceberg table, the position in the snapshot's properties.
    `catalog` are pyiceberg's catalog properties. `schema_change` as of tables."""

    kind: ClassVar[str] = "iceberg"
    catalog: Mapping[str, Hidden] = field(metadata=SECRET)
    table: str
    schema_change: SchemaChange = "add"

    def _check(self) -> None:
        _check_change(self.schema_change)
        _need("." in self.table, f"table {self.table!r} has no namespace", 'table="sales.orders"')

    @property
    def place(self) -> str:
        return f"iceberg table {self.table}"


@dataclass(frozen=True, slots=True)
class Webhook(Declaration):
    """Every change as a signed POST, in order per key, at least once.

    The body is JSON; `Tailrace-Signature: t=<seconds>,v1=<hex>` is the HMAC-SHA256 of
    `<seconds>.<body>` under `secret`, `Idempotency-Key` is the same for every repeat.

    `address` in place of `url` names the column that holds the address of each row; a row
    without one is not sent. Rows are other people's, so only addresses of the public internet
    are called, or those at `hosts` (`hooks.example.org`, `*.example.org`). One that cannot be
    reached in three attempts has its row among the dead letters, and the others go on.
    """

    kind: ClassVar[str] = "webhook"
    url: Hidden | None = field(default=None, metadata=SECRET)
    secret: Hidden | None = field(default=None, metadata=SECRET)
    headers: Mapping[str, Hidden] = field(default_factory=dict, metadata=SECRET)
    batch: int = 1
    parallel: int = 4
    timeout: timedelta = timedelta(seconds=10)
    address: str | None = None
    hosts: tuple[str, ...] | list[str] = ()

    def _check(self) -> None:
        _need(
            (self.url is None) != (self.address is None),
            "a webhook has either url= or address=",
            'url="https://example.org/hook", or address="url": a column of the rows',
        )
        if self.url is not None:
            _need_address(self.url, ("http", "https"), "https://example.org/hook")
            _need(not self.hosts, "hosts= goes with address=")
        else:
            _need(self.address, "address= is the name of a column")
            _need(self.batch == 1, "rows with addresses of their own are sent one by one")
        _need(self.batch >= 1, "batch must be at least 1")
        _need(self.parallel >= 1, "parallel must be at least 1")

    @property
    def place(self) -> str:
        if self.url is None:
            return f"webhook {{{self.address}}}"
        url = host_of(self.url.reveal()) if isinstance(self.url, Secret) else shown(self.url)
        return f"webhook {url}"


@dataclass(frozen=True, slots=True)
class Email(Declaration):
    """Changes by mail through an SMTP server: one mail per change, or a digest. Begins with
    the next change unless `start="earliest"`.

    `server` is `smtp://user:password@host:port` (`smtps://` for TLS from the start); a
    password is only sent over TLS, to a server whose certificate is valid, or signed by the
    authority of `?cafile=PATH`. `subject` and `body` are `str.format` templates over the
    row's columns, `{view}`, `{key}` and `{op}`; a column of one of these names is
    `{row[key]}`. `Message-ID` is the same for every repeat.
    """

    kind: ClassVar[str] = "email"
    server: Hidden = field(metadata=SECRET)
    to: str | tuple[str, ...]
    sender: str = "tailrace@localhost"
    subject: str = "{view}: {key}"
    body: str | None = None
    digest: timedelta | None = None
    start: Literal["earliest", "now"] = field(default="now", kw_only=True)

    def _check(self) -> None:
        _need(self.to, "an e-mail sink needs to=")
        _need_address(self.server, ("smtp", "smtps"), "smtp://user:password@host:587")
        for template in filter(None, (self.subject, self.body)):
            try:
                list(Formatter().parse(template))
            except ValueError as reason:
                raise SinkDeclarationError(
                    f"{template!r} is no template: {reason}", hint='subject="{view}: {key}"'
                ) from reason
        for address in (self.sender, *([self.to] if isinstance(self.to, str) else self.to)):
            _need(len(address.splitlines()) == 1, f"{address!r} is no address")

    @property
    def named_columns(self) -> list[str]:
        """The columns that its templates name."""
        found: dict[str, None] = {}
        for template in filter(None, (self.subject, self.body)):
            for _, name, _, _ in Formatter().parse(template):
                first = re.split(r"[.\[]", name or "", maxsplit=1)[0]
                if within := re.fullmatch(r"row\[(.+?)\].*", name or ""):
                    first = within[1]
                if first not in ("", "view", "key", "op", "row"):
                    found[first] = None
        return list(found)

    @property
    def pace(self) -> timedelta | None:
        return self.digest

    @property
    def place(self) -> str:
        return f"mail to {self.to if isinstance(self.to, str) else ', '.join(self.to)}"


@dataclass(frozen=True, slots=True)
class Topic(Declaration):
    """Rows copied to another topic, here or on another cluster (`bootstrap`), in
    transactions that carry the position with them."""

    kind: ClassVar[str] = "topic"
    topic: str
    bootstrap: Text | None = None

    def _check(self) -> None:
        _need(
            not self.open,
            "a topic is no edge: what is sealed stays sealed in the log",
            "open= goes with databases, files, searches, webhooks and mails",
        )
        legal = _TOPIC.fullmatch(self.topic) and not self.topic.startswith("__")
        _need(
            legal and self.topic not in (".", ".."),
            f"{self.topic!r} cannot be the name of a topic",
            "letters, digits, '.', '_' and '-', at most 249",
        )
        if isinstance(self.bootstrap, str):
            for address in self.bootstrap.split(","):
                parse_address(address.strip())

    @property
    def place(self) -> str:
        return f"topic {self.topic}"


@dataclass(frozen=True, slots=True)
class Function(Declaration):
    """A Python function of an Arrow table of changes (`__deleted`, `__version` beside the
    columns). It may be called again with the same rows; the position is kept in the
    project's directory after it returned."""

    kind: ClassVar[str] = "function"
    function: Callable[..., object]

    def _check(self) -> None:
        try:
            inspect.signature(self.function).bind(None)
        except TypeError:
            _need(False, "the function of a sink takes one Arrow table", "def take(changes): …")
        except ValueError:
            pass  # one that does not say what it takes

    @property
    def place(self) -> str:
        return f"function {getattr(self.function, '__qualname__', self.function)}"
