"""Which transactions are known: GTID sets of MySQL, states of MariaDB.

MySQL: `uuid:1-5:7, uuid:tag:1-3`, a set of numbers per server and tag. MariaDB: `0-1-9`, the
last number per domain. Both say `includes(other)`, and both are written back as text that
their server understands.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from typing import Protocol

from tailrace.sources.errors import ReplicationProtocolError


class Known(Protocol):
    """A set of transactions."""

    def add(self, gtid: str) -> None: ...

    def has(self, gtid: str) -> bool: ...

    def includes(self, other: Known) -> bool: ...

    def without(self, other: Known) -> str:
        """What this has and the other lacks, as text."""

    def copy(self) -> Known: ...


class GtidSet:
    """MySQL's set: sorted, disjoint intervals (end exclusive) per uuid and tag."""

    def __init__(self, text: str = "") -> None:
        self.intervals: dict[str, list[list[int]]] = {}
        owner, tag = "", ""
        for part in filter(None, re.split(r"[,\s]+", text)):
            owner, tag = part.partition(":")[0].lower(), ""
            for piece in part.split(":")[1:]:
                if not piece[:1].isdigit():
                    tag = piece.lower()
                    continue
                first, _, last = piece.partition("-")
                self._add(f"{owner}:{tag}" if tag else owner, int(first), int(last or first) + 1)

    def _add(self, owner: str, start: int, end: int) -> None:
        held = self.intervals.setdefault(owner, [])
        at = bisect_right(held, [start])
        if at and held[at - 1][1] >= start:
            at -= 1
            start = held[at][0]
            end = max(end, held[at][1])
            held.pop(at)
        while at < len(held) and held[at][0] <= end:
            end = max(end, held[at][1])
            held.pop(at)
        held.insert(at, [start, end])

    def add(self, gtid: str) -> None:
        owner, _, number = gtid.rpartition(":")
        held = self.intervals.get(owner)
        value = int(number)
        if held and held[-1][1] == value:
            held[-1][1] += 1  # the usual case
        else:
            self._add(owner, value, value + 1)

    def has(self, gtid: str) -> bool:
        owner, _, number = gtid.rpartition(":")
        return self._covers(owner, int(number), int(number) + 1)

    def _covers(self, owner: str, start: int, end: int) -> bool:
        held = self.intervals.get(owner, [])
        at = bisect_right(held, [start, 1 << 63])
        return at > 0 and held[at - 1][0] <= start and held[at - 1][1] >= end

    def includes(self, other: Known) -> bool:
        assert isinstance(other, GtidSet)
        return all(
            self._covers(owner, start, end)
            for owner, held in other.intervals.items()
            for start, end in held
        )

    def without(self, other: Known) -> str:
        assert isinstance(other, GtidSet)
        left = GtidSet()
        for owner, held in self.intervals.items():
            for start, end in held:
                at = start
                for low, high in other.intervals.get(owner, []):
                    if high <= at or low >= end:
                        continue
                    if low > at:
                        left._add(owner, at, low)
                    at = max(at, high)
                if at < end:
                    left._add(owner, at, end)
        return str(left)

    def copy(self) -> GtidSet:
        made = GtidSet()
        made.intervals = {
            owner: [list(one) for one in held] for owner, held in self.intervals.items()
        }
        return made

    def encoded(self) -> bytes:
        """As COM_BINLOG_DUMP_GTID takes it; with tags in the form of servers that have them."""
        tagged = any(":" in owner for owner in self.intervals)
        count = len(self.intervals)
        # The tagged form marks the count's first and last byte with its number.
        head = (1 | count << 8 | 1 << 56) if tagged else count
        parts = [head.to_bytes(8, "little")]
        for owner, held in sorted(self.intervals.items()):
            name, _, tag = owner.partition(":")
            parts.append(uuid.UUID(name).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode())
            parts.append(len(held).to_bytes(8, "little"))
            parts += [n.to_bytes(8, "little") for one in held for n in one]
        return b"".join(parts)

    def __str__(self) -> str:
        def shown(start: int, end: int) -> str:
            return f"{start}" if end == start + 1 else f"{start}-{end - 1}"

        return ",".join(
            ":".join([owner, *(shown(*one) for one in held)])
            for owner, held in sorted(self.intervals.items())
        )


class GtidState:
    """MariaDB's state: the last transaction of every domain."""

    def __init__(self, text: str = "") -> None:
        self.last: dict[int, tuple[int, int]] = {}
        for part in filter(None, re.split(r"[,\s]+", text)):
            self.add(part)

    def add(self, gtid: str) -> None:
        domain, server, number = (int(one) for one in gtid.split("-"))
        self.last[domain] = server, number

    def has(self, gtid: str) -> bool:
        domain, _, number = (int(one) for one in gtid.split("-"))
        return self.last.get(domain, (0, 0))[1] >= number

    def includes(self, other: Known) -> bool:
        assert isinstance(other, GtidState)
        return all(
            self.last.get(domain, (0, 0))[1] >= number for domain, (_, number) in other.last.items()
        )

    def without(self, other: Known) -> str:
        assert isinstance(other, GtidState)
        left = GtidState()
        left.last = {
            domain: (server, number)
            for domain, (server, number) in self.last.items()
            if other.last.get(domain, (0, 0))[1] < number
        }
        return str(left)

    def copy(self) -> GtidState:
        made = GtidState()
        made.last = dict(self.last)
        return made

    def __str__(self) -> str:
        return ",".join(
            f"{d}-{server}-{number}" for d, (server, number) in sorted(self.last.items())
        )


def read_gtid(body: bytes) -> str:
    """The GTID in a MySQL event of type 33."""
    return f"{uuid.UUID(bytes=body[1:17])}:{int.from_bytes(body[17:25], 'little')}"


def read_tagged_gtid(body: bytes) -> str:
    """The GTID in a MySQL event of type 42: numbered fields of variable length."""
    at = 0

    def number() -> int:
        nonlocal at
        first = body[at]
        extra = 0
        while extra < 8 and first >> extra & 1:
            extra += 1
        if extra == 8:
            value = int.from_bytes(body[at + 1 : at + 9], "little")
        else:
            value = int.from_bytes(body[at : at + 1 + extra], "little") >> (extra + 1)
        at += 1 + extra
        return value

    owner, tag, gno = b"", "", 0
    try:
        for _ in range(3):
            number()  # version, size, last field that must be understood
        for _ in range(4):
            match number():
                case 0:
                    number()
                case 1:
                    owner = bytes(number() for _ in range(16))
                case 2:
                    coded = number()
                    gno = coded >> 1 if not coded & 1 else -(coded >> 1) - 1
                case 3:
                    length = number()
                    tag = body[at : at + length].decode("ascii")
                    at += length
                case other:
                    raise ValueError(f"field {other}")
        name = str(uuid.UUID(bytes=owner))
    except (IndexError, ValueError) as error:
        raise ReplicationProtocolError("a GTID cannot be read", detail=str(error)) from error
    return f"{name}:{tag}:{gno}" if tag else f"{name}:{gno}"
