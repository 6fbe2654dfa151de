"""The nine promises as loops over dictionaries, and histories to try them on.

The naive twin of `tailrace.verify.checkers`: the same rules, one record at a time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from tailrace.verify.history import About, ConsumerAbout, History, Status, make_history

Rows = list[dict[str, int]]
Place = tuple[int, int]
HIDDEN = (Status.FAILED, Status.ABORTED)


@dataclass
class Draft:
    """A history made by hand, row by row."""

    sends: Rows = field(default_factory=list)
    transactions: Rows = field(default_factory=list)
    log: Rows = field(default_factory=list)
    polls: Rows = field(default_factory=list)
    replicas: Rows = field(default_factory=list)
    about: About = field(default_factory=About)

    def send(
        self,
        producer: int,
        sequence: int,
        partition: int,
        offset: int = -1,
        status: Status = Status.ACKNOWLEDGED,
        transaction: int = -1,
        sent_at: int = 0,
    ) -> None:
        self.sends.append(
            {
                "producer": producer, "sequence": sequence, "partition": partition,
                "offset": offset, "status": int(status), "transaction": transaction,
                "sent_at": sent_at, "answered_at": sent_at + 1,
            }
        )  # fmt: skip

    def stand(self, partition: int, offset: int, producer: int, sequence: int) -> None:
        """A record of the final read."""
        self.log.append(
            {"partition": partition, "offset": offset, "producer": producer, "sequence": sequence}
        )

    def poll(
        self, consumer: int, partition: int, offset: int, producer: int, sequence: int, at: int = 10
    ) -> None:
        self.polls.append(
            {
                "consumer": consumer, "partition": partition, "offset": offset,
                "producer": producer, "sequence": sequence, "polled_at": at,
            }
        )  # fmt: skip

    def history(self) -> History:
        tables = {}
        for name in ("sends", "transactions", "log", "polls", "replicas"):
            rows: Rows = getattr(self, name)
            if rows:
                tables[name] = {column: [row[column] for row in rows] for column in rows[0]}
        return make_history(self.about, **tables)


def good_draft(
    partitions: int = 3, producers: int = 2, records: int = 10, transactions: int = 4
) -> Draft:
    """A history that breaks no promise: plain producers, transactions of two records in two
    partitions (every third aborted), a free consumer (0) and a group of two (1 and 2)."""
    draft = Draft()
    ends: dict[int, int] = defaultdict(int)

    def append(producer: int, sequence: int, partition: int) -> int:
        offset = ends[partition]
        ends[partition] += 1
        draft.stand(partition, offset, producer, sequence)
        return offset

    for sequence in range(records):
        for producer in range(producers):
            partition = (sequence + producer) % partitions
            offset = append(producer, sequence, partition)
            draft.send(producer, sequence, partition, offset, sent_at=1)
            draft.replicas.append(
                {"partition": partition, "offset": offset, "replica": 1, "end": offset + 1, "asked_at": 2}
            )  # fmt: skip
    for number in range(transactions):
        aborted = number % 3 == 2
        for part in range(2):
            partition, sequence = (number + part) % partitions, number * 2 + part
            status = Status.ABORTED if aborted else Status.ACKNOWLEDGED
            offset = ends[partition] if aborted else append(producers, sequence, partition)
            draft.send(producers, sequence, partition, offset, status, number, sent_at=1)
            ends[partition] += 1  # the marker, or the record that nobody sees
        draft.transactions.append({"transaction": number, "asked_at": 3, "answered_at": 4})
    draft.log.sort(key=lambda row: (row["partition"], row["offset"]))
    for row in draft.log:
        for consumer in (0, 1 + row["partition"] % 2):
            draft.poll(consumer, row["partition"], row["offset"], row["producer"], row["sequence"])
    everything = tuple(range(partitions))
    draft.about = replace(
        draft.about,
        run="good",
        partitions=partitions,
        consumers=(
            ConsumerAbout(0, "free", None, everything, everything),
            ConsumerAbout(1, "member-1", "g"),
            ConsumerAbout(2, "member-2", "g"),
        ),
        groups=("g",),
    )
    return draft


def naive_counts(draft: Draft) -> dict[str, int]:
    """How many records break each promise."""
    sends = {(row["producer"], row["sequence"]): row for row in draft.sends}
    log = sorted(draft.log, key=lambda row: (row["partition"], row["offset"]))
    asked = {row["transaction"]: row["asked_at"] for row in draft.transactions}

    def name(row: dict[str, int]) -> Place:
        return row["producer"], row["sequence"]

    stands: dict[Place, list[dict[str, int]]] = defaultdict(list)
    for row in log:
        if name(row) in sends:
            stands[name(row)].append(row)
    position: dict[Place, int] = {}
    doubled = 0
    for index, row in enumerate(log):
        place = (row["partition"], row["offset"])
        doubled += place in position
        position.setdefault(place, index)

    counts = dict.fromkeys(
        (
            "order", "nothing-lost", "nothing-twice", "same-offset", "committed-only",
            "whole-transactions", "no-skips", "nothing-strange", "in-sync-before-ack",
        ),
        0,
    )  # fmt: skip

    last: dict[Place, int] = {}
    for row in log:
        if name(row) not in sends or stands[name(row)][0] is not row:
            continue
        lane = (row["partition"], row["producer"])
        if lane in last and row["sequence"] < last[lane]:
            counts["order"] += 1
        last[lane] = row["sequence"]

    present: dict[int, int] = defaultdict(int)
    missing: dict[int, int] = defaultdict(int)
    for key, sent in sends.items():
        there = stands.get(key, [])
        acknowledged = sent["status"] == Status.ACKNOWLEDGED
        counts["nothing-lost"] += acknowledged and not there
        counts["nothing-twice"] += max(0, len(there) - 1)
        if sent["status"] not in HIDDEN:
            if there and sent["offset"] >= 0:
                counts["same-offset"] += not any(
                    (row["partition"], row["offset"]) == (sent["partition"], sent["offset"])
                    for row in there
                )
            if sent["transaction"] >= 0:
                (present if there else missing)[sent["transaction"]] += 1
        else:
            counts["committed-only"] += len(there)
    counts["same-offset"] += doubled
    counts["whole-transactions"] = sum(
        count for number, count in missing.items() if present.get(number)
    )

    at_end: dict[Place, int] = {}
    first_of: dict[Place, int] = {}
    highest: dict[Place, int] = {}
    by_group: dict[str, set[int]] = defaultdict(set)
    group_of = {each.id: each.group for each in draft.about.consumers}
    for row in draft.polls:
        known = sends.get(name(row))
        if known is None:
            counts["nothing-strange"] += 1
        else:
            counts["nothing-strange"] += known["partition"] != row["partition"]
            counts["nothing-strange"] += row["polled_at"] < known["sent_at"]
            if known["status"] in HIDDEN:
                counts["committed-only"] += 1
            else:
                if known["status"] == Status.UNKNOWN and not stands.get(name(row)):
                    counts["committed-only"] += 1
                if row["polled_at"] < asked.get(known["transaction"], row["polled_at"]):
                    counts["committed-only"] += 1
        stood = position.get((row["partition"], row["offset"]))
        if stood is None:
            continue
        index = stood
        counts["same-offset"] += name(log[index]) != name(row)
        lane = (row["consumer"], row["partition"])
        if lane in at_end:
            counts["nothing-twice"] += index <= at_end[lane]
            counts["no-skips"] += max(0, index - at_end[lane] - 1)
        at_end[lane] = index
        first_of.setdefault(lane, index)
        highest[lane] = max(index, highest.get(lane, index))
        if (group := group_of.get(row["consumer"])) is not None:
            by_group[group].add(index)
    for row in log:
        known = sends.get(name(row))
        counts["nothing-strange"] += known is None or known["partition"] != row["partition"]

    rows_of: dict[int, list[int]] = defaultdict(list)
    for index, row in enumerate(log):
        rows_of[row["partition"]].append(index)
    for consumer in draft.about.consumers:
        for partition, indexes in rows_of.items():
            lane = (consumer.id, partition)
            starts, ends = partition in consumer.starts, partition in consumer.ends
            if lane not in first_of:
                counts["no-skips"] += len(indexes) if starts and ends else 0
                continue
            if starts:
                counts["no-skips"] += sum(index < first_of[lane] for index in indexes)
            if ends:
                counts["no-skips"] += sum(index > highest[lane] for index in indexes)
    for group in draft.about.groups:
        counts["no-skips"] += len(log) - len(by_group[group])
    for row in draft.replicas:
        counts["in-sync-before-ack"] += row["end"] <= row["offset"]
    return counts
