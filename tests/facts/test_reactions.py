"""Reactions: what follows from facts happens once, also when processes are killed at any step."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from servers.accounts import Withdrawn, deposit
from servers.checkout import (
    Cancelled,
    Confirmed,
    Order,
    Payment,
    Placed,
    accounts,
    cancel,
    checkout,
    confirm,
    orders,
    place,
    withdraw,
    worker,
)
from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import LocalLog, Log
from tailrace.facts.asking import Fact
from tailrace.facts.errors import CommandUnknownError, EventsDeclarationError
from tailrace.facts.failpoints import VARIABLE
from tailrace.facts.open_processes import look
from tailrace.facts.reactions import Reaction
from tailrace.testing.moved_clock import MovedClock

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
STEPS = (
    "reactions.stepped", "reactions.sending", "reactions.sent", "reactions.settled",
    "reactions.fired", "events.decided", "events.acknowledged", "events.answered",
)  # fmt: skip


def until(told: Callable[[], bool], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def commands(log: Log, topic: str) -> list[str]:
    """The command id of every event."""
    return [orjson.loads(record.header("tailrace.meta"))["command"] for record in log.read(topic)]


def test_facts_timers_and_refusals_are_given_without_a_log() -> None:
    assert checkout.given().state == Payment()
    placed = checkout.given(Placed("acc", 5), stream="o1", correlation="o1")
    placed.sends(tr.send(withdraw, "acc", on=accounts, amount=5))
    placed.and_given(Withdrawn(5), stream="acc", correlation="o1").sends(tr.send(confirm, "o1"))
    assert (placed.state_of("o1"), placed.timers("o1")) == (Payment(2, "acc"), {})
    checkout.given(given_fact(Placed("acc", 5))).sends()  # it has no correlation: nobody's

    @tr.reaction("simple", orders, state=Payment)
    def simple(state: Payment, fact: Fact) -> Iterator[object]:
        match fact.event:
            case Placed(account, amount):
                yield tr.send(withdraw, account, on=accounts, amount=amount)
                yield tr.later("2 days", "payment")
                yield tr.later("1 day", "reminder")
            case Confirmed():
                yield tr.cancel("payment")
            case tr.Timeout("payment"):
                yield tr.send(cancel, fact.stream, why="late")
            case tr.Refused(command="withdraw", code=code) as no:
                assert no.args == {"amount": 5}
                yield tr.send(cancel, fact.stream, why=f"{no.stream} {code}")

    @simple.evolve
    def count(state: Payment, event: object) -> Payment:
        return Payment(state.facts + 1, state.account)

    charged = tr.send(withdraw, "acc", on=accounts, amount=5)
    given = simple.given(Placed("acc", 5), stream="o1").sends(charged)
    assert sorted(given.timers("o1")) == ["payment", "reminder"]
    given.after("36 hours").sends()
    assert list(given.timers("o1")) == ["payment"]
    given.after("36 hours").sends(tr.send(cancel, "o1", why="late"))
    assert given.state == Payment(3)
    simple.given(Placed("acc", 5), stream="o1").sends(charged).refused(
        withdraw, code="overdrawn"
    ).sends(tr.send(cancel, "o1", why="acc overdrawn"))
    simple.given(Placed("acc", 5), Confirmed(), stream="o1").sends(charged).after("9 days").sends()
    with pytest.raises(AssertionError, match="expected"):
        simple.given(Placed("acc", 5)).sends()
    with pytest.raises(AssertionError, match="no command"):
        simple.given(Placed("acc", 5)).refused(confirm)
    assert list(simple(Payment(), given_fact(Confirmed()))) == [tr.cancel("payment")]


def given_fact(event: object) -> Fact:
    return Fact(event, "x", 1, NOON, "log:orders/0:0", "o1", "i", "c", None, None, None, None)


def test_an_impure_reaction_is_found_out() -> None:
    numbers = iter(range(10))

    @tr.reaction("impure", orders)
    def impure(state: None, fact: Fact) -> object:
        return tr.send(cancel, "o1", why=str(next(numbers)))

    with pytest.raises(AssertionError, match="not pure"):
        impure.given(Placed("acc", 5))


def test_what_is_declared_wrongly_points_at_its_line() -> None:
    for wrong in ({"key": "person"}, {"partitions": 0}, {"start": "now"}):
        with pytest.raises(EventsDeclarationError) as refused:
            tr.reaction("wrong", orders, **wrong)  # type: ignore[arg-type]
        assert "test_reactions.py" in refused.value.detail
    with pytest.raises(EventsDeclarationError):
        tr.reaction("a.b", orders)
    with pytest.raises(EventsDeclarationError):
        tr.reaction("none")

    @tr.reaction("stateful", orders, state=Payment)
    def stateful(state: Payment, fact: Fact) -> object:
        return tr.send("nothing", "o1")

    (mistake,) = stateful.mistakes()
    assert "no evolve" in mistake.message
    stateful.evolve(lambda state, event: state)
    with pytest.raises(CommandUnknownError):
        stateful.given(Placed("acc", 5))


def judge(log: Log, placed: dict[str, int], state: Callable[[str], Order]) -> None:
    """Every order ended once, as it should; every command is in the log once."""
    until(lambda: all(state(name).status in ("confirmed", "cancelled") for name in placed), 120)
    for name in placed:
        kind = int(name[1:]) % 3
        assert state(name).status == ("confirmed" if kind == 0 else "cancelled")
    for topic in ("orders", "accounts"):
        ids = commands(log, topic)
        assert len(ids) == len(set(ids))
    whys = [
        orjson.loads(record.value)["why"]
        for record in log.read("orders")
        if record.header("tailrace.event") == b"Cancelled"
    ]
    assert len(whys) == sum(1 for name in placed if int(name[1:]) % 3)
    assert set(whys) <= {"overdrawn", "late"}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        yield broker.address


def run_with_kills(address: str, tmp_path: Path, steps: list[str]) -> None:
    index = tmp_path / "index"
    with (
        tr.connect(address) as log,
        orders.open(log, index=index) as shop,
        accounts.open(log, index=index) as bank,
    ):
        bank.execute(deposit, "rich", amount=1_000_000)
        placed: dict[str, int] = {}
        with checkout.open(log, index=index) as opened:
            for step in steps:
                with worker(address, index, **{VARIABLE: step}) as other:
                    deadline = time.monotonic() + 60
                    while other.poll() is None:
                        assert time.monotonic() < deadline, f"never came to {step}"
                        for number in range(len(placed), len(placed) + 6):
                            name, amount = f"o{number}", number % 7 + 1
                            account = ("rich", "poor", "")[number % 3]
                            shop.execute(place, name, account=account, amount=amount, correlation=name)  # fmt: skip
                            placed[name] = amount
                        time.sleep(0.05)
                    assert other.wait() == -signal.SIGKILL, step
            judge(log, placed, lambda name: shop.state(name).value)
            # The whole is told from the journal too: nothing is open any more.
            until(lambda: not list(look(log, checkout)))
            assert opened.state("o0").facts >= 3
        spent = sum(amount for name, amount in placed.items() if int(name[1:]) % 3 == 0)
        assert bank.state("rich").value.balance == 1_000_000 - spent


@pytest.mark.timeout(300)
def test_a_killed_process_loses_nothing_and_sends_nothing_twice(
    address: str, tmp_path: Path
) -> None:
    run_with_kills(address, tmp_path, ["reactions.stepped:2", "reactions.sent:2"])


@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("step", STEPS)
def test_processes_killed_at_every_step(
    address: str, tmp_path: Path, step: str, number: int
) -> None:
    run_with_kills(address, tmp_path, [f"{step}:{number}"] * 3)


def test_a_reaction_goes_on_where_it_stopped_and_never_sends_again(tmp_path: Path) -> None:
    clock = MovedClock()
    with (
        LocalLog(tmp_path / "log", clock=clock) as log,
        orders.open(log) as shop,
        accounts.open(log) as bank,
    ):
        bank.execute(deposit, "rich", amount=100)
        shop.execute(place, "o0", account="rich", amount=10, correlation="o0")
        with checkout.open(log):
            until(lambda: shop.state("o0").value.status == "confirmed")
        shop.execute(place, "o3", account="rich", amount=20, correlation="o3")
        for cache in tmp_path.rglob("due.json"):
            cache.unlink()
        with checkout.open(log):
            until(lambda: shop.state("o3").value.status == "confirmed")
        # Everything it knew is gone, the ids of commands are forgotten: it reads all facts again
        # and steps anew, and what it did is found in the history.
        log.delete_topic("checkout.reactions")
        clock.advance(timedelta(days=30))
        before = commands(log, "accounts")
        with checkout.open(log) as again:
            until(lambda: again.process("o3").state is not None)
            until(lambda: not again.process("o3").open and not again.process("o0").open)
        assert commands(log, "accounts") == before
        assert bank.state("rich").value.balance == 70


def test_timers_survive_a_restart_and_run_out_once(tmp_path: Path) -> None:
    @tr.reaction("patience", orders)
    def patience(state: None, fact: Fact) -> Iterator[object]:
        match fact.event:
            case Placed():
                yield tr.later("2 days", "payment")
            case tr.Timeout("payment"):
                yield tr.send(cancel, fact.stream, why="late")

    clock = MovedClock()
    with LocalLog(tmp_path / "log", clock=clock) as log, orders.open(log) as shop:
        shop.execute(place, "o1", account="", amount=1)
        with patience.open(log) as opened:
            until(lambda: "payment" in opened.process("o1").timers)
            (row,) = look(log, patience)
            assert row.process == "o1"
            assert not row.stuck
            assert [each["name"] for each in row.timers] == ["payment"]
        clock.advance(timedelta(days=3))
        with patience.open(log) as opened:
            until(lambda: shop.state("o1").value.status == "cancelled")
            until(lambda: not list(look(log, patience)))
            kinds = [fact.event.kind for fact in opened.opened.history("o1") if fact.type == "Stepped"]  # fmt: skip
            assert kinds == ["Placed", "Timeout"]
        assert [fact.event for fact in shop.history("o1")][1:] == [Cancelled("late")]


def test_what_fails_is_stuck_by_name_and_goes_on_when_it_is_corrected(tmp_path: Path) -> None:
    broken = {"command": True, "reaction": True}
    targets = tr.events("targets", Placed | Confirmed | Cancelled, state=Order, partitions=1)
    targets.evolve(lambda state, event: order_after(state, event))

    @targets.command
    def note(state: Order) -> Confirmed:
        if broken["command"]:
            raise KeyError("no such thing")
        return Confirmed()

    def declare(name: str) -> Reaction:
        @tr.reaction(name, orders)
        def follow(state: None, fact: Fact) -> Iterator[object]:
            if fact.stream == "o2" and broken["reaction"]:
                raise ValueError("not today")
            yield tr.send(note, fact.stream)

        return follow

    follow = declare("follow")
    with (
        tr.open(tmp_path / "log") as log,
        orders.open(log) as shop,
        targets.open(log) as opened,
        follow.open(log),
    ):
        shop.execute(place, "o1", account="", amount=1)
        shop.execute(place, "o2", account="", amount=1)
        until(lambda: len([row for row in look(log, follow) if row.stuck]) == 2)
        rows = {row.process: row for row in look(log, follow)}
        assert "KeyError" in rows["o1"].error
        (source,) = (row for name, row in rows.items() if name.startswith("orders/"))
        assert "ValueError: not today" in source.error
        broken.update(command=False, reaction=False)
        until(lambda: opened.state("o1").version == opened.state("o2").version == 1)
        until(lambda: not [row for row in look(log, follow) if row.commands])


def test_a_source_that_was_made_again_is_told(tmp_path: Path) -> None:
    @tr.reaction("follow", orders)
    def follow(state: None, fact: Fact) -> object:
        return tr.send(cancel, fact.stream, why="x") if isinstance(fact.event, Placed) else None

    with tr.open(tmp_path / "log") as log:
        with orders.open(log) as shop, follow.open(log):
            for number in range(4):
                shop.execute(place, f"o{number}", account="", amount=1)
            until(lambda: all(shop.state(f"o{n}").version == 2 for n in range(4)))
        log.delete_topic("orders")
        with orders.open(log) as shop, follow.open(log):
            shop.execute(place, "o0", account="", amount=1)
            until(lambda: any("source-replaced" in row.error for row in look(log, follow)))
            assert shop.state("o0").version == 1


def order_after(state: Order, event: object) -> Order:
    match event:
        case Placed() | Confirmed() | Cancelled():
            return Order(type(event).__name__)
    raise TypeError(event)


def test_a_reaction_may_begin_at_the_end(tmp_path: Path) -> None:
    @tr.reaction("fresh", orders, start="latest")
    def fresh(state: None, fact: Fact) -> object:
        return tr.send(cancel, fact.stream, why="new") if isinstance(fact.event, Placed) else None

    with tr.open(tmp_path / "log") as log, orders.open(log) as shop:
        shop.execute(place, "o1", account="", amount=1)
        shop.execute(place, "o2", account="", amount=1)
        with fresh.open(log):
            shop.execute(place, "o3", account="", amount=1)
            until(lambda: shop.state("o3").value.status == "cancelled")
        shop.execute(place, "o4", account="", amount=1)
        with fresh.open(log):  # the second time it goes on
            until(lambda: shop.state("o4").value.status == "cancelled")
        assert [shop.state(name).version for name in ("o1", "o2")] == [1, 1]


@contextmanager
def broker_process(data: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tailrace", "broker", "start", "--data", str(data),
         "--listen", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert "listening" in process.stdout.readline()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_workers_and_the_broker_are_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    """Nobody but workers owns and reacts; they and the broker die at random moments."""
    chance = random.Random(seed)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, index = f"127.0.0.1:{port}", tmp_path / "index"
    placed: dict[str, int] = {}
    with ExitStack() as stack:
        broker = stack.enter_context(broker_process(tmp_path / "log", port))
        workers = [stack.enter_context(worker(address, index)) for _ in range(2)]
        log = stack.enter_context(tr.connect(address))
        shop = stack.enter_context(orders.open(log, owns=False, timeout=60))
        bank = stack.enter_context(accounts.open(log, owns=False, timeout=60))
        bank.execute(deposit, "rich", amount=1_000_000, id="deposit")

        def say(call: Callable[[], object]) -> None:
            deadline = time.monotonic() + 120
            while True:
                try:
                    call()
                except tr.TailraceError as error:
                    assert error.code in ("outcome-unknown", "owner-missing"), error.render()
                    assert time.monotonic() < deadline
                    continue
                return

        for round_ in range(12):
            for number in range(len(placed), len(placed) + 15):
                name, amount = f"o{number}", number % 7 + 1
                account = ("rich", "poor", "")[number % 3]
                say(partial(
                    shop.execute, place, name, account=account, amount=amount,
                    correlation=name, id=f"place-{number}",
                ))  # fmt: skip
                placed[name] = amount
            time.sleep(chance.random() * 0.5)
            if round_ % 4 == 3:
                broker.kill()
                broker.wait()
                broker = stack.enter_context(broker_process(tmp_path / "log", port))
            else:
                victim = workers.pop(chance.randrange(2))
                victim.kill()
                victim.wait()
                workers.append(stack.enter_context(worker(address, index)))
        judge(log, placed, lambda name: shop.state(name).value)
        until(lambda: not list(look(log, checkout)), 120)
        spent = sum(amount for name, amount in placed.items() if int(name[1:]) % 3 == 0)
        assert bank.state("rich").value.balance == 1_000_000 - spent


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_a_stopped_process_that_goes_on_sends_nothing_twice(address: str, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with (
        tr.connect(address) as log,
        orders.open(log, index=index, timeout=60) as shop,
        accounts.open(log, index=index, timeout=60) as bank,
        checkout.open(log, index=index) as opened,
    ):
        bank.execute(deposit, "rich", amount=1_000_000)
        placed: dict[str, int] = {}

        def some(count: int) -> None:
            for number in range(len(placed), len(placed) + count):
                name, amount = f"o{number}", number % 7 + 1
                account = ("rich", "poor", "")[number % 3]
                shop.execute(place, name, account=account, amount=amount, correlation=name)
                placed[name] = amount

        with worker(address, index) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            for _ in range(3):
                some(30)  # it is in the middle of them
                os.kill(other.pid, signal.SIGSTOP)
                until(lambda: len(opened.opened.owned()) == 4)  # a session later
                some(30)
                until(lambda: all(shop.state(n).value.status != "placed" for n in placed), 120)
                os.kill(other.pid, signal.SIGCONT)
                some(30)
                until(lambda: 0 < len(opened.opened.owned()) < 4)
            judge(log, placed, lambda name: shop.state(name).value)
        spent = sum(amount for name, amount in placed.items() if int(name[1:]) % 3 == 0)
        assert bank.state("rich").value.balance == 1_000_000 - spent
