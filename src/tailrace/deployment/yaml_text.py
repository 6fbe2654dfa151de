"""Documents as YAML that people like to read: block style, text of several lines as it is.

Only what a manifest has: mappings, lists, text, whole numbers, flags. Text is quoted unless
nobody could take it for something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Node: TypeAlias = "str | int | bool | Mapping[str, Node] | Sequence[Node]"

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_BLOCK = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff][ -~\n]*\n")


def text_of(document: Mapping[str, Node]) -> str:
    """One document, ending in a line feed."""
    return "".join(f"{line}\n" for line in _mapping(document, ""))


def _mapping(items: Mapping[str, Node], indent: str) -> Iterator[str]:
    for key, value in items.items():
        yield from _entry(f"{indent}{_scalar(key)}:", value, f"{indent}  ")


def _entry(head: str, value: Node, indent: str) -> Iterator[str]:
    match value:
        case str() if _BLOCK.fullmatch(value) and not value.endswith("\n\n"):
            yield f"{head} |"
            yield from (f"{indent}{line}" if line else "" for line in value[:-1].split("\n"))
        case str() | bool() | int():
            yield f"{head} {_scalar(value)}"
        case Mapping():
            yield head if value else f"{head} {{}}"
            yield from _mapping(value, indent)
        case _:
            yield head if value else f"{head} []"
            yield from _list(value, indent)


def _list(items: Sequence[Node], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *further = _mapping(item, f"{indent}  ")
            yield f"{indent}- {first.lstrip()}"
            yield from further
        else:
            yield from _entry(f"{indent}-", item, f"{indent}  ")


def _scalar(value: str | bool | int) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(map(_character, value)) + '"'


def _character(one: str) -> str:
    if one in '"\\':
        return f"\\{one}"
    return one if " " <= one <= "~" else f"\\U{ord(one):08x}"
