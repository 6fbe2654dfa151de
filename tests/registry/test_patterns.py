"""Patterns of JSON schemas: found as `re.search` finds them, without its backtracking."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.registry.patterns import find

_atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\$", r"\^", "(a|b)", "[$^|]", "[]a]"]
)
_piece = st.tuples(_atoms, st.sampled_from(["", "*", "+", "?", "{2}"])).map("".join)
_branch = st.tuples(
    st.sampled_from(["", "^"]),
    st.lists(_piece, max_size=3).map("".join),
    st.sampled_from(["", "$"]),
).map("".join)
_patterns = st.lists(_branch, min_size=1, max_size=3).map("|".join)


@given(_patterns, st.text(alphabet="ab1$^|]", max_size=5))
def test_what_is_found_is_what_the_library_finds(pattern: str, text: str) -> None:
    assert find(pattern, text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "(", "a(^b)", "(a$|b)c", "x" * 20_000])
def test_what_cannot_be_used_says_so(pattern: str) -> None:
    with pytest.raises(ValueError):
        find(pattern, "aa")


def test_a_pattern_that_would_backtrack_for_ever_ends() -> None:
    assert not find("^(a+)+$", "a" * 200 + "!")
