"""Takes slot, publication and event trigger of a source out of its database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tailrace.config import resolve
from tailrace.sources.declare import Postgres
from tailrace.sources.errors import PrivilegeError, SlotOwnedError, SlotTakenError
from tailrace.sources.postgres import catalog, ddl
from tailrace.sources.postgres.ownership import check_ownership, read_claims, resolve_names


def remove_from_server(
    source: Postgres, project: str, directory: Path, recorded: dict[str, Any] | None
) -> Iterator[str]:
    """What was made is dropped; a slot and a publication that were given stay."""
    with catalog.connect(resolve(source.dsn)) as connection:
        named, owned = resolve_names(source, project, directory, recorded, resumed=False)
        if owned is not None:
            try:
                check_ownership(connection, owned, known=recorded is not None)
            except SlotOwnedError:
                # Of two projects that began at the same moment the other got the slot: our
                # publication would stay for ever.
                if any(
                    (one.publication, one.owner) == (owned.publication, owned.owner)
                    for one in read_claims(connection)
                ):
                    yield from _drop_publication(connection, owned.publication)
                raise
            try:
                yield from _drop_slot(connection, named.slot_name)
                yield from _drop_publication(connection, named.publication_name)
            except psycopg.errors.InsufficientPrivilege as error:
                raise PrivilegeError(
                    f'role "{connection.info.user}" may not drop what source "{source.name}" made',
                    detail=str(error).strip(),
                    hint="run the command with the role that captured, or as a superuser",
                ) from error
        if source.ddl_trigger and not read_claims(connection):
            yield from _drop_trigger(connection)


def _drop_slot(connection: catalog.Connection, name: str) -> Iterator[str]:
    if catalog.read_slot(connection, name) is None:
        return
    try:
        catalog.drop_slot(connection, name)
    except psycopg.errors.ObjectInUse as error:
        raise SlotTakenError(
            f'replication slot "{name}" is in use',
            detail=str(error).strip(),
            hint="stop the project, or `tailrace source pause` it, and try again",
        ) from error
    yield f'replication slot "{name}"'


def _drop_publication(connection: catalog.Connection, name: str) -> Iterator[str]:
    if catalog.one(connection, "SELECT true FROM pg_publication WHERE pubname = %s", [name]):
        connection.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name)))
        yield f'publication "{name}"'


def _drop_trigger(connection: catalog.Connection) -> Iterator[str]:
    """The event trigger serves every source of a database: the last one takes it along."""
    there = "SELECT true FROM pg_event_trigger WHERE evtname = %s"
    if catalog.one(connection, there, [ddl.NAME]):
        connection.execute(f"DROP EVENT TRIGGER {ddl.NAME}".encode())
        connection.execute(f"DROP FUNCTION IF EXISTS public.{ddl.NAME}()".encode())
        yield f'event trigger "{ddl.NAME}" and its function'
