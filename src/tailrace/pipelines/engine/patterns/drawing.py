"""A pattern as steps: what may follow what, for people who watch it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tailrace.pipelines.engine.patterns.grammar import (
    Alternation,
    Exclusion,
    Permutation,
    Repeat,
    Sequence,
    Tree,
    Variable,
)
from tailrace.pipelines.engine.patterns.program import Program, compile_pattern
from tailrace.pipelines.engine.patterns.steps import MARK


@dataclass(frozen=True, slots=True)
class Drawing:
    """`steps`: id and variable of each; `edges` between ids; `of`: the step of an instruction."""

    steps: tuple[tuple[str, str], ...]
    edges: tuple[tuple[str, str], ...]
    of: Mapping[int, str]


def draw(tree: Tree, program: Program) -> Drawing:
    """The steps of a pattern, in the order in which they are written."""
    told: dict[str, str] = {}  # by the place of a variable in the text
    apart = _apart(tree, told)
    names = tuple(dict.fromkeys(told))
    placed = compile_pattern(apart, names)
    shown = {}
    counts: dict[str, int] = {}
    numbered = {
        instruction.a: program.instructions[at].a
        for at, instruction in enumerate(placed.instructions)
        if instruction.code == "row"
    }
    for number, _ in enumerate(names):
        if number not in numbered or told[names[number]].startswith(MARK):
            continue
        variable = program.variables[numbered[number]]
        counts[variable] = counts.get(variable, 0) + 1
        suffix = "" if counts[variable] == 1 else f"_{counts[variable]}"
        shown[number] = (f"{variable}{suffix}", variable)
    of = {
        at: shown[one.a][0]
        for at, one in enumerate(placed.instructions)
        if one.code == "row" and one.a in shown
    }
    edges = dict.fromkeys(
        (step, of[after]) for at, step in of.items() for after in _behind(placed, at + 1, of)
    )
    return Drawing(tuple(shown.values()), tuple(edges), of)


def _apart(tree: Tree, told: dict[str, str]) -> Tree:
    """The tree with a name of its own for every variable that is written in it."""
    match tree:
        case Variable():
            name = f"{tree.name}@{tree.start}"
            told[name] = tree.name
            return replace(tree, name=name)
        case Sequence() | Alternation() | Permutation():
            return replace(tree, parts=tuple(_apart(part, told) for part in tree.parts))
        case Repeat() | Exclusion():
            return replace(tree, part=_apart(tree.part, told))
    return tree


def _behind(program: Program, begin: int, of: Mapping[int, str]) -> list[int]:
    """The steps that may take a row next, whatever is skipped before."""
    found: list[int] = []
    seen: set[int] = set()
    waiting = [begin]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        one = program.instructions[at]
        match one.code:
            case "row":
                if at in of:
                    found.append(at)
                else:
                    waiting.append(at + 1)
            case "split":
                waiting += [one.b, one.a]
            case "jump":
                waiting.append(one.a)
            case "match":
                pass
            case "leave":
                waiting += [one.b, at + 1]
            case _:
                waiting.append(at + 1)
    return found
