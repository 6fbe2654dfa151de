"""JSON of strangers, read and written within bounds."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tailrace.schemas.errors import InvalidSchemaError

DEPTH_LIMIT = 300
STEPS_LIMIT = 1_000_000


def read_json(text: str, language: str) -> Any:
    """The value of a JSON text that nests no more than `DEPTH_LIMIT` levels."""
    try:
        found = json.loads(text, parse_constant=_constant)
    except RecursionError:
        raise too_deep(language) from None
    except ValueError as error:
        raise InvalidSchemaError(f"the {language} schema is no JSON", detail=str(error)) from error
    waiting = [(found, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth >= DEPTH_LIMIT:
                raise too_deep(language)
            inner = value.values() if isinstance(value, dict) else value
            waiting.extend((one, depth + 1) for one in inner if isinstance(one, dict | list))
    return found


def write_json(value: Any, *, sort: bool = False) -> str:
    """JSON without spaces, keys in their own order or sorted."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSchemaError(
            "the schema holds half a character", detail="a lone surrogate, \\ud800 to \\udfff"
        ) from error
    return text


def too_deep(language: str) -> InvalidSchemaError:
    return InvalidSchemaError(
        f"the {language} schema is nested too deeply",
        detail=f"more than {DEPTH_LIMIT} levels",
        hint="give inner types a name and refer to them",
    )


class Steps:
    """How much work one comparison may take."""

    __slots__ = ("left",)

    def __init__(self, limit: int = STEPS_LIMIT) -> None:
        self.left = limit

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise InvalidSchemaError(
                "the schemas are too large to be compared",
                hint="split them into several, with references",
            )


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
