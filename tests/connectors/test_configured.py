"""What the topic of settings means."""

from __future__ import annotations

import pytest

from tailrace.connectors.configured import (
    STOPPED,
    Configured,
    Written,
    write_connector,
    write_fencing,
    write_restart,
    write_target,
    write_tasks,
)


def fold(*records: Written) -> Configured:
    state = Configured()
    for offset, (key, value) in enumerate(records):
        state.apply(key, value, offset)
    return state


def test_tasks_count_from_their_commit_on() -> None:
    first, second = write_tasks("c", [{"a": "1"}, {"a": "2"}]), write_tasks("c", [{"a": "3"}])
    state = fold(write_connector("c", {"name": "c"}), *first, *second[:-1])
    assert state.tasks["c"] == ({"a": "1"}, {"a": "2"})
    state.apply(*second[-1], 9)
    assert state.tasks["c"] == ({"a": "3"},)
    assert state.units() == [("c", -1), ("c", 0)]


def test_tasks_that_compaction_left_without_their_commit_are_nothing() -> None:
    [*tasks, commit] = write_tasks("c-1", [{"a": "1"}, {"a": "2"}])
    assert fold(write_connector("c-1", {}), *tasks).tasks == {}
    state = fold(write_connector("c-1", {}), tasks[1], commit)
    assert state.tasks == {}
    assert state.unread == 1


def test_earlier_tasks_must_be_fenced_after_each_commit() -> None:
    state = fold(write_connector("c", {}), *write_tasks("c", [{}, {}]))
    assert (state.must_fence("c"), state.tasks_to_fence("c")) == (True, 0)
    state.apply(*write_fencing("c", 2), 10)
    assert not state.must_fence("c")
    state.apply(b"commit-c", b'{"tasks":0}', 11)
    assert (state.must_fence("c"), state.tasks_to_fence("c")) == (True, 2)


def test_a_deleted_connector_leaves_only_what_to_fence() -> None:
    state = fold(write_connector("c", {"x": "y"}), write_target("c", STOPPED), *write_tasks("c", [{}]),
                 write_fencing("c", 1), write_restart("c", tasks=True, only_failed=False),
                 write_connector("c", None), write_target("c", None))  # fmt: skip
    assert (state.connectors, state.tasks, state.targets, state.restarts) == ({}, {}, {}, {})
    assert state.tasks_to_fence("c") == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\xff", b"{}"), (b"connector-x", b"{"), (b"connector-x", b"[]"), (b"connector-x", b"{}"),
     (b"commit-x", b'{"tasks":"many"}'), (b"commit-x", b'{"tasks":1}'), (b"task-x-y", b'{"properties":{}}'),
     (b"target-state-x", b'{"state":"FLYING"}'), (b"odd", b"{}")],
)  # fmt: skip
def test_records_that_make_no_sense_change_nothing(key: bytes, value: bytes) -> None:
    state = fold((key, value))
    assert state.unread == 1
    assert state.units() == []


def test_records_of_kafka_connect_itself() -> None:
    """As Apache Kafka Connect 4.3.1 wrote them."""
    state = fold(
        (b"session-key", b'{"key":"BjwGz0BvMOE3rRFWWA==","algorithm":"HmacSHA256","creation-timestamp":1795115811984}'),
        (b"connector-src", b'{"properties":{"connector.class":"FileStreamSource","tasks.max":"1","topic":"lines","name":"src"}}'),
        (b"task-src-0", b'{"properties":{"task.class":"org.apache.kafka.connect.file.FileStreamSourceTask","topic":"lines"}}'),
        (b"commit-src", b'{"tasks":1}'),
        (b"tasks-fencing-src", b'{"task-count":1}'),
        (b"target-state-src", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"restart-connector-src", b'{"include-tasks":true,"only-failed":true}'),
    )  # fmt: skip
    assert state.unread == 0
    assert state.connectors["src"]["topic"] == "lines"
    assert state.tasks["src"][0]["topic"] == "lines"
    assert state.target("src") == STOPPED
    assert not state.must_fence("src")
