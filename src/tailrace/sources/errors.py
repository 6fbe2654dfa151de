"""Errors of capture.

SourceError                   source                 capture cannot work
├── SourceDeclarationError    source-declaration     a declaration that means nothing
├── ServerUnreachableError    source-unreachable     the database does not answer
├── WalLevelError             wal-level              no logical decoding
├── PrivilegeError            source-privilege       the role may not do it
├── SlotTakenError            slot-taken             another process reads the slot
├── HookError                 webhook-hook           a provider makes or removes no hook
├── SlotOwnedError            slot-owned             the slot or publication is not this project's
├── ReplicationRefusedError   replication-refused    the server does not start replication
├── SlotLostError             slot-lost              WAL that we needed is gone
├── SlotMissingError          slot-missing           a given slot does not exist
├── TableMissingError         table-missing          a named table does not exist
├── UnsupportedServerError    source-unsupported     version or setting too old
├── ReplicationProtocolError  replication-protocol   bytes that make no sense
├── PositionError             source-position        text that is no position
├── PositionTooOldError       position-too-old       history was not kept that long
├── SnapshotRequestError      snapshot-request       a re-snapshot that cannot be done
├── CopyBlockedError          copy-blocked           a table cannot be read
└── StateStorageError         source-storage         no room for the state beside the source
"""

from __future__ import annotations

from tailrace.errors import TailraceError


class SourceError(TailraceError):
    """A database cannot be captured, or not any further."""

    code = "source"


class SourceDeclarationError(SourceError):
    """A source is declared with parameters that cannot mean anything."""

    code = "source-declaration"


class ServerUnreachableError(SourceError):
    """The database does not answer, or closed the connection. Capture tries again until
    it does; nothing is lost, because the server keeps what was not confirmed."""

    code = "source-unreachable"


class WalLevelError(SourceError):
    """Postgres writes what logical decoding needs only with `wal_level = logical`.
    Changing it needs a restart of the server."""

    code = "wal-level"


class PrivilegeError(SourceError):
    """The database role lacks a privilege. The hint is the SQL that grants it."""

    code = "source-privilege"


class SlotTakenError(SourceError):
    """A replication slot is read by one process at a time, and another one has it: an
    earlier run that is still ending, or a second project with the same source name."""

    code = "slot-taken"


class SlotOwnedError(SourceError):
    """The replication slot or publication that a source would use belongs to another project,
    another database, or nobody knows to whom. Reading it would take changes away from its
    owner, so it is left alone."""

    code = "slot-owned"


class ReplicationRefusedError(SourceError):
    """The server refuses to start replication, and trying again would not change that."""

    code = "replication-refused"


class SlotMissingError(SourceError):
    """A source with `create=False` names a slot or publication that does not exist."""

    code = "slot-missing"


class SlotLostError(SourceError):
    """The server removed WAL that this source had not read yet: the slot was dropped, or
    it was left behind by more than `max_slot_wal_keep_size`. Capture makes a new slot,
    begins a new epoch and compares every table with the log, writing what differs."""

    code = "slot-lost"


class TableMissingError(SourceError):
    """A table named in `tables=` does not exist in the database."""

    code = "table-missing"


class UnsupportedServerError(SourceError):
    """The server's version or settings lack something a declaration asks for."""

    code = "source-unsupported"


class ReplicationProtocolError(SourceError):
    """The server sent something this version cannot read. Nothing was confirmed, so a
    newer version can read it again."""

    code = "replication-protocol"


class PositionError(SourceError):
    """A position is text of the form `<kind>:<name>:<version>`, for example
    `pg:shop:0000000201A2B3C4`."""

    code = "source-position"


class PositionTooOldError(SourceError):
    """A change stream was asked to start at a position from before the changes that are
    kept. Reading on would silently give fewer changes; declare `history=` for the table,
    or start with "snapshot"."""

    code = "position-too-old"


class SnapshotRequestError(SourceError):
    """A re-snapshot was asked for that cannot be made: no such table, or a table without
    a primary key together with a filter."""

    code = "snapshot-request"


def keyless_request(table: str) -> SnapshotRequestError:
    """For keys or a condition where rows cannot be told apart."""
    return SnapshotRequestError(
        f'table "{table}" has no primary key',
        detail="Its rows cannot be told from each other, so it is copied as a whole.",
        hint="ask for the table without a condition",
    )


class CopyBlockedError(SourceError):
    """A table cannot be read, so its copy waits: the role may not read it, or a condition
    in `where=` or of a re-snapshot does not fit it. Its changes and the other tables go on;
    the copy is tried again by itself, every few seconds."""

    code = "copy-blocked"


class StateStorageError(SourceError):
    """What capture keeps beside a source (large rows, the digests of a comparison, its
    report) cannot be written, mostly because the disk is full. Everything committed is in
    the log, and the server keeps the rest; capture goes on when there is room."""

    code = "source-storage"


class BinlogSettingsError(SourceError):
    """The server writes a binlog that lacks column names, old values or whole rows. The hint
    is the SQL that repairs it; `tailrace source doctor` prints it, too."""

    code = "binlog-settings"


class BinlogLostError(SourceError):
    """The server purged binlog files that this source had not read, or was reset. Capture
    begins a new epoch and compares every table with the log, writing what differs."""

    code = "binlog-lost"


class GtidAheadError(SourceError):
    """None of the listed servers has every transaction that the log has. Going on with one of
    them would tell a history that never was."""

    code = "gtid-ahead"


class BinlogChecksumError(SourceError):
    """An event of the binlog does not have the checksum it says. Nothing of it was written;
    capture reads it again, which helps if it was damaged on its way."""

    code = "binlog-checksum"


class HookError(SourceError):
    """The hook that a provider is to call could not be made or removed there (`register=` of a
    webhook). The edge takes calls meanwhile, and tries again."""

    code = "webhook-hook"
