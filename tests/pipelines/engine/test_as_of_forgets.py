"""As-of joins over a history that is kept for a time: what leaves, what stays exact.

The judge keeps everything and says for each row, by the rule, what it must show.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.reading.catalog import described_table
from tailrace.testing.ticks import MemoryTables, table

KEPT = 10_000
RATES = replace(
    table("shop.public.rates", "currency STRING, rate INT", ["currency"], "history"), kept_ms=KEPT
)
ORDERS = table("shop.public.orders", "id BIGINT, currency STRING, at TIMESTAMP, n INT", ["id"])
CLICKS = table("clicks", "id BIGINT, currency STRING, at TIMESTAMP, n INT", (), "stream")
SQL = (
    "SELECT o.id, o.n, r.rate FROM {} o LEFT JOIN shop.rates FOR SYSTEM_TIME AS OF o.at r"
    " ON r.currency = o.currency"
)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def at(seconds: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(seconds=seconds)


def shop(left: str = "shop.orders", shards: int = 1) -> MemoryTables:
    views = [ViewDefinition("v", SQL.format(left), ("id",))]
    return MemoryTables(compile_views(views, [RATES, ORDERS, CLICKS]), shards=shards)


def rate(memory: MemoryTables, since: int, value: int | None) -> None:
    row = {"currency": "EUR", "rate": value, "__versioned_at": at(since)}
    (memory.delete if value is None else memory.upsert)("shop.public.rates", row)


def order(memory: MemoryTables, number: int, when: int, n: int = 0) -> None:
    row = {"id": number, "currency": "EUR", "at": at(when), "n": n}
    memory.upsert(
        "shop.public.orders" if "shop.public.orders" in memory.graph.tables else "clicks", row
    )


def shown(memory: MemoryTables) -> dict[int, int | None]:
    return {row["id"]: row["rate"] for row in memory.rows("v")}


def tick(memory: MemoryTables, now: int) -> None:
    memory.now_ms = now
    memory.tick()


def entries(memory: MemoryTables, prefix: bytes) -> int:
    return sum(
        1
        for shard in range(memory.shards)
        for node in memory.graph.nodes
        if node.operator.kind == "as-of"
        for _ in memory.states.of(shard, node.id).scan(prefix)
    )


def test_versions_no_row_stands_on_leave_and_the_others_stay() -> None:
    memory = shop()
    for number in range(1, 6):
        rate(memory, number * 100, number)
    order(memory, 1, 350)
    tick(memory, 1_000)
    assert entries(memory, b"r") == 5
    order(memory, 2, 550)
    tick(memory, 1_000 + KEPT)
    # Forgotten: 100 and 200, one mark; 300 has a row; 400 forgotten; 500 is the last.
    assert entries(memory, b"r") == 4
    assert shown(memory) == {1: 3, 2: 5}
    order(memory, 1, 350, n=7)  # a row that is there is changed exactly
    order(memory, 3, 250)  # one that comes for a forgotten time finds nothing
    order(memory, 4, 450)
    rate(memory, 210, 99)  # a version that begins in it is not taken
    rate(memory, 320, 8)  # one that begins in a known time is
    tick(memory, 1_000 + KEPT)
    assert shown(memory) == {1: 8, 2: 5, 3: None, 4: None}
    assert memory.forgotten == {"shop.public.rates": 3}  # rows 3 and 4, and the version
    memory.delete("shop.public.orders", {"id": 1, "currency": "EUR", "at": at(350), "n": 7})
    tick(memory, 1_000 + 3 * KEPT)
    order(memory, 5, 10_000)
    tick(memory, 1_000 + 3 * KEPT)
    assert entries(memory, b"r") == 2  # the mark and the last
    assert shown(memory) == {2: 5, 3: None, 4: None, 5: 5}


def test_a_fill_of_old_rows_and_versions_forgets_nothing() -> None:
    """Time counts from when a tick saw it, so that what is read first does not matter."""
    memory = shop()
    for number in range(1, 4):
        rate(memory, number * 100, number)
    tick(memory, 10**12)
    for number, when in enumerate((50, 150, 250, 350)):
        order(memory, number, when)
    tick(memory, 10**12 + KEPT - 1)
    assert shown(memory) == {0: None, 1: 1, 2: 2, 3: 3}
    assert not memory.forgotten


def test_rows_of_a_stream_leave_and_what_was_shown_stays() -> None:
    memory = shop("clicks")
    rate(memory, 100, 1)
    memory.upsert("clicks", {"id": 1, "currency": "EUR", "at": at(150), "n": 0})
    tick(memory, 0)
    assert entries(memory, b"l") == 1
    rate(memory, 300, 2)
    tick(memory, KEPT)
    assert entries(memory, b"l") == 0
    assert not memory.forgotten
    rate(memory, 120, 9)  # too late for it
    memory.upsert("clicks", {"id": 2, "currency": "EUR", "at": at(350), "n": 0})
    tick(memory, KEPT)
    assert shown(memory) == {1: 1, 2: 2}
    assert memory.forgotten == {"shop.public.rates": 1}


def copied(memory: MemoryTables, since: int, value: int) -> None:
    """A row of a copy of the table, read at that time."""
    row = {"currency": "EUR", "rate": value, "__versioned_at": at(since), "__copied": True}
    memory.upsert("shop.public.rates", row)


def test_the_first_copy_is_valid_since_ever_and_a_later_one_does_not_rewrite_the_past() -> None:
    memory = shop()
    copied(memory, 100, 1)
    tick(memory, 0)
    for number, when in enumerate((50, 150, 250, 350)):
        order(memory, number, when)
    rate(memory, 200, 2)
    tick(memory, 0)
    assert shown(memory) == {0: 1, 1: 1, 2: 2, 3: 2}
    copied(memory, 300, 2)  # copied again: it says what is known
    tick(memory, 0)
    assert shown(memory) == {0: 1, 1: 1, 2: 2, 3: 2}
    copied(memory, 300, 3)  # a change that was missed: true from then on
    tick(memory, 0)
    assert shown(memory) == {0: 1, 1: 1, 2: 2, 3: 3}


def test_a_row_that_changed_before_it_was_copied_is_as_old_as_the_change() -> None:
    memory = shop()
    rate(memory, 100, 1)  # captured while the first copy runs
    copied(memory, 120, 1)
    order(memory, 1, 50)
    order(memory, 2, 150)
    tick(memory, 0)
    assert shown(memory) == {1: None, 2: 1}
    rate(memory, 200, None)
    tick(memory, 0)
    copied(memory, 300, 4)  # it came back, and nobody saw it come
    order(memory, 3, 250)
    order(memory, 4, 350)
    tick(memory, 0)
    assert shown(memory) == {1: None, 2: 1, 3: None, 4: 4}


@pytest.mark.parametrize("history", ["forever", None])
def test_a_history_for_ever_forgets_nothing(history: str | None) -> None:
    document: dict[str, object] = {
        "topic": "shop.public.rates", "key": ["currency"], "history": history,
        "columns": [{"name": "currency", "spark": "STRING"}],
    }  # fmt: skip
    assert described_table(document).kept_ms is None
    assert described_table({**document, "history": "90 days"}).kept_ms == 90 * 86_400_000


@dataclass
class Judge:
    """The rule, naively: all versions, and of each when it was replaced and whether it left."""

    versions: list[list[Any]] = field(default_factory=list)  # [since, number, rate, due, gone]
    rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    forgotten: int = 0

    def interval(self, place: int) -> tuple[int, float]:
        following = self.versions[place + 1][0] if place + 1 < len(self.versions) else float("inf")
        return self.versions[place][0], following

    def place(self, when: int) -> int | None:
        found = [i for i, v in enumerate(self.versions) if v[0] <= when]
        return found[-1] if found else None

    def forget(self, now: int) -> None:
        for place, version in enumerate(self.versions):
            first, last = self.interval(place)
            used = any(first <= when < last for when, _ in self.rows.values())
            if version[3] is not None and version[3] <= now and not used:
                version[4] = True

    def take(self, since: int, number: int, value: int | None) -> None:
        before = [v for v in self.versions if (v[0], v[1]) < (since, number)]
        if before and before[-1][4]:
            self.forgotten += 1
            return
        self.versions = sorted(
            [*self.versions, [since, number, value, None, False]], key=lambda v: v[:2]
        )

    def replaced(self, now: int) -> None:
        for version in self.versions[:-1]:
            if version[3] is None:
                version[3] = now + KEPT

    def shows(self) -> dict[int, int | None]:
        out: dict[int, int | None] = {}
        for identity, (when, _) in self.rows.items():
            place = self.place(when)
            version = self.versions[place] if place is not None else None
            out[identity] = None if version is None or version[4] else version[2]
        return out


@pytest.mark.parametrize("seed", range(40))
def test_random_histories_show_what_the_rule_says(seed: int) -> None:
    rng = random.Random(seed)
    memory, judge, now, number = shop(shards=1 + seed % 3), Judge(), 0, 0
    for _ in range(60):
        now += rng.choice([0, 500, 3_000, KEPT])
        judge.forget(now)
        changed: set[int] = set()
        late: list[int] = []
        for _ in range(rng.randrange(4)):
            number += 1
            since = rng.randrange(40) * 5
            value = None if rng.random() < 0.1 else number
            rate(memory, since, value)
            judge.take(since, number, value)
        judge.replaced(now)
        for _ in range(rng.randrange(4)):
            identity = rng.randrange(8)
            if identity in changed:
                continue
            changed.add(identity)
            if identity in judge.rows and rng.random() < 0.5:
                when, n = judge.rows.pop(identity)
                row = {"id": identity, "currency": "EUR", "at": at(when), "n": n}
                memory.delete("shop.public.orders", row)
            else:
                when = (
                    judge.rows[identity][0]
                    if identity in judge.rows and rng.random() < 0.5
                    else rng.randrange(220)
                )
                if judge.rows.get(identity) != (when, number):
                    late.append(when)
                judge.rows[identity] = (when, number)
                order(memory, identity, when, number)
        if rng.random() < 0.3:
            memory.now_ms = now
            memory.attempt()
        tick(memory, now)
        for when in late:
            place = judge.place(when)
            judge.forgotten += place is not None and judge.versions[place][4]
        judge.forget(now)
        assert shown(memory) == judge.shows()
        assert sum(memory.forgotten.values()) == judge.forgotten
