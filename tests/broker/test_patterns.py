"""Patterns of clients: exact where Python's matcher is, and never a standstill."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.broker.groups.patterns import LENGTH_LIMIT, STEPS_LIMIT, Pattern, PatternError
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import init_producer_id as init
from tailrace.wire.messages import list_transactions as listing

PIECES = st.lists(
    st.sampled_from(["a", "b", ".", "a*", "(ab)+", "[a-c]", "(a|b)", "b?", "a{2}", ".*", "\\d"]),
    max_size=6,
).map("".join)


@given(PIECES, st.lists(st.text(alphabet="abcd1", max_size=12), max_size=5))
def test_a_pattern_matches_what_python_matches(text: str, names: list[str]) -> None:
    pattern = Pattern(text)
    for name in names:
        assert pattern.matches(name) == (re.fullmatch(text, name) is not None)


def begin(talk: WireClient, name: str) -> None:
    request = init.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    assert talk.ask(ApiKey.INIT_PRODUCER_ID, 4, request).error_code == 0


def listed(talk: WireClient, pattern: str) -> tuple[int, list[str]]:
    answer = talk.ask(
        ApiKey.LIST_TRANSACTIONS,
        2,
        listing.ListTransactionsRequest(transactional_id_pattern=pattern),
    )
    return answer.error_code, sorted(one.transactional_id for one in answer.transaction_states)


def test_a_pattern_that_explodes_elsewhere_is_answered_at_once(talk: WireClient) -> None:
    for name in ("a" * 40 + "!", "a" * 40, "orders-1"):
        begin(talk, name)
    assert listed(talk, "(a+)+") == (0, ["a" * 40])
    assert listed(talk, "orders-.*") == (0, ["orders-1"])
    assert listed(talk, "(") == (128, [])
    assert listed(talk, "(?=a)a*") == (128, [])


def test_a_pattern_with_too_many_possibilities_is_refused(talk: WireClient) -> None:
    name = "ab" * 120
    begin(talk, name)
    many = "(a|b|ab|ba)*" * 60 + "(.*a){200}" + "c"
    assert listed(talk, many) == (128, [])
    with pytest.raises(PatternError, match="too long"):
        Pattern("a" * (LENGTH_LIMIT + 1))


def test_the_usual_pattern_over_many_names_is_far_from_the_limit() -> None:
    pattern = Pattern(".*orders.*")
    for number in range(20_000):
        assert pattern.matches(f"shop.orders-{number}") is True
    assert pattern._steps < STEPS_LIMIT / 10
