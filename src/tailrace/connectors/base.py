"""What a connector is: the classes that authors write subclasses of.

A connector says how its work is split (`tasks`), a task does it. Objects are made without arguments,
each in a process of the worker's: an error, a hang or a crash in one hurts no other.

**Every source is exactly once**: what `poll` returns and the offsets in it are written in one
transaction. `start` is called after every earlier process of the same task has been fenced, and is
given the offsets that were written last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

from tailrace.connectors.config import Config

Partition = Mapping[str, Any]
"""What a source splits into, as JSON: {"filename": "/var/log/x"}."""
Offset = Mapping[str, Any]
"""How far one of them has been read, as JSON."""
Settings = Mapping[str, Any]
Schema = Mapping[str, Any]
"""A type in the form of Connect's JSON: {"type": "string", "optional": true}."""
Headers = tuple[tuple[str, Any], ...]


class Offsets(Protocol):
    """How far a source was read before."""

    def __call__(self, partition: Partition) -> dict[str, Any] | None:
        """The offset written last for a partition; None if there is none."""

    def listed(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Every partition with its offset."""


class SourceRecord(NamedTuple):
    """One record of a source, and where the source stands behind it.

    `topic_partition` chooses the partition of the topic, else the key does; `timestamp` is in
    milliseconds since 1970. Schemas are for converters that write them. Without a topic only the
    offset is written; an offset of None forgets the partition.
    """

    partition: Partition
    offset: Offset | None
    topic: str
    key: Any = None
    value: Any = None
    headers: Headers = ()
    timestamp: int | None = None
    topic_partition: int | None = None
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    def replace(self, **fields: Any) -> SourceRecord:
        return self._replace(**fields)


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """One record for a sink, and where it stands in the log."""

    topic: str
    partition: int
    offset: int
    key: Any = None
    value: Any = None
    headers: Headers = ()
    timestamp: int = -1
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    def replace(self, **fields: Any) -> SinkRecord:
        return replace(self, **fields)


Record = SourceRecord | SinkRecord


class SourceTask:
    """Reads a part of a source. All methods are called by one thread."""

    def start(self, settings: Settings, offsets: Offsets) -> None:
        """Begin where `offsets(partition)` says. Settings are the connector's, those of the task
        on top."""

    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records, in order. None or nothing when there are none now; the task should
        wait no longer than a second or so for some, that it can be paused and stopped."""
        raise NotImplementedError

    def committed(self) -> None:
        """Called after the records of the last `poll` became visible."""

    def stop(self) -> None:
        """Let go of what `start` took."""


class SinkTask:
    """Writes what it is given. All methods are called by one thread."""

    def start(self, settings: Settings) -> None:
        """Make ready."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records in the order of their partitions. They may be put again after a failure,
        unless `position` says that they are there."""
        raise NotImplementedError

    def flush(self) -> None:
        """Make what was put last. Called before the offsets of the group are committed."""

    def position(self, topic: str, partition: int) -> int | None:
        """The offset behind the last record of a partition that the target has, if the target
        remembers it; None: go on where the group stands. A target that stores this with the
        records is written exactly once."""
        return None

    def opened(self, partitions: Sequence[tuple[str, int]]) -> None:
        """Partitions of topics are this task's from now on."""

    def closed(self, partitions: Sequence[tuple[str, int]]) -> None:
        """Partitions are another's from now on; what was put of them has been flushed."""

    def stop(self) -> None:
        """Let go of what `start` took."""

    # Set by the worker before `start`.
    _report: Callable[[SinkRecord, BaseException], None] | None = None

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """Pass a record by that the target does not take: to the topic of dead letters, as
        `errors.tolerance` allows. Raises the error where it does not."""
        if self._report is None:
            raise error
        self._report(record, error)


class Connector:
    """What sources and sinks have in common."""

    config: ClassVar[Config] = Config()
    version: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, str]] = {}
    """Settings of the worker that this connector wants otherwise, such as its converters."""
    independent: ClassVar[bool] = False
    """Whether `Task` is a `tailrace.connectors.independent.IndependentTask`."""

    def check(self, settings: Settings) -> Mapping[str, str]:
        """What is wrong beyond single settings: texts by the names of settings."""
        return {}

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Mapping[str, Offset | None]
    ) -> None:
        """Refuse offsets that somebody wants to set, by raising. Keys are partitions as JSON; where
        all of a sink are to be forgotten, there are none."""


class SourceConnector(Connector):
    """A source. Its task is the class `Task` in it."""

    Task: ClassVar[type[SourceTask]] = SourceTask

    def tasks(self, settings: Settings, most: int) -> Sequence[Mapping[str, str]]:
        """How the work is split: settings for each task, at most `most` of them."""
        return [{}]


class SinkConnector(Connector):
    """A sink. Its task is the class `Task` in it; tasks share the partitions of the topics."""

    Task: ClassVar[type[SinkTask]] = SinkTask

    def tasks(self, settings: Settings, most: int) -> Sequence[Mapping[str, str]]:
        """Settings for each task; as many as are allowed, unless this says otherwise."""
        return [{} for _ in range(most)]
