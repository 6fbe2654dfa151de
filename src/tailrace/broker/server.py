"""The broker: one loop thread that serves a store to any Kafka client.

    loop        epoll, timers                  listener, connection   sockets, frames
    router      request → handler              handlers/              one module a family
    sync        fdatasync beside the loop      cold                   disk reads beside it

Everything but `stop` belongs to the loop thread. A clean stop refuses new
connections, syncs and closes the store; a crash leaves what the store's recovery
takes up at the next start.
"""

from __future__ import annotations

import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.broker import lazy
from tailrace.broker.authentication.authentication import Authentication
from tailrace.broker.cold import ColdReader
from tailrace.broker.connection import Connection
from tailrace.broker.errors import DamagedFileError
from tailrace.broker.handlers import fetch, metadata, produce, versions
from tailrace.broker.inspection import Inspector
from tailrace.broker.listener import Listener
from tailrace.broker.loop import Loop, LoopTimer
from tailrace.broker.metrics import BrokerMetrics
from tailrace.broker.metrics_page import MetricsPage
from tailrace.broker.pressure.brake import Pressure
from tailrace.broker.producer_ids import ProducerIds, write_to_any
from tailrace.broker.project_token import ProjectToken
from tailrace.broker.quotas.meters import Quotas
from tailrace.broker.router import LONG_REQUEST_BYTES, LONG_REQUESTS, Router
from tailrace.broker.settings import BrokerSettings, host_limits
from tailrace.broker.shares import lazy as share_lazy
from tailrace.broker.shares.settings import GroupSettings
from tailrace.broker.small_files import encode_object, read_object
from tailrace.broker.sync import Syncer
from tailrace.broker.watchdog import Watchdog
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import TailraceError
from tailrace.log.errors import StorageError
from tailrace.log.files import FILES, Files
from tailrace.log.partition import Appended, Partition
from tailrace.log.store import Steps, Store, Topic, at_once
from tailrace.wire.apis import ApiKey

if TYPE_CHECKING:
    from tailrace.broker.authorization.authorizer import Authorizer
    from tailrace.broker.coordination import Coordination
    from tailrace.broker.handlers.shares import ShareRequests

log = logging.getLogger(__name__)
# Topics and settings coming and going, in a stream of their own as Kafka's controller log.
controller_log = logging.getLogger("tailrace.broker.controller")

TICK_SECONDS = 0.25
DYNAMIC_SETTINGS = "dynamic-settings.json"


class Broker:
    """Opens the store, listens, and serves until it is stopped; see `Services` for handlers."""

    def __init__(
        self,
        directories: Iterable[str | Path],
        *,
        host: str | None = "127.0.0.1",
        port: int = 0,
        settings: BrokerSettings | None = None,
        clock: Clock = SYSTEM,
        files: Files = FILES,
        project_listener: bool = False,
    ) -> None:
        self._files = files
        self.of_project = project_listener
        """Whether this is the log of a project, which `tailrace up` runs."""
        self.directories = [Path(directory) for directory in directories]
        self.settings = settings if settings is not None else BrokerSettings()
        self.clock = clock
        self.features: dict[str, int] = dict(lazy.FEATURES)
        self.unreadable_records: Counter[str] = Counter()
        self._coordination: Coordination | None = None
        self._load_dynamic()
        self.store = Store.open(
            self.directories, settings=self.settings.log(), clock=clock, files=files
        )
        self.loop = Loop(clock)
        try:
            self._start(host, port)
        except BaseException:
            self.loop.close()
            self.store.close()
            raise

    def _start(self, host: str | None, port: int) -> None:
        settings = self.settings
        self.router = Router(self.loop, self.clock.monotonic)
        self.authorizer: Authorizer | None = None
        """Who decides what clients may do; None: everybody may do everything."""
        if settings.text("authorizer.class.name"):
            from tailrace.broker.authorization import guards

            self.authorizer = guards.install(self)
        self.metrics = BrokerMetrics(self)
        self.fetch_limit_bytes = settings.integer("fetch.max.bytes")
        self._by_name: dict[str | bytes, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self.pressure = Pressure(self)
        for topic in self.store.topics.values():
            self._know(topic)
        self._producer_ids = ProducerIds(
            [directory.path for directory in self.store.directories], self._files
        )
        present = [each for each in self.store.directories if each.failure is None]
        self.project_token = ProjectToken((present or self.store.directories)[0].path)
        self.syncer = Syncer(self.loop, self._synced)
        self.cold = ColdReader(self.loop)
        self.inspector = Inspector(self.loop)
        self.metering = False
        """Whether clients are counted: true while quotas are set."""
        self.quotas = Quotas(self)
        self.produce = produce.install(self)
        self.fetch = fetch.install(self)
        self.store.on_moved = self._moved
        self.store.sync_later = self.syncer.submit
        for module in (versions, metadata):
            self.router.add(module.routes(self))
        self.router.add(lazy.administration(self))
        self.router.add(lazy.routes(lambda: self.coordination, self.next_producer_id))
        self.group_settings = GroupSettings(
            self.directories[0] / "group-settings.json", settings.text, self._files
        )
        self._shares: ShareRequests | None = None
        self.router.add(share_lazy.routes(lambda: self.shares))
        if any(name in self.store.topics for name in lazy.INTERNAL_TOPICS):
            _ = self.coordination
        largest = settings.integer("socket.request.max.bytes")
        self.authentication = Authentication(self)
        self.listener = Listener(
            self.loop,
            self.clock,
            self.authentication.acceptors(host, port, project_listener=self.of_project),
            self.router.dispatch,
            frame_limit_bytes=largest,
            other_limit_bytes=settings.integer("tailrace.request.max.bytes"),
            limits={
                ApiKey.PRODUCE: largest,
                **dict.fromkeys(LONG_REQUESTS, min(largest, LONG_REQUEST_BYTES)),
            },
            receive_budget_bytes=settings.integer("queued.max.request.bytes"),
            idle_seconds=settings.integer("connections.max.idle.ms") / 1000,
            connection_limit=settings.integer("max.connections"),
            connections_per_host=settings.integer("max.connections.per.ip"),
            closed=self._disconnected,
            login_seconds=settings.integer("tailrace.login.timeout.ms") / 1000,
            creation_rate=settings.integer("max.connection.creation.rate"),
            rate_windows=(
                settings.integer("quota.window.num"),
                float(settings.integer("quota.window.size.seconds")),
            ),
            host_limits=host_limits(settings.text("max.connections.per.ip.overrides")),
        )
        self._page: MetricsPage | None = None
        page = settings.text("metrics.listen")
        if page:
            page_host, _, page_port = page.rpartition(":")
            self._page = MetricsPage(
                self.loop, page_host.strip("[]"), int(page_port), self.metrics.page
            )
        self._ticker: LoopTimer = self.loop.call_later(TICK_SECONDS, self._tick)
        self._stopping = False
        self.watchdog = Watchdog(self.loop, self.router)

    # running

    def run(self) -> None:
        """Serve on this thread until `stop`; closes everything before it returns."""
        self.watchdog.start()
        try:
            self.loop.run()
        finally:
            self.watchdog.stop()
            self._close()

    def stop(self) -> None:
        """End `run`; safe from any thread and from a signal handler."""
        self.loop.call_from_thread(self._stop)

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self.listener.stop_accepting()
            self.loop.stop()

    def _close(self) -> None:
        self._ticker.cancel()
        self.store.sync_later = None
        if self._page is not None:
            self._page.close()
        self.listener.close()
        self.authentication.close()
        self.syncer.close()
        self.cold.close()
        self.inspector.close()
        self.store.close()
        self.loop.close()

    def adopt(self, sock: socket.socket) -> None:
        """Serve one end of a `socket.socketpair()`; safe from any thread.

        For a broker inside a program (`host=None`), which no other process can reach.
        """
        self.loop.call_from_thread(lambda: self.listener.adopt(sock))

    def _tick(self) -> None:
        if self.metering:
            self.quotas.forget_idle()
        try:
            self.store.tick()
        except TailraceError as error:
            log.error("housekeeping failed", extra={"error": error.render()})
        finally:
            self._ticker = self.loop.call_later(TICK_SECONDS, self._tick)

    def _disconnected(self, connection: Connection) -> None:
        self.fetch.disconnected(connection)
        if self._shares is not None:
            self._shares.disconnected(connection)

    # who we are

    @property
    def node_id(self) -> int:
        return self.settings.integer("node.id")

    @property
    def cluster_id(self) -> str:
        return self.store.cluster_id

    @property
    def address(self) -> tuple[str, int]:
        """Host and port this broker listens on."""
        return self.listener.host, self.listener.port

    @property
    def metrics_port(self) -> int:
        """Port of the metrics page; 0 if there is none."""
        return self._page.port if self._page is not None else 0

    def told(self, connection: Connection) -> tuple[str, int]:
        """Where clients of the listener that `connection` came in on find this broker."""
        endpoint = connection.endpoint
        if endpoint.told_host:
            return endpoint.told_host, endpoint.told_port
        host = endpoint.host
        if host is None:
            return self.listener.host, self.listener.port
        if host in ("", "0.0.0.0", "::"):  # the address that this client found us at
            host = str(connection.sock.getsockname()[0]).removeprefix("::ffff:")
        return host, endpoint.port

    @property
    def coordination(self) -> Coordination:
        """Groups and transactions; loaded on first use."""
        if self._coordination is None:
            from tailrace.broker.coordination import Coordination

            self._coordination = Coordination(self)
            self.router.add(self._coordination.routes())
        return self._coordination

    @property
    def has_shares(self) -> bool:
        """Whether there is, or was, a share group."""
        return self._shares is not None or "__share_group_state" in self.store.topics

    @property
    def shares(self) -> ShareRequests:
        """Share groups; loaded on first use."""
        if self._shares is None:
            from tailrace.broker.handlers.shares import ShareRequests
            from tailrace.broker.shares.coordinator import Shares

            self._shares = ShareRequests(self, Shares(self, self.group_settings))
            self.router.add(self._shares.routes())
        return self._shares

    # topics

    def partition_by_name(self, topic: str | bytes, index: int) -> Partition | None:
        """The partition, by the topic's name as text or as UTF-8 bytes; None if unknown."""
        found = self._by_name.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """The partition, by the 16 bytes of the topic's id; None if unknown."""
        found = self._by_id.get(topic_id)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def knows_id(self, topic_id: bytes) -> bool:
        """Whether a topic with this id exists."""
        return topic_id in self._by_id

    def topic_by_name(self, name: str | bytes) -> Topic | None:
        """The topic of this name, as text or as UTF-8 bytes."""
        return self._by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this id."""
        return self._by_id.get(topic_id)

    def create_topic(
        self,
        name: str,
        partitions: int,
        overrides: Mapping[str, str] | None = None,
        *,
        internal: bool = False,
        validate_only: bool = False,
    ) -> Topic:
        """Create a topic; raises errors with a `kafka_code`."""
        return at_once(
            self.create_topic_in_steps(
                name, partitions, overrides, internal=internal, validate_only=validate_only
            )
        )

    def create_topic_in_steps(
        self,
        name: str,
        partitions: int,
        overrides: Mapping[str, str] | None = None,
        *,
        internal: bool = False,
        validate_only: bool = False,
    ) -> Steps[Topic]:
        """`create_topic`, a step a partition."""
        topic = yield from self.store.create_topic_in_steps(
            name,
            partitions,
            dict(overrides or {}),
            internal=internal,
            validate_only=validate_only,
        )
        if not validate_only:
            self._know(topic)
            controller_log.debug("topic created", extra={"topic": name, "partitions": partitions})
        return topic

    def auto_create(self, name: str) -> Topic:
        """Create a topic that a client named, with the broker's defaults."""
        return self.create_topic(name, self.settings.integer("num.partitions"))

    def create_internal_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        if name not in self.store.topics:
            self.create_topic(name, partitions, config, internal=True)

    def delete_topic_in_steps(self, name: str) -> Steps[None]:
        """Delete a topic, a step a partition; clients that read it are told with the first."""
        topic = self.store.topics[name]
        partitions = list(topic.partitions)
        steps = self.store.delete_topic_in_steps(name)
        next(steps)
        self._by_name.pop(name, None)
        self._by_name.pop(name.encode(), None)
        self._by_id.pop(topic.id.bytes, None)
        self.pressure.forget(name)
        for partition in partitions:
            self.fetch.moved(partition)
        if self._coordination is not None:
            self._coordination.groups.forget_topic(name)
        self.metrics.forget(name)
        controller_log.info("topic deleted", extra={"topic": name})
        yield
        yield from steps

    def add_partitions_in_steps(self, name: str, total: int) -> Steps[None]:
        """Let a topic have `total` partitions, a step each."""
        yield from self.store.add_partitions_in_steps(name, total)
        controller_log.info("partitions added", extra={"topic": name, "partitions": total})
        self._know(self.store.topics[name])

    def alter_topic(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Change a topic's settings; None goes back to the default."""
        self.store.alter_config(name, dict(changes))
        controller_log.info("topic altered", extra={"topic": name, "changes": dict(changes)})
        self._know(self.store.topics[name])
        for partition in self.store.topics[name].partitions:
            self.fetch.moved(partition)

    def _know(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_name[topic.name.encode()] = topic
        self._by_id[topic.id.bytes] = topic
        self.pressure.know(topic)

    # settings

    def alter_settings(self, changes: Mapping[str, str | None]) -> None:
        """Change settings of the running broker and keep them for the next start."""
        for name, value in changes.items():
            self.settings.change(name, value)
        controller_log.info("settings altered", extra={"changes": dict(changes)})
        self.fetch_limit_bytes = self.settings.integer("fetch.max.bytes")
        self.store.change_settings(self.settings.log())
        if self._coordination is not None:
            self._coordination.change_settings()
        paths = [directory.path / DYNAMIC_SETTINGS for directory in self.store.directories]
        try:
            write_to_any(paths, encode_object(self.settings.dynamic), self._files)
        except OSError as error:
            raise StorageError("settings cannot be kept", detail=str(error)) from error

    def _load_dynamic(self) -> None:
        damaged: DamagedFileError | None = None
        for directory in self.directories:
            path = directory / DYNAMIC_SETTINGS
            try:
                found = read_object(
                    path,
                    "correct it; without the file, the broker has the settings it is started with",
                )
            except DamagedFileError as error:
                log.error("a file of settings is damaged", extra={"error": error.render()})
                damaged = damaged or error
                continue
            except OSError:
                continue  # a disk that is not there; the store says so
            if found is not None:
                for name, value in found.items():
                    try:
                        self.settings.change(name, value)
                    except TailraceError as error:
                        # Of another version; or one that only the start may give by now.
                        log.error(
                            "kept setting not taken",
                            extra={"setting": name, "path": str(path), "error": error.message},
                        )
                return
        if damaged is not None:
            raise damaged

    # appending and waiting

    def append(
        self,
        partition: Partition,
        batches: bytearray | memoryview,
        done: Callable[[Appended | Exception], None],
        *,
        durable: bool = False,
    ) -> None:
        try:
            appended = partition.append_internal(batches)
        except TailraceError as error:
            done(error)
            return
        self.grew(partition, len(batches), appended.last_offset - appended.base_offset + 1)
        if durable or partition.needs_sync:
            self.syncer.want(partition, lambda error: done(appended if error is None else error))
        else:
            done(appended)

    def appended(self, partition: Partition) -> None:
        self.fetch.moved(partition)

    def _moved(self, partition: Partition) -> None:
        self.fetch.moved(partition)
        self.pressure.moved(partition)

    def grew(self, partition: Partition, size: int, count: int) -> None:
        """Count an append and wake whoever waited for it."""
        self.metrics.came_in(partition.topic, size, count)
        if not partition.needs_sync:
            self.fetch.grew(partition, size)

    def when_durable(self, partition: Partition, done: Callable[[Exception | None], None]) -> None:
        self.syncer.want(partition, done)

    def when_all_durable(
        self, partitions: Sequence[Partition], done: Callable[[Exception | None], None]
    ) -> None:
        self.syncer.want_all(partitions, done)

    def _synced(self, partition: Partition) -> None:
        self.fetch.moved(partition)

    def storage_failed(self, partition: Partition, error: TailraceError) -> None:
        """A disk refused a write: said once a second, not once a request."""
        now = self.clock.monotonic()
        if now - self.metrics.storage_error_told_at > 1:
            self.metrics.storage_error_told_at = now
            log.error(
                "storage refused an append",
                extra={"partition": f"{partition.topic}-{partition.index}", "error": error.message},
            )

    def traffic_out(self, topic: str | bytes, size: int) -> None:
        """Count bytes of records sent to readers."""
        if isinstance(topic, bytes):
            found = self._by_id.get(topic)
            if found is None:
                return
            topic = found.name
        self.metrics.went_out(topic, size)

    def group_lags(self) -> Iterable[tuple[str, str, int, int]]:
        """Group, topic, partition and lag, as far as groups have come, queues included."""
        if self.has_shares:
            for (name, topic_id, index), start in self.shares.shares.starts():
                partition = self.partition_by_id(topic_id, index)
                if partition is not None:
                    yield name, partition.topic, index, max(0, partition.high_watermark - start)
        if self._coordination is None:
            return
        for group in self._coordination.groups.groups():
            for (topic, index), committed in group.offsets.items():
                partition = self.partition_by_name(topic, index)
                if partition is not None:
                    lag = max(0, partition.high_watermark - committed.offset)
                    yield group.group_id, topic, index, lag

    def group_position(self, group: str, topic: Topic, index: int) -> int | None:
        """How far a group, of any kind, has come in a partition; None if it never said."""
        if self.has_shares:
            start = self.shares.shares.start_of((group, topic.id.bytes, index))
            if start is not None:
                return start
        if self._coordination is None:
            return None
        found = self._coordination.groups.group(group)
        committed = None if found is None else found.offsets.get((topic.name, index))
        return None if committed is None else committed.offset

    def group_positions(self, partition: Partition) -> Iterable[tuple[str, int]]:
        """Every group that has come to some place in a partition, and that place."""
        topic = self.store.topics.get(partition.topic)
        if topic is None:
            return
        if self.has_shares:
            for (group, topic_id, index), start in self.shares.shares.starts():
                if topic_id == topic.id.bytes and index == partition.index:
                    yield group, start
        if self._coordination is not None:
            for each in self._coordination.groups.groups():
                committed = each.offsets.get((partition.topic, partition.index))
                if committed is not None:
                    yield each.group_id, committed.offset

    def rebalance_seconds(self) -> dict[str, float]:
        """How long each group's members have stood still in rebalances."""
        return {} if self._coordination is None else self._coordination.rebalance_seconds

    def next_producer_id(self) -> int:
        return self._producer_ids.next()

    # the loop

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> LoopTimer:
        return self.loop.call_later(delay_seconds, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.loop.call_soon(callback)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        self.loop.call_from_thread(callback)


def raise_descriptor_limit() -> None:
    """As many open files as this process may have: connections and segments need them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
