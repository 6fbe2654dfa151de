"""Group commit: what a partition wants synced, as something a thread can do.

`run` makes system calls on held descriptors only and may run anywhere; `finish` moves
offsets and belongs on the loop. After a failed sync nobody knows which pages are on disk
(the kernel forgets the error), so the partition stops until the next start, whose
recovery looks at what is really there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.log.errors import StorageError
from tailrace.log.files import READ

if TYPE_CHECKING:
    from tailrace.log.partition import Partition


_MANY_FILES = 64


class SyncTicket:
    """Everything of one partition up to `offset`, on its way to disk."""

    __slots__ = (
        "_descriptor",
        "_directories",
        "checkpoint",
        "error",
        "names",
        "offset",
        "partition",
        "paths",
    )

    def __init__(
        self,
        partition: Partition,
        paths: list[str],
        directories: list[str],
        names: int,
        checkpoint: bool,
    ) -> None:
        self.partition = partition
        self.offset = partition.end_offset
        self.paths = paths
        self.names = names
        self.checkpoint = checkpoint
        self.error: OSError | None = None
        held = partition.active.descriptor
        self._descriptor = held.acquire() if held is not None else None
        self._directories = directories

    def run(self) -> None:
        """Sync; an error is kept for `finish`."""
        files = self.partition.shelf.files
        try:
            if len(self.paths) > _MANY_FILES:
                files.sync_filesystem(self.partition.directory)
                return
            for path in self.paths:
                try:
                    number = files.open(path, READ)
                except FileNotFoundError:
                    continue  # deleted meanwhile, with its segment or for a newer snapshot
                try:
                    files.sync_data(number)
                finally:
                    files.close(number)
            if self._descriptor is not None:
                files.sync_data(self._descriptor.number)
            for directory in self._directories:
                files.sync_directory(directory)
        except OSError as error:
            self.error = error

    def finish(self) -> None:
        """Move the partition's offsets; raises `StorageError` if the sync failed."""
        if self._descriptor is not None:
            self._descriptor.release()
        partition = self.partition
        if self.error is not None:
            partition.failure = StorageError(
                f"{partition.topic}-{partition.index} could not be synced",
                detail=f"{partition.directory}: {self.error}",
                hint="check the disk, then start the broker again",
            )
            raise partition.failure from self.error
        partition.synced(self)


class FilesystemTicket:
    """Many partitions of one data directory, synced by one call for the whole filesystem.

    Thousands of files one by one take seconds; the kernel writes them together in the
    time of a few.
    """

    __slots__ = ("error", "path", "tickets")

    def __init__(self, path: Path, tickets: list[SyncTicket]) -> None:
        self.path = path
        self.tickets = tickets
        self.error: OSError | None = None

    @property
    def partition(self) -> Partition:
        """One of the partitions, to name in messages."""
        return self.tickets[0].partition

    def run(self) -> None:
        try:
            self.tickets[0].partition.shelf.files.sync_filesystem(self.path)
        except OSError as error:
            self.error = error

    def finish(self) -> None:
        """Finish every ticket; raises the first `StorageError` after all are finished."""
        failure: StorageError | None = None
        for ticket in self.tickets:
            ticket.error = self.error
            try:
                ticket.finish()
            except StorageError as error:
                failure = failure or error
        if failure is not None:
            raise failure


Ticket = SyncTicket | FilesystemTicket
