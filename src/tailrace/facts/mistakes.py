"""What can be known to be wrong with an event topic without running it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from tailrace.errors import TailraceError
from tailrace.facts.declare import Events, Place, place_of
from tailrace.facts.errors import EventsDeclarationError
from tailrace.facts.event_types import fields_that_do_not_travel
from tailrace.facts.personal import wrong_fields


def mistakes(declared: Events[Any]) -> Iterator[TailraceError]:
    """Every mistake, each with the line it stands in."""
    for each in declared.types:
        for field, kind in fields_that_do_not_travel(each.cls):
            yield EventsDeclarationError(
                f"{each.name}.{field} is a {kind}, which JSON does not bring back",
                detail=str(place_of(each.cls)),
                hint="use numbers, text, times, decimals, lists, dicts, dataclasses",
            )
        for field, why in wrong_fields(each.cls, declared.tags):
            yield EventsDeclarationError(
                f"the personal field {each.name}.{field} cannot be: {why}",
                detail=str(place_of(each.cls)),
                hint='name: Annotated[str, tr.personal("customer")], beside customer: str',
            )
        for version in range(1, each.version):
            if version not in each.upcasts:
                yield EventsDeclarationError(
                    f"there is no way from {each.name} version {version} to {version + 1}",
                    detail=str(place_of(each.upcasts[max(each.upcasts)])),
                    hint=f'declare @{declared.name}.upcast("{each.name}", {version})',
                )
    if isinstance(declared.state, type):
        yield from _of_the_state(declared)
    if declared.function is None:
        yield EventsDeclarationError(
            f"{declared.name!r} has no evolve",
            detail=f"declared at {declared.declared_at}",
            hint="@events.evolve over a function (state, event) -> state",
        )
        return
    missing = _without_case(declared.function, {each.name for each in declared.types})
    for name in sorted(missing):
        place = place_of(declared.function)
        yield EventsDeclarationError(
            f"evolve of {declared.name!r} has no case for {name}",
            detail=f"{place}\n{name} is declared at {place_of(declared.types.by_name[name].cls)}",
            hint=f"add `case {name}(…):`; `case _: return state` passes over what does not matter",
        )


def _of_the_state(declared: Events[Any]) -> Iterator[TailraceError]:
    try:
        declared.initial()
    except EventsDeclarationError as error:
        error.detail = f"{error.detail}\n{place_of(declared.state)}"
        yield error
    try:
        strange = list(fields_that_do_not_travel(declared.state))
    except TypeError as error:
        strange = [(str(error), "type")]
    for field, kind in strange:
        yield EventsDeclarationError(
            f"{declared.state.__name__}.{field} is a {kind}, which JSON does not bring back",
            detail=str(place_of(declared.state)),
            hint="states are kept and sent as JSON: numbers, text, times, lists, dicts, dataclasses",
        )


def _without_case(function: Callable[..., Any], names: set[str]) -> set[str]:
    """Event types that `evolve` names nowhere; none where it cannot be told from its text."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return set()
    found: set[str] = set()
    matches = [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
    for match in matches:
        for case in match.cases:
            if _takes_all(case):
                return set()
            for node in ast.walk(case.pattern):
                if isinstance(node, ast.MatchClass):
                    found.add(_last(node.cls))
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _last(node.func) == "isinstance" and len(node.args) == 2
    ]
    for test in tests:
        given = test.args[1]
        kinds = [node for node in ast.walk(given) if isinstance(node, ast.Name | ast.Attribute)]
        found |= {_last(kind) for kind in kinds}
    if not matches and not found & names:
        return set()  # decided by other means, a table or methods: not to be told from here
    if not matches and _ends_without_test(tree):
        return set()
    return names - found


def _takes_all(case: ast.match_case) -> bool:
    """`case _:` that does more than raise."""
    bare = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
    return bare and case.guard is None and not isinstance(case.body[0], ast.Raise)


def _ends_without_test(tree: ast.Module) -> bool:
    function = tree.body[0]
    return isinstance(function, ast.FunctionDef) and isinstance(function.body[-1], ast.Return)


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


def first_mistake(declared: Events[Any]) -> TailraceError | None:
    """The first of them, or None."""
    return next(mistakes(declared), None)


__all__ = ["Place", "first_mistake", "mistakes"]
