"""Topics of the source at the target: made, widened, and their settings followed.

A topic is made with the partitions and settings that it has at the source. Later a setting is
taken over when it changes at the source; what it was then stands in a row, so that a change is seen
also if it came while no mirror ran, and settings that differ from the beginning are left alone.
"""

from __future__ import annotations

import re

from tailrace.client.admin import Admin
from tailrace.client.errors import TopicExistsError

# Settings that belong to the place, not to the topic.
NOT_COPIED = re.compile(
    r"(leader|follower)\.replication\.throttled\.replicas|min\.insync\.replicas"
    r"|unclean\.leader\.election\.enable|(tailrace|internal|remote)\..*"
)


def own_settings(admin: Admin, topic: str) -> dict[str, str]:
    """What a topic says itself, and may be copied."""
    return {
        name: str(entry.value)
        for name, entry in sorted(admin.topic_config(topic).items())
        if not entry.is_default and entry.value is not None and not NOT_COPIED.fullmatch(name)
    }


def ensure(target: Admin, name: str, partitions: int, settings: dict[str, str]) -> None:
    """Make a topic, or the partitions that it lacks."""
    found = target.describe_topic(name)
    if found is None:
        try:
            target.create_topic(name, partitions, settings)
            return
        except TopicExistsError:
            found = target.describe_topic(name)
    if found is not None and len(found.leaders) < partitions:
        target.add_partitions(name, partitions)


def follow(target: Admin, name: str, before: dict[str, str], now: dict[str, str]) -> None:
    """Take over what has changed at the source."""
    changes: dict[str, str | None] = {
        key: value for key, value in now.items() if before.get(key) != value
    }
    changes |= dict.fromkeys(before.keys() - now.keys())
    if changes:
        have = own_settings(target, name)
        changes = {key: value for key, value in changes.items() if have.get(key) != value}
    if changes:
        target.alter_topic_config(name, changes)
