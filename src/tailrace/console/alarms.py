"""What deserves attention, from the reports and figures everybody can see.

An alarm says what, how bad, and what to do. The levels are defaults an operator would
choose; each is stated here and nowhere else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tailrace.errors import in_one_line
from tailrace.node.parts import SHARD

LAG_WARNING = 100_000
DISK_WARNING = 0.10
DISK_CRITICAL = 0.03
RETENTION_WARNING = 0.5  # share of the time a record is kept that an unread one has waited
RETENTION_CRITICAL = 0.8
LATE_WARNING = 0.01  # share of a topic's records that came behind the watermark
LATE_FEWEST = 10
RESTARTS_WARNING = 3  # without a good minute between them, the last one this long ago
RESTARTS_MS = 300_000
PRODUCE_ERRORS_WARNING = 0.01  # share of a minute's produce requests
PRODUCE_ERRORS_CRITICAL = 0.10
PRODUCE_FEWEST = 20
REFUSED_WARNING = 0.10  # share of what an edge received in the last minute
REFUSED_FEWEST = 20
MIRROR_WARNING_SECONDS = 60  # since a mirror was last level with its source
MIRROR_CRITICAL_SECONDS = 600
LOOP_IDLE_WARNING = 0.10  # share of a minute the broker's loop had nothing to do
LOOP_IDLE_CRITICAL = 0.02


def alarms(
    parts: Iterable[Mapping[str, Any]],
    groups: Iterable[Mapping[str, Any]],
    directory: Path,
    topics: Iterable[Mapping[str, Any]] = (),
) -> Iterator[dict[str, str]]:
    """Every alarm that holds now."""
    records = {topic["name"]: topic["records"] for topic in topics}
    for part in parts:
        yield from _of_part(part)
        yield from _of_broker(part)
        yield from _of_edge(part)
        yield from _of_mirror(part)
        yield from _late(part, records)
    for group in groups:
        yield from _of_group(group)
    yield from _disk(directory)


def _of_part(part: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    what, kind, name = f"{part['kind']} {part['name']}", part["kind"], part["name"]
    error = in_one_line(part.get("error") or {})
    if error.get("code") == "sink-held":
        yield _alarm("warning", what, str(error["error"]), f"it was rolled back on purpose; `tailrace sink switch {name}` goes on")  # fmt: skip
    elif part["state"] in ("failed", "stopped"):
        hint = error.get("hint") or "it is started again by itself"
        yield _alarm("critical", what, str(error.get("error", "it ended")), str(hint))
    elif part["state"] == "lagging" and not part.get("stops"):
        hint = error.get("hint") or "it goes on by itself when what it waits for answers"
        yield _alarm("warning", what, str(error.get("error", "is behind or silent")), str(hint))
    yield from _streams(part)
    behind, kept = part.get("behind_ms") or 0, part.get("delete_retention_ms") or 0
    if kept and behind > RETENTION_WARNING * kept:
        level = "critical" if behind > RETENTION_CRITICAL * kept else "warning"
        yield _alarm(level, what, f"is so far behind that tombstones may be compacted away: {behind / kept:.0%} of delete.retention.ms", "see why it waits; beyond it the copy is compared key by key")  # fmt: skip
    ended_ms = int(part.get("at") or 0) - int(part.get("ended_at") or 0)
    if int(part.get("restarts") or 0) >= RESTARTS_WARNING and ended_ms < RESTARTS_MS:
        why = f": {error['error']}" if error.get("error") else ""
        yield _alarm("warning", what, f"was started again {part['restarts']} times{why}", "`tailrace status --verbose` shows its last error in full")  # fmt: skip
    state = part.get("wal_state")
    if state in ("warning", "critical", "lost"):
        held = _size(part.get("wal_retained_bytes"))
        level = "warning" if state == "warning" else "critical"
        yield _alarm(level, what, f"the database keeps {held} of WAL for its slot", f"`tailrace source doctor {name}` says why; the slot goes on when capture does")  # fmt: skip
    dead = part.get("dead_letters") if kind == "sink" else part.get("dead")
    if dead:
        command = f"tailrace sink dead-letters {name}" if kind == "sink" else "tailrace pipeline dead-letters NAME"  # fmt: skip
        yield _alarm("warning", what, f"{dead} records were set aside", f"look at them and retry: `{command}`")  # fmt: skip


def _of_broker(part: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """What the broker says of its last minute (`tailrace.broker.vitals`)."""
    what = f"{part['kind']} {part['name']}"
    share = part.get("produce_error_share") or 0.0
    if share >= PRODUCE_ERRORS_WARNING and int(part.get("produce_requests") or 0) >= PRODUCE_FEWEST:
        level = "critical" if share >= PRODUCE_ERRORS_CRITICAL else "warning"
        yield _alarm(level, what, f"refused {share:.0%} of the last minute's produce requests", "the producers' errors say why: too large, a full disk, a wrong sequence")  # fmt: skip
    idle = part.get("loop_idle_share")
    if idle is not None and idle < LOOP_IDLE_WARNING:
        level = "critical" if idle < LOOP_IDLE_CRITICAL else "warning"
        yield _alarm(level, what, f"was idle {idle:.0%} of the last minute: it is the limit", "larger batches (linger.ms), fewer requests, or Apache Kafka for a part of the load")  # fmt: skip
    if part.get("failed_partitions"):
        yield _alarm("critical", what, f"{part['failed_partitions']} partitions cannot be written", "the broker's log says why: a full or broken disk")  # fmt: skip
    if part.get("sync_failures"):
        yield _alarm("critical", what, f"{part['sync_failures']} syncs failed: the disk did not keep what was written", "check the disk, then start the broker again: it reads what the disk really holds")  # fmt: skip
    if part.get("damaged_ranges"):
        yield _alarm("critical", what, f"{part['damaged_ranges']} ranges of records are damaged and not served", "the broker's log names files and offsets: restore them from a copy, or read on behind them")  # fmt: skip
    free = part.get("disk_free_share")
    if free is not None and free < DISK_WARNING:
        level = "critical" if free < DISK_CRITICAL else "warning"
        yield _alarm(level, what, f"its fullest disk has {free:.0%} free", "shorten retention, or add space: a full disk stops producers")  # fmt: skip


def _of_edge(part: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """What an edge says of its last minute (`tailrace.sources.edges.figures`)."""
    if part["kind"] != "edge":
        return
    what = f"edge {part['name']}"
    lost, refused = int(part.get("minute_lost") or 0), int(part.get("minute_refused") or 0)
    received = int(part.get("minute_received") or 0)
    if lost:
        hint = "a larger buffer= (and net.core.rmem_max), fewer lines, or see why the log does not take them"
        if part.get("edge") == "multicast":
            hint = "repair= of a sender that keeps its records for longer, a larger buffer=, or a longer patience="
        elif part.get("edge") == "zeromq":
            hint = "a higher max.message.bytes of its topic, or see why the log did not take them"
        yield _alarm(
            "warning", what, f"lost {lost:,} datagrams or records in the last minute", hint
        )
    if refused >= REFUSED_FEWEST and refused >= REFUSED_WARNING * received:
        yield _alarm("warning", what, f"refused {refused:,} of {received:,} in the last minute", "forged or old signatures, a wrong token or bad lines: the senders' answers say why")  # fmt: skip


def _of_mirror(part: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """What a mirror says of its stops and its lag (`tailrace.mirroring.process`)."""
    if part["kind"] != "mirror":
        return
    what = f"mirror {part['name']}"
    for stop in part.get("stops") or ():
        yield _alarm("critical", what, str(stop["error"]), str(stop.get("hint") or f"`tailrace errors {stop['code']}` says how to go on"))  # fmt: skip
    behind = part.get("behind_seconds") or 0
    if behind > MIRROR_WARNING_SECONDS:
        level = "critical" if behind > MIRROR_CRITICAL_SECONDS else "warning"
        yield _alarm(level, what, f"has been behind its source for {behind / 60:.0f} minutes, now by {int(part.get('lag') or 0):,} offsets", f"`tailrace mirror status {part['name'].partition(SHARD)[0]}` names the partitions; the line between the sites, or the target, may be the limit")  # fmt: skip


def _streams(part: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for name, progress in (part.get("streams") or {}).items():
        if progress.get("state") == "failed":
            error = progress.get("error") or {}
            hint = error.get("hint") or f"`tailrace pipeline status {name}` says why"
            yield _alarm("critical", f"stream {name}", str(error.get("error", "it failed")), str(hint))  # fmt: skip
        elif progress.get("blocked"):
            yield _alarm("warning", f"stream {name}", f"{progress['blocked']} keys wait behind a record it could not process", f"look and retry: `tailrace pipeline dead-letters {name}`")  # fmt: skip


def _late(part: Mapping[str, Any], records: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """A stream's own limit (`late_alarms`: share of the last minutes) where it has one, else
    the share of all its records."""
    shares: dict[str, float] = dict(part.get("late_alarms") or {})
    for topic, late in (part.get("late") or {}).items():
        share = late / max(records.get(topic, 0), late, 1)
        if late >= LATE_FEWEST and share > LATE_WARNING:
            shares.setdefault(topic, share)
    for topic, share in shares.items():
        yield _alarm("warning", f"topic {topic}", f"{share:.0%} of its records came late", "allow more lateness, or mend the devices' clocks")  # fmt: skip
    for topic, count in (part.get("forgotten") or {}).items():
        yield _alarm("warning", f"topic {topic}", f"{count:,} rows or versions came for a time whose versions have left: as-of joins leave them out", "keep its history for longer (`history=` of its source); the views that join it are then filled again")  # fmt: skip


def _of_group(group: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    what = f"group {group['name']}"
    if group.get("lost"):
        yield _alarm("critical", what, f"{group['lost']:,} records were removed before it read them", "longer retention.ms, or more consumers; `tailrace group reset` goes on")  # fmt: skip
    share = group.get("retention_used") or 0.0
    if share >= RETENTION_WARNING:
        level = "critical" if share >= RETENTION_CRITICAL else "warning"
        yield _alarm(level, what, f"its oldest unread record has used {min(share, 1):.0%} of the time records are kept", "start its consumers, add more, or lengthen retention.ms")  # fmt: skip
    for topic in group.get("holds_back") or ():
        yield _alarm("warning", what, f"holds the producers of {topic} back", "add consumers, or raise the topic's tailrace.slow.consumer limits")  # fmt: skip
    if group["lag"] > LAG_WARNING:
        yield _alarm("warning", what, f"is {group['lag']:,} records behind", "add consumers, or check that they run")  # fmt: skip


def _disk(directory: Path) -> Iterator[dict[str, str]]:
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return
    share = usage.free / usage.total
    if share < DISK_WARNING:
        level = "critical" if share < DISK_CRITICAL else "warning"
        yield _alarm(level, "disk", f"{share:.0%} free ({_size(usage.free)})", "shorten retention, or add space: a full disk stops producers")  # fmt: skip


def _size(count: object) -> str:
    value = float(count) if isinstance(count, int | float) else 0.0
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _alarm(level: str, what: str, message: str, hint: str) -> dict[str, str]:
    return {"level": level, "what": what, "message": message, "hint": hint}
