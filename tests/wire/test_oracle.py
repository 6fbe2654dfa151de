"""kio, written by others from the same definitions, judges every codec."""

from __future__ import annotations

import random
import zlib

import pytest
from kio.index import UnknownEntity, load_request_schema, load_response_schema

from tailrace.wire.apis import APIS, Api
from wire import kio_oracle

ROUNDS = 6


def cases() -> list[object]:
    return [
        pytest.param(api, direction, id=f"{api.module}-{direction}")
        for api in APIS.values()
        for direction in ("request", "response")
    ]


@pytest.mark.parametrize(("api", "direction"), cases())
def test_every_version_reads_and_writes_the_bytes_of_kio(api: Api, direction: str) -> None:
    load = load_request_schema if direction == "request" else load_response_schema
    judged = 0
    for version in range(api.min_version, api.max_version + 1):
        try:
            kind = load(api.key, version)
        except UnknownEntity:
            continue
        judged += 1
        chance = random.Random(zlib.crc32(f"{api.module} {direction} {version}".encode()))
        for _ in range(ROUNDS):
            theirs = kio_oracle.make(kind, chance)
            data = kio_oracle.write(theirs)
            ours = getattr(api, f"decode_{direction}")(version, data)
            kio_oracle.assert_same(theirs, ours)
            out = bytearray()
            getattr(api, f"encode_{direction}")(version, ours, out)
            assert bytes(out) == data
            assert kio_oracle.read(kind, bytes(out)) == kio_oracle.read(kind, data)
    assert judged, f"kio knows no version of {api.module}"
