"""The nine promises, judged by array operations over a history.

Every record that was sent has a row in `sends`; `Known` finds it by (producer, sequence), and
`Places` finds a row of the final read by (partition, offset). All rules are about those two
indexes, so a history of ten million records takes seconds. `tailrace.testing.histories` has the
same rules as loops over dictionaries and judges these.

A fault is counted under the promise it breaks, not under every promise that follows from it: an
acknowledged record that was read and is not there at the end is lost, nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailrace.verify.errors import HistoryError
from tailrace.verify.history import Columns, History, Status

EXAMPLES = 10
SPARSE = 4  # a table by number is used up to this many times as many numbers as rows

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
Example = dict[str, int | str]

# name → what the log promises; in the order they are told.
PROMISES: dict[str, str] = {
    "order": "records of a producer stand in a partition in the order they were sent",
    "nothing-lost": "what was acknowledged is there",
    "nothing-twice": "no record is there twice, and no consumer is given one twice",
    "same-offset": "a record is where its acknowledgement said, and every reader finds it there",
    "committed-only": "nothing that was refused, aborted or not yet committed is seen",
    "whole-transactions": "a transaction is there as a whole or not at all",
    "no-skips": "between rebalances a consumer is given every record",
    "nothing-strange": "there is nothing that was not sent, and nothing before it was sent",
    "in-sync-before-ack": "every in-sync replica has a record before it is acknowledged",
}


@dataclass(frozen=True, slots=True)
class Promise:
    """How one promise fared; `count` records break it, `examples` are the first of them."""

    name: str
    holds: bool
    count: int
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a history."""

    holds: bool
    operations: int
    promises: tuple[Promise, ...]

    def __getitem__(self, name: str) -> Promise:
        return next(each for each in self.promises if each.name == name)


class _Breaks:
    """Breaks of one promise: counted, the first ones kept."""

    def __init__(self) -> None:
        self.count = 0
        self.examples: list[Example] = []

    def add(self, rows: Index, tell: Callable[[int], Example]) -> None:
        self.count += len(rows)
        for row in rows[: EXAMPLES - len(self.examples)]:
            self.examples.append(tell(int(row)))


class Known:
    """Finds a row by a pair of numbers that is unique in these two columns.

    Numbers are dense as a rule, so that a table by number holds the rows; where they are not,
    it is looked for in sorted order.
    """

    def __init__(self, first: NDArray[np.int32], second: NDArray[np.int64]) -> None:
        self._bases: Index | None = None
        count = len(first)
        self.unique = True
        if count and int(first.min()) >= 0 and int(second.min()) >= 0:
            groups = int(first.max()) + 1
            if groups <= SPARSE * count + 1_000_000:
                highest = _maximum_by(first, second, groups)
                if float((highest + 1).astype(float).sum()) <= SPARSE * count + 1_000_000:
                    self._fill(first, second, highest)
                    return
        self._sort(first, second)

    def _fill(self, first: NDArray[np.int32], second: NDArray[np.int64], highest: Index) -> None:
        self._bases = np.concatenate(([0], np.cumsum(highest + 1)))
        self._highest = highest
        kind = np.int32 if len(first) < 2**31 else np.int64
        table: NDArray[Any] = np.full(int(self._bases[-1]), -1, kind)
        table[self._bases[first] + second] = np.arange(len(first), dtype=kind)
        self._table = table
        self.unique = int(np.count_nonzero(np.not_equal(table, -1))) == len(first)

    def _sort(self, first: NDArray[np.int32], second: NDArray[np.int64]) -> None:
        self._values = np.unique(second)
        packed = self._pack(first, np.searchsorted(self._values, second))
        self._order = np.argsort(packed, kind="stable")
        self._packed = packed[self._order]
        self.unique = not bool((self._packed[1:] == self._packed[:-1]).any())

    def _pack(self, first: NDArray[np.int32], rank: Index) -> Index:
        return first.astype(np.int64) * (len(self._values) + 1) + rank

    def rows(self, first: NDArray[np.int32], second: NDArray[np.int64]) -> Index:
        """For each pair its row, −1 where there is none."""
        if self._bases is not None:
            groups = len(self._highest)
            inside = (first >= 0) & (first < groups) & (second >= 0)
            safe = np.where(inside, first, 0)
            inside &= second <= self._highest[safe]
            slots = np.where(inside, self._bases[safe] + second, 0)
            return np.where(inside, self._table[slots], -1).astype(np.int64)
        if not len(self._packed):
            return np.full(len(first), -1, np.int64)
        rank = np.searchsorted(self._values, second)
        known = self._values[np.minimum(rank, len(self._values) - 1)] == second
        packed = self._pack(first, rank)
        at = np.minimum(np.searchsorted(self._packed, packed), len(self._packed) - 1)
        return np.where(known & (self._packed[at] == packed), self._order[at], -1)


def _maximum_by(groups: NDArray[np.int32], values: NDArray[np.int64], count: int) -> Index:
    """The highest value of each group, −1 of an empty one."""
    highest = np.full(count, -1, np.int64)
    np.maximum.at(highest, groups, values)
    return highest


def judge(history: History) -> Verdict:
    """The verdict. Raises HistoryError if two records were sent under one number."""
    return _Judgement(history).verdict()


class _Judgement:
    """The indexes that the rules share, and one method per promise."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._sends = sends = history["sends"]
        self._log = _sorted_by_place(history["log"])
        self._polls = history["polls"]
        self._known = Known(sends["producer"], sends["sequence"])
        if not self._known.unique:
            raise HistoryError("two records were sent under one producer and sequence")
        log = self._log
        self._sent_of_log = self._known.rows(log["producer"], log["sequence"])
        found = self._sent_of_log >= 0
        self._there = np.bincount(self._sent_of_log[found], minlength=len(sends["producer"]))
        # The first appearance of every record: later writes to one slot win, so go backwards.
        first = np.full(len(sends["producer"]), -1, np.int64)
        backwards = np.flatnonzero(found)[::-1]
        first[self._sent_of_log[backwards]] = backwards
        self._first = first
        self._sent_of_poll = self._known.rows(self._polls["producer"], self._polls["sequence"])
        self._doubled_place = _same_place_as_before(log)
        places = Known(log["partition"][~self._doubled_place], log["offset"][~self._doubled_place])
        at = places.rows(self._polls["partition"], self._polls["offset"])
        if bool(self._doubled_place.any()):
            own = np.flatnonzero(~self._doubled_place)
            at = np.where(at >= 0, own[np.maximum(at, 0)], -1)
        self._log_of_poll = at

    def verdict(self) -> Verdict:
        rules = {
            "order": self._order,
            "nothing-lost": self._nothing_lost,
            "nothing-twice": self._nothing_twice,
            "same-offset": self._same_offset,
            "committed-only": self._committed_only,
            "whole-transactions": self._whole_transactions,
            "no-skips": self._no_skips,
            "nothing-strange": self._nothing_strange,
            "in-sync-before-ack": self._in_sync_before_ack,
        }
        promises = []
        for name in PROMISES:
            breaks = _Breaks()
            rules[name](breaks)
            promises.append(Promise(name, not breaks.count, breaks.count, tuple(breaks.examples)))
        operations = len(self._sends["producer"]) + len(self._polls["consumer"])
        return Verdict(all(each.holds for each in promises), operations, tuple(promises))

    # The promises --------------------------------------------------------------

    def _order(self, breaks: _Breaks) -> None:
        """Of the first appearances: the one before it in the partition, of the same producer,
        has a lower sequence."""
        rows = np.flatnonzero(self._sent_of_log >= 0)
        rows = rows[self._first[self._sent_of_log[rows]] == rows]
        log = self._log
        partition, producer = log["partition"][rows], log["producer"][rows]
        sequence = log["sequence"][rows]
        order = _grouped(partition, producer)
        later, earlier = order[1:], order[:-1]
        same = (partition[later] == partition[earlier]) & (producer[later] == producer[earlier])
        falls = np.flatnonzero(same & (sequence[later] < sequence[earlier]))
        behind = dict(
            zip(rows[later[falls]].tolist(), sequence[earlier[falls]].tolist(), strict=True)
        )
        breaks.add(
            np.sort(rows[later[falls]]),
            lambda row: {**_record(log, row), "why": f"stands behind sequence {behind[row]}"},
        )

    def _nothing_lost(self, breaks: _Breaks) -> None:
        sends = self._sends
        lost = (sends["status"] == Status.ACKNOWLEDGED) & (self._there == 0)
        breaks.add(
            np.flatnonzero(lost),
            lambda row: {**_record(sends, row), "why": "was acknowledged and is not there"},
        )

    def _nothing_twice(self, breaks: _Breaks) -> None:
        log, polls = self._log, self._polls
        again = np.flatnonzero(self._sent_of_log >= 0)
        again = again[self._first[self._sent_of_log[again]] != again]
        breaks.add(
            again,
            lambda row: {
                **_record(log, row),
                "why": f"stands at offset {int(log['offset'][self._first[self._sent_of_log[row]]])} too",
            },
        )
        order, here, before = self._steps()
        back = np.sort(order[1:][(here >= 0) & (before >= 0) & (here <= before)])
        breaks.add(
            back,
            lambda row: {
                **_record(polls, row),
                "consumer": int(polls["consumer"][row]),
                "why": "was given to the consumer again, or after a later one",
            },
        )

    def _same_offset(self, breaks: _Breaks) -> None:
        sends, log, polls = self._sends, self._log, self._polls
        told = (sends["offset"] >= 0) & (self._there > 0)
        told &= (sends["status"] == Status.ACKNOWLEDGED) | (sends["status"] == Status.UNKNOWN)
        # A record that is there twice is right if one of the two is where it was said to be.
        rows = np.flatnonzero(self._sent_of_log >= 0)
        sent = self._sent_of_log[rows]
        right = (log["offset"][rows] == sends["offset"][sent]) & (
            log["partition"][rows] == sends["partition"][sent]
        )
        told[sent[right]] = False
        breaks.add(
            np.flatnonzero(told),
            lambda row: {
                **_record(sends, row),
                "why": f"stands at offset {int(log['offset'][self._first[row]])}",
            },
        )
        breaks.add(
            np.flatnonzero(self._doubled_place),
            lambda row: {**_record(log, row), "why": "another record stands at this offset"},
        )
        at = self._log_of_poll
        safe = np.maximum(at, 0)
        if len(log["offset"]):
            other = (at >= 0) & (
                (log["producer"][safe] != polls["producer"])
                | (log["sequence"][safe] != polls["sequence"])
            )
            breaks.add(
                np.flatnonzero(other),
                lambda row: {
                    **_record(polls, row),
                    "consumer": int(polls["consumer"][row]),
                    "why": "was read here, where another record stands now",
                },
            )

    def _committed_only(self, breaks: _Breaks) -> None:
        sends, log, polls = self._sends, self._log, self._polls
        hidden = (sends["status"] == Status.FAILED) | (sends["status"] == Status.ABORTED)
        words = {int(Status.FAILED): "was refused", int(Status.ABORTED): "was aborted"}

        def status_of(row: int) -> str:
            return words[int(sends["status"][row])]

        in_log = np.flatnonzero(self._sent_of_log >= 0)
        in_log = in_log[hidden[self._sent_of_log[in_log]]]
        breaks.add(
            in_log,
            lambda row: {
                **_record(log, row),
                "why": f"{status_of(int(self._sent_of_log[row]))} and is there",
            },
        )
        polled = np.flatnonzero(self._sent_of_poll >= 0)
        sent = self._sent_of_poll[polled]
        seen = polled[hidden[sent]]
        breaks.add(
            seen,
            lambda row: {
                **_record(polls, row),
                "consumer": int(polls["consumer"][row]),
                "why": f"{status_of(int(self._sent_of_poll[row]))} and was read",
            },
        )
        unknown = sends["status"][sent] == Status.UNKNOWN
        gone = polled[unknown & (self._there[sent] == 0)]
        breaks.add(
            gone,
            lambda row: {
                **_record(polls, row),
                "consumer": int(polls["consumer"][row]),
                "why": "was read and is not there",
            },
        )
        transactions = self._history["transactions"]
        if not len(transactions["transaction"]):
            return
        asked = Known(
            np.zeros(len(transactions["transaction"]), np.int32), transactions["transaction"]
        )
        if not asked.unique:
            raise HistoryError("a transaction has two rows")
        inside = polled[sends["transaction"][sent] >= 0]
        numbers = sends["transaction"][self._sent_of_poll[inside]]
        rows = asked.rows(np.zeros(len(numbers), np.int32), numbers)
        early = (rows >= 0) & (
            self._polls["polled_at"][inside] < transactions["asked_at"][np.maximum(rows, 0)]
        )
        early &= ~hidden[self._sent_of_poll[inside]]
        breaks.add(
            inside[early],
            lambda row: {
                **_record(polls, row),
                "consumer": int(polls["consumer"][row]),
                "why": "was read before its commit was asked for",
            },
        )

    def _whole_transactions(self, breaks: _Breaks) -> None:
        """Records that are missing from a transaction of which others are there."""
        sends = self._sends
        rows = np.flatnonzero(
            (sends["transaction"] >= 0)
            & ((sends["status"] == Status.ACKNOWLEDGED) | (sends["status"] == Status.UNKNOWN))
        )
        if not len(rows):
            return
        _, number = np.unique(sends["transaction"][rows], return_inverse=True)
        present = self._there[rows] > 0
        count = int(number.max()) + 1
        some = np.bincount(number, weights=present, minlength=count) > 0
        missing = rows[some[number] & ~present]
        breaks.add(
            missing,
            lambda row: {
                **_record(sends, row),
                "transaction": int(sends["transaction"][row]),
                "why": "is not there, others of its transaction are",
            },
        )

    def _no_skips(self, breaks: _Breaks) -> None:
        log, about = self._log, self._history.about
        order, here, before = self._steps()
        gap = np.flatnonzero((here >= 0) & (before >= 0) & (here > before + 1))
        following = order[1:][gap]
        lengths = (here - before - 1)[gap]
        by_row = {
            int(row): (int(first), int(length))
            for row, first, length in zip(following[:EXAMPLES], before[gap][:EXAMPLES] + 1, lengths[:EXAMPLES], strict=True)
        }  # fmt: skip
        breaks.add(
            following,
            lambda row: {
                **_record(log, by_row[row][0]),
                "consumer": int(self._polls["consumer"][row]),
                "why": f"was passed over, with {by_row[row][1] - 1} more"
                if by_row[row][1] > 1
                else "was passed over",
            },
        )
        breaks.count += int(lengths.sum()) - len(lengths)
        self._ends(breaks)
        seen_by_group = self._seen_by_group()
        for group in about.groups:
            missed = np.flatnonzero(~seen_by_group[group])
            breaks.add(
                missed,
                lambda row, group=group: {  # type: ignore[misc]
                    **_record(log, row),
                    "why": f"no member of {group} was given it",
                },
            )

    def _ends(self, breaks: _Breaks) -> None:
        """Consumers that began at the start of a partition, or read to its end."""
        log, polls, about = self._log, self._polls, self._history.about
        bounds = _bounds(log["partition"])
        chosen = [each for each in about.consumers if each.starts or each.ends]
        if not chosen:
            return
        found = self._log_of_poll >= 0
        consumers = polls["consumer"]
        for each in chosen:
            mine = np.flatnonzero((consumers == each.id) & found)
            at = self._log_of_poll[mine]
            partitions = polls["partition"][mine]
            for partition in sorted({*each.starts, *each.ends}):
                if partition not in bounds:
                    continue
                first, until = bounds[partition]
                inside = at[partitions == partition]
                lowest = int(inside[0]) if len(inside) else until
                highest = int(inside.max()) + 1 if len(inside) else first
                missed: list[range] = []
                if not len(inside):
                    if partition in each.ends and partition in each.starts:
                        missed.append(range(first, until))
                else:
                    if partition in each.starts:
                        missed.append(range(first, lowest))
                    if partition in each.ends:
                        missed.append(range(highest, until))
                for rows in missed:
                    breaks.add(
                        np.arange(rows.start, rows.stop, dtype=np.int64),
                        lambda row, consumer=each.id: {  # type: ignore[misc]
                            **_record(log, row),
                            "consumer": consumer,
                            "why": "was never given to the consumer",
                        },
                    )

    def _seen_by_group(self) -> dict[str, Mask]:
        about = self._history.about
        names = {group: number for number, group in enumerate(about.groups)}
        count = len(self._log["offset"])
        seen = {group: np.zeros(count, np.bool_) for group in names}
        if not names:
            return seen
        most = max((each.id for each in about.consumers), default=-1) + 1
        group_of = np.full(most + 1, -1, np.int32)
        for each in about.consumers:
            if each.group in names:
                group_of[each.id] = names[each.group]
        consumers = np.minimum(self._polls["consumer"], most)
        groups = group_of[consumers]
        for group, number in names.items():
            rows = self._log_of_poll[(groups == number) & (self._log_of_poll >= 0)]
            seen[group][rows] = True
        return seen

    def _nothing_strange(self, breaks: _Breaks) -> None:
        sends, log, polls = self._sends, self._log, self._polls
        for table, sent, whose in (
            (log, self._sent_of_log, None),
            (polls, self._sent_of_poll, polls["consumer"]),
        ):

            def tell(row: int, why: str, table: Columns = table, whose: object = whose) -> Example:
                consumer: Example = (
                    {} if whose is None else {"consumer": int(polls["consumer"][row])}
                )
                return {**_record(table, row), **consumer, "why": why}

            breaks.add(
                np.flatnonzero(sent < 0),
                lambda row, tell=tell: tell(row, "was never sent"),  # type: ignore[misc]
            )
            known = np.flatnonzero(sent >= 0)
            astray = known[sends["partition"][sent[known]] != table["partition"][known]]
            breaks.add(
                astray,
                lambda row, tell=tell: tell(row, "was sent to another partition"),  # type: ignore[misc]
            )
        known = np.flatnonzero(self._sent_of_poll >= 0)
        early = known[polls["polled_at"][known] < sends["sent_at"][self._sent_of_poll[known]]]
        breaks.add(
            early,
            lambda row: {
                **_record(polls, row),
                "consumer": int(polls["consumer"][row]),
                "why": "was read before it was sent",
            },
        )

    def _in_sync_before_ack(self, breaks: _Breaks) -> None:
        replicas = self._history["replicas"]
        behind = np.flatnonzero(replicas["end"] <= replicas["offset"])
        breaks.add(
            behind,
            lambda row: {
                "partition": int(replicas["partition"][row]),
                "offset": int(replicas["offset"][row]),
                "replica": int(replicas["replica"][row]),
                "end": int(replicas["end"][row]),
                "why": "was acknowledged, and this in-sync replica did not have it",
            },
        )

    # What several of them need -------------------------------------------------

    def _steps(self) -> tuple[Index, Index, Index]:
        """Polls of records that are in the log, by consumer and partition, in their order: the
        rows; and, from the second on, where each stands in the log and where the one before it
        does (−1: it is the first of its consumer and partition)."""
        polls = self._polls
        rows = np.flatnonzero(self._log_of_poll >= 0)
        consumer, partition = polls["consumer"][rows], polls["partition"][rows]
        order = rows[_grouped(consumer, partition)]
        at = self._log_of_poll[order]
        if not len(order):
            nothing = np.zeros(0, np.int64)
            return np.zeros(1, np.int64), nothing, nothing
        same = (polls["consumer"][order[1:]] == polls["consumer"][order[:-1]]) & (
            polls["partition"][order[1:]] == polls["partition"][order[:-1]]
        )
        return order, at[1:], np.where(same, at[:-1], -1)


def _grouped(first: NDArray[np.int32], second: NDArray[np.int32]) -> Index:
    """An order of all rows by two columns that keeps equal ones as they are."""
    low = int(second.min()) if len(second) else 0
    span = (int(second.max()) - low + 1) if len(second) else 1
    key = first.astype(np.int64) * span + (second - low)
    if bool((key[1:] >= key[:-1]).all()):
        return np.arange(len(key), dtype=np.int64)
    return np.argsort(_narrow(key), kind="stable")


def _narrow(key: Index) -> NDArray[np.signedinteger]:
    """The same order in 16 bits if it fits: numpy sorts those by radix."""
    low, high = int(key.min()), int(key.max())
    return (key - (low + 2**15)).astype(np.int16) if high - low < 2**16 else key


def _sorted_by_place(log: Columns) -> Columns:
    partition, offset = log["partition"], log["offset"]
    same = partition[1:] == partition[:-1]
    if bool(((partition[1:] > partition[:-1]) | (same & (offset[1:] >= offset[:-1]))).all()):
        return log
    order = np.lexsort((offset, partition))
    return {name: column[order] for name, column in log.items()}


def _same_place_as_before(log: Columns) -> Mask:
    doubled = np.zeros(len(log["offset"]), np.bool_)
    doubled[1:] = (log["partition"][1:] == log["partition"][:-1]) & (
        log["offset"][1:] == log["offset"][:-1]
    )
    return doubled


def _bounds(partition: NDArray[np.int32]) -> dict[int, tuple[int, int]]:
    """The first row of every partition in the log, and the row behind its last."""
    if not len(partition):
        return {}
    cuts = (np.flatnonzero(partition[1:] != partition[:-1]) + 1).tolist()
    first, until = [0, *cuts], [*cuts, len(partition)]
    names = partition[first].tolist()
    return {name: (a, b) for name, a, b in zip(names, first, until, strict=True)}


def _record(columns: Columns, row: int) -> Example:
    return {
        name: int(columns[name][row]) for name in ("producer", "sequence", "partition", "offset")
    }
