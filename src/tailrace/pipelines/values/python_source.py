"""Functions of Python as texts: their source, the names in them, whose they are."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import textwrap
import types
from collections.abc import Sequence
from typing import Any

_LIBRARIES = ("site-packages", "dist-packages")
_OWN_ROOMS = ("tailrace", "pyspark")


def text_of(value: Any) -> str:
    """Its source, without its indentation; empty where there is none."""
    try:
        return textwrap.dedent(inspect.getsource(value)).strip()
    except (OSError, TypeError):
        return ""


def names_in(code: types.CodeType) -> set[str]:
    """The names that code, and what is defined inside of it, looks up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found


def is_library(module: str | None) -> bool:
    """Whether a module is none of the project's own."""
    top = (module or "builtins").partition(".")[0]
    if _is_known(top):
        return top != "__main__"
    known = sys.modules.get(module or "")
    file = getattr(known, "__file__", None)
    places = [file] if file else [str(place) for place in getattr(known, "__path__", ())]
    return _is_of_libraries(places)


def is_library_to_be(top: str) -> bool:
    """The same of a module at the top that may not have been imported yet."""
    if _is_known(top) or top in sys.modules:
        return is_library(top)
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return True
    if found is None:
        return True
    places = [str(one) for one in (found.origin, *(found.submodule_search_locations or ())) if one]
    return _is_of_libraries(places)


def _is_known(top: str) -> bool:
    return top in sys.stdlib_module_names or top in _OWN_ROOMS


def _is_of_libraries(places: Sequence[str]) -> bool:
    return not places or any(part in place for place in places for part in _LIBRARIES)
