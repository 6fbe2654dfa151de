"""Functions of Python as texts: their source, the names in them, whose they are."""

from __future__ import annotations

import inspect
import sys
import textwrap
import types
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
    if top in sys.stdlib_module_names or top in _OWN_ROOMS:
        return top != "__main__"
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    return file is None or any(part in file for part in _LIBRARIES)
