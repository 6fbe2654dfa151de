"""What a compatibility level lets follow what.

BACKWARD   the new schema reads what the last one wrote       (consumers are upgraded first)
FORWARD    the last schema reads what the new one writes      (producers are upgraded first)
FULL       both
…_TRANSITIVE   with every version, not only the last
NONE       anything
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tailrace.schemas.model import Difference, Find
from tailrace.schemas.parsed import Parsed

LEVELS = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL",
    "FULL_TRANSITIVE",
)  # fmt: skip
DEFAULT_LEVEL = "BACKWARD"
_SHOWN_BYTES = 10_240


@dataclass(frozen=True, slots=True)
class Earlier:
    """A version before the new one."""

    version: int
    parsed: Parsed


@dataclass(frozen=True, slots=True)
class Verdict:
    """Empty `messages`: it fits. `differences` are those the messages tell."""

    messages: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.messages

    @property
    def hint(self) -> str:
        return next((one.hint for one in self.differences if one.hint), "")


def judge(
    level: str, new: Parsed, earlier: Iterable[Earlier], find: Find, *, lenient: bool = False
) -> Verdict:
    """Whether a schema may follow the versions before it, given newest first.

    They are read one after the other, and none behind the one that decides.
    """
    if level == "NONE":
        return Verdict()
    transitive = level.endswith("_TRANSITIVE")
    for one in earlier:
        found = _judge(level.removesuffix("_TRANSITIVE"), new, one, find, lenient)
        if not found.fits:
            return Verdict((*found.messages, f"{{compatibility: '{level}'}}"), found.differences)
        if not transitive:
            break
    return Verdict()


def _judge(level: str, new: Parsed, one: Earlier, find: Find, lenient: bool) -> Verdict:
    differences: list[Difference] = []
    messages: list[str] = []
    if level in ("FORWARD", "FULL"):
        found = one.parsed.differences(new, find, lenient=lenient)
        differences += found
        messages += [each.tell("old", "new") for each in found]
    if level in ("BACKWARD", "FULL"):
        found = new.differences(one.parsed, find, lenient=lenient)
        differences += found
        messages += [each.tell("new", "old") for each in found]
    if not differences:
        return Verdict()
    messages.append(f"{{oldSchemaVersion: {one.version}}}")
    shown = one.parsed.text
    if len(shown) <= _SHOWN_BYTES:
        messages.append(f"{{oldSchema: '{shown}'}}")
    return Verdict(tuple(messages), tuple(differences))
