"""Requests that no honest client sends: well formed but absurd, and not even well formed.

`absurd` fills every field of a message with values from the edges of its type;
`damage` breaks a frame that was good. Both are driven by a seed.
"""

from __future__ import annotations

import random
import struct
import types
import typing
from importlib import import_module
from typing import Any

from tailrace.wire.apis import APIS, Api
from tailrace.wire.frames import encode_request
from tailrace.wire.message import Message

WORDS = ("", "t", "t", "g", "no-such-thing", "../../etc", "x" * 300, "ü\u2028", "\x00", "9" * 20)
NUMBERS = (-1, 0, 0, 1, 1, 2, 3, 7, 127, 255, 1000, 2**15 - 1, 2**31 - 1, -(2**31), 2**62)


def request_class(api: Api) -> type[Message]:
    """The request message of an API."""
    module = import_module(f"tailrace.wire.messages.{api.module}")
    name = "".join(word.capitalize() for word in api.module.split("_")) + "Request"
    found: type[Message] = getattr(module, name)
    return found


def absurd(kind: type[Message], chance: random.Random, depth: int = 0) -> Message:
    """A message with every field filled from the edges of its type."""
    hints = typing.get_type_hints(kind.__init__, vars(import_module(kind.__module__)))
    hints.pop("return", None)
    return kind(**{name: _value(hint, chance, depth) for name, hint in hints.items()})


def _value(hint: Any, chance: random.Random, depth: int) -> Any:
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        choices = typing.get_args(hint)
        if type(None) in choices and chance.random() < 0.2:
            return None
        return _value(next(one for one in choices if one is not type(None)), chance, depth)
    if origin is list:
        count = chance.choice((0, 1, 1, 2, 3)) if depth < 4 else 0
        return [_value(typing.get_args(hint)[0], chance, depth + 1) for _ in range(count)]
    if hint is bool:
        return chance.random() < 0.5
    if hint is int:
        return chance.choice(NUMBERS)
    if hint is float:
        return chance.choice((0.0, -1.0, 1e308))
    if hint is str:
        return chance.choice(WORDS)
    if hint is bytes:
        return chance.choice((bytes(16), b"\xff" * 16, chance.randbytes(16)))
    return absurd(hint, chance, depth + 1)


def absurd_frame(api_key: int, version: int, chance: random.Random) -> bytes:
    """A whole request frame; numbers too large for their field are tried again smaller."""
    api = APIS[api_key]
    for _ in range(200):
        try:
            message = absurd(request_class(api), chance)
            return bytes(encode_request(api, version, chance.randint(0, 1000), message))
        except (struct.error, OverflowError, ValueError, AttributeError, TypeError):
            continue
    return bytes(encode_request(api, version, 1, request_class(api)()))


def damage(frame: bytes, chance: random.Random) -> bytes:
    """A frame of right length whose inside is wrong."""
    body = bytearray(frame[4:])
    start = 8  # leave key, version and correlation id, so that it reaches its decoder
    for _ in range(chance.randint(1, 4)):
        if len(body) <= start:
            break
        place = chance.randrange(start, len(body))
        match chance.randrange(6):
            case 0:
                body[place] ^= 1 << chance.randrange(8)
            case 1:
                body[place : place + 4] = struct.pack(
                    ">I", chance.choice((2**32 - 1, 2**31 - 1, 2**24))
                )
            case 2:
                del body[place:]
            case 3:
                body[place:place] = chance.randbytes(chance.randint(1, 40))
            case 4:
                body[place : place + 5] = b"\xff\xff\xff\xff\x0f"
            case _:
                body[place : place + 9] = b"\xff" * 9
    return struct.pack(">i", len(body)) + bytes(body)
