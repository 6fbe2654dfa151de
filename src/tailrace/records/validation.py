"""A look at every record of a batch, as a broker takes it before it keeps it.

Kafka reads every record a producer sends. Here records of equal size, what most producers
send, are checked together by strides over the bytes, and only the others one by one; nothing
is copied out. `decode.decode_records` is the naive twin: what it refuses is refused here, and
so are offsets that do not count up and bytes behind the last record.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.records.decode import decode_headers, read_varint
from tailrace.records.errors import InvalidRecordError

SMALLEST_RECORD_BYTES = 7
"""A length, attributes, two differences, two lengths and a count of headers."""

FARTHEST = 1 << 62
"""Times and differences of them within this never add up to more than 64 bits."""

_ONE_BYTE, _TWO_BYTES = 64, 8192
"""How many offset differences a zigzag varint of one and of two bytes can name."""
_OFFSETS = bytes(range(0, 128, 2))
_LOW = bytes((2 * number & 127) | 128 for number in range(_TWO_BYTES))
_HIGH = bytes(2 * number >> 7 for number in range(_TWO_BYTES))
_POSITIVE = bytes(0 if value & 1 else value for value in range(256))
_LEAST_RUN = 16
# Large records are few: looking at them where they are is cheaper than a copy.
_LARGE_RECORD_BYTES = 2048


class Inspection(NamedTuple):
    """What a batch's records say of themselves."""

    keyless: list[int]
    """Which records, counted from 0, have no key."""
    newest: int
    """The largest difference to the base timestamp."""


def inspect_records(block: bytes | memoryview, count: int) -> Inspection:
    """Walk `count` uncompressed records; raises `InvalidRecordError` if they are not exactly
    that. `block` is all that follows the batch's header."""
    size = len(block)
    if count * SMALLEST_RECORD_BYTES > size:
        raise InvalidRecordError(f"{count} records cannot be in {size} bytes")
    if isinstance(block, memoryview) and size < count * _LARGE_RECORD_BYTES:
        block = bytes(block)
    keyless: list[int] = []
    newest = -(1 << 63)
    position = number = 0
    run_at = 0
    try:
        while number < count:
            if number == run_at and isinstance(block, bytes) and count - number >= _LEAST_RUN:
                length, moved, latest = _run(block, position, number, count, keyless)
                if length:
                    number += length
                    run_at = number
                    position = moved
                    if latest > newest:
                        newest = latest
                    continue
                run_at = _next_run(number)
            length = block[position]
            if length < 128:
                position += 1
                length = length >> 1 if not length & 1 else -1
            elif (more := block[position + 1]) < 128 and not length & 1:
                position += 2
                length = (length & 127 | more << 7) >> 1
            else:
                length, position = read_varint(block, position)
            end = position + length
            if length < 6 or end > size:
                raise InvalidRecordError(f"record {number} claims {length} bytes")
            # The differences of time and offset.
            value = block[position + 1]
            if value < 128:
                position += 2
                value = value >> 1 if not value & 1 else -(value >> 1) - 1
            else:
                value, position = read_varint(block, position + 1)
                if not -FARTHEST < value < FARTHEST:
                    raise InvalidRecordError(f"record {number} lies too far from its batch's time")
            if value > newest:
                newest = value
            value = block[position]
            if value < 128:
                position += 1
                value >>= 1
            elif (more := block[position + 1]) < 128:
                position += 2
                value = (value & 127 | more << 7) >> 1
            else:
                value, position = read_varint(block, position)
            if value != number:
                raise InvalidRecordError(f"record {number} says that it is number {value}")
            # The key.
            value = block[position]
            if value == 1:
                keyless.append(number)
                position += 1
            elif value < 128:
                position += 1 + (value >> 1)
                if value & 1:
                    raise InvalidRecordError(f"record {number} has a key of negative length")
            else:
                value, position = read_varint(block, position)
                if value < 0:
                    raise InvalidRecordError(f"record {number} has a key of negative length")
                position += value
            # The value; the lowest bit of a length is its sign, and -1 is null.
            value = block[position]
            if value < 128:
                position += 1
                if not value & 1:
                    position += value >> 1
                elif value != 1:
                    raise InvalidRecordError(f"record {number} has a value of negative length")
            elif (more := block[position + 1]) < 128 and not value & 1:
                position += 2 + ((value & 127 | more << 7) >> 1)
            else:
                value, position = read_varint(block, position)
                if value < 0:
                    raise InvalidRecordError(f"record {number} has a value of negative length")
                position += value
            if position >= end:
                raise InvalidRecordError(f"record {number} is longer than it claims")
            if block[position] or position + 1 != end:
                decode_headers(bytes(block[position:end]))
            position = end
            number += 1
    except IndexError:
        raise InvalidRecordError(f"record {number} is cut") from None
    if position != size:
        raise InvalidRecordError(f"{size - position} bytes follow the last of {count} records")
    return Inspection(keyless, newest)


def _next_run(number: int) -> int:
    """Where looking for a run is worth it again: offsets get wider there."""
    if number == 0:
        return 1
    return _ONE_BYTE if number < _ONE_BYTE else _TWO_BYTES if number < _TWO_BYTES else -1


def _run(
    block: bytes, position: int, number: int, count: int, keyless: list[int]
) -> tuple[int, int, int]:
    """How many records from here on have the same size and shape, where the last ends, and
    the largest difference of time; 0 records if the shape is not a simple one."""
    none = (0, position, 0)
    head = block[position]
    prefix = 1
    stride = 1 + (head >> 1)
    if head >= 128:
        if block[position + 1] >= 128:
            return none
        prefix = 2
        stride = 2 + ((head & 127 | block[position + 1] << 7) >> 1)
    if head & 1 or number >= _TWO_BYTES:
        return none
    most = (_ONE_BYTE if number < _ONE_BYTE else _TWO_BYTES) - number
    most = min(most, count - number, (len(block) - position) // stride)
    if most < _LEAST_RUN:
        return none

    def column(at: int) -> bytes:
        return block[position + at : position + most * stride : stride]

    for at in range(prefix):
        first = block[position + at]
        same = column(at)
        if same.count(first) != most:
            most -= len(same.lstrip(bytes((first,))))
            if most < _LEAST_RUN:
                return none
    at = prefix + 1
    times = column(at)
    if not times.isascii():
        return none
    at += 1
    if number < _ONE_BYTE:
        if column(at) != _OFFSETS[number : number + most]:
            return none
        at += 1
    else:
        until = number + most
        if column(at) != _LOW[number:until] or column(at + 1) != _HIGH[number:until]:
            return none
        at += 2
    key_at = at
    for _ in range(2):  # the key, then the value
        first = block[position + at]
        if column(at).count(first) != most:
            return none
        if first >= 128:
            second = block[position + at + 1]
            if second >= 128 or first & 1 or column(at + 1).count(second) != most:
                return none
            at += 2 + ((first & 127 | second << 7) >> 1)
        elif first == 1:
            at += 1
        elif first & 1:
            return none
        else:
            at += 1 + (first >> 1)
    if at != stride - 1 or column(at).count(0) != most:
        return none
    if block[position + key_at] == 1:
        keyless.extend(range(number, number + most))
    newest = max(times.translate(_POSITIVE)) >> 1
    if newest == 0 and 0 not in times:
        newest = -((min(times) >> 1) + 1)
    return most, position + most * stride, newest
