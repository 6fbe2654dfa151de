"""Names of subjects and contexts.

`orders-value` is in the default context, written `.`; `:.eu:orders-value` is in the context
`.eu`, and `:.eu:` is that context itself, for its settings. `:.__GLOBAL:` is above all contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
EVERY_CONTEXT = ":*:"
_RESERVED = ("__GLOBAL", "__EMPTY")


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """A subject's name in its context; an empty name is the context itself."""

    context: str
    name: str

    def __str__(self) -> str:
        return f"{prefix_of(self.context)}{self.name}"


def prefix_of(context: str) -> str:
    """What stands before the names of a context's subjects."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def parse_subject(text: str) -> Subject:
    if text.startswith(":."):
        context, colon, name = text[1:].partition(":")
        return Subject(context, name if colon else "")
    return Subject(DEFAULT_CONTEXT, text)


def normal_subject(text: str) -> str:
    """The one spelling of a subject."""
    return str(parse_subject(text))


def context_of(text: str) -> str:
    return parse_subject(text).context


def within(subject: str, parent: str) -> str:
    """A subject named without a context is in that of the schema that refers to it."""
    named = parse_subject(subject)
    if named.context != DEFAULT_CONTEXT or subject.startswith(":.:"):
        return str(named)
    return str(Subject(context_of(parent), named.name))


def is_valid(text: str, *, setting: bool = False) -> bool:
    """Whether a subject may have this name; `setting`: whether it may have a configuration."""
    if any(ord(one) < 32 or 127 <= ord(one) < 160 for one in text):
        return False
    named = parse_subject(text)
    if not setting and (not named.name or named.context == GLOBAL_CONTEXT):
        return False
    return named.name not in _RESERVED
