"""The members of a JSON object as the bytes they were written as.

Reading a row and writing it again changes it: `1.10` becomes 1.1, a number of 30 digits a
float, and of two equal names one is left. A value that did not change is taken over byte
by byte instead.
"""

from __future__ import annotations

import json
import re

# Numbers stay texts: they are skipped, and Python refuses integers of many digits.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^\s"\[\]{},]+', re.DOTALL)


def members(document: bytes, until: str | None = None) -> dict[str, bytes]:
    """The values of an object by name, the last one of equal names; none behind the member
    `until`. ValueError for what is no JSON object."""
    text = document.decode()
    found: dict[str, bytes] = {}
    place = _skip(text, _skip(text, 0, "{"))
    while text[place : place + 1] != "}":
        name, place = _DECODER.raw_decode(text, place)
        place = _skip(text, _skip(text, _skip(text, place), ":"))
        end = _end_of_value(text, place)
        found[name] = text[place:end].encode()
        if name == until:
            break
        place = _skip(text, end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
    return found


def assembled(values: dict[str, bytes]) -> bytes:
    """An object of these members."""
    parts = [json.dumps(name, ensure_ascii=False).encode() + b":" + values[name] for name in values]
    return b"{" + b",".join(parts) + b"}"


def _skip(text: str, place: int, expected: str = "") -> int:
    if not text.startswith(expected, place):
        raise ValueError(f"{expected} expected at {place}")
    space = _SPACE.match(text, place + len(expected))
    assert space is not None
    return space.end()


def _end_of_value(text: str, place: int) -> int:
    try:
        return _DECODER.raw_decode(text, place)[1]
    except RecursionError:  # nested deeper than Python reads
        return _end_by_tokens(text, place)


def _end_by_tokens(text: str, place: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, place):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        if depth == 0:
            return token.end()
    raise ValueError("the value has no end")
