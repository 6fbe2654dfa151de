"""An optional event trigger that tells of every change of a table's shape, in order.

Without it a new shape is known with the next row of the table. With it a transactional
logical message carries the shape from the very transaction that made it.
"""

from __future__ import annotations

from typing import Any

import orjson
import psycopg

from tailrace.sources.errors import PrivilegeError
from tailrace.sources.postgres.catalog import CatalogTable, Connection, one
from tailrace.sources.postgres.pgoutput import Relation, RelationColumn

PREFIX = "tailrace.ddl"
NAME = "tailrace_ddl"

_CREATE = f"""
CREATE OR REPLACE FUNCTION public.{NAME}() RETURNS event_trigger LANGUAGE plpgsql AS $tailrace$
DECLARE changed record;
BEGIN
  FOR changed IN
    SELECT DISTINCT c.oid, d.command_tag, n.nspname, c.relname, c.relreplident
    FROM pg_event_trigger_ddl_commands() d
    JOIN pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'p')
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE d.classid = 'pg_class'::regclass AND d.object_type IN ('table', 'table column')
  LOOP
    PERFORM pg_logical_emit_message(true, '{PREFIX}', json_build_object(
      'command', changed.command_tag, 'oid', changed.oid::int8, 'schema', changed.nspname,
      'table', changed.relname, 'identity', changed.relreplident,
      'key', (SELECT json_agg(a.attname ORDER BY array_position(i.indkey::int2[], a.attnum))
              FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
              AND a.attnum = ANY (i.indkey::int2[])
              WHERE i.indrelid = changed.oid AND i.indisprimary),
      'columns', (SELECT json_agg(json_build_object('name', a.attname, 'type', a.atttypid::int8,
              'modifier', a.atttypmod, 'not_null', a.attnotnull, 'identity', EXISTS (
                SELECT FROM pg_index i WHERE i.indrelid = changed.oid
                AND a.attnum = ANY (i.indkey::int2[]) AND CASE changed.relreplident
                WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END))
              ORDER BY a.attnum)
              FROM pg_attribute a WHERE a.attrelid = changed.oid AND a.attnum > 0
              AND NOT a.attisdropped AND a.attgenerated = ''))::text);
  END LOOP;
END $tailrace$
"""


def install(connection: Connection) -> None:
    """Create the trigger unless it is there; only a superuser may."""
    if one(connection, "SELECT true FROM pg_event_trigger WHERE evtname = %s", [NAME]):
        return
    try:
        connection.execute(_CREATE.encode())
        connection.execute(
            f"CREATE EVENT TRIGGER {NAME} ON ddl_command_end EXECUTE FUNCTION public.{NAME}()".encode()
        )
    except psycopg.errors.InsufficientPrivilege as error:
        raise PrivilegeError(
            "only a superuser may create an event trigger",
            detail=str(error).strip(),
            hint="leave out `ddl_trigger=True`, or run as a superuser:\n" + _CREATE.strip(),
        ) from error


def read(content: bytes) -> tuple[str, CatalogTable]:
    """The command and the table's shape after it."""
    document: dict[str, Any] = orjson.loads(content)
    columns = document["columns"] or []
    full = document["identity"] == "f"
    relation = Relation(
        document["oid"],
        document["schema"],
        document["table"],
        document["identity"],
        tuple(
            RelationColumn(c["name"], c["type"], c["modifier"], full or c["identity"])
            for c in columns
        ),
    )
    return document["command"], CatalogTable(
        relation,
        tuple(document["key"] or ()),
        frozenset(c["name"] for c in columns if c["not_null"]),
    )
