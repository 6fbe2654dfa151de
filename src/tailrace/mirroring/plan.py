"""What a mirror is to do, whoever says it: a project's file, `tr.mirror(…)` or a command.

In a project the ends are names of `[clusters.*]`, which are also the names of the sites; `log` is
the project's own log, unless a cluster has that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tailrace.errors import UsageError
from tailrace.kinds import misfit
from tailrace.mirroring.errors import MirrorDeclarationError

SAME, PREFIX = "same", "prefix"
NAMES = (SAME, PREFIX)
ANYWHERE, TRANSACTIONS = "none", "transactions"
CUTS = (ANYWHERE, TRANSACTIONS)
MOST_SHARDS = 64
LATEST, SITE = "latest", "site:"
KEY_PREFIX = "key-prefix"
OWN_LOG = "log"
SETTINGS = (
    ("from", None, "Name of the cluster that is read; `log` is the project's own log."),
    ("to", None, "Name of the cluster that is written."),
    ("topics", None, "Regular expressions for the whole names of topics."),
    ("names", SAME, "What topics are called at the target: same, or prefix for `ams.orders`."),
    ("groups", None, "Regular expressions for groups whose translated offsets are stored there."),
    ("cut", ANYWHERE, "transactions: those of the source arrive whole; none: cut anywhere."),
    ("conflicts", None, "Which record of a key wins where both sites write it: latest, or site:NAME; absent: topics merge."),
    ("shards", 1, "Processes that share the partitions. A cut is within one of them."),
    ("pin", None, "By topic `key-prefix`: keys begin with the site that alone writes them, as `ams:17`."),
)  # fmt: skip
"""What `[mirrors.NAME]` takes: name, default, meaning."""
TAKEN = frozenset({"runs", "state", "owner", "stopped", "settings", "kept", "again"})
"""First words of keys of rows."""


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """A mirror as it is declared. `topics` and `groups` are regular expressions for whole names."""

    name: str
    source: str
    target: str
    topics: tuple[str, ...]
    names: str = SAME
    groups: tuple[str, ...] = ()
    cut: str = ANYWHERE
    conflicts: str | None = None
    pin: Mapping[str, str] = field(default_factory=dict)
    shards: int = 1
    others: tuple[str, ...] = ()
    """Sites whose records come to the target by another way."""

    @property
    def topics_pattern(self) -> str:
        return alternatives(self.topics)

    @property
    def groups_pattern(self) -> str | None:
        return alternatives(self.groups) if self.groups else None


def mirror(
    name: str,
    source: str,
    target: str,
    *,
    topics: str | Sequence[str],
    names: str = SAME,
    groups: str | Sequence[str] = (),
    cut: str = ANYWHERE,
    conflicts: str | None = None,
    pin: Mapping[str, str] | None = None,
    shards: int = 1,
) -> MirrorPlan:
    """Declare that topics of the cluster `source` are kept in the cluster `target`; both are names
    of `[clusters.*]`, or `log` for the project's own log.

        to_berlin = tr.mirror("to-berlin", "ams", "ber", topics=["orders", r"shop\\..*"])

    `names`: "same", or "prefix" for `ams.orders`. `groups`: groups of consumers whose translated
    offsets are stored at the target. `cut="transactions"`: a transaction of the source arrives as a
    whole. `conflicts`: which record of a key wins where both sites write it, "latest" or
    "site:NAME". `pin={"carts": "key-prefix"}`: keys that begin with the name of a site, as in
    `ams:17`, are written there alone. `shards`: how many processes share its partitions.
    """
    given = locals()
    wrong = misfit(f"mirror {name!r}", mirror, given)
    if wrong is not None:
        raise MirrorDeclarationError(wrong)
    return _checked(
        MirrorPlan(
            name, source, target, _several(topics), names, _several(groups), cut, conflicts,
            dict(pin or {}), shards,
        )
    )  # fmt: skip


def of_table(name: str, table: Mapping[str, Any]) -> MirrorPlan:
    """What `[mirrors.NAME]` of a project's file says."""
    words = {"from": "source", "to": "target"}
    known = {each.name for each in fields(MirrorPlan)} - {"name", "source", "target", "others"}
    for key in table:
        if key not in known | set(words):
            raise MirrorDeclarationError(
                f"mirror {name!r} has no setting {key!r}",
                hint=f"settings: {', '.join(sorted(known | set(words)))}",
            )
    for key in (*words, "topics"):
        if key not in table:
            raise MirrorDeclarationError(
                f"mirror {name!r} lacks {key!r}",
                hint='from = "ams", to = "ber", topics = ["orders"]',
            )
    return mirror(name, **{words.get(key, key): value for key, value in table.items()})


def with_others(plans: Iterable[MirrorPlan]) -> list[MirrorPlan]:
    """The plans of one project, each with the sites that reach its target by another mirror: what
    these wrote is not sent there again."""
    plans = list(plans)
    found = []
    for plan in plans:
        others = [plan.target]
        others += [
            each.source
            for each in plans
            if each is not plan and each.target == plan.target and SAME == each.names == plan.names
        ]
        sites = tuple(dict.fromkeys(others)) if plan.names == SAME else ()
        found.append(replace(plan, others=tuple(one for one in sites if one != plan.source)))
    return found


def alternatives(patterns: Sequence[str]) -> str:
    """One regular expression for several."""
    return patterns[0] if len(patterns) == 1 else "|".join(f"(?:{each})" for each in patterns)


def compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(
            f"{text!r} is no regular expression",
            detail=str(error),
            hint='for example "shop\\\\..*"',
        ) from error


def validate_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name) or name in TAKEN:
        raise UsageError(
            f"{name!r} cannot be the name of a mirror",
            hint=f"letters, digits, dots, dashes and underscores; not {', '.join(sorted(TAKEN))}",
        )


def validate_choices(names: str, cut: str, conflicts: str | None, pin: Mapping[str, str]) -> None:
    """Raises UsageError for what no mirror does."""
    if names not in NAMES:
        raise UsageError(f"names are {' or '.join(NAMES)}, not {names!r}")
    if cut not in CUTS:
        raise UsageError(
            f"there is no cut {cut!r}",
            hint='"transactions" keeps transactions of the source whole, those of captured '
            'databases as well; "none" cuts anywhere',
        )
    if conflicts is not None and conflicts != LATEST and not conflicts.removeprefix(SITE):
        raise UsageError("conflicts name no site", hint='"latest", or "site:ams"')
    if conflicts is not None and conflicts != LATEST and not conflicts.startswith(SITE):
        raise UsageError(f"there is no rule {conflicts!r}", hint='"latest", or "site:ams"')
    for topic, how in pin.items():
        if how != KEY_PREFIX:
            raise UsageError(f"keys of {topic} cannot be pinned by {how!r}", hint=f'"{KEY_PREFIX}"')
    if names == PREFIX and (conflicts is not None or pin):
        raise UsageError(
            "topics with a prefix have one writer, so there are no conflicts",
            hint="leave conflicts and pin out, or names",
        )
    if cut == TRANSACTIONS and (conflicts is not None or pin):
        raise UsageError(
            "a mirror that settles conflicts takes transactions apart",
            detail="a record that loses is left out of its transaction",
            hint="leave cut out, or mirror these topics by a mirror of their own",
        )


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _checked(plan: MirrorPlan) -> MirrorPlan:
    try:
        validate_name(plan.name)
        validate_choices(plan.names, plan.cut, plan.conflicts, plan.pin)
        if not plan.topics:
            raise UsageError("no topics are named", hint='topics = ["orders"]')
        if not 1 <= plan.shards <= MOST_SHARDS:
            raise UsageError(f"{plan.shards} shards", hint=f"shards = 1 to {MOST_SHARDS}")
        if plan.source == plan.target and plan.names == SAME:
            raise UsageError("both ends are one log", hint='names = "prefix"')
        for text in (*plan.topics, *plan.groups):
            compiled(text)
    except UsageError as error:
        raise MirrorDeclarationError(
            f"mirror {plan.name!r}: {error.message}", detail=error.detail, hint=error.hint
        ) from error
    return plan
