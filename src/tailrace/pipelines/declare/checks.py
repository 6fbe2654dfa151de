"""What every declaration is asked: names, lengths of time, kinds of arguments.

What is wrong is refused, with the place in the user's file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from tailrace.config import parse_duration
from tailrace.errors import ConfigValueError
from tailrace.kinds import misfit
from tailrace.pipelines.declare.declarations import Place
from tailrace.pipelines.errors import DeclarationError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


def repeated_name(names: Sequence[str]) -> str | None:
    """The first name that is there twice, as SQL compares names."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None


def positive_milliseconds(length: str | int | None, place: Place, what: str) -> int | None:
    if length is None:
        return None
    found = milliseconds(length, place, what)
    if not found:
        raise refused(place, f"{what} is above zero", f'{what}"10 seconds"')
    return found


def require_one_of(place: Place, what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise refused(place, f"unknown {what} {given!r}", f"one of {', '.join(known)}")


def milliseconds(length: str | int, place: Place, what: str) -> int:
    try:
        found = int(parse_duration(length).total_seconds() * 1000)
    except ConfigValueError as reason:
        raise refused(place, f"{what} {reason.message}", reason.hint) from reason
    if found < 0:
        raise refused(place, f"{what} cannot be negative", f'{what}"10 seconds"')
    return found


def as_names(key: str | Sequence[str]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def are_names(key: object) -> bool:
    """Whether this is a column's name or several."""
    if isinstance(key, str):
        return bool(key)
    return (
        isinstance(key, list | tuple) and all(isinstance(k, str) and k for k in key) and bool(key)
    )


def as_targets(to: object | Iterable[object]) -> tuple[object, ...]:
    return tuple(to) if isinstance(to, (list, tuple)) else (to,)


def checked_name(name: str, place: Place) -> str:
    if not _NAME.fullmatch(name) or name.startswith("__"):
        raise refused(
            place,
            f"{name!r} cannot be the name of a topic",
            "letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    return name


def caller() -> Place:
    """Where the function that calls this was itself called."""
    frame = sys._getframe(2)
    return Place(frame.f_code.co_filename, frame.f_lineno)


def check_kinds(
    place: Place, owner: str, of: Callable[..., object], given: Mapping[str, object]
) -> None:
    """Refuse an argument of another kind than the parameters of `of` say."""
    if wrong := misfit(owner, of, given):
        raise refused(place, wrong, f"`python -c 'import tailrace as tr; help({owner})'` shows it")


def refused(place: Place, message: str, hint: str) -> DeclarationError:
    return DeclarationError(message, detail=f"declared at {place}", hint=hint)
