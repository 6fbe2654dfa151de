"""How near groups are to losing records: what they have not read, against what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.client.fetcher import Fetcher
from tailrace.clock import SYSTEM, Clock

MOST_PARTITIONS = 20
CONFIG_KEPT_SECONDS = 60.0


class Unread:
    """Looks at the oldest unread record of lagging groups. For one thread."""

    def __init__(self, bootstrap: str, *, clock: Clock = SYSTEM) -> None:
        self._fetcher = Fetcher(bootstrap, fetch_bytes=1 << 16, timeout=5.0)
        self._admin = Admin.over(self._fetcher.cluster)
        self._clock = clock
        self._configs: dict[str, tuple[float, dict[str, str]]] = {}

    def close(self) -> None:
        self._fetcher.close()

    def look(self, group: str, partitions: list[Mapping[str, Any]]) -> dict[str, Any]:
        """`lost`: records removed before they were read; `retention_used`: the share of the
        time records are kept that the oldest unread one has waited; `holds_back`: topics
        whose producers wait for this group. The embedded broker counts these itself."""
        told = self._admin.status("group", group)
        if told:
            counted = orjson.loads(told)
            used = max((counted.get("retention_used") or {"": 0.0}).values())
            return {
                "lost": sum((counted.get("lost") or {}).values()),
                "retention_used": used,
                "holds_back": [t for t, one in (counted.get("holds_back") or {}).items() if one.get("over")],
            }  # fmt: skip
        return {**self.estimate(partitions), "holds_back": []}

    def estimate(self, partitions: list[Mapping[str, Any]]) -> dict[str, float | int]:
        """The same from offsets and records alone, as any broker gives them."""
        behind = [one for one in partitions if one["lag"] > 0 and one["committed"] >= 0]
        if not behind:
            return {"lost": 0, "retention_used": 0.0}
        starts = self._admin.start_offsets([(one["topic"], one["partition"]) for one in behind])
        lost, used = 0, 0.0
        for one in sorted(behind, key=lambda one: -one["lag"])[:MOST_PARTITIONS]:
            start = starts[one["topic"], one["partition"]]
            config = self._config(one["topic"])
            if "compact" not in config.get("cleanup.policy", ""):
                lost += max(0, start - one["committed"])
            kept = kept_ms(config)
            if kept is not None and kept > 0:
                age = self._age(one["topic"], one["partition"], max(start, one["committed"]))
                used = max(used, age / kept)
        return {"lost": lost, "retention_used": round(used, 3)}

    def _age(self, topic: str, partition: int, offset: int) -> float:
        try:
            records = self._fetcher.fetch(topic, partition, offset).records
        except ClientError:
            return 0.0  # it moved while we looked; the next round sees it
        return self._clock.wall_ms() - records[0].timestamp if records else 0.0

    def _config(self, topic: str) -> dict[str, str]:
        known = self._configs.get(topic)
        now = self._clock.monotonic()
        if known is None or now - known[0] > CONFIG_KEPT_SECONDS:
            found = {name: entry.value or "" for name, entry in self._admin.topic_config(topic).items()}  # fmt: skip
            known = self._configs[topic] = (now, found)
        return known[1]


def kept_ms(config: Mapping[str, str]) -> int | None:
    """How long a reader may stay away without missing anything; None: for ever.

    A deleting topic forgets records after `retention.ms`, a compacted one the news of a
    deletion after `delete.retention.ms`.
    """
    policy = config.get("cleanup.policy", "delete")
    limits = []
    if "delete" in policy and int(config.get("retention.ms") or -1) >= 0:
        limits.append(int(config["retention.ms"]))
    if "compact" in policy and int(config.get("delete.retention.ms") or -1) >= 0:
        limits.append(int(config["delete.retention.ms"]))
    return min(limits, default=None)
