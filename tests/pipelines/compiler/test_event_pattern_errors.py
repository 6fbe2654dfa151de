"""What is wrong with a pattern of events is said where it stands, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

import tailrace as tr
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.declared_patterns import compile_pattern
from tailrace.pipelines.errors import DeclarationError
from tailrace.sources.declare import TableRef
from tailrace.testing.ticks import table

COLUMNS = "id BIGINT, k INT, x INT, at TIMESTAMP"


def declared(**changed: Any) -> Any:
    arguments: dict[str, Any] = {
        "key": "k", "order_by": "at", "match": "a b+", "define": {"a": "x = 0", "b": "x > a.x"},
        "select": {"n": "count(*)"},
    }  # fmt: skip
    return tr.pattern("p", tr.topic("events", schema=COLUMNS), **{**arguments, **changed})


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"define": {"a": "x = 0", "c": "x = 1"}}, "define= names 'c'", "match= has: a, b"),
    ({"define": {"a": "y = 0"}}, "column 'y' does not exist", "y = 0"),
    ({"define": {"a": "q.x = 0"}}, "the pattern has no variable 'q'", "q.x = 0"),
    ({"select": {"n": "last(q.x)"}}, "the pattern has no variable 'q'", "last(q.x)"),
    ({"select": {"n": "sum(a.x + b.x)"}}, "one aggregate or navigation over", "sum(a.x + b.x)"),
    ({"select": {"n": "sum(max(x))"}}, "an aggregate inside", "sum(max(x))"),
    ({"select": {"k": "count(*)"}}, "select= names 'k'", "another name"),
    ({"select": {"op": "count(*)"}}, "select= names 'op'", "another name"),
    ({"define": {"a": "final last(x) = 0"}}, "FINAL in DEFINE", "final last"),
    ({"define": {"a": "x > (SELECT max(x) FROM events)"}}, "a query inside a pattern", "SELECT"),
    ({"define": {"a": "x = 0 OR"}}, "define= 'a' is no expression", "x = 0 OR"),
    ({"subsets": {"u": ["a", "q"]}}, "the pattern has no variable 'Q'", "`Q`"),
    ({"skip": "to first q"}, "the pattern has no variable 'Q'", "`Q`"),
    ({"skip": "anywhere"}, "unknown skip 'anywhere'", "past last row"),
    ({"match": "a b{3,2}"}, "at least 3 turns and at most 2", "{3,2}"),
    ({"match": "(a b"}, "'(' is never closed", "(a b"),
    ({"match": "a b)"}, "closes nothing", ")"),
    ({"match": "a -> "}, "nothing stands here", "a ->"),
    ({"match": "a b $"}, "$ in a stream", "a b $"),
    ({"match": "a -> !b"}, "without within=", "within="),
    ({"match": "!b -> a"}, "without within=", "within="),
    ({"match": "a !b"}, "an arrow stands before '!'", "a -> !b"),
    ({"match": "a -> b*"}, "may match no row", "b+"),
    ({"match": "(!a -> b)+"}, "inside a group", "whole pattern"),
    ({"match": "permute(a,b,c,d,e,f,g,h)"}, "a PERMUTE of 8 elements", "at most 7"),
    ({"match": "!b -> a", "within": "1 minute"}, "which may not come first", "own columns"),
    ({"rows": "all, unmatched", "match": "a {- b -}"}, "{- -} with WITH UNMATCHED ROWS", ""),
    ({"key": "card"}, "key= names 'card'", "columns: id, k, x, at"),
    ({"order_by": "x"}, "is INT: not a time", "timestamp_seconds"),
    ({"order_by": "when"}, "order_by=", "when"),
    ({"until": {"q": "x = 1"}}, "until= of Q", ""),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message", "place"), WRONG)
def test_a_mistake_is_named_with_its_place(
    changed: dict[str, Any], message: str, place: str
) -> None:
    with pytest.raises(TailraceError) as raised:
        compile_pattern(declared(**changed), {}, {})
    error = raised.value
    assert message in error.message
    assert place in f"{error.message}\n{error.detail}\n{error.hint}"
    assert "view" not in error.message
    assert error.hint


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"match": " "}, "empty match="),
    ({"key": []}, "the key of pattern"),
    ({"contiguity": "loose"}, "unknown contiguity"),
    ({"rows": "two"}, "unknown rows"),
    ({"emit": "late"}, "unknown emit"),
    ({"matches": "every"}, "needs within="),
    ({"matches": "every", "within": "1 minute", "skip": "to next row"}, "skip= with matches"),
    ({"timeouts": True}, "timeouts= needs within="),
    ({"within": "0 seconds"}, "within= is above zero"),
    ({"late": "never"}, "unknown policy for late rows"),
    ({"keep": "1 second", "lateness": "1 minute"}, "keep is shorter than lateness"),
    ({"define": {"a": " "}}, "define= of pattern"),
    ({"within": 3.5}, "within of tr.pattern must be"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_a_declaration_that_means_nothing_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declared(**changed)
    assert message in raised.value.message
    assert "test_event_pattern_errors.py" in raised.value.detail


def test_a_table_is_read_by_its_inserts_and_needs_a_history() -> None:
    rows = TableRef("shop", "public", "payments")
    arguments: dict[str, Any] = {
        "key": "k", "order_by": "at", "match": "a", "define": {"a": "x = 1"}
    }  # fmt: skip
    with pytest.raises(DeclarationError, match="a table changes"):
        tr.pattern("p", rows, **arguments)
    pattern = tr.pattern("p", rows.inserts(), **arguments)
    known = table("shop.public.payments", COLUMNS, ["id"])
    with pytest.raises(DeclarationError, match="has no history"):
        compile_pattern(pattern, {known.topic: known}, {})


def test_the_event_time_of_a_topic_is_its_own() -> None:
    stream = tr.topic("events", schema="k INT, at TIMESTAMP, other TIMESTAMP", time="at")
    with pytest.raises(DeclarationError, match="says itself"):
        tr.pattern(
            "p", stream, key="k", order_by="at", match="a", define={"a": "true"}, late="drop"
        )
    pattern = tr.pattern("p", stream, key="k", order_by="other", match="a", define={"a": "true"})
    with pytest.raises(DeclarationError, match="event time in 'at'"):
        compile_pattern(pattern, {}, {})


def test_times_may_be_texts_or_expressions() -> None:
    for schema, order_by in [
        ("k INT, at STRING", "at"), ("k INT, at DATE", "at"), ("k INT, at TIMESTAMP_NTZ", "at"),
        ("k INT, at BIGINT", "timestamp_seconds(at)"),
    ]:  # fmt: skip
        pattern = tr.pattern(
            "p", tr.topic("events", schema=schema), key="k", order_by=order_by, match="a",
            define={"a": "true"},
        )  # fmt: skip
        assert compile_pattern(pattern, {}, {}).graph.views["p"].key == ("k",)
