"""Records of a topic in a form that people and JSON can take."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from tailrace.broker.groups.patterns import Pattern, PatternError
from tailrace.client.committed import visible_batches
from tailrace.client.errors import DamagedBatchError
from tailrace.client.fetcher import Fetcher
from tailrace.client.ranges import Headers, Range
from tailrace.clock import Clock
from tailrace.config import parse_duration
from tailrace.errors import TailraceError, UsageError
from tailrace.project.load import Project
from tailrace.records.batch import decode_records
from tailrace.records.decode import records_block, shown_name
from tailrace.records.errors import RecordsError
from tailrace.records.header import LENGTH_OVERHEAD
from tailrace.security import librdkafka_settings

LONGEST_VALUE = 100_000
LARGEST_BATCH = 32 << 20

Show = Callable[[bytes | None], str | None]
Accept = Callable[[bytes | None, bytes | None, Headers], bool]


def shown_by(project: Project, name: str) -> Show:
    """How values of a topic are shown: by the format the project declares for it."""
    declared = next(
        (
            topic
            for topic in project.topics.values()
            if topic.format == "avro"
            and (_matches(topic.pattern, name) if topic.pattern else topic.name == name)
        ),
        None,
    )
    if declared is None or declared.schema is None:
        return text
    from tailrace.pipelines.values.avro import decoder

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


def _matches(pattern: str, name: str) -> bool:
    """Whether a project's pattern has a name that a caller chose, in linear time."""
    try:
        return Pattern(pattern).matches(name)
    except PatternError:  # Spark may know more than we do: then values are shown as text
        return False


def _plain(value: object) -> str:
    """What JSON has no form for: decimals as written, bytes as `text` shows them."""
    return text(value) or "" if isinstance(value, bytes) else str(value)


def read_range(
    fetcher: Fetcher, wanted: Range, show: Show, accept: Accept | None = None
) -> Iterator[dict[str, Any]]:
    """The records of a range that `accept` takes. A batch that cannot be unpacked, or only to more than a page
    should hold, is one record that says so: the others are shown all the same."""
    position = wanted.start
    while position < wanted.end:
        answer = fetcher.ask(wanted.topic, wanted.partition, position, wait=0.5)
        place = (wanted.topic, wanted.partition)
        try:
            batches, following = visible_batches(
                answer.buffer, position, wanted.end, answer.aborted, place=place
            )
        except DamagedBatchError as error:
            why = f"not shown: {error.message}"
            yield _shown(wanted.partition, max(error.first_offset, position), 0, None, why, ())
            position = error.last_offset + 1
            continue
        for at, header in batches:
            view = memoryview(answer.buffer)[at : at + header.length + LENGTH_OVERHEAD]
            try:
                records_block(view, header, LARGEST_BATCH)
                records = list(decode_records(view))
            except RecordsError as error:
                why = f"a batch of {header.record_count:,} records is not shown: {error}"
                first = max(header.base_offset, position)
                yield _shown(wanted.partition, first, header.max_timestamp, None, why, ())
                continue
            for record in records:
                if position <= record.offset < wanted.end:
                    offset, at_ms, key, value, headers = record
                    if accept is not None and not accept(key, value, headers):
                        continue
                    yield _shown(wanted.partition, offset, at_ms, key, show(value), headers)
        position = following


def find_starts(
    bootstrap: str, topic: str, start: str, bounds: Any, clock: Clock
) -> dict[int, int]:
    """Where each partition begins: "earliest", or at a time ("-5m", milliseconds)."""
    if start == "earliest":
        return {partition: first for partition, (first, _) in bounds.items()}
    at = _time(start, clock)
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({**librdkafka_settings(bootstrap), "group.id": "unused", "log_level": 0})
    try:
        asked = [TopicPartition(topic, partition, at) for partition in bounds]
        found = consumer.offsets_for_times(asked, timeout=5)
    finally:
        consumer.close()
    return {
        place.partition: place.offset if place.offset >= 0 else bounds[place.partition][1]
        for place in found
    }


def _time(start: str, clock: Clock) -> int:
    """`-5m` before now, or milliseconds since 1970."""
    if start.startswith("-") and start[-1].isalpha():
        return clock.wall_ms() - round(parse_duration(start[1:]).total_seconds() * 1000)
    if start.isascii() and start.isdecimal() and int(start) < 1 << 63:
        return int(start)
    raise UsageError(
        f"{start!r} is no start", hint="earliest, latest, offset:1200, -5m, or milliseconds"
    )


def as_records(chunk: Any, show: Show | None = None) -> Iterator[dict[str, Any]]:
    """The records of a chunk, in a form that JSON can hold."""
    show = show or text
    for index, offset in enumerate(chunk.offsets):
        yield _shown(
            chunk.partition,
            offset,
            chunk.timestamps[index],
            chunk.keys[index],
            show(chunk.values[index]),
            chunk.headers[index] if chunk.headers else (),
        )


def _shown(
    partition: int, offset: int, at_ms: int, key: bytes | None, value: str | None, headers: Headers
) -> dict[str, Any]:
    return {
        "partition": partition,
        "offset": offset,
        "timestamp": at_ms,
        "key": text(key),
        "value": value,
        "headers": {shown_name(name): text(item) for name, item in headers or ()},
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
