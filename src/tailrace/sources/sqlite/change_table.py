"""The change table and its triggers, inside the user's file.

    _tailrace_changes   id, tbl, version, op, then the columns before (b0 …) and after
                        (a0 …) as they are: without declared types nothing is converted
                        (JSON functions would round REAL to 15 digits)
    _tailrace_tables    tbl, version → the column names and key that a version stands for
    _tailrace_meta      an identity of this file, to notice one that was put in its place

`op` is c, u, d; `s` marks a row that a REPLACE may be about to remove (it fires no
delete trigger), judged when the changes are read; `m` is a message of our own.
AUTOINCREMENT: an id is never given twice, even when the table was trimmed empty.
"""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from tailrace.clock import SYSTEM
from tailrace.config import resolve
from tailrace.sources.declare import SQLite
from tailrace.sources.errors import (
    ServerUnreachableError,
    SnapshotRequestError,
    SourceDeclarationError,
    keyless_request,
)

CHANGES = "_tailrace_changes"
TABLES = "_tailrace_tables"
META = "_tailrace_meta"
BUSY_SECONDS = 30.0
KINDS = ("insert", "update", "delete", "replace", "replace_update")
# Of FTS3 to FTS5 and R-trees.
SHADOWS = ("data", "idx", "content", "docsize", "config", "segments", "segdir", "stat", "node",
           "parent", "rowid")  # fmt: skip

Value = int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as SQLite declares it; `unique` are its other unique column sets."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    not_null: tuple[bool, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()


def connect(path: str) -> sqlite3.Connection:
    """A connection that waits for writers, in WAL mode; a file that is not there is never made."""
    if not Path(path).exists():
        raise ServerUnreachableError(
            f"there is no file {path}",
            hint="correct path= of the source, or create the database first; Tailrace never does",
        )
    try:
        connection = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?mode=rw",
            timeout=BUSY_SECONDS,
            isolation_level=None,
            uri=True,
        )
        _enter_wal_mode(connection)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    except sqlite3.Error as error:
        raise ServerUnreachableError(
            f"the file {path} cannot be opened as SQLite", detail=str(error)
        ) from error
    return connection


def _enter_wal_mode(connection: sqlite3.Connection) -> None:
    # SQLite does not wait its busy time-out here: a writer that is just at work makes the
    # change of mode fail at once.
    until = SYSTEM.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if SYSTEM.monotonic() > until:
                raise
            SYSTEM.sleep(0.02)


def read_shapes(connection: sqlite3.Connection) -> list[Shape]:
    """Every ordinary table of the file that is not ours."""
    names = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' AND name NOT LIKE '\\_tailrace\\_%' ESCAPE '\\' "
            "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
    ]
    hidden = _shadows(connection)
    return [_shape(connection, name) for name in names if name not in hidden]


def _shadows(connection: sqlite3.Connection) -> set[str]:
    """The tables in which virtual ones (full-text search, R-trees) keep what is theirs. A
    trigger on one of them can crash the process that writes."""
    virtual = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    # Not every connection knows the module, nor every SQLite which tables belong to it.
    found = {f"{name}_{part}" for (name,) in virtual for part in SHADOWS}
    return found | {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow"}


def _shape(connection: sqlite3.Connection, table: str) -> Shape:
    # table_info leaves out generated columns, which a trigger need not repeat.
    info = connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
    key = sorted((row[5], row[1]) for row in info if row[5])
    unique: list[tuple[str, ...]] = []
    for row in connection.execute(f"PRAGMA index_list({quoted(table)})").fetchall():
        parts = connection.execute(f"PRAGMA index_xinfo({quoted(row[1])})").fetchall()
        parts = [part for part in parts if part[5]]
        # A key that takes 'a' and 'A' for the same: one may take the place of the other.
        folded = any(part[4] != "BINARY" for part in parts)
        if row[2] and (row[3] != "pk" or folded) and all(part[2] is not None for part in parts):
            unique.append(tuple(part[2] for part in parts))
    return Shape(
        table,
        tuple(row[1] for row in info),
        tuple(row[2] for row in info),
        tuple(bool(row[3] or row[5]) for row in info),
        tuple(name for _, name in key),
        tuple(sorted(unique)),
    )


def prepare(connection: sqlite3.Connection) -> str:
    """Make our tables unless they are there; the identity of the file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {CHANGES} (id INTEGER PRIMARY KEY AUTOINCREMENT, "
            "tbl TEXT NOT NULL, version INTEGER NOT NULL, op TEXT NOT NULL)"
        )
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {TABLES} (tbl TEXT, version INTEGER, shape TEXT, "
            "PRIMARY KEY (tbl, version))"
        )
        connection.execute(f"CREATE TABLE IF NOT EXISTS {META} (identity TEXT)")
        row = connection.execute(f"SELECT identity FROM {META}").fetchone()
        if row is None:
            row = (uuid.uuid4().hex,)
            connection.execute(f"INSERT INTO {META} VALUES (?)", row)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return str(row[0])


def installed(connection: sqlite3.Connection, table: str) -> tuple[int, Shape] | None:
    """The version and shape a table's triggers stand for; None without triggers."""
    there = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? "
        "AND name IN (?, ?, ?)",
        [table, *(_trigger(table, kind) for kind in KINDS[:3])],
    ).fetchone()[0]
    row = connection.execute(
        f"SELECT version, shape FROM {TABLES} WHERE tbl = ? ORDER BY version DESC LIMIT 1", [table]
    ).fetchone()
    if row is None or there < 3:
        return None
    return row[0], read_shape(row[1])


def read_shape(text: str) -> Shape:
    document = orjson.loads(text)
    return Shape(
        document["table"], tuple(document["columns"]), tuple(document["types"]),
        tuple(document["not_null"]), tuple(document["key"]),
        tuple(tuple(columns) for columns in document["unique"]),
    )  # fmt: skip


def waiting(connection: sqlite3.Connection, table: str, position: int) -> list[int]:
    """The versions of a table under which changes after `position` were made, in order."""
    rows = connection.execute(
        f"SELECT DISTINCT version FROM {CHANGES} WHERE id > ? AND tbl = ? ORDER BY version",
        [position, table],
    )
    return [version for (version,) in rows]


def shape_of_version(connection: sqlite3.Connection, table: str, version: int) -> Shape:
    row = connection.execute(
        f"SELECT shape FROM {TABLES} WHERE tbl = ? AND version = ?", [table, version]
    ).fetchone()
    return read_shape(row[0])


def install(connection: sqlite3.Connection, shape: Shape) -> int:
    """(Re)make the triggers of a table, inside the caller's write transaction."""
    last = connection.execute(
        f"SELECT max(version) FROM {TABLES} WHERE tbl = ?", [shape.table]
    ).fetchone()[0]
    version = (last or 0) + 1
    connection.execute(
        f"INSERT INTO {TABLES} VALUES (?, ?, ?)",
        [shape.table, version, orjson.dumps(shape).decode()],
    )
    have = {row[1] for row in connection.execute(f"PRAGMA table_info({CHANGES})")}
    for number in range(len(shape.columns)):
        for side in "ba":
            if f"{side}{number}" not in have:
                connection.execute(f"ALTER TABLE {CHANGES} ADD COLUMN {side}{number}")
    drop(connection, shape.table)
    for statement in _triggers(shape, version):
        connection.execute(statement)
    return version


def drop(connection: sqlite3.Connection, table: str) -> None:
    """Remove our triggers from a table."""
    for suffix in KINDS:
        connection.execute(f"DROP TRIGGER IF EXISTS {quoted(_trigger(table, suffix))}")


def strays(connection: sqlite3.Connection) -> list[str]:
    """Triggers of ours that hang on a table of another name (it was renamed, and they tell of
    its changes under the name it had), or on one that must not have any."""
    hidden = _shadows(connection)
    found = connection.execute(
        "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' "
        "AND name LIKE '\\_tailrace\\_%' ESCAPE '\\'"
    )
    return [
        name
        for name, table in found
        if table in hidden or name not in {_trigger(table, kind) for kind in KINDS}
    ]


def _trigger(table: str, suffix: str) -> str:
    return f"_tailrace_{table}_{suffix}"


def _triggers(shape: Shape, version: int) -> list[str]:
    before = [f"b{i}" for i in range(len(shape.columns))]
    after = [f"a{i}" for i in range(len(shape.columns))]
    old = [f"OLD.{quoted(c)}" for c in shape.columns]
    new = [f"NEW.{quoted(c)}" for c in shape.columns]
    table = quoted(shape.table)
    label = "'" + shape.table.replace("'", "''") + "'"

    def write(op: str, columns: list[str], values: list[str], rest: str = "") -> str:
        names = ", ".join(["tbl", "version", "op", *columns])
        given = ", ".join([label, str(version), f"'{op}'", *values])
        if rest:
            return f"INSERT INTO {CHANGES} ({names}) SELECT {given} {rest};"
        return f"INSERT INTO {CHANGES} ({names}) VALUES ({given});"

    def trigger(suffix: str, when: str, body: str) -> str:
        name = quoted(_trigger(shape.table, suffix))
        return f"CREATE TRIGGER {name} {when} ON {table} BEGIN {body} END"

    made = [
        trigger("insert", "AFTER INSERT", write("c", after, new)),
        trigger("update", "AFTER UPDATE", write("u", before + after, old + new)),
        trigger("delete", "AFTER DELETE", write("d", before, old)),
    ]
    if shape.unique:
        rows = [f"victim.{quoted(c)}" for c in shape.columns]
        conflict = " OR ".join(
            "(" + " AND ".join(f"victim.{quoted(c)} = NEW.{quoted(c)}" for c in columns) + ")"
            for columns in shape.unique
        )
        # Without a key a row is told from others by its number, or by all it holds.
        row = shape.key or _row_number(shape) or shape.columns
        same = " AND ".join(
            f"victim.{quoted(c)} IS NEW.{quoted(c)} COLLATE BINARY" for c in shape.key
        )
        was = " AND ".join(f"victim.{quoted(c)} IS OLD.{quoted(c)}" for c in row)
        on_insert = f"FROM {table} victim WHERE ({conflict}) AND NOT ({same or '0'})"
        on_update = f"FROM {table} victim WHERE ({conflict}) AND NOT ({was})"
        made += [
            trigger("replace", "BEFORE INSERT", write("s", before, rows, on_insert)),
            trigger("replace_update", "BEFORE UPDATE", write("s", before, rows, on_update)),
        ]
    return made


def _row_number(shape: Shape) -> tuple[str, ...]:
    """The name of SQLite's own row number, unless columns have taken all of its names."""
    taken = {name.lower() for name in shape.columns}
    return tuple(name for name in ("rowid", "_rowid_", "oid") if name not in taken)[:1]


def whole(connection: sqlite3.Connection, shape: Shape) -> bool:
    """Whether a table has every trigger its shape needs; earlier versions made fewer."""
    if not shape.unique:
        return True
    (there,) = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name IN (?, ?)",
        [_trigger(shape.table, kind) for kind in KINDS[3:]],
    ).fetchone()
    return int(there) == len(KINDS[3:])


def was_replaced(
    connection: sqlite3.Connection, shape: Shape, version: int, victim: Sequence[Value], after: int
) -> bool:
    """Whether the row `victim` of a table without a key, which was in the way of a REPLACE at
    the change `after`, is gone without another word.

    The next change of that very row says that it lived on; a row that comes with the same
    unique values says that it did not. Else it is gone if the table has no such row now.
    """
    itself = " AND ".join(f"b{i} IS ?" for i in range(len(victim)))
    numbers = [[shape.columns.index(name) for name in names] for names in shape.unique]
    taken = " OR ".join("(" + " AND ".join(f"a{i} = ?" for i in each) + ")" for each in numbers)
    following = connection.execute(
        f"SELECT op IN ('u', 'd', 's') AND {itself} FROM {CHANGES} "
        f"WHERE id > ? AND tbl = ? AND version = ? AND ((op IN ('u', 'd', 's') AND {itself}) "
        f"OR (op IN ('c', 'u') AND ({taken}))) ORDER BY id LIMIT 1",
        [*victim, after, shape.table, version, *victim, *(victim[i] for each in numbers for i in each)],
    ).fetchone()  # fmt: skip
    if following is not None:
        return not following[0]
    names = {row[1] for row in connection.execute(f"PRAGMA table_info({quoted(shape.table)})")}
    known = [i for i, name in enumerate(shape.columns) if name in names]
    # Not by the column's own collation: 'a' may have been replaced by 'A'.
    match = " AND ".join(f"{quoted(shape.columns[i])} IS ? COLLATE BINARY" for i in known) or "0"
    there = connection.execute(
        f"SELECT 1 FROM {quoted(shape.table)} WHERE {match}", [victim[i] for i in known]
    ).fetchone()
    return there is None


_ALTERED = re.compile(
    r"""\s*ALTER\s+TABLE\s+(?:(?:"main"|main)\s*\.\s*)?(?:"((?:[^"]|"")+)"|\[([^\]]+)\]|`([^`]+)`|(\w+))""",
    re.IGNORECASE,
)


def alter(path: str, statement: str, table: str | None = None) -> None:
    """Change a table's shape: SQLite refuses to drop a column that a trigger names, so our
    triggers are taken off and put back in the same transaction. `table` is the one the
    statement names unless it is given."""
    if table is None:
        found = _ALTERED.match(statement)
        if found is None:
            raise SourceDeclarationError(
                "this is no ALTER TABLE statement", detail=statement, hint="ALTER TABLE name …"
            )
        table = next(name for name in found.groups() if name is not None).replace('""', '"')
    connection = connect(path)
    try:
        prepare(connection)
        connection.execute("BEGIN IMMEDIATE")
        # SQLite compares names of tables without regard to case.
        names = {shape.table.lower(): shape.table for shape in read_shapes(connection)}
        table = names.get(table.lower(), table)
        captured = installed(connection, table) is not None
        drop(connection, table)
        connection.execute(statement)
        if captured and any(shape.table == table for shape in read_shapes(connection)):
            install(connection, _shape(connection, table))
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        raise SourceDeclarationError("the table was not changed", detail=str(error)) from error
    finally:
        connection.close()


def ask_for_copy(
    source: SQLite, table: str | None, where: str | None, keys: Sequence[object] | None = None
) -> None:
    """Have tables copied again; read with the changes, in their order."""
    path = resolve(source.path)
    connection = connect(path)
    try:
        shapes = {shape.table: shape for shape in read_shapes(connection)}
        if table is not None:
            table = table.removeprefix("main.")
            if table not in shapes:
                raise SnapshotRequestError(
                    f'there is no table "{table}"', detail=f"Tables: {', '.join(sorted(shapes))}."
                )
        prepare(connection)
        document: dict[str, object] = {"table": table or "*", "where": where}
        filtered = where is not None or keys is not None
        if filtered and table is not None and not shapes[table].key:
            raise keyless_request(table)
        if keys is not None and table is not None:
            document["keys"] = _stored_keys(connection, shapes[table], keys)
        request = orjson.dumps(document).decode()
        connection.execute(
            f"INSERT INTO {CHANGES} (tbl, version, op) VALUES (?, 0, 'm')", [request]
        )
    finally:
        connection.close()


def _stored_keys(
    connection: sqlite3.Connection, shape: Shape, keys: Sequence[object]
) -> list[list[object]]:
    """Keys as the table stores them: a column's affinity makes 5 of "5"."""
    from tailrace.sources.control import key_objects
    from tailrace.sources.sqlite.values import freeze

    kinds = dict(zip(shape.columns, shape.types, strict=True))
    columns = ", ".join(f"{quoted(name)} {kinds[name]}" for name in shape.key)
    connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS asked ({columns})")
    connection.execute("DELETE FROM asked")
    connection.executemany(
        f"INSERT INTO asked VALUES ({', '.join('?' * len(shape.key))})",
        [[found[name] for name in shape.key] for found in key_objects(keys, shape.key)],
    )
    return [freeze(row) for row in connection.execute("SELECT DISTINCT * FROM asked")]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
