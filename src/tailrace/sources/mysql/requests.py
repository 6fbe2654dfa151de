"""Asking a running source for a copy: a row in a small table of ours, read from the binlog.

The table `_tailrace_requests` is made in the database of the address when somebody asks for
the first time, and `tailrace source drop` takes it away.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from tailrace.config import resolve
from tailrace.sources.declare import MySQL
from tailrace.sources.errors import SnapshotRequestError, keyless_request
from tailrace.sources.mysql.address import parse_address
from tailrace.sources.mysql.chunks import TextRows, order_of
from tailrace.sources.mysql.server import REQUESTS, Server, TableDefinition, connect, quoted
from tailrace.sources.mysql.table import captured, shape_of


def ask_for_copy(
    source: MySQL, table: str | None, where: str | None, keys: Sequence[object] | None = None
) -> None:
    """Have tables copied again; read with the changes, in their order."""
    server = Server.ask(connect(parse_address(source.name, resolve(source.dsn))))
    try:
        tables = [f"{schema}.{name}" for schema, name in server.tables(source)]
        request: dict[str, object] = {"source": source.name, "table": "*", "where": where}
        if table is not None:
            whole = table if "." in table else f"{source.database}.{table}"
            if whole not in tables:
                raise SnapshotRequestError(
                    f'table "{whole}" is not captured by source "{source.name}"',
                    detail=f"Captured are: {', '.join(tables) or 'none'}.",
                )
            definition = server.definition(*whole.split(".", 1))
            assert definition is not None
            if (where is not None or keys is not None) and not definition.key:
                raise keyless_request(whole)
            request["table"] = whole
            if keys is not None:
                request["keys"] = stored_keys(server, source, definition, keys)
        name = f"{quoted(source.database)}.{quoted(REQUESTS)}"
        server.rows(
            f"CREATE TABLE IF NOT EXISTS {name} (id BIGINT AUTO_INCREMENT PRIMARY KEY, "
            "request LONGTEXT CHARACTER SET utf8mb4 NOT NULL)"
        )
        server.rows(f"INSERT INTO {name} (request) VALUES (%s)", [orjson.dumps(request).decode()])
        server.rows(f"DELETE FROM {name}")
    finally:
        server.connection.close()


def stored_keys(
    server: Server, source: MySQL, definition: TableDefinition, keys: Sequence[object]
) -> list[dict[str, str]]:
    """Each key as the log has it and as a condition; the server makes 5 of "5"."""
    from tailrace.sources.control import key_objects

    shape = shape_of(source, definition.schema, definition.table, definition.fields, definition.key)
    table = captured(source, shape)
    by_name = {f.name: f for f in definition.fields}
    temporary = "_tailrace_asked"
    server.rows(
        f"CREATE TEMPORARY TABLE {temporary} AS SELECT "
        f"{', '.join(quoted(name) for name in definition.key)} "
        f"FROM {quoted(definition.schema)}.{quoted(definition.table)} LIMIT 0"
    )
    found: list[dict[str, str]] = []
    texts = TextRows(definition, definition.key)
    from tailrace.sources.mysql.chunks import read_rows

    for key in key_objects(keys, definition.key):
        server.rows(f"DELETE FROM {temporary}")
        holders = ", ".join(["%s"] * len(definition.key))
        server.rows(
            f"INSERT INTO {temporary} VALUES ({holders})", [key[name] for name in definition.key]
        )
        for packet in list(read_rows(server, f"SELECT {texts.columns} FROM {temporary}")):
            row = texts.row(packet)
            literals = texts.key_literals(packet)
            condition = " AND ".join(
                f"{order_of(by_name[name])} = {value}"
                for name, value in zip(definition.key, literals, strict=True)
            )
            text = table.key_of(row)
            assert text is not None
            found.append({"key": text.decode(), "where": f"({condition})"})
    return found


def remove_requests(source: MySQL) -> list[str]:
    """Drop the table of requests; what was there."""
    server = Server.ask(connect(parse_address(source.name, resolve(source.dsn))))
    try:
        held = server.value(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s "
            "AND table_name = %s",
            [source.database, REQUESTS],
        )
        if not held:
            return []
        server.rows(f"DROP TABLE {quoted(source.database)}.{quoted(REQUESTS)}")
        return [f"table {source.database}.{REQUESTS}"]
    finally:
        server.connection.close()
