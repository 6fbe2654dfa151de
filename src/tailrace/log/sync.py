"""Group commit: what a partition wants synced, as something a thread can do.

`run` makes system calls on held descriptors only and may run anywhere; `finish` moves
offsets and belongs on the loop. After a failed sync nobody knows which pages are on disk
(the kernel counts those that failed as written), so the partition stops until the next
start, which finds a mark in the data directory, empties the page cache of it and takes
what the disk holds, as after a power cut.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.log import files
from tailrace.log.errors import StorageError

if TYPE_CHECKING:
    from tailrace.log.partition import Partition


_MANY_FILES = 64


class SyncTicket:
    """Everything of one partition up to `offset`, on its way to disk."""

    __slots__ = (
        "_descriptor",
        "_directories",
        "_sealed",
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
        waiting = partition.shelf.unsynced
        self._sealed = {path: waiting[path].acquire() for path in paths if path in waiting}

    def run(self) -> None:
        """Sync; an error is kept for `finish`."""
        shelf = self.partition.shelf
        if len(self.paths) > _MANY_FILES and files.SYNCFS_TELLS:
            try:
                shelf.sync_filesystem(self.partition.directory.parent)
            except OSError:
                pass  # of which file? each knows its own errors
            else:
                return
        self.run_single()

    def run_single(self) -> None:
        """Sync file by file; an error is kept for `finish`."""
        calls = self.partition.shelf.files
        try:
            for path in self.paths:
                sealed = self._sealed.get(path)
                if sealed is not None:
                    calls.sync_data(sealed.number)
                    continue
                try:
                    number = calls.open(path, files.READ)
                except FileNotFoundError:
                    continue  # deleted meanwhile, with its segment or for a newer snapshot
                try:
                    calls.sync_data(number)
                finally:
                    calls.close(number)
            if self._descriptor is not None:
                calls.sync_data(self._descriptor.number)
            for directory in self._directories:
                calls.sync_directory(directory)
        except OSError as error:
            self.error = error

    def finish(self) -> None:
        """Move the partition's offsets; raises `StorageError` if the sync failed."""
        if self._descriptor is not None:
            self._descriptor.release()
        for sealed in self._sealed.values():
            sealed.release()
        if self.error is not None:
            raise self.partition.sync_failed(self.error) from self.error
        self.partition.synced(self)


class FilesystemTicket:
    """Many partitions of one data directory, synced by one call for the whole filesystem.

    Thousands of files one by one take seconds; the kernel writes them together in the
    time of a few. If that call fails, or cannot tell that it did, each partition finds out
    about its own files.
    """

    __slots__ = ("path", "tickets")

    def __init__(self, path: Path, tickets: list[SyncTicket]) -> None:
        self.path = path
        self.tickets = tickets

    @property
    def partition(self) -> Partition:
        """One of the partitions, to name in messages."""
        return self.tickets[0].partition

    def run(self) -> None:
        if files.SYNCFS_TELLS:
            try:
                self.partition.shelf.sync_filesystem(self.path)
            except OSError:
                pass  # of which file? each knows its own errors
            else:
                return
        for ticket in self.tickets:
            ticket.run_single()

    def finish(self) -> None:
        """Finish every ticket; raises the first `StorageError` after all are finished."""
        failure: StorageError | None = None
        for ticket in self.tickets:
            try:
                ticket.finish()
            except StorageError as error:
                failure = failure or error
        if failure is not None:
            raise failure


Ticket = SyncTicket | FilesystemTicket
