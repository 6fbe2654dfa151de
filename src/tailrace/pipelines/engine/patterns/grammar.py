"""The text of a row pattern → a tree.

    pattern   := sequence ('|' sequence)*
    sequence  := quantified*
    quantified:= primary quantifier?
    quantifier:= ('*' | '+' | '?' | '{n}' | '{n,}' | '{n,m}' | '{,m}') '?'?
    primary   := name | '"name"' | '`name`' | '(' pattern? ')' | '{-' pattern '-}' | '^' | '$'
               | PERMUTE '(' pattern (',' pattern)* ')'

Names are upper case unless they are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MOST_DEPTH = 100
MOST_PERMUTED = 7


class PatternError(Exception):
    """What is wrong with a pattern, and the place: a range of its text."""

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.start, self.end, self.hint = message, start, end, hint


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; () matches no row."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """The first that leads to a match."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` None: any number of turns. `greedy`: one more turn is preferred to none."""

    part: Tree
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Permutation:
    """All parts, in any order; orders are preferred as they come when parts are numbered."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Rows that belong to the match and are not shown."""

    part: Tree


@dataclass(frozen=True, slots=True)
class Anchor:
    """The first row of the partition is next (`^`), or the last one was before (`$`)."""

    end: bool


@dataclass(frozen=True, slots=True)
class Absence:
    """The time in which a row may belong to the match is over (see `steps`)."""


Tree: TypeAlias = (
    Variable | Sequence | Alternation | Repeat | Permutation | Exclusion | Anchor | Absence
)

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<open>\{-)|(?P<close>-\})|(?P<count>\{\s*\d*\s*(?:,\s*\d*\s*)?\})
    |(?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)|(?P<name>[^\W\d]\w*)|(?P<sign>[()|*+?^$,])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, more: re.Pattern[str] | None = None) -> Iterator[Token]:
    """The tokens of a pattern, and those of `more`, by the names of its groups."""
    at = 0
    while at < len(text):
        found = (more.match(text, at) if more is not None else None) or _TOKEN.match(text, at)
        if found is None:
            raise PatternError("this has no meaning in a pattern", at, at + 1)
        if found.lastgroup != "space":
            yield Token(str(found.lastgroup), found[0], at, found.end())
        at = found.end()
    yield Token("end", "", at, at + 1)


def parse_pattern(text: str) -> Tree:
    """The tree of a pattern; PatternError points into `text`."""
    parser = Parser(list(tokens(text)))
    tree = parser.pattern(0)
    last = parser.next
    if last.kind != "end":
        raise PatternError(f"{last.text!r} closes nothing", last.start, last.end)
    return tree


def variables_of(tree: Tree) -> Iterator[Variable]:
    """The variables of a pattern, as they stand in it."""
    match tree:
        case Variable():
            yield tree
        case Sequence() | Alternation() | Permutation():
            for part in tree.parts:
                yield from variables_of(part)
        case Repeat() | Exclusion():
            yield from variables_of(tree.part)
        case Anchor() | Absence():
            pass


def excludes(tree: Tree) -> bool:
    """Whether a pattern has rows that are not shown."""
    match tree:
        case Exclusion():
            return True
        case Sequence() | Alternation() | Permutation():
            return any(map(excludes, tree.parts))
        case Repeat():
            return excludes(tree.part)
    return False


def unquoted(name: str) -> str:
    """A name as it is written → the name of the variable."""
    if name[:1] in ('"', "`"):
        return name[1:-1].replace(name[0] * 2, name[0])
    return name.upper()


class Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, sign: str) -> bool:
        if self.next.kind in ("sign", "open", "close") and self.next.text == sign:
            self.at += 1
            return True
        return False

    def pattern(self, depth: int) -> Tree:
        if depth > MOST_DEPTH:
            here = self.next
            raise PatternError(
                f"groups are nested more than {MOST_DEPTH} deep", here.start, here.end
            )
        parts = [self.sequence(depth)]
        while self.take("|"):
            parts.append(self.sequence(depth))
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def sequence(self, depth: int) -> Tree:
        parts: list[Tree] = []
        while True:
            part = self.primary(depth)
            if part is None:
                break
            parts.append(self.quantified(part))
        if not parts:
            here = self.next
            raise PatternError("nothing stands here", here.start, here.end, "() matches no row")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def primary(self, depth: int) -> Tree | None:
        token = self.next
        if token.kind == "name" and token.text.upper() == "PERMUTE":
            following = self.tokens[self.at + 1]
            if following.text == "(":
                self.at += 2
                return self.permutation(token, depth)
        if token.kind in ("name", "quoted"):
            self.at += 1
            return Variable(unquoted(token.text), token.start, token.end)
        if self.take("^"):
            return Anchor(False)
        if self.take("$"):
            return Anchor(True)
        if self.take("("):
            if self.take(")"):
                return Sequence(())
            return self.closed(token, ")", depth)
        if self.take("{-"):
            return Exclusion(self.closed(token, "-}", depth))
        if token.kind == "count" or token.text in ("*", "+", "?"):
            raise PatternError("nothing stands before this quantifier", token.start, token.end)
        return None

    def closed(self, opened: Token, sign: str, depth: int) -> Tree:
        inner = self.pattern(depth + 1)
        if not self.take(sign):
            raise PatternError(f"{opened.text!r} is never closed", opened.start, opened.end)
        return inner

    def permutation(self, named: Token, depth: int) -> Tree:
        parts: list[Tree] = []
        while True:
            parts.append(self.pattern(depth + 1))
            if not self.take(","):
                break
        if not self.take(")"):
            raise PatternError("the PERMUTE ( is never closed", named.start, named.end)
        if len(parts) > MOST_PERMUTED:
            raise PatternError(
                f"a PERMUTE of {len(parts)} elements, at most {MOST_PERMUTED}",
                named.start, named.end, "write the orders you need as alternatives",
            )  # fmt: skip
        return Permutation(tuple(parts))

    def quantified(self, part: Tree) -> Tree:
        token = self.next
        least, most = 0, None
        if token.kind == "count":
            self.at += 1
            least, most = _bounds(token)
        elif self.take("+"):
            least = 1
        elif self.take("?"):
            most = 1
        elif not self.take("*"):
            return part
        greedy = not self.take("?")
        further = self.next
        if further.kind == "count" or further.text in ("*", "+", "?"):
            raise PatternError(
                "a second quantifier", further.start, further.end, "put the first into a group"
            )
        return Repeat(part, least, most, greedy)


def _bounds(token: Token) -> tuple[int, int | None]:
    low, comma, high = token.text[1:-1].partition(",")
    low, high = low.strip(), high.strip()
    if len(low) > 9 or len(high) > 9:
        raise PatternError("this number is too large", token.start, token.end)
    if not comma:
        if not low:
            raise PatternError("a number of turns is missing", token.start, token.end)
        least = int(low)
        most: int | None = least
    else:
        if not low and not high:
            raise PatternError("a number of turns is missing", token.start, token.end)
        least, most = int(low or 0), int(high) if high else None
    if most == 0:
        raise PatternError("at most 0 turns", token.start, token.end, "the most is 1 or more")
    if most is not None and most < least:
        raise PatternError(f"at least {least} turns and at most {most}", token.start, token.end)
    return least, most
