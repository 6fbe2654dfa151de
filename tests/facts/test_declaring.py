"""What is declared wrongly is told with the user's line; what is declared has no effect."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tailrace as tr
from servers.accounts import Account, Deposited, Opened, Withdrawn, declare, withdraw
from tailrace.facts.declare import Events
from tailrace.facts.errors import (
    CommandArgumentsError,
    EventsDeclarationError,
    EventUnknownError,
    EventUnreadableError,
    UpcastMissingError,
)
from tailrace.facts.mistakes import mistakes
from tailrace.project.check import check
from tailrace.project.load import load


@dataclass(frozen=True)
class Opaque:
    thing: int
    cell: type


def told(declared: Events[Any]) -> list[str]:
    return [error.message for error in mistakes(declared)]


def test_a_right_declaration_has_no_mistakes() -> None:
    assert told(declare("accounts")) == []


def test_commands_and_evolve_stay_callable() -> None:
    at = datetime(2026, 1, 1)
    assert withdraw(Account("", 80), 50, at) == Withdrawn(50, at)


def test_importing_tailrace_loads_nothing_of_it() -> None:
    code = "import sys, tailrace; sys.exit('msgspec' in sys.modules or 'lmdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_type_without_a_case_is_told_with_its_line() -> None:
    declared = tr.events("accounts", Opened | Deposited | Withdrawn, state=Account)

    @declared.evolve
    def account(state: Account, event: object) -> Account:
        match event:
            case Opened(owner):
                return Account(owner)
            case Deposited() as found:
                return Account(state.owner, state.balance + found.amount)
            case _:
                raise TypeError(event)

    (error,) = mistakes(declared)
    assert "no case for Withdrawn" in error.message
    line = account.__code__.co_firstlineno
    assert f"{__file__}:{line}" in error.detail


def test_a_case_for_the_rest_covers_it() -> None:
    declared = tr.events("accounts", Opened | Deposited, state=Account)

    @declared.evolve
    def account(state: Account, event: object) -> Account:
        match event:
            case Opened(owner):
                return Account(owner)
            case _:
                return state

    assert told(declared) == []


def test_isinstance_names_types_as_well() -> None:
    declared = tr.events("accounts", Opened | Deposited | Withdrawn, state=Account)

    @declared.evolve
    def account(state: Account, event: object) -> Account:
        if isinstance(event, Opened | Deposited):
            return Account("x")
        raise TypeError(event)

    assert told(declared) == ["evolve of 'accounts' has no case for Withdrawn"]


def test_a_field_that_json_does_not_bring_back_is_told() -> None:
    declared = tr.events("odd", Opaque, state=Account)
    declared.evolve(lambda state, event: state)
    assert told(declared) == ["Opaque.cell is a type, which JSON does not bring back"]


def test_no_evolve_is_told() -> None:
    declared = tr.events("accounts", Opened, state=Account)
    assert told(declared) == ["'accounts' has no evolve"]


def test_two_types_of_one_name_are_refused() -> None:
    other = dataclass(type("Opened", (), {"__annotations__": {"owner": str}}))
    with pytest.raises(EventsDeclarationError) as refused:
        tr.events("accounts", Opened | other, state=Account)
    assert "two event types" in refused.value.message
    assert f"{__file__}:" in refused.value.detail


def test_a_missing_upcaster_is_told() -> None:
    declared = declare("accounts")
    declared.upcast("Opened", 2)(lambda old: old)
    assert told(declared) == ["there is no way from Opened version 1 to 2"]
    with pytest.raises(UpcastMissingError):
        declared.types.decode("Opened", b'{"owner":"ann"}')


def test_a_state_without_a_beginning_is_told() -> None:
    @dataclass(frozen=True)
    class Needs:
        owner: str

    declared = tr.events("accounts", Opened, state=Needs)

    @declared.evolve
    def account(state: Needs, event: object) -> Needs:
        return state

    assert told(declared) == ["the state of 'accounts' has no beginning"]


def test_a_state_may_begin_as_none() -> None:
    @dataclass(frozen=True)
    class Needs:
        owner: str

    declared = tr.events("accounts", Opened, state=Needs)

    @declared.evolve
    def account(state: Needs | None, event: object) -> Needs | None:
        return Needs("x")

    assert told(declared) == []
    assert declared.initial() is None


@pytest.mark.parametrize("name", ["", "a.b", "a b", "ä", "-x", "x" * 200])
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(EventsDeclarationError):
        tr.events(name, Opened, state=Account)


def test_what_cannot_be_an_event_is_refused() -> None:
    for kinds in (int, "Opened", None, Opened | int):
        with pytest.raises(EventsDeclarationError):
            tr.events("accounts", kinds, state=Account)


def test_tags_need_one_partition_and_a_field() -> None:
    with pytest.raises(EventsDeclarationError):
        tr.events("accounts", Opened, state=Account, tags=("owner",))
    with pytest.raises(EventsDeclarationError):
        tr.events("accounts", Opened, state=Account, partitions=1, tags=("colour",))


def test_a_command_that_could_not_be_called_is_refused() -> None:
    declared = declare("accounts")
    with pytest.raises(EventsDeclarationError):

        @declared.command
        def many(state: Account, *amounts: int) -> None: ...

    with pytest.raises(EventsDeclarationError):

        @declared.command
        async def later(state: Account) -> None: ...

    with pytest.raises(EventsDeclarationError):

        @declared.command
        def deposit(state: Account) -> None: ...


def test_arguments_from_json_take_the_types_of_the_command() -> None:
    declared = tr.events("accounts", Opened, state=Account)

    @declared.command
    def pay(state: Account, amount: Decimal, due: datetime, note: str = "") -> None: ...

    found = declared.find_command(pay).convert({"amount": "1.50", "due": "2026-01-01T00:00:00Z"})
    assert found["amount"] == Decimal("1.50")
    assert found["due"].year == 2026
    with pytest.raises(CommandArgumentsError):
        declared.find_command("pay").convert({"amount": [], "due": "2026-01-01T00:00:00Z"})


def test_older_versions_are_brought_up_step_by_step() -> None:
    @dataclass(frozen=True)
    class Paid:
        amount: int
        currency: str

    declared = tr.events("payments", Paid, state=Account)
    declared.upcast("Paid", 1)(lambda old: {"amount": old["cents"]})
    declared.upcast("Paid", 2)(lambda old: {**old, "currency": "EUR"})
    types = declared.types
    assert types.by_name["Paid"].written == "Paid.3"
    assert types.decode("Paid", b'{"cents":5}') == Paid(5, "EUR")
    assert types.decode("Paid.2", b'{"amount":5}') == Paid(5, "EUR")
    assert types.decode("Paid.3", b'{"amount":5,"currency":"USD"}') == Paid(5, "USD")
    with pytest.raises(EventUnknownError):
        types.decode("Paid.4", b"{}")
    with pytest.raises(EventUnknownError):
        types.decode("Refunded", b"{}")
    with pytest.raises(EventUnreadableError):
        types.decode("Paid.3", b'{"amount":"much"}')


def test_changed_code_changes_the_fingerprint() -> None:
    one, two = declare("accounts"), declare("accounts")
    assert one.fingerprint() == two.fingerprint()
    two.upcast("Opened", 1)(lambda old: old)
    assert one.fingerprint() != two.fingerprint()


PROJECT = """
from dataclasses import dataclass
import tailrace as tr

@dataclass(frozen=True)
class Opened:
    owner: str

@dataclass(frozen=True)
class Closed:
    pass

@dataclass(frozen=True)
class Account:
    owner: str = ""

accounts = tr.events("accounts", Opened | Closed, state=Account, partitions=2)

@accounts.evolve
def account(state, event):
    match event:
        case Opened(owner):
            return Account(owner)
"""


def test_check_points_at_the_line_and_at_lossy_settings(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "bank.py").write_text(PROJECT)
    (tmp_path / "tailrace.toml").write_text(
        '[project]\nname = "bank"\n[topics.accounts]\n"cleanup.policy" = "compact"\n'
    )
    project = load(tmp_path)
    assert list(project.events) == ["accounts"]
    assert project.places["accounts"] == "pipelines/bank.py:17"
    found = [one.error for one in check(project) if one.error is not None]
    assert [error.code for error in found] == ["events-declaration", "events-compacted"]
    assert "pipelines/bank.py:19" in found[0].detail
    assert "compensating event" in found[1].hint
