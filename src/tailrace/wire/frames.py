"""Frames: a four-byte length, a header, a body.

Request header: api key, api version, correlation id, client id (a plain nullable
string in every version) and, in flexible versions, tagged fields. Response header:
the correlation id and, in flexible versions, tagged fields; ApiVersions answers
without them always, so that a client can read the answer before it knows the broker.
"""

from __future__ import annotations

import struct

from tailrace.wire.apis import APIS, Api
from tailrace.wire.errors import DecodeError, UnsupportedVersionError
from tailrace.wire.message import Message, skip_tags

_request_head = struct.Struct(">hhih")
_request_with_size = struct.Struct(">ihhih")
_size = struct.Struct(">i")
_response_head = struct.Struct(">ii")

MAX_FRAME_BYTES = 104_857_600  # socket.request.max.bytes of Kafka


class RequestHeader:
    """What stands before the body of a request. `api` is None for a key not spoken here."""

    __slots__ = ("api", "api_key", "api_version", "body", "client_id", "correlation_id")

    def __init__(
        self,
        api: Api | None,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        body: int,
    ) -> None:
        self.api = api
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body  # where the body starts

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )


def decode_request_header(frame: memoryview, position: int = 0) -> RequestHeader:
    """The header of the request at `position` (behind the length). Raises DecodeError.

    A key or version that is not known here is no error: the caller answers it.
    """
    try:
        key, version, correlation_id, size = _request_head.unpack_from(frame, position)
        position += 10
        client_id = None
        if size >= 0:
            if position + size > len(frame):
                raise DecodeError("malformed request header: client id past the end")
            client_id = str(frame[position : position + size], "utf-8")
            position += size
        api = APIS.get(key)
        if api is not None and api.first_flexible <= version <= api.max_version:
            if frame[position]:
                position = skip_tags(frame, position)
            else:
                position += 1
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"malformed request header: {error}") from error
    return RequestHeader(api, key, version, correlation_id, client_id, position)


def begin_request(
    api: Api, version: int, correlation_id: int, client_id: bytes = b"tailrace"
) -> bytearray:
    """A frame that still lacks its length and body; see `end_frame`."""
    out = bytearray(_request_with_size.pack(0, api.key, version, correlation_id, len(client_id)))
    out += client_id
    if version >= api.first_flexible:
        out.append(0)
    return out


def begin_response(api: Api, version: int, correlation_id: int) -> bytearray:
    """A frame that still lacks its length and body; see `end_frame`."""
    out = bytearray(_response_head.pack(0, correlation_id))
    if api.response_header_version(version):
        out.append(0)
    return out


def end_frame(out: bytearray, following_bytes: int = 0) -> bytearray:
    """Write the length; `following_bytes` will be sent right behind `out`."""
    _size.pack_into(out, 0, len(out) - 4 + following_bytes)
    return out


def encode_request(
    api: Api, version: int, correlation_id: int, message: Message, client_id: bytes = b"tailrace"
) -> bytearray:
    """A whole frame, length included."""
    out = begin_request(api, version, correlation_id, client_id)
    api.encode_request(version, message, out)
    return end_frame(out)


def encode_response(api: Api, version: int, correlation_id: int, message: Message) -> bytearray:
    """A whole frame, length included."""
    out = begin_response(api, version, correlation_id)
    api.encode_response(version, message, out)
    return end_frame(out)


def decode_response_header(api: Api, version: int, frame: memoryview) -> tuple[int, int]:
    """Correlation id, and where the body starts; `frame` begins behind the length."""
    try:
        (correlation_id,) = _size.unpack_from(frame, 0)
        position = 4
        if api.response_header_version(version):
            position = skip_tags(frame, 4)
    except (struct.error, IndexError) as error:
        raise DecodeError(f"malformed response header: {error}") from error
    return correlation_id, position


def decode_response(
    api: Api, version: int, frame: memoryview | bytes | bytearray
) -> tuple[int, Message]:
    """Correlation id and message; `frame` begins behind the length."""
    view = memoryview(frame)
    correlation_id, position = decode_response_header(api, version, view)
    return correlation_id, api.decode_response(version, view, position)


def common_version(api: Api, lowest: int, highest: int) -> int:
    """The highest version that both sides speak. Raises UnsupportedVersionError."""
    version = min(api.max_version, highest)
    if version < max(api.min_version, lowest):
        raise UnsupportedVersionError(
            f"no common version of {api.module}",
            detail=f"the peer speaks {lowest} to {highest}, "
            f"this side {api.min_version} to {api.max_version}",
        )
    return version
