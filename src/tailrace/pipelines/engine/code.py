"""What a function of Python does, as far as its text shows: for the identity of operators.

State holds what a function once gave, so a function whose code has changed is another one. Counted
are its source text, that of the project's own functions and classes it uses, and the constants; of
libraries only the names. What a text cannot show (a file that is read, a changed library) its author
tells by a version.
"""

from __future__ import annotations

import hashlib
import re
import types
from collections.abc import Iterator
from typing import Any

from tailrace.pipelines.engine.identity import encode
from tailrace.pipelines.values.python_source import is_library, names_in, text_of


def digest(function: types.FunctionType) -> str:
    """A name for the code of a function and all that it uses of the project."""
    told = sorted(_parts(function, set()))
    return hashlib.blake2b(
        "\0".join(told).encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


def _parts(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    yield f"{function.__qualname__}={_source(function)}"
    seen.add(id(function))
    defaults = (function.__defaults__ or (), tuple(sorted((function.__kwdefaults__ or {}).items())))
    yield f"defaults={_value(defaults)}"
    for cell in function.__closure__ or ():
        yield from _used("closure", cell.cell_contents, seen)
    for name in sorted(names_in(function.__code__)):
        if name in function.__globals__:
            yield from _used(name, function.__globals__[name], seen)


def _used(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    if id(value) in seen:
        return
    body = getattr(value, "body", None) or getattr(value, "func", None)
    if not isinstance(value, types.FunctionType) and isinstance(body, types.FunctionType):
        value = body  # another declared function
    if isinstance(value, types.FunctionType) and not is_library(value.__module__):
        yield from _parts(value, seen)
    elif isinstance(value, type) and not is_library(value.__module__):
        seen.add(id(value))
        yield f"{name}={text_of(value)}"
        for part in vars(value).values():
            inner = getattr(part, "__func__", getattr(part, "fget", part))
            if isinstance(inner, types.FunctionType):
                yield from _used(name, inner, seen)
    elif isinstance(value, types.ModuleType) and not is_library(value.__name__):
        seen.add(id(value))
        yield f"{name}={text_of(value)}"
    else:
        yield f"{name}={_value(value)}"


def _source(function: types.FunctionType) -> str:
    text = text_of(function)
    return text if text else function.__code__.co_code.hex() + repr(function.__code__.co_consts)


def _value(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r} {value.flags}"
    if isinstance(value, set | frozenset):
        return " ".join(sorted(map(_value, value)))
    try:
        return encode(value).hex()
    except (TypeError, RecursionError):
        kind = type(value)
        name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        return f"{getattr(value, '__module__', None)}.{name} {kind.__module__}.{kind.__qualname__}"
