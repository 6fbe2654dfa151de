"""given / when / then / rejected, and what they find out about impure functions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

import tailrace as tr
from servers.accounts import Account, Deposited, Opened, Withdrawn, declare, deposit, withdraw
from tailrace.facts.errors import CommandResultError

accounts = declare("accounts")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_a_decision_is_judged_by_its_events() -> None:
    accounts.given(Opened("ann"), Deposited(80)).when(withdraw, amount=50, at=NOON).then(
        Withdrawn(50, NOON)
    ).when(withdraw, amount=50).rejected("overdrawn").when(deposit, amount=1).then(Deposited(1))
    assert accounts.given(Deposited(5)).when(deposit, amount=1).state == Account("", 6, 2)


def test_what_is_not_so_fails() -> None:
    given = accounts.given(Opened("ann"))
    with pytest.raises(AssertionError, match="rejected"):
        given.when(withdraw, amount=50).then(Withdrawn(50))
    with pytest.raises(AssertionError, match="expected"):
        given.when(deposit, amount=50).then(Deposited(51))
    with pytest.raises(AssertionError, match="not rejected"):
        given.when(deposit, amount=50).rejected()
    with pytest.raises(AssertionError, match="poor"):
        given.when(withdraw, amount=50).rejected("poor")
    with pytest.raises(CommandResultError):
        accounts.given(7)


def test_an_evolve_that_looks_elsewhere_is_found_out() -> None:
    counting = itertools.count()
    impure = tr.events("impure", Opened, state=Account)
    impure.evolve(lambda state, event: Account("x", next(counting)))
    with pytest.raises(AssertionError, match="not pure"):
        impure.given(Opened("ann"))


def test_a_command_that_changes_its_state_is_found_out() -> None:
    @dataclass
    class Loose:
        balance: int = 0

    loose = tr.events("loose", Opened, state=Loose)
    loose.evolve(lambda state, event: state)

    @loose.command
    def spoil(state: Loose) -> None:
        state.balance += 1

    with pytest.raises(AssertionError, match="changes the state"):
        loose.given().when(spoil)
