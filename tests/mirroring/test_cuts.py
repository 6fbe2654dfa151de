"""With cut="transactions" a reader of the target never sees a part of a source's transaction."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirroring.test_mirror import Logs, _assert_equal, _Killed, _read
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.errors import UsageError
from tailrace.mirroring import fetch, relay
from tailrace.mirroring.relay import Mirror
from tailrace.mirroring.whole import Part, lower


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    monkeypatch.setattr(fetch, "WAIT", 0.01)
    monkeypatch.setattr(relay, "IDLE_SECONDS", 0.01)
    with (
        BrokerThread(tmp_path / "source", durable=False) as source,
        BrokerThread(tmp_path / "target", durable=False) as target,
    ):
        for address in (source.address, target.address):
            with Admin(address) as admin:
                admin.create_topic("debits", 2)
                admin.create_topic("credits", 2)
        yield Logs(source.address, target.address)


def _mirror(logs: Logs, **settings: object) -> Mirror:
    return Mirror("m", logs.source, logs.target, topics="debits|credits", cut="transactions", **settings)  # type: ignore[arg-type]  # fmt: skip


def _transfer(writer: TransactionalWriter, number: int, chance: random.Random) -> None:
    for topic in ("debits", "credits"):
        writer.send(topic, chance.randrange(2), None, b"%d" % number)


def _seen(address: str) -> tuple[set[bytes | None], set[bytes | None]]:
    sides = [{each.value for number in range(2) for each in _read(address, topic, number)} for topic in ("debits", "credits")]  # fmt: skip
    return sides[0], sides[1]


@pytest.mark.parametrize("version", [1, 2])
def test_a_transfer_is_at_the_target_whole_whenever_the_mirror_is_killed(
    logs: Logs, version: int
) -> None:
    chance = random.Random(version)
    left = [0]

    def step(name: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise _Killed(name)

    with (
        TransactionalWriter(logs.source, "one", transaction_version=version) as one,
        TransactionalWriter(logs.source, "two", transaction_version=version) as two,
    ):
        one.init()
        two.init()
        for number in range(30):
            _transfer(one, number, chance)
            one.flush()  # open while the other commits
            _transfer(two, 100 + number, chance)
            two.commit()
            left[0] = chance.randrange(3, 12)
            mirror: Mirror | None = None
            try:
                mirror = _mirror(logs, step=step)
                for _ in range(3):
                    mirror.cycle()
            except _Killed:
                if mirror is not None:
                    mirror._writer.cluster.close()
            if mirror is not None:
                mirror.close()
            debits, credits = _seen(logs.target)
            assert debits == credits
            one.abort() if number % 5 == 4 else one.commit()
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    for topic in ("debits", "credits"):
        _assert_equal(logs, topic, topic)
    debits, credits = _seen(logs.target)
    assert debits == credits == {b"%d" % number for number in range(130) if number >= 100 or (number < 30 and number % 5 != 4)}  # fmt: skip


def test_what_is_open_in_one_place_does_not_hold_the_others_up(logs: Logs) -> None:
    with (
        TransactionalWriter(logs.source, "open") as still_open,
        TransactionalWriter(logs.source, "other") as other,
    ):
        still_open.init()
        other.init()
        still_open.send("debits", 0, None, b"open")
        still_open.flush()
        for number in range(3):
            other.send("debits", 1, None, b"%d" % number)
            other.send("credits", 1, None, b"%d" % number)
            other.commit()
        other.send("debits", 0, None, b"behind")
        other.send("credits", 0, None, b"behind")
        other.commit()
        with _mirror(logs) as mirror:
            for _ in range(4):
                mirror.cycle()
            assert [each.value for each in _read(logs.target, "credits", 1)] == [b"0", b"1", b"2"]
            assert _read(logs.target, "credits", 0) == []  # its debit waits behind what is open
            still_open.abort()
            mirror.run_until_caught_up()
        assert [each.value for each in _read(logs.target, "credits", 0)] == [b"behind"]
        assert [each.value for each in _read(logs.target, "debits", 0)] == [b"behind"]


def test_what_is_held_while_a_transaction_stays_open_is_limited(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "CYCLE_BYTES", 10_000)
    with (
        TransactionalWriter(logs.source, "open") as still_open,
        TransactionalWriter(logs.source, "other") as other,
    ):
        still_open.init()
        other.init()
        still_open.send("debits", 0, None, b"open")
        still_open.flush()
        for number in range(40):
            other.send("debits", 0, None, b"%d" % number)
            other.send("credits", 0, None, b"%d" % number)
            other.send("credits", 0, None, bytes(3_000))
            other.commit()
        with _mirror(logs) as mirror:
            for _ in range(20):
                mirror.cycle()
            assert mirror.records == 0
            assert mirror._whole is not None
            assert 10_000 < mirror._whole.held_bytes < 30_000
            still_open.commit()
            mirror.run_until_caught_up()
    for topic in ("debits", "credits"):
        _assert_equal(logs, topic, topic)


def test_a_transaction_larger_than_what_is_held_arrives_whole(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "CYCLE_BYTES", 10_000)
    with TransactionalWriter(logs.source, "large") as writer:
        writer.init()
        for number in range(30):
            writer.send("debits", 0, None, b"%d" % number)
            writer.send("credits", number % 2, None, b"%d" % number)
            writer.send("credits", number % 2, None, bytes(3_000))
            writer.flush()
        writer.commit()
        writer.send("debits", 1, None, b"behind")
        writer.commit()
    seen = set()
    with _mirror(logs, step=lambda name: seen.add(len(_read(logs.target, "credits", 0)))) as mirror:
        mirror.run_until_caught_up()
    assert seen == {0, 30}
    for topic in ("debits", "credits"):
        _assert_equal(logs, topic, topic)


def test_a_cut_and_a_rule_for_conflicts_are_not_taken_together(logs: Logs) -> None:
    with pytest.raises(UsageError, match="takes transactions apart"):
        _mirror(logs, conflicts="latest", site="ams", others=["ber"])


PARTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 3)), max_size=10)


@given(PARTS, st.lists(st.integers(0, 40), min_size=3, max_size=3), st.sets(st.integers(0, 9)))
def test_no_transaction_crosses_a_cut_and_none_further_would_do(
    steps: list[tuple[int, int, int]], ends: list[int], unmarked: set[int]
) -> None:
    """Beside every cut there is, tried one after another."""
    parts: dict[tuple[str, int], list[Part]] = {("t", number): [] for number in range(3)}
    at = dict.fromkeys(parts, 0)
    for number, (transaction, partition, length) in enumerate(steps):
        place = ("t", partition)
        marker = None if number in unmarked else at[place] + length
        parts[place].append(Part((transaction, 0, 0), at[place], marker))
        at[place] += length + 1
    most = {place: min(end, at[place]) for place, end in zip(parts, ends, strict=True)}

    def whole(cut: dict[tuple[str, int], int]) -> bool:
        for transaction in {part.transaction for each in parts.values() for part in each}:
            mine = [(place, part) for place, each in parts.items() for part in each if part.transaction == transaction]  # fmt: skip
            begun = any(part.first < cut[place] for place, part in mine)
            if begun and not all(part.marker is not None and part.marker < cut[place] for place, part in mine):  # fmt: skip
                return False
        return True

    found = lower(parts, most)
    assert whole(found)
    one, two, three = parts
    possible = [
        {one: a, two: b, three: c}
        for a in range(most[one] + 1)
        for b in range(most[two] + 1)
        for c in range(most[three] + 1)
        if whole({one: a, two: b, three: c})
    ]
    assert found == {place: max(each[place] for each in possible) for place in parts}
