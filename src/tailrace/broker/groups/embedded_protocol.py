"""What classic consumers say inside their join and sync requests: Kafka's "consumer" protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tailrace.wire.messages import consumer_protocol as wire

HIGHEST = 3
TopicPartition = tuple[str, int]


class Subscription(NamedTuple):
    """Topics a member reads, what it still has (cooperative members say), its rack."""

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    rack_id: str | None = None


def read_subscription(data: bytes) -> Subscription | None:
    """None if the bytes, which are a client's own, cannot be read."""
    found = _decode(wire.DECODE_CONSUMER_PROTOCOL_SUBSCRIPTION, data)
    if not isinstance(found, wire.ConsumerProtocolSubscription):
        return None
    owned = frozenset(
        (row.topic, index) for row in found.owned_partitions or () for index in row.partitions
    )
    return Subscription(frozenset(found.topics), owned, found.rack_id or None)


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    """The partitions in a member's assignment; none if it cannot be read."""
    found = _decode(wire.DECODE_CONSUMER_PROTOCOL_ASSIGNMENT, data)
    if not isinstance(found, wire.ConsumerProtocolAssignment):
        return frozenset()
    return frozenset(
        (row.topic, index) for row in found.assigned_partitions for index in row.partitions
    )


def write_assignment(places: Iterable[TopicPartition], like: bytes) -> bytes:
    """An assignment in the version in which the member spoke (`like`)."""
    version = min(max(int.from_bytes(like[:2], "big", signed=True), 0), HIGHEST)
    topics: dict[str, list[int]] = {}
    for name, index in sorted(places):
        topics.setdefault(name, []).append(index)
    out = bytearray(version.to_bytes(2, "big"))
    wire.ENCODE_CONSUMER_PROTOCOL_ASSIGNMENT[version](
        wire.ConsumerProtocolAssignment(
            assigned_partitions=[_row(name, indexes) for name, indexes in topics.items()],
            user_data=None,
        ),
        out,
    )
    return bytes(out)


def _row(name: str, indexes: list[int]) -> wire.TopicPartition:
    return wire.TopicPartition(name, indexes)


def _decode(table: Mapping[int, object], data: bytes) -> object | None:
    if len(data) < 2:
        return None
    version = int.from_bytes(data[:2], "big", signed=True)
    decode = table.get(min(version, HIGHEST))
    if not callable(decode):
        return None
    try:
        found: object = decode(memoryview(data), 2)
    except Exception:  # a client's own bytes; whatever is wrong with them is not ours
        return None
    return found
