"""The topic `connect-offsets`: how far each connector has read each partition of its source.

Kafka's records: the key is `["CONNECTOR",{partition}]`, the value the offset, null once it is
forgotten. Written by a task in the transaction of its records.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import orjson

from tailrace.client.admin import Admin
from tailrace.client.log import Log

_SORTED = orjson.OPT_SORT_KEYS


def canonical(partition: Mapping[str, Any]) -> bytes:
    """The same bytes for equal partitions, whatever their order."""
    return orjson.dumps(dict(partition), option=_SORTED)


class StoredOffsets:
    """The offsets of one connector as the topic had them. Keys are `canonical` partitions."""

    def __init__(self, connector: str) -> None:
        self.connector = connector
        self.found: dict[bytes, dict[str, Any]] = {}
        self._keys: dict[bytes, bytes] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        try:
            name, partition = orjson.loads(key or b"")
            if name != self.connector or not isinstance(partition, dict):
                return
            offset = None if value is None else orjson.loads(value)
        except (ValueError, TypeError):
            return  # somebody else's
        own = canonical(partition)
        # Java may have written the same partition in another order: its key stays the key.
        self._keys[own] = bytes(key or b"")
        if isinstance(offset, dict):
            self.found[own] = offset
        else:
            self.found.pop(own, None)

    def __call__(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self.found.get(canonical(partition))
        return None if found is None else dict(found)

    def listed(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(orjson.loads(own), offset) for own, offset in sorted(self.found.items())]

    def key(self, own: bytes) -> bytes:
        """The record key of a canonical partition."""
        found = self._keys.get(own)
        if found is None:
            found = b"[%b,%b]" % (orjson.dumps(self.connector), own)
            self._keys[own] = found
        return found


def read_offsets(log: Log, topic: str, connector: str) -> StoredOffsets:
    """Everything the topic says of a connector now.

    The end is that of all records, and is waited for until they are decided: a transaction of
    another connector that is open must not hide an offset behind its first record.
    """
    stored = StoredOffsets(connector)
    with closing(log.fetcher(fetch_bytes=8 << 20)) as fetcher:
        admin = Admin.over(fetcher.cluster)
        ends = admin.topic_end_offsets(topic, "read_uncommitted")
        starts = admin.start_offsets([(topic, index) for index in ends])
        for index, end in ends.items():
            for record in fetcher.read_range(topic, index, starts[topic, index], end):
                stored.apply(
                    None if record.key is None else bytes(record.key),
                    None if record.value is None else bytes(record.value),
                )
    return stored
