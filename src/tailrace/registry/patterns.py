"""Regular expressions of JSON schemas held against names, in time linear in both."""

from __future__ import annotations

from functools import lru_cache

from tailrace.broker.groups.patterns import Pattern

LENGTH_LIMIT = 1000


def find(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text. Raises ValueError if it cannot be used."""
    if len(pattern) > LENGTH_LIMIT:
        raise ValueError("the pattern is too long")
    return any(Pattern(one).matches(text) for one in alternatives(pattern))


@lru_cache(maxsize=500)
def alternatives(pattern: str) -> tuple[str, ...]:
    """Patterns for whole texts, of which one fits where `pattern` is found. Raises ValueError."""
    means = _meaning(pattern)
    found = []
    start = depth = 0
    for place in range(len(pattern) + 1):
        one = pattern[place : place + 1]
        if one and means[place]:
            depth += (one == "(") - (one == ")")
        if not one or (one == "|" and means[place] and depth == 0):
            found.append(_anchored(pattern[start:place], means[start:place]))
            start = place + 1
    return tuple(found)


def _anchored(pattern: str, means: list[bool]) -> str:
    begins = pattern.startswith("^")
    ends = len(pattern) > begins and pattern.endswith("$") and means[-1]
    last = len(pattern) - ends
    if any(pattern[at] in "^$" and means[at] for at in range(begins, last)):
        raise ValueError("an anchor in the middle of a pattern")
    return f"{'' if begins else '.*'}(?:{pattern[begins:last]}){'' if ends else '.*'}"


def _meaning(pattern: str) -> list[bool]:
    """For each sign whether it means something: it is not escaped, and in no class."""
    means: list[bool] = []
    in_class = False
    while len(means) < len(pattern):
        at = len(means)
        one = pattern[at]
        means.append(not in_class)
        if one == "\\":
            means.append(False)
        elif one == "[" and not in_class:
            in_class = True
            if pattern[at + 1 : at + 2] == "^":
                means.append(False)
            if pattern[len(means) : len(means) + 1] == "]":
                means.append(False)  # the first one is a member
        elif one == "]":
            in_class = False
    return means[: len(pattern)]
