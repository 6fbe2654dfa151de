"""Lines of a file: where they end, and which of them belong together.

Patterns are matched in time linear in pattern and line, whatever they are (`registry.patterns`).
"""

from __future__ import annotations

from tailrace.broker.groups.patterns import Pattern, PatternError
from tailrace.registry.patterns import LENGTH_LIMIT, alternatives

SEARCHED_CHARACTERS = 512


class LinePattern:
    """A pattern that is looked for near the start of lines. Raises ValueError if it cannot be used."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > LENGTH_LIMIT:
            raise ValueError("the pattern is too long")
        self._alternatives = alternatives(pattern)
        self._compiled = self._compile()
        self.found("")

    def _compile(self) -> list[Pattern]:
        return [Pattern(one) for one in self._alternatives]

    def found(self, line: str) -> bool:
        text = line[:SEARCHED_CHARACTERS]
        try:
            return any(one.matches(text) for one in self._compiled)
        except PatternError:
            # What it has learnt from all lines so far is too much: it begins again with this one.
            self._compiled = self._compile()
            return any(one.matches(text) for one in self._compiled)


def newline_of(encoding: str) -> bytes:
    """A newline in an encoding, without a mark of byte order."""
    if encoding in ("utf-16", "utf-32"):
        encoding += "-le"
    return "\n".encode(encoding)


def last_end(data: bytes, newline: bytes) -> int:
    """Behind the last newline; 0 if there is none."""
    width, at = len(newline), len(data)
    while True:
        at = data.rfind(newline, 0, at)
        if at < 0:
            return 0
        if at % width == 0:
            return at + width
        at += width - 1


def split(data: bytes, newline: bytes) -> list[bytes]:
    """The lines of a text, without their newlines; what is behind the last one is a line too."""
    width = len(newline)
    if width == 1:
        return data.split(newline)
    found: list[bytes] = []
    start = at = 0
    while (at := data.find(newline, at)) >= 0:
        if at % width:
            at += 1
            continue
        found.append(data[start:at])
        start = at = at + width
    found.append(data[start:])
    return found


class Joiner:
    """Puts lines together that are one record. What it holds back is not read yet, for an offset."""

    def __init__(self, pattern: str, *, starts: bool, most_lines: int, encoding: str) -> None:
        self.active = bool(pattern)
        self._pattern = LinePattern(pattern) if pattern else None
        self._starts = starts
        self._most = most_lines
        self._encoding = encoding
        self._held: list[bytes] = []

    @property
    def waiting(self) -> bool:
        return bool(self._held)

    def add(self, line: bytes) -> list[bytes] | None:
        """The record before, if this line begins another."""
        assert self._pattern is not None
        text = line[: SEARCHED_CHARACTERS * 4].decode(self._encoding, "replace")
        begins = self._pattern.found(text) == self._starts or len(self._held) >= self._most
        if begins and self._held:
            done, self._held = self._held, [line]
            return done
        self._held.append(line)
        return None

    def flush(self) -> list[bytes] | None:
        """The record that is waiting, if there is one."""
        done, self._held = self._held, []
        return done or None
