"""Columns in the descriptions of operators, in words that tell apart whatever differs.

A description names its operator, and a column may be called anything: as another of a join
is renamed (`sql.lower_joins.distinct_names` puts a number behind a name that is taken), or
by the very words that say how rows are ordered.
"""

from __future__ import annotations

from collections.abc import Sequence


def shown_columns(names: Sequence[str], left: int, right: Sequence[str]) -> str:
    """The columns of a join by name; the first `left` of them are the left side's, and `right`
    are the others as their own side calls them."""
    listed = list(names[:left])
    for name, own in zip(names[left:], right, strict=False):  # a semi join shows none of them
        base, _, number = name.rpartition("_")
        taken = number.isdecimal() and base in names[: len(listed)]
        listed.append(f"{name} by its own name" if taken and name == own else name)
    return ", ".join(listed)


def in_order(name: str) -> str:
    """A column that rows are ordered by: words follow it, so it must not look like some."""
    return f"`{name}`" if " " in name else name
