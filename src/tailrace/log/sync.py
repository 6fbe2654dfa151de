"""Group commit: what a partition wants synced, as something a thread can do.

`run` makes system calls on held descriptors only and may run anywhere; `finish` moves
offsets and belongs on the loop. After a failed sync nobody knows which pages are on disk
(the kernel forgets the error), so the partition stops until the next start, whose
recovery looks at what is really there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.log.errors import StorageError
from tailrace.log.files import READ

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.segment import Segment


class SyncTicket:
    """Everything of one partition up to `offset`, on its way to disk."""

    __slots__ = (
        "_checkpoint",
        "_descriptors",
        "_directories",
        "_paths",
        "_segments",
        "error",
        "offset",
        "partition",
    )

    def __init__(
        self,
        partition: Partition,
        segments: list[Segment],
        paths: list[str],
        directories: list[str],
        checkpoint: bool,
    ) -> None:
        self.partition = partition
        self.offset = partition.end_offset
        self.error: OSError | None = None
        self._segments = segments
        self._descriptors = [
            segment.descriptor.acquire() for segment in segments if segment.descriptor is not None
        ]
        self._paths = paths
        self._directories = directories
        self._checkpoint = checkpoint

    def run(self) -> None:
        """Sync; an error is kept for `finish`."""
        files = self.partition.shelf.files
        try:
            for descriptor in self._descriptors:
                files.sync_data(descriptor.number)
            for path in self._paths:
                try:
                    number = files.open(path, READ)
                except FileNotFoundError:
                    continue  # deleted meanwhile, with its segment or a newer snapshot
                try:
                    files.sync_data(number)
                finally:
                    files.close(number)
            for directory in self._directories:
                files.sync_directory(directory)
        except OSError as error:
            self.error = error

    def finish(self) -> None:
        """Move the partition's offsets; raises `StorageError` if the sync failed."""
        for descriptor in self._descriptors:
            descriptor.release()
        partition = self.partition
        if self.error is not None:
            partition.failure = StorageError(
                f"{partition.topic}-{partition.index} could not be synced",
                detail=f"{partition.directory}: {self.error}",
                hint="check the disk, then start the broker again",
            )
            raise partition.failure from self.error
        for segment in self._segments:
            if segment.sealed:
                segment.release_descriptor()
        partition.synced(self.offset, partition.shelf.clock.wall_ms())
        if self._checkpoint and self.offset > partition.recovery_point:
            partition.recovery_point = self.offset
