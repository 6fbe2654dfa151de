"""An event topic of bank accounts under any name, and workers that own it in other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import tailrace as tr
from tailrace.facts.declare import Events


@dataclass(frozen=True, slots=True)
class Opened:
    owner: str


@dataclass(frozen=True, slots=True)
class Deposited:
    amount: int


@dataclass(frozen=True, slots=True)
class Withdrawn:
    amount: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Account:
    owner: str = ""
    balance: int = 0
    events: int = 0


def evolve(state: Account, event: object) -> Account:
    match event:
        case Opened(owner):
            return Account(owner, state.balance, state.events + 1)
        case Deposited(amount):
            return Account(state.owner, state.balance + amount, state.events + 1)
        case Withdrawn(amount):
            return Account(state.owner, state.balance - amount, state.events + 1)
    raise TypeError(event)


def open_account(state: Account, owner: str) -> Opened | None:
    return Opened(owner) if not state.owner else None


def deposit(state: Account, amount: int) -> Deposited:
    return Deposited(amount)


def withdraw(state: Account, amount: int, at: datetime) -> Withdrawn:
    if state.balance < amount:
        raise tr.Rejected("not enough money", code="overdrawn")
    return Withdrawn(amount, at)


def twice(state: Account, amount: int) -> list[object]:
    return [Deposited(amount), Deposited(amount)]


def raises(state: Account) -> Deposited:
    raise KeyError("no such thing")


def rubbish(state: Account, what: str) -> Any:
    return {"number": 7, "event": Deposited("fifty"), "big": Opened("x" * 3_000_000)}[what]  # type: ignore[arg-type]


def declare(name: str, partitions: int = 2, **more: Any) -> Events[Account]:
    declared = tr.events(
        name, Opened | Deposited | Withdrawn, state=Account, partitions=partitions, **more
    )
    declared.evolve(evolve)
    for command in (open_account, deposit, withdraw, twice, raises, rubbish):
        declared.command(command)
    return declared


PUBLISH = "ACCOUNTS_PUBLISH"
"""Set for workers that publish their states."""


class Worker:
    """A process that owns partitions and does what it is told, a line at a time.

    `say` sends a line; `hear` gives the next line it prints.
    """

    def __init__(
        self, address: str, name: str, index: Path, partitions: int, environment: dict[str, str]
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, address, name, str(index), str(partitions)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, **environment},
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


@contextmanager
def worker(
    address: str, name: str, index: Path, partitions: int = 2, **environment: str
) -> Iterator[Worker]:
    """A worker that has joined; killed at the end."""
    made = Worker(address, name, index, partitions, environment)
    try:
        if "TAILRACE_EVENTS_KILL_AT" not in environment:
            assert made.hear() == "ready"
        yield made
    finally:
        made.end()


def main() -> None:
    address, name, index, partitions = sys.argv[1:]
    declared = declare(name, int(partitions), publish=PUBLISH in os.environ)
    with tr.connect(address) as log, declared.open(log, index=index, timeout=20) as bank:
        print("ready", flush=True)
        for line in sys.stdin:
            match line.split():
                case ["deposit", stream, count, prefix]:
                    for number in range(int(count)):
                        done = bank.execute(deposit, stream, amount=1, id=f"{prefix}-{number}")
                        print(done.id, done.version, flush=True)
                case ["owners"]:
                    mine = sorted(partition.number for partition in bank.owned())
                    print(*mine, flush=True)
                case ["end"]:
                    return


if __name__ == "__main__":
    main()
