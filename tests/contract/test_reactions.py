"""Reservations and reactions mean the same on every log: in process, our broker, Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from servers.accounts import Deposited, declare, deposit, withdraw
from tailrace.client.log import Log
from tailrace.facts.asking import Fact
from tailrace.facts.open_processes import look
from tailrace.facts.reservations import Expired


def until(told: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_key_is_held_confirmed_released_and_runs_out(log: Log, name: str, tmp_path: Path) -> None:
    seats = tr.reservations(name, hold=timedelta(milliseconds=400), partitions=2)
    with seats.open(log, index=tmp_path) as book:
        book.claim("a", holder="u1")
        book.claim("b", holder="u1")
        book.confirm("b", holder="u1")
        with pytest.raises(tr.Reserved):
            book.claim("b", holder="u2")
        assert book.claim("b", holder="u2", wait=True).status == "waiting"
        assert book.release("b", holder="u1")
        found = book.get("b")
        assert found is not None
        assert found.holder == "u2"
        until(lambda: book.opened.history("a")[-1].event == Expired("u1"))
        assert book.get("a") is None


def test_a_command_follows_from_a_fact_once_and_a_refusal_is_a_fact(
    log: Log, name: str, tmp_path: Path
) -> None:
    source, target = declare(f"{name}-source"), declare(f"{name}-target")

    @tr.reaction(name, source)
    def follow(state: None, fact: Fact) -> Iterator[object]:
        match fact.event:
            case Deposited(amount):
                yield tr.send(withdraw, fact.stream, on=target, amount=amount)
            case tr.Refused(command="withdraw", args={"amount": amount}):
                yield tr.send(deposit, "refused", on=target, amount=amount)

    with source.open(log, index=tmp_path) as one, target.open(log, index=tmp_path) as two:
        two.execute(deposit, "a", amount=10)
        for amount in (5, 50, 5):
            one.execute(deposit, "a", amount=amount)
        for _ in range(2):  # the second time there is nothing to do
            with follow.open(log, index=tmp_path):
                until(lambda: two.state("refused").value.balance == 50)
                until(lambda: two.state("a").value.balance == 0)
                until(lambda: not list(look(log, follow)))
        assert two.state("a").version == 3
        assert two.state("refused").version == 1
        causes = [orjson.loads(record.header("tailrace.meta")) for record in log.read(target.name)]
        sent = [meta for meta in causes if meta["command"].startswith(f"{name}/")]
        assert len(sent) == 3
        assert {meta["actor"] for meta in sent} == {f"reaction:{name}"}
        assert sum(meta["cause"].startswith(f"log:{source.name}/") for meta in sent) == 2
