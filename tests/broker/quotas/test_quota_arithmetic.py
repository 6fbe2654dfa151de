"""Rates, pauses, precedence: judged by naive twins."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.broker.errors import InvalidQuotaError
from tailrace.broker.quotas.rate import Bucket, Rate
from tailrace.broker.quotas.table import (
    CONSUMER_BYTES,
    DEFAULT,
    PRODUCER_BYTES,
    REQUEST_SHARE,
    Entity,
    QuotaTable,
)

NAMES = (None, DEFAULT, "a", "b")


class NaiveRate:
    """Every window ever, summed up anew each time."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.windows: list[list[float]] = []

    def add(self, amount: float, now: float) -> None:
        if not self.windows or now - self.windows[-1][0] >= 1:
            self.windows.append([now, 0.0])
        self.windows[-1][1] += amount

    def living(self, now: float) -> list[list[float]]:
        return [one for one in self.windows if now - one[0] < self.samples]

    def per_second(self, now: float) -> float:
        living = self.living(now)
        elapsed = now - living[0][0] if living else 0.0
        elapsed += max(0, self.samples - 1 - math.floor(elapsed))
        return sum(one[1] for one in living) / elapsed


@given(
    st.integers(2, 12),
    st.lists(st.tuples(st.sampled_from([0.0, 0.125, 0.5, 1.0, 3.0, 20.0]), st.integers(0, 1000))),
)
def test_a_rate_is_the_sum_of_its_windows(samples: int, steps: list[tuple[float, int]]) -> None:
    rate, naive, now = Rate(samples), NaiveRate(samples), 100.0
    for wait, amount in steps:
        now += wait
        rate.add(amount, now)
        naive.add(amount, now)
        assert rate.per_second(now) == pytest.approx(naive.per_second(now))
    assert len(rate.windows) <= samples + 1


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=30), st.integers(1, 5000))
def test_after_its_pause_a_client_is_at_its_limit(amounts: list[int], limit: int) -> None:
    rate, now = Rate(), 0.0
    for amount in amounts:
        rate.add(amount, now)
        pause = rate.pause(limit, now)
        assert (pause > 0) == (rate.per_second(now) > limit * (1 + 1e-12)) or pause < 1e-6
        # Kafka's formula: how far over, times the time the rate covers.
        over = (rate.per_second(now) - limit) / limit * rate.seconds(now)
        assert pause == pytest.approx(max(0.0, over), abs=1e-6)
        now += pause + 0.01
    assert rate.per_second(now) <= max(limit, *amounts) * 1.01


def test_a_burst_within_all_windows_is_free() -> None:
    rate = Rate(samples=11)
    rate.add(1000, 5.0)
    assert rate.pause(100, 5.0) == 0
    rate.add(1, 5.0)
    assert rate.pause(100, 5.0) == pytest.approx(0.01)


def test_a_bucket_may_be_overdrawn_once() -> None:
    bucket = Bucket(2.0, 10.0, now=0.0)
    bucket.take(30)
    assert bucket.pause(2.0, 10.0, 0.0) == 5.0
    assert bucket.pause(2.0, 10.0, 4.0) == 1.0
    assert bucket.pause(2.0, 10.0, 6.0) == 0.0
    assert bucket.pause(2.0, 10.0, 1e6) == 0.0
    bucket.take(20)
    assert bucket.pause(2.0, 10.0, 1e6) == 0.0


ORDER = (
    ("user", "client"), ("user", DEFAULT), ("user", None),
    (DEFAULT, "client"), (DEFAULT, DEFAULT), (DEFAULT, None),
    (None, "client"), (None, DEFAULT),
)  # fmt: skip


@given(st.sets(st.sampled_from([Entity(u, c) for u, c in itertools.product(NAMES, NAMES)][1:])))
def test_the_most_special_quota_holds(entities: set[Entity]) -> None:
    ordered = sorted(entities, key=str)
    table = QuotaTable((one, {PRODUCER_BYTES: float(n + 1)}) for n, one in enumerate(ordered))
    for user, client in itertools.product(("a", "x"), ("a", "b", "y", "")):
        expected = None
        for pattern_user, pattern_client in ORDER:
            one = Entity(
                user if pattern_user == "user" else pattern_user,
                client if pattern_client == "client" else pattern_client,
            )
            if one in entities:
                expected = (
                    float(ordered.index(one) + 1),
                    ("" if one.user is None else user, "" if one.client_id is None else client),
                )
                break
        found = table.limit(PRODUCER_BYTES, user, client)
        assert (None if found is None else tuple(found)) == expected
        assert table.limit(CONSUMER_BYTES, user, client) is None


def test_what_cannot_be_a_quota_is_refused() -> None:
    table = QuotaTable()
    one = Entity("a")
    for key, value in (
        ("magic", 1.0),
        (PRODUCER_BYTES, 0.0),
        (PRODUCER_BYTES, -1.0),
        (PRODUCER_BYTES, 0.5),
        (REQUEST_SHARE, float("nan")),
        (REQUEST_SHARE, float("inf")),
    ):
        with pytest.raises(InvalidQuotaError):
            table.changed(one, {key: value})
    assert table.changed(one, {REQUEST_SHARE: 0.5, PRODUCER_BYTES: None}) == {REQUEST_SHARE: 0.5}
    for parts in ([], [("group", "g")], [("user", "")], [("user", "a"), ("user", "b")]):
        with pytest.raises(InvalidQuotaError):
            Entity.of(parts)
    assert Entity.of([("client-id", None), ("user", "a")]) == Entity("a", DEFAULT)
