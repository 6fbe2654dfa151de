"""Electing leaders: the preferred ones, or any replica for partitions that have none.

An unclean election takes a replica that may miss acknowledged records; they are lost then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tailrace.client.admin import Admin, Place
from tailrace.client.errors import RequestError
from tailrace.client.operations import ClusterState, Operations, parse_places
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import elect_leaders as messages

PREFERRED, UNCLEAN = 0, 1
PASSING = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)


@dataclass(frozen=True, slots=True)
class Election:
    """A partition that is to be given another leader; `leader` is the one it has."""

    topic: str
    partition: int
    leader: int
    preferred: int


def plan_elections(
    state: ClusterState, *, unclean: bool, only: Iterable[Place] | None = None
) -> list[Election]:
    """Partitions not led by their preferred replica; with `unclean`, those without a leader."""
    chosen = None if only is None else set(only)
    return [
        Election(topic.name, each.partition, each.leader, each.preferred)
        for topic in state.topics
        for each in topic.partitions
        if (chosen is None or (topic.name, each.partition) in chosen)
        and (each.leader < 0 if unclean else 0 <= each.leader != each.preferred)
    ]


def plan_or_elect(
    admin: Admin, places: Iterable[str], *, unclean: bool, execute: bool
) -> list[Election]:
    """The elections among TOPIC or TOPIC/PARTITION (none named: everywhere), held if `execute`."""
    state = Operations(admin).status()
    named = list(places)
    only = parse_places(named, state) if named else None
    elections = plan_elections(state, unclean=unclean, only=only)
    if execute:
        elect(admin, elections, unclean=unclean)
    return elections


def elect(admin: Admin, elections: Iterable[Election], *, unclean: bool) -> None:
    """Hold them. Raises RequestError with Kafka's reason for the first that failed; the others
    have been held."""
    partitions: dict[str, list[int]] = {}
    for each in elections:
        partitions.setdefault(each.topic, []).append(each.partition)
    if not partitions:
        return
    answer = admin.ask(
        ApiKey.ELECT_LEADERS,
        messages.ElectLeadersRequest(
            UNCLEAN if unclean else PREFERRED,
            [messages.TopicPartitions(topic, indexes) for topic, indexes in partitions.items()],
            30_000,
        ),
        messages.ElectLeadersResponse,
    )
    if answer.error_code != ErrorCode.NONE:
        raise RequestError.of(answer.error_code, "electing leaders")
    for topic in answer.replica_election_results:
        for result in topic.partition_result:
            if result.error_code not in PASSING:
                raise RequestError.of(
                    result.error_code,
                    f"electing a leader of {topic.topic}/{result.partition_id}",
                    detail=result.error_message or "",
                )
