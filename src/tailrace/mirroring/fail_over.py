"""Leaving the source for the target, and coming back.

Fail-over fences whoever runs the mirror, writes where the target ends and that it stands alone, and
stores where groups go on. Fail-back, when the source is there again:

1. What only the source has, because it had not arrived, is kept in `<topic>.unmirrored` there. How
   far that is stands in the row `kept/<mirror>` of the source.
2. What the target was given since the fail-over is copied to the source by a mirror called
   `<mirror>.back`, whose records have the target's site as their owner: they are not sent back.
3. The mirror is set to where the source ended in step 1, knows the copied records as its runs, and
   runs again. Whatever was written to the source meanwhile is mirrored.

Each step is one or more transactions, and is found done when fail-back is run again. Records that
are written to the target after step 2 are not copied: its writers have to be stopped before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from tailrace.client.admin import Admin, Place
from tailrace.client.errors import ClientError
from tailrace.client.fetcher import Fetcher
from tailrace.client.groups import Groups
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.mirroring import topics as both_topics
from tailrace.mirroring.groups import translated
from tailrace.mirroring.plan import SAME, compiled
from tailrace.mirroring.relay import Mirror, fence_shards, mirror_writer
from tailrace.mirroring.rows import (
    ENDED,
    FAILED_OVER,
    RUNNING,
    TOPIC,
    MirrorRows,
    Run,
    State,
    ensure_topic,
    position_row,
    read_rows,
    runs_row,
    shard_of,
    state_row,
    stop_row,
)
from tailrace.mirroring.translate import translate_back

TRANSLATED, TIME, EARLIEST, LATEST = "translated", "time", "earliest", "latest"
STARTS = (TRANSLATED, TIME, EARLIEST, LATEST)
UNMIRRORED = ".unmirrored"
KEPT_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class FailOver:
    """`not_mirrored`: offsets that the source has beyond the mirror; None if it does not answer,
    and then `mirrored_until` (ms) is the time of the newest record that is there. `groups`: where
    each goes on at the target; `living` have members there and are left alone."""

    executed: bool
    not_mirrored: int | None
    mirrored_until: int | None
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    living: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FailBack:
    """`only_at_source` records are kept in topics called `<topic>.unmirrored`; `to_copy` stand at
    the target since the fail-over (offsets, so markers of transactions as well)."""

    executed: bool
    only_at_source: int
    to_copy: int
    topics: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return asdict(self)


def fail_over(
    name: str,
    target: str,
    source: str | None = None,
    *,
    start: str = TRANSLATED,
    execute: bool = True,
    clock: Clock = SYSTEM,
) -> FailOver:
    """Fence the process that runs the mirror, and write that the target is on its own now; without
    `execute`, what would be missing and where groups would go on."""
    if start not in STARTS:
        raise UsageError(f"groups cannot start by {start!r}", hint=", ".join(STARTS))
    with Admin(target, clock=clock) as admin, Fetcher(target, clock=clock) as fetcher:
        rows = find(name, admin, fetcher)
        if execute:
            with mirror_writer(target, name, 60.0, clock) as writer:
                writer.init()
                before = _state_of(find(name, admin, fetcher))
                # A shard that begins between its fence and the state is ended by the second fence.
                for _ in range(2 if before.shards > 1 else 1):
                    fence_shards(target, name, range(1, before.shards), 60.0, clock)
                    rows = find(name, admin, fetcher)  # what was committed before the fence
                    places = [(each.target, place[1]) for place, each in rows.positions.items()]
                    ends = {f"{topic}/{number}": end for (topic, number), end in admin.end_offsets(places).items()}  # fmt: skip
                    count = before.fail_overs + 1
                    if before.state == FAILED_OVER:
                        # The first time counts: others write there since.
                        ends, count = before.ends, before.fail_overs
                    over = replace(
                        before, state=FAILED_OVER, ends=ends, at=clock.wall_ms(), fail_overs=count
                    )
                    writer.send(TOPIC, 0, *state_row(name, over))
                    writer.commit()
        behind, stored = _ask_source(source, rows, clock)
        until = None if behind is not None else _newest(rows, admin, fetcher)
        groups, living = _starts(rows, admin, stored, start, source, clock)
        if execute:
            for group, offsets in groups.items():
                Groups(admin).commit(group, offsets)
    named = {
        group: {f"{topic}/{number}": offset for (topic, number), offset in sorted(offsets.items())}
        for group, offsets in groups.items()
    }
    return FailOver(execute, behind, until, named, living)


def _state_of(rows: MirrorRows) -> State:
    assert rows.state is not None
    return rows.state


def _ask_source(
    source: str | None, rows: MirrorRows, clock: Clock
) -> tuple[int | None, dict[str, dict[Place, int]]]:
    """How many offsets have not arrived, and the groups' offsets there; None if it is dead."""
    if source is None:
        return None, {}
    assert rows.state is not None
    pattern = rows.state.groups
    try:
        with Admin(source, timeout=10.0, clock=clock) as admin:
            here = {topic.name for topic in admin.list_topics()}
            ends = admin.end_offsets(place for place in rows.positions if place[0] in here)
            stored = {}
            if pattern is not None:
                groups = Groups(admin)
                for each in groups.every():
                    if each.kind != "share" and compiled(pattern).fullmatch(each.name):
                        stored[each.name] = groups.offsets(each.name)
    except ClientError:
        return None, {}
    return sum(max(0, end - rows.positions[place].next) for place, end in ends.items()), stored


def _newest(rows: MirrorRows, admin: Admin, fetcher: Fetcher) -> int | None:
    """The time of the newest mirrored record."""
    times = []
    for place, runs in rows.runs.items():
        if runs:
            last = runs[-1].target + runs[-1].length - 1
            there = (rows.positions[place].target, place[1])
            if last >= admin.start_offsets([there])[there]:
                times += [each.timestamp for each in fetcher.read_range(*there, last, last + 1)]
    return max(times, default=None)


def _starts(
    rows: MirrorRows,
    admin: Admin,
    at_source: Mapping[str, Mapping[Place, int]],
    start: str,
    source: str | None,
    clock: Clock,
) -> tuple[dict[str, dict[Place, int]], list[str]]:
    """Where groups go on at the target, and those that have members there.

    What the mirror stored for them before counts where the source does not answer."""
    assert rows.state is not None
    if rows.state.groups is None:
        return {}, []
    there = Groups(admin)
    mirrored = {(each.target, place[1]) for place, each in rows.positions.items()}
    at_target = {
        each.name: {place: offset for place, offset in there.offsets(each.name).items() if place in mirrored}
        for each in there.every()
        if each.kind != "share" and compiled(rows.state.groups).fullmatch(each.name)
    }  # fmt: skip
    found: dict[str, dict[Place, int]] = {}
    living = []
    for name in sorted(at_source.keys() | at_target.keys()):
        known = there.describe(name)
        if known is not None and known.members:
            living.append(name)
            continue
        stored = at_target.get(name, {})
        read = {place: offset for place, offset in at_source.get(name, {}).items() if place in rows.positions}  # fmt: skip
        places = stored.keys() | {(rows.positions[place].target, place[1]) for place in read}
        if start == EARLIEST:
            offsets = admin.start_offsets(places)
        elif start == LATEST:
            offsets = admin.end_offsets(places)
        elif start == TIME and source is not None and read:
            offsets = _by_time(rows, admin, read, source, clock)
        else:
            offsets = _translated_or_end(rows, read)
        further = {**stored, **offsets} if start != TRANSLATED else {
            place: max(offsets.get(place, -1), stored.get(place, -1)) for place in places
        }  # fmt: skip
        further = {place: offset for place, offset in further.items() if offset >= 0}
        if further:
            found[name] = further
    return found, living


def _translated_or_end(rows: MirrorRows, read: Mapping[Place, int]) -> dict[Place, int]:
    """Translated; a group that is beyond what was mirrored goes on behind the last record."""
    reached = {place: min(offset, rows.positions[place].next) for place, offset in read.items()}
    return translated(rows, reached)


def _by_time(
    rows: MirrorRows, admin: Admin, read: Mapping[Place, int], source: str, clock: Clock
) -> dict[Place, int]:
    """The first record at the target that is as new as the first that a group had not read."""
    with Fetcher(source, timeout=10.0, clock=clock) as fetcher:
        times: dict[Place, int] = {}
        for place, offset in read.items():
            first = next(iter(fetcher.fetch(*place, offset).records), None)
            if first is not None:
                times[rows.positions[place].target, place[1]] = first.timestamp
    found = {place: each.offset for place, each in admin.offsets_for_times(times).items()}
    missing = {(rows.positions[place].target, place[1]) for place in read} | found.keys()
    late = [place for place in missing if found.get(place, -1) < 0]
    return {**found, **admin.end_offsets(late)}


def fail_back(
    name: str, source: str, target: str, *, execute: bool = True, clock: Clock = SYSTEM
) -> FailBack:
    """See the module. Refused unless the mirror was failed over."""
    with (
        Admin(source, clock=clock) as source_admin,
        Admin(target, clock=clock) as target_admin,
        Fetcher(source, clock=clock) as source_fetcher,
        Fetcher(target, clock=clock) as target_fetcher,
    ):
        rows = find(name, target_admin, target_fetcher)
        state = rows.state
        assert state is not None
        kept = _Kept.read(name, source_admin, source_fetcher)
        if state.state == RUNNING and state.names == SAME and kept is not None:
            if execute:  # it was cut short behind step 3
                _store_groups(_groups_back(rows, {}, source_admin, target_admin), source_admin)
                _end(name, source, source_admin, source_fetcher, clock)
            return FailBack(execute, 0, 0)
        if state.state != FAILED_OVER or state.names != SAME:
            raise UsageError(
                f'the mirror "{name}" was not failed over'
                if state.names == SAME
                else f'the topics of "{name}" have a prefix at the target',
                detail="fail-back copies what the target was given since then"
                if state.names == SAME
                else "nobody writes the source's topics there",
                hint="`tailrace mirror status` says how it is",
            )
        left_over = kept is not None and kept.fail_over != state.fail_overs
        if left_over:
            kept = None  # of a fail-back before, which was cut short behind step 3
        here = {topic.name for topic in source_admin.list_topics()}
        places = [place for place in rows.positions if place[0] in here]
        ends = kept.ends if kept is not None else source_admin.end_offsets(places)
        only = sum(
            _count(source_fetcher, source_admin, place, rows.positions[place].next, ends[place])
            for place in places
            if place in ends
        )
        begun = {place: state.ends.get(f"{rows.positions[place].target}/{place[1]}", 0) for place in rows.positions}  # fmt: skip
        now = target_admin.end_offsets((each.target, place[1]) for place, each in rows.positions.items())  # fmt: skip
        to_copy = sum(max(0, now[rows.positions[place].target, place[1]] - begun[place]) for place in begun)  # fmt: skip
        topics = sorted({place[0] + UNMIRRORED for place in places if ends.get(place, 0) > rows.positions[place].next})  # fmt: skip
        plan = FailBack(execute, only, to_copy, topics)
        if not execute:
            return plan
        if left_over:
            _end(name, source, source_admin, source_fetcher, clock)
        kept = _keep(name, source, rows, ends, source_admin, source_fetcher, kept, clock)
        with Mirror(
            f"{name}.back",
            target,
            source,
            topics="|".join(re.escape(topic) for topic in sorted({each.target for each in rows.positions.values()})),
            site=state.others[0] if state.others else "",
            others=(state.site,),
            starts=begun,
            clock=clock,
        ) as back:  # fmt: skip
            back.run_until_caught_up()
            copied = back.rows.runs
            _go_on(name, target, rows, kept.ends, copied, clock)
            _store_groups(_groups_back(rows, copied, source_admin, target_admin), source_admin)
        _end(name, source, source_admin, source_fetcher, clock)
    return plan


def _count(fetcher: Fetcher, admin: Admin, place: Place, start: int, end: int) -> int:
    start = max(start, admin.start_offsets([place])[place])
    return sum(1 for _ in fetcher.read_range(*place, start, end)) if start < end else 0


@dataclass(frozen=True, slots=True)
class _Kept:
    """The row `kept/<mirror>` of the source: where it ended, and how far that is kept."""

    ends: dict[Place, int]
    done: dict[Place, int]
    fail_over: int

    @classmethod
    def read(cls, name: str, admin: Admin, fetcher: Fetcher) -> _Kept | None:
        if admin.describe_topic(TOPIC) is None:
            return None
        newest: bytes | None = None
        for record in fetcher.read_all(TOPIC):
            if record.key == f"kept/{name}".encode():
                newest = record.value
        if newest is None:
            return None
        document = orjson.loads(newest)
        return cls(
            _places(document["ends"]), _places(document["done"]), document.get("fail_over", 0)
        )

    def row(self, name: str) -> tuple[bytes, bytes]:
        document = {
            "ends": _named(self.ends),
            "done": _named(self.done),
            "fail_over": self.fail_over,
        }
        return f"kept/{name}".encode(), orjson.dumps(document)


def _places(named: Mapping[str, int]) -> dict[Place, int]:
    found = {}
    for name, offset in named.items():
        topic, _, partition = name.rpartition("/")
        found[topic, int(partition)] = offset
    return found


def _named(places: Mapping[Place, int]) -> dict[str, int]:
    return {f"{topic}/{partition}": offset for (topic, partition), offset in places.items()}


def _keep(
    name: str,
    source: str,
    rows: MirrorRows,
    ends: Mapping[Place, int],
    admin: Admin,
    fetcher: Fetcher,
    kept: _Kept | None,
    clock: Clock,
) -> _Kept:
    """Copy what only the source has to `<topic>.unmirrored`, exactly once."""
    assert rows.state is not None
    ensure_topic(admin)
    with mirror_writer(source, f"{name}.back", 60.0, clock) as writer:
        writer.init()
        kept = _Kept.read(name, admin, fetcher) or kept
        if kept is None:
            starts = admin.start_offsets(ends)
            done = {place: max(rows.positions[place].next, starts[place]) for place in ends}
            kept = _Kept(dict(ends), done, rows.state.fail_overs)
            writer.send(TOPIC, 0, *kept.row(name))
            writer.commit()
        for place, end in sorted(kept.ends.items()):
            while kept.done[place] < end:
                found = fetcher.fetch(*place, kept.done[place], wait=0.5, end=end)
                if found.records:
                    partitions = len(admin.cluster.topic(place[0]).leaders)
                    settings = both_topics.own_settings(admin, place[0])
                    kept_in = place[0] + UNMIRRORED
                    lasting = {**settings, "cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}  # fmt: skip
                    both_topics.ensure(admin, kept_in, partitions, lasting)
                    for record in found.records:
                        writer.send(
                            kept_in, place[1], record.key, record.value, record.headers,
                            record.timestamp,
                        )  # fmt: skip
                kept.done[place] = found.following
                if found.records:
                    writer.send(TOPIC, 0, *kept.row(name))
                    writer.commit()
    return kept


def _go_on(
    name: str,
    target: str,
    rows: MirrorRows,
    ends: Mapping[Place, int],
    copied: Mapping[Place, Iterable[Run]],
    clock: Clock,
) -> None:
    """Step 3, one transaction of the target."""
    assert rows.state is not None
    with mirror_writer(target, name, 60.0, clock) as writer:
        writer.init()
        for place, position in rows.positions.items():
            if place in ends:
                moved = replace(position, next=ends[place], epoch=-1)
                writer.send(TOPIC, 0, *position_row(name, place, moved))
            if place in rows.stopped:
                writer.send(TOPIC, 0, *stop_row(name, place, None))
        turned = {
            place: [Run(run.target, run.source, run.length) for run in runs]
            for place, runs in copied.items()
        }
        for shard in range(rows.state.shards):
            own = {place: runs for place, runs in turned.items() if shard_of(place, rows.state.shards) == shard}  # fmt: skip
            if own or not shard:
                writer.send(TOPIC, 0, *runs_row(name, rows.numbers_of(shard).next, own, shard))
        going = replace(rows.state, state=RUNNING, ends={}, at=clock.wall_ms())
        writer.send(TOPIC, 0, *state_row(name, going))
        writer.commit()


def _groups_back(
    rows: MirrorRows,
    copied: Mapping[Place, Iterable[Run]],
    source_admin: Admin,
    target_admin: Admin,
) -> dict[str, dict[Place, int]]:
    """Where groups that read on at the target go on at the source, if they are further there."""
    assert rows.state is not None
    if rows.state.groups is None:
        return {}
    runs = {
        place: [*rows.runs.get(place, ()), *(Run(run.target, run.source, run.length) for run in copied.get(place, ()))]
        for place in rows.positions
    }  # fmt: skip
    here, there = Groups(source_admin), Groups(target_admin)
    found = {}
    for group in there.every():
        if group.kind == "share" or not compiled(rows.state.groups).fullmatch(group.name):
            continue
        known = here.describe(group.name)
        if known is not None and known.members:
            continue
        stored, offsets = here.offsets(group.name), there.offsets(group.name)
        wanted = {}
        for place, position in rows.positions.items():
            offset = offsets.get((position.target, place[1]))
            if offset is None or not runs[place]:
                continue
            last = runs[place][-1]
            back = translate_back(runs[place], offset, last.source + last.length)
            if back > stored.get(place, -1):
                wanted[place] = back
        if wanted:
            found[group.name] = wanted
    return found


def _store_groups(groups: Mapping[str, Mapping[Place, int]], source: Admin) -> None:
    for group, offsets in groups.items():
        Groups(source).commit(group, dict(offsets))


def _end(name: str, source: str, admin: Admin, fetcher: Fetcher, clock: Clock) -> None:
    """The way back is done: its rows go, so that the next one begins where it has to."""
    mirror = f"{name}.back"
    with mirror_writer(source, mirror, 60.0, clock) as writer:
        writer.init()
        back = find(mirror, admin, fetcher)
        assert back.state is not None
        for place in back.positions:
            writer.send(TOPIC, 0, position_row(mirror, place, back.positions[place])[0], None)
        for key in back.run_keys(mirror):
            writer.send(TOPIC, 0, key, None)
        for topic in back.settings:
            writer.send(TOPIC, 0, f"settings/{mirror}/{topic}".encode(), None)
        ended: State = replace(back.state, state=ENDED)
        writer.send(TOPIC, 0, *state_row(mirror, ended))
        writer.send(TOPIC, 0, f"kept/{name}".encode(), None)
        writer.commit()


def find(name: str, admin: Admin, fetcher: Fetcher) -> MirrorRows:
    """The rows of a mirror; UsageError if there is none of the name."""
    found = read_rows(admin, fetcher)
    if name not in found or found[name].state is None:
        raise UsageError(
            f'there is no mirror "{name}" into this log',
            hint=f"there are {', '.join(sorted(found)) or 'none'}",
        )
    return found[name]
