"""The group that the tasks of a sink are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def group_of(connector: str, settings: Mapping[str, Any]) -> str:
    """`connect-NAME`, as Kafka Connect's, unless the connector says otherwise."""
    return str(settings.get("consumer.override.group.id") or f"connect-{connector}")
