"""The tree of a pattern → a program that reads rows.

Instructions of one program; what comes first is preferred:

    row v      one row that variable v takes; `excluded`: it is not shown
    split a b  go on at a, or else at b
    jump a     go on at a
    enter l    a turn of loop l begins
    leave l a  a turn of loop l ends; if it took no row, the loop ends, too: go on at a
    first last the next row is the partition's first; the row before was its last
    absent     the time for rows of the match is over
    match      a match ends here

A turn of a loop beyond its least that takes no row is taken, and ends the loop, so that
`(B*?)*` matches nothing. Loops are unrolled up to their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.pipelines.engine.patterns.grammar import (
    Absence,
    Alternation,
    Anchor,
    Exclusion,
    PatternError,
    Permutation,
    Repeat,
    Sequence,
    Tree,
    Variable,
)

MOST_INSTRUCTIONS = 10_000


@dataclass(frozen=True, slots=True)
class Instruction:
    """`a`, `b`: where to go on, the variable of a row, or the loop of a turn."""

    code: str
    a: int = 0
    b: int = 0
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """`variables`: the names that rows are given, by number. From `hidden` on (0: none) they are
    not the user's: rows that have them are in no match. `before`: variables that no row before
    the first one may fit, within the time of a match."""

    instructions: tuple[Instruction, ...]
    variables: tuple[str, ...]
    hidden: int = 0
    before: tuple[int, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether a match may end because its time is over."""
        return any(one.code == "absent" for one in self.instructions)

    @property
    def names(self) -> tuple[str | None, ...]:
        """What CLASSIFIER tells, by number."""
        if not self.hidden:
            return self.variables
        return (*self.variables[: self.hidden], *[None] * (len(self.variables) - self.hidden))

    @property
    def anchored(self) -> tuple[bool, bool]:
        """Whether it asks for the first row of the partition, and for the last."""
        codes = {one.code for one in self.instructions}
        return "first" in codes, "last" in codes


@dataclass(slots=True)
class _Compiler:
    numbers: dict[str, int]
    made: list[Instruction] = field(default_factory=list)
    loops: int = 0
    excluded: int = 0

    def add(self, code: str, a: int = 0, b: int = 0, excluded: bool = False) -> int:
        if len(self.made) >= MOST_INSTRUCTIONS:
            raise PatternError(
                f"the pattern has more than {MOST_INSTRUCTIONS:,} instructions", 0, 1,
                "make the numbers of turns smaller",
            )  # fmt: skip
        self.made.append(Instruction(code, a, b, excluded))
        return len(self.made) - 1

    def split(self) -> int:
        return self.add("split")

    def point(self, at: int, preferred: int, other: int) -> None:
        self.made[at] = Instruction("split", preferred, other)

    def compile(self, tree: Tree) -> None:
        match tree:
            case Variable():
                self.add("row", self.numbers[tree.name], excluded=self.excluded > 0)
            case Sequence():
                for part in tree.parts:
                    self.compile(part)
            case Alternation():
                self.alternatives(tree.parts)
            case Permutation():
                self.permute(tree.parts)
            case Exclusion():
                self.excluded += 1
                self.compile(tree.part)
                self.excluded -= 1
            case Anchor():
                self.add("last" if tree.end else "first")
            case Absence():
                self.add("absent", -1)
            case Repeat():
                self.repeat(tree)

    def alternatives(self, parts: tuple[Tree, ...]) -> None:
        ends: list[int] = []
        for part in parts[:-1]:
            choice = self.split()
            self.compile(part)
            ends.append(self.add("jump"))
            self.point(choice, choice + 1, len(self.made))
        self.compile(parts[-1])
        for end in ends:
            self.made[end] = Instruction("jump", len(self.made))

    def permute(self, parts: tuple[Tree, ...]) -> None:
        """For each set of parts that were taken the choice among the others, in their order:
        what follows is the same in whatever order they came."""
        whole = (1 << len(parts)) - 1
        begins: dict[int, int] = {}
        jumps: list[tuple[int, int]] = []
        for taken in range(whole):
            begins[taken] = len(self.made)
            left = [number for number in range(len(parts)) if not taken >> number & 1]
            for number in left:
                choice = self.split() if number != left[-1] else None
                self.compile(parts[number])
                jumps.append((self.add("jump"), taken | 1 << number))
                if choice is not None:
                    self.point(choice, choice + 1, len(self.made))
        begins[whole] = len(self.made)
        for jump, taken in jumps:
            self.made[jump] = Instruction("jump", begins[taken])

    def repeat(self, tree: Repeat) -> None:
        for _ in range(tree.least):
            self.compile(tree.part)
        choices: list[int] = []
        leaves: list[int] = []
        if tree.most is None:
            choices.append(self.turn(tree, leaves))
            self.add("jump", choices[0])
        else:
            choices += [self.turn(tree, leaves) for _ in range(tree.most - tree.least)]
        end = len(self.made)
        for choice in choices:
            self.point(choice, *((choice + 1, end) if tree.greedy else (end, choice + 1)))
        for leave in leaves:
            self.made[leave] = Instruction("leave", self.made[leave].a, end)

    def turn(self, tree: Repeat, leaves: list[int]) -> int:
        choice = self.split()
        loop, self.loops = self.loops, self.loops + 1
        self.add("enter", loop)
        self.compile(tree.part)
        leaves.append(self.add("leave", loop))
        return choice


def compile_pattern(tree: Tree, variables: tuple[str, ...]) -> Program:
    """The program of a pattern; PatternError if it is too large."""
    compiler = _Compiler({name: number for number, name in enumerate(variables)})
    compiler.compile(tree)
    compiler.add("match")
    return Program(tuple(compiler.made), variables)
