"""Paths into variants (`$.a[0]['b c']`), and changes at their ends."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from tailrace.pipelines.incremental.variant.encoding import VARIANT_NULL, Node

Steps: TypeAlias = tuple[str | int, ...]

_STEP = re.compile(r"""\.([^.\[]+)|\[([0-9]+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_LONGEST = 10_000_000  # elements that a far index may add


class PathMismatch(ValueError):
    """The value on the way is of a type that the step cannot go into."""


@lru_cache(1024)
def steps_of(path: str) -> Steps:
    """The steps of a path; ValueError when it is none."""
    steps: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            break
        name, index, *keys = found.groups()
        if index is not None and int(index) >= 1 << 31:
            break
        steps.append(int(index) if index is not None else name or keys[0] or keys[1] or "")
        at = found.end()
    if not path.startswith("$") or at != len(path):
        raise ValueError(f"{path!r} is no path such as $.a[0]['b c']")
    return tuple(steps)


def get(node: Node, steps: Steps) -> tuple[bool, Node]:
    """Whether the path exists, and what is there."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(node, list) or step >= len(node):
                return False, None
            node = node[step]
        else:
            if not isinstance(node, dict) or step not in node:
                return False, None
            node = node[step]
    return True, node


def _inside(node: Node, step: str | int) -> bool:
    """Whether the step exists; PathMismatch where it cannot."""
    if isinstance(step, int):
        if not isinstance(node, list):
            raise PathMismatch(step)
        return step < len(node)
    if not isinstance(node, dict):
        raise PathMismatch(step)
    return step in node


def _at(node: Node, step: str | int) -> Node:
    """What stands at a step that exists."""
    return get(node, (step,))[1]


def _made(steps: Steps, value: Node) -> Node:
    """What a missing path stands for: containers down to the value."""
    for step in reversed(steps):
        if isinstance(step, str):
            value = {step: value}
        else:
            missing: list[Node] = [VARIANT_NULL] * _far(step)
            value = [*missing, value]
    return value


def _far(index: int) -> int:
    if index > _LONGEST:
        raise ValueError(f"an array of {index} elements is too long")
    return index


def _with(node: Node, step: str | int, value: Node) -> Node:
    """The container with `value` at a step, which may lie behind its end."""
    if isinstance(node, dict):
        return {**node, step: value}  # type: ignore[dict-item]
    assert isinstance(node, list)
    assert isinstance(step, int)
    longer = node + [VARIANT_NULL] * (_far(step) - len(node) + 1)
    return [*longer[:step], value, *longer[step + 1 :]]


def insert(node: Node, steps: Steps, value: Node) -> Node:
    """A new field, or an element before the one that is there; ValueError where a field is."""
    step, rest = steps[0], steps[1:]
    exists = _inside(node, step)
    if not exists:
        return _with(node, step, _made(rest, value))
    if rest:
        return _with(node, step, insert(_at(node, step), rest, value))
    if isinstance(node, dict):
        raise ValueError(f"there is a field {step!r} already")
    assert isinstance(node, list)
    assert isinstance(step, int)
    return [*node[:step], value, *node[step:]]


def put(node: Node, steps: Steps, value: Node, creates: bool) -> Node:
    """The value in place of what is there; where nothing is, only if `creates`."""
    step, rest = steps[0], steps[1:]
    if not _inside(node, step):
        return _with(node, step, _made(rest, value)) if creates else node
    if rest:
        value = put(_at(node, step), rest, value, creates)
    return _with(node, step, value)


def append(node: Node, steps: Steps, value: Node) -> Node:
    """The value at the end of the array there; unchanged where nothing is."""
    if not steps:
        if not isinstance(node, list):
            raise PathMismatch("not an array")
        return [*node, value]
    if not _inside(node, steps[0]):
        return node
    return _with(node, steps[0], append(_at(node, steps[0]), steps[1:], value))


def delete(node: Node, steps: Steps) -> Node:
    """Without what is there; unchanged where nothing is."""
    step, rest = steps[0], steps[1:]
    try:
        if not _inside(node, step):
            return node
    except PathMismatch:
        return node
    if rest:
        return _with(node, step, delete(_at(node, step), rest))
    if isinstance(node, dict):
        return {key: part for key, part in node.items() if key != step}
    assert isinstance(node, list)
    assert isinstance(step, int)
    return node[:step] + node[step + 1 :]


def without_nulls(node: Node, arrays: bool) -> Node:
    """Without fields that are null, and (`arrays`) without such elements."""
    if isinstance(node, dict):
        kept = {key: part for key, part in node.items() if part != VARIANT_NULL}
        return {key: without_nulls(part, arrays) for key, part in kept.items()}
    if isinstance(node, list):
        left = [part for part in node if not arrays or part != VARIANT_NULL]
        return [without_nulls(part, arrays) for part in left]
    return node
