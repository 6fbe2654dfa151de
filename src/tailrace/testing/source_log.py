"""A log in memory for sources: transactions that commit or vanish, as on a broker."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tailrace.sources.base import Headers, Keys, LogRecord, Values


class Fenced(Exception):
    """A newer writer of the same source has begun."""


class SharedLog:
    """What survives a restart of a source: committed records, by topic and partition."""

    def __init__(self) -> None:
        self.topics: dict[str, list[list[LogRecord | None]]] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.headers: dict[tuple[str, bytes | None], Headers] = {}
        self.generation = 0
        self.guard = threading.Lock()

    def records(self, topic: str) -> list[LogRecord]:
        """Committed records of a topic, partition after partition."""
        return [record for partition in self.partitions(topic) for record in partition]

    def partitions(self, topic: str) -> list[list[LogRecord]]:
        """Committed records of each partition."""
        with self.guard:
            held = [list(partition) for partition in self.topics.get(topic, ())]
        return [[record for record in partition if record is not None] for partition in held]

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for record in self.records(topic)]

    def write(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Records of partition 0, committed at once, as another program would write them."""
        with self.guard:
            held = self.topics[topic][0]
            for key, value in records:
                held.append(LogRecord(len(held), key, value))
            held.append(None)


class MemorySourceLog:
    """A `SourceLog` over a `SharedLog`; markers take an offset, as on a broker.

    With `fail_after` set, so many commits succeed and the next one fails.
    """

    def __init__(self, shared: SharedLog) -> None:
        self.shared = shared
        self._generation = 0
        self._open: dict[tuple[str, int], list[tuple[bytes | None, bytes | None]]] = {}
        self.fail_after: int | None = None

    def init(self) -> None:
        with self.shared.guard:
            self.shared.generation += 1
            self._generation = self.shared.generation
        self._open.clear()

    def _check(self) -> None:
        if self._generation != self.shared.generation:
            raise Fenced

    def ensure_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> int:
        with self.shared.guard:
            held = self.shared.topics.setdefault(name, [[] for _ in range(partitions)])
            self.shared.configs.setdefault(name, {}).update(config)
            return len(held)

    def send(
        self, topic: str, partition: int, keys: Keys, values: Values, timestamp_ms: int,
        headers: Sequence[Headers] | None = None,
    ) -> None:  # fmt: skip
        self._check()
        values = values if isinstance(values, Sequence) else values.to_pylist()
        if keys is None:
            keys = [None] * len(values)
        elif not isinstance(keys, Sequence):
            keys = keys.to_pylist()
        if None in keys and self.shared.configs[topic].get("cleanup.policy") == "compact":
            raise ValueError(f"{topic} is compacted and takes no record without a key")
        for key, given in zip(keys, headers or (), strict=False):
            self.shared.headers[topic, key] = given
        self._open.setdefault((topic, partition), []).extend(zip(keys, values, strict=True))

    def hand_over(self) -> None:
        self._check()

    def flush(self) -> Mapping[tuple[str, int], int]:
        self._check()
        return {
            (topic, partition): len(self.shared.topics[topic][partition]) + len(records)
            for (topic, partition), records in self._open.items()
        }

    def commit(self) -> None:
        with self.shared.guard:
            self._check()
            if self.fail_after is not None:
                self.fail_after -= 1
                if self.fail_after < 0:
                    self._open.clear()
                    raise ConnectionError("the log went away before the commit")
            for (topic, partition), records in self._open.items():
                held = self.shared.topics[topic][partition]
                for key, value in records:
                    held.append(LogRecord(len(held), key, value))
                held.append(None)  # the marker
            self._open.clear()

    def abort(self) -> None:
        self._open.clear()

    def read(
        self, topic: str, partition: int, start: int = 0, end: int | None = None
    ) -> Iterator[LogRecord]:
        with self.shared.guard:
            partitions = self.shared.topics.get(topic)
            held = [] if partitions is None else list(partitions[partition])
        for record in held[start:end]:
            if record is not None:
                yield record

    def last(self, topic: str) -> LogRecord | None:
        found = None
        for record in self.read(topic, 0):
            found = record
        return found

    def end(self, topic: str, partition: int) -> int:
        with self.shared.guard:
            partitions = self.shared.topics.get(topic)
            return 0 if partitions is None else len(partitions[partition])

    def close(self) -> None:
        self._open.clear()
