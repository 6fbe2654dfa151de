"""Regular expressions of JSON schemas held against names, in time linear in both."""

from __future__ import annotations

from tailrace.broker.groups.patterns import Pattern


def find(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text. Raises ValueError if it cannot be used."""
    before = "" if pattern.startswith("^") else ".*"
    after = "" if pattern.endswith("$") and not pattern.endswith("\\$") else ".*"
    return Pattern(f"{before}(?:{pattern.removeprefix('^')}){after}").matches(text)
