"""Event topics mean the same on every log: in process, our broker, Apache Kafka."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

import fresh_loop
from servers.accounts import (
    Account,
    Deposited,
    Opened,
    Withdrawn,
    declare,
    deposit,
    open_account,
    raises,
    rubbish,
    twice,
    withdraw,
)
from tailrace.client.errors import EventsCompactedError
from tailrace.client.log import LocalLog, Log
from tailrace.errors import TailraceError, UsageError
from tailrace.facts.declare import Events
from tailrace.facts.errors import (
    CommandArgumentsError,
    CommandFailedError,
    CommandIdReusedError,
    CommandResultError,
    CommandUnknownError,
    EventsDifferError,
    EventsTooLargeError,
    OwnerMissingError,
    Rejected,
    VersionConflictError,
)
from tailrace.facts.opened import OpenedEvents


@pytest.fixture
def accounts(name: str) -> Events[Account]:
    return declare(name)


@pytest.fixture
def bank(log: Log, accounts: Events[Account], tmp_path: Path) -> Iterator[OpenedEvents[Account]]:
    with accounts.open(log, index=tmp_path / "index") as opened:
        yield opened


Bank = OpenedEvents[Account]


def test_a_decision_is_an_event_a_version_and_a_state(bank: Bank) -> None:
    done = bank.execute(open_account, "a", owner="ann", expected=0)
    assert (done.events, done.version, done.state) == (
        (Opened("ann"),),
        1,
        Account("ann", 0, 1),
    )
    assert not done.repeated
    done = bank.execute("deposit", "a", amount=50)
    assert done.position is not None
    assert done.position.startswith(f"log:{bank.declared.name}/{bank.partition_of('a')}:")
    assert bank.state("a").value == done.state == Account("ann", 50, 2)
    assert bank.state("a").position == done.position
    assert bank.state("nobody").version == 0


def test_the_record_is_as_the_format_says(log: Log, bank: Bank) -> None:
    bank.execute(open_account, "a", owner="ann", id="c1", actor="teller", cause="form 7")
    bank.execute(deposit, "a", amount=50, correlation="visit")
    first, second = log.read(bank.declared.name)
    assert (first.key, first.value) == (b"a", b'{"owner":"ann"}')
    assert [name for name, _ in first.headers] == [
        "tailrace.event",
        "tailrace.version",
        "tailrace.meta",
    ]
    assert (first.headers[0][1], first.headers[1][1]) == (b"Opened", b"1")
    assert orjson.loads(first.headers[2][1] or b"") == {
        "id": "c1/0",
        "command": "c1",
        "name": "open_account",
        "cause": "form 7",
        "correlation": "c1",
        "actor": "teller",
    }
    assert second.headers[1][1] == b"2"
    assert orjson.loads(second.headers[2][1] or b"")["correlation"] == "visit"
    settings = log.topic_config(bank.declared.name)
    assert settings["cleanup.policy"] == "delete"
    assert (settings["retention.ms"], settings["flush.messages"]) == ("-1", "1")


def test_a_rejected_command_leaves_nothing_in_the_log(log: Log, bank: Bank) -> None:
    bank.execute(deposit, "a", amount=10)
    with pytest.raises(Rejected) as no:
        bank.execute(withdraw, "a", amount=50)
    assert (no.value.code, no.value.message) == ("overdrawn", "not enough money")
    assert len(list(log.read(bank.declared.name))) == 1
    assert bank.state("a").version == 1


def test_the_time_of_a_decision_is_the_time_of_its_record(log: Log, bank: Bank) -> None:
    bank.execute(deposit, "a", amount=10)
    done = bank.execute(withdraw, "a", amount=5)
    (event,) = done.events
    assert isinstance(event, Withdrawn)
    *_, last = log.read(bank.declared.name)
    assert event.at == last.time == bank.history("a")[-1].at


def test_an_expected_version_that_is_not_there_is_a_conflict(bank: Bank) -> None:
    bank.execute(deposit, "a", amount=10, expected=0)
    with pytest.raises(VersionConflictError) as conflict:
        bank.execute(deposit, "a", amount=10, expected=0)
    assert (conflict.value.code, conflict.value.expected, conflict.value.actual) == (
        "version-conflict",
        0,
        1,
    )
    assert bank.execute(deposit, "a", amount=10, expected=1).version == 2
    assert bank.append("a", [Deposited(1)], expected=2).version == 3


def test_several_events_of_one_command_stand_together(log: Log, bank: Bank) -> None:
    done = bank.execute(twice, "a", amount=3)
    assert (done.events, done.version) == ((Deposited(3), Deposited(3)), 2)
    appended = bank.append("a", [Opened("x"), Deposited(1), Deposited(2)])
    assert appended.version == 5
    facts = bank.history("a")
    assert [fact.version for fact in facts] == [1, 2, 3, 4, 5]
    assert [fact.name for fact in facts] == ["twice", "twice", None, None, None]
    assert len({fact.id for fact in facts}) == 5
    assert len({fact.command for fact in facts}) == 2


def test_a_repeated_id_gets_the_first_answer(log: Log, bank: Bank) -> None:
    first = bank.execute(twice, "a", amount=3, id="once")
    bank.execute(deposit, "a", amount=100)
    again = bank.execute(twice, "a", amount=3, id="once")
    assert again.repeated
    assert (again.events, again.version, again.position, again.state) == (
        first.events,
        first.version,
        first.position,
        first.state,
    )
    assert bank.state("a").value.balance == 106
    with pytest.raises(CommandIdReusedError):
        bank.execute(deposit, "a", amount=3, id="once")


def test_a_repeat_is_known_after_every_cache_is_gone(
    log: Log, accounts: Events[Account], tmp_path: Path
) -> None:
    with accounts.open(log, index=tmp_path / "one") as bank:
        first = bank.execute(deposit, "a", amount=3, id="once")
        bank.execute(deposit, "a", amount=4)
    with accounts.open(log, index=tmp_path / "two") as bank:
        again = bank.execute(deposit, "a", amount=3, id="once")
        assert again.repeated
        assert (again.version, again.position, again.state) == (
            first.version,
            first.position,
            first.state,
        )
        assert bank.state("a").value == Account("", 7, 2)


def test_states_at_versions_times_and_positions(bank: Bank) -> None:
    marks = []
    for _ in range(70):  # past two snapshots
        done = bank.execute(deposit, "a", amount=1)
        bank.execute(deposit, "b", amount=1)
        marks.append(done)
    for number in (0, 1, 31, 32, 33, 64, 69):
        assert bank.state("a", version=number + 1).value == marks[number].state
        assert bank.state("a", at=marks[number].position).value == marks[number].state
    assert bank.state("a", version=0).value == Account()
    facts = bank.history("a")
    assert [fact.version for fact in facts] == list(range(1, 71))
    assert [fact.version for fact in bank.history("a", first=5, last=7)] == [5, 6, 7]
    assert bank.state("a", at=facts[-1].at).value == marks[-1].state
    assert bank.state("a", at=facts[0].at - timedelta(milliseconds=1)).version == 0
    at = facts[40].at
    before = max(fact.version for fact in facts if fact.at <= at)
    assert bank.state("a", at=at.isoformat()).version == before
    assert bank.diff("a", 1, 70) == {"balance": (1, 70), "events": (1, 70)}
    assert bank.diff("a", facts[0].at - timedelta(days=1), facts[-1].at)["balance"] == (0, 70)
    assert [fact.at for fact in facts] == sorted(fact.at for fact in facts)
    with pytest.raises(UsageError):
        bank.state("a", at=f"log:{bank.declared.name}/{1 - bank.partition_of('a')}:3")


def test_many_threads_and_a_loop_decide_on_one_stream(bank: Bank) -> None:
    def work() -> None:
        for _ in range(20):
            bank.execute(deposit, "a", amount=1)

    async def together() -> list[int]:
        made = [bank.aexecute(deposit, "a", amount=1) for _ in range(40)]
        return [done.version for done in await asyncio.gather(*made)]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    versions = fresh_loop.run(together())
    for thread in threads:
        thread.join()
    assert len(set(versions)) == 40
    assert bank.state("a").value == Account("", 120, 120)
    assert [fact.version for fact in bank.history("a")] == list(range(1, 121))


def test_what_a_command_does_wrong_hurts_it_alone(bank: Bank) -> None:
    with pytest.raises(CommandFailedError) as failed:
        bank.execute(raises, "a")
    assert "KeyError" in failed.value.detail
    with pytest.raises(CommandResultError):
        bank.execute(rubbish, "a", what="number")
    with pytest.raises(CommandResultError) as unfit:
        bank.execute(rubbish, "a", what="event")
    assert "Expected `int`" in unfit.value.detail
    with pytest.raises(EventsTooLargeError):
        bank.execute(rubbish, "a", what="big")
    with pytest.raises(CommandArgumentsError):
        bank.execute(deposit, "a", amout=1)
    with pytest.raises(CommandUnknownError) as unknown:
        bank.execute("depsit", "a", amount=1)
    assert "deposit" in unknown.value.hint
    with pytest.raises(UsageError):
        bank.execute(deposit, "", amount=1)
    assert bank.state("a").version == 0
    assert bank.execute(deposit, "a", amount=1).version == 1


def test_more_than_one_batch_is_written_in_order(bank: Bank) -> None:
    async def together() -> None:
        big = "x" * 20_000
        made = [bank.aappend("a", [Opened(big)]) for _ in range(200)]
        await asyncio.gather(*made)

    fresh_loop.run(together())
    assert [fact.version for fact in bank.history("a")] == list(range(1, 201))


def test_indexes_may_be_deleted_in_any_combination(
    log: Log, accounts: Events[Account], tmp_path: Path
) -> None:
    index = tmp_path / "index"
    with accounts.open(log, index=index) as bank:
        for number in range(40):
            bank.execute(deposit, f"s{number % 5}", amount=number)
        wanted = {f"s{n}": bank.state(f"s{n}") for n in range(5)}
        (root,) = index.iterdir()
    for gone in (["0"], ["1"], ["0", "1"]):
        for each in gone:
            shutil.rmtree(root / each)
        with accounts.open(log, index=index) as bank:
            assert {name: bank.state(name) for name in wanted} == wanted
    (root / "0" / "data.mdb").write_bytes(b"torn" * 5000)
    with accounts.open(log, index=index) as bank:
        assert {name: bank.state(name) for name in wanted} == wanted
        assert bank.execute(deposit, "s1", amount=1).version == wanted["s1"].version + 1


def test_foreign_records_are_counted_and_change_nothing(
    log: Log, accounts: Events[Account], tmp_path: Path
) -> None:
    with accounts.open(log, index=tmp_path / "one") as bank:
        bank.execute(deposit, "a", amount=5)
        number = bank.partition_of("a")
    with log.producer() as producer:
        producer.send(accounts.name, key=b"a", value=b"{}", partition=number).result(60)
        producer.send(accounts.name, key=None, value=None, partition=number).result(60)
    with accounts.open(log, index=tmp_path / "two") as bank:
        assert bank.execute(deposit, "a", amount=5).version == 2
        (own,) = [each for each in bank.owned() if each.number == number]
        assert own.index.stamp.foreign == 2
        with log.producer() as producer:  # while it is owned, too
            producer.send(accounts.name, key=b"a", value=b"{}", partition=number).result(60)
        assert bank.execute(deposit, "a", amount=0).version == 3
        assert own.index.stamp.foreign == 3
        assert bank.state("a").value.balance == 10


def test_an_event_topic_is_never_compacted(
    log: Log, accounts: Events[Account], tmp_path: Path
) -> None:
    log.create_topic(accounts.name, 2, {"cleanup.policy": "compact"})
    with pytest.raises(EventsCompactedError) as refused:
        accounts.open(log, index=tmp_path)
    assert "compensating event" in refused.value.hint
    log.alter_topic(accounts.name, {"cleanup.policy": "delete", "retention.ms": 1000})
    with pytest.raises(EventsCompactedError):
        accounts.open(log, index=tmp_path)


def test_an_event_topic_is_not_made_to_lose_events(log: Log, bank: Bank) -> None:
    for change in ({"cleanup.policy": "compact"}, {"retention.ms": "1000"}):
        with pytest.raises(TailraceError) as refused:
            log.alter_topic(bank.declared.name, change)
        assert "compensating event" in refused.value.render()
    assert log.topic_config(bank.declared.name)["cleanup.policy"] == "delete"


def test_another_number_of_partitions_is_refused(log: Log, bank: Bank, tmp_path: Path) -> None:
    with pytest.raises(EventsDifferError):
        declare(bank.declared.name, 3).open(log, index=tmp_path / "other")


def test_a_caller_that_owns_nothing_reaches_the_owner(log: Log, bank: Bank) -> None:
    if isinstance(log, LocalLog):
        with pytest.raises(UsageError):
            bank.declared.open(log, owns=False)
        return
    with bank.declared.open(log, owns=False, timeout=20) as caller:
        assert caller.owned() == []
        done = caller.execute(deposit, "a", amount=7, id="far")
        assert (done.events, done.state) == ((Deposited(7),), Account("", 7, 1))
        assert caller.execute(deposit, "a", amount=7, id="far").repeated
        with pytest.raises(Rejected) as no:
            caller.execute(withdraw, "a", amount=50)
        assert no.value.code == "overdrawn"
        with pytest.raises(VersionConflictError) as conflict:
            caller.append("a", [Deposited(1)], expected=4)
        assert (conflict.value.expected, conflict.value.actual) == (4, 1)
        assert caller.state("a").value == Account("", 7, 1)
        assert [fact.event for fact in caller.history("a")] == [Deposited(7)]
        assert caller.owners() == bank.owners()


def test_a_caller_without_an_owner_hears_so(log: Log, accounts: Events[Account]) -> None:
    if isinstance(log, LocalLog):
        return  # it is always its own owner
    with (
        accounts.open(log, owns=False, timeout=0.5) as caller,
        pytest.raises(OwnerMissingError),
    ):
        caller.execute(deposit, "a", amount=7)


def test_two_members_share_the_partitions(log: Log, bank: Bank, tmp_path: Path) -> None:
    if isinstance(log, LocalLog):
        return
    with bank.declared.open(log, index=tmp_path / "second") as second:
        for number in range(8):
            assert second.execute(deposit, f"s{number}", amount=1).version == 1
            assert bank.execute(deposit, f"s{number}", amount=1).version == 2
        assert len(set(second.owners().values())) == 2
    for number in range(8):
        assert bank.execute(deposit, f"s{number}", amount=1).version == 3
    assert len(set(bank.owners().values())) == 1


def test_another_declaration_in_the_group_is_refused(log: Log, bank: Bank, tmp_path: Path) -> None:
    if isinstance(log, LocalLog):
        return
    other = declare(bank.declared.name)
    other.upcast("Opened", 1)(lambda old: old)
    with pytest.raises(EventsDifferError) as differ:
        other.open(log, index=tmp_path / "other")
    assert "Opened.2" in differ.value.detail
