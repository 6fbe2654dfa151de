"""Some documents as bit sets: document `n` of the batch is bit `n` of an integer.

A leaf of a query is answered for all documents at once. What words, wildcards and equal values
match is found by going through the documents once; phrases, ranges and the rest when a query
asks for them, and then kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from tailrace.pipelines.engine.percolate.fields import Comparable, Fields, words
from tailrace.pipelines.engine.percolate.language import (
    Everything,
    Leaf,
    Like,
    Phrase,
    Present,
    Range,
)

_SEPARATOR = "\x00"


class Documents:
    """The documents of a batch: values by column, in physical form, and the words of texts."""

    def __init__(self, fields: Fields, columns: Mapping[str, Sequence[object]]) -> None:
        self.fields, self.columns = fields, columns
        self.count = len(next(iter(columns.values()), ()))
        self.full = (1 << self.count) - 1
        self.words: dict[str, list[list[str]]] = {
            name: [words(language, text) if isinstance(text, str) else [] for text in columns[name]]
            for name, language in fields.texts
        }
        self._joined: dict[str, dict[int, str]] = {name: {} for name, _ in fields.texts}
        self._sorted: dict[str, tuple[list[Comparable], list[int]]] = {}

    def phrase(self, leaf: Phrase, among: int) -> int:
        """Which of the documents `among`, which hold all the words, hold them side by side."""
        wanted = f"{_SEPARATOR}{_SEPARATOR.join(leaf.words)}{_SEPARATOR}"
        found = 0
        for number in places(among):
            for column in leaf.columns:
                known = self._joined[column]
                text = known.get(number)
                if text is None:
                    own = self.words[column][number]
                    text = known[number] = f"{_SEPARATOR}{_SEPARATOR.join(own)}{_SEPARATOR}"
                if wanted in text:
                    found |= 1 << number
                    break
        return found

    def range(self, leaf: Range) -> int:
        """The documents with a value between two bounds. NaN lies between none."""
        values, sets = self._in_order(leaf.column)
        first, end = 0, len(values)
        if leaf.low is not None:
            first = (bisect_left if leaf.with_low else bisect_right)(cast(Any, values), leaf.low)
        if leaf.high is not None:
            end = (bisect_right if leaf.with_high else bisect_left)(cast(Any, values), leaf.high)
        return sets[end] & ~sets[first] if first < end else 0

    def like(self, leaf: Like) -> int:
        found, matches = 0, compiled(leaf.pattern)
        answers: dict[object, bool] = {}
        for number, value in enumerate(self.columns[leaf.column]):
            if value is not None:
                known = answers.get(value)
                if known is None:
                    known = answers[value] = matches(str(value))
                if known:
                    found |= 1 << number
        return found

    def present(self, column: str) -> int:
        return sum(1 << n for n, value in enumerate(self.columns[column]) if value is not None)

    def answer(self, leaf: Leaf, among: int) -> int:
        """A leaf that is not found by going through the documents."""
        match leaf:
            case Phrase():
                return self.phrase(leaf, among)
            case Range():
                return self.range(leaf)
            case Like():
                return self.like(leaf)
            case Present():
                return self.present(leaf.column)
            case Everything():
                return self.full
        raise AssertionError(leaf)

    def _in_order(self, column: str) -> tuple[list[Comparable], list[int]]:
        """The values in their order, and the documents that hold the first n of them."""
        if column not in self._sorted:
            held = [
                (cast(Comparable, value), number)
                for number, value in enumerate(self.columns[column])
                if value is not None and value == value
            ]
            held.sort(key=lambda one: cast(int, one[0]))
            sets, so_far = [0], 0
            for _, number in held:
                so_far |= 1 << number
                sets.append(so_far)
            self._sorted[column] = [value for value, _ in held], sets
        return self._sorted[column]


def places(bits: int) -> list[int]:
    """The numbers of the documents of a set, in order."""
    found: list[int] = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


@lru_cache(maxsize=10_000)
def compiled(pattern: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a whole text matches a pattern, in time text × pattern."""
    if pattern.count("*") > 1:  # a regular expression could take for ever
        return lambda text: _matches(pattern, text)
    parts = [re.escape(part[1:]) if part[0] == "=" else ".*" if part == "*" else "." for part in pattern]  # fmt: skip
    match = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda text: match(text) is not None


def _matches(pattern: Sequence[str], text: str) -> bool:
    """Greedy from `*` to `*`: the first place where the part between two fits is as good as any."""
    letters = [letter for part in pattern for letter in ([(one, True) for one in part[1:]] if part[0] == "=" else [(part, False)])]  # fmt: skip
    at = place = 0
    star, resumed = -1, 0
    while place < len(text):
        if at < len(letters) and letters[at] == ("*", False):
            star, resumed = at, place
            at += 1
        elif at < len(letters) and (
            letters[at] == ("?", False) or letters[at] == (text[place], True)
        ):
            at += 1
            place += 1
        elif star >= 0:
            at = star + 1
            resumed += 1
            place = resumed
        else:
            return False
    return all(one == ("*", False) for one in letters[at:])
