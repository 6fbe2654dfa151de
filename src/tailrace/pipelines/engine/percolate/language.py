"""The language of stored queries: text → tree.

    query   = clause+                        any of them (or all: see `Fields.every`)
    clause  = either
    either  = both (OR both)*
    both    = part (AND part)*
    part    = ("+" | "-" | NOT)* piece       + must be, - and NOT must not be
    piece   = "(" query ")" | field ":" value | "phrase" | word | prefix* | wild?card | *
    value   = "(" query ")" | word | "phrase" | [a TO b] | {a TO b} | >n | >=n | <n | <=n

A backslash takes the meaning from the next character; inside of quotes only backslashes mean
something. What this grammar has no meaning for is an error with its place, never left out.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tailrace.analyzers import LEFT_OUT
from tailrace.pipelines.engine.percolate.fields import Comparable, Fields, ValueFault, reader, words

MOST_LENGTH = 20_000  # characters of one query
MOST_DEPTH = 100
_PLAIN_END = set(' \t\r\n()"')


class QueryFault(ValueError):
    """A stored query that cannot be read: what is wrong, and at which character (from 1)."""

    def __init__(self, reason: str, at: int) -> None:
        ValueError.__init__(self, f"{reason}, at character {at + 1}")
        self.reason, self.at = reason, at + 1


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words next to each other in one of some text columns; of one word: that word."""

    columns: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wild:
    """A word with `*` (any characters) or `?` (one): `parts` lie around them."""

    columns: tuple[str, ...]
    pattern: tuple[str, ...]  # literal text, "*" and "?" in turn; literals are marked: "=text"


@dataclass(frozen=True, slots=True)
class Equal:
    column: str
    value: Comparable


@dataclass(frozen=True, slots=True)
class Range:
    """None: no bound on that side."""

    column: str
    low: Comparable | None
    high: Comparable | None
    with_low: bool = True
    with_high: bool = True


@dataclass(frozen=True, slots=True)
class Like:
    """A text value that is compared as a whole, with wildcards: see `Wild`."""

    column: str
    pattern: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Present:
    """There is a value."""

    column: str


@dataclass(frozen=True, slots=True)
class Everything:
    """Matches all documents."""


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Tree


Leaf: TypeAlias = "Phrase | Wild | Equal | Range | Like | Present | Everything"
Tree: TypeAlias = "Leaf | And | Or | Not"


class _Text(NamedTuple):
    """A word as it is written, without its backslashes."""

    letters: str
    special: frozenset[int]  # places of `*` and `?` that are wildcards
    at: int


def parse_query(text: str, fields: Fields) -> Tree:
    """The tree of a query; QueryFault if it cannot be read."""
    if len(text) > MOST_LENGTH:
        raise QueryFault(f"the query is longer than {MOST_LENGTH:,} characters", MOST_LENGTH)
    parser = _Parser(text, fields)
    tree = parser.query(None, 0)
    if parser.at < len(text):
        raise QueryFault('")" closes nothing', parser.at)
    return tree


def pattern_text(pattern: tuple[str, ...]) -> str:
    """A pattern as it is written."""
    return "".join(part.removeprefix("=") for part in pattern)


class _Parser:
    def __init__(self, text: str, fields: Fields) -> None:
        self.text, self.fields, self.at = text, fields, 0

    # Characters ---------------------------------------------------------------------------

    def _space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _next(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def _keyword(self, word: str) -> bool:
        """Take a word in capitals that stands alone."""
        end = self.at + len(word)
        if not self.text.startswith(word, self.at):
            return False
        if end < len(self.text) and not (self.text[end].isspace() or self.text[end] in '()"'):
            return False
        self.at = end
        return True

    # Structure ----------------------------------------------------------------------------

    def query(self, column: str | None, depth: int) -> Tree:
        if depth > MOST_DEPTH:
            raise QueryFault("groups are nested too deeply", self.at)
        began = self.at
        must: list[Tree] = []
        may: list[Tree] = []
        never: list[Tree] = []
        while True:
            self._space()
            if self.at == len(self.text) or self._next() == ")":
                break
            sign, tree = self._either(column, depth)
            (must if sign == "+" else never if sign == "-" else may).append(tree)
        if not (must or may or never):
            raise QueryFault("an empty group" if depth else "nothing to look for", began)
        if self.fields.every:
            must, may = [*must, *may], []
        wanted: list[Tree] = must or ([_either_of(may)] if may else [Everything()])
        parts = [*wanted, *(Not(tree) for tree in never)]
        if never and not must and not may:
            parts = parts[1:]
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _either(self, column: str | None, depth: int) -> tuple[str, Tree]:
        """A clause, and the sign of one that is a single part."""
        sign, tree = self._both(column, depth)
        parts = [(sign, tree)]
        while self._joins("OR"):
            parts.append(self._both(column, depth))
        if len(parts) == 1:
            return parts[0]
        return "", Or(tuple(_signed(*one) for one in parts))

    def _both(self, column: str | None, depth: int) -> tuple[str, Tree]:
        parts = [self._part(column, depth)]
        while self._joins("AND"):
            parts.append(self._part(column, depth))
        if len(parts) == 1:
            return parts[0]
        return "", And(tuple(_signed(*one) for one in parts))

    def _joins(self, word: str) -> bool:
        self._space()
        return self._keyword(word)

    def _part(self, column: str | None, depth: int) -> tuple[str, Tree]:
        sign = ""
        while True:
            self._space()
            began = self.at
            if self._keyword("NOT"):
                sign = "" if sign == "-" else "-"
            elif self._next() in ("+", "-") and self._next():
                own = self._next()
                self.at += 1
                if self.at == len(self.text) or self._next().isspace():
                    raise QueryFault(f'"{own}" belongs to nothing', began)
                sign = own if sign != "-" else ("" if own == "-" else "-")
            else:
                break
        return sign, self._piece(column, depth)

    def _piece(self, column: str | None, depth: int) -> Tree:
        began = self.at
        if self.at == len(self.text) or self._next() == ")":
            raise QueryFault("something to look for is missing", self.at)
        for word in ("AND", "OR"):
            if self._keyword(word):
                raise QueryFault(f'"{word}" stands between nothing', began)
        if self._next() == "(":
            return self._group(column, depth)
        if self._next() == '"':
            return self._whole(column, self._quoted())
        if column is not None and self._next() in "[{<>":
            return self._bounds(column)
        text = self._word(colon=column is None)
        if column is None and self._next() == ":":
            self.at += 1
            return self._of_column(text, depth)
        return self._of_word(column, text)

    def _group(self, column: str | None, depth: int) -> Tree:
        began = self.at
        self.at += 1
        tree = self.query(column, depth + 1)
        if self._next() != ")":
            raise QueryFault('"(" is not closed', began)
        self.at += 1
        return tree

    def _of_column(self, name: _Text, depth: int) -> Tree:
        if name.letters == "*" and self._keyword("*"):
            return Everything()
        column = self.fields.find(name.letters)
        if column is None:
            near = difflib.get_close_matches(name.letters, self.fields.names, 1)
            known = (
                f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self.fields.names)}"
            )
            raise QueryFault(
                f"no column {name.letters!r} ({known}; quote a colon in text)", name.at
            )
        if self.at == len(self.text) or self._next().isspace():
            raise QueryFault(f"no value behind {name.letters!r}:", self.at)
        if self._next() == "(":
            return self._group(column, depth)
        if self._next() == '"':
            return self._whole(column, self._quoted())
        if self._next() in "[{<>":
            return self._bounds(column)
        return self._of_word(column, self._word(colon=False))

    # Words --------------------------------------------------------------------------------

    def _word(self, *, colon: bool) -> _Text:
        """Characters up to a space, a bracket, a quote (or a colon)."""
        began, letters, special = self.at, list[str](), set[int]()
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in _PLAIN_END or letter.isspace() or (letter == ":" and colon):
                break
            if letter == "\\":
                self.at += 1
                if self.at == len(self.text):
                    raise QueryFault("a backslash at the end", self.at - 1)
                letter = self.text[self.at]
            elif letter in "[]{}^~":
                raise QueryFault(
                    f'"{letter}" has no meaning here: put a backslash before it', self.at
                )
            elif letter in "*?":
                special.add(len(letters))
            letters.append(letter)
            self.at += 1
        if not letters:
            raise QueryFault(f'"{self._next()}" has no meaning here', self.at)
        return _Text("".join(letters), frozenset(special), began)

    def _quoted(self) -> _Text:
        began, letters = self.at, list[str]()
        self.at += 1
        while True:
            if self.at >= len(self.text):
                raise QueryFault("a quote is not closed", began)
            letter = self.text[self.at]
            self.at += 1
            if letter == '"':
                break
            if letter == "\\":
                if self.at == len(self.text):
                    raise QueryFault("a quote is not closed", began)
                letter = self.text[self.at]
                self.at += 1
            letters.append(letter)
        if self._next() in ("~", "^") and self._next():
            raise QueryFault(f'"{self._next()}" behind a phrase has no meaning here', self.at)
        return _Text("".join(letters), frozenset(), began)

    def _of_word(self, column: str | None, word: _Text) -> Tree:
        if not word.special:
            return self._whole(column, word)
        if word.letters == "*":
            return Everything() if column is None else Present(column)
        pattern = _pattern_of(word)
        if column is not None and self.fields.language(column) is None:
            if reader(self.fields.type(column)) is not str:
                raise QueryFault(f"{column!r} holds no text: wildcards mean nothing", word.at)
            return Like(column, pattern)
        small = tuple(
            f"={self._checked(part[1:], word).lower()}" if part[0] == "=" else part
            for part in pattern
        )
        groups = self._groups(column, word)
        return _either_of([Wild(names, small) for _, names in groups])

    def _checked(self, text: str, word: _Text) -> str:
        """Characters that a word can hold."""
        if words("", text) != [text.lower()]:
            raise QueryFault(f"{word.letters!r}: only letters and digits stand beside wildcards", word.at)  # fmt: skip
        return text

    def _whole(self, column: str | None, text: _Text) -> Tree:
        if column is not None and self.fields.language(column) is None:
            return Equal(column, self._value(column, text))
        found: list[Tree] = []
        for language, names in self._groups(column, text):
            cut = words(language, text.letters)
            if not cut:
                raise QueryFault(f"{text.letters!r} has no letters or digits", text.at)
            if LEFT_OUT in cut:
                raise QueryFault("words of 40 bytes and more are not searched", text.at)
            found.append(Phrase(names, tuple(cut)))
        return _either_of(found)

    def _groups(self, column: str | None, text: _Text) -> list[tuple[str, tuple[str, ...]]]:
        if column is not None:
            return [(self.fields.language(column) or "", (column,))]
        groups = self.fields.groups()
        if not groups:
            raise QueryFault("no column is searched by words: name one, as in country:DE", text.at)
        return groups

    # Values -------------------------------------------------------------------------------

    def _value(self, column: str, text: _Text) -> Comparable:
        try:
            return reader(self.fields.type(column))(text.letters)
        except ValueFault as fault:
            raise QueryFault(f"{column}: {fault}", text.at) from None

    def _bounds(self, column: str) -> Tree:
        began = self.at
        if self.fields.language(column) is not None:
            raise QueryFault(f"{column!r} is searched by words: ranges are for fields=", began)
        if self._next() in "<>":
            larger = self._next() == ">"
            self.at += 1
            included = self._next() == "="
            self.at += included
            value = self._value(column, self._bound())
            if larger:
                return Range(column, value, None, with_low=included)
            return Range(column, None, value, with_high=included)
        with_low = self._next() == "["
        self.at += 1
        low = self._end(column)
        self._space()
        if not self._keyword("TO"):
            raise QueryFault('a range is [a TO b]: "TO" is missing', self.at)
        high = self._end(column)
        self._space()
        if self._next() not in ("]", "}") or not self._next():
            raise QueryFault("a range is not closed", began)
        with_high = self._next() == "]"
        self.at += 1
        return Range(column, low, high, with_low, with_high)

    def _end(self, column: str) -> Comparable | None:
        self._space()
        text = self._bound()
        return None if text.special and text.letters == "*" else self._value(column, text)

    def _bound(self) -> _Text:
        if self._next() == '"':
            return self._quoted()
        began, letters, special = self.at, list[str](), set[int]()
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter.isspace() or letter in '[]{}()"':
                break
            if letter == "\\" and self.at + 1 < len(self.text):
                self.at += 1
                letter = self.text[self.at]
            elif letter == "*":
                special.add(len(letters))
            letters.append(letter)
            self.at += 1
        if not letters:
            raise QueryFault("a bound is missing", began)
        return _Text("".join(letters), frozenset(special), began)


def _signed(sign: str, tree: Tree) -> Tree:
    return Not(tree) if sign == "-" else tree


def _either_of(parts: list[Tree] | list[Wild] | list[Phrase]) -> Tree:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _pattern_of(word: _Text) -> tuple[str, ...]:
    parts: list[str] = []
    for place, letter in enumerate(word.letters):
        if place in word.special:
            if letter != "*" or parts[-1:] != ["*"]:
                parts.append(letter)
        elif parts and parts[-1][0] == "=":
            parts[-1] += letter
        else:
            parts.append(f"={letter}")
    return tuple(parts)
