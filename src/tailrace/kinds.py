"""Whether a declaration was given what its parameters say.

Python does not look at annotations, and a text where a list is wanted, or a dict where a text
is, would be read as something else or end in an error about its letters. What is checked is what
the annotations of public declarations are made of; anything else is taken. Values are never
told: they may be secrets.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from tailrace.config import EnvironmentValue
from tailrace.masking import Secret

_WORDS: dict[object, str] = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Path: "a path",
    timedelta: "a timedelta",
    types.NoneType: "None",
    EnvironmentValue: 'tr.env("NAME")',
}
_UNKNOWN = object()


def misfit(owner: str, of: Callable[..., Any] | type, given: Mapping[str, object]) -> str | None:
    """What is wrong with the kind of the first argument that does not fit, for people.

    `of` is the function whose parameters, or the dataclass whose fields, `given` holds by name.
    """
    for name, kind in _kinds(of).items():
        if name in given and not _fits(given[name], kind):
            wanted = _words(kind)
            return f"{name} of {owner} must be {wanted}, not {_kind_of(given[name])}"
    return None


def misfit_field(owner: str, declaration: Any) -> str | None:
    """The same of a dataclass that was just made."""
    values = {one.name: getattr(declaration, one.name) for one in fields(declaration) if one.init}
    return misfit(owner, type(declaration), values)


@cache
def _kinds(of: Callable[..., Any] | type) -> dict[str, object]:
    """The annotations by name, those that only a type checker can look up left out."""
    found: dict[str, object] = {}
    for one in reversed(of.__mro__) if isinstance(of, type) else (of,):
        names = vars(sys.modules[one.__module__])
        for name, text in getattr(one, "__annotations__", {}).items():
            try:
                found[name] = eval(text, names) if isinstance(text, str) else text
            except NameError:
                found[name] = _UNKNOWN
    return {name: kind for name, kind in found.items() if get_origin(kind) is not typing.ClassVar}


def _fits(value: object, kind: object) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str)  # which one is told better where it is known
    if origin is tuple or (isinstance(origin, type) and issubclass(origin, Iterable)):
        return _fits_collection(value, origin, parts)
    if origin is Callable or kind is Callable:
        return callable(value)
    if kind is Any or kind is object:
        return True
    if kind is None:
        return value is None
    if kind in (int, float):
        allowed = (int,) if kind is int else (int, float)
        return isinstance(value, allowed) and not isinstance(value, bool)
    if isinstance(kind, type) and not getattr(kind, "_is_protocol", False):
        return isinstance(value, kind)
    return True


def _fits_collection(value: object, origin: type, parts: tuple[object, ...]) -> bool:
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(name, parts[0]) and _fits(item, parts[1]) for name, item in value.items()
        )
    # Sets have no order that lasts: a key of two columns would be another one at each start.
    if not isinstance(value, list | tuple):
        return False
    return not parts or all(_fits(item, parts[0]) for item in value)


def _words(kind: object) -> str:
    if get_origin(kind) in (Union, types.UnionType):
        parts = (part for part in get_args(kind) if part is not Secret)
        words = list(dict.fromkeys(_words(part) for part in parts))
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return _word(kind, get_origin(kind), get_args(kind))


def _word(kind: object, origin: Any, parts: tuple[object, ...]) -> str:
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin is tuple or (isinstance(origin, type) and issubclass(origin, Iterable)):
        if issubclass(origin, Mapping):
            return f"a dict of {_words(parts[1])} by {_words(parts[0])}"
        return f"a list of {_words(parts[0])}" if parts else "a list"
    if origin is Callable:
        return "a function"
    known = _WORDS.get(types.NoneType if kind is None else kind)
    return known or str(getattr(kind, "__name__", kind))


def _kind_of(value: object) -> str:
    """What a value is, without telling it; of a collection what is in it."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        inner = {type(item).__name__ for item in value} - {"str"}
        of = f" with {', '.join(sorted(inner))}" if inner else ""
        return f"{type(value).__name__}{of}"
    if isinstance(value, type) or callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return "None" if value is None else type(value).__name__
