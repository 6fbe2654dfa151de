"""The `match` of a pattern of events → a tree, and the rows that lie between its steps.

It is SQL's PATTERN (see `grammar`) and, loosest first:

    sequence := step (arrow step)*
    arrow    := '->' followed by the next one | '->>' followed by any one
    step     := quantified* | '!' (name | '(' name ('|' name)* ')')

Rows between two steps that no variable takes are *skipped*: they belong to no match. What is
skipped has a variable of its own, `~1`, `~2` …, and may not fit some variables: behind `->` not
what the next step can begin with, behind `!b` no b. Within loops rows are skipped as `contiguity`
says: `strict` none, `relaxed` up to the next turn, `any` also those that would begin one.

`until` of a variable ends its loops: no row that fits may be taken there, nor be skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tailrace.pipelines.engine.patterns.grammar import (
    Absence,
    Alternation,
    Anchor,
    Exclusion,
    Parser,
    PatternError,
    Permutation,
    Repeat,
    Token,
    Tree,
    Variable,
    tokens,
    unquoted,
    variables_of,
)
from tailrace.pipelines.engine.patterns.grammar import Sequence as InTurn

CONTIGUITIES = ("strict", "relaxed", "any")
MARK = "~"  # before the name of a variable that no user wrote
ARROWS = re.compile(r"(?P<arrow>->>?(?!\}))|(?P<absent>!)")


@dataclass(frozen=True, slots=True)
class _Not:
    """No row that one of these takes."""

    names: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Chain:
    """Steps, and how each follows the one before ("" for the first)."""

    steps: tuple[tuple[str, Tree | _Not], ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """A pattern of events.

    `skipped`: variables of rows between steps, and the variables that those may not fit.
    `before`: variables that no row before the first one may fit. `absent`: the last step is an
    absence. `ending`: the loop variables that have an `until`.
    """

    tree: Tree
    variables: tuple[str, ...]  # as the user wrote them, in their order
    skipped: dict[str, tuple[str, ...]] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    absent: bool = False
    ending: tuple[str, ...] = ()


def until_name(variable: str) -> str:
    """The variable whose condition ends the loops of another."""
    return f"{MARK}until {variable}"


def before_name(variable: str) -> str:
    """The variable that says which rows may not come first: the condition of another alone."""
    return f"{MARK}before {variable}"


class _StepParser(Parser):
    """`chains`: what stands for each chain in the tree, by a name that nothing else has."""

    def __init__(self, given: list[Token]) -> None:
        Parser.__init__(self, given)
        self.chains: dict[str, _Chain] = {}

    def sequence(self, depth: int) -> Tree:
        steps: list[tuple[str, Tree | _Not]] = []
        arrow = ""
        while True:
            begin = self.next
            steps.append((arrow, self._step(depth)))
            if self.next.kind != "arrow":
                break
            arrow = self.next.text
            if isinstance(steps[-1][1], _Not) and arrow == "->>" and len(steps) == 1:
                raise PatternError("'->>' behind a first '!'", begin.start, self.next.end)
            self.at += 1
        if len(steps) == 1 and not isinstance(steps[0][1], _Not):
            return steps[0][1]
        name = f"{MARK}chain {len(self.chains)}"
        self.chains[name] = _Chain(tuple(steps))
        return Variable(name)

    def _step(self, depth: int) -> Tree | _Not:
        mark = self.next
        if mark.kind != "absent":
            return Parser.sequence(self, depth)
        self.at += 1
        names: list[str] = []
        grouped = self.take("(")
        while True:
            token = self.next
            if token.kind not in ("name", "quoted"):
                raise PatternError(
                    "'!' stands before a variable, or before variables in a group",
                    mark.start, token.end, "!paid, or !(paid | cancelled)",
                )  # fmt: skip
            names.append(unquoted(token.text))
            self.at += 1
            if not grouped or not self.take("|"):
                break
        if grouped and not self.take(")"):
            raise PatternError("'(' is never closed", mark.start, self.next.end)
        if self.next.kind not in ("arrow", "end") and self.next.text not in ("|", ")"):
            raise PatternError(
                "between '!' and the next step stands an arrow", mark.start, self.next.end,
                "a -> !b -> c",
            )  # fmt: skip
        return _Not(tuple(names), mark.start, token.end)


def parse_steps(text: str, contiguity: str = "strict", until: Iterable[str] = ()) -> Steps:
    """The steps of a pattern; PatternError points into `text`. Names are upper case unless they
    are quoted, those in `until` too."""
    parser = _StepParser(list(tokens(text, ARROWS)))
    tree = parser.pattern(0)
    last = parser.next
    if last.kind == "absent":
        raise PatternError("an arrow stands before '!'", last.start, last.end, "a -> !b")
    if last.kind != "end":
        raise PatternError(f"{last.text!r} closes nothing", last.start, last.end)
    return _Builder(parser.chains, contiguity, frozenset(until)).build(tree)


class _Builder:
    def __init__(self, chains: dict[str, _Chain], contiguity: str, until: frozenset[str]) -> None:
        self.chains, self.contiguity, self.until = chains, contiguity, until
        self.skipped: dict[str, tuple[str, ...]] = {}
        self.before: tuple[str, ...] = ()
        self.absent = False
        self.named: dict[str, None] = {}

    def build(self, tree: Tree) -> Steps:
        self._name(tree)
        for chain in [tree, *self._inner(tree)]:
            self._check_anchors(chain)
        outer = isinstance(tree, Variable) and tree.name in self.chains
        made = self._chain(self.chains[tree.name], (), True) if outer else self._made(tree, ())  # type: ignore[union-attr]
        taken = {one.name for one in variables_of(made)}
        ending = tuple(name for name in self.named if name in self.until)
        missing = [name for name in self.until if name not in taken]
        if missing:
            raise PatternError(f"until= of {missing[0]}, which is no variable of it", 0, 1)
        return Steps(made, tuple(self.named), self.skipped, self.before, self.absent, ending)

    def _inner(self, tree: Tree) -> list[Tree]:
        return [
            step
            for chain in self.chains.values()
            for _, step in chain.steps
            if not isinstance(step, _Not)
        ]

    def _check_anchors(self, tree: Tree) -> None:
        match tree:
            case Anchor():
                raise PatternError(
                    f"{'$' if tree.end else '^'} in a stream, which has no first and no last row",
                    0, 1, "a view with MATCH_RECOGNIZE over the rows there are takes it",
                )  # fmt: skip
            case InTurn() | Alternation() | Permutation():
                for part in tree.parts:
                    self._check_anchors(part)
            case Repeat() | Exclusion():
                self._check_anchors(tree.part)

    def _name(self, tree: Tree) -> None:
        """Number the user's variables in the order in which they are written."""
        for one in variables_of(tree):
            chain = self.chains.get(one.name)
            if chain is None:
                if one.name.startswith(MARK):
                    raise PatternError(f"a variable may not begin with {MARK}", one.start, one.end)
                self.named.setdefault(one.name)
                continue
            for _, step in chain.steps:
                if isinstance(step, _Not):
                    for name in step.names:
                        self.named.setdefault(name)
                else:
                    self._name(step)

    # Trees --------------------------------------------------------------------------------

    def _skip(self, unlike: Iterable[str], greedy: bool, last: bool = False) -> Tree:
        """Any number of rows that do not fit `unlike`; `last`: up to the end of the time."""
        refused = tuple(dict.fromkeys(unlike))
        name = next((n for n, known in self.skipped.items() if known == refused), "")
        if not name or last:
            name = f"{MARK}{len(self.skipped) + 1}"
            self.skipped[name] = refused
        return Exclusion(Repeat(Variable(name), 0, None, greedy))

    def _made(self, tree: Tree, follow: tuple[str, ...]) -> Tree:
        """The tree with what is skipped in it. `follow`: what may come behind it."""
        match tree:
            case Variable():
                chain = self.chains.get(tree.name)
                return tree if chain is None else self._chain(chain, follow, False)
            case InTurn():
                made: list[Tree] = []
                for part in reversed(tree.parts):
                    made.append(self._made(part, follow))
                    first, empty = self.first(part)
                    follow = (*first, *follow) if empty else first
                return InTurn(tuple(reversed(made)))
            case Alternation():
                return Alternation(tuple(self._made(part, follow) for part in tree.parts))
            case Permutation():
                around = tuple(name for part in tree.parts for name in self.first(part)[0])
                parts = tuple(self._made(part, (*around, *follow)) for part in tree.parts)
                return Permutation(parts)
            case Exclusion():
                return Exclusion(self._made(tree.part, follow))
            case Repeat():
                return self._loop(tree, follow)
        return tree

    def _loop(self, tree: Repeat, follow: tuple[str, ...]) -> Tree:
        first, _ = self.first(tree.part)
        part = self._made(tree.part, (*first, *follow))
        if self.contiguity == "strict" or tree.most == 1:
            return Repeat(part, tree.least, tree.most, tree.greedy)
        ends = [until_name(one) for one in self._variables(tree.part) if one in self.until]
        relaxed = self.contiguity == "relaxed"
        unlike = [*first, *follow, *ends] if relaxed else ends
        turn = InTurn((self._skip(unlike, relaxed), part))
        least = max(tree.least - 1, 0)
        most = None if tree.most is None else tree.most - 1
        if most == 0:
            return Repeat(part, tree.least, 1, tree.greedy)
        turns = InTurn((part, Repeat(turn, least, most, tree.greedy)))
        return turns if tree.least else Repeat(turns, 0, 1, tree.greedy)

    def _variables(self, tree: Tree) -> list[str]:
        found: list[str] = []
        for one in variables_of(tree):
            chain = self.chains.get(one.name)
            if chain is None:
                found.append(one.name)
                continue
            for _, step in chain.steps:
                found += step.names if isinstance(step, _Not) else self._variables(step)
        return found

    def _chain(self, chain: _Chain, follow: tuple[str, ...], outer: bool) -> Tree:
        parts: list[Tree] = []
        steps = list(chain.steps)
        if isinstance(steps[0][1], _Not):
            self._refuse_inside(steps[0][1], outer)
            if len(steps) == 1:
                raise PatternError(
                    "a pattern needs a step that a row takes", steps[0][1].start, steps[0][1].end,
                    "a -> !b",
                )  # fmt: skip
            self.before = steps.pop(0)[1].names  # type: ignore[union-attr]
        absent: tuple[str, ...] = ()
        any_one = False
        for number, (arrow, step) in enumerate(steps):
            any_one = any_one or arrow == "->>"
            if isinstance(step, _Not):
                if absent:
                    raise PatternError(
                        "two '!' behind each other", step.start, step.end, "!(a | b)"
                    )
                absent = step.names
                if number == len(steps) - 1:
                    self._refuse_inside(step, outer)
                    self.absent = True
                    parts += [self._skip(absent, True, True), Absence()]
                continue
            first, empty = self.first(step)
            if number:
                if empty:
                    raise PatternError(
                        "a step behind an arrow may match no row", 0, 1,
                        "put at least one variable there: b+, or (b | c)",
                    )  # fmt: skip
                unlike = absent if any_one else (*first, *absent)
                parts.append(self._skip(unlike, not any_one))
            behind = self._behind(steps[number + 1 :], follow)
            parts.append(self._made(step, behind))
            absent, any_one = (), False
        return parts[0] if len(parts) == 1 else InTurn(tuple(parts))

    def _refuse_inside(self, step: _Not, outer: bool) -> None:
        if not outer:
            raise PatternError(
                "a first or last '!' inside a group", step.start, step.end,
                "it belongs before or behind the whole pattern",
            )  # fmt: skip

    def _behind(
        self, steps: Sequence[tuple[str, Tree | _Not]], follow: tuple[str, ...]
    ) -> tuple[str, ...]:
        """What no row skipped within a step may fit, for what follows it."""
        found: list[str] = []
        for arrow, step in steps:
            if isinstance(step, _Not):
                found += step.names
                continue
            return tuple(found) if arrow == "->>" else (*found, *self.first(step)[0])
        return (*found, *follow)

    def first(self, tree: Tree) -> tuple[tuple[str, ...], bool]:
        """The variables that may take its first row, and whether it may take none."""
        match tree:
            case Variable():
                chain = self.chains.get(tree.name)
                if chain is None:
                    return (tree.name,), False
                steps = [step for _, step in chain.steps if not isinstance(step, _Not)]
                return self.first(InTurn(tuple(steps)))
            case InTurn():
                found: tuple[str, ...] = ()
                for part in tree.parts:
                    more, empty = self.first(part)
                    found += more
                    if not empty:
                        return found, False
                return found, True
            case Alternation() | Permutation():
                each = [self.first(part) for part in tree.parts]
                names = tuple(name for more, _ in each for name in more)
                empties = [empty for _, empty in each]
                return names, any(empties) if isinstance(tree, Alternation) else all(empties)
            case Exclusion():
                return self.first(tree.part)
            case Repeat():
                names, empty = self.first(tree.part)
                return names, empty or not tree.least
        return (), True
