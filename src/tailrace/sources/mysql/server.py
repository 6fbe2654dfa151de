"""A server and what it says of itself: version, settings, position, tables."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql

from tailrace.sources.declare import MySQL, for_table, patterns
from tailrace.sources.errors import (
    BinlogSettingsError,
    PrivilegeError,
    ReplicationProtocolError,
    ServerUnreachableError,
    SourceError,
    TableMissingError,
    UnsupportedServerError,
)
from tailrace.sources.mysql.address import Address
from tailrace.sources.mysql.fields import (
    BINARIES,
    CODECS,
    GEOMETRIES,
    STRINGS,
    Charset,
    Field,
    codec_decoder,
    enum_values,
    table_decoder,
)
from tailrace.sources.mysql.gtid import GtidSet, GtidState, Known

log = logging.getLogger(__name__)

SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")
REQUESTS = "_tailrace_requests"
DENIED = (1044, 1045, 1142, 1143, 1227, 1370)
# What passes by itself: lost, refused for now, shutting down, too many connections.
PASSING = (
    1040,
    1053,
    1152,
    1158,
    1159,
    1160,
    1161,
    1205,
    1213,
    1927,
    2002,
    2003,
    2006,
    2013,
    2014,
    2055,
    3169,
)


GRANTS = "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the user;"


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Errors of the driver as errors of ours."""
    try:
        yield
    except pymysql.MySQLError as error:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        if number in DENIED:
            raise PrivilegeError(
                f"the database user may not do this: {what}",
                detail=text,
                hint=GRANTS,
            ) from error
        if number in PASSING or isinstance(error, (pymysql.InterfaceError,)) or number == 0:
            raise ServerUnreachableError(
                "the database does not answer",
                detail=text or what,
                hint="capture connects again and goes on where the log ends",
            ) from error
        raise SourceError(f"the database refuses: {what}", detail=f"{number}: {text}") from error
    except (OSError, EOFError) as error:
        raise ServerUnreachableError(
            "the database does not answer",
            detail=str(error),
            hint="capture connects again and goes on where the log ends",
        ) from error


def connect(address: Address, number: int = 0, *, timeout: float = 60) -> Any:
    """A connection in autocommit, its times in UTC and its texts as they are."""
    with translated("log in"):
        return pymysql.connect(
            **address.driver(number),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=10,
            read_timeout=timeout,
            write_timeout=60,
            init_command="SET time_zone = '+00:00', sql_mode = '', NAMES utf8mb4",
        )


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table as the catalog has it; `key` are names of columns."""

    schema: str
    table: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A reference by which the server changes rows without telling of them."""

    child: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str


@dataclass
class Server:
    """One server over a connection of its own, for questions."""

    connection: Any
    mariadb: bool = False
    version: tuple[int, ...] = ()
    version_text: str = ""
    id: int = 0
    uuid: str = ""
    gtids: bool = False
    _charsets: dict[int, Charset] = field(default_factory=dict)
    _by_name: dict[str, Charset] = field(default_factory=dict)

    @classmethod
    def ask(cls, connection: Any) -> Server:
        made = cls(connection)
        made.version_text = str(made.value("SELECT version()"))
        made.mariadb = "mariadb" in made.version_text.lower()
        numbers = made.version_text.removeprefix("5.5.5-").split("-")[0].split(".")
        made.version = tuple(int(n) for n in numbers if n.isdigit())
        made.id = int(made.value("SELECT @@server_id"))
        if made.mariadb:
            made.gtids = True
        else:
            made.uuid = str(made.value("SELECT @@server_uuid"))
            made.gtids = str(made.value("SELECT @@global.gtid_mode")) == "ON"
        return made

    @property
    def tells_cascades(self) -> bool:
        """Whether the binlog has the rows that foreign keys change."""
        return not self.mariadb and self.version >= (9, 7)

    # --- questions -------------------------------------------------------------------------

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with translated(query[:60]), self.connection.cursor() as cursor:
            cursor.execute(query, tuple(parameters) or None)
            return list(cursor.fetchall())

    def value(self, query: str, parameters: Sequence[object] = ()) -> Any:
        rows = self.rows(query, parameters)
        return rows[0][0] if rows else None

    def setting(self, name: str) -> str | None:
        rows = self.rows("SHOW GLOBAL VARIABLES LIKE %s", [name.replace("_", "\\_")])
        return str(rows[0][1]) if rows else None

    def end(self) -> tuple[str, int]:
        """File and position where the binlog ends now."""
        modern = not self.mariadb and self.version >= (8, 2)
        rows = self.rows("SHOW BINARY LOG STATUS" if modern else "SHOW MASTER STATUS")
        if not rows:
            raise BinlogSettingsError(
                "the server writes no binlog",
                hint="start it with log_bin, and binlog_format = ROW",
            )
        return str(rows[0][0]), int(rows[0][1])

    def executed(self) -> Known | None:
        """What is committed and seen; None where the server has no GTIDs."""
        if not self.gtids:
            return None
        if self.mariadb:
            return self.state_at(*self.end())
        return GtidSet(str(self.value("SELECT @@global.gtid_executed")))

    def lacks(self, ours: Known) -> str:
        """The transactions of `ours` that this server does not have, as text.

        A number of MariaDB's is unique only with the server that made it, so one that another
        server made under the same number is none of ours.
        """
        if isinstance(ours, GtidState):
            made: dict[tuple[int, int], int] = {}
            for setting in ("gtid_binlog_state", "gtid_slave_pos"):
                for one in str(self.value(f"SELECT @@global.{setting}") or "").split(","):
                    if one.strip():
                        domain, maker, number = (int(part) for part in one.split("-"))
                        made[domain, maker] = max(number, made.get((domain, maker), 0))
            return ",".join(
                f"{domain}-{maker}-{number}"
                for domain, (maker, number) in sorted(ours.last.items())
                if made.get((domain, maker), 0) < number
            )
        theirs = self.executed()
        assert theirs is not None
        return ours.without(theirs)

    def state_at(self, file: str, position: int) -> GtidState:
        """MariaDB's state at a place in its binlog."""
        return GtidState(str(self.value("SELECT BINLOG_GTID_POS(%s, %s)", [file, position]) or ""))

    def binlogs(self) -> dict[str, int]:
        return {str(row[0]): int(row[1]) for row in self.rows("SHOW BINARY LOGS")}

    # --- character sets --------------------------------------------------------------------

    def charset(self, collation: int) -> Charset:
        """The character set of a collation, by its number."""
        if collation == 63:
            return Charset("binary", 1, None)
        found = self._charsets.get(collation)
        if found is None:
            query = "SELECT character_set_name FROM information_schema.collations WHERE id = %s"
            name = self.value(query, [collation])
            if name is None and self.mariadb:
                name = self.value(
                    "SELECT character_set_name FROM "
                    "information_schema.collation_character_set_applicability WHERE id = %s",
                    [collation],
                )
            if name is None:
                raise ReplicationProtocolError(
                    "a column has a collation that its server does not know",
                    detail=f"Number {collation}.",
                )
            found = self._charsets[collation] = self.charset_named(str(name))
        return found

    def charset_named(self, name: str) -> Charset:
        if name == "binary":
            return Charset(name, 1, None)
        found = self._by_name.get(name)
        if found is None:
            widest = int(
                self.value(
                    "SELECT maxlen FROM information_schema.character_sets "
                    "WHERE character_set_name = %s",
                    [name],
                )
            )
            codec = CODECS.get(name)
            if codec is not None:
                decode = codec_decoder(codec)
            elif widest == 1:
                decode = table_decoder(self._table_of(name))
            else:
                raise UnsupportedServerError(
                    f"a column has the character set {name}, which this version does not know",
                    hint="leave the table out with `exclude=`",
                )
            found = self._by_name[name] = Charset(name, widest, decode)
        return found

    def _table_of(self, name: str) -> dict[int, str]:
        """What the server makes of each byte of a character set."""
        parts = ", ".join(f"CONVERT(_{name} X'{n:02x}' USING utf8mb4)" for n in range(256))
        return {n: str(text) for n, text in enumerate(self.rows(f"SELECT {parts}")[0])}

    # --- tables ----------------------------------------------------------------------------

    def tables(self, source: MySQL) -> list[tuple[str, str]]:
        """Schema and name of the tables that a declaration names."""
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_schema NOT IN (%s, %s, %s, %s) "
            "ORDER BY 1, 2",
            SYSTEM,
        )
        return [(str(s), str(t)) for s, t in found if matches(source, str(s), str(t))]

    def definition(self, schema: str, table: str) -> TableDefinition | None:
        """A table as it is now; None if there is none."""
        rows = self.rows(
            "SELECT column_name, data_type, column_type, character_octet_length, "
            "numeric_precision, numeric_scale, datetime_precision, character_set_name, "
            "is_nullable FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            [schema, table],
        )
        if not rows:
            return None
        jsons = self._json_columns(schema, table) if self.mariadb else set()
        fields = tuple(self._field(row, jsons) for row in rows)
        key = self.rows(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s "
            "AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            [schema, table],
        )
        return TableDefinition(schema, table, fields, tuple(str(name) for (name,) in key))

    def _json_columns(self, schema: str, table: str) -> set[str]:
        rows = self.rows(
            "SELECT constraint_name, check_clause FROM information_schema.check_constraints "
            "WHERE constraint_schema = %s AND table_name = %s",
            [schema, table],
        )
        return {str(n) for n, clause in rows if str(clause).lower() == f"json_valid(`{n}`)".lower()}

    def _field(self, row: tuple[Any, ...], jsons: set[str]) -> Field:
        name, kind, full, octets, precision, scale, digits, charset, nullable = row
        name, kind, full = str(name), str(kind).lower(), str(full)
        known = Field(name, kind, nullable=nullable == "YES")
        return finished(
            known, full, name in jsons, int(octets or 0), int(precision or 0), int(scale or 0),
            int(digits or 0), None if charset is None else self.charset_named(str(charset)),
        )  # fmt: skip

    def foreign_keys(self) -> list[ForeignKey]:
        """References with an action that changes the child's rows."""
        rows = self.rows(
            "SELECT k.table_schema, k.table_name, k.column_name, k.referenced_table_schema, "
            "k.referenced_table_name, k.referenced_column_name, r.delete_rule, r.update_rule, "
            "k.constraint_name FROM information_schema.key_column_usage k "
            "JOIN information_schema.referential_constraints r "
            "ON r.constraint_schema = k.constraint_schema "
            "AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name "
            "WHERE k.referenced_table_name IS NOT NULL "
            "ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position"
        )
        found: dict[tuple[str, str, str], list[tuple[Any, ...]]] = {}
        for row in rows:
            found.setdefault((str(row[0]), str(row[1]), str(row[8])), []).append(row)
        acting = ("CASCADE", "SET NULL", "SET DEFAULT")
        return [
            ForeignKey(
                f"{schema}.{table}", tuple(str(r[2]) for r in some),
                f"{some[0][3]}.{some[0][4]}", tuple(str(r[5]) for r in some),
                str(some[0][6]), str(some[0][7]),
            )
            for (schema, table, _), some in found.items()
            if some[0][6] in acting or some[0][7] in acting
        ]  # fmt: skip

    # --- what capture needs ----------------------------------------------------------------

    def check(self) -> None:
        """Refuse a server whose binlog lacks what capture needs."""
        for error in self.complaints():
            raise error

    def complaints(self) -> Iterator[SourceError]:
        oldest = (10, 6) if self.mariadb else (8, 0)
        if self.version < oldest:
            yield UnsupportedServerError(
                f"{self.version_text} is too old",
                hint="MySQL from 8.0 on, MariaDB from 10.6 on",
            )
        if self.setting("log_bin") != "ON":
            yield BinlogSettingsError(
                "the server writes no binlog",
                detail="log_bin is OFF.",
                hint="start it with log_bin = binlog (in its [mysqld] section)",
            )
        if not self.id:
            yield BinlogSettingsError(
                "the server has no server_id",
                detail="It sends its binlog to nobody.",
                hint="SET GLOBAL server_id = 1;  -- and in its [mysqld] section",
            )
        wanted = {
            "binlog_format": ("ROW", "It tells of statements, not of the rows they changed."),
            "binlog_row_image": ("FULL", "Values that a change left alone are missing."),
            "binlog_row_metadata": ("FULL", "Names of columns and of ENUM values are missing."),
        }
        for name, (value, detail) in wanted.items():
            held = self.setting(name)
            full = held in ("FULL", "FULL_NODUP") if name == "binlog_row_image" else held == value
            if not full:
                yield BinlogSettingsError(
                    f"{name} is {held}", detail=detail, hint=f"SET GLOBAL {name} = '{value}';"
                )
        if not self.mariadb and "PARTIAL_JSON" in (self.setting("binlog_row_value_options") or ""):
            log.info("partial JSON is on")


def finished(
    known: Field, full: str, is_json: bool, octets: int, precision: int, scale: int, digits: int,
    charset: Charset | None,
) -> Field:  # fmt: skip
    """A column of the catalog in the form that the binlog's columns have."""
    from dataclasses import replace

    kind = known.kind
    unsigned = " unsigned" in full.lower() or " zerofill" in full.lower()
    if kind in ("tinyint", "smallint", "mediumint", "int", "bigint", "float", "double"):
        return replace(known, unsigned=unsigned)
    if kind == "decimal":
        return replace(known, unsigned=unsigned, length=precision, scale=scale)
    if kind in ("time", "datetime", "timestamp"):
        return replace(known, digits=digits)
    if kind in ("enum", "set"):
        return replace(known, values=enum_values(full))
    if kind == "bit":
        return replace(known, length=precision)
    if kind in GEOMETRIES:
        return replace(known, kind="geometry")
    if is_json:
        return replace(known, kind="json")
    if kind in STRINGS:
        assert charset is not None
        length = octets // charset.widest if kind in ("char", "varchar") else 0
        return replace(known, length=length, charset=charset)
    if kind in BINARIES:
        return replace(known, length=octets if kind in ("binary", "varbinary") else 0)
    return known


def matches(source: MySQL, schema: str, table: str) -> bool:
    """Whether the declaration names a table."""
    if table == REQUESTS or schema in SYSTEM:
        return False
    default = source.database

    def among(wanted: Iterable[str]) -> bool:
        for pattern in wanted:
            pattern_schema, _, pattern_table = pattern.rpartition(".")
            if fnmatch.fnmatchcase(schema, pattern_schema or default) and fnmatch.fnmatchcase(
                table, pattern_table
            ):
                return True
        return False

    return among(patterns(source)) and not among(source.exclude)


def missing_tables(source: MySQL, found: Sequence[tuple[str, str]]) -> TableMissingError | None:
    """The error for the first declared table that is not there."""
    names = {f"{schema}.{table}" for schema, table in found}
    for pattern in patterns(source):
        if any(letter in pattern for letter in "*?["):
            continue
        whole = pattern if "." in pattern else f"{source.database}.{pattern}"
        if whole not in names:
            return TableMissingError(
                f'table "{whole}" does not exist',
                detail=f"Tables found: {', '.join(sorted(names)) or 'none'}.",
                hint="create it, or correct tables= of the source",
            )
    return None


def hidden_columns(
    source: MySQL, schema: str, table: str, key: Sequence[str]
) -> Callable[[str], bool]:
    """Whether `columns=` leaves a column out."""
    wanted = for_table(source.columns, schema, table)
    if not isinstance(wanted, (list, tuple)):
        return lambda _: False
    kept = {*wanted, *key}
    return lambda name: name not in kept


def masks_of(source: MySQL, schema: str, table: str) -> dict[str, str]:
    found = for_table(source.mask, schema, table)
    return dict(found) if isinstance(found, Mapping) else {}


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
