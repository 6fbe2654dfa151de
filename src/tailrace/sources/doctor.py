"""What stands in the way of capturing a source, or will one day, and the SQL that repairs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.config import parse_size, resolve
from tailrace.errors import TailraceError
from tailrace.sources.declare import MySQL, Postgres, Source
from tailrace.sources.errors import SlotOwnedError

if TYPE_CHECKING:
    from tailrace.sources.postgres.catalog import CatalogTable, Connection
    from tailrace.sources.postgres.ownership import Ownership


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `state` is "good", "warning" or "bad"."""

    check: str
    state: str
    message: str
    detail: str = ""
    hint: str = ""

    def render(self) -> str:
        """The four-part form of an error; a good finding is one line."""
        if self.state == "good":
            return f"ok       {self.message}"
        word = "error" if self.state == "bad" else "warning"
        first = f"{word + ':':<9}{self.message}"
        lines = [f"{first:<66}[{self.check}]"]
        if self.detail:
            lines += [f"  {line}" for line in self.detail.splitlines()]
        if self.hint:
            lines.append("  hint: " + self.hint.replace("\n", "\n        "))
        return "\n".join(lines)


def examine(
    source: Source, owned: Ownership | None = None, *, known: bool = True
) -> Iterator[Finding]:
    """Everything worth saying about a source's database, worst last to be read first.

    `owned` is what the project made there or will make, `known` that it has recorded so.
    """
    if isinstance(source, Postgres):
        yield from _postgres(source, owned, known)
    elif isinstance(source, MySQL):
        from tailrace.sources.mysql.doctor import examine_mysql

        yield from examine_mysql(source)
    else:
        from tailrace.sources.sqlite.doctor import examine_sqlite

        yield from examine_sqlite(source)


def _postgres(source: Postgres, owned: Ownership | None, known: bool) -> Iterator[Finding]:
    from tailrace.sources.postgres import catalog
    from tailrace.sources.postgres.ownership import check_ownership

    try:
        connection = catalog.connect(resolve(source.dsn))
    except TailraceError as error:
        yield Finding("connection", "bad", error.message, error.detail, error.hint)
        return
    with connection:
        version = connection.info.server_version
        yield Finding("version", "good", f"Postgres {version // 10000}.{version % 10000}")
        try:
            catalog.check_server(connection, source)
            yield Finding("server", "good", "wal_level and privileges allow capture")
        except TailraceError as error:
            yield Finding(error.code, "bad", error.message, error.detail, error.hint)
        yield from _capacity(connection)
        try:
            if owned is not None:
                check_ownership(connection, owned, known=known)
            yield from _slot(connection, source)
        except SlotOwnedError as error:
            yield Finding(error.code, "bad", error.message, error.detail, error.hint)
        yield from _unused_slots(connection, source)
        try:
            tables = catalog.wanted_tables(connection, source)
        except TailraceError as error:
            yield Finding(error.code, "bad", error.message, error.detail, error.hint)
            return
        yield Finding("tables", "good", f"{len(tables)} tables match")
        for table in tables:
            yield from _table(connection, source, table)


def _capacity(connection: Connection) -> Iterator[Finding]:
    row = connection.execute(
        "SELECT (SELECT count(*) FROM pg_replication_slots), "
        "current_setting('max_replication_slots')::int, "
        "(SELECT count(*) FROM pg_stat_replication), current_setting('max_wal_senders')::int, "
        "current_setting('max_slot_wal_keep_size')"
    ).fetchone()
    assert row is not None
    slots, most_slots, senders, most_senders = (int(str(number)) for number in row[:4])
    keep = str(row[4])
    if slots >= most_slots:
        yield Finding(
            "slots", "bad", f"all {most_slots} replication slots are taken",
            hint=f"ALTER SYSTEM SET max_replication_slots = {most_slots + 10};  -- then restart",
        )  # fmt: skip
    else:
        yield Finding("slots", "good", f"{most_slots - slots} of {most_slots} slots are free")
    if senders >= most_senders:
        yield Finding(
            "senders", "bad", f"all {most_senders} WAL senders are busy",
            hint=f"ALTER SYSTEM SET max_wal_senders = {most_senders + 10};  -- then restart",
        )  # fmt: skip
    if keep == "-1":
        yield Finding(
            "wal-keep", "warning", "nothing limits the WAL that a slot may keep",
            "If capture stands still, the server keeps WAL until its disk is full. With a limit\n"
            "the slot is given up instead, and capture compares the tables when it comes back.",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '20GB'; SELECT pg_reload_conf();",
        )  # fmt: skip
    else:
        yield Finding("wal-keep", "good", f"a slot may keep at most {keep} of WAL")


def _slot(connection: Connection, source: Postgres) -> Iterator[Finding]:
    from tailrace.sources.postgres import catalog

    slot = catalog.read_slot(connection, source.slot_name)
    if slot is None:
        state = "good" if source.create else "bad"
        yield Finding(
            "slot", state, f'slot "{source.slot_name}" does not exist yet',
            hint="" if source.create
            else f"SELECT pg_create_logical_replication_slot('{source.slot_name}', 'pgoutput');",
        )  # fmt: skip
        return
    if slot.plugin != "pgoutput":
        yield Finding(
            "slot", "bad", f'slot "{slot.name}" speaks {slot.plugin}, not pgoutput',
            hint="name another slot with `slot=`",
        )  # fmt: skip
    if slot.lost:
        yield Finding(
            "slot-lost", "bad", f'slot "{slot.name}" has lost WAL it needed',
            "It was behind by more than max_slot_wal_keep_size.",
            "start the source: it makes a new slot and writes what differs",
        )  # fmt: skip
    retained = slot.retained_bytes
    text = f'slot "{slot.name}" keeps {retained / (1 << 20):.0f} MiB of WAL'
    if retained >= parse_size(source.wal_critical):
        yield Finding("wal-retained", "bad", text, "", "start the source, or drop the slot:\n"
                      f"SELECT pg_drop_replication_slot('{slot.name}');")  # fmt: skip
    elif retained >= parse_size(source.wal_warning):
        yield Finding("wal-retained", "warning", text, "", "is the source running?")
    else:
        yield Finding("wal-retained", "good", text)
    if connection.info.server_version >= 170000:
        failover = catalog.one(
            connection,
            "SELECT failover FROM pg_replication_slots WHERE slot_name = %s",
            [slot.name],
        )
        if failover:
            yield Finding("failover", "good", "the slot is kept on standbys (failover)")
        else:
            yield Finding(
                "failover", "warning", f'slot "{slot.name}" does not survive a fail-over',
                "A promoted standby has no such slot: capture would compare every table.",
                f"drop it while capture is stopped; it is made anew with failover = true:\n"
                f"SELECT pg_drop_replication_slot('{slot.name}');",
            )  # fmt: skip


def _unused_slots(connection: Connection, source: Postgres) -> Iterator[Finding]:
    from tailrace.sources.postgres.ownership import unused_slots

    for slot in unused_slots(connection, source.slot_name):
        where = f'database "{slot.database}"' if slot.database else "no database"
        yield Finding(
            "slot-unused", "warning",
            f'slot "{slot.name}" of {where} keeps {slot.retained_bytes / (1 << 20):.0f} MiB of WAL '
            "and nobody reads it",
            "Its project does not run, or is gone, or its source has another slot now.",
            "if nobody will read it again, `tailrace source drop` it there, or:\n"
            f"SELECT pg_drop_replication_slot('{slot.name}');",
        )  # fmt: skip


def _table(connection: Connection, source: Postgres, table: CatalogTable) -> Iterator[Finding]:
    from tailrace.sources.postgres import catalog

    relation = table.relation
    quoted = f'"{relation.schema}"."{relation.table}"'
    if not catalog.one(connection, "SELECT has_table_privilege(%s, 'SELECT')", [quoted]):
        yield Finding(
            "select", "bad", f"{table.name} cannot be read, so it cannot be copied",
            hint=f'GRANT SELECT ON {quoted} TO "{connection.info.user}";',
        )  # fmt: skip
    if not table.key:
        identity = relation.identity
        if identity == "d":
            yield Finding(
                "replica-identity", "bad", f"{table.name} has no primary key",
                "Once published, UPDATE and DELETE on it fail in the application.",
                f"ALTER TABLE {quoted} ADD PRIMARY KEY (…);\n"
                f"or: ALTER TABLE {quoted} REPLICA IDENTITY FULL;",
            )  # fmt: skip
        else:
            yield Finding(
                "no-key", "warning", f"{table.name} has no primary key",
                "Its records have no key: the topic keeps everything, nothing is compacted, and a\n"
                "first copy that is interrupted starts again (a `t` note says so).",
                f"ALTER TABLE {quoted} ADD PRIMARY KEY (…);",
            )  # fmt: skip
    elif relation.identity == "n":
        yield Finding(
            "replica-identity", "bad", f"{table.name} has REPLICA IDENTITY NOTHING",
            "Once published, UPDATE and DELETE on it fail in the application.",
            f"ALTER TABLE {quoted} REPLICA IDENTITY DEFAULT;",
        )  # fmt: skip
    elif relation.identity == "f":
        yield Finding(
            "replica-identity", "good",
            f"{table.name}: REPLICA IDENTITY FULL, updates carry the row before",
        )  # fmt: skip
    else:
        yield Finding("replica-identity", "good", f"{table.name}: key {', '.join(table.key)}")
    size = catalog.one(
        connection,
        "SELECT coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0) FROM pg_class WHERE oid = %s",
        [relation.id],
    )
    if isinstance(size, int) and size > 100 << 20 and relation.identity != "f":
        yield Finding(
            "toast", "warning",
            f"{table.name} keeps {size >> 20} MiB of values out of line (TOAST)",
            "Unchanged ones are not in the WAL. They are completed from our own copy of the rows,\n"
            "which takes about as much disk beside the source.",
            f"for rows before a change too: ALTER TABLE {quoted} REPLICA IDENTITY FULL;",
        )  # fmt: skip
