"""A producer's outlet on librdkafka: any broker that speaks Kafka's protocol."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Producer as Librdkafka

from tailrace.client.errors import (
    BufferFullError,
    ClientError,
    RequestTimeoutError,
    UnknownTopicError,
)
from tailrace.client.kafka_source import translate
from tailrace.client.producer import Done, ProducerSettings
from tailrace.client.record import Delivery
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.records.batch import Headers
from tailrace.security import librdkafka_settings
from tailrace.telemetry import metrics

log = logging.getLogger(__name__)

GIVEN_UP = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL})


class KafkaOutlet:
    """`Outlet` on a `confluent_kafka.Producer`; call-backs run on one thread of ours."""

    def __init__(
        self,
        bootstrap: str,
        settings: ProducerSettings,
        extra: Mapping[str, object] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._clock = clock
        self._block_seconds = settings.max_block_ms / 1000
        self._counts: dict[str, int] = {}
        self._failure: ClientError | None = None
        acks = "all" if settings.acks in ("all", -1, "-1") else str(settings.acks)
        configuration: dict[str, object] = {
            **librdkafka_settings(bootstrap),
            "client.id": settings.client_id,
            "acks": acks,
            "enable.idempotence": settings.enable_idempotence and acks == "all",
            "retries": settings.retries,
            "delivery.timeout.ms": settings.delivery_timeout_ms,
            "request.timeout.ms": min(settings.request_timeout_ms, settings.delivery_timeout_ms),
            "batch.size": settings.batch_size,
            "linger.ms": settings.linger_ms,
            "queue.buffering.max.kbytes": max(1, settings.buffer_memory // 1024),
            "queue.buffering.max.messages": 1_000_000,
            "message.max.bytes": max(1_000, settings.max_request_size),
            "compression.type": settings.compression_type,
            "partitioner": "murmur2_random",  # as Java's default for keys
            "statistics.interval.ms": 5_000,
            "stats_cb": self._on_statistics,
            "error_cb": lambda error: None,  # every record's own error is told
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 1_000,
            "retry.backoff.ms": 20,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "topic.metadata.propagation.max.ms": 5_000,
            "logger": log,
        }
        configuration.update(extra or {})
        self._producer: Any = Librdkafka(configuration)
        labels = ["client"]
        self._retries = metrics.gauge(
            "tailrace_producer_retries", "Requests sent again", labels
        ).labels(settings.client_id)
        self._request_errors = metrics.gauge(
            "tailrace_producer_request_errors", "Requests that failed", labels
        ).labels(settings.client_id)
        self._request_latency = metrics.gauge(
            "tailrace_producer_request_latency_seconds", "Round trip of a request, mean", labels
        ).labels(settings.client_id)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="producer", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._give_up(error)

    def _give_up(self, error: KafkaException) -> None:
        """librdkafka raises what it cannot recover from instead of telling it: no record will be
        written any more, and every one that waits is told why."""
        if self._failure is None:
            self._failure = translate(error.args[0], "writing")
        self._producer.purge()

    def partitions(self, topic: str) -> int:
        known = self._counts.get(topic)
        if known is None:
            try:
                found = self._producer.list_topics(topic, timeout=self._block_seconds).topics[topic]
            except KafkaException as error:
                raise translate(error.args[0], f'asking for topic "{topic}"') from error
            if found.error is not None:
                raise UnknownTopicError(f'topic "{topic}" does not exist')
            known = self._counts[topic] = len(found.partitions)
        return known

    def deliver(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        done: Done,
    ) -> None:
        if timestamp <= 0:
            raise UsageError(
                f"a timestamp of {timestamp} cannot be sent", detail="librdkafka takes 0 for now"
            )
        until: float | None = None
        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition=-1 if partition is None else partition,
                    timestamp=timestamp,
                    headers=list(headers) if headers else None,
                    on_delivery=partial(self._delivered, done),
                )
                return
            except BufferError:
                now = self._clock.monotonic()
                until = now + self._block_seconds if until is None else until
                if now >= until:
                    raise BufferFullError(
                        f"the buffer stayed full for {self._block_seconds:g} s",
                        hint="send more slowly, or raise buffer_memory",
                    ) from None
                self._clock.sleep(0.005)
            except KafkaException as error:
                failure = self._failure or translate(error.args[0], f'writing to "{topic}"')
                raise failure from error

    def flush(self, timeout: float | None) -> None:
        left = 1
        while left:
            try:
                # librdkafka sends at once while a flush is asked for
                left = self._producer.flush(timeout if timeout is not None else 1e6)
                break
            except KafkaException as error:
                self._give_up(error)
        if left:
            raise RequestTimeoutError(f"{left} records are not written yet")

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _on_statistics(self, text: str) -> None:
        brokers = json.loads(text).get("brokers", {}).values()
        self._retries.set(sum(each.get("txretries", 0) for each in brokers))
        self._request_errors.set(sum(each.get("txerrs", 0) for each in brokers))
        latencies = [each["rtt"]["avg"] for each in brokers if each.get("rtt", {}).get("cnt")]
        if latencies:
            self._request_latency.set(sum(latencies) / len(latencies) / 1_000_000)

    def _delivered(self, done: Done, error: Any, message: Any) -> None:
        if error is not None:
            failed = translate(error, f'writing to "{message.topic()}"')
            done(None, self._failure if error.code() in GIVEN_UP and self._failure else failed)
        else:
            partition, offset = message.partition(), message.offset()
            done(Delivery(message.topic(), partition, offset, message.timestamp()[1]), None)
