"""What a function of Python does, as far as its text shows: for the identity of operators.

State holds what a function once gave, so a function whose code has changed is another one. Counted
are its source text, that of the project's own functions, classes and modules it uses, also in
containers, in objects and behind decorators, and the constants; of libraries only the names. What a
text cannot show (a file that is read, a changed library) its author tells by a version.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import re
import types
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tailrace.pipelines.engine.identity import encode
from tailrace.pipelines.values.python_source import is_library, is_library_to_be, names_in, text_of


def digest(function: types.FunctionType) -> str:
    """A name for the code of a function and all that it uses of the project."""
    told = sorted(_parts(function, {}))
    return hashlib.blake2b(
        "\0".join(told).encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


_Seen = dict[object, Any]  # what was told, by `id`; held, so that no other has the same one


def _parts(function: types.FunctionType, seen: _Seen) -> Iterator[str]:
    seen[id(function)] = function
    own = not is_library(function.__globals__.get("__name__"))  # else a library's decorator made it
    yield f"{function.__qualname__}={_source(function.__code__) if own else ''}"
    defaults = (function.__defaults__ or (), tuple(sorted((function.__kwdefaults__ or {}).items())))
    yield from _used("defaults", defaults, seen)
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # nothing is in it yet
            yield from _used("closure", cell.cell_contents, seen)
    yield from _used("wrapped", getattr(function, "__wrapped__", None), seen)
    names = names_in(function.__code__) if own else frozenset()
    for name in sorted(names):
        if name in function.__globals__:
            yield from _used(name, function.__globals__[name], seen, names)
    for module in _imported(function.__code__, function.__globals__) if own else ():
        yield from _used("import", module, seen, names)


def _imported(code: types.CodeType, known: dict[str, Any]) -> Iterator[types.ModuleType]:
    """The project's modules that code imports when it is called."""
    before: list[Any] = [None, None]
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            level, names = before
            top = str(one.argval).partition(".")[0]
            if level or not is_library_to_be(top):
                with contextlib.suppress(Exception):  # it may be there for some, and say so itself
                    found = __import__(one.argval, known, None, names or (), level or 0)
                    yield found
        before = [before[1], one.argval]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _imported(constant, known)


def _used(
    name: str, value: Any, seen: _Seen, names: Collection[str] = frozenset()
) -> Iterator[str]:
    """A value by the name it is used by. `names`: what the code that uses it asks of modules."""
    match value:
        case types.FunctionType() | type() | types.ModuleType():
            yield f"{name}={_named(value)}"
            module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
            if is_library(module):
                return
            if isinstance(value, types.ModuleType):
                yield from _module(value, seen, names)
            elif id(value) in seen:
                return
            elif isinstance(value, type):
                yield from _class(value, seen)
            else:
                yield from _parts(value, seen)
        case functools.partial():
            yield f"{name}=partial"
            yield from _used(f"{name}()", (value.func, value.args, value.keywords), seen)
        case types.MethodType():
            yield from _used(name, value.__func__, seen)
            yield from _used(f"{name}.self", value.__self__, seen)
        case staticmethod() | classmethod():
            yield from _used(name, value.__func__, seen)
        case property():
            yield from _used(name, (value.fget, value.fset), seen)
        case _ if isinstance(value, _MANY) and not _is_plain(value):
            yield f"{name}={_named(type(value))}"
            if id(value) in seen:
                yield f"{name} is {seen[id(value)][1]}"
                return
            seen[id(value)] = (value, name)
            yield from _inside(name, value, seen)
        case _:
            yield from _object(name, value, seen)


def _object(name: str, value: Any, seen: _Seen) -> Iterator[str]:
    kind = type(value)
    if not is_library(kind.__module__):  # an instance of one of the project's classes
        yield from _used(name, kind, seen)
        if id(value) in seen:
            yield f"{name} is {seen[id(value)][1]}"
            return
        seen[id(value)] = (value, name)
        for part in sorted(_slots(kind) | getattr(value, "__dict__", {}).keys()):
            if hasattr(value, part):
                yield from _used(f"{name}.{part}", getattr(value, part), seen)
        return
    # What holds a function: a declared one, or what a decorator of a library has made of one.
    held = [getattr(value, "body", None), getattr(value, "func", None)]
    held = [one for one in held if isinstance(one, types.FunctionType)]
    held.append(getattr(value, "__dict__", {}).get("__wrapped__"))
    if held[0] is not None:
        yield from _used(name, held[0], seen)
        return
    yield f"{name}={_value(value)}"


_MANY = (Mapping, list, tuple, set, frozenset, deque)


def _is_plain(value: Any) -> bool:
    """Whether a container holds nothing but constants, so that they are told at once."""
    try:
        return _holds_constants(value)
    except RecursionError:  # it holds itself
        return False


def _holds_constants(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_holds_constants, value))
    if type(value) is dict:
        return all(map(_holds_constants, value)) and all(map(_holds_constants, value.values()))
    return value is None or type(value) in (bool, int, float, str, bytes)


def _inside(name: str, value: Any, seen: _Seen) -> Iterator[str]:
    if isinstance(value, Mapping):
        for place, (key, item) in enumerate(value.items()):
            yield from _used(f"{name}[{place}]", key, seen)
            yield from _used(f"{name}[{place}]:", item, seen)
        yield from _used(f"{name}[]", getattr(value, "default_factory", None), seen)
    elif isinstance(value, set | frozenset):
        for one in sorted(value, key=lambda one: _named(one) or _value(one)):
            yield from _used(f"{name}[]", one, seen)
    else:
        for place, one in enumerate(value):
            yield from _used(f"{name}[{place}]", one, seen)
    if not is_library(type(value).__module__):
        yield from _used(name, type(value), seen)


def _class(value: type, seen: _Seen) -> Iterator[str]:
    seen[id(value)] = value
    yield f"{value.__qualname__}={text_of(value)}"
    for base in (*value.__bases__, type(value)):
        yield from _used(f"{value.__qualname__} is", base, seen)
    for name, part in sorted(vars(value).items()):
        inner = getattr(part, "__func__", part)
        if not name.startswith("__") or isinstance(inner, types.FunctionType):
            yield from _used(f"{value.__qualname__}.{name}", part, seen)


def _module(value: types.ModuleType, seen: _Seen, names: Collection[str]) -> Iterator[str]:
    """A module's text and what it has of others; of a package's modules those that are named."""
    once = (id(value), frozenset(names))
    if once in seen:
        return
    seen[once] = value
    if id(value) not in seen:
        seen[id(value)] = value
        yield f"{value.__name__}={text_of(value)}"
    for name, part in sorted(vars(value).items()):
        if isinstance(part, types.ModuleType):
            wanted = name in names or not _is_below(part, value)
        else:
            wanted = name in names or isinstance(part, types.FunctionType | type)
        if wanted:
            yield from _used(f"{value.__name__}.{name}", part, seen, names)


def _is_below(part: types.ModuleType, package: types.ModuleType) -> bool:
    return part.__name__.startswith(f"{package.__name__}.")


def _slots(kind: type) -> set[str]:
    found = (vars(base).get("__slots__", ()) for base in kind.__mro__)
    return {name for one in found for name in ((one,) if isinstance(one, str) else one)}


def _named(value: Any) -> str:
    return str(getattr(value, "__qualname__", getattr(value, "__name__", "")))


def _source(code: types.CodeType) -> str:
    return text_of(code) or _compiled(code)


def _compiled(code: types.CodeType) -> str:
    """Code that has no text: what a library has made, a dataclass for one."""
    constants = [
        _compiled(one) if isinstance(one, types.CodeType) else _value(one) for one in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


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
