"""Decisions a second, beside the Python library `eventsourcing` on SQLite, in the same run.

    python -m benchmarks.events [--seconds 4] [--peer PYTHON] [--kafka]

The log is the embedded broker in a process of its own, every commit synced to disk. Commands are
single events with an expected version. `--peer` is the interpreter of an environment that has
`eventsourcing`; without it one is made under .tailrace, and where that cannot be done its line is
left out. After each run the topic is read, and the benchmark fails if a version is missing or a
stream's state is not what its events make.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import tailrace as tr  # noqa: E402
from servers.kafka import VERSION, Kafka  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.client.log import Log  # noqa: E402
from tailrace.facts.declare import Events  # noqa: E402
from tailrace.facts.folding import fold  # noqa: E402
from tailrace.facts.opened import OpenedEvents  # noqa: E402

PEER = """
import json, sys, threading, time, tempfile, os
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

class Account(Aggregate):
    def __init__(self): self.balance = 0
    @event("Deposited")
    def deposit(self, amount): self.balance += amount

def run(threads, seconds):
    directory = tempfile.mkdtemp()
    app = Application(env={"PERSISTENCE_MODULE": "eventsourcing.sqlite",
                           "SQLITE_DBNAME": os.path.join(directory, "events.db")})
    ids = []
    for _ in range(threads):
        account = Account(); app.save(account); ids.append(account.id)
    done, times = [0] * threads, []
    until = time.perf_counter() + seconds
    def work(n):
        account = app.repository.get(ids[n])
        while time.perf_counter() < until:
            began = time.perf_counter()
            account.deposit(1); app.save(account)
            times.append(time.perf_counter() - began)
            done[n] += 1
    pool = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for t in pool: t.start()
    for t in pool: t.join()
    times.sort()
    began = time.process_time()
    count = 0
    for each in ids:
        count += app.repository.get(each).version
    spent = time.process_time() - began
    return {"threads": threads, "rate": sum(done) / seconds, "p50": times[len(times) // 2] * 1000,
            "rebuild": count / spent}
print(json.dumps(max((run(n, float(sys.argv[1])) for n in (1, 4, 16)), key=lambda r: r["rate"])))
"""


@dataclass(frozen=True, slots=True)
class Deposited:
    amount: int


@dataclass(frozen=True, slots=True)
class Account:
    balance: int = 0


def evolve(state: Account, event: object) -> Account:
    match event:
        case Deposited(amount):
            return Account(state.balance + amount)
    raise TypeError(event)


def deposit(state: Account, amount: int) -> Deposited:
    return Deposited(amount)


def declare(name: str, partitions: int) -> Events[Account]:
    declared = tr.events(name, Deposited, state=Account, partitions=partitions)
    declared.evolve(evolve)
    declared.command(deposit)
    return declared


async def callers(bank: OpenedEvents[Account], count: int, seconds: float, prefix: str) -> list[float]:  # fmt: skip
    """Each caller decides on a stream of its own, knowing its version; the seconds of each."""
    until = time.perf_counter() + seconds
    times: list[float] = []

    async def one(number: int) -> None:
        version = 0
        while time.perf_counter() < until:
            began = time.perf_counter()
            done = await bank.aexecute(deposit, f"{prefix}{number}", amount=1, expected=version)
            times.append(time.perf_counter() - began)
            version = done.version

    await asyncio.gather(*(one(number) for number in range(count)))
    return times


def one_caller(bank: OpenedEvents[Account], seconds: float) -> list[float]:
    until = time.perf_counter() + seconds
    times: list[float] = []
    while time.perf_counter() < until:
        began = time.perf_counter()
        bank.execute(deposit, "alone", amount=1)
        times.append(time.perf_counter() - began)
    return times


def judge(log: Log, declared: Events[Account], expected: int) -> tuple[int, float]:
    """Whether the log holds what was acknowledged; events and CPU-seconds of a naive fold."""
    began = time.process_time()
    folded = fold(log, declared)
    spent = time.process_time() - began
    assert not folded.broken, folded.broken
    assert folded.events == expected, (folded.events, expected)
    assert all(version == state.balance for version, state in folded.streams.values())
    return folded.events, spent


def measure(address: str, name: str, seconds: float) -> dict[str, float]:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as index, tr.connect(address) as log:
        declared = declare(name, 1)
        with declared.open(log, index=index) as bank:
            alone = one_caller(bank, seconds)
            figures["one caller, p50 ms"] = statistics.median(alone) * 1000
            times = asyncio.run(callers(bank, 256, seconds, "s"))
            figures["256 callers, a second"] = len(times) / seconds
            figures["256 callers, p50 ms"] = statistics.median(times) * 1000
            began = time.perf_counter()
            for number in range(100_000):
                bank.state(f"s{number % 256}")
            figures["look-ups, a second"] = 100_000 / (time.perf_counter() - began)
        judge(log, declared, len(alone) + len(times))
        figures |= rebuilt(log, f"{name}-history", Path(index))
        figures |= several(log, address, f"{name}-shared", seconds)
    return figures


def rebuilt(log: Log, name: str, index: Path) -> dict[str, float]:
    """300,000 events of 300 streams, read by an owner without an index, and folded alone."""
    declared = declare(name, 1)
    with declared.open(log, index=index / "warm") as bank:
        for number in range(300):
            bank.append(f"s{number}", [Deposited(1)] * 1000)
    began = time.process_time()
    with declared.open(log, index=index / "cold") as bank:
        spent = time.process_time() - began
        assert bank.state("s7").value.balance == 1000
    events, folding = judge(log, declared, 300_000)
    return {
        "rebuild, events a CPU-second": events / spent,
        "fold alone, events a CPU-second": events / folding,
    }


def several(log: Log, address: str, name: str, seconds: float) -> dict[str, float]:
    """Four processes of 64 callers on 8 partitions, to any stream."""
    with tempfile.TemporaryDirectory() as index:
        declared = declare(name, 8)
        command = [sys.executable, "-m", "benchmarks.events", "--worker", address, name, index]
        workers = [
            subprocess.Popen(
                [*command, str(number), str(seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(4)
        ]
        for each in workers:
            assert each.stdout is not None
            assert each.stdout.readline().strip() == "ready"
        time.sleep(2)  # the last one has joined; let partitions settle
        for each in workers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [json.loads(each.stdout.readline()) for each in workers if each.stdout]
        for each in workers:
            each.communicate("end\n")
        judge(log, declared, sum(each["count"] for each in told))
        return {
            "4 processes × 64, a second": sum(each["count"] for each in told) / seconds,
            "4 processes × 64, p50 ms": statistics.median(each["p50"] for each in told),
        }


def worker(address: str, name: str, index: str, number: str, seconds: str) -> None:
    with tr.connect(address) as log, declare(name, 8).open(log, index=index) as bank:
        print("ready", flush=True)
        sys.stdin.readline()
        times = asyncio.run(callers(bank, 64, float(seconds), f"w{number}-"))
        answer = {"count": len(times), "p50": statistics.median(times) * 1000}
        print(json.dumps(answer), flush=True)
        sys.stdin.readline()


def peer(python: str | None, seconds: float) -> dict[str, float] | None:
    """The figures of `eventsourcing`, at its best number of threads."""
    if python is None:
        home = ROOT / ".tailrace" / "peer-events"
        python = str(home / "bin" / "python")
        if not Path(python).exists():
            made = subprocess.run([sys.executable, "-m", "venv", str(home)], check=False)
            got = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "eventsourcing==9.5.6"], check=False
            )
            if made.returncode or got.returncode:
                return None
    run = subprocess.run(
        [python, "-c", PEER, str(seconds)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        print(run.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(run.stdout)
    return found


@contextmanager
def kafka(wanted: bool) -> Iterator[str | None]:
    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory() as directory:
        cluster = Kafka(Path(directory))
        try:
            yield cluster.bootstrap
        finally:
            cluster.stop()


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--peer", help="an interpreter that has eventsourcing")
    parser.add_argument("--kafka", action="store_true", help="also on Apache Kafka")
    options = parser.parse_args()
    assert threading.active_count() == 1
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(directory) as broker:
        columns = {"embedded": measure(broker.address, "bench", options.seconds)}
    with kafka(options.kafka) as address:
        if address is not None:
            columns[f"Kafka {VERSION}"] = measure(address, "bench", options.seconds)
    names = list(columns["embedded"])
    print(f"{'':32}" + "".join(f"{name:>14}" for name in columns))
    for name in names:
        print(f"{name:32}" + "".join(f"{found[name]:14,.2f}" for found in columns.values()))
    other = peer(options.peer, options.seconds)
    if other is None:
        print("eventsourcing: not to be had here")
    else:
        print(
            f"eventsourcing 9.5.6 on SQLite, {other['threads']:.0f} threads: {other['rate']:,.0f} a "
            f"second, p50 {other['p50']:.2f} ms, rebuild {other['rebuild']:,.0f} events a CPU-second"
        )


if __name__ == "__main__":
    main()
