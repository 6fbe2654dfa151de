"""Decisions a second, beside the Python library `eventsourcing` on SQLite and on Postgres, in the
same run.

    python -m benchmarks.events [--seconds 4] [--peer PYTHON] [--kafka] [--large MILLIONS]

`--large 10` writes 10 M events over 1 M streams, has a process read them without an index, and
tells its memory, and how soon another one takes over when it is killed.
The log is the embedded broker in a process of its own, every commit synced to disk. Commands are
single events with an expected version. `--peer` is the interpreter of an environment that has
`eventsourcing[postgres]`; without it one is made under .tailrace, and where that cannot be done its
lines are left out. Its Postgres syncs every commit. After each run the topic is read, and the benchmark fails if a version is missing or a
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
from contextlib import ExitStack, contextmanager
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
from tailrace.facts.sealing import Keys  # noqa: E402
from tailrace.testing.postgres import PostgresServer  # noqa: E402

PEER = """
import json, sys, threading, time, tempfile, os
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

class Account(Aggregate):
    def __init__(self): self.balance = 0
    @event("Deposited")
    def deposit(self, amount): self.balance += amount

def run(threads, seconds):
    env = json.loads(sys.argv[2]) or {"PERSISTENCE_MODULE": "eventsourcing.sqlite",
                           "SQLITE_DBNAME": os.path.join(tempfile.mkdtemp(), "events.db")}
    app = Application(env=env)
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
    app.close()
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
            for _ in range(10):
                bank.append("long", [Deposited(1)] * 1000)
            (owned,) = bank.owned()
            owned.events(b"long", 1, 10_000)  # loads Arrow
            began = time.perf_counter()
            folded = owned.fold(declared.initial(), owned.events(b"long", 1, 10_000))
            figures["10,000 events, no snapshot, ms"] = (time.perf_counter() - began) * 1000
            assert folded.balance == 10_000
        judge(log, declared, len(alone) + len(times) + 10_000)
        figures |= forwarded(log, address, f"{name}-forwarded", seconds)
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


def forwarded(log: Log, address: str, name: str, seconds: float) -> dict[str, float]:
    """One caller, the owner in another process; its share is the difference to one caller."""
    declared = declare(name, 8)
    with tempfile.TemporaryDirectory() as index, working(address, name, index, "0", seconds):
        with declared.open(log, owns=False) as bank:
            alone = one_caller(bank, seconds)
        judge(log, declared, len(alone))
    return {"one caller, forwarded, p50 ms": statistics.median(alone) * 1000}


@contextmanager
def working(
    address: str, name: str, index: str, number: str, seconds: float
) -> Iterator[subprocess.Popen[str]]:
    """A process that owns partitions, and writes when told so."""
    command = [sys.executable, "-m", "benchmarks.events", "--worker", address, name, index]
    process = subprocess.Popen(
        [*command, number, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        yield process
    finally:
        process.kill()
        process.communicate()


def large(address: str, millions: float) -> dict[str, float]:
    """Ten events of each stream, read without an index by a process, which is then killed."""
    streams = int(millions * 100_000)
    name, figures = "large", dict[str, float]()
    with tempfile.TemporaryDirectory() as index, tr.connect(address) as log:
        declared = declare(name, 8)
        with declared.open(log, index=Path(index) / "writer") as bank:

            async def write() -> None:
                async def some(first: int) -> None:
                    for number in range(first, streams, 256):
                        await bank.aappend(f"s{number}", [Deposited(1)] * 10)

                await asyncio.gather(*(some(first) for first in range(256)))

            began = time.perf_counter()
            asyncio.run(write())
            figures["events written a second"] = streams * 10 / (time.perf_counter() - began)
        for name_of in ("without an index", "with a warm one"):
            began = time.perf_counter()
            with working(address, name, f"{index}/reader", "0", 0.0) as process:
                assert process.stdin is not None
                took = time.perf_counter() - began
                figures[f"owner begins {name_of}, s"] = took
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
                figures[f"memory {name_of}, MB"] = int(peak.split()[1]) / 1024
        with (
            declared.open(log, index=Path(index) / "reader", timeout=60) as bank,
            working(address, name, f"{index}/reader", "0", 0.0) as process,
        ):
            theirs = set(range(8)) - {each.number for each in bank.owned()}
            lost = {bank.partition_of(f"s{n}"): f"s{n}" for n in range(1000)}
            for number in theirs:
                bank.execute(deposit, lost[number], amount=1)
            process.kill()
            process.wait()
            began = time.perf_counter()
            for number in theirs:
                bank.execute(deposit, lost[number], amount=1)
            figures["take-over after kill -9, s"] = time.perf_counter() - began
    return figures


def sealing() -> dict[str, float]:
    """One personal field, its key at hand."""
    with tempfile.TemporaryDirectory() as directory, tr.open(directory) as log:
        keys = Keys(log, "k" * 40)
        tag = keys.tag("customer:17")
        keys.seal_under("people", "name", tag, "Ann")
        began = time.process_time()
        for _ in range(50_000):
            keys.seal("people", "name", "customer:17", "Ann de Vries")
        spent = time.process_time() - began
        keys.close()
    return {"sealing, CPU-µs a field": spent * 20}


def several(log: Log, address: str, name: str, seconds: float) -> dict[str, float]:
    """Four processes of 64 callers on 8 partitions, to any stream."""
    with tempfile.TemporaryDirectory() as index:
        declared = declare(name, 8)
        stack = ExitStack()
        workers = [
            stack.enter_context(working(address, name, index, str(number), seconds))
            for number in range(4)
        ]
        time.sleep(2)  # the last one has joined; let partitions settle
        for each in workers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [json.loads(each.stdout.readline()) for each in workers if each.stdout]
        stack.close()
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


def peers(python: str | None, seconds: float) -> dict[str, dict[str, float]]:
    """The figures of `eventsourcing` by database, each at its best number of threads."""
    if python is None:
        home = ROOT / ".tailrace" / "peer-events"
        python = str(home / "bin" / "python")
        known = subprocess.run([python, "-c", "import psycopg_pool"], check=False) if home.exists() else None  # fmt: skip
        if known is None or known.returncode:
            made = subprocess.run([sys.executable, "-m", "venv", str(home)], check=False)
            install = [python, "-m", "pip", "install", "--quiet", "eventsourcing[postgres]==9.5.6"]
            if made.returncode or subprocess.run(install, check=False).returncode:
                return {}
    found: dict[str, dict[str, float]] = {}
    with PostgresServer(settings={"synchronous_commit": "on"}, durable=True) as server:
        given = dict(each.split("=") for each in server.dsn().split())
        postgres = {
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": given["dbname"],
            "POSTGRES_HOST": given["host"],
            "POSTGRES_PORT": given["port"],
            "POSTGRES_USER": given["user"],
            "POSTGRES_PASSWORD": server.password,
        }
        for name, env in (("SQLite", {}), ("Postgres", postgres)):
            run = subprocess.run(
                [python, "-c", PEER, str(seconds), json.dumps(env)],
                capture_output=True,
                text=True,
                check=False,
            )
            if run.returncode:
                print(name, run.stderr.strip().splitlines()[-1:], file=sys.stderr)
            else:
                found[name] = json.loads(run.stdout)
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
    parser.add_argument("--large", type=float, default=0.0, help="millions of events to rebuild")
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
    for name, figure in sealing().items():
        print(f"{name:32}{figure:14,.2f}")
    if options.large:
        with tempfile.TemporaryDirectory() as directory, BrokerProcess(directory) as broker:
            for name, figure in large(broker.address, options.large).items():
                print(f"{name:32}{figure:14,.2f}")
    others = peers(options.peer, options.seconds)
    for name, other in others.items():
        print(
            f"eventsourcing 9.5.6 on {name}, {other['threads']:.0f} threads: {other['rate']:,.0f} a "
            f"second, p50 {other['p50']:.2f} ms, rebuild {other['rebuild']:,.0f} events a CPU-second"
        )
    if not others:
        print("eventsourcing: not to be had here")


if __name__ == "__main__":
    main()
