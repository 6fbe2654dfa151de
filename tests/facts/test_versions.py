"""Other programs' events: unknown types stop their stream, newer versions the deployment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import tailrace as tr
from servers.accounts import Account, Deposited, Opened, declare, deposit
from tailrace.errors import TailraceError
from tailrace.facts.errors import EventUnknownError, EvolveFailedError


@dataclass(frozen=True)
class Frozen:
    reason: str


def test_an_unknown_type_stops_only_its_stream(tmp_path: Path) -> None:
    newer = tr.events("accounts", Opened | Deposited | Frozen, state=Account, partitions=2)
    newer.evolve(lambda state, event: state)
    with tr.open(tmp_path / "log") as log:
        with newer.open(log) as bank:
            bank.append("a", [Deposited(5)])
            bank.append("a", [Frozen("court")])
            bank.append("b", [Deposited(5)])
        with declare("accounts").open(log) as bank:
            with pytest.raises(EventUnknownError) as unknown:
                bank.execute(deposit, "a", amount=1)
            assert "Frozen" in unknown.value.message
            assert "'a'" in unknown.value.detail
            with pytest.raises(EventUnknownError):
                bank.state("a")
            assert bank.state("a", version=1).value.balance == 5
            assert bank.execute(deposit, "b", amount=1).state.balance == 6


def test_a_deployment_older_than_the_log_is_told_before_it_decides(tmp_path: Path) -> None:
    newer = declare("accounts")
    newer.upcast("Deposited", 1)(lambda old: old)
    with tr.open(tmp_path / "log") as log:
        with newer.open(log) as bank:
            bank.execute(deposit, "a", amount=1)
        with pytest.raises(EventUnknownError) as told:
            declare("accounts").open(log)
        assert "Deposited.2" in told.value.message
        with newer.open(log) as bank:
            assert bank.execute(deposit, "a", amount=1).version == 2


def test_older_events_are_read_by_newer_code(tmp_path: Path) -> None:
    with tr.open(tmp_path / "log") as log:
        with declare("accounts").open(log) as bank:
            bank.execute(deposit, "a", amount=1)
        newer = declare("accounts")
        newer.upcast("Deposited", 1)(lambda old: {"amount": old["amount"] * 100})
        with newer.open(log) as bank:
            assert bank.state("a").value.balance == 100
            bank.execute(deposit, "a", amount=1)
            assert [fact.type for fact in bank.history("a")] == ["Deposited", "Deposited.2"]
            assert bank.state("a").value.balance == 101


def test_an_evolve_that_fails_stops_its_stream_and_writes_nothing(tmp_path: Path) -> None:
    declared = tr.events("accounts", Opened | Deposited, state=Account, partitions=1)

    @declared.evolve
    def account(state: Account, event: object) -> Account:
        match event:
            case Opened():
                return Account("x")
            case Deposited(amount):
                return Account("x", 1 // amount)
        raise TypeError(event)

    with tr.open(tmp_path / "log") as log, declared.open(log) as bank:
        with pytest.raises(EvolveFailedError):
            bank.append("a", [Deposited(0)])
        assert bank.append("a", [Deposited(1)]).version == 1
        assert len(list(log.read("accounts"))) == 1


def test_a_mutable_state_cannot_be_spoilt_from_outside(tmp_path: Path) -> None:
    @dataclass
    class Loose:
        balance: int = 0

    declared = tr.events("loose", Deposited, state=Loose, partitions=1)

    @declared.evolve
    def evolve(state: Loose, event: object) -> Loose:
        assert isinstance(event, Deposited)
        state.balance += event.amount
        return state

    @declared.command
    def pay(state: Loose, amount: int, refuse: bool = False) -> Deposited:
        state.balance = -1
        if refuse:
            raise tr.Rejected("no")
        return Deposited(amount)

    with tr.open(tmp_path / "log") as log, declared.open(log) as bank:
        for number in range(40):
            done = bank.execute(pay, "a", amount=1)
            done.state.balance = 999
            bank.state("a").value.balance = 999
            with pytest.raises(TailraceError):
                bank.execute(pay, "a", amount=1, refuse=True)
            assert bank.state("a").value.balance == number + 1
        assert bank.state("a", version=3).value.balance == 3
