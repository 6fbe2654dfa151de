"""All topics of one broker: made, opened, kept tidy and closed here.

    with Store.open([Path("data")]) as store:
        topic = store.create_topic("clicks", 3)
        topic.partitions[0].append(batch)

One process at a time opens a data directory. All calls come from one thread, which calls
`tick` about every 100 ms. A new partition goes to the directory with the fewest; a
directory that is lost stops only its own partitions.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tailrace.clock import SYSTEM, Clock
from tailrace.log.archive import Archive, read_archived
from tailrace.log.compaction import Compaction
from tailrace.log.directories import (
    DataDirectory,
    mark_failed_sync,
    open_directory,
    random_id,
    settle,
    short_id,
    write_clean_stop,
)
from tailrace.log.erasing import Erasing
from tailrace.log.errors import (
    ForeignDirectoryError,
    InvalidPartitionsError,
    InvalidTopicNameError,
    MetadataDamagedError,
    StorageError,
    SyncFailedError,
    TopicExistsError,
    UnknownTopicError,
)
from tailrace.log.files import FILES, Files
from tailrace.log.metadata import Journal, TopicEntry
from tailrace.log.partition import Partition
from tailrace.log.recovery import CleanState, open_partition
from tailrace.log.segment import Segment, Shelf
from tailrace.log.settings import LogSettings, TopicConfig, check_topic_config, keep_events
from tailrace.log.sync import Ticket
from tailrace.log.upkeep import Upkeep

if TYPE_CHECKING:
    from tailrace.log.cleaning_job import CleaningResult

log = logging.getLogger(__name__)

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that may be done a step at a time, and what it gives at the end."""


def at_once(steps: Steps[T]) -> T:
    """Do all the steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            done: T = end.value
            return done


@dataclass(slots=True)
class Topic:
    """One topic with its partitions."""

    name: str
    id: uuid.UUID
    partitions: list[Partition]
    overrides: dict[str, str]
    config: TopicConfig
    created_at: int
    internal: bool = False


@dataclass(slots=True)
class Store:
    """See the module's docstring; made by `Store.open`."""

    directories: list[DataDirectory]
    settings: LogSettings
    clock: Clock
    shelf: Shelf
    journal: Journal
    cluster_id: str
    unclean: bool
    """Whether this start followed a crash."""
    topics: dict[str, Topic] = field(default_factory=dict)
    topics_by_id: dict[uuid.UUID, Topic] = field(default_factory=dict)
    sync_later: Callable[[Ticket], None] | None = None
    """Set by the broker: takes a ticket, runs it on a thread and finishes it on the loop.
    Without it `tick` syncs by itself."""
    on_moved: Callable[[Partition], None] | None = None
    """Called when a partition's offsets move outside an append."""
    compaction: Compaction = field(default_factory=Compaction)
    archive: Archive | None = None
    closed: bool = False
    erasing: Erasing = field(init=False)
    _upkeep: Upkeep = field(init=False)
    _leaving: set[str] = field(default_factory=set)
    """Topics that are being deleted."""

    sync_failures: int = 0
    """Syncs that failed since the start; the partitions they were for have stopped."""

    def __post_init__(self) -> None:
        self.shelf.on_failed_sync = self.journal.on_failed_sync = self._note_failed_sync
        self.shelf.roots = {str(each.path): each.lock for each in self.directories}
        self._upkeep = Upkeep(self)
        self.erasing = Erasing(self)

    # ── opening and closing ──────────────────────────────────────────────────────────

    @classmethod
    def open(
        cls,
        directories: Sequence[Path | str],
        settings: LogSettings | None = None,
        clock: Clock = SYSTEM,
        *,
        files: Files = FILES,
    ) -> Store:
        """Open (or begin) the log in `directories`.

        Raises `DirectoryLockedError`, `UnknownFormatError`, `ForeignDirectoryError`,
        `MetadataDamagedError`. A
        directory that cannot be opened is told in the log and stops its partitions only,
        unless none is left.
        """
        settings = settings or LogSettings()
        opened: list[DataDirectory] = []
        try:
            for path in map(Path, directories):
                try:
                    cluster_id = opened[0].cluster_id if opened else None
                    opened.append(open_directory(path, cluster_id, files))
                    _refuse_copy(opened)
                except OSError as error:
                    log.error(
                        "data directory is lost", extra={"path": str(path), "error": str(error)}
                    )
            if not opened:
                raise StorageError(
                    "no data directory can be opened",
                    detail=", ".join(map(str, directories)),
                    hint="check that the disks are mounted and writable",
                )
            journal = Journal([directory.path for directory in opened], files)
            if not journal.catalogue.number:
                try:
                    _refuse_lost_journal(opened)
                except MetadataDamagedError:
                    journal.close()
                    raise
        except BaseException:
            for directory in opened:
                directory.close()
            raise
        unclean = any(directory.clean is None for directory in opened) and bool(
            journal.catalogue.topics
        )
        store = cls(
            opened,
            settings,
            clock,
            Shelf(files, clock),
            journal,
            opened[0].cluster_id,
            unclean,
        )
        url = str(settings.get("tailrace.archive.url"))
        if url:
            store.archive = Archive(url, settings.number("tailrace.archive.cache.bytes"))
        if unclean:
            store._bump_epoch()
        for entry in journal.catalogue.topics.values():
            store._open_topic(entry)
        store._sweep()
        store._upkeep.take_back_points()
        store._upkeep.compare_clock()
        for directory in opened:
            directory.clean = None
            if directory.sync_failed and not any(
                each.failure for each in store._upkeep.partitions_of(directory)
            ):
                settle(directory, files)
        return store

    def _note_failed_sync(self, path: Path) -> None:
        """A sync failed in a directory of a data directory."""
        self.sync_failures += 1
        log.error("a sync failed", extra={"path": str(path)})
        for directory in self.directories:
            if directory.path == path.parent:
                mark_failed_sync(directory.path, self.shelf.files)
                directory.sync_failed = True

    @property
    def clock_doubtful(self) -> bool:
        """Whether the wall clock is ahead for a reason nobody knows: nothing is deleted by it."""
        return self._upkeep.clock_doubtful

    def failed_sync(self) -> SyncFailedError | None:
        """What to tell of syncs that failed since the start; None if none did."""
        if not self.sync_failures:
            return None
        stopped = [each.failure for each in self.partitions() if each.failure is not None]
        return SyncFailedError(
            f"the disk did not keep what was written ({self.sync_failures} "
            f"sync{'' if self.sync_failures == 1 else 's'} failed)",
            detail=", ".join(each.detail for each in stopped[:5])
            or ", ".join(str(each.path) for each in self.directories if each.sync_failed),
            hint="check the disk, then start the broker again: it reads what the disk holds",
        )

    def _bump_epoch(self) -> None:
        """Let consumers notice that a crash may have cut the log."""
        epoch = self.journal.catalogue.epoch + 1
        try:
            self.journal.append({"op": "epoch", "epoch": epoch})
        except OSError as error:
            # Better to serve from a full disk than not to start.
            log.warning("leader epoch not kept", extra={"epoch": epoch, "error": str(error)})
            self.journal.catalogue.epoch = epoch

    def close(self) -> None:
        """Stop cleanly: everything is synced and noted, so the next start reads no segment."""
        if self.closed:
            return
        self.closed = True
        self._stop_children()
        self.sync_later = None
        self._upkeep.sync_all()
        try:
            self._upkeep.write_checkpoints()
            for directory in self.directories:
                # A partition that failed is left out: its next start looks at the files.
                clean = {
                    (partition.topic, partition.index): CleanState.of(partition)
                    for partition in self._upkeep.partitions_of(directory)
                    if partition.failure is None
                    and partition.recovery_point == partition.end_offset
                }
                write_clean_stop(directory, clean, self.shelf.files)
        except OSError as error:
            log.error("clean stop not noted", extra={"error": str(error)})
        self.abandon()

    def _stop_children(self) -> None:
        self.erasing.stop()
        self.compaction.stop()
        if self.archive is not None:
            self.archive.stop()

    def abandon(self) -> None:
        """Let go of everything as it is, as a crash would."""
        self.closed = True
        self._stop_children()
        for partition in self.partitions():
            partition.close()
        self.shelf.open_files.close()
        self.journal.close()
        for directory in self.directories:
            directory.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ── topics ───────────────────────────────────────────────────────────────────────

    def partitions(self) -> Iterator[Partition]:
        for topic in self.topics.values():
            yield from topic.partitions

    def partition(self, topic: str, index: int) -> Partition:
        """Raises `UnknownTopicError` (3)."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            raise UnknownTopicError(
                f"{topic}-{index} does not exist" if found else f"topic {topic} does not exist"
            )
        return found.partitions[index]

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        internal: bool = False,
        topic_id: uuid.UUID | None = None,
        validate_only: bool = False,
    ) -> Topic:
        """Make a topic; its journal line is on disk on return.

        `partitions` None takes `num.partitions`. Raises 17, 36, 37, 40 or 56.
        """
        return at_once(
            self.create_topic_in_steps(
                name,
                partitions,
                overrides,
                internal=internal,
                topic_id=topic_id,
                validate_only=validate_only,
            )
        )

    def create_topic_in_steps(
        self,
        name: str,
        partitions: int | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        internal: bool = False,
        topic_id: uuid.UUID | None = None,
        validate_only: bool = False,
    ) -> Steps[Topic]:
        """`create_topic`, a step a partition. Nobody sees the topic before the last; its name is
        taken from the first on, and a crash in between leaves a topic that the next start ends."""
        check_topic_name(name)
        known = self.journal.catalogue.topics
        if name in known:
            raise TopicExistsError(f'topic "{name}" already exists')
        if name in self._leaving:
            raise TopicExistsError(f'topic "{name}" is being deleted', hint="try again")
        flat = name.replace(".", "_")
        collided = next((other for other in known if other.replace(".", "_") == flat), None)
        if collided is not None:
            raise TopicExistsError(
                f'topic "{name}" collides with "{collided}"',
                detail='names that differ only in "." and "_" share their metrics',
            )
        count = self.settings.number("num.partitions") if partitions is None else partitions
        if count < 1:
            raise InvalidPartitionsError(f"a topic cannot have {count} partitions")
        texts = dict(overrides or {})
        config = self.settings.topic(texts)
        self.settings.check_archive(config)
        entry = TopicEntry(
            name, topic_id or random_id(), self._places(count), texts, self.clock.wall_ms()
        )
        if validate_only:
            return Topic(name, entry.id, [], texts, config, entry.created_at, internal)
        self._upkeep.forget_offsets(entry.name)
        self._journal({"op": "create", "topic": entry.as_json()})
        topic = self._name_topic(known[name])
        topic.internal = topic.internal or internal
        for index in range(count):
            yield
            self._move_stray(entry, index)
            topic.partitions.append(self._open_partition(entry, index, config))
        self._show(topic)
        log.debug("topic created", extra={"topic": name, "partitions": count, "id": str(entry.id)})
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its files; raises `UnknownTopicError` (3)."""
        at_once(self.delete_topic_in_steps(name))

    def delete_topic_in_steps(self, name: str) -> Steps[None]:
        """`delete_topic`, a step a partition. Nobody sees the topic from the first on, and its
        name is free after the last."""
        topic = self._topic(name)
        self._journal({"op": "delete", "name": name})
        del self.topics[name]
        del self.topics_by_id[topic.id]
        self._leaving.add(name)
        try:
            for partition in topic.partitions:
                partition.failure = StorageError(f"topic {name} was deleted")
            for partition in topic.partitions:
                yield
                partition.close()
                for segment in partition.segments:
                    if not segment.here:
                        segment.delete()
                self._remove_directory(partition.directory)
        finally:
            self._leaving.discard(name)
        log.info("topic deleted", extra={"topic": name})

    def add_partitions(self, name: str, total: int) -> Topic:
        """Grow a topic to `total` partitions; raises 3 or 37."""
        return at_once(self.add_partitions_in_steps(name, total))

    def add_partitions_in_steps(self, name: str, total: int) -> Steps[Topic]:
        """`add_partitions`, a step a partition; each can be used as soon as it is there."""
        topic = self._topic(name)
        have = len(self.journal.catalogue.topics[name].places)
        if total <= have:
            raise InvalidPartitionsError(
                f'topic "{name}" has {have} partitions', detail=f"{total} were asked for"
            )
        places = self._places(total - have)
        self._journal({"op": "partitions", "name": name, "places": places})
        entry = self.journal.catalogue.topics[name]
        for index in range(have, total):
            yield
            while index > len(topic.partitions) and self.topics.get(name) is topic:
                yield  # another request is still adding those before
            if self.topics.get(name) is not topic:
                raise UnknownTopicError(f'topic "{name}" was deleted')
            self._move_stray(entry, index)
            topic.partitions.append(self._open_partition(entry, index, topic.config))
        return topic

    def alter_config(self, name: str, changes: Mapping[str, str | None]) -> Topic:
        """Change settings of a topic, None meaning back to the default; raises 3 or 40."""
        topic = self._topic(name)
        overrides = {**topic.overrides, **{key: value for key, value in changes.items() if value is not None}}  # fmt: skip
        for key, value in changes.items():
            if value is None:
                check_topic_config({key: self.settings.topic_default(key)})
                overrides.pop(key, None)
        keep_events(topic.overrides, overrides)
        check_topic_config({key: value for key, value in changes.items() if value is not None})
        config = self.settings.topic(overrides)
        self.settings.check_archive(config)
        self._journal({"op": "config", "name": name, "overrides": overrides})
        topic.overrides = overrides
        self._configure(topic, config)
        return topic

    def change_quota(
        self, user: str | None, client_id: str | None, values: Mapping[str, float]
    ) -> None:
        """Keep a client quota (none if `values` is empty); on disk on return."""
        self._journal({"op": "quota", "user": user, "client_id": client_id, "values": dict(values)})

    def change_user(
        self, name: str, credentials: Mapping[str, Mapping[str, object] | None]
    ) -> None:
        """Keep what is known of a user's password by mechanism, None: no more; on disk on
        return."""
        self._journal({"op": "user", "name": name, "credentials": dict(credentials)})

    def change_token(self, token_id: str, values: Mapping[str, object] | None) -> None:
        """Keep a delegation token, or forget it; on disk on return."""
        self._journal({"op": "token", "id": token_id, "values": values and dict(values)})

    def change_acls(
        self, add: Iterable[tuple[object, ...]], remove: Iterable[tuple[object, ...]]
    ) -> None:
        """Keep access rules that came and went, all or none of them; on disk on return."""
        self._journal({"op": "acls", "add": [*map(list, add)], "remove": [*map(list, remove)]})

    def change_settings(self, settings: LogSettings) -> None:
        """Take new broker settings at once; topics without an override follow."""
        self.settings = settings
        for topic in self.topics.values():
            self._configure(topic, settings.topic(topic.overrides))

    def _configure(self, topic: Topic, config: TopicConfig) -> None:
        topic.config = config
        for partition in topic.partitions:
            partition.config = config
            partition.notify()

    # ── periodic work ────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Do what is due: roll, flush, retention, archive, producer expiry, compaction,
        checkpoints. Cheap when nothing is."""
        self._upkeep.tick()

    def checkpoint(self) -> None:
        """Begin to move recovery points to the ends, and note those reached before."""
        self._upkeep.checkpoint()

    def compact(self, topic: str, index: int) -> CleaningResult:
        """Compact a partition now, in this process; raises `UnknownTopicError` (3)."""
        partition = self.partition(topic, index)
        return self.compaction.clean_here(partition, self.settings, self.clock.wall_ms())

    def _topic(self, name: str) -> Topic:
        topic = self.topics.get(name)
        if topic is None:
            raise UnknownTopicError(f'topic "{name}" does not exist')
        return topic

    def _journal(self, event: dict[str, object]) -> None:
        try:
            self.journal.append(event)
        except OSError as error:
            raise StorageError(
                "the journal of topics cannot be written", detail=str(error)
            ) from error

    def _open_topic(self, entry: TopicEntry) -> None:
        topic = self._name_topic(entry)
        for index in range(len(entry.places)):
            topic.partitions.append(self._open_partition(entry, index, topic.config))
        self._show(topic)

    def _name_topic(self, entry: TopicEntry) -> Topic:
        """A topic that has no partitions yet."""
        config = self.settings.topic(entry.overrides)
        if self.archive is not None:
            self.archive.name_topic(entry.name, short_id(entry.id))
        return Topic(
            entry.name,
            entry.id,
            [],
            dict(entry.overrides),
            config,
            entry.created_at,
            entry.name in INTERNAL_TOPICS,
        )

    def _show(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.topics_by_id[topic.id] = topic

    def _move_stray(self, entry: TopicEntry, index: int) -> None:
        """Move away what a crash in the middle of a deletion left under a new partition's name:
        its records are not those of the new topic."""
        place = next((each for each in self.directories if each.id == entry.places[index]), None)
        path = place and place.path / f"{entry.name}-{index}"
        if path and path.exists():
            aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}-stray")
            with suppress(OSError):  # then the partition says so
                os.rename(path, aside)
                log.warning("a stray directory was moved", extra={"path": str(aside)})

    def _open_partition(self, entry: TopicEntry, index: int, config: TopicConfig) -> Partition:
        place = entry.places[index]
        directory = next((each for each in self.directories if each.id == place), None)
        path = (directory or self.directories[0]).path / f"{entry.name}-{index}"
        partition = Partition(
            entry.name, index, path, config, self.shelf, self.journal.catalogue.epoch
        )
        partition.on_moved = self._partition_moved
        partition.keep_start = self._upkeep.keep_start
        if directory is None:
            partition.lose(
                StorageError(
                    f"{entry.name}-{index} is on a data directory that is not there",
                    detail=f"directory id {place}",
                    hint="mount the disk and start the broker again",
                )
            )
            return partition
        key = entry.name, index
        fresh = not path.exists()
        try:
            open_partition(
                partition,
                directory.clean.get(key) if directory.clean is not None else None,
                directory.recovery_points.get(key, 0),
                directory.log_starts.get(key, 0),
                same_boot=directory.same_boot,
                archived=self._archived,
            )
            partition.cleaned_to = max(partition.cleaned_to, directory.cleaned.get(key, 0))
            if fresh:
                self._write_topic_id(path, entry)
        except StorageError as error:
            log.error("partition stopped", extra={"path": str(path), "error": error.render()})
            partition.lose(error)
        except OSError as error:
            partition.lose(
                StorageError(f"{entry.name}-{index} cannot be opened", detail=f"{path}: {error}")
            )
        return partition

    def _write_topic_id(self, path: Path, entry: TopicEntry) -> None:
        text = f"version: 0\ntopic_id: {short_id(entry.id)}\n"
        try:
            self.shelf.files.write_whole(path / "partition.metadata", text.encode(), sync=False)
        except OSError as error:
            # For Kafka's tools only: the journal knows the id.
            log.warning("partition.metadata not written", extra={"error": str(error)})

    def _archived(self, partition: Partition, local: set[int]) -> list[Segment]:
        return read_archived(partition, self.archive, local)

    def _partition_moved(self, partition: Partition) -> None:
        if self.on_moved is not None:
            self.on_moved(partition)

    def _places(self, count: int) -> list[str]:
        """Directory ids for `count` new partitions, the emptiest directory first."""
        alive = [directory for directory in self.directories if directory.failure is None]
        held = {directory.id: 0 for directory in alive}
        for entry in self.journal.catalogue.topics.values():
            for place in entry.places:
                if place in held:
                    held[place] += 1
        places: list[str] = []
        for _ in range(count):
            emptiest = min(held, key=lambda each: held[each])
            held[emptiest] += 1
            places.append(emptiest)
        return places

    def _remove_directory(self, path: Path) -> None:
        """Take a partition's directory away at once and its bytes afterwards."""
        doomed = path.with_name(f"{path.name}.{uuid.uuid4().hex}-delete")
        try:
            os.rename(path, doomed)
            shutil.rmtree(doomed)
        except OSError as error:
            log.warning("directory not removed", extra={"path": str(path), "error": str(error)})

    def _sweep(self) -> None:
        """Remove what deletions left behind when they were interrupted."""
        known = {
            f"{entry.name}-{index}"
            for entry in self.journal.catalogue.topics.values()
            for index in range(len(entry.places))
        }
        for directory in self.directories:
            for name in os.listdir(directory.path):
                path = directory.path / name
                if not path.is_dir() or name == "metadata" or name in known:
                    continue
                if name.endswith("-delete"):
                    shutil.rmtree(path, ignore_errors=True)
                elif (path / "partition.metadata").exists():
                    log.warning("directory belongs to no topic", extra={"path": str(path)})


def _refuse_copy(directories: list[DataDirectory]) -> None:
    """Raises `ForeignDirectoryError` if the last directory has the id of another."""
    *others, last = directories
    for other in others:
        if other.id == last.id:
            raise ForeignDirectoryError(
                f"{last.path} is a copy of {other.path}",
                detail=f"both have the directory id {last.id}",
                hint="name one of them only",
            )


def _refuse_lost_journal(directories: list[DataDirectory]) -> None:
    """Raises `MetadataDamagedError` if there are partitions but nothing tells of topics."""
    found = [
        path.parent.name
        for directory in directories
        for path in directory.path.glob("*/partition.metadata")
    ]
    if found:
        raise MetadataDamagedError(
            "the journal of topics is missing",
            detail=f"{len(found)} partitions are there: {', '.join(sorted(found)[:5])} …",
            hint="restore the directory `metadata` from a copy; segments are untouched",
        )


def check_topic_name(name: str) -> None:
    """Raises `InvalidTopicNameError` (17) unless Kafka would take the name."""
    if not _LEGAL_NAME.match(name) or name in (".", ".."):
        raise InvalidTopicNameError(
            f'"{name}" is no topic name',
            detail='1 to 249 letters, digits, ".", "_" and "-"',
        )
