"""Whatever bytes arrive: a message, or one DecodeError, and memory in proportion."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import UnknownEntity, load_request_schema, load_response_schema

from tailrace.wire import fetch, produce
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import DecodeError, UnsupportedVersionError
from tailrace.wire.frames import decode_request_header, decode_response_header
from wire import kio_oracle

FLEXIBLE_COUNT = b"\xff\xff\xff\xff\x0f"  # 2³² − 1
PLAIN_COUNT = b"\x7f\xff\xff\xff"


def cases() -> list[object]:
    return [
        pytest.param(api, direction, id=f"{api.module}-{direction}")
        for api in APIS.values()
        for direction in ("request", "response")
    ]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One of the ways to break a good message."""
    broken = bytearray(data)
    position = chance.randrange(len(data) + 1)
    match chance.randrange(5):
        case 0:
            return bytes(broken[:position])
        case 1:
            broken[position : position + 5] = FLEXIBLE_COUNT
        case 2:
            broken[position : position + 4] = PLAIN_COUNT
        case 3:
            broken[position:position] = chance.randbytes(chance.randrange(1, 9))
        case _:
            for _ in range(chance.randrange(1, 6)):
                if broken:
                    broken[chance.randrange(len(broken))] = chance.choice([0, 127, 128, 255])
    return bytes(broken)


@pytest.mark.parametrize(("api", "direction"), cases())
def test_damaged_messages_are_read_or_refused(api: Api, direction: str) -> None:
    load = load_request_schema if direction == "request" else load_response_schema
    decode = getattr(api, f"decode_{direction}")
    for version in range(api.min_version, api.max_version + 1):
        chance = random.Random(zlib.crc32(f"hostile {api.module} {direction} {version}".encode()))
        try:
            data = kio_oracle.write(kio_oracle.make(load(api.key, version), chance))
        except UnknownEntity:
            data = chance.randbytes(100)
        for _ in range(40):
            try:
                decode(version, damaged(data, chance))
            except DecodeError:
                pass


@given(
    data=st.binary(max_size=120),
    api=st.sampled_from(list(APIS.values())),
    version=st.integers(0, 18),
    direction=st.sampled_from(["request", "response"]),
)
def test_random_bytes_are_read_or_refused(
    data: bytes, api: Api, version: int, direction: str
) -> None:
    try:
        getattr(api, f"decode_{direction}")(version, data)
    except (DecodeError, UnsupportedVersionError):
        pass


@given(data=st.binary(max_size=120), version=st.integers(3, 18))
def test_the_hot_paths_read_or_refuse_random_bytes(data: bytes, version: int) -> None:
    for decode in (produce.decode_produce_request, fetch.decode_fetch_request):
        try:
            decode(version, memoryview(data), 0)
        except (DecodeError, UnsupportedVersionError):
            pass


@given(data=st.binary(max_size=60))
def test_headers_are_read_or_refused(data: bytes) -> None:
    try:
        decode_request_header(memoryview(data))
    except DecodeError:
        pass
    try:
        decode_response_header(APIS[ApiKey.METADATA], 12, memoryview(data))
    except DecodeError:
        pass


def import_the_codec(api: Api, version: int) -> None:
    """Codecs are imported when first used; importing allocates, decoding must not."""
    try:
        api.decode_request(version, b"")
    except DecodeError:
        pass


@pytest.mark.parametrize("count", [FLEXIBLE_COUNT, b"\xff\xff\x7f", b"\x80\x80\x80\x80\x08"])
def test_a_huge_count_allocates_nothing(count: bytes) -> None:
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            import_the_codec(api, version)
            for filler in (b"", bytes(12), b"\x01" * 12):
                for body in (filler + count, filler + PLAIN_COUNT):
                    tracemalloc.start()
                    try:
                        api.decode_request(version, body)
                    except DecodeError:
                        pass
                    finally:
                        _, peak = tracemalloc.get_traced_memory()
                        tracemalloc.stop()
                    assert peak < 500_000


def test_unknown_tags_are_skipped() -> None:
    api = APIS[ApiKey.API_VERSIONS]
    body = bytearray(b"\x05name\x021")
    tagged = bytes(body) + b"\x02" + b"\x05\x03abc" + b"\x63\x00"
    plain = bytes(body) + b"\x00"
    assert api.decode_request(3, tagged) == api.decode_request(3, plain)
    assert api.decode_request(3, plain).client_software_name == "name"  # type: ignore[attr-defined]


def test_a_tagged_field_must_be_as_long_as_it_says() -> None:
    api = APIS[ApiKey.FETCH]
    good = bytearray()
    from tailrace.wire.messages.fetch import FetchRequest

    api.encode_request(16, FetchRequest(cluster_id="abc"), good)
    assert good.endswith(b"\x01\x00\x04\x04abc")
    api.decode_request(16, good)
    bad = good[:-6] + b"\x00\x05\x04abcd"
    with pytest.raises(DecodeError):
        api.decode_request(16, bad)


def test_null_where_null_is_not_allowed_is_refused() -> None:
    with pytest.raises(DecodeError, match="null"):
        APIS[ApiKey.HEARTBEAT].decode_request(4, b"\x00\x00\x00\x00\x01\x00\x00\x00")


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(DecodeError):
        APIS[ApiKey.HEARTBEAT].decode_request(0, b"\x00\x02\xff\xfe\x00\x00\x00\x01\x00\x00")


def test_an_unknown_version_is_told() -> None:
    with pytest.raises(UnsupportedVersionError, match="no version 99"):
        APIS[ApiKey.FETCH].decode_request(99, b"")
