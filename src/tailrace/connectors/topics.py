"""The topics in which workers keep settings and statuses: each followed by a thread of the worker.

`connect-configs` has one partition, and one writer: the leader of the group, by the transactional
id `connect-cluster-GROUP` as Kafka Connect, so that a leader that was replaced cannot write.
`connect-status` is written by every worker about what it runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import orjson

from tailrace.client.errors import ClientError, OffsetOutOfRangeError, TopicExistsError
from tailrace.client.fetcher import Fetcher
from tailrace.client.log import Log
from tailrace.client.writer import TransactionalWriter
from tailrace.connectors.configured import Configured, Written
from tailrace.connectors.errors import ConnectStoreError, Refused
from tailrace.errors import TailraceError

log = logging.getLogger(__name__)

WAIT_SECONDS = 0.5
LOOK_SECONDS = 0.2
CATCH_UP_SECONDS = 60.0
_REMEMBERED = 5000


def ensure(source: Log, topic: str, partitions: int) -> int:
    """Make a compacted topic unless it exists; its number of partitions."""
    try:
        source.ensure_topic(topic, partitions, {"cleanup.policy": "compact"})
    except TopicExistsError:
        pass
    found = source.topic(topic)
    if found is None:
        raise ConnectStoreError(f'the topic "{topic}" does not exist')
    policy = source.topic_config(topic).get("cleanup.policy") or ""
    if policy != "compact":
        raise ConnectStoreError(
            f'the topic "{topic}" must be compacted, and no more than that',
            detail=f"cleanup.policy is {policy}: connectors would be forgotten with time",
            hint=f"tailrace topic alter {topic} --config cleanup.policy=compact",
        )
    return len(found.leaders)


class ConfigTopic:
    """`connect-configs`: its fold, and writing as the leader. Safe from several threads."""

    def __init__(
        self, source: Log, topic: str, transactional_id: str, on_change: Callable[[], None]
    ) -> None:
        self.topic = topic
        self._log = source
        self._id = transactional_id
        self._on_change = on_change
        self._changed = threading.Condition()
        self._state = Configured()
        self._position = 0
        self._writer: TransactionalWriter | None = None
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self.failure: TailraceError | None = None
        self._reader = threading.Thread(target=self._read, name="connect settings", daemon=True)

    def start(self) -> None:
        if ensure(self._log, self.topic, 1) != 1:
            raise ConnectStoreError(
                f'the topic "{self.topic}" must have one partition',
                detail="the order of its records decides which settings count",
                hint="name another: --set config.storage.topic=NAME",
            )
        self._reader.start()
        self.catch_up()

    def close(self) -> None:
        self._stopping.set()
        if self._reader.is_alive():
            self._reader.join()
        with self._writing:
            self._let_go()

    def state(self) -> Configured:
        """A copy of what is known now."""
        with self._changed:
            return self._state.copy()

    @property
    def position(self) -> int:
        with self._changed:
            return self._position

    def catch_up(self, seconds: float = CATCH_UP_SECONDS) -> None:
        """Until everything is folded that was written before."""
        self.wait_for(self._log.end_offsets(self.topic)[0], seconds)

    def wait_for(self, offset: int, seconds: float = CATCH_UP_SECONDS) -> None:
        until = self._log.clock.monotonic() + seconds
        with self._changed:
            while self._position < offset:
                left = until - self._log.clock.monotonic()
                if left <= 0 or self._stopping.is_set():
                    raise ConnectStoreError(
                        f'the topic "{self.topic}" could not be read in {seconds:g} s',
                        detail=str(self.failure or ""),
                    )
                self._changed.wait(min(left, WAIT_SECONDS))

    def _read(self) -> None:
        with closing(self._log.fetcher(fetch_bytes=4 << 20)) as fetcher:
            while not self._stopping.is_set():
                try:
                    found = fetcher.fetch(self.topic, 0, self._position, wait=WAIT_SECONDS)
                except OffsetOutOfRangeError as error:
                    # Made again while we ran: what we know is of the one before.
                    self._begin_again(error)
                    continue
                except TailraceError as error:
                    self.failure = error
                    self._stopping.wait(WAIT_SECONDS)
                    continue
                self.failure = None
                with self._changed:
                    for record in found.records:
                        value = None if record.value is None else bytes(record.value)
                        self._state.apply(bytes(record.key or b""), value, record.offset)
                    moved = found.following != self._position
                    self._position = found.following
                    self._changed.notify_all()
                if moved:
                    self._on_change()

    def _begin_again(self, error: TailraceError) -> None:
        log.warning("the topic begins again", extra={"topic": self.topic, "error": str(error)})
        with self._changed:
            self._state, self._position = Configured(), 0
        self._stopping.wait(WAIT_SECONDS)

    def lead(self) -> None:
        """We lead from now on: earlier leaders are fenced with the next write."""
        with self._writing:
            self._let_go()

    def write(self, records: Sequence[Written]) -> int:
        """Write as the leader, in one transaction; returns the position when it is folded here."""
        with self._writing:
            try:
                if self._writer is None:
                    self._writer = self._log.transactional_writer(self._id, timeout=30.0)
                    self._writer.init()
                for key, value in records:
                    self._writer.send(self.topic, 0, key, value)
                end = self._writer.commit()[self.topic, 0]
            except ClientError as error:
                self._let_go()
                raise Refused(
                    500, f"the settings could not be written: {error}; who leads may have changed, try again"
                ) from error  # fmt: skip
        self.wait_for(end)
        return end

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class StatusTopic:
    """`connect-status`: states of connectors and tasks, topics in use. Safe from several threads."""

    def __init__(self, source: Log, topic: str, partitions: int, worker: str) -> None:
        self.topic = topic
        self._partitions = partitions
        self._log = source
        self._worker = worker
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._statuses: dict[tuple[str, int], dict[str, Any]] = {}
        self._topics: dict[str, dict[str, dict[str, Any]]] = {}
        self._positions: dict[int, int] = {}
        self._writer: TransactionalWriter | None = None
        self._stopping = threading.Event()
        # Records we wrote ourselves and have not read back: they are newer than what is read.
        self._ours: dict[bytes, int] = {}
        self._reader = threading.Thread(target=self._follow, name="connect statuses", daemon=True)

    def start(self) -> None:
        count = ensure(self._log, self.topic, self._partitions)
        self._positions = dict.fromkeys(range(count), 0)
        ends = self._log.end_offsets(self.topic)
        with closing(self._log.fetcher(fetch_bytes=4 << 20)) as fetcher:
            while any(self._positions[index] < end for index, end in ends.items()):
                self._look(fetcher)
        self._reader.start()

    def close(self) -> None:
        self._stopping.set()
        if self._reader.is_alive():
            self._reader.join()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _follow(self) -> None:
        with closing(self._log.fetcher(fetch_bytes=4 << 20)) as fetcher:
            while not self._stopping.wait(LOOK_SECONDS):
                try:
                    self._look(fetcher)
                except TailraceError as error:
                    log.warning("statuses cannot be read", extra={"error": str(error)})
                    self._stopping.wait(WAIT_SECONDS)

    def _look(self, fetcher: Fetcher) -> None:
        for index, position in self._positions.items():
            try:
                found = fetcher.fetch(self.topic, index, position)
            except OffsetOutOfRangeError:
                self._positions[index] = 0
                continue
            with self._lock:
                for record in found.records:
                    key = bytes(record.key or b"")
                    if self._ours.get(key, -1) > record.offset:
                        continue
                    self._apply(key, None if record.value is None else bytes(record.value))
            self._positions[index] = found.following

    def _apply(self, key: bytes, value: bytes | None) -> None:
        try:
            name = key.decode()
            found = None if value is None else orjson.loads(value)
        except ValueError:
            return
        if name.startswith("status-topic-"):
            topic, _, connector = name[13:].partition(":connector-")
            topics = self._topics.setdefault(connector, {})
            if found is None:
                topics.pop(topic, None)
            else:
                topics[topic] = found
            return
        if name.startswith("status-connector-"):
            unit = (name[17:], -1)
        elif name.startswith("status-task-"):
            connector, _, number = name[12:].rpartition("-")
            if not number.isdigit():
                return
            unit = (connector, int(number))
        else:
            return
        if found is None:
            self._statuses.pop(unit, None)
        elif isinstance(found, dict) and "state" in found:
            self._statuses[unit] = found

    def _write(self, records: Sequence[Written]) -> None:
        """Statuses are news: one that cannot be written is logged, and what runs goes on."""
        with self._writing:
            if self._stopping.is_set():
                return
            try:
                if self._writer is None:
                    name = f"tailrace.connect.status.{self._worker}"
                    self._writer = self._log.transactional_writer(name, timeout=15.0)
                    self._writer.init()
                places: dict[bytes, int] = {}
                for key, value in records:
                    index = self._writer.partition_of(self.topic, key)
                    self._writer.send(self.topic, index, key, value)
                    places[key] = index
                ends = self._writer.commit()
            except ClientError as error:
                log.warning("a status cannot be written", extra={"error": str(error)})
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None
                return
            with self._lock:
                for key, value in records:
                    self._apply(key, value)
                    self._ours[key] = ends[self.topic, places[key]] - 1
                while len(self._ours) > _REMEMBERED:
                    del self._ours[next(iter(self._ours))]

    def put(
        self, unit: tuple[str, int], state: str | None, generation: int, version: str | None, trace: str | None = None,
    ) -> None:  # fmt: skip
        """Say how something is; None: it is no more."""
        if state in ("UNASSIGNED", "FAILED"):
            last = self.status(unit)
            if last and last.get("worker_id") != self._worker and last.get("generation", -1) > generation:  # fmt: skip
                return  # somebody runs it since
        value = None
        if state is not None:
            fields = {
                "state": state,
                "trace": trace,
                "worker_id": self._worker,
                "generation": generation,
                "version": version,
            }
            value = orjson.dumps(fields)
        self._write([(_status_key(unit), value)])

    def uses(self, connector: str, task: int, topic: str) -> None:
        """A task has read or written a topic."""
        with self._lock:
            if topic in self._topics.get(connector, {}):
                return
        found = {"name": topic, "connector": connector, "task": task, "discoverTimestamp": self._log.clock.wall_ms()}  # fmt: skip
        self._write([(_topic_key(topic, connector), orjson.dumps({"topic": found}))])

    def forget_topics(self, connector: str) -> None:
        records: list[Written] = [(_topic_key(one, connector), None) for one in self.topics(connector)]  # fmt: skip
        if records:
            self._write(records)

    def forget(self, connector: str) -> None:
        """The connector is deleted."""
        with self._lock:
            units = [unit for unit in self._statuses if unit[0] == connector]
        records: list[Written] = [(_status_key(unit), None) for unit in units]
        records += [(_topic_key(one, connector), None) for one in self.topics(connector)]
        if records:
            self._write(records)

    def status(self, unit: tuple[str, int]) -> dict[str, Any] | None:
        with self._lock:
            return self._statuses.get(unit)

    def running(self, connector: str) -> bool:
        """Whether a task of it is told to run somewhere."""
        with self._lock:
            return any(
                status["state"] in ("RUNNING", "PAUSED", "RESTARTING")
                for (name, number), status in self._statuses.items()
                if name == connector and number >= 0
            )

    def topics(self, connector: str) -> list[str]:
        with self._lock:
            return sorted(self._topics.get(connector, ()))


def _status_key(unit: tuple[str, int]) -> bytes:
    name, number = unit
    kind = f"connector-{name}" if number < 0 else f"task-{name}-{number}"
    return f"status-{kind}".encode()


def _topic_key(topic: str, connector: str) -> bytes:
    return f"status-topic-{topic}:connector-{connector}".encode()
