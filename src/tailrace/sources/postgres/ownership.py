"""Whose a slot and a publication are.

Slots belong to the whole server and publications to a database; other projects may have a
source of the same name. Names therefore carry the project, and a publication says in its
comment who made it and which slot goes with it:

    tailrace {"owner":"6d0f…","project":"shop","source":"orders","slot":"…"}

The names a project uses are recorded in its log with the first cut and stay what they are
when the project or the default changes. `owner` is made of host and directory of the
project that recorded it first, so a project whose log was deleted finds its own again.
"""

from __future__ import annotations

import re
import socket
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from psycopg import errors, sql

from tailrace.sources.declare import Postgres
from tailrace.sources.errors import SlotOwnedError
from tailrace.sources.postgres.catalog import Connection, one

PREFIX = "tailrace_"
LONGEST = 63
_PLAIN = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Ownership:
    """What a project records about what it made in a database."""

    owner: str
    project: str
    source: str
    slot: str
    publication: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What the comment of a publication says."""

    publication: str
    owner: str
    project: str
    source: str
    slot: str


def default_name(project: str, source: str) -> str:
    """The name of a slot and a publication: `tailrace_<project>_<source>`, with a digest of
    both where that is too long, has other characters, or could be read in two ways."""
    plain = f"{PREFIX}{project}_{source}"
    if len(plain) <= LONGEST and _PLAIN.fullmatch(plain) and "_" not in project:
        return plain
    digest = sha256(f"{project}\0{source}".encode()).hexdigest()[:12]
    clean = re.sub(r"[^a-z0-9_]", "_", plain.lower())
    return f"{clean[: LONGEST - 14]}_x{digest}"


def owner_of(directory: Path) -> str:
    """Who a project is that has not recorded it yet."""
    place = f"{socket.gethostname()}\0{directory.resolve()}"
    return sha256(place.encode()).hexdigest()[:16]


def resolve_names(
    source: Postgres, project: str, directory: Path, recorded: dict[str, Any] | None,
    *, resumed: bool,
) -> tuple[Postgres, Ownership | None]:  # fmt: skip
    """The source with the names it uses; nothing is owned that is only given (`create=False`).

    `resumed` says that the log has a position: without recorded names it is from before
    names carried the project.
    """
    if not source.create:
        return source, None
    if recorded is not None:
        held = Ownership(**recorded)
    else:
        name = None if resumed else default_name(project, source.name)
        held = Ownership(
            owner_of(directory), project, source.name,
            name or source.slot_name, name or source.publication_name,
        )  # fmt: skip
    owned = replace(
        held,
        slot=source.slot or held.slot,
        publication=source.publication or held.publication,
    )
    return replace(source, slot=owned.slot, publication=owned.publication), owned


def read_claims(connection: Connection) -> list[Claim]:
    """What the publications of this database say about who made them."""
    found = connection.execute(
        "SELECT pubname::text, obj_description(oid, 'pg_publication') FROM pg_publication "
        "WHERE obj_description(oid, 'pg_publication') LIKE 'tailrace {%' ORDER BY 1"
    )
    claims: list[Claim] = []
    for name, comment in found:
        try:
            said = orjson.loads(str(comment).removeprefix("tailrace "))
            claims.append(
                Claim(str(name), said["owner"], said["project"], said["source"], said["slot"])
            )
        except (orjson.JSONDecodeError, KeyError):
            continue  # somebody else's words
    return claims


def check_ownership(connection: Connection, owned: Ownership, *, known: bool) -> None:
    """Raises `SlotOwnedError` for a slot or publication that is not this project's. `known`
    says that its log has recorded the names, or has used them before they were recorded."""
    database = connection.info.dbname
    row = connection.execute(
        "SELECT database, plugin, slot_type FROM pg_replication_slots WHERE slot_name = %s",
        [owned.slot],
    ).fetchone()
    if row is not None and row[0] != database:
        where = "no database" if row[0] is None else f'database "{row[0]}"'
        raise SlotOwnedError(
            f'replication slot "{owned.slot}" belongs to {where}',
            detail=f'Source "{owned.source}" reads database "{database}"; slots are named for '
            "the whole server.",
            hint=f"name another with `slot=`, or drop it if nobody reads it:\n"
            f"SELECT pg_drop_replication_slot('{owned.slot}');",
        )
    if row is not None and row[1] != "pgoutput":
        raise SlotOwnedError(
            f'replication slot "{owned.slot}" speaks {row[1]}, not pgoutput',
            detail="Something else made it.",
            hint="name another with `slot=`",
        )
    claims = [
        claim
        for claim in read_claims(connection)
        if claim.publication == owned.publication or claim.slot == owned.slot
    ]
    for claim in claims:
        if claim.owner != owned.owner:
            what = "publication" if claim.publication == owned.publication else "replication slot"
            name = owned.publication if what == "publication" else owned.slot
            raise SlotOwnedError(
                f'{what} "{name}" belongs to another project',
                detail=f'Project "{claim.project}" made it for its source "{claim.source}".',
                hint="name others with `slot=` and `publication=`; if that project is gone, say so:\n"
                f'COMMENT ON PUBLICATION "{claim.publication}" IS NULL; '
                f"SELECT pg_drop_replication_slot('{claim.slot}');",
            )
    if row is not None and not claims and not known:
        raise SlotOwnedError(
            f'replication slot "{owned.slot}" exists, and this project did not make it',
            detail="Reading it would take changes away from whoever did.",
            hint=f"name another with `slot=`, or drop it if nobody reads it:\n"
            f"SELECT pg_drop_replication_slot('{owned.slot}');",
        )


def claim_publication(connection: Connection, owned: Ownership) -> None:
    """Say in the publication's comment whose it is, if the role may."""
    said = {k: v for k, v in asdict(owned).items() if k != "publication"}
    wanted = "tailrace " + orjson.dumps(said).decode()
    query = "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s"
    held = one(connection, query, [owned.publication])
    if held == wanted or (held is not None and not str(held).startswith("tailrace {")):
        return
    statement = sql.SQL("COMMENT ON PUBLICATION {} IS {}")
    try:
        connection.execute(statement.format(sql.Identifier(owned.publication), sql.Literal(wanted)))
    except errors.InsufficientPrivilege:
        return  # it was given to us; whoever gave it knows


@dataclass(frozen=True, slots=True)
class UnusedSlot:
    """A slot of ours, or of a project like this, that nobody reads."""

    name: str
    database: str
    retained_bytes: int


def unused_slots(connection: Connection, own: str) -> list[UnusedSlot]:
    """Inactive slots of the whole server with our prefix, without the one named."""
    found = connection.execute(
        "SELECT slot_name::text, coalesce(database::text, ''), "
        "coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::int8 "
        "FROM pg_replication_slots WHERE NOT active AND slot_name LIKE 'tailrace\\_%%' "
        "AND slot_name <> %s ORDER BY 3 DESC, 1",
        [own],
    )
    return [UnusedSlot(str(row[0]), str(row[1]), int(str(row[2]))) for row in found]
