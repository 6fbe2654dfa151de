"""The log as the data source sees it: where topics begin and end, and ranges as columns.

On our own wire, one request for many partitions. A topic carries its id, so that one
deleted and made again under its old name is told from the first.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tailrace.client.admin import Admin
from tailrace.client.cluster import TopicInformation
from tailrace.client.columns import ColumnFetcher
from tailrace.client.errors import (
    OffsetOutOfRangeError,
    RequestTimeoutError,
    UnknownTopicError,
    UnreadableBatchError,
)
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.errors import DataLostError, PipelineError
from tailrace.pipelines.reading.reader import Range
from tailrace.records.decode_columns import RecordColumns
from tailrace.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class TopicBounds:
    """A topic now: its id, and first offset and stable end of every partition."""

    id: str
    partitions: dict[int, tuple[int, int]]


class LogRanges:
    """Asks one log. Owns connections: close it."""

    def __init__(self, bootstrap: str, *, timeout: float = 60.0) -> None:
        self._columns = ColumnFetcher(bootstrap, timeout=timeout)
        self._cluster = self._columns.fetcher.cluster
        self._admin = Admin.over(self._cluster)

    def close(self) -> None:
        self._columns.close()

    def named(self, names: Sequence[str]) -> dict[str, TopicInformation]:
        """Those of the topics that exist, as they are now."""
        found: dict[str, TopicInformation] = {}
        if names:
            answers = self._cluster.retry(lambda: self._cluster.refresh(names), "finding topics")
            for answer in answers:
                if answer.error_code == ErrorCode.NONE and answer.name:
                    found[answer.name] = self._cluster.topic(answer.name)
        return found

    def matching(self, pattern: str) -> dict[str, TopicInformation]:
        """All topics whose whole name fits a regular expression; no internal ones."""
        wanted = re.compile(pattern)
        return {
            topic.name: topic
            for topic in self._admin.list_topics()
            if wanted.fullmatch(topic.name) and not topic.name.startswith("__")
        }

    def bounds(self, topics: dict[str, TopicInformation]) -> dict[str, TopicBounds]:
        """Where these topics begin and end, committed records only."""
        places = [
            (name, index) for name, topic in topics.items() for index in range(len(topic.leaders))
        ]
        starts = self._admin.start_offsets(places) if places else {}
        ends = self._admin.end_offsets(places) if places else {}
        return {
            name: TopicBounds(
                topic.id.hex(),
                {
                    index: (starts[name, index], ends[name, index])
                    for index in range(len(topic.leaders))
                },
            )
            for name, topic in topics.items()
        }

    def offsets_at(self, bounds: dict[str, TopicBounds], wall_ms: int) -> dict[str, dict[int, int]]:
        """The first offset at or after a time; the stable end where there is none before it."""
        places = {(name, p): wall_ms for name, by in bounds.items() for p in by.partitions}
        found = self._admin.offsets_for_times(places) if places else {}
        answer: dict[str, dict[int, int]] = {name: {} for name in bounds}
        for (name, partition), time in found.items():
            end = bounds[name].partitions[partition][1]
            answer[name][partition] = min(time.offset, end) if time.offset >= 0 else end
        return answer

    def read(
        self,
        wanted: Range,
        *,
        go_on: bool = False,
        unreadable: Callable[[DeadRecord], None] | None = None,
    ) -> Iterator[RecordColumns]:
        """A range, committed records only. What retention removed meanwhile is a
        DataLostError, or with `go_on` left out. A topic made again since the range was
        planned is one in any case: what was read belongs to another topic.

        A batch that cannot be read is told to `unreadable`, as a dead record at its first
        offset, and passed over; without it, it is an UnreadableBatchError."""
        position = wanted.start
        while position < wanted.end:
            try:
                for columns in self._columns.read(
                    wanted.topic, wanted.partition, position, wanted.end
                ):
                    yield columns
                    position = int(columns.offsets[-1]) + 1
                self._same(wanted)
                return
            except UnreadableBatchError as error:
                if unreadable is None:
                    raise
                unreadable(_dead(error))
                position = max(position, error.last_offset + 1)
            except (OffsetOutOfRangeError, UnknownTopicError) as gone:
                first = self._first(wanted)
                if not go_on or first <= position:
                    raise DataLostError(
                        f"records of {wanted.topic}/{wanted.partition} from offset {position} are gone",
                        detail=gone.message,
                        hint='rebuild what reads it, or option("on_loss", "continue")',
                    ) from gone
                position = first
            except RequestTimeoutError as stuck:
                raise PipelineError(stuck.message, detail=stuck.detail, hint=stuck.hint) from stuck

    def _same(self, wanted: Range) -> None:
        """Raise if the range was read from another topic than it was planned for."""
        if wanted.id is None:
            return
        now = self.named([wanted.topic]).get(wanted.topic)
        if now is None or now.id.hex() != wanted.id:
            raise DataLostError(
                f"topic {wanted.topic} is not the one whose records were to be read",
                detail="it was deleted and created again while they were read",
                hint="rebuild what reads it; with `on_loss` continue the next attempt goes on",
            )

    def _first(self, wanted: Range) -> int:
        """Where the partition begins now; the end of the range if it is gone altogether."""
        topics = self.named([wanted.topic])
        if wanted.topic not in topics or wanted.partition >= len(topics[wanted.topic].leaders):
            return wanted.end
        place = (wanted.topic, wanted.partition)
        return self._admin.start_offsets([place])[place]


def _dead(error: UnreadableBatchError) -> DeadRecord:
    """The letter about a whole batch: whichever part of it is read, it has one place."""
    reason = f"{error.message}: {error.detail}"
    return DeadRecord(error.topic, error.partition, error.first_offset, reason, None, None)


# A Python worker serves many tasks: keep its connections. Only speed depends on it.
_kept: dict[tuple[int, str], LogRanges] = {}


def kept_ranges(bootstrap: str) -> LogRanges:
    """This process's connections to an address, opened once."""
    where = (os.getpid(), bootstrap)
    if where not in _kept:
        _kept[where] = LogRanges(bootstrap)
    return _kept[where]


@atexit.register
def close_kept() -> None:
    """Close this process's connections; whoever asks again opens them anew."""
    for (pid, _), log in _kept.items():
        if pid == os.getpid():
            log.close()
    _kept.clear()
