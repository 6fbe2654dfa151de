"""Sites that write the same topics, and one that is left and comes back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mirroring.test_mirror import Logs, _content, _Killed, _make, _read, _rows, _write
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.groups import Groups
from tailrace.client.log import connect
from tailrace.client.writer import TransactionalWriter
from tailrace.errors import UsageError
from tailrace.mirroring import fetch, relay
from tailrace.mirroring.errors import (
    MirrorFailedOverError,
    MirrorFencedError,
    MirrorLoopError,
    MirrorRecordsGoneError,
    MirrorRecordTooLargeError,
    MirrorTopicAnewError,
)
from tailrace.mirroring.fail_over import fail_back, fail_over
from tailrace.mirroring.relay import Mirror
from tailrace.mirroring.status import document
from tailrace.mirroring.translate import translate, translate_back


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    with (
        BrokerThread(tmp_path / "ams", durable=False) as ams,
        BrokerThread(tmp_path / "ber", durable=False) as ber,
    ):
        yield Logs(ams.address, ber.address)


ROUNDS = 150  # of kills in both directions


def _send(address: str, topic: str, *values: bytes, key: bytes | None = None) -> None:
    with connect(address) as log, log.producer() as producer:
        for value in values:
            producer.send(topic, key=key, value=value, partition=0)


def _values(address: str, topic: str = "orders", partition: int = 0) -> list[bytes | None]:
    return [each.value for each in _read(address, topic, partition)]


def _there(logs: Logs, **settings: object) -> Mirror:
    return Mirror("there", logs.source, logs.target, topics="orders", site="ams", others=["ber"], **settings)  # type: ignore[arg-type]  # fmt: skip


def _back(logs: Logs, **settings: object) -> Mirror:
    return Mirror("back", logs.target, logs.source, topics="orders", site="ber", others=["ams"], **settings)  # type: ignore[arg-type]  # fmt: skip


def test_what_both_sites_write_is_at_both_once(logs: Logs) -> None:
    _make(logs)
    with _there(logs) as there, _back(logs) as back:
        for number in range(5):
            _send(logs.source, "orders", b"a%d" % number)
            _send(logs.target, "orders", b"b%d" % number)
            _write(logs.source, "orders", 12, seed=number)
            there.run_until_caught_up()
            back.run_until_caught_up()
        sizes = {address: [len(_read(address, "orders", each)) for each in range(2)] for address in logs}  # fmt: skip
        assert there.cycle() == back.cycle() == 0
        there.run_until_caught_up()
        back.run_until_caught_up()
    for partition in range(2):
        here, away = (_content(_read(address, "orders", partition)) for address in logs)
        assert sorted(map(repr, here)) == sorted(map(repr, away))
    assert sizes == {address: [len(_read(address, "orders", each)) for each in range(2)] for address in logs}  # fmt: skip
    for letter in (b"a", b"b"):
        for address in logs:
            own = [each for each in _values(address) if each and each[:1] == letter and len(each) == 2]  # fmt: skip
            assert own == [b"%c%d" % (letter[0], number) for number in range(5)]


def test_a_mirror_that_names_no_sites_does_not_join_one_of_the_other_direction(logs: Logs) -> None:
    _make(logs)
    with _there(logs) as there:
        there.run_until_caught_up()
        with pytest.raises(MirrorLoopError, match="brings orders here"):
            Mirror("back", logs.target, logs.source, topics="orders")
        with pytest.raises(MirrorLoopError, match="brings orders here"):
            Mirror("back", logs.target, logs.source, topics="orders", site="x", others=["ams"])


def test_no_record_goes_round_when_mirrors_of_both_directions_are_killed_at_any_step(logs: Logs) -> None:  # fmt: skip
    _make(logs)
    with _there(logs), _back(logs):
        pass  # the topics of rows are there
    sent: set[bytes] = set()
    at = 0
    done = 0
    while done < 2:
        at += 1
        done = 0
        for direction, address in ((_there, logs.source), (_back, logs.target)):
            value = b"%d at %s" % (at, address.encode())
            sent.add(value)
            _send(address, "orders", value)
            done += not _die(direction, logs, at)
    with _there(logs) as there, _back(logs) as back:
        there.run_until_caught_up()
        back.run_until_caught_up()
        there.run_until_caught_up()
    for address in logs:
        assert sorted(filter(None, _values(address))) == sorted(sent)


def _die(direction: Callable[..., Mirror], logs: Logs, at: int) -> bool:
    """Whether it was killed before its `at`-th step."""
    steps = [0]

    def step(name: str) -> None:
        steps[0] += 1
        if steps[0] == at:
            raise _Killed(name)

    made: Mirror | None = None
    try:
        made = direction(logs, step=step)
        made.run_until_caught_up()
    except _Killed:
        if made is not None:
            made._writer.cluster.close()
            made.close()
        return True
    made.close()
    return False


def test_records_of_a_third_site_carry_their_origin_along_a_chain(tmp_path: Path) -> None:
    """ams → ber → cph → ams: each record is at each site once."""
    with ExitStack() as stack:
        names = ["ams", "ber", "cph"]
        at = {name: stack.enter_context(BrokerThread(tmp_path / name, durable=False)).address for name in names}  # fmt: skip
        for name in names:
            with Admin(at[name]) as admin:
                admin.create_topic("orders", 1)
        mirrors = [
            stack.enter_context(
                Mirror(f"{one}-{two}", at[one], at[two], topics="orders", site=one, others=[two])
            )
            for one, two in (("ams", "ber"), ("ber", "cph"), ("cph", "ams"))
        ]
        for number in range(3):
            for name in names:
                _send(at[name], "orders", b"%s%d" % (name.encode(), number))
            for _ in range(3):
                for mirror in mirrors:
                    mirror.run_until_caught_up()
        mirrors[1]._consolidate()  # origins outlive it
        for name in names:
            _send(at[name], "orders", b"last of " + name.encode())
        for _ in range(3):
            for mirror in mirrors:
                mirror.run_until_caught_up()
        expected = sorted([b"%s%d" % (name.encode(), number) for name in names for number in range(3)] + [b"last of " + name.encode() for name in names])  # fmt: skip
        for name in names:
            assert sorted(filter(None, _values(at[name]))) == expected


# Leaving a site, and coming back ----------------------------------------------------


def test_fail_back_keeps_what_only_the_source_had_and_goes_on(logs: Logs) -> None:
    _make(logs)
    _send(logs.source, "orders", b"one", b"two")
    settings = {"topics": "orders", "site": "ams", "others": ["ber"], "groups": "billing"}
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
        with Admin(logs.source) as admin:
            Groups(admin).commit("billing", {("orders", 0): 1})
        mirror.run_until_caught_up()
    _send(logs.source, "orders", b"never arrived")
    with pytest.raises(UsageError, match="was not failed over"):
        fail_back("m", logs.source, logs.target)
    planned = fail_over("m", logs.target, logs.source, execute=False)
    assert (planned.executed, planned.not_mirrored) == (False, 1)
    assert planned.groups == {"billing": {"orders/0": 1}}
    done = fail_over("m", logs.target, execute=True)  # as if the source was dead
    assert (done.executed, done.not_mirrored) == (True, None)
    assert done.mirrored_until is not None
    _send(logs.target, "orders", b"three", b"four")
    with Admin(logs.target) as admin:
        Groups(admin).commit("billing", {("orders", 0): 4})
    with pytest.raises(MirrorFailedOverError):
        Mirror("m", logs.source, logs.target, **settings)  # type: ignore[arg-type]
    back = fail_back("m", logs.source, logs.target, execute=False)
    assert (back.only_at_source, back.topics) == (1, ["orders.unmirrored"])
    assert back.to_copy >= 2
    assert _values(logs.source) == [b"one", b"two", b"never arrived"]
    fail_back("m", logs.source, logs.target)
    assert _values(logs.source) == [b"one", b"two", b"never arrived", b"three", b"four"]
    assert _values(logs.source, "orders.unmirrored") == [b"never arrived"]
    assert _values(logs.target) == [b"one", b"two", b"three", b"four"]
    with pytest.raises(UsageError, match="was not failed over"):
        fail_back("m", logs.source, logs.target)
    rows = _rows(logs)
    here, away = _read(logs.source, "orders", 0), _read(logs.target, "orders", 0)
    at = {each.value: each.offset for each in here}
    for record in away:
        assert record.value is not None
        assert translate(rows.runs["orders", 0], at[record.value], -1) == record.offset
        assert translate_back(rows.runs["orders", 0], record.offset, -1) == at[record.value]
    with Admin(logs.source) as admin:
        stored = Groups(admin).offsets("billing")["orders", 0]
    assert [each.value for each in here if each.offset >= stored] == [b"four"]
    _send(logs.source, "orders", b"five")
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"one", b"two", b"three", b"four", b"five"]
    # A second time, the other way round and back.
    fail_over("m", logs.target, logs.source)
    _send(logs.target, "orders", b"six")
    fail_back("m", logs.source, logs.target)
    assert _values(logs.source)[-2:] == [b"five", b"six"]
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    assert _values(logs.target)[-2:] == [b"five", b"six"]


@pytest.mark.parametrize("start", ["time", "earliest", "latest"])
def test_groups_start_where_they_are_told_after_a_fail_over(logs: Logs, start: str) -> None:
    _make(logs)
    with connect(logs.source) as log, log.producer() as producer:
        for number in range(10):
            producer.send("orders", value=b"%d" % number, partition=0, timestamp=1_700_000_000_000 + number * 1000)  # fmt: skip
    with Admin(logs.source) as admin:
        Groups(admin).commit("billing", {("orders", 0): 6})
    with Mirror("m", logs.source, logs.target, topics="orders", groups="billing") as mirror:
        mirror.run_until_caught_up()
    fail_over("m", logs.target, logs.source, start=start)
    with Admin(logs.target) as admin:
        offset = Groups(admin).offsets("billing")["orders", 0]
    following = [each.value for each in _read(logs.target, "orders", 0) if each.offset >= offset]
    first = {"time": 6, "earliest": 0, "latest": 10}[start]
    assert following == [b"%d" % number for number in range(first, 10)]


def _minute(clock: str) -> int:
    hours, minutes = clock.split(":")
    return 1_700_000_000_000 // 86_400_000 * 86_400_000 + (int(hours) * 60 + int(minutes)) * 60_000


def test_a_fail_over_at_4_05_from_what_was_mirrored_until_4_03(logs: Logs) -> None:
    """Two minutes are missing: they are told, readers miss nothing else, and coming back keeps them."""
    with Admin(logs.source) as admin:
        admin.create_topic("orders", 1, {"retention.ms": "-1"})
    settings = {"topics": "orders", "groups": "billing", "site": "ams", "others": ["ber"]}
    with connect(logs.source) as log, log.producer() as producer:
        for clock in ("4:00", "4:01", "4:02", "4:03"):
            producer.send("orders", value=clock.encode(), partition=0, timestamp=_minute(clock))
    with Admin(logs.source) as admin:
        Groups(admin).commit("billing", {("orders", 0): 2})  # it had read 4:00 and 4:01
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
        with connect(logs.source) as log, log.producer() as producer:  # the line is cut at 4:03
            for clock in ("4:04", "4:05"):
                producer.send("orders", value=clock.encode(), partition=0, timestamp=_minute(clock))
        told = fail_over("m", logs.target)  # at 4:05, and ams does not answer
        with pytest.raises((MirrorFencedError, MirrorFailedOverError)):
            mirror.run_until_caught_up()  # the old process wakes up: it brings nothing
    assert told.mirrored_until == _minute("4:03")
    assert told.not_mirrored is None
    assert _values(logs.target) == [b"4:00", b"4:01", b"4:02", b"4:03"]
    with Admin(logs.target) as admin:
        offset = Groups(admin).offsets("billing")["orders", 0]
    read = [each.value for each in _read(logs.target, "orders", 0) if each.offset >= offset]
    assert read == [b"4:02", b"4:03"]
    _send(logs.target, "orders", b"4:06")
    back = fail_back("m", logs.source, logs.target)
    assert back.only_at_source == 2
    assert _values(logs.source, "orders.unmirrored") == [b"4:04", b"4:05"]
    assert _values(logs.source)[-1] == b"4:06"


def test_a_fail_back_that_is_killed_at_any_step_is_done_once(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    _make(logs)
    _send(logs.source, "orders", b"one")
    settings = {"topics": "orders", "site": "ams", "others": ["ber"]}
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    _send(logs.source, "orders", b"never arrived")
    fail_over("m", logs.target)
    _send(logs.target, "orders", b"two", b"three")
    commits = [0]
    commit = TransactionalWriter.commit

    def dying(writer: TransactionalWriter) -> dict[tuple[str, int], int]:
        commits[0] -= 1
        if commits[0] == 0:
            writer.cluster.close()
            raise _Killed
        return commit(writer)

    monkeypatch.setattr(TransactionalWriter, "commit", dying)
    deaths = 0
    for at in range(1, 30):
        commits[0] = at
        try:
            fail_back("m", logs.source, logs.target)
        except _Killed:
            deaths += 1
            continue
        except UsageError as done:
            assert "was not failed over" in done.message
        break
    assert deaths > 3
    commits[0] = -1
    assert _values(logs.source) == [b"one", b"never arrived", b"two", b"three"]
    assert _values(logs.source, "orders.unmirrored") == [b"never arrived"]
    _send(logs.source, "orders", b"four")
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"one", b"two", b"three", b"four"]


@pytest.mark.parametrize(("again", "named"), [(True, True), (True, False), (False, True)])
def test_a_fail_back_that_was_killed_at_its_end_does_not_stand_for_the_next(logs: Logs, monkeypatch: pytest.MonkeyPatch, again: bool, named: bool) -> None:  # fmt: skip
    _make(logs)
    _send(logs.source, "orders", b"one")
    settings = {"topics": "orders", **({"site": "ams", "others": ["ber"]} if named else {})}
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    _send(logs.source, "orders", b"never arrived")
    fail_over("m", logs.target)
    _send(logs.target, "orders", b"two")

    def dying(*_: object) -> None:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr("tailrace.mirroring.fail_over._end", dying)
        with pytest.raises(_Killed):
            fail_back("m", logs.source, logs.target)
    if not named:
        with pytest.raises(MirrorLoopError) as cut_short:
            Mirror("m", logs.source, logs.target, **settings)  # type: ignore[arg-type]
        assert "fail-back m --execute" in cut_short.value.hint
    if again:
        fail_back("m", logs.source, logs.target)
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    _send(logs.source, "orders", b"late")
    fail_over("m", logs.target)
    _send(logs.target, "orders", b"three")
    plan = fail_back("m", logs.source, logs.target, execute=False)
    assert plan.only_at_source == 1
    fail_back("m", logs.source, logs.target)
    assert _values(logs.source, "orders.unmirrored") == [b"never arrived", b"late"]
    assert _values(logs.source) == [b"one", b"never arrived", b"two", b"late", b"three"]
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"one", b"two", b"three"]


# What stops a partition -----------------------------------------------------------


def test_one_partition_stops_and_the_others_go_on_until_the_gap_is_accepted(logs: Logs) -> None:
    with Admin(logs.source) as admin:
        admin.create_topic("orders", 2, {"retention.ms": "-1"})
    with connect(logs.source) as log, log.producer() as producer:
        for number in range(6):
            producer.send("orders", value=b"%d" % number, partition=number % 2).result(30)
    with Mirror("m", logs.source, logs.target, topics="orders") as mirror:
        mirror.run_until_caught_up()
    _send(logs.source, "orders", b"lost", b"kept")
    with Admin(logs.source) as admin:
        admin.delete_records({("orders", 0): 4})
    with connect(logs.source) as log, log.producer() as producer:
        producer.send("orders", value=b"beside", partition=1).result(30)
    with Mirror("m", logs.source, logs.target, topics="orders") as mirror:
        with pytest.raises(MirrorRecordsGoneError, match="offset 3"):
            mirror.run_until_caught_up()
        assert _values(logs.target, partition=1)[-1] == b"beside"
        assert _values(logs.target)[-1] == b"4"
    told = document("m", _rows(logs), logs.source)
    assert told["state"] == "stopped"
    assert [each.get("stopped", {}).get("code") for each in told["topics"]] == ["mirror-records-gone", None]  # fmt: skip
    with Mirror("m", logs.source, logs.target, topics="orders", accept_gap=True) as mirror:
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"0", b"2", b"4", b"kept"]
    assert document("m", _rows(logs), logs.source)["state"] == "running"


def test_a_topic_that_was_made_again_goes_on_behind_the_old_one_if_that_is_accepted(logs: Logs) -> None:  # fmt: skip
    _make(logs)
    _send(logs.source, "orders", b"old", b"older")
    with Mirror("m", logs.source, logs.target, topics="orders") as mirror:
        mirror.run_until_caught_up()
    with Admin(logs.source) as admin:
        admin.delete_topic("orders")
    _make(logs)
    _send(logs.source, "orders", b"new")
    with (
        Mirror("m", logs.source, logs.target, topics="orders") as mirror,
        pytest.raises(MirrorTopicAnewError),
    ):
        mirror.run_until_caught_up()
    with Mirror("m", logs.source, logs.target, topics="orders", accept_gap=True) as mirror:
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"old", b"older", b"new"]
    new = _read(logs.target, "orders", 0)[-1].offset
    assert translate(_rows(logs).runs["orders", 0], 0, -1) == new


@pytest.mark.parametrize("buffered", [relay.CYCLE_BYTES, 200])
def test_a_record_that_is_too_large_is_left_out_or_let_in(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, buffered: int
) -> None:
    monkeypatch.setattr(relay, "CYCLE_BYTES", buffered)  # beyond it, it is refused when handed over
    _make(logs)
    with Admin(logs.target) as admin:
        admin.create_topic("orders", 2, {"max.message.bytes": "2000"})
    _send(logs.source, "orders", b"before", bytes(3000), b"after")
    with (
        Mirror("m", logs.source, logs.target, topics="orders") as mirror,
        pytest.raises(MirrorRecordTooLargeError, match="offset 1 is too large"),
    ):
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"before"]
    with Mirror("m", logs.source, logs.target, topics="orders", accept_gap=True) as mirror:
        mirror.run_until_caught_up()
    assert _values(logs.target) == [b"before", b"after"]


def test_records_of_ten_megabytes_are_mirrored(logs: Logs) -> None:
    large = {"max.message.bytes": str(20 << 20), "retention.ms": "-1"}
    with Admin(logs.source) as admin:
        admin.create_topic("orders", 1, large)
    values = [bytes([number]) * (10 << 20) for number in range(3)]
    with TransactionalWriter(logs.source, "w") as writer:
        writer.init()
        for value in values:
            writer.send("orders", 0, None, value)
        writer.commit()
    with Mirror("m", logs.source, logs.target, topics="orders") as mirror:
        mirror.run_until_caught_up()
    assert _values(logs.target) == values


def test_settings_of_a_topic_follow_and_those_that_differed_stay(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(relay, "SETTINGS_SECONDS", 0.0)
    monkeypatch.setattr(relay, "LOOK_SECONDS", 0.0)
    _make(logs, **{"cleanup.policy": "compact"})
    with Mirror("m", logs.source, logs.target, topics="orders") as mirror:
        mirror.run_until_caught_up()
        with Admin(logs.target) as admin:
            admin.alter_topic_config("orders", {"max.message.bytes": "500000"})
    with Admin(logs.source) as admin:  # while no mirror runs
        admin.alter_topic_config("orders", {"retention.ms": "7200000", "cleanup.policy": None})
    with Mirror("m", logs.source, logs.target, topics="orders") as mirror:
        mirror.run_until_caught_up()
    with Admin(logs.target) as admin:
        found = admin.topic_config("orders")
    assert (found["retention.ms"].value, found["cleanup.policy"].value, found["max.message.bytes"].value) == ("7200000", "delete", "500000")  # fmt: skip


@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("conflicts", [None, "latest"])
def test_both_sites_end_equal_after_hundreds_of_kills_in_both_directions(
    logs: Logs, conflicts: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "WAIT", 0.01)
    monkeypatch.setattr(relay, "IDLE_SECONDS", 0.01)
    chance = random.Random(28)
    for address in logs:  # the records are old: neither side may remove them by age
        with Admin(address) as admin:
            admin.create_topic("orders", 2, {"retention.ms": "-1"})
    deaths = 0
    for number in range(ROUNDS):
        for address in logs:
            with connect(address) as log, log.producer() as producer:
                producer.send("orders", key=b"k%d" % chance.randrange(5), value=b"%d at %s" % (number, address.encode()), partition=0, timestamp=1_700_000_000_000 + chance.randrange(1000))  # fmt: skip

        def there(logs: Logs, **settings: object) -> Mirror:
            return _there(logs, conflicts=conflicts, **settings)

        def back(logs: Logs, **settings: object) -> Mirror:
            return _back(logs, conflicts=conflicts, **settings)

        deaths += _die(there, logs, chance.randrange(1, 9))
        deaths += _die(back, logs, chance.randrange(1, 9))
    assert deaths > ROUNDS
    with _there(logs, conflicts=conflicts) as one, _back(logs, conflicts=conflicts) as two:
        for _ in range(4):
            one.run_until_caught_up()
            two.run_until_caught_up()
    here, away = (_read(address, "orders", 0) for address in logs)
    if conflicts is None:
        assert sorted(_content(here)) == sorted(_content(away))
        assert len(here) == len({each.value for each in here}) == 2 * ROUNDS
    else:
        assert {each.key: each.value for each in here} == {each.key: each.value for each in away}
