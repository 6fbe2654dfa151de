"""Orders that are paid from accounts, by a reaction; and workers that take part elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tailrace as tr
from servers.accounts import Withdrawn, withdraw
from servers.accounts import declare as declare_accounts
from tailrace.facts.asking import Fact


@dataclass(frozen=True, slots=True)
class Placed:
    account: str
    amount: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    pass


@dataclass(frozen=True, slots=True)
class Cancelled:
    why: str


@dataclass(frozen=True, slots=True)
class Order:
    status: str = "new"
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Payment:
    """What a process of the reaction knows."""

    facts: int = 0
    account: str = ""


accounts = declare_accounts("accounts", 2)
orders = tr.events("orders", Placed | Confirmed | Cancelled, state=Order, partitions=2)


@orders.evolve
def order(state: Order, event: object) -> Order:
    match event:
        case Placed(_, amount):
            return Order("placed", amount)
        case Confirmed():
            return Order("confirmed", state.amount)
        case Cancelled():
            return Order("cancelled", state.amount)
    raise TypeError(event)


@orders.command
def place(state: Order, account: str, amount: int) -> Placed:
    if state.status != "new":
        raise tr.Rejected("there is such an order", code="exists")
    return Placed(account, amount)


@orders.command
def confirm(state: Order) -> Confirmed:
    if state.status != "placed":
        raise tr.Rejected(f"it is {state.status}", code="not-placed")
    return Confirmed()


@orders.command
def cancel(state: Order, why: str) -> Cancelled:
    if state.status != "placed":
        raise tr.Rejected(f"it is {state.status}", code="not-placed")
    return Cancelled(why)


def order_of(fact: Fact) -> str | None:
    """Orders are placed under their own name as correlation, and what follows keeps it."""
    return fact.correlation if fact.correlation and fact.correlation.startswith("o") else None


@tr.reaction("checkout", orders, accounts, key=order_of, state=Payment, partitions=4)
def checkout(state: Payment, fact: Fact) -> Iterator[object]:
    match fact.event:
        case Placed("", _):  # nobody pays
            yield tr.later("0.02 seconds", "payment")
        case Placed(account, amount):
            yield tr.send(withdraw, account, amount=amount)
            yield tr.later("1 hour", "payment")
        case Withdrawn():
            yield tr.send(confirm, fact.correlation or "")
            yield tr.cancel("payment")
        case tr.Refused(command="withdraw", code=code):
            yield tr.send(cancel, fact.stream, why=code)
            yield tr.cancel("payment")
        case tr.Timeout("payment"):
            yield tr.send(cancel, fact.stream, why="late")


@checkout.evolve
def payment(state: Payment, event: object) -> Payment:
    account = event.account if isinstance(event, Placed) else state.account
    return Payment(state.facts + 1, account)


@contextmanager
def worker(address: str, index: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that owns and reacts until its standard input ends; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "servers.checkout", address, str(index)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def main() -> None:
    address, index = sys.argv[1:]
    with (
        tr.connect(address) as log,
        orders.open(log, index=index),
        accounts.open(log, index=index),
        checkout.open(log, index=index),
    ):
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
