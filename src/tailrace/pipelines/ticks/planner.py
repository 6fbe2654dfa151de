"""What the next tick reads: a cut of every source, from where the last tick stopped.

Read-committed end offsets are no cut: a transaction's markers land partition by
partition. The last record of every log transaction of a source goes to
`<source>.transactions` and names, for the partitions it touched, the offset to read to.
Cuts are added up from the one the last tick row names; a tick ends at a cut, never inside
a transaction. Topics without cuts are read to the stable end of each partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.reading.reader import LogReader, Range, Records
from tailrace.pipelines.ticks.tick_row import Seeding, Tick
from tailrace.records.topic_names import topics_of
from tailrace.security import librdkafka_settings


@dataclass(frozen=True, slots=True)
class Cut:
    """One log transaction's end: where each partition it touched must be read to."""

    source: str
    position: str
    offsets: Mapping[str, Mapping[int, int]]
    copying: frozenset[str]  # topics of tables whose first copy is not whole yet
    following: int  # offset after this record in `<source>.transactions`
    ts_ms: int
    whole: bool = True  # False: a piece of a large transaction, no place to stop at


@dataclass(frozen=True, slots=True)
class Plan:
    """What one tick reads, and what its row will say about it."""

    ranges: tuple[Range, ...]
    inputs: Mapping[str, Mapping[int, int]]
    positions: Mapping[str, str]
    committed_ms: int | None  # when the oldest change it holds was committed
    more: bool = False  # the limit left something for the next tick
    seeding: Seeding | None = None  # it reads rows of shared operators instead

    @property
    def records(self) -> int:
        """How many offsets it covers; some may hold markers."""
        return sum(r.end - r.start for r in self.ranges)


def parse_cuts(records: Records) -> list[Cut]:
    """The cuts among the records of a transactions topic."""
    cuts: list[Cut] = []
    for offset, value in zip(records.offsets, records.values, strict=True):
        if value is None:
            continue
        document = orjson.loads(value)
        if document.get("status") not in ("CUT", "PART") or "offsets" not in document:
            continue
        offsets = {
            topic: {int(p): int(n) for p, n in by.items()}
            for topic, by in (document.get("offsets") or {}).items()
        }
        cuts.append(
            Cut(
                document["source"],
                document["position"],
                offsets,
                frozenset(
                    topic
                    for table in document.get("copying") or ()
                    for topic in topics_of(document["source"], table)
                ),
                offset + 1,
                document.get("ts_ms") or 0,
                document["status"] == "CUT",
            )
        )
    return cuts


class CutFollower:
    """Follows the transactions topics of all sources; a new cut arrives at once."""

    def __init__(self, bootstrap: str, starts: Mapping[str, int], *, clock: Clock = SYSTEM) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._clock = clock
        self._consumer: Any = Consumer(
            {
                **librdkafka_settings(bootstrap),
                "group.id": "tailrace-cuts",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "check.crcs": True,
                "fetch.wait.max.ms": 500,
                "fetch.error.backoff.ms": 5,
                "fetch.queue.backoff.ms": 2,
                "topic.metadata.refresh.interval.ms": 30_000,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
        )
        self._consumer.assign(
            [TopicPartition(f"{source}.transactions", 0, start) for source, start in starts.items()]
        )

    def poll(self, timeout: float) -> list[Cut]:
        """Cuts that have arrived, waiting up to `timeout` seconds for a first one."""
        until = self._clock.monotonic() + timeout
        cuts: list[Cut] = []
        while not cuts:
            left = until - self._clock.monotonic()
            messages = self._consumer.consume(1, timeout=max(0.0, left))
            messages += self._consumer.consume(10_000, timeout=0) if messages else []
            for message in messages:
                if message.error() is None:
                    piece = Records(message.topic(), message.partition())
                    piece.offsets.append(message.offset())
                    piece.values.append(message.value())
                    cuts += parse_cuts(piece)
            if left <= 0:
                break
        return cuts

    def close(self) -> None:
        self._consumer.close()


@dataclass(slots=True)
class Planner:
    """Adds cuts up. `topics` are those the views read, by source; `free` have no cuts."""

    topics: Mapping[str, frozenset[str]]
    free: frozenset[str]
    # Tables of states by topic, and the topic of the events that they tell of.
    states: Mapping[str, str] = field(default_factory=dict)
    waiting: dict[str, list[Cut]] = field(default_factory=dict)
    _seen: dict[str, tuple[dict[int, int], dict[int, int]]] = field(default_factory=dict)

    def add(self, cuts: Iterable[Cut]) -> None:
        """Take in cuts in the order of the log."""
        for cut in cuts:
            if cut.source in self.topics:
                self.waiting.setdefault(cut.source, []).append(cut)

    def lag(self, last: Tick) -> int:
        """Records of the cuts that are known and that `last` has not read."""
        left = 0
        for source, used in self.topics.items():
            ends: dict[tuple[str, int], int] = {}
            for cut in self.waiting.get(source, []):
                if cut.following > cursor(last, source):
                    for topic in used & cut.offsets.keys():
                        ends.update({(topic, p): n for p, n in cut.offsets[topic].items()})
            for (topic, partition), end in ends.items():
                left += max(0, end - last.inputs.get(topic, {}).get(partition, 0))
        return left

    def plan(
        self, last: Tick, reader: LogReader, limit: int, ceiling: Tick | None = None
    ) -> Plan | None:
        """The next tick after `last`, or None while there is nothing new to say.

        `ceiling`: read no further than this tick has, where it reads the same.

        A limit stops at a cut, never inside one: a single larger transaction is taken
        whole. While the first copy of a table that is read runs, its source waits.
        """
        inputs = {topic: dict(by) for topic, by in last.inputs.items()}
        positions = dict(last.positions)
        room, more, oldest = limit, False, None
        for source, used in self.topics.items():
            cuts = [c for c in self.waiting.get(source, []) if c.following > cursor(last, source)]
            self.waiting[source] = cuts
            if ceiling is not None and f"{source}.transactions" in ceiling.inputs:
                cuts = [c for c in cuts if c.following <= cursor(ceiling, source)]
            taken = 0
            running = {topic: dict(by) for topic, by in inputs.items()}
            for number, cut in enumerate(cuts, 1):
                added = 0
                for topic, by in cut.offsets.items():
                    ends = running.setdefault(topic, {})
                    for partition, end in by.items():
                        if topic in used:
                            added += max(0, end - ends.get(partition, 0))
                        ends[partition] = max(end, ends.get(partition, 0))
                if taken and added > room:
                    more = True
                    break
                room -= added
                if cut.whole and cut.copying.isdisjoint(used):
                    taken = number
                    inputs = {topic: dict(by) for topic, by in running.items()}
            if taken:
                inputs[f"{source}.transactions"] = {0: cuts[taken - 1].following}
                positions[source] = cuts[taken - 1].position
                stamps = [c.ts_ms for c in cuts[:taken] if c.offsets and c.ts_ms]
                oldest = min([*stamps, *([] if oldest is None else [oldest])], default=oldest)
        free = self._bounds(reader)
        # To each partition its share: one that ran ahead would make the others late.
        room = max(room // max(sum(len(bounds) for bounds in free.values()), 1), 1)
        for topic, bounds in free.items():
            known = inputs.setdefault(topic, {})
            for partition, (first, end) in bounds.items():
                start = max(first, known.get(partition, first))
                if ceiling is not None and topic in ceiling.inputs:
                    end = min(end, ceiling.inputs[topic].get(partition, 0))
                known[partition] = max(start, min(end, start + room))
                more = more or known[partition] < end
            if topic in self.states:
                self._hold_events(topic, known, free)
        if inputs == last.inputs and positions == last.positions:
            return None
        read = set(self.free).union(*self.topics.values())
        ranges: list[Range] = []
        for topic in sorted(read & inputs.keys()):
            before = last.inputs.get(topic, {})
            new = inputs[topic].keys() - before.keys()
            # What has never been read begins where the log begins; what was read before
            # must still be there, and the reader says so if it is not.
            firsts = {p: low for p, (low, _) in reader.bounds(topic).items()} if new else {}
            for partition, end in sorted(inputs[topic].items()):
                start = before[partition] if partition in before else firsts.get(partition, 0)
                if end > start:
                    ranges.append(Range(topic, partition, start, end))
        return Plan(tuple(ranges), inputs, positions, oldest, more)

    def _bounds(self, reader: LogReader) -> dict[str, dict[int, tuple[int, int]]]:
        """Bounds of the topics without cuts; those of states before those of events.

        Events and states are of one transaction, whose end the log writes partition by
        partition. So a tick reads events only as far as it has read their states: to an end of
        the events that was seen before the end of all that was written of the states, which is
        now committed. `inputs` then tells of both, whether the events themselves are read or not.
        """
        for states, events in self.states.items():
            if states not in self._seen:
                ends = {partition: end for partition, (_, end) in reader.bounds(events).items()}
                self._seen[states] = (ends, reader.written_ends(states))
        first = sorted(self.free, key=lambda topic: (topic not in self.states, topic))
        free = {topic: reader.bounds(topic) for topic in first}
        for states, events in self.states.items():
            bounds = free.pop(events, None) or reader.bounds(events)
            ends, _ = self._seen[states]
            free[events] = {
                partition: (low, min(end, ends.get(partition, low)))
                for partition, (low, end) in bounds.items()
            }
        return free

    def _hold_events(
        self,
        states: str,
        read: Mapping[int, int],
        free: dict[str, dict[int, tuple[int, int]]],
    ) -> None:
        """Read no events whose states are not read; look at the ends again once all are."""
        _, written = self._seen[states]
        if all(read.get(partition, 0) >= end for partition, end in written.items()):
            del self._seen[states]
            return
        events = self.states[states]
        free[events] = {partition: (low, 0) for partition, (low, _) in free[events].items()}


def cursor(last: Tick, source: str) -> int:
    """How far a tick has read the cuts of a source."""
    return last.inputs.get(f"{source}.transactions", {}).get(0, 0)
