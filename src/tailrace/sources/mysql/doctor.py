"""What to know about a MySQL or MariaDB server before and while it is captured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.sources.declare import MySQL
from tailrace.sources.mysql.address import parse_address
from tailrace.sources.mysql.server import Server, connect, missing_tables, quoted

if TYPE_CHECKING:
    from tailrace.sources.doctor import Finding

LEAST_KEPT_SECONDS = 24 * 3600


def examine_mysql(source: MySQL) -> Iterator[Finding]:
    """Every listed server, then the tables of the first that answers."""
    from tailrace.sources.doctor import Finding

    try:
        address = parse_address(source.name, resolve(source.dsn))
    except TailraceError as error:
        yield Finding(error.code, "bad", error.message, error.detail, error.hint)
        return
    first = True
    for number, (host, port) in enumerate(address.hosts):
        try:
            server = Server.ask(connect(address, number))
        except TailraceError as error:
            yield Finding(
                "connection", "bad", f"{host}:{port}: {error.message}", error.detail, error.hint
            )
            continue
        try:
            yield from _server(server, f"{host}:{port}")
            if first:
                yield from _tables(server, source)
            first = False
        except TailraceError as error:
            yield Finding(error.code, "bad", error.message, error.detail, error.hint)
        finally:
            server.connection.close()


def _server(server: Server, place: str) -> Iterator[Finding]:
    from tailrace.sources.doctor import Finding

    name = "MariaDB" if server.mariadb else "MySQL"
    yield Finding("version", "good", f"{place}: {name} {server.version_text}")
    complaints = list(server.complaints())
    for error in complaints:
        yield Finding(error.code, "bad", f"{place}: {error.message}", error.detail, error.hint)
    if not complaints:
        yield Finding("binlog-settings", "good", "the binlog has names, values and whole rows")
    if server.gtids:
        yield Finding("gtid", "good", "transactions have GTIDs, so capture can change servers")
    else:
        yield Finding(
            "gtid", "bad", "transactions have no GTIDs",
            "The first copy cannot be tied to a position without a lock, and capture cannot go\n"
            "on with another server.",
            "SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE;\n"
            "SET GLOBAL gtid_mode = ON_PERMISSIVE; SET GLOBAL gtid_mode = ON;",
        )  # fmt: skip
    kept = server.setting("binlog_expire_logs_seconds")
    if kept is not None and 0 < int(kept) < LEAST_KEPT_SECONDS:
        yield Finding(
            "binlog-kept", "warning", f"the binlog is kept for {int(kept)} s only",
            "A source that stands still for longer compares every table when it comes back.",
            f"SET GLOBAL binlog_expire_logs_seconds = {7 * LEAST_KEPT_SECONDS};",
        )  # fmt: skip


def _tables(server: Server, source: MySQL) -> Iterator[Finding]:
    from tailrace.sources.doctor import Finding

    tables = server.tables(source)
    missing = missing_tables(source, tables)
    if missing is not None:
        yield Finding(missing.code, "bad", missing.message, missing.detail, missing.hint)
    yield Finding("tables", "good", f"{len(tables)} tables match")
    for schema, table in tables:
        definition = server.definition(schema, table)
        if definition is not None and not definition.key:
            yield Finding(
                "no-key", "warning", f"{schema}.{table} has no primary key",
                "Its records have no key: the topic keeps everything, nothing is compacted, and it\n"
                "is copied in one piece.",
                f"ALTER TABLE {quoted(schema)}.{quoted(table)} ADD PRIMARY KEY (…);",
            )  # fmt: skip
    names = {f"{schema}.{table}" for schema, table in tables}
    for key in server.foreign_keys():
        if key.child in names and not server.tells_cascades:
            yield Finding(
                "cascade", "warning",
                f"{key.child} is changed by its foreign key to {key.parent}",
                "The binlog of this server does not tell of such changes. Capture reads the table\n"
                "again when a row of the other table goes or changes its key.",
            )  # fmt: skip
