"""Records of a topic for people and subscribers: a page of them, or a stream."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from tailrace.client.ranges import KafkaRanges, Range
from tailrace.clock import SYSTEM, Clock
from tailrace.config import parse_duration
from tailrace.console.errors import UnknownNameError
from tailrace.errors import TailraceError, UsageError
from tailrace.project.load import Project

PAGE = 100
LONGEST_VALUE = 100_000

Show = Callable[[bytes | None], str | None]


def shown_by(project: Project, name: str) -> Show:
    """How values of a topic are shown: by the format the project declares for it."""
    declared = next(
        (
            topic
            for topic in project.topics.values()
            if topic.format == "avro"
            and (re.fullmatch(topic.pattern, name) if topic.pattern else topic.name == name)
        ),
        None,
    )
    if declared is None or declared.schema is None:
        return text
    from tailrace.pipelines.avro import decoder

    try:
        read = decoder(declared.avro)
    except TailraceError:  # its library is not installed
        return text

    def show(data: bytes | None) -> str | None:
        if data is None:
            return None
        try:
            found = read(data)
        except Exception:  # somebody else's bytes may fail in any way: show them as they are
            return text(data)
        return text(orjson.dumps(found, default=_plain))

    return show


def _plain(value: object) -> str:
    """What JSON has no form for: decimals as written, bytes as `text` shows them."""
    return text(value) or "" if isinstance(value, bytes) else str(value)


def latest(
    bootstrap: str, topic: str, start: str, limit: int = PAGE, show: Show | None = None
) -> list[dict[str, Any]]:
    """Up to `limit` records: the newest ("latest"), the oldest, or from a time ("-5m")."""
    reader = KafkaRanges(bootstrap)
    try:
        bounds = reader.bounds(topic)
        if not bounds:
            raise UnknownNameError(f"there is no topic {topic!r}")
        starts = _starts(bootstrap, topic, start, bounds, limit)
        ranges = [
            Range(topic, partition, first, min(bounds[partition][1], first + limit))
            for partition, first in starts.items()
            if first < bounds[partition][1]
        ]
        found = [record for chunk in reader.read(ranges) for record in as_records(chunk, show)]
    finally:
        reader.close()
    found.sort(key=lambda record: (record["timestamp"], record["partition"], record["offset"]))
    return found[-limit:][::-1] if start == "latest" else found[:limit]


def _starts(
    bootstrap: str, topic: str, start: str, bounds: Any, limit: int, clock: Clock = SYSTEM
) -> dict[int, int]:
    if start == "earliest":
        return {partition: first for partition, (first, _) in bounds.items()}
    if start == "latest":
        return {partition: max(first, end - limit) for partition, (first, end) in bounds.items()}
    if not re.fullmatch(r"-\s*\d+\s*\w+|\d+", start):
        raise UsageError(f"{start!r} is no start", hint="earliest, latest, -5m, or milliseconds")
    if start.startswith("-"):
        at = clock.wall_ms() - round(parse_duration(start[1:]).total_seconds() * 1000)
    else:
        at = int(start)
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0})
    try:
        asked = [TopicPartition(topic, partition, at) for partition in bounds]
        found = consumer.offsets_for_times(asked, timeout=5)
    finally:
        consumer.close()
    return {
        place.partition: place.offset if place.offset >= 0 else bounds[place.partition][1]
        for place in found
    }


def as_records(chunk: Any, show: Show | None = None) -> Iterator[dict[str, Any]]:
    """The records of a chunk, in a form that JSON can hold."""
    show = show or text
    for index, offset in enumerate(chunk.offsets):
        headers = chunk.headers[index] if chunk.headers else ()
        yield {
            "partition": chunk.partition,
            "offset": offset,
            "timestamp": chunk.timestamps[index],
            "key": text(chunk.keys[index]),
            "value": show(chunk.values[index]),
            "headers": {name: text(value) for name, value in headers or ()},
        }


def text(data: bytes | None) -> str | None:
    """Bytes as text where they are UTF-8, else as `base64:…`; long values are cut."""
    if data is None:
        return None
    cut = data[:LONGEST_VALUE]
    try:
        shown = cut.decode()
    except UnicodeDecodeError as error:
        if len(cut) < len(data) and error.start > len(cut) - 4:
            shown = cut[: error.start].decode()
        else:
            shown = "base64:" + base64.b64encode(cut).decode()
    return shown if len(cut) == len(data) else f"{shown}… ({len(data):,} bytes)"
