"""Opening the replication slot: the one there is, a first one, or a new one for a lost one."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.sources.base import Resume
from tailrace.sources.declare import Postgres
from tailrace.sources.errors import SlotMissingError
from tailrace.sources.postgres import catalog


@dataclass(frozen=True, slots=True)
class OpenedSlot:
    """Where to read from. `lost` says why changes are missing before it, if they are."""

    position: int
    lost: str | None = None


def open_slot(source: Postgres, connection: catalog.Connection, resume: Resume) -> OpenedSlot:
    """Make the slot fit what the log says, which alone knows how far it was read."""
    slot = catalog.read_slot(connection, source.slot_name)
    if slot is None:
        if not source.create:
            raise SlotMissingError(
                f'replication slot "{source.slot_name}" does not exist',
                hint=f"SELECT pg_create_logical_replication_slot('{source.slot_name}', 'pgoutput');",
            )
        lost = None if resume.position is None else "the slot is gone"
        return OpenedSlot(catalog.create_slot(connection, source.slot_name), lost)
    lost = _why_lost(connection, slot, resume)
    if lost is not None:
        catalog.drop_slot(connection, source.slot_name)
        return OpenedSlot(catalog.create_slot(connection, source.slot_name), lost)
    return OpenedSlot(slot.confirmed if resume.position is None else resume.position)


def _why_lost(connection: catalog.Connection, slot: catalog.Slot, resume: Resume) -> str | None:
    if slot.lost:
        return "the server removed WAL the slot needed"
    if resume.position is None:
        return None
    here = catalog.parse_lsn(catalog.one(connection, "SELECT pg_current_wal_lsn()"))
    if here < resume.position:
        # Another server took over that never had what the log has.
        return "the server is behind the log"
    if slot.confirmed > resume.position:
        # Somebody else read the slot, or the log was set back: changes are missing.
        return "the slot is ahead of the log"
    return None
