"""Coverage-guided fuzzing of everything that reads bytes from the network.

    uv pip install atheris && python tests/wire/fuzz.py -max_total_time=600

The first three bytes choose what is read: API, version, direction. Anything but a
message or a DecodeError is a finding, and so is memory out of proportion (libFuzzer's
limit; 25 bytes must not take megabytes).
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["tailrace"]):
    import importlib

    from tailrace.client.committed import visible_records
    from tailrace.records.errors import RecordsError
    from tailrace.wire import fetch, produce
    from tailrace.wire.apis import APIS
    from tailrace.wire.errors import DecodeError, UnsupportedVersionError
    from tailrace.wire.frames import decode_request_header, decode_response

    for api in APIS.values():
        importlib.import_module(f"tailrace.wire.messages.{api.module}")

KNOWN = list(APIS.values())


def read(data: bytes) -> None:
    if len(data) < 3:
        return
    api = KNOWN[data[0] % len(KNOWN)]
    version = api.min_version + data[1] % (api.max_version - api.min_version + 1)
    body = memoryview(data)[3:]
    try:
        match data[2] % 6:
            case 0:
                api.decode_request(version, body)
            case 1:
                api.decode_response(version, body)
            case 2:
                decode_request_header(body)
            case 3:
                produce.decode_produce_request(3 + data[1] % 11, body, 0)
                decode_response(api, version, body)
            case 4:
                fetch.decode_fetch_request(4 + data[1] % 15, body, 0)
            case _:
                visible_records(bytes(body), 0, None, [(1, 0)])
    except (DecodeError, UnsupportedVersionError, RecordsError):
        pass


if __name__ == "__main__":
    atheris.Setup([*sys.argv, "-rss_limit_mb=512", "-max_len=4096"], read)
    atheris.Fuzz()
