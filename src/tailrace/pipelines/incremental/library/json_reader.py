"""JSON as Spark's parser, Jackson, reads it: more than JSON is.

It reads one value and does not look at what stands behind it; names and texts may stand in single
quotes. Python's own parser reads what is plain JSON, many times faster; this one is asked about the
rest.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: dict[str, object] = {"null": None, "true": True, "false": False}
_CONSTANTS = {
    "NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "INF": "inf", "+INF": "inf",
    "-Infinity": "-inf", "-INF": "-inf",
}  # fmt: skip
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEP = 1000


class Number(float):
    """A number of a JSON text that keeps its digits."""

    text: str

    def __new__(cls, text: str) -> Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


class Constant(float):
    """NaN or an infinity, written without quotes."""

    text: str

    def __new__(cls, text: str) -> Constant:
        made = super().__new__(cls, _CONSTANTS[text])
        made.text = text
        return made


class Object(dict[str, Any]):
    """An object that has a name twice: its values are the last ones, `pairs` has all."""

    pairs: list[tuple[str, Any]]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    made = Object(plain)
    made.pairs = pairs
    return made


def _no_constant(text: str) -> float:
    raise ValueError(text)


def read(text: str, *, controls: bool = False, constants: bool = False) -> Any:
    """The first value of a text; ValueError if there is none.

    `controls`: texts may hold tabs and line ends as they are. `constants`: NaN and the like.
    """
    try:
        return json.loads(
            text, parse_float=Number, parse_constant=_no_constant, object_pairs_hook=_object
        )
    except (ValueError, RecursionError):
        return _Reader(text, controls, constants).document()


class _Reader:
    def __init__(self, text: str, controls: bool, constants: bool) -> None:
        self.text, self.at = text, 0
        self.controls, self.constants = controls, constants

    def document(self) -> Any:
        value = self._value(0)
        behind = self.text[self.at : self.at + 1]
        if not isinstance(value, str | dict | list) and behind not in ("", " ", "\t", "\n", "\r"):
            raise ValueError(f"{behind!r} behind a value")
        return value

    def _skip(self) -> str:
        """The next letter that is no space, which stays."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def _value(self, depth: int) -> Any:
        if depth > _DEEP:
            raise ValueError("too deep")
        first = self._skip()
        if first == "{":
            return self._object(depth)
        if first == "[":
            return self._array(depth)
        if first in ('"', "'") and first:
            return self._string(first)
        for words in (_WORDS, _CONSTANTS if self.constants else {}):
            for word in words:
                end = self.at + len(word)
                if self.text.startswith(word, self.at) and not self.text[end : end + 1].isalnum():
                    self.at = end
                    return Constant(word) if word in _CONSTANTS else _WORDS[word]
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise ValueError("no value")
        self.at = found.end()
        if self.text[self.at : self.at + 1].isalnum():
            raise ValueError("no number")
        return Number(found[0]) if found[1] or found[2] else int(found[0])

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        pairs: list[tuple[str, Any]] = []
        if self._skip() == "}":
            self.at += 1
            return {}
        while True:
            quote = self._skip()
            if quote not in ('"', "'") or not quote:
                raise ValueError("no name")
            name = self._string(quote)
            self._take(":")
            pairs.append((name, self._value(depth + 1)))
            if self._take(",}") == "}":
                return _object(pairs)

    def _array(self, depth: int) -> list[Any]:
        self.at += 1
        values: list[Any] = []
        if self._skip() == "]":
            self.at += 1
            return values
        while True:
            values.append(self._value(depth + 1))
            if self._take(",]") == "]":
                return values

    def _take(self, wanted: str) -> str:
        found = self._skip()
        if not found or found not in wanted:
            raise ValueError(f"no {wanted}")
        self.at += 1
        return found

    def _string(self, quote: str) -> str:
        parts: list[str] = []
        self.at += 1
        while True:
            letter = self.text[self.at : self.at + 1]
            self.at += 1
            if letter == quote:
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if not letter or (letter < " " and not self.controls):
                raise ValueError("a text is never closed")
            if letter != "\\":
                parts.append(letter)
                continue
            code = self.text[self.at : self.at + 1]
            self.at += 1
            if code == "u":
                parts.append(chr(int(self.text[self.at : self.at + 4], 16)))
                self.at += 4
            elif code in _ESCAPES:
                parts.append(_ESCAPES[code])
            elif code == "'" and quote == "'":
                parts.append("'")
            else:
                raise ValueError(f"\\{code}")
