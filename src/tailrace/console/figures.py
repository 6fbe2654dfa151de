"""Live figures of the log: topics, rates, groups and their lag.

One thread asks the broker as any Kafka client would (so it works on Apache Kafka too)
and keeps the last answer; requests read that answer and never wait for the broker.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from tailrace.clock import SYSTEM, Clock
from tailrace.console.errors import LogUnreachableError, UnknownNameError
from tailrace.console.unread import Unread
from tailrace.security import librdkafka_settings

log = logging.getLogger(__name__)

TOPICS_EVERY = 1.0
GROUPS_EVERY = 5.0
SIZES_EVERY = 10.0
REQUEST_SECONDS = 5.0
SHOWN_SETTINGS = {"cleanup.policy": "cleanup", "retention.ms": "retention_ms"}


class Figures:
    """Keeps `topics` and `groups` fresh until closed. A topic's `lag` is that of the group
    furthest behind, None without a group."""

    def __init__(self, bootstrap: str, *, clock: Clock = SYSTEM) -> None:
        from confluent_kafka.admin import AdminClient

        self._admin = AdminClient(
            {**librdkafka_settings(bootstrap), "log_level": 0, "socket.timeout.ms": 5000}
        )
        self._clock = clock
        self._stopping = threading.Event()
        self._bootstrap = bootstrap
        self._ends: dict[str, tuple[float, int]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._settings: dict[str, dict[str, str | None]] = {}
        self._firsts: dict[tuple[str, int], int] = {}
        self._lags: dict[str, dict[str, int]] = {}  # topic to group to lag
        self._unread: Unread | None = None
        self.topics: list[dict[str, Any]] = []
        self.groups: list[dict[str, Any]] = []
        self.reachable = False
        self._thread = threading.Thread(target=self._run, name="figures", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(1.0)  # a daemon: a broker that is gone may keep it for seconds

    def _run(self) -> None:
        groups_at = sizes_at = 0.0
        while not self._stopping.is_set():
            try:
                now = self._clock.monotonic()
                if now >= sizes_at:
                    sizes_at = now + SIZES_EVERY
                    self._look_closer()
                self.topics = self._read_topics()
                if now >= groups_at:
                    self.groups = self._read_groups()
                    groups_at = now + GROUPS_EVERY
                self.reachable = True
            except Exception as error:
                self._forget_unread()
                if self.reachable:
                    log.warning("log does not answer", extra={"reason": str(error)})
                self.reachable = False
            self._stopping.wait(TOPICS_EVERY)
        self._forget_unread()

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.close()
            self._unread = None

    def _read_sizes(self) -> dict[tuple[str, int], int]:
        from tailrace.client.admin import Admin
        from tailrace.client.sizes import partition_sizes

        with Admin(self._bootstrap, timeout=REQUEST_SECONDS) as admin:
            return partition_sizes(admin)

    def _look_closer(self) -> None:
        """What changes seldom: sizes, first offsets, and how long topics keep their records."""
        from tailrace.client.admin import Admin
        from tailrace.client.sizes import partition_sizes

        listed = self._admin.list_topics(timeout=REQUEST_SECONDS).topics
        partitions = {name: list(each.partitions) for name, each in listed.items() if not each.error}  # fmt: skip
        with Admin(self._bootstrap, timeout=REQUEST_SECONDS) as admin:
            self._sizes = partition_sizes(admin)
            self._settings = admin.topic_settings(partitions, SHOWN_SETTINGS)
        self._firsts = self._offsets(partitions, latest=False)

    # --- topics ------------------------------------------------------------------------

    def _read_topics(self) -> list[dict[str, Any]]:
        listed = self._admin.list_topics(timeout=REQUEST_SECONDS).topics
        partitions = {
            name: sorted(found.partitions) for name, found in listed.items() if found.error is None
        }
        ends = self._offsets(partitions, latest=True)
        now = self._clock.monotonic()
        figures = []
        for name in sorted(partitions):
            values = self._settings.get(name, {})
            end = sum(ends.get((name, index), 0) for index in partitions[name])
            before_at, before = self._ends.get(name, (now, end))
            rate = (end - before) / (now - before_at) if now > before_at else 0.0
            self._ends[name] = (now, end)
            figures.append(
                {
                    "name": name,
                    "partitions": len(partitions[name]),
                    "records": end,
                    "rate": round(max(0.0, rate), 2),
                    "bytes": sum(self._sizes.get((name, index), 0) for index in partitions[name]),
                    "internal": name.startswith("__"),
                    "kept": end
                    - sum(self._firsts.get((name, each), 0) for each in partitions[name]),
                    "groups": len(self._lags.get(name, ())),
                    "lag": max(self._lags.get(name, {}).values(), default=None),
                    **{setting: values.get(key) for key, setting in SHOWN_SETTINGS.items()},
                }
            )
        return figures

    def _offsets(
        self, partitions: dict[str, list[int]], *, latest: bool
    ) -> dict[tuple[str, int], int]:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(name, index): spec for name, of in partitions.items() for index in of}  # fmt: skip
        if not wanted:
            return {}
        asked = self._admin.list_offsets(wanted, request_timeout=REQUEST_SECONDS)
        return {
            (place.topic, place.partition): future.result(REQUEST_SECONDS).offset
            for place, future in asked.items()
        }

    def topic(self, name: str) -> dict[str, Any]:
        """Settings and partitions of one topic, asked now."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

        try:
            # All topics: asking for one by name would create it.
            listed = self._admin.list_topics(timeout=REQUEST_SECONDS).topics.get(name)
            if listed is None or listed.error is not None or not listed.partitions:
                raise UnknownNameError(f"there is no topic {name!r}")
            partitions = {name: sorted(listed.partitions)}
            first = self._offsets(partitions, latest=False)
            end = self._offsets(partitions, latest=True)
            sizes = self._read_sizes()
            asked = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)])
            config = next(iter(asked.values())).result(REQUEST_SECONDS)
        except KafkaException as error:
            raise LogUnreachableError("the log does not answer", detail=str(error)) from error
        return {
            "name": name,
            "config": {key: entry.value for key, entry in sorted(config.items())},
            "changed": sorted(key for key, entry in config.items() if not entry.is_default),
            "partitions": [
                {
                    "partition": index,
                    "first": first[name, index],
                    "end": end[name, index],
                    "bytes": sizes.get((name, index)),
                }
                for index in partitions[name]
            ],
        }

    # --- groups ------------------------------------------------------------------------

    def _read_groups(self) -> list[dict[str, Any]]:
        asked = self._admin.list_consumer_groups(request_timeout=REQUEST_SECONDS)
        found = []
        lags: dict[str, dict[str, int]] = {}
        if self._unread is None:
            self._unread = Unread(self._bootstrap)
        for group in asked.result(REQUEST_SECONDS).valid:
            about = self.group(group.group_id)
            for place in about["partitions"]:
                of = lags.setdefault(place["topic"], {})
                of[group.group_id] = of.get(group.group_id, 0) + place["lag"]
            found.append(
                {
                    "name": group.group_id,
                    "state": about["state"],
                    "members": len(about["members"]),
                    "lag": sum(partition["lag"] for partition in about["partitions"]),
                    **self._unread.look(group.group_id, about["partitions"]),
                }
            )
        self._lags = lags
        return found

    def group(self, name: str) -> dict[str, Any]:
        """Members and lag of one group, asked now."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        try:
            asked = self._admin.describe_consumer_groups([name], request_timeout=REQUEST_SECONDS)
            about = asked[name].result(REQUEST_SECONDS)
            offsets = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
            committed = offsets[name].result(REQUEST_SECONDS).topic_partitions
            partitions: dict[str, list[int]] = {}
            for place in committed:
                partitions.setdefault(place.topic, []).append(place.partition)
            ends = self._offsets(partitions, latest=True)
        except KafkaException as error:
            raise UnknownNameError(f"no answer about group {name!r}", detail=str(error)) from error
        return {
            "name": name,
            "state": getattr(about.state, "name", str(about.state)).title(),
            "members": [
                {"id": member.member_id, "client": member.client_id} for member in about.members
            ],
            "partitions": [
                {
                    "topic": place.topic,
                    "partition": place.partition,
                    "committed": place.offset,
                    "end": ends[place.topic, place.partition],
                    "lag": max(0, ends[place.topic, place.partition] - max(0, place.offset)),
                }
                for place in committed
            ],
        }
