"""Values of the binlog, and of a SELECT's text, as JSON has them.

Both ways give equal values for equal rows. TIME is text, up to 838 hours; a zero date stands
as it is; TIMESTAMP ends in Z, DATETIME does not; DECIMAL is exact text; BIT is a text of 0
and 1; binary values are base64; geometry is `{"srid", "wkb"}`.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import uuid
import zlib
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

from tailrace.sources.errors import ReplicationProtocolError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What one value may unpack to; the server's own limit of a value is 1 GiB.
LARGEST_BYTES = 1 << 30


@lru_cache(maxsize=4096)
def date(raw: bytes) -> str:
    value = raw[0] | raw[1] << 8 | raw[2] << 16
    return f"{value >> 9:04d}-{value >> 5 & 15:02d}-{value & 31:02d}"


@lru_cache(maxsize=16384)
def datetime_head(raw: bytes) -> str:
    value = int.from_bytes(raw, "big") - 0x8000000000
    if value < 0:
        value = 0
    months = value >> 22
    return (
        f"{months // 13:04d}-{months % 13:02d}-{value >> 17 & 31:02d}T"
        f"{value >> 12 & 31:02d}:{value >> 6 & 63:02d}:{value & 63:02d}"
    )


@lru_cache(maxsize=16384)
def timestamp_head(raw: bytes) -> str:
    seconds = int.from_bytes(raw, "big")
    return instant(seconds)


def instant(seconds: int) -> str:
    if seconds == 0:
        return "0000-00-00T00:00:00"
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def fraction(raw: bytes, digits: int) -> str:
    """`.123` of one to three bytes; nothing for no digits."""
    if not digits:
        return ""
    width = 2 * len(raw)
    return f".{int.from_bytes(raw, 'big'):0{width}d}"[: digits + 1]


def time(raw: bytes, digits: int) -> str:
    size = len(raw) - 3
    value = int.from_bytes(raw, "big") - (0x800000 << 8 * size)
    sign = "-" if value < 0 else ""
    value = abs(value)
    rest = (value & (1 << 8 * size) - 1).to_bytes(size, "big") if size else b""
    whole = value >> 8 * size
    head = f"{sign}{whole >> 12 & 0x3FF:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
    return head + fraction(rest, digits)


def old_datetime(value: int) -> str:
    day, clock = divmod(value, 1_000_000)
    return (
        f"{day // 10000:04d}-{day // 100 % 100:02d}-{day % 100:02d}T"
        f"{clock // 10000:02d}:{clock // 100 % 100:02d}:{clock % 100:02d}"
    )


def old_time(raw: bytes) -> str:
    value = int.from_bytes(raw, "little", signed=True)
    sign, value = ("-", -value) if value < 0 else ("", value)
    return f"{sign}{value // 10000:02d}:{value // 100 % 100:02d}:{value % 100:02d}"


_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_bytes(precision: int, scale: int) -> int:
    whole, rest = divmod(precision - scale, 9)
    part, last = divmod(scale, 9)
    return 4 * (whole + part) + _DIGIT_BYTES[rest] + _DIGIT_BYTES[last]


@lru_cache(maxsize=16384)
def decimal(raw: bytes, precision: int, scale: int) -> str:
    negative = not raw[0] & 0x80
    data = bytes([raw[0] ^ 0x80, *raw[1:]])
    if negative:
        data = bytes(byte ^ 0xFF for byte in data)
    groups, first = divmod(precision - scale, 9)
    at = _DIGIT_BYTES[first]
    digits = str(int.from_bytes(data[:at], "big")) if at else ""
    for _ in range(groups):
        digits += f"{int.from_bytes(data[at : at + 4], 'big'):09d}"
        at += 4
    text = digits.lstrip("0") or "0"
    if scale:
        groups, last = divmod(scale, 9)
        text += "."
        for _ in range(groups):
            text += f"{int.from_bytes(data[at : at + 4], 'big'):09d}"
            at += 4
        if last:
            text += f"{int.from_bytes(data[at : at + _DIGIT_BYTES[last]], 'big'):0{last}d}"
    return "-" + text if negative else text


def plain_decimal(text: str) -> str:
    """A SELECT's DECIMAL without the zeros of ZEROFILL."""
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, dot, rest = text.partition(".")
    return sign + (whole.lstrip("0") or "0") + dot + rest


@lru_cache(maxsize=4096)
def single(value: float) -> float:
    """The shortest number that is this FLOAT; all digits of the double would mislead."""
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("<f", struct.pack("<f", short))[0] == value:
                return short
        except OverflowError:
            continue
    return float(f"{value:.9g}")


def bits(raw: bytes, count: int) -> str:
    return f"{int.from_bytes(raw, 'big'):0{count}b}"


def base64_text(raw: bytes) -> str:
    return b64encode(raw).decode()


def geometry(raw: bytes) -> dict[str, Any]:
    return {"srid": int.from_bytes(raw[:4], "little"), "wkb": base64_text(raw[4:])}


def vector(raw: bytes) -> list[float]:
    count = len(raw) // 4
    return [single(one) for one in struct.unpack(f"<{count}f", raw[: 4 * count])]


def json_text(text: str) -> Any:
    """JSON kept as text, as MariaDB does; what other readers could not read stays a text."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.Fragment(text)


def inet4(raw: bytes) -> str:
    return str(ipaddress.IPv4Address(raw.ljust(4, b"\0")))


def inet6(raw: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6, raw.ljust(16, b"\0"))


def inet6_text(text: str) -> str:
    return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, text))


def uuid_text(raw: bytes) -> str:
    """MariaDB turns its UUIDs round so that those of one time lie together, but for versions
    from 6 on, which are made that way."""
    raw = raw.ljust(16, b"\0")
    # Turned round, the bytes of variant and version stand where the time stood.
    if (raw[6] & 0x80 and 0 < raw[8] >> 4 < 6) or not any(raw):
        raw = raw[12:16] + raw[10:12] + raw[8:10] + raw[6:8] + raw[:6]
    return str(uuid.UUID(bytes=raw))


def set_text(number: int, values: tuple[str, ...]) -> str:
    return ",".join(value for at, value in enumerate(values) if number >> at & 1)


def enum_text(number: int, values: tuple[str, ...]) -> str:
    """0 is what MySQL stores for a value that was none."""
    if number > len(values):
        raise ReplicationProtocolError(
            "an ENUM has a number that its column does not know",
            detail=f"Number {number} of {len(values)}.",
        )
    return values[number - 1] if number else ""


def uncompressed(raw: bytes) -> bytes:
    """A COMPRESSED column of MariaDB: a byte says how, then the length, then the value."""
    if not raw:
        return raw
    head = raw[0]
    if head == 0:
        return raw[1:]
    if head >> 4 != 8 or not 0 < head & 7 <= 4:
        raise ReplicationProtocolError(
            "a compressed column is packed in an unknown way", detail=f"Its first byte is {head}."
        )
    size = head & 7
    length = int.from_bytes(raw[1 : 1 + size], "big")
    wbits = -15 if head & 8 else 15
    return unpacked(raw[1 + size :], length, wbits)


def unpacked(data: bytes, length: int, wbits: int = 15) -> bytes:
    """Bytes of zlib that say how long they are; not a byte more is made of them."""
    if length > LARGEST_BYTES:
        raise ReplicationProtocolError(
            "something packed says that it is too large", detail=f"{length:,} bytes"
        )
    try:
        made = zlib.decompressobj(wbits).decompress(data, length + 1)
    except zlib.error as error:
        raise ReplicationProtocolError(
            "something packed cannot be unpacked", detail=str(error)
        ) from error
    if len(made) != length:
        raise ReplicationProtocolError(
            "something packed has another length than it says", detail=f"{length:,} bytes"
        )
    return made
