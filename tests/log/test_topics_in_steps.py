"""A wide topic is made, widened and deleted in steps, and a crash between any two loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.errors import TopicExistsError, UnknownTopicError
from tailrace.log.store import Store, at_once
from tailrace.records.batch import Record, encode_batch


def append(store: Store, index: int = 0) -> None:
    store.partition("t", index).append(encode_batch([Record(0, 1, None, b"old", ())]))


@pytest.mark.parametrize("steps_done", [1, 2, 5])
def test_a_crash_while_a_topic_is_made_leaves_the_whole_topic(
    tmp_path: Path, steps_done: int
) -> None:
    store = Store.open([tmp_path])
    steps = store.create_topic_in_steps("t", 5)
    for _ in range(steps_done):
        next(steps)
    assert "t" not in store.topics
    with pytest.raises(TopicExistsError):
        store.create_topic("t")
    store.abandon()
    with Store.open([tmp_path]) as again:
        assert len(again.topics["t"].partitions) == 5
        append(again, 4)


def test_names_that_collide_with_a_topic_in_the_making_are_refused(tmp_path: Path) -> None:
    with Store.open([tmp_path]) as store:
        steps = store.create_topic_in_steps("a.b", 2)
        next(steps)
        with pytest.raises(TopicExistsError):
            store.create_topic("a_b")
        at_once(steps)
        assert len(store.topics["a.b"].partitions) == 2


@pytest.mark.parametrize("steps_done", [1, 2, 3])
def test_after_a_crash_in_a_deletion_a_new_topic_has_none_of_the_old_records(
    tmp_path: Path, steps_done: int
) -> None:
    store = Store.open([tmp_path])
    store.create_topic("t", 3)
    for index in range(3):
        append(store, index)
    steps = store.delete_topic_in_steps("t")
    for _ in range(steps_done):
        next(steps)
    assert "t" not in store.topics
    with pytest.raises(TopicExistsError, match="deleted"):
        store.create_topic("t")
    store.abandon()
    with Store.open([tmp_path]) as again:
        assert "t" not in again.topics
        made = again.create_topic("t", 3)
        assert [each.end_offset for each in made.partitions] == [0, 0, 0]
        again.delete_topic("t")
        again.create_topic("t")


def test_two_requests_widen_a_topic_together_and_a_deletion_ends_both(tmp_path: Path) -> None:
    with Store.open([tmp_path]) as store:
        topic = store.create_topic("t", 1)
        first, second = (store.add_partitions_in_steps("t", total) for total in (4, 6))
        next(first)
        next(second)
        for _ in range(3):
            next(second)  # waits for those before its own
        at_once(first)
        at_once(second)
        assert [each.index for each in topic.partitions] == list(range(6))
        third = store.add_partitions_in_steps("t", 8)
        next(third)
        store.delete_topic("t")
        with pytest.raises(UnknownTopicError):
            next(third)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("t-")]
