"""What a join shows of its two sides, in words that tell apart whatever differs.

The columns of the right side follow those of the left one. One whose name is taken has a number
behind it (`sql.lower_joins.distinct_names`), so a column may be called as another is renamed.
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
