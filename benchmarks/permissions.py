"""What permissions cost: a request with and without an authorizer, and loading many rules and users.

    python -m benchmarks.permissions [--requests 40000] [--rounds 5]

Produce requests of one small record, 50 on their way over one connection, to a broker in a process of
its own; the figure is that process's CPU time, the least of the rounds, which alternate. Both brokers
sync nothing that is not asked for. Loading is the opening of a log with 10,000 users and 50,000
rules, less the opening of an empty one, in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent

from tailrace.broker.authentication.users import Users  # noqa: E402
from tailrace.broker.authorization.acls import ALLOW, LITERAL, TOPIC, WRITE, Acl  # noqa: E402
from tailrace.broker.authorization.authorizer import Authorizer  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.broker.settings import STANDARD_AUTHORIZER, BrokerSettings  # noqa: E402
from tailrace.log.store import Store  # noqa: E402
from tailrace.testing.wire_client import WireClient, batch_of  # noqa: E402
from tailrace.wire.apis import APIS, ApiKey  # noqa: E402
from tailrace.wire.frames import encode_request  # noqa: E402
from tailrace.wire.scram import make_credential  # noqa: E402

RULES, MANY_RULES, MANY_USERS = 10_000, 50_000, 10_000
WINDOW = 50


def rules(count: int) -> list[Acl]:
    """One that lets anybody write `t`, and others about other things."""
    other = (Acl(TOPIC, f"topic-{n}", LITERAL, f"User:user-{n % 500}", "*", WRITE, ALLOW) for n in range(count - 1))  # fmt: skip
    return [Acl(TOPIC, "t", LITERAL, "User:ANONYMOUS", "*", WRITE, ALLOW), *other]


def filled(directory: Path, acls: list[Acl], users: int = 0) -> Path:
    """A log with these rules and so many users."""
    store = Store.open([directory], settings=BrokerSettings().log())
    store.change_acls(acls, [])
    if users:
        kept = Users(store, b"secret")
        credential = make_credential("SCRAM-SHA-512", b"password")
        for number in range(users):
            kept.change(f"user-{number}", {"SCRAM-SHA-512": credential})
    store.create_topic("t", 1, {})
    store.close()
    return directory


def cpu_per_request(broker: BrokerProcess, count: int) -> float:
    """Microseconds of the broker's CPU time for a Produce request."""
    process = psutil.Process(broker.pid)
    with WireClient(broker.address, timeout_seconds=120) as client:
        frames = bytes(
            encode_request(APIS[ApiKey.PRODUCE], 9, 1, client.produce_request("t", batch_of(b"x")))
        )
        window = frames * WINDOW
        assert client.produce("t", batch_of(b"x")).error_code == 0
        before = process.cpu_times()
        for _ in range(count // WINDOW):
            client.send_bytes(window)
            for _ in range(WINDOW):
                client.read_frame()
        after = process.cpu_times()
    return 1e6 * (after.user + after.system - before.user - before.system) / count


def load_time(directory: Path) -> float:
    """CPU seconds until the rules and users of a log are there."""
    began = time.process_time()
    store = Store.open([directory], settings=BrokerSettings().log())
    users = Users(store, b"secret")
    authorizer = Authorizer(Acl(*row) for row in store.journal.catalogue.acls)
    took = time.process_time() - began
    assert authorizer is not None
    assert len(users) in (0, MANY_USERS)
    store.close()
    return took


def loaded(directory: Path) -> float:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.permissions", "--load", str(directory)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return float(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        for name in ("without", "with"):
            filled(directory / name, rules(RULES))
        asks = {"authorizer.class.name": STANDARD_AUTHORIZER}
        brokers = {
            "without": BrokerProcess(directory / "without"),
            "with": BrokerProcess(directory / "with", settings=asks),
        }
        best = {name: float("inf") for name in brokers}
        try:
            for round_ in range(options.rounds):
                for name in sorted(brokers, reverse=bool(round_ % 2)):
                    best[name] = min(best[name], cpu_per_request(brokers[name], options.requests))
        finally:
            for each in brokers.values():
                each.stop()
        empty = filled(directory / "empty", [])
        many = filled(directory / "many", rules(MANY_RULES), MANY_USERS)
        took = min(loaded(many) for _ in range(3)) - min(loaded(empty) for _ in range(3))
    print(f"{platform.release()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| | |\n|---|---|")
    print(f"| CPU of a Produce request without an authorizer | {best['without']:.1f} µs |")
    print(
        f"| with one, and {RULES:,} rules | {best['with']:.1f} µs ({best['with'] / best['without'] - 1:+.1%}) |"
    )
    print(f"| {MANY_USERS:,} users and {MANY_RULES:,} rules loaded | {took:.2f} s of CPU |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        print(load_time(Path(sys.argv[2])))
    else:
        main()
