"""The broker behind SASL_SSL beside Apache Kafka behind the same: SCRAM-SHA-512 over TLS.

    python -m benchmarks.secured [--rounds 2] [--megabytes 64] [--minutes 6] [--handshakes 500]

Produce and consume are librdkafka's, in a process of its own; `fetch` reads the same records with plain
Fetch requests and counts them by the heads of their batches, because librdkafka spends more on a
record than either broker. Rounds alternate, each figure is the
better of its rounds; processor time is the broker's alone. Every record is counted. `ack p99` is
of single records with acks=all, 100 a second over one connection: alone, and while other processes
make so many TLS handshakes a second with the broker. A load that does not end in time is given up
and named; after `--minutes` no round begins.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from servers.certificates import Authority  # noqa: E402
from servers.kafka import VERSION, Kafka  # noqa: E402
from servers.processes import free_port  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.client.connection import Connection, open_socket, secured  # noqa: E402
from tailrace.security import make_security  # noqa: E402
from tailrace.testing.wire_client import batch_of  # noqa: E402
from tailrace.wire.apis import APIS, ApiKey  # noqa: E402
from tailrace.wire.messages.fetch import (  # noqa: E402
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tailrace.wire.messages.produce import (  # noqa: E402
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

USER, PASSWORD = "shop", "shops-secret"
VALUE = os.urandom(1024)
FLOODS = 2
LOAD_SECONDS = 120
FETCH_BYTES = 4 << 20
BATCH_HEAD = struct.Struct(">qi11xi")  # base offset, length, last offset delta
ACKS, ACKS_A_SECOND = 1000, 100


@dataclass
class Contender:
    name: str
    client: dict[str, Any]
    process: psutil.Process
    best: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, value: float, *, higher: bool = False) -> None:
        before = self.best.get(name)
        if before is None or (value > before if higher else value < before):
            self.best[name] = value

    def cpu(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system


def load(settings: dict[str, Any], topic: str, what: str, count: int) -> dict[str, float]:
    """One load, in a process of its own. Raises subprocess.TimeoutExpired."""
    given = json.dumps([settings, topic, what, count])
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.secured", "--load"],
        input=given, capture_output=True, text=True, check=True, cwd=ROOT, timeout=LOAD_SECONDS,
    )  # fmt: skip
    found: dict[str, float] = json.loads(run.stdout)
    return found


def do_load() -> None:
    settings, topic, what, count = json.load(sys.stdin)
    began = time.perf_counter()
    found: dict[str, float] = {}
    if what == "produce":
        producer = Producer({**settings, "acks": "all", "linger.ms": 5, "batch.size": 1 << 20,
                             "queue.buffering.max.kbytes": 1 << 18, "queue.buffering.max.messages": 10**6})  # fmt: skip
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, VALUE)
                    break
                except BufferError:
                    producer.poll(0.01)
        if producer.flush(300):
            raise SystemExit("records were not acknowledged")
    elif what == "consume":
        consumer = Consumer({**settings, "group.id": "g", "enable.auto.commit": False,
                             "fetch.message.max.bytes": 1 << 20, "queued.max.messages.kbytes": 1 << 17})  # fmt: skip
        consumer.assign([TopicPartition(topic, 0, 0)])
        left = count
        while left:
            for message in consumer.consume(10_000, 1):
                if message.error() is not None:
                    raise SystemExit(str(message.error()))
                left -= 1
        consumer.close()
    elif what == "fetch":
        fetch(connected(settings), topic, count)
    else:
        found = acknowledged(settings, topic, count)
    found["seconds"] = time.perf_counter() - began
    print(json.dumps(found))


def connected(settings: dict[str, Any]) -> Connection:
    security = make_security(
        {
            "mechanism": settings["sasl.mechanism"],
            "username": settings["sasl.username"],
            "password": settings["sasl.password"],
            "ca": settings["ssl.ca.location"],
        }
    )
    host, _, port = settings["bootstrap.servers"].rpartition(":")
    return Connection(host, int(port), opener=secured(open_socket, security), security=security)


def fetch(connection: Connection, topic: str, count: int) -> None:
    """Read the partition from its beginning, one request at a time."""
    offset = 0
    while offset < count:
        asked = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic, partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)])],
        )  # fmt: skip
        connection.send(APIS[ApiKey.FETCH], asked, 11)
        answer = connection.receive()
        assert isinstance(answer, FetchResponse)
        part = answer.responses[0].partitions[0]
        if part.error_code:
            raise SystemExit(f"fetch failed: {part.error_code}")
        records, at = memoryview(part.records or b""), 0
        while at + BATCH_HEAD.size <= len(records):
            base, size, last = BATCH_HEAD.unpack_from(records, at)
            if at + 12 + size > len(records):
                break
            if base != offset:
                raise SystemExit(f"offset {base} came where {offset} was expected")
            offset, at = base + last + 1, at + 12 + size
    connection.close()


def acknowledged(settings: dict[str, Any], topic: str, count: int) -> dict[str, float]:
    """How long single records take to be acknowledged, sent at their time whatever came before."""
    connection = connected(settings)
    records = PartitionProduceData(0, bytes(batch_of(VALUE)))
    asked = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[records])]
    )  # fmt: skip
    took = []
    began = time.perf_counter()
    for number in range(count):
        due = began + number / ACKS_A_SECOND
        if (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        at = time.perf_counter()
        answer = connection.request(APIS[ApiKey.PRODUCE], asked, 9)
        took.append(time.perf_counter() - at)
        assert isinstance(answer, ProduceResponse)
        if answer.responses[0].partition_responses[0].error_code:
            raise SystemExit("a record was not acknowledged")
    connection.close()
    took = sorted(took[count // 10 :])
    return {"p50_ms": 1000 * took[len(took) // 2], "p99_ms": 1000 * took[int(len(took) * 0.99)]}


def do_flood() -> None:
    """So many handshakes a second, each at its time, until this process is ended."""
    host, port, ca, rate = sys.argv[2:6]
    context = ssl.create_default_context(cafile=ca)
    began, count = time.perf_counter(), 0
    while True:
        if (wait := began + count / float(rate) - time.perf_counter()) > 0:
            time.sleep(wait)
        try:
            with socket.create_connection((host, int(port))) as plain:
                context.wrap_socket(plain, server_hostname="localhost").close()
        except OSError as error:
            print(f"a handshake failed: {error}", file=sys.stderr, flush=True)
        count += 1
        if count % 20 == 0:
            print(count, flush=True)


def measure(who: Contender, round_: int, megabytes: int, ca: str, handshakes: int) -> None:
    topic, count = f"t{round_}", megabytes * 1024
    admin = AdminClient(who.client)  # one that nobody holds never answers
    admin.create_topics([NewTopic(topic, 1, 1), NewTopic(f"{topic}-acks", 1, 1)])[topic].result(60)
    gigabytes = count * len(VALUE) / 1e9
    for what in ("produce", "consume", "fetch"):
        before = who.cpu()
        took = load(who.client, topic, what, count)
        who.note(f"{what} MB/s", 1000 * gigabytes / took["seconds"], higher=True)
        who.note(f"{what} CPU s/GB", (who.cpu() - before) / gigabytes)
    alone = load(who.client, f"{topic}-acks", "ack", ACKS)
    who.note("ack p50 ms", alone["p50_ms"])
    who.note("ack p99 ms", alone["p99_ms"])
    host, _, port = who.client["bootstrap.servers"].rpartition(":")
    arguments = [sys.executable, "-m", "benchmarks.secured", "--flood", host, port, ca]
    floods = [
        subprocess.Popen([*arguments, str(handshakes / FLOODS)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(FLOODS)
    ]  # fmt: skip
    began, before = time.perf_counter(), who.cpu()
    try:
        beside = load(who.client, f"{topic}-acks", "ack", ACKS)
    finally:
        seconds, spent = time.perf_counter() - began, who.cpu() - before
        shaken = 0
        for each in floods:
            each.kill()
            lines = each.communicate()[0].split()
            shaken += int(lines[-1]) if lines else 0
    who.note("ack p50 ms under handshakes", beside["p50_ms"])
    who.note("ack p99 ms under handshakes", beside["p99_ms"])
    who.note("handshakes/s", shaken / seconds, higher=True)
    who.note("CPU ms/handshake", 1000 * spent / max(1, shaken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--handshakes", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        authority = Authority()
        issued = authority.issue("broker")
        (directory / "broker.pem").write_text(issued.key + issued.certificate)
        (directory / "ca.pem").write_text(authority.pem)
        tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(directory / "broker.pem"),
               "sasl.enabled.mechanisms": "SCRAM-SHA-512"}  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", "tailrace", "broker", "user", "add", USER, "--data", str(directory / "ours"), "--password-file", "-"],
            input=f"{PASSWORD}\n", text=True, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        ours = BrokerProcess(directory / "ours", listen="SASL_SSL://127.0.0.1:0", settings=tls)
        controller, secured = free_port(), free_port()
        kafka = Kafka(
            directory,
            settings={
                **tls,
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listeners": f"SASL_SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"SASL_SSL://127.0.0.1:{secured}",
                "inter.broker.listener.name": "SASL_SSL",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
                f'username="{USER}" password="{PASSWORD}";',
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(directory / "ca.pem"),
            },
            users={USER: PASSWORD},
            ports=[secured],
        )  # fmt: skip

        def client(address: str) -> dict[str, Any]:
            return {"bootstrap.servers": address, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
                    "sasl.username": USER, "sasl.password": PASSWORD, "ssl.ca.location": str(directory / "ca.pem")}  # fmt: skip

        contenders = [
            Contender("ours", client(ours.address), psutil.Process(ours.pid)),
            Contender(f"Kafka {VERSION}", client(kafka.bootstrap), psutil.Process(kafka.servers[0].process.pid)),
        ]  # fmt: skip
        try:
            until = time.monotonic() + 60 * options.minutes
            for round_ in range(options.rounds):
                if time.monotonic() > until:
                    print(f"no time for round {round_ + 1}", file=sys.stderr)
                    break
                for who in contenders if round_ % 2 == 0 else reversed(contenders):
                    try:
                        measure(
                            who,
                            round_,
                            options.megabytes,
                            str(directory / "ca.pem"),
                            options.handshakes,
                        )
                    except subprocess.TimeoutExpired:
                        print(
                            f"{who.name}: a load did not end in {LOAD_SECONDS} s", file=sys.stderr
                        )
        finally:
            ours.stop()
            kafka.stop()
    print(f"\nSASL_SSL, SCRAM-SHA-512, 1 KB records, best of {options.rounds}; {platform.release()}, "
          f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    mine, theirs = (each.best for each in contenders)
    print(f"| | ours | {contenders[1].name} | ratio |\n|---|---|---|---|")
    for name, value in mine.items():
        if name in theirs:
            print(f"| {name} | {value:.2f} | {theirs[name]:.2f} | {value / theirs[name]:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        do_load()
    elif sys.argv[1:2] == ["--flood"]:
        do_flood()
    else:
        main()
