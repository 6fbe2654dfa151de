"""What the database says about itself: tables, keys, types, publication, slot."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson
import psycopg
from psycopg import sql

from tailrace.sources.declare import Postgres, for_table, patterns
from tailrace.sources.errors import (
    PrivilegeError,
    ServerUnreachableError,
    SlotMissingError,
    SnapshotRequestError,
    SourceDeclarationError,
    TableMissingError,
    UnsupportedServerError,
    WalLevelError,
)
from tailrace.sources.postgres.pgoutput import Relation, RelationColumn
from tailrace.sources.postgres.replication import conninfo
from tailrace.sources.postgres.types import PostgresType, TypeTable

Connection = psycopg.Connection[tuple[object, ...]]
MINIMUM_VERSION = 140000


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as the catalog has it now; `key` is its primary key in key order, or else the
    columns of its replica identity index."""

    relation: Relation
    key: tuple[str, ...]
    not_null: frozenset[str]
    toasted: bool = False
    partitioned: bool = False

    @property
    def name(self) -> str:
        return f"{self.relation.schema}.{self.relation.table}"

    @property
    def refuses_updates(self) -> bool:
        """Whether the server takes only inserts into it once it is published: it could not say
        which row was meant."""
        identity = self.relation.identity
        return identity == "n" or (identity == "d" and not self.key)


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    plugin: str
    active: bool
    confirmed: int
    lost: bool
    retained_bytes: int


def connect(dsn: str) -> Connection:
    """A control connection: autocommit, and no waiting for synchronous standbys."""
    try:
        connection = psycopg.connect(conninfo(dsn), autocommit=True)
        try:
            # A commit of ours carries marks, not data: no standby needs to have it.
            connection.execute("SET synchronous_commit = local")
        except BaseException:
            connection.close()
            raise
    except psycopg.Error as error:
        raise ServerUnreachableError(
            "the database does not answer", detail=str(error).strip(), hint="check `dsn=`"
        ) from error
    return connection


def parse_lsn(text: object) -> int:
    high, _, low = str(text).partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def check_server(connection: Connection, source: Postgres) -> None:
    """Refuse early, and say which SQL repairs it."""
    version = connection.info.server_version
    if version < MINIMUM_VERSION:
        raise UnsupportedServerError(
            f"Postgres {version // 10000} is too old", detail="Capture needs 14 or newer."
        )
    if source.where and version < 150000:
        raise UnsupportedServerError(
            "row filters need Postgres 15", hint="leave out `where=` or filter in the pipeline"
        )
    level = one(connection, "SELECT current_setting('wal_level')")
    if level != "logical":
        raise WalLevelError(
            f'wal_level is "{level}", not "logical"',
            detail=f'Source "{source.name}" reads the write-ahead log.',
            hint="ALTER SYSTEM SET wal_level = 'logical';  -- then restart the server",
        )
    row = connection.execute(
        "SELECT rolreplication OR rolsuper OR EXISTS (SELECT FROM pg_auth_members m "
        "JOIN pg_roles r ON r.oid = m.roleid WHERE m.member = (SELECT oid FROM pg_roles "
        "WHERE rolname = current_user) AND r.rolname = 'rds_replication'), current_user "
        "FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is not None and not row[0]:
        raise PrivilegeError(
            f'role "{row[1]}" may not read the write-ahead log',
            hint=f'ALTER ROLE "{row[1]}" REPLICATION;',
        )


def one(connection: Connection, query: str, parameters: Sequence[object] = ()) -> object:
    """The first column of the first row; None without a row."""
    row = connection.execute(query.encode(), parameters).fetchone()
    return None if row is None else row[0]


def newest_transaction(connection: Connection) -> int:
    """A transaction id that every one assigned before is smaller than."""
    return int(str(one(connection, "SELECT pg_current_xact_id()::text")))


_TABLES = """
SELECT c.oid::int8, n.nspname, c.relname, c.relreplident::text,
       a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull,
       coalesce(a.attnum = ANY (i.indkey::int2[]), false),
       array_position(p.indkey::int2[], a.attnum),
       c.reltoastrelid <> 0, c.relkind = 'p'
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     AND a.attgenerated = ''
-- A deferrable key is no replica identity: rows with the same key can be there for a while.
LEFT JOIN pg_index p ON p.indrelid = c.oid AND p.indisprimary AND p.indimmediate
LEFT JOIN pg_index i ON i.indrelid = c.oid AND CASE c.relreplident
     WHEN 'd' THEN i.indisprimary AND i.indimmediate WHEN 'i' THEN i.indisreplident ELSE false END
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_t%%'
  AND (%(oid)s::int8 IS NULL OR c.oid = %(oid)s::int8)
ORDER BY n.nspname, c.relname, a.attnum
"""


def read_tables(connection: Connection, oid: int | None = None) -> list[CatalogTable]:
    """Every ordinary table of the database, or the one with this oid."""
    grouped: dict[int, list[tuple[object, ...]]] = {}
    for row in connection.execute(_TABLES.encode(), {"oid": oid}):
        grouped.setdefault(int(str(row[0])), []).append(row)
    found: list[CatalogTable] = []
    for identifier, rows in grouped.items():
        present = [row for row in rows if row[4] is not None]
        identity = str(rows[0][3])
        relation = Relation(
            identifier,
            str(rows[0][1]),
            str(rows[0][2]),
            identity,
            tuple(
                RelationColumn(
                    str(r[4]), int(str(r[5])), int(str(r[6])), bool(r[8]) or identity == "f"
                )
                for r in present
            ),
        )
        keyed = sorted((int(str(r[9])), str(r[4])) for r in present if r[9] is not None)
        key = tuple(name for _, name in keyed)
        if not key and identity == "i":
            # A replica identity index is unique and its columns are not null: as good as a key.
            key = tuple(c.name for c in relation.columns if c.in_identity)
        found.append(
            CatalogTable(
                relation,
                key,
                frozenset(str(r[4]) for r in present if r[7]),
                bool(rows[0][10]),
                bool(rows[0][11]),
            )
        )
    return found


def valued_columns(connection: Connection, oid: int, names: Sequence[str]) -> set[str]:
    """Those of these columns that may have a value in rows from before they were added: they
    have, or had then, a default, or may not be NULL."""
    found = connection.execute(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s AND attname = ANY (%s) "
        "AND (atthasdef OR atthasmissing OR attnotnull OR attidentity <> '')",
        [oid, list(names)],
    )
    return {str(row[0]) for row in found}


def key_as_text(names: Sequence[str]) -> sql.Composed:
    """These columns as Postgres prints them."""
    return sql.SQL(", ").join(
        [sql.SQL("format('%s', {})").format(sql.Identifier(name)) for name in names]
    )


def key_texts(
    connection: Connection, table: CatalogTable, keys: Sequence[Mapping[str, object]]
) -> list[list[str]]:
    """The given keys as Postgres prints them; `SnapshotRequestError` for what is no key."""
    types = {
        str(row[0]): str(row[1])
        for row in connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s AND attname = ANY (%s)",
            [table.relation.id, list(table.key)],
        )
    }
    shape = sql.SQL(", ").join(
        [sql.Identifier(name) + sql.SQL(f" {types[name]}") for name in table.key]
    )
    query = sql.SQL("SELECT {} FROM jsonb_to_recordset({}) AS k({})").format(
        key_as_text(table.key), sql.Literal(orjson.dumps(list(keys)).decode()), shape
    )
    try:
        return [[str(value) for value in row] for row in connection.execute(query)]
    except psycopg.DataError as error:
        raise SnapshotRequestError(
            f"a given value is no key of {table.name}", detail=str(error).strip()
        ) from error


def matches(source: Postgres, schema: str, table: str) -> bool:
    """Whether the declaration's patterns cover a table."""

    def covered(wanted: Iterable[str]) -> bool:
        for pattern in wanted:
            whole = pattern if "." in pattern else f"public.{pattern}"
            if whole == f"{schema}.{table}" or fnmatch.fnmatchcase(f"{schema}.{table}", whole):
                return True
        return False

    wanted = list(patterns(source))
    if source.outbox is not None:
        wanted.append(source.outbox.table)
    return covered(wanted) and not covered(source.exclude)


def missing_tables(source: Postgres, tables: Iterable[CatalogTable]) -> list[str]:
    """Declared names that are not among `tables`."""
    names = {t.name for t in tables}
    declared = [p if "." in p else f"public.{p}" for p in patterns(source) if "*" not in p]
    return [name for name in declared if name not in names]


def missing_error(source: Postgres, name: str, tables: Sequence[CatalogTable]) -> TableMissingError:
    near = ", ".join(t.name for t in tables[:20]) or "none"
    return TableMissingError(
        f'table "{name}" does not exist',
        detail=f"Tables there: {near}.",
        hint=f'correct `tables=` of source "{source.name}"',
    )


def wanted_tables(
    connection: Connection, source: Postgres, known: Iterable[str] = ()
) -> list[CatalogTable]:
    """The tables to capture; `TableMissingError` for a name that is not there, unless it is
    known to have been there before."""
    tables = read_tables(connection)
    chosen = [t for t in tables if matches(source, t.relation.schema, t.relation.table)]
    for name in missing_tables(source, chosen):
        if name not in known:
            raise missing_error(source, name, tables)
    for table in chosen:
        columns = for_table(source.columns, table.relation.schema, table.relation.table)
        if columns is not None:
            assert isinstance(columns, Sequence)
            there = {c.name for c in table.relation.columns}
            unknown = [c for c in columns if c not in there]
            if unknown:
                raise SourceDeclarationError(
                    f"{table.name} has no column {unknown[0]}",
                    detail=f"Columns there: {', '.join(sorted(there))}.",
                )
    return chosen


_TYPES = """
SELECT t.oid::int8, t.typname, t.typtype::text, t.typelem::int8,
       t.typoutput = 'array_out'::regproc, t.typbasetype::int8, t.typtypmod, e.typdelim::text,
       t.typstorage::text,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped),
       (SELECT array_agg(a.atttypid::int8 ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped),
       (SELECT array_agg(a.atttypmod ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)
FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE t.typtype <> 'p' AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid
      AND c.relnamespace = 'pg_catalog'::regnamespace)
"""
_KINDS = {"c": "composite", "d": "domain", "e": "enum", "r": "range", "m": "multirange"}


def read_types(connection: Connection) -> TypeTable:
    """Every type of the database that a column can have."""
    types: dict[int, PostgresType] = {}
    for row in connection.execute(_TYPES.encode()):
        oid, name, kind, element, is_array, base, modifier, delimiter, storage = row[:9]
        fields: tuple[tuple[str, int, int], ...] = ()
        if isinstance(row[9], list) and isinstance(row[10], list) and isinstance(row[11], list):
            fields = tuple(zip(row[9], row[10], row[11], strict=True))
        types[int(str(oid))] = PostgresType(
            int(str(oid)),
            str(name),
            "array" if is_array else _KINDS.get(str(kind), "base"),  # type: ignore[arg-type]
            int(str(element)) if is_array else 0,
            int(str(base)),
            int(str(modifier)),
            str(delimiter or ","),
            fields,
            str(storage),
        )
    return TypeTable(types)


def read_slot(connection: Connection, name: str) -> Slot | None:
    row = connection.execute(
        "SELECT plugin, active, confirmed_flush_lsn, coalesce(wal_status, '') , "
        "coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::int8 "
        "FROM pg_replication_slots WHERE slot_name = %s AND slot_type = 'logical'",
        [name],
    ).fetchone()
    if row is None:
        return None
    confirmed = 0 if row[2] is None else parse_lsn(row[2])
    return Slot(name, str(row[0]), bool(row[1]), confirmed, row[3] in ("lost",), int(str(row[4])))


def open_transactions(connection: Connection) -> list[str]:
    """Transactions that have written and not ended: who holds them."""
    rows = connection.execute(
        "SELECT format('process %s of %s, since %s', pid, usename, xact_start::timestamptz(0)) "
        "FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() "
        "UNION ALL SELECT format('prepared transaction %s, since %s', gid, prepared::timestamptz(0)) "
        "FROM pg_prepared_xacts ORDER BY 1 LIMIT 5"
    )
    return [str(row[0]) for row in rows]


def create_slot(connection: Connection, name: str) -> int:
    """Create the slot; waits for transactions that write now. Its consistent point."""
    if connection.info.server_version >= 170000:
        # Kept in step on standbys, so that a fail-over loses nothing.
        query = (
            "SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput', false, false, true)"
        )
    else:
        query = "SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput')"
    return parse_lsn(one(connection, query, [name]))


def drop_slot(connection: Connection, name: str) -> None:
    connection.execute("SELECT pg_drop_replication_slot(%s)", [name])


def _entry(source: Postgres, table: CatalogTable) -> sql.Composable:
    relation = table.relation
    entry: sql.Composable = sql.Identifier(relation.schema, relation.table)
    where = for_table(source.where, relation.schema, relation.table)
    if where is not None:
        entry = sql.SQL("{} WHERE ({})").format(entry, sql.SQL(str(where)))
    return entry


def ensure_publication(
    connection: Connection, source: Postgres, tables: Sequence[CatalogTable]
) -> list[str]:
    """Make the publication cover `tables`; the names of those that were added to it."""
    name = source.publication_name
    exists = one(connection, "SELECT true FROM pg_publication WHERE pubname = %s", [name])
    if not exists:
        if not source.create:
            raise SlotMissingError(
                f'publication "{name}" does not exist',
                hint=f'CREATE PUBLICATION "{name}" FOR TABLE …;',
            )
        targets = sql.SQL(", ").join([_entry(source, t) for t in tables])
        statement = sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(name))
        if tables:
            statement += sql.SQL(" FOR TABLE ") + targets
        statement += sql.SQL(" WITH (publish_via_partition_root = true)")
        _as_owner(connection, source, statement, tables)
        return [t.name for t in tables]
    held = {
        f"{row[0]}.{row[1]}"
        for row in connection.execute(
            "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [name]
        )
    }
    added = [t for t in tables if t.name not in held]
    if added and not source.create:
        raise SourceDeclarationError(
            f'publication "{name}" does not have table {added[0].name}',
            detail="Its rows could be copied, but their changes would never come.",
            hint=f'ALTER PUBLICATION "{name}" ADD TABLE {added[0].name};  -- or `exclude=` it',
        )
    if added:
        statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(
            sql.Identifier(name), sql.SQL(", ").join([_entry(source, t) for t in added])
        )
        _as_owner(connection, source, statement, added)
    return [t.name for t in added]


def as_published(connection: Connection, source: Postgres) -> Postgres:
    """The declaration of a source whose publication is given: it decides which columns and
    rows come, and a copy must not read others."""
    if source.create or connection.info.server_version < 150000:
        return source
    if source.where:
        raise SourceDeclarationError(
            f'`where=` of source "{source.name}" cannot be kept',
            detail=f'Publication "{source.publication_name}" is given (`create=False`).',
            hint="ALTER PUBLICATION … SET TABLE … WHERE (…);",
        )
    columns, where = dict(source.columns), {}
    found = connection.execute(
        "SELECT p.schemaname || '.' || p.tablename, p.attnames::text[], p.rowfilter, "
        "(SELECT count(*) FROM pg_attribute a WHERE a.attrelid = format('%%I.%%I', p.schemaname, "
        "p.tablename)::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') "
        "FROM pg_publication_tables p WHERE p.pubname = %s",
        [source.publication_name],
    )
    for name, names, condition, count in found:
        schema, _, table = str(name).partition(".")
        if isinstance(names, list) and len(names) < int(str(count)):
            chosen = for_table(source.columns, schema, table)
            kept = names if not isinstance(chosen, Sequence) else [c for c in names if c in chosen]
            columns[str(name)] = kept
        if condition is not None:
            where[str(name)] = str(condition)
    return replace(source, columns=columns, where=where)


def published_by_root(connection: Connection, source: Postgres, oid: int) -> bool:
    """Whether this is a partition whose rows come as rows of the partitioned table. The
    stream tells the shape of both."""
    return bool(
        one(
            connection,
            "SELECT c.relispartition AND p.pubviaroot FROM pg_class c, pg_publication p "
            "WHERE c.oid = %s AND p.pubname = %s",
            [oid, source.publication_name],
        )
    )


def publish_again(connection: Connection, source: Postgres, table: CatalogTable) -> None:
    """Publish a table under the row filter that is declared now."""
    publication = sql.Identifier(source.publication_name)
    with connection.transaction():
        _as_owner(
            connection,
            source,
            sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(
                publication, sql.Identifier(table.relation.schema, table.relation.table)
            ),
            [table],
        )
        statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}")
        added = statement.format(publication, _entry(source, table))
        _as_owner(connection, source, added, [table])


_FILTERED = """
SELECT format('%%I.%%I', n.nspname, c.relname), string_agg(a.attname, ', ')
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prqual IS NOT NULL
JOIN pg_class c ON c.oid = r.prrelid AND c.relreplident <> 'f'
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_depend d ON d.classid = 'pg_publication_rel'::regclass AND d.objid = r.oid
     AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid AND a.attnum > 0
WHERE p.pubname = %s AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid
      AND a.attnum = ANY (i.indkey::int2[]) AND CASE c.relreplident
      WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)
GROUP BY 1
"""


def _check_filters(connection: Connection, source: Postgres) -> None:
    """Raises where the server would refuse the application's updates and deletes: it must be
    able to tell from the old row whether the filter let it pass."""
    if not source.where:
        return
    row = connection.execute(_FILTERED.encode(), [source.publication_name]).fetchone()
    if row is not None:
        raise SourceDeclarationError(
            f"`where=` of {row[0]} uses {row[1]}, which is not in its replica identity",
            detail="Postgres would refuse every UPDATE and DELETE on it. Nothing was published.",
            hint=f"ALTER TABLE {row[0]} REPLICA IDENTITY FULL;",
        )


def _as_owner(
    connection: Connection,
    source: Postgres,
    statement: sql.Composed,
    tables: Sequence[CatalogTable],
) -> None:
    try:
        with connection.transaction():
            connection.execute(statement)
            _check_filters(connection, source)
    except psycopg.errors.InsufficientPrivilege as error:
        user = connection.info.user
        names = ", ".join(t.name for t in tables)
        raise PrivilegeError(
            f'role "{user}" may not publish these tables',
            detail=str(error).strip(),
            hint=f"as owner of {names}: {statement.as_string(connection)};",
        ) from error
