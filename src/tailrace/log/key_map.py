"""The cleaner's map: last offset of every key, at about 28 bytes a key.

An entry is the key's MD5 and an offset, 24 bytes. Entries lie in buckets, each one
bytearray that is searched as a string: ten times smaller than a dict of the keys, and
searched in C. Two keys with one MD5 would be taken for one, as in Kafka.
"""

from __future__ import annotations

import hashlib
import importlib
import struct
from collections.abc import Iterator

try:
    # The plain one takes a third of the time of OpenSSL's for short keys.
    md5 = importlib.import_module("_md5").md5
except ImportError:  # pragma: no cover - left out of some builds of Python
    md5 = hashlib.md5

_OFFSET = struct.Struct(">q")
_PUT, _GET = _OFFSET.pack_into, _OFFSET.unpack_from
_PLACE = struct.Struct(">I").unpack_from
_OFFSETS = struct.Struct(">16xq").iter_unpack
_ENTRY = 24
_PER_BUCKET = 24
_BUCKET_OVERHEAD = 57


class KeyMap:
    """Maps keys to offsets within a budget of bytes."""

    __slots__ = ("_buckets", "_mask", "capacity", "count")

    def __init__(self, budget_bytes: int) -> None:
        each = _ENTRY * 9 // 8 + _BUCKET_OVERHEAD // _PER_BUCKET + 1
        self.capacity = max(1, budget_bytes // each)
        wanted = max(1, self.capacity // _PER_BUCKET)
        self._mask = (1 << min(24, max(0, wanted.bit_length() - 1))) - 1
        self._buckets: list[bytearray | None] = [None] * (self._mask + 1)
        self.count = 0

    @property
    def full(self) -> bool:
        return self.count >= self.capacity

    def put(self, key: bytes, offset: int) -> bool:
        """Note the newest offset of `key`; False if the map is full and the key is new."""
        digest = md5(key).digest()
        place = _PLACE(digest)[0] & self._mask
        bucket = self._buckets[place]
        if bucket is None:
            if self.count >= self.capacity:
                return False
            self._buckets[place] = bytearray(digest + offset.to_bytes(8, "big"))
            self.count += 1
            return True
        found = bucket.find(digest)
        if found % _ENTRY:
            found = _aligned(bucket, digest, found)
        if found >= 0:
            _PUT(bucket, found + 16, offset)
            return True
        if self.count >= self.capacity:
            return False
        bucket += digest + offset.to_bytes(8, "big")
        self.count += 1
        return True

    def get(self, key: bytes) -> int:
        """The newest offset of `key`; −1 if it was never noted."""
        digest = md5(key).digest()
        bucket = self._buckets[_PLACE(digest)[0] & self._mask]
        if bucket is None:
            return -1
        found = bucket.find(digest)
        if found % _ENTRY:
            found = _aligned(bucket, digest, found)
        return int(_GET(bucket, found + 16)[0]) if found >= 0 else -1

    def offsets(self) -> Iterator[int]:
        """The newest offsets of all keys, in no order."""
        for bucket in self._buckets:
            if bucket is not None:
                yield from (offset for (offset,) in _OFFSETS(bucket))


def _aligned(bucket: bytearray, digest: bytes, found: int) -> int:
    """The next place of `digest` at the beginning of an entry; −1 if there is none."""
    while found >= 0 and found % _ENTRY:
        found = bucket.find(digest, found + 1)
    return found
