"""LIKE without backtracking gives what LIKE means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records import like
from tailrace.records.like import compile_like


def _naive(text: str, pattern: str, escape: str | None) -> bool:
    """By its definition, every way tried."""
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == escape:
        return text[:1] == rest[0] and _naive(text[1:], rest[1:], escape)
    if head == "%":
        return any(_naive(text[at:], rest, escape) for at in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and _naive(text[1:], rest, escape)


@st.composite
def _patterns(draw: st.DrawFn, escape: str | None) -> str:
    tokens = ["a", "b", "%", "_", "\n", "😀", "."]
    if escape is None:
        tokens.append("\\")
    else:
        tokens = [token for token in tokens if token != escape]
        tokens += [escape + token for token in ("%", "_", escape)]
    return "".join(draw(st.lists(st.sampled_from(tokens), max_size=8)))


@pytest.mark.parametrize("escape", ["\\", None, "|", "%", "_", "a"])
def test_it_is_what_trying_every_way_gives(escape: str | None) -> None:
    @given(_patterns(escape), st.text("ab%_\\|.\n😀", max_size=10))
    def agree(pattern: str, text: str) -> None:
        assert compile_like(pattern, escape)(text) == _naive(text, pattern, escape)

    agree()


@given(st.text("ab%_", max_size=12), st.text("ab", max_size=40))
def test_long_pieces_are_found_at_the_same_places(pattern: str, text: str) -> None:
    for piece in like._pieces(pattern, None):
        if piece:
            found = like._regex(piece).search(text, 1) if text else None
            place = found.start() if found else -1
            assert like._shift_and(piece, text, 1, len(text)) == place


@pytest.mark.parametrize("pattern", ["a\\", "a\\b", "\\a", "%\\n_"])
def test_an_escape_before_anything_else_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="escape character"):
        compile_like(pattern)


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        ("%foo%bar%", "foo"),
        ("%a%a%a%a%a%a%b", "a"),
        ("%a_a%_a_a_b%", "a"),
        ("%" + "a_" * 2000 + "b%", "a"),
        ("a%" * 5000 + "b", "a"),
    ],
)
def test_no_pattern_takes_longer_than_its_text_is_long(pattern: str, unit: str) -> None:
    # Backtracking takes hours for each of these: the test would not end.
    assert not compile_like(pattern)(unit * 200_000)


def test_a_pattern_without_wildcards_is_the_text_itself() -> None:
    assert compile_like("a.c")("a.c")
    assert not compile_like("a.c")("abc")
    assert compile_like("")("")
    assert not compile_like("")("a")
