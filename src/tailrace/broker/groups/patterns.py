"""Regular expressions of strangers, matched in linear time.

A consumer may subscribe by a pattern that the broker resolves. Python's own engine can
take for ever on some patterns; this one walks all possibilities side by side (Thompson's
construction), so its time is pattern length × text length. Sets of possibilities seen before
are remembered, so that names of the usual kind cost one look-up a character. Look-around and
references back are refused, as RE2, which Kafka uses, refuses them, and so is a pattern whose
possibilities are so many that the names at hand would take a noticeable time.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

STATES_LIMIT = 20_000
LENGTH_LIMIT = 10_000
# Of one pattern over all names it is held against; well under a tenth of a second.
STEPS_LIMIT = 200_000

Test = Callable[[str], bool]


class PatternError(ValueError):
    """The pattern is malformed or asks for more than it may."""


class Pattern:
    """A compiled pattern that must match a whole name."""

    def __init__(self, text: str) -> None:
        # tests[state] consumes one character; follow[state] are the states without one.
        self._tests: list[Test | None] = []
        self._follow: list[list[int]] = []
        self._sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._moves: dict[tuple[int, str], int] = {}
        self._steps = 0
        if len(text) > LENGTH_LIMIT:
            raise PatternError("the pattern is too long")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                tree: Any = re._parser.parse(text)  # type: ignore[attr-defined]
        except (re.error, RecursionError, OverflowError, Warning) as error:
            raise PatternError(str(error)) from error
        if tree.state.flags & ~re.UNICODE.value:
            raise PatternError("flags are not supported")
        self._end = self._state()
        self._start = self._sequence(list(tree), self._end)
        self._first = -1

    def matches(self, name: str) -> bool:
        """Whether the pattern matches all of `name`. Raises PatternError if that would take
        too long."""
        if self._first < 0:
            self._first = self._number(self._closure([self._start]))
        here = self._first
        for character in name:
            following = self._moves.get((here, character))
            if following is None:
                following = self._move(here, character)
            if following < 0:
                return False
            here = following
        return self._end in self._sets[here]

    def _move(self, here: int, character: str) -> int:
        """The possibilities after one more character; −1 if there are none."""
        states = self._sets[here]
        self._steps += len(states)
        reached = [
            self._follow[state][0]
            for state in states
            if (test := self._tests[state]) is not None and test(character)
        ]
        following = self._number(self._closure(reached)) if reached else -1
        self._moves[here, character] = following
        return following

    def _number(self, states: set[int]) -> int:
        self._steps += len(states)
        if self._steps > STEPS_LIMIT:
            raise PatternError("the pattern has too many possibilities")
        known = frozenset(states)
        number = self._numbers.get(known)
        if number is None:
            number = self._numbers[known] = len(self._sets)
            self._sets.append(known)
        return number

    def _closure(self, states: list[int]) -> set[int]:
        seen: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in seen:
                seen.add(state)
                if self._tests[state] is None:
                    waiting.extend(self._follow[state])
        return seen

    def _state(self, test: Test | None = None, *follow: int) -> int:
        if len(self._tests) >= STATES_LIMIT:
            raise PatternError("the pattern is too large")
        self._tests.append(test)
        self._follow.append(list(follow))
        return len(self._tests) - 1

    def _sequence(self, items: list[Any], end: int) -> int:
        for item in reversed(items):
            end = self._item(item, end)
        return end

    def _item(self, item: Any, end: int) -> int:
        kind, value = item
        match str(kind):
            case "LITERAL":
                return self._state(lambda one, code=value: ord(one) == code, end)  # type: ignore[misc]
            case "NOT_LITERAL":
                return self._state(lambda one, code=value: ord(one) != code, end)  # type: ignore[misc]
            case "ANY":
                return self._state(lambda one: one != "\n", end)
            case "IN":
                return self._state(_one_of(value), end)
            case "BRANCH":
                return self._state(None, *(self._sequence(list(each), end) for each in value[1]))
            case "SUBPATTERN":
                if value[1] or value[2]:
                    raise PatternError("flags are not supported")
                return self._sequence(list(value[3]), end)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, items = value
                return self._repeat(least, most, items, end)
            case "AT" if str(value) in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
                return end  # the whole name is matched in any case
            case "AT" if str(value) in ("AT_END", "AT_END_STRING"):
                return end
            case other:
                raise PatternError(f"{other.lower()} is not supported")

    def _repeat(self, least: int, most: Any, items: Any, end: int) -> int:
        body = list(items)
        if least > 1000 or (str(most) != "MAXREPEAT" and most > 1000):
            raise PatternError("a repeat of more than 1000")
        if str(most) == "MAXREPEAT":
            loop = self._state(None, end)
            self._follow[loop].append(self._sequence(body, loop))
            start = loop
        else:
            start = end
            for _ in range(most - least):
                start = self._state(None, end, self._sequence(body, start))
        for _ in range(least):
            start = self._sequence(body, start)
        return start


def _one_of(parts: Any) -> Test:
    tests: list[Test] = []
    negated = False
    for kind, value in parts:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                tests.append(lambda one, code=value: ord(one) == code)  # type: ignore[misc]
            case "RANGE":
                tests.append(lambda one, ends=value: ends[0] <= ord(one) <= ends[1])  # type: ignore[misc]
            case "CATEGORY":
                tests.append(_category(str(value)))
            case other:
                raise PatternError(f"{other.lower()} is not supported")
    if negated:
        return lambda one: not any(test(one) for test in tests)
    return lambda one: any(test(one) for test in tests)


def _category(name: str) -> Test:
    base = name.removeprefix("CATEGORY_")
    positive: dict[str, Test] = {
        "DIGIT": lambda one: "0" <= one <= "9",
        "SPACE": lambda one: one in " \t\n\r\f\v",
        "WORD": lambda one: one == "_" or (one.isascii() and one.isalnum()),
    }
    if base in positive:
        return positive[base]
    if base.removeprefix("NOT_") in positive:
        test = positive[base.removeprefix("NOT_")]
        return lambda one: not test(one)
    raise PatternError(f"{name.lower()} is not supported")
