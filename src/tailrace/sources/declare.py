"""What a project says about its databases, as plain values.

Nothing here opens a connection: a declaration can be imported, compared and pickled on
a machine that has no database driver.
"""

from __future__ import annotations

import difflib
import fnmatch
import hmac
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tailrace.config import SECRET, EnvironmentValue, hide, parse_duration, parse_size, resolve
from tailrace.kinds import misfit_field
from tailrace.masking import Secret
from tailrace.records.topic_names import topic_name
from tailrace.sources.errors import SourceDeclarationError

if TYPE_CHECKING:
    from tailrace.records.envelope import Change

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_SLOT = re.compile(r"[a-z0-9_]{1,63}")
MOST_PARTITIONS = 10_000
MASKS = ("null", "redact", "sha256")


@dataclass(frozen=True, slots=True)
class TableRef:
    """A captured table; its rows change, its topic is `<source>.<schema>.<table>`."""

    source: str
    schema: str
    table: str
    history: str | None = None
    kind: ClassVar[str] = "table"

    @property
    def topic(self) -> str:
        return topic_name(self.source, self.schema, self.table)

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    def inserts(self, *, snapshot: bool = False) -> Inserts:
        """The rows inserted from now on, as a stream of facts; `snapshot=True` adds the
        rows of the first copy, not those of later ones. Needs `history=` for this table on its source: a
        compacted topic forgets rows that were changed since."""
        return Inserts(self, snapshot)

    def changes(self, start: str = "now", *, bootstrap: str | None = None) -> Changes:
        """A change stream of this table; see `Changes`."""
        return Changes(self, start, bootstrap)


@dataclass(frozen=True, slots=True)
class Inserts:
    """Inserted rows of a table as an append-only stream."""

    table: TableRef
    snapshot: bool = False
    kind: ClassVar[str] = "inserts"

    @property
    def topic(self) -> str:
        return self.table.topic


@dataclass(frozen=True, slots=True)
class Changes:
    """Typed changes of one table, read from the log, sync or async.

    `start` is "now", "snapshot" (the rows as they are, then changes) or a position such
    as `pg:shop:0000000201A2B3C4` (changes of transactions after it; of SQLite the changes
    after it, in the middle of a transaction too). Iterating ends
    never; break out of it. `bootstrap` defaults to the running project's log. Of a table
    without a key, a change with `op` "truncate" says that all rows before it are gone.
    """

    table: TableRef
    start: str = "now"
    bootstrap: str | None = None
    kind: ClassVar[str] = "changes"

    @property
    def topic(self) -> str:
        return self.table.topic

    def __iter__(self) -> Iterator[Change]:
        from tailrace.sources.changes import follow

        return follow(self)

    def __aiter__(self) -> AsyncIterator[Change]:
        from tailrace.sources.changes import follow_async

        return follow_async(self)


@dataclass(frozen=True, slots=True)
class Outbox:
    """A table whose inserts are messages, routed to topics by their columns.

    A row goes to the topic `topic` with `{type}` replaced by its `type` column, keyed by
    its `key` column, with `payload` as the value and `headers` (JSON object) plus the id
    as headers. Updates and deletes of the table are clean-up and send nothing.
    """

    table: str
    topic: str = "{type}.events"
    id: str = "id"
    type: str = "aggregatetype"
    key: str = "aggregateid"
    payload: str = "payload"
    headers: str | None = None

    def __post_init__(self) -> None:
        _check_kinds(self)
        for field_name in ("table", "topic", "id", "type", "key", "payload"):
            if not getattr(self, field_name):
                raise SourceDeclarationError(f"{field_name} of an outbox is empty")
        rest = self.topic.replace("{type}", "")
        if not _TOPIC.fullmatch(rest or "x"):
            raise SourceDeclarationError(
                f"{self.topic!r} cannot be the topic of an outbox",
                hint='letters, digits, ".", "_" and "-", and {type}: "{type}.events"',
            )


@dataclass(frozen=True, slots=True)
class Postgres:
    """A Postgres database (14–18), captured from its write-ahead log.

    `tables` is a list of names ("orders", "sales.orders", "sales.*"); `exclude` takes
    names out of patterns. `columns` {table: [names]} captures only these, `where`
    {table: SQL condition} only the rows that fulfil it, `mask` {table: {column:
    "null" | "redact" | "sha256"}} hides values before they reach the log; `mask_key` keys
    the digests, so that nobody can try values out. `history`
    {table: "forever" | "90 days"} keeps every change of a table that long. `slot` and
    `publication` default to `tailrace_<project>_<name>`; with `create=False` they must exist,
    and default to `tailrace_<name>`.
    `copy_connections` is how many connections the first copy may use at a time.
    """

    name: str
    dsn: str | EnvironmentValue | Secret = field(metadata=SECRET)
    tables: str | Sequence[str] = ("public.*",)
    exclude: Sequence[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    mask: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mask_key: str | EnvironmentValue | Secret | None = field(default=None, metadata=SECRET)
    history: Mapping[str, str] = field(default_factory=dict)
    outbox: Outbox | None = None
    snapshot: bool = True
    partitions: int = 1
    slot: str | None = None
    publication: str | None = None
    create: bool = True
    ddl_trigger: bool = False
    copy_connections: int = 4
    heartbeat: str = "10 seconds"
    wal_warning: str = "1 GiB"
    wal_critical: str = "10 GiB"
    kind: ClassVar[str] = "postgres"

    def __post_init__(self) -> None:
        _check_kinds(self)
        hide(self)
        _check(self)

    # The defaults below are those of given ones, and of before names carried the project;
    # see `tailrace.sources.postgres.ownership`.

    @property
    def slot_name(self) -> str:
        return self.slot or "tailrace_" + re.sub(r"[^a-z0-9_]", "_", self.name.lower())

    @property
    def publication_name(self) -> str:
        return self.publication or "tailrace_" + re.sub(r"[^a-z0-9_]", "_", self.name.lower())

    @property
    def position_kind(self) -> str:
        return "pg"

    @property
    def transactions_topic(self) -> str:
        return f"{self.name}.transactions"

    @property
    def schemas_topic(self) -> str:
        return f"{self.name}.schemas"

    def table(self, name: str) -> TableRef:
        """The table `name`; in the schema `public` unless it says another."""
        return _table(self, name, "public")


@dataclass(frozen=True, slots=True)
class SQLite:
    """An SQLite file, captured by triggers into a change table in the same file."""

    name: str
    path: str | Path | EnvironmentValue
    tables: str | Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    mask: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mask_key: str | EnvironmentValue | Secret | None = field(default=None, metadata=SECRET)
    history: Mapping[str, str] = field(default_factory=dict)
    snapshot: bool = True
    partitions: int = 1
    poll: str = "20 ms"
    kind: ClassVar[str] = "sqlite"

    def __post_init__(self) -> None:
        _check_kinds(self)
        hide(self)
        _check(self)

    @property
    def position_kind(self) -> str:
        return "sqlite"

    @property
    def transactions_topic(self) -> str:
        return f"{self.name}.transactions"

    @property
    def schemas_topic(self) -> str:
        return f"{self.name}.schemas"

    def table(self, name: str) -> TableRef:
        """The table `name`."""
        return _table(self, name, "main")


@dataclass(frozen=True, slots=True)
class MySQL:
    """Databases of a MySQL (8.0–9.x) or MariaDB (10.6–11.8) server, captured from its binlog.

    `dsn` may list several servers of one replication group,
    `mysql://user:password@db1:3306,db2:3306/shop`; capture goes on with the next one when the
    first does not answer, if both have GTIDs. `tables`, `exclude`, `columns`, `mask`,
    `mask_key` and `history` are those of `Postgres`, where a bare table name means the
    database that the address names. `where` {table: condition} captures only rows that fulfil an SQL
    condition over their columns, asked of the server. `server_id` is the replica's number that capture takes
    (default: made of the source's name). `copy_connections` is how many connections the first
    copy may use at a time. Where a MySQL server has no GTIDs, the first copy needs
    `lock="moment"`: a global read lock, held while its position is read.
    """

    name: str
    dsn: str | EnvironmentValue | Secret = field(metadata=SECRET)
    tables: str | Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    mask: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mask_key: str | EnvironmentValue | Secret | None = field(default=None, metadata=SECRET)
    history: Mapping[str, str] = field(default_factory=dict)
    outbox: Outbox | None = None
    snapshot: bool = True
    partitions: int = 1
    copy_connections: int = 4
    server_id: int | None = None
    lock: str | None = None
    heartbeat: str = "10 seconds"
    kind: ClassVar[str] = "mysql"

    def __post_init__(self) -> None:
        _check_kinds(self)
        hide(self)
        _check(self)

    @property
    def database(self) -> str:
        """The database that bare table names are of."""
        from tailrace.sources.mysql.address import parse_address

        return parse_address(self.name, resolve(self.dsn)).database

    @property
    def position_kind(self) -> str:
        return "mysql"

    @property
    def transactions_topic(self) -> str:
        return f"{self.name}.transactions"

    @property
    def schemas_topic(self) -> str:
        return f"{self.name}.schemas"

    def table(self, name: str) -> TableRef:
        """The table `name`; in the database of the address unless it says another."""
        return _table(self, name, "" if "." in name else self.database)


Source: TypeAlias = Postgres | SQLite | MySQL


def default_schema(source: Source) -> str:
    """The schema that a bare table name is of."""
    if isinstance(source, MySQL):
        return source.database
    return "main" if isinstance(source, SQLite) else "public"


def mask_secret(source: Source) -> bytes:
    """The key of masking digests: the declared one, else one made of the source's name."""
    if source.mask_key is None:
        return f"tailrace:{source.name}".encode()
    return resolve(source.mask_key).encode()


def declared_for(source: Source, schema: str, table: str) -> dict[str, object]:
    """What decides which rows and values of a table reach the log; {} if all do."""
    found: dict[str, object] = {}
    columns = for_table(source.columns, schema, table)
    if isinstance(columns, Sequence):
        found["columns"] = sorted(str(name) for name in columns)
    where = None if isinstance(source, SQLite) else for_table(source.where, schema, table)
    if where is not None:
        found["where"] = str(where)
    masks = for_table(source.mask, schema, table)
    if isinstance(masks, Mapping) and masks:
        found["mask"] = dict(sorted(masks.items()))
        # Another key gives other digests; the key itself must not get into the log.
        found["mask_key"] = hmac.new(mask_secret(source), b"tailrace", "sha256").hexdigest()[:16]
    return found


def changed_declaration(
    state: Mapping[str, Any], declared: dict[str, object]
) -> dict[str, Any] | None:
    """How the copy of a table goes on when it was made under another declaration; None if
    it was not. Rows are compared one by one, so that only what looks different is written."""
    if state.get("declared", declared) == declared:
        return None
    changed: dict[str, Any] = {**state, "declared": declared, "after": None, "rows": 0}
    changed["reason"] = "the declared columns, rows or masks changed"
    for word in ("where", "keys", "ranges"):
        changed.pop(word, None)
    if state.get("state") in ("copying", "done", "again"):
        first = state["state"] == "copying"
        changed |= {"state": "copying" if first else "again", "compare": True, "whole": True}
    return changed


def copied_again(state: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """How the copy of a table without a key begins again: as a whole, whatever was asked for
    before. Its rows take the place of those in the topic (see `sources.bags`)."""
    gone = ("where", "keys", "ranges", "after", "compare", "whole", "begun")
    made = {word: value for word, value in state.items() if word not in gone}
    first = state.get("state") == "copying"
    return {**made, "rows": 0, "reason": reason, "state": "copying" if first else "again"}


def made_anew(state: Mapping[str, Any]) -> dict[str, Any]:
    """How a copy goes on when its table was dropped and another took its name: that one is
    compared with what the log has of the first."""
    gone = ("where", "keys", "ranges", "after", "until")
    made = {word: value for word, value in state.items() if word not in gone}
    made |= {"rows": 0, "reason": "the table was made anew"}
    if state.get("state") != "skipped":
        made |= {"compare": True, "whole": True}
        made["state"] = "copying" if state.get("state") == "copying" else "again"
    return made


def patterns(source: Source) -> tuple[str, ...]:
    """The table patterns of `source` as a tuple, whatever form they were given in."""
    return (source.tables,) if isinstance(source.tables, str) else tuple(source.tables)


def for_table(mapping: Mapping[str, object], schema: str, table: str) -> object | None:
    """What `mapping` (keyed by "table" or "schema.table") says about one table."""
    found = mapping.get(f"{schema}.{table}")
    return found if found is not None else mapping.get(table)


def _table(source: Source, name: str, default_schema: str) -> TableRef:
    schema, _, table = name.rpartition(".")
    schema = schema or default_schema
    history = for_table(source.history, schema, table)
    return TableRef(source.name, schema, table, None if history is None else str(history))


def _check_kinds(declared: Source | Outbox) -> None:
    if wrong := misfit_field(f"sources.{type(declared).__name__}", declared):
        raise SourceDeclarationError(wrong)


def _check(source: Source) -> None:
    if not _NAME.fullmatch(source.name):
        raise SourceDeclarationError(
            f"{source.name!r} cannot be the name of a source",
            hint="letters, digits, '_' and '-', at most 41, beginning with a letter or digit",
        )
    if not 1 <= source.partitions <= MOST_PARTITIONS:
        raise SourceDeclarationError(
            f'source "{source.name}" cannot have {source.partitions} partitions a table',
            hint=f"a number from 1 to {MOST_PARTITIONS}",
        )
    if not isinstance(source, SQLite) and source.copy_connections < 1:
        raise SourceDeclarationError(f'source "{source.name}" needs a connection to copy with')
    if not patterns(source):
        raise SourceDeclarationError(f'source "{source.name}" names no table')
    for table, masks in source.mask.items():
        for column, kind in masks.items():
            if kind not in MASKS:
                raise SourceDeclarationError(
                    f"unknown mask {kind!r} for {table}.{column}", hint=f"one of {', '.join(MASKS)}"
                )
    for kept in source.history.values():
        if kept != "forever":
            parse_duration(kept)
    _check_tables(source)
    if not isinstance(source, SQLite) and parse_duration(source.heartbeat) <= timedelta(0):
        raise SourceDeclarationError(
            f'source "{source.name}" has a heartbeat of nothing', hint='heartbeat="10 seconds"'
        )
    if isinstance(source, MySQL):
        if source.server_id is not None and not 0 < source.server_id < 1 << 32:
            raise SourceDeclarationError(
                f'source "{source.name}" cannot have the server id {source.server_id}',
                hint="a number from 1 to 4294967295 that no other replica has",
            )
        if source.lock not in (None, "moment"):
            raise SourceDeclarationError(
                f'source "{source.name}" has an unknown lock {source.lock!r}',
                hint='lock="moment", or none',
            )
        if not isinstance(source.dsn, EnvironmentValue):
            _ = source.database  # reading it is the check
    elif isinstance(source, Postgres):
        dsn = "" if isinstance(source.dsn, EnvironmentValue) else resolve(source.dsn)
        scheme, separator, _ = dsn.partition("://")
        if separator and "=" not in scheme and scheme not in ("postgres", "postgresql"):
            raise SourceDeclarationError(
                f'source "{source.name}" has no Postgres address',
                hint="postgres://user@host:5432/database",
            )
        if parse_size(source.wal_warning) > parse_size(source.wal_critical):
            raise SourceDeclarationError(
                f'source "{source.name}" has a wal_warning above its wal_critical',
                hint='wal_warning="1 GiB", wal_critical="10 GiB"',
            )
        if source.slot is not None and not _SLOT.fullmatch(source.slot):
            raise SourceDeclarationError(
                f"{source.slot!r} cannot be the name of a replication slot",
                hint="small letters, digits and '_', at most 63",
            )
        if source.publication == "":
            raise SourceDeclarationError(f'source "{source.name}" has a publication without name')
    else:
        parse_duration(source.poll)


def _check_tables(source: Source) -> None:
    """Refuse what is said about a table that is not captured: a mistyped name in `mask` would
    let through what it was meant to hide."""
    said: dict[str, Mapping[str, object]] = {"history": source.history, "mask": source.mask}
    said["columns"] = source.columns
    if not isinstance(source, SQLite):
        said["where"] = source.where
    for parameter, tables in said.items():
        for table, what in tables.items():
            if not _may_be_captured(source, table):
                known = [pattern for pattern in patterns(source) if "*" not in pattern]
                near = difflib.get_close_matches(table, known, n=1)
                raise SourceDeclarationError(
                    f'{parameter}= of source "{source.name}" names the table {table!r}, which it '
                    "does not capture",
                    hint=f"did you mean {near[0]!r}?" if near else f"add {table!r} to tables=",
                )
            if not what:
                raise SourceDeclarationError(
                    f'{parameter}= of source "{source.name}" says nothing about table {table!r}',
                    hint=f"leave {table!r} out of {parameter}=",
                )


def _may_be_captured(source: Source, name: str) -> bool:
    """Whether a table called so, in whatever schema if it names none, can be among those of
    the source."""
    schema, _, table = name.rpartition(".")
    wanted = list(patterns(source))
    if not isinstance(source, SQLite) and source.outbox is not None:
        wanted.append(source.outbox.table)
    for pattern in wanted:
        pattern_schema, _, pattern_table = pattern.rpartition(".")
        if fnmatch.fnmatchcase(name, pattern) or (
            fnmatch.fnmatchcase(table, pattern_table)
            and (not schema or not pattern_schema or fnmatch.fnmatchcase(schema, pattern_schema))
        ):
            return name not in source.exclude
    return False
