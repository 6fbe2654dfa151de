"""SQL's LIKE, in time that grows with the text and not with its square.

A pattern is cut at its `%`. The first piece must stand at the beginning of the text, the last one
at its end, and each of the others at the leftmost place behind the piece before it: a place further
right can never help, so nothing is tried twice. Pieces without `_` are found by `str.find`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_MUCH = 10_000_000
"""Letters of a piece with `_` times letters of the text, from which on it is sought bit by bit."""

_ANY = None
"""What stands for `_` in a piece."""

_Piece = tuple[str | None, ...]
_Find = Callable[[str, int, int], int]


@lru_cache(1024)
def compile_like(pattern: str, escape: str | None = "\\") -> Callable[[str], bool]:
    """Whether a text is LIKE `pattern`: `%` is any text, `_` any letter (a code point).

    `escape` takes its meaning from the `%`, `_` or `escape` behind it; None: there is no such
    letter. Anything else behind it, or nothing, is a ValueError, as it is an error in Spark.
    """
    pieces = _pieces(pattern, escape)
    if len(pieces) == 1:
        whole, exact = _text(pieces[0]), _at(pieces[0])
        if whole is not None:
            return whole.__eq__
        length = len(pieces[0])
        return lambda text: len(text) == length and exact(text, 0)
    first, *between, last = pieces
    finders = [(_finder(piece), len(piece)) for piece in between if piece]
    begins, ends = _at(first), _at(last)
    start, tail = len(first), len(last)
    solid = [_text(piece) for piece in pieces if piece]
    if len(solid) == 1 and isinstance(solid[0], str):  # a%, %a and %a%, as most patterns are
        only = solid[0]
        if first:
            return lambda text: text.startswith(only)
        if last:
            return lambda text: text.endswith(only)
        return lambda text: only in text

    def matches(text: str) -> bool:
        end = len(text) - tail
        if end < start or not begins(text, 0) or not ends(text, end):
            return False
        at = start
        for find, length in finders:
            at = find(text, at, end)
            if at < 0:
                return False
            at += length
        return True

    return matches


def _pieces(pattern: str, escape: str | None) -> list[_Piece]:
    """What stands between the `%`s."""
    pieces: list[list[str | None]] = [[]]
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            meant = next(letters, "")
            if meant not in ("%", "_", escape):
                where = f"precede {meant!r}" if meant else "end the pattern"
                raise ValueError(f"the escape character {escape!r} may not {where}")
            pieces[-1].append(meant)
        elif letter == "%":
            pieces.append([])
        else:
            pieces[-1].append(_ANY if letter == "_" else letter)
    return [tuple(piece) for piece in pieces]


def _text(piece: _Piece) -> str | None:
    """The text that a piece is; None if it has a `_`."""
    return None if _ANY in piece else "".join(letter for letter in piece if letter is not None)


def _at(piece: _Piece) -> Callable[[str, int], bool]:
    """Whether a piece stands at a place of a text."""
    text = _text(piece)
    if text is not None:
        return lambda whole, at: whole.startswith(text, at)
    pattern = _regex(piece)
    return lambda whole, at: pattern.match(whole, at) is not None


def _regex(piece: _Piece) -> re.Pattern[str]:
    parts = ("." if letter is None else re.escape(letter) for letter in piece)
    return re.compile("".join(parts), re.DOTALL)


def _finder(piece: _Piece) -> _Find:
    """The leftmost place of a piece between two places of a text; -1 if there is none."""
    text = _text(piece)
    if text is not None:
        return lambda whole, start, end: whole.find(text, start, end)
    if not any(piece):
        length = len(piece)
        return lambda whole, start, end: start if end - start >= length else -1
    pattern = _regex(piece)

    def find(whole: str, start: int, end: int) -> int:
        if (end - start) * len(piece) > _MUCH:
            return _shift_and(piece, whole, start, end)
        found = pattern.search(whole, start, end)
        return found.start() if found else -1

    return find


def _shift_and(piece: _Piece, text: str, start: int, end: int) -> int:
    """`_finder` for large pieces in large texts: bit n is set while n + 1 letters agree."""
    anything = sum(1 << at for at, letter in enumerate(piece) if letter is None)
    masks: dict[str, int] = {}
    for at, letter in enumerate(piece):
        if letter is not None:
            masks[letter] = masks.get(letter, anything) | 1 << at
    whole, agree = 1 << len(piece) - 1, 0
    for at in range(start, end):
        agree = (agree << 1 | 1) & masks.get(text[at], anything)
        if agree & whole:
            return at - len(piece) + 1
    return -1
