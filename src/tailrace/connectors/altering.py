"""Offsets that people look at, set and forget: those of sources in the topic, of sinks in their group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import orjson

from tailrace.client.admin import Admin
from tailrace.client.errors import RequestError
from tailrace.client.groups import Groups
from tailrace.connectors.children import ask
from tailrace.connectors.errors import ConnectorError, Refused
from tailrace.connectors.offsets import canonical, read_offsets
from tailrace.connectors.sink_group import group_of

if TYPE_CHECKING:
    from tailrace.connectors.worker import Worker

ASK_SECONDS = 30.0


def listed(worker: Worker, name: str, settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """The offsets of a connector in Kafka Connect's form."""
    if _is_source(worker, settings):
        stored = read_offsets(worker.log, worker.settings["offset.storage.topic"], name)
        return [{"partition": partition, "offset": offset} for partition, offset in stored.listed()]
    with closing(worker.log.cluster()) as cluster:
        found = Groups(Admin.over(cluster)).offsets(group_of(name, settings))
    return [
        {
            "partition": {"kafka_partition": partition, "kafka_topic": topic},
            "offset": {"kafka_offset": offset},
        }
        for (topic, partition), offset in sorted(found.items())
    ]


def _is_source(worker: Worker, settings: Mapping[str, str]) -> bool:
    return worker.catalogue.of(settings).kind == "source"


def alter(worker: Worker, name: str, settings: Mapping[str, str], given: Any) -> None:
    """Set offsets; null forgets one. The connector is stopped."""
    pairs = _pairs(given)
    _ask_connector(worker, name, settings, pairs)
    if _is_source(worker, settings):
        _alter_source(worker, name, pairs)
    else:
        _alter_sink(worker, name, settings, pairs)


def reset(worker: Worker, name: str, settings: Mapping[str, str]) -> None:
    """Forget every offset."""
    if _is_source(worker, settings):
        stored = read_offsets(worker.log, worker.settings["offset.storage.topic"], name)
        known = [(one, None) for one, _ in stored.listed()]
        _ask_connector(worker, name, settings, known)
        _alter_source(worker, name, known)
        return
    _ask_connector(worker, name, settings, [])
    with closing(worker.log.cluster()) as cluster:
        groups = Groups(Admin.over(cluster))
        group = group_of(name, settings)
        if groups.offsets(group):
            groups.delete([group])


def _pairs(given: Any) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    if not isinstance(given, list):
        raise Refused(500, "offsets are a JSON array")
    found: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
    for each in given:
        if not isinstance(each, dict) or each.get("partition") is None:
            raise Refused(500, "Partition objects cannot be null")
        partition, offset = each["partition"], each.get("offset")
        if not isinstance(partition, dict) or not isinstance(offset, dict | None):
            raise Refused(500, "a partition and an offset are JSON objects")
        found.append((partition, offset))
    return found


def _ask_connector(
    worker: Worker,
    name: str,
    settings: Mapping[str, str],
    pairs: Sequence[tuple[dict[str, Any], dict[str, Any] | None]],
) -> None:
    """Have the connector's class refuse offsets. Raises Refused."""
    described = worker.catalogue.of(settings)
    question = {
        "ask": "alter",
        "plugins": worker.catalogue.directories,
        "where": described.where,
        "settings": dict(settings),
        "offsets": {canonical(partition).decode(): offset for partition, offset in pairs},
    }
    try:
        ask(question, f"alter_offsets() of connector {name}", ASK_SECONDS)
    except ConnectorError as error:
        raise Refused(500, str(error)) from error


def _alter_source(
    worker: Worker,
    name: str,
    pairs: Sequence[tuple[dict[str, Any], dict[str, Any] | None]],
) -> None:
    # A task that somebody has lost sight of must not write offsets behind these.
    worker.end_writers(name, worker.configs.state().fenced.get(name, (-1, 0))[1] or 1)
    topic = worker.settings["offset.storage.topic"]
    stored = read_offsets(worker.log, topic, name)
    with closing(worker.log.transactional_writer(f"tailrace.connect.{name}.offsets")) as writer:
        writer.init()
        for partition, offset in pairs:
            value = None if offset is None else orjson.dumps(offset)
            writer.send(topic, None, stored.key(canonical(partition)), value)
        writer.commit()


def _alter_sink(
    worker: Worker,
    name: str,
    settings: Mapping[str, str],
    pairs: list[tuple[dict[str, Any], dict[str, Any] | None]],
) -> None:
    wanted: dict[tuple[str, int], int | None] = {}
    for partition, offset in pairs:
        topic, number = partition.get("kafka_topic"), partition.get("kafka_partition")
        if topic is None or number is None:
            raise Refused(400, "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'")  # fmt: skip
        try:
            index = int(number)
        except (TypeError, ValueError):
            raise Refused(400, f"Failed to parse the following Kafka partition value in the provided offsets: '{number}'. Partition values for sink connectors need to be integers.") from None  # fmt: skip
        if offset is None:
            wanted[str(topic), index] = None
            continue
        if "kafka_offset" not in offset:
            raise Refused(400, "The offset for a sink connector should either be null or contain the key 'kafka_offset'")  # fmt: skip
        try:
            wanted[str(topic), index] = int(offset["kafka_offset"])
        except (TypeError, ValueError):
            raise Refused(400, f"Failed to parse the following Kafka offset value in the provided offsets: '{offset['kafka_offset']}'. Offset values for sink connectors need to be integers.") from None  # fmt: skip
    group = group_of(name, settings)
    with closing(worker.log.cluster()) as cluster:
        groups = Groups(Admin.over(cluster))
        forgotten = [place for place, offset in wanted.items() if offset is None]
        kept = {**groups.offsets(group), **{p: o for p, o in wanted.items() if o is not None}}
        try:
            if forgotten:
                # A group forgets single partitions by losing all, and getting the others back.
                kept = {place: offset for place, offset in kept.items() if place not in forgotten}
                groups.delete([group])
            if kept:
                groups.commit(group, kept)
        except RequestError as error:
            raise Refused(500, f"the offsets of group {group} could not be set: {error}") from error
