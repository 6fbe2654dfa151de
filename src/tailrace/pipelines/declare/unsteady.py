"""Functions that give another answer each time, as far as their text shows."""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Iterator

from tailrace.pipelines.values.python_source import is_library, names_in, text_of

# What gives another answer each time, by the module or class that has it; None: all of it.
_UNSTEADY: dict[str, frozenset[str] | None] = {
    "random": None,
    "secrets": None,
    "time": frozenset(
        {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "localtime"}
    ),
    "uuid": frozenset({"uuid1", "uuid4"}),
    "os": frozenset({"urandom", "getpid", "environ", "getenv"}),
    "datetime": frozenset({"now", "utcnow", "today"}),
    "date": frozenset({"today"}),
    "numpy.random": None,
    "builtins": frozenset({"hash", "id", "input"}),
}
_STEADY = {"random": frozenset({"Random"})}  # with a seed


def unsteady(function: types.FunctionType) -> str | None:
    """What in the text of a function gives another answer each time, if anything does."""
    for known in _own(function, set()):
        tree = _tree(known)
        if tree is None:
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=what):
                    owner = known.__globals__.get(name)
                case ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id=name), attr=inner), attr=what
                ):
                    owner = getattr(known.__globals__.get(name), inner, None)
                case ast.Name(id=what) if isinstance(node.ctx, ast.Load):
                    found = known.__globals__.get(what, getattr(builtins, what, None))
                    owner = sys.modules.get(getattr(found, "__module__", None) or "")
                    bound = getattr(found, "__self__", None)
                    if isinstance(bound, types.ModuleType | types.BuiltinMethodType):
                        owner = bound
                    elif type(bound).__name__ == "Random":
                        owner = sys.modules["random"]
                    if isinstance(found, types.ModuleType | type):
                        continue
                case _:
                    continue
            named = (
                getattr(owner, "__name__", "") if isinstance(owner, types.ModuleType | type) else ""
            )
            refused = _UNSTEADY.get(named, frozenset())
            if (refused is None or what in refused) and what not in _STEADY.get(named, ()):
                return what if named == "builtins" else f"{named}.{what}"
    return None


def _own(function: types.FunctionType, seen: set[int]) -> Iterator[types.FunctionType]:
    """A function and the project's own that it calls by name."""
    seen.add(id(function))
    yield function
    for name in names_in(function.__code__):
        value = function.__globals__.get(name)
        if (
            isinstance(value, types.FunctionType)
            and id(value) not in seen
            and not is_library(value.__module__)
        ):
            yield from _own(value, seen)


def _tree(function: types.FunctionType) -> ast.AST | None:
    try:
        return ast.parse(text_of(function))
    except SyntaxError:
        return None
