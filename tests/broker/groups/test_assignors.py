"""Assignors and patterns of the server-side protocol, against naive rules."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailrace.broker.groups.assignors import ASSIGNORS, Assignment, Place, Problem, uniform
from tailrace.broker.groups.patterns import Pattern, PatternError

topic_ids = st.sampled_from([bytes([number]) * 16 for number in range(4)])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    topics = draw(st.dictionaries(topic_ids, st.integers(1, 7), max_size=4))
    members = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6))
    same = draw(st.booleans())
    wish = st.frozensets(topic_ids, max_size=4)
    shared = draw(wish)
    subscriptions = {one: shared if same else draw(wish) for one in members}
    # What they had before: any earlier answer of any assignor, or nothing.
    earlier = Problem(topics, {one: draw(wish) for one in members}, {})
    present = draw(st.sampled_from(sorted(ASSIGNORS)).map(lambda name: ASSIGNORS[name](earlier)))
    return Problem(topics, subscriptions, present if draw(st.booleans()) else {})


def places_of(problem: Problem) -> set[Place]:
    """Every partition that somebody wants."""
    wanted = frozenset().union(*problem.subscriptions.values())
    return {
        (one, index) for one, n in problem.topics.items() if one in wanted for index in range(n)
    }


def check(problem: Problem, given: Assignment) -> None:
    assert set(given) == set(problem.subscriptions)
    everything = [place for places in given.values() for place in places]
    assert len(everything) == len(set(everything)), "a partition has two readers"
    assert set(everything) == places_of(problem), "a partition has no reader"
    for member, places in given.items():
        assert {topic for topic, _ in places} <= problem.subscriptions[member]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(problem=problems())
def test_every_partition_has_one_reader_who_wants_it(name: str, problem: Problem) -> None:
    given = ASSIGNORS[name](problem)
    check(problem, given)
    shuffled = Problem(
        dict(reversed(problem.topics.items())),
        dict(reversed(problem.subscriptions.items())),
        dict(reversed(problem.present.items())),
    )
    assert ASSIGNORS[name](shuffled) == given, "the order of the input matters"


@given(problem=problems())
def test_uniform_cannot_be_made_more_even_by_moving_one_partition(problem: Problem) -> None:
    given = uniform(problem)
    for places in given.values():
        for topic, _ in places:
            for other, wishes in problem.subscriptions.items():
                if topic in wishes:
                    assert len(given[other]) + 1 >= len(places)


@given(problem=problems())
def test_uniform_moves_nothing_when_nothing_changed(problem: Problem) -> None:
    given = uniform(problem)
    assert uniform(Problem(problem.topics, problem.subscriptions, given)) == given


@given(problem=problems(), gone=st.integers(0, 5))
def test_uniform_leaves_the_rest_in_place_when_one_goes(problem: Problem, gone: int) -> None:
    members = sorted(problem.subscriptions)
    assume(len(members) > 1 and len(set(problem.subscriptions.values())) == 1)
    before = uniform(problem)
    leaver = members[gone % len(members)]
    subscriptions = {one: wish for one, wish in problem.subscriptions.items() if one != leaver}
    after = uniform(Problem(problem.topics, subscriptions, before))
    moved = sum(len(before[one] - after[one]) for one in subscriptions)
    assert moved == 0, "those who stay keep what they had"


names = st.text(st.sampled_from("ab.-_1"), max_size=8)
pieces = st.sampled_from(
    ["a", "b", r"\.", ".", "[ab]", "[^a]", "[a-b1]", r"\d", r"\w", r"\W", "1", "-", "_"]
)
patterns = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@given(text=patterns, name=names)
def test_patterns_match_what_pythons_match(text: str, name: str) -> None:
    assert Pattern(text).matches(name) == (re.fullmatch(text, name, re.ASCII) is not None)


def test_anchors_are_allowed_at_both_ends() -> None:
    assert Pattern("^orders.*$").matches("orders.eu")
    assert not Pattern("^orders$").matches("orders.eu")


def test_a_pattern_made_to_hang_is_matched_at_once() -> None:
    assert not Pattern("(a+)+b").matches("a" * 249)
    assert not Pattern("(a|a)*b").matches("a" * 249)
    assert Pattern("(?:.*)*x").matches("a" * 248 + "x")


@pytest.mark.parametrize(
    "text", ["(", "[", "a{2000}", r"(a)\1", "(?=a)", "(?<!a)b", "*", r"\b", "(?i)a", "a{1001,}"]
)
def test_what_the_engine_does_not_do_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)


def test_a_pattern_cannot_ask_for_much_memory() -> None:
    with pytest.raises(PatternError):
        Pattern("((a{1000}){1000}){1000}")
