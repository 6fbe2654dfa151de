"""Bags against a counter, in every form a small one has had."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.engine.operators import bags
from tailrace.pipelines.engine.operators.bags import Bag, by_one_row, matching
from tailrace.pipelines.values.rows import dumps
from tailrace.testing.state import MemoryState

ROWS = st.integers(0, 6).map(lambda number: dumps((number, "x" * number)))
DELTAS = st.lists(
    st.dictionaries(ROWS, st.sampled_from([-2, -1, 1, 2]), min_size=1, max_size=5), max_size=8
)


def _possible(deltas: list[dict[bytes, int]], before: dict[bytes, int]) -> Counter[bytes]:
    """Make `deltas` take away only what is there; what they lead to."""
    total = Counter(before)
    for delta in deltas:
        for row in list(delta):
            delta[row] = max(delta[row], -total[row])
            if not delta[row]:
                del delta[row]
        total.update(delta)
    return Counter({row: weight for row, weight in total.items() if weight})


def _state(deltas: list[dict[bytes, int]], first: dict[bytes, bytes]) -> tuple[MemoryState, bool]:
    state = MemoryState()
    state.put_many(first.items())
    there = bool(first)
    for delta in deltas:
        puts: list[tuple[bytes, bytes | None]] = []
        if not delta:
            continue
        header = state.get(b"k")
        there = Bag(state, b"k", header).change(delta, puts)
        if len(delta) == 1:
            ((row, weight),) = delta.items()
            short = by_one_row(header, row, weight)
            assert short is None or puts == [(b"k", short or None)]
        state.put_many(puts)
    return state, there


@given(DELTAS, st.sampled_from([1, 3, 48]))
def test_a_bag_holds_what_a_counter_does(deltas: list[dict[bytes, int]], spill: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags, "SPILL_ROWS", spill)
        wanted = _possible(deltas, {})
        state, there = _state(deltas, {})
        header = state.get(b"k")
        assert there == bool(wanted) == (header is not None)
        assert dict(Bag(state, b"k", header).rows()) == wanted
        if header is not None:
            assert len(matching(state, b"k", header)) == len(wanted)


def test_the_short_way_of_one_row_is_open_where_it_is_needed() -> None:
    one, two = dumps((1, "x")), dumps((2, "xx"))
    both = by_one_row(by_one_row(None, one, 1), two, 1)
    assert dict(Bag(MemoryState(), b"k", both).rows()) == {one: 1, two: 1}
    left = by_one_row(both, one, -1)
    assert dict(Bag(MemoryState(), b"k", left).rows()) == {two: 1}
    assert by_one_row(left, two, -1) == b""


@given(DELTAS)
def test_the_forms_of_earlier_versions_are_read_on(deltas: list[dict[bytes, int]]) -> None:
    one, two = dumps((1, "x")), dumps((2, "xx"))
    frame = dumps({one: 1})
    frames = b"".join(len(f).to_bytes(4, "big") + f for f in (frame, dumps({two: 1}), frame))
    for header, before in (
        (b"\x00" + dumps({one: 2, two: 1}), {one: 2, two: 1}),
        (b"\x02\x03" + frames, {one: 2, two: 1}),
    ):
        changes = [dict(delta) for delta in deltas]
        expected = _possible(changes, before)
        state, _ = _state(changes, {b"k": header})
        assert dict(Bag(state, b"k", state.get(b"k")).rows()) == expected
