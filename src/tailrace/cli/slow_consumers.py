"""What `topic describe` and `group describe` say about consumers that cannot keep up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import orjson

if TYPE_CHECKING:
    from tailrace.client.admin import Admin


def status(admin: Admin, kind: Literal["topic", "group"], name: str) -> dict[str, Any]:
    """The broker's figures; empty on a broker that does not count them."""
    told = admin.status(kind, name)
    found: dict[str, Any] = orjson.loads(told) if told else {}
    return found


def of_topic(told: Mapping[str, Any]) -> Iterator[str]:
    """Lines about a topic."""
    policy = told.get("policy")
    if policy in ("slow", "block"):
        lag = told["lag"]
        held = "too far behind" if told["over"] else "within the limit"
        yield (
            f"slow consumers: {policy} producers for group {told['group']}, which is {held}: "
            f"{lag['records']:,} records, {lag['bytes']:,} bytes, {lag['ms']:,} ms"
        )
        yield (
            f"  {told['delayed_requests']:,} requests waited {told['delayed_seconds']:g} s in all, "
            f"{told['refused_requests']:,} were refused, {told['held_connections']} wait now"
        )
    elif policy == "drop":
        yield f"slow consumers: {told['dropped_records']:,} records were dropped"
    for group, count in (told.get("lost") or {}).items():
        yield f"group {group} lost {count:,} records before it read them"


def of_group(told: Mapping[str, Any]) -> Iterator[str]:
    """Lines about a group."""
    for topic, count in (told.get("lost") or {}).items():
        yield f"lost {count:,} records of {topic} before it read them"
    for topic, used in (told.get("retention_used") or {}).items():
        if used >= 0.5:
            yield f"its next record of {topic} has used {used:.0%} of what is kept"
    for topic, one in (told.get("holds_back") or {}).items():
        state = "holds producers back" if one["over"] else "does not hold producers back now"
        yield f"{topic} waits for it ({one['policy']}): {state}, {one['delayed_requests']:,} requests so far"
