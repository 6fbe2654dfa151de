"""What a source's tables look like now, without capturing them."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config import resolve
from tailrace.sources.declare import MySQL, Postgres, Source, SQLite, for_table
from tailrace.sources.schema import TableSchema


def describe(source: Source) -> list[TableSchema]:
    """The schemas that capture would record first; raises what would keep it from working."""
    if isinstance(source, MySQL):
        shapes = _mysql(source)
    else:
        shapes = _postgres(source) if isinstance(source, Postgres) else _sqlite(source)
    described = []
    for shape in shapes:
        kept = for_table(source.history, shape.schema, shape.table)
        described.append(replace(shape, history=None if kept is None else str(kept)))
    return described


def _postgres(source: Postgres) -> list[TableSchema]:
    from tailrace.sources.postgres import catalog
    from tailrace.sources.postgres.table import shape_of

    with catalog.connect(resolve(source.dsn)) as connection:
        catalog.check_server(connection, source)
        source = catalog.as_published(connection, source)
        types = catalog.read_types(connection)
        return [
            shape_of(source, table.relation, table, types)
            for table in catalog.wanted_tables(connection, source)
        ]


def _mysql(source: MySQL) -> list[TableSchema]:
    from tailrace.sources.mysql.address import parse_address
    from tailrace.sources.mysql.server import Server, connect
    from tailrace.sources.mysql.table import shape_of

    server = Server.ask(connect(parse_address(source.name, resolve(source.dsn))))
    try:
        server.check()
        found = [server.definition(*name) for name in server.tables(source)]
        return [
            shape_of(source, one.schema, one.table, one.fields, one.key)
            for one in found
            if one is not None
        ]
    finally:
        server.connection.close()


def _sqlite(source: SQLite) -> list[TableSchema]:
    from tailrace.sources.sqlite import change_table
    from tailrace.sources.sqlite.tracked import covers, schema_of

    connection = change_table.connect(resolve(source.path))
    try:
        shapes = change_table.read_shapes(connection)
        return [schema_of(source, shape) for shape in shapes if covers(source, shape.table)]
    finally:
        connection.close()
