"""The event topic itself: made once, checked at every opening, never compacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailrace.client.errors import RequestError, TopicExistsError
from tailrace.client.event_topics import refuse_loss
from tailrace.facts.errors import EventsDifferError
from tailrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.declare import Events

MARK = "tailrace.events"
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "flush.messages": "1",
    # A clock that jumped ahead and back leaves a last event from the future, and times of a
    # partition never go back: the log must take the ones behind it.
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
STATE_SETTINGS = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "604800000",
    "delete.retention.ms": "604800000",
}


def ensure_topic(log: Log, declared: Events[Any]) -> None:
    """Make the topic if it is not there; refuse one that loses events, or has another number
    of partitions."""
    name = declared.name
    if log.topic(name) is None:
        _create(log, name, declared.partitions)
    found = log.topic(name)
    assert found is not None
    if len(found.leaders) != declared.partitions:
        raise EventsDifferError(
            f"{name!r} has {len(found.leaders)} partitions and is declared with "
            f"{declared.partitions}",
            detail="A stream's partition follows from their number: with another one its events "
            "would stand in two places.",
            hint=f"declare partitions={len(found.leaders)}, or write a new topic",
        )
    refuse_loss(name, log.topic_config(name))
    if declared.publish:
        _ensure_states(log, declared)


def _ensure_states(log: Log, declared: Events[Any]) -> None:
    """The table of states, with a partition for each of the events."""
    name = declared.state_topic
    if log.topic(name) is None:
        try:
            log.create_topic(name, declared.partitions, STATE_SETTINGS)
        except TopicExistsError:
            pass  # another process was first
    found = log.topic(name)
    assert found is not None
    policy = log.topic_config(name).get("cleanup.policy")
    if len(found.leaders) != declared.partitions or policy != "compact":
        raise EventsDifferError(
            f"{name!r} is no table of the states of {declared.name!r}",
            detail=f"it has {len(found.leaders)} partitions and cleanup.policy={policy}; "
            f"{declared.partitions} and compact are needed",
            hint="delete it, it is written again; or leave publish=True out",
        )


def _create(log: Log, name: str, partitions: int) -> None:
    try:
        log.create_topic(name, partitions, {**SETTINGS, MARK: "true"})
    except TopicExistsError:
        return  # another process was first
    except RequestError as refused:
        if refused.error_code != ErrorCode.INVALID_CONFIG:
            raise
        try:  # Apache Kafka has no place for the mark
            log.create_topic(name, partitions, SETTINGS)
        except TopicExistsError:
            return
