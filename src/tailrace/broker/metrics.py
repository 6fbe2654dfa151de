"""What the broker counts, under the names Kafka operators know.

Counters are plain attributes that the hot paths add to; the Prometheus page is made
from them when it is asked for. Names are those the JMX exporter gives Kafka's beans,
and kafka_exporter's for the lag of groups.
"""

from __future__ import annotations

import resource
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from tailrace.broker.quotas.table import (
    CONSUMER_BYTES,
    MUTATIONS,
    PRODUCER_BYTES,
    REQUEST_SHARE,
)
from tailrace.wire.apis import APIS

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

LATENCY_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0)  # fmt: skip


class Distribution:
    """How often which number of seconds was seen."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        self.total += seconds


class TopicTraffic:
    """Bytes and records of one topic since the start."""

    __slots__ = ("bytes_in", "bytes_out", "failed", "messages_in")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.failed = 0


class BrokerMetrics:
    """Counters of one broker, and the page made from them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.topics: dict[str, TopicTraffic] = {}
        self.storage_error_told_at = 0.0
        self.unacknowledged_requests = 0
        self.unacknowledged_failures = 0
        self._idle_at = (0.0, 0.0)

    def traffic(self, topic: str) -> TopicTraffic:
        """The counters of one topic."""
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicTraffic()
        return found

    def came_in(self, topic: str, size: int, count: int) -> None:
        """A batch was appended."""
        traffic = self.topics.get(topic) or self.traffic(topic)
        traffic.bytes_in += size
        traffic.messages_in += count

    def went_out(self, topic: str, size: int) -> None:
        """Records were sent to a reader."""
        traffic = self.topics.get(topic) or self.traffic(topic)
        traffic.bytes_out += size

    def forget(self, topic: str) -> None:
        """The topic is gone; so are its figures."""
        self.topics.pop(topic, None)

    # the page

    def page(self) -> bytes:
        """Prometheus' text format."""
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterator[str]:
        yield from self._traffic_lines()
        yield from self._request_lines()
        yield from self._server_lines()
        yield from self._log_lines()
        yield from self._group_lines()
        yield from self._quota_lines()
        yield from self._pressure_lines()
        yield from self._authorizer_lines()

    def _traffic_lines(self) -> Iterator[str]:
        names = (
            ("bytesin", "Bytes of batches appended.", "bytes_in"),
            ("messagesin", "Records appended.", "messages_in"),
            ("bytesout", "Bytes of records sent to readers.", "bytes_out"),
            ("failedproducerequests", "Batches refused.", "failed"),
        )
        for name, text, attribute in names:
            yield from _metric(
                f"kafka_server_brokertopicmetrics_{name}_total",
                "counter",
                text,
                (
                    ({"topic": topic}, getattr(traffic, attribute))
                    for topic, traffic in self.topics.items()
                ),
            )

    def _request_lines(self) -> Iterator[str]:
        router = self._broker.router
        yield from _metric(
            "kafka_network_requestmetrics_requests_total",
            "counter",
            "Requests by API.",
            (({"request": _api_name(key)}, count) for key, count in router.requests.items()),
        )
        for name, text, table in (
            ("totaltime", "From the last byte of a request to its answer.", router.latencies),
            (
                "requestqueuetime",
                "From readiness of the socket to the handler.",
                router.queue_times,
            ),
        ):
            full = f"kafka_network_requestmetrics_{name}_seconds"
            yield f"# HELP {full} {text}"
            yield f"# TYPE {full} histogram"
            for key, distribution in table.items():
                label = f'request="{_api_name(key)}"'
                running = 0
                for bound, count in zip(
                    (*LATENCY_BOUNDS, "+Inf"), distribution.counts, strict=True
                ):
                    running += count
                    yield f'{full}_bucket{{{label},le="{bound}"}} {running}'
                yield f"{full}_sum{{{label}}} {distribution.total:.6f}"
                yield f"{full}_count{{{label}}} {running}"

    def _server_lines(self) -> Iterator[str]:
        broker = self._broker
        loop, listener = broker.loop, broker.listener
        idle_before, busy_before = self._idle_at
        idle, busy = loop.idle_seconds, loop.busy_seconds
        self._idle_at = (idle, busy)
        span = (idle - idle_before) + (busy - busy_before)
        share = (idle - idle_before) / span if span > 0 else 1.0
        usage = resource.getrusage(resource.RUSAGE_SELF)
        figures: tuple[tuple[str, str, str, float], ...] = (
            ("kafka_network_socketserver_networkprocessoravgidle_percent", "gauge", "Idle share of the loop since the last look, 0 to 1.", share),
            ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "gauge", "The same: one loop does both.", share),
            ("kafka_server_socketservermetrics_connection_count", "gauge", "Open connections.", len(listener.connections)),
            ("kafka_server_socketservermetrics_connection_creation_total", "counter", "Connections accepted.", listener.accepted_total),
            ("tailrace_broker_connections_refused_total", "counter", "Connections refused at a limit.", listener.refused_total),
            ("tailrace_broker_frames_refused_total", "counter", "Frames with a length outside the limits.", listener.refused_frames_total),
            ("tailrace_broker_requests_unreadable_total", "counter", "Requests that could not be decoded.", broker.router.unreadable_total),
            ("kafka_server_delayedoperationpurgatory_purgatorysize", "gauge", "Fetches waiting for data.", broker.fetch.parked_count),
            ("kafka_server_fetchsessioncache_numincrementalfetchsessions", "gauge", "Fetch sessions.", len(broker.fetch.sessions)),
            ("kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total", "counter", "Sessions that made room for others.", broker.fetch.sessions.evictions_total),
            ("kafka_log_logflushstats_logflush_total", "counter", "Syncs of a partition before an acknowledgement.", broker.syncer.syncs_total),
            ("tailrace_log_sync_failures_total", "counter", "Syncs that failed: the disk did not keep what was written.", broker.store.sync_failures),
            ("tailrace_broker_connections_muted", "gauge", "Connections not read now because of a quota or a slow group.", sum(1 for one in listener.connections.values() if one.muted)),
            ("tailrace_broker_connections_muted_total", "counter", "How often a connection was not read for a while.", listener.muted_total),
            ("tailrace_broker_loop_held_total", "counter", "Times the loop did not come back for a second.", broker.watchdog.held_total),
            ("tailrace_broker_batches_inspected_total", "counter", "Batches looked into beside the loop.", broker.inspector.inspected_total),
            ("tailrace_broker_cold_reads_total", "counter", "Fetches that had to wait for the disk.", broker.cold.reads_total),
            ("tailrace_broker_produce_without_acknowledgement_total", "counter", "Produce requests with acks=0.", self.unacknowledged_requests),
            ("tailrace_broker_produce_without_acknowledgement_lost_total", "counter", "Of these, refused: the producer was not told but by a closed connection.", self.unacknowledged_failures),
            ("kafka_server_replicamanager_partitioncount", "gauge", "Partitions.", sum(len(topic.partitions) for topic in broker.store.topics.values())),
            ("kafka_server_replicamanager_underreplicatedpartitions", "gauge", "Always 0: one node keeps one copy.", 0),
            ("kafka_controller_kafkacontroller_activecontrollercount", "gauge", "Always 1.", 1),
            ("kafka_controller_kafkacontroller_globaltopiccount", "gauge", "Topics.", len(broker.store.topics)),
            ("process_cpu_seconds_total", "counter", "Processor time.", usage.ru_utime + usage.ru_stime),
            ("process_resident_memory_bytes", "gauge", "Memory.", _resident_bytes()),
        )  # fmt: skip
        for name, kind, text, value in figures:
            yield from _metric(name, kind, text, [({}, value)])
        yield from self._listener_lines()
        yield from _metric(
            "tailrace_broker_unreadable_internal_records_total",
            "counter",
            "Records of internal topics passed over because they make no sense.",
            (({"topic": topic}, count) for topic, count in broker.unreadable_records.items()),
        )

    def _listener_lines(self) -> Iterator[str]:
        listener, logins = self._broker.listener, self._broker.authentication.counts
        open_now = Counter(each.listener for each in listener.connections.values())
        names = [each.endpoint.name for each in listener.acceptors]
        yield from _metric(
            "tailrace_broker_connections",
            "gauge",
            "Open connections by listener.",
            (({"listener": name}, open_now[name]) for name in names),
        )
        if not any(each.endpoint.tls or each.endpoint.sasl for each in listener.acceptors):
            return
        for name, text, value in (
            ("handshakes_failed", "TLS handshakes that failed.", listener.handshakes_failed_total),
            ("logins_late", "Connections closed because they did not log in in time.", listener.logins_late_total),
        ):  # fmt: skip
            yield from _metric(f"tailrace_broker_{name}_total", "counter", text, [({}, value)])
        yield from _metric(
            "tailrace_broker_logins_total",
            "counter",
            "Log-ins over SASL by listener and how they ended.",
            (
                ({"listener": name, "result": field.name}, getattr(counts, field.name))
                for name, counts in logins.items()
                for field in fields(counts)
            ),
        )

    def _log_lines(self) -> Iterator[str]:
        partitions = [
            ({"topic": topic.name, "partition": str(partition.index)}, partition)
            for topic in self._broker.store.topics.values()
            for partition in topic.partitions
        ]
        names = (
            ("size", "Bytes of all segments.", lambda p: p.size_bytes),
            ("logstartoffset", "First offset.", lambda p: p.log_start_offset),
            ("logendoffset", "Next offset.", lambda p: p.end_offset),
            ("numlogsegments", "Segments.", lambda p: len(p.segments)),
            ("damagedranges", "Ranges not served because they do not match their checksum.", lambda p: len(p.damaged)),
            ("unsyncedrecords", "Records a power cut could take now.", lambda p: p.end_offset - p.synced_offset),
        )  # fmt: skip
        for name, text, value in names:
            yield from _metric(
                f"kafka_log_log_{name}",
                "gauge",
                text,
                ((labels, value(partition)) for labels, partition in partitions),
            )

    def _quota_lines(self) -> Iterator[str]:
        quotas = self._broker.quotas
        for key, family, rate in (
            (PRODUCER_BYTES, "produce", "byte_rate"),
            (CONSUMER_BYTES, "fetch", "byte_rate"),
            (REQUEST_SHARE, "request", "request_time"),
            (MUTATIONS, "controllermutation", "mutation_rate"),
        ):
            rows = [
                ({"user": holder[0], "client_id": holder[1]}, meter, now)
                for holder, meter, now in quotas.rows(key)
            ]
            if not rows:
                continue
            full = f"kafka_server_{family}"
            yield from _metric(
                f"{full}_{rate}", "gauge", f"What counts against {key}, a second.",
                ((labels, round(now, 3)) for labels, _, now in rows),
            )  # fmt: skip
            yield from _metric(
                f"{full}_quota", "gauge", f"The {key} that holds.",
                ((labels, meter.limit) for labels, meter, _ in rows),
            )  # fmt: skip
            yield from _metric(
                f"{full}_throttled_total", "counter", "Answers that told the client to pause.",
                ((labels, meter.pauses) for labels, meter, _ in rows),
            )  # fmt: skip
            yield from _metric(
                f"{full}_throttle_time_seconds_total", "counter", "Time it was told to pause.",
                ((labels, round(meter.paused_seconds, 6)) for labels, meter, _ in rows),
            )  # fmt: skip

    def _authorizer_lines(self) -> Iterator[str]:
        authorizer = self._broker.authorizer
        if authorizer is None:
            return
        yield from _metric(
            "kafka_server_standardauthorizer_acls_total_count", "gauge", "Access rules.",
            [({}, len(authorizer.table))],
        )  # fmt: skip
        yield from _metric(
            "kafka_server_standardauthorizer_authorization_denied_total", "counter",
            "Requests, or parts of them, that were refused.", [({}, authorizer.denied_total)],
        )  # fmt: skip

    def _pressure_lines(self) -> Iterator[str]:
        pressure = self._broker.pressure
        yield from _metric(
            "tailrace_consumergroup_lost_records_total",
            "counter",
            "Records deleted before a group had read them.",
            (
                ({"consumergroup": group, "topic": topic}, count)
                for (group, topic), count in pressure.lost.items()
            ),
        )
        yield from _metric(
            "tailrace_consumergroup_retention_used_ratio",
            "gauge",
            "How near a group's next record is to being deleted: 1 is at any moment.",
            (
                (
                    {"consumergroup": group, "topic": topic, "partition": str(index)},
                    round(used, 4),
                )
                for group, topic, index, used in pressure.nearness()
            ),
        )
        rows = [
            ({"topic": one.topic, "consumergroup": one.rule.group, "policy": one.rule.policy}, one)
            for one in pressure.topics.values()
        ]
        for name, kind, text, attribute in (
            ("over", "gauge", "Whether the group is too far behind now.", "over"),
            ("delayed_requests_total", "counter", "Produce requests made to wait.", "delayed_requests"),
            ("delayed_seconds_total", "counter", "Time producers were made to wait.", "delayed_seconds"),
            ("refused_requests_total", "counter", "Produce requests that waited too long.", "refused_requests"),
            ("dropped_records_total", "counter", "Records dropped to keep the limits.", "dropped_records"),
        ):  # fmt: skip
            yield from _metric(
                f"tailrace_slow_consumer_{name}", kind, text,
                ((labels, float(getattr(one, attribute))) for labels, one in rows),
            )  # fmt: skip

    def _group_lines(self) -> Iterator[str]:
        lags = self._broker.group_lags()
        yield from _metric(
            "kafka_consumergroup_lag",
            "gauge",
            "Records between a group's committed offset and the end.",
            (
                ({"consumergroup": group, "topic": topic, "partition": str(index)}, lag)
                for group, topic, index, lag in lags
            ),
        )
        yield from _metric(
            "kafka_consumergroup_rebalance_seconds_total",
            "counter",
            "Time the members of a group stood still in rebalances.",
            (
                ({"consumergroup": group}, round(seconds, 6))
                for group, seconds in self._broker.rebalance_seconds().items()
            ),
        )


def _metric(
    name: str, kind: str, text: str, rows: Iterable[tuple[dict[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in rows:
        inside = ",".join(f'{key}="{_escape(word)}"' for key, word in labels.items())
        yield f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _escape(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _api_name(key: int) -> str:
    """Produce, Fetch …: the names Kafka's beans carry."""
    return "".join(word.capitalize() for word in APIS[key].module.split("_"))


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
