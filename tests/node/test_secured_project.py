"""A whole project where the log asks who it is: capture, a view, a stream, sinks, console.

Once on the embedded log, with a listener for others that speaks SASL_SSL and an authorizer; once
on an Apache Kafka behind SASL_SSL and SCRAM, whose user has the rules that `tailrace acl
for-project` prints and no others.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tailrace as tr
from servers.certificates import Authority
from servers.kafka import Kafka, KafkaUnavailable
from servers.processes import free_port
from tailrace import config
from tailrace.broker.authorization.acls import Acl
from tailrace.broker.settings import STANDARD_AUTHORIZER
from tailrace.client.acls import Acls
from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.security import LogAddress, make_security

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(1500)]

PIPELINE = """
import tailrace as tr
from tailrace import sinks, sources

shop = sources.SQLite("shop", "shop.db", tables=["orders"], history={"orders": "90 days"})
open_orders = tr.view(
    "open_orders",
    '''SELECT country, count(*) AS orders, sum(amount) AS value
       FROM shop.orders WHERE status = 'open' GROUP BY country''',
    key="country",
    to=[sinks.SQLite("copies.db", table="open_orders"), sinks.Topic("open_orders_for_others")],
)


@tr.stream(shop.table("orders").inserts(snapshot=True), key="country", trigger="200 milliseconds")
def large_orders(orders):
    return orders.where("amount >= 90").select("id", "country", "amount")
"""
TOML = """
[project]
name = "secured"
[spark]
master = "local[1]"
shards = 2
[console]
listen = "127.0.0.1:0"
token = "a token of some length"
[topics.open_orders_for_others]
partitions = 1
"""
PASSWORD = "shops-secret-canary"
READER = "readers-secret-canary"
PROGRAM = str(Path(sys.executable).with_name("tailrace"))


@dataclass
class Secured:
    """A project that is ready to run, and where others come in."""

    directory: Path
    outside: str
    authority: Authority
    environment: dict[str, str]
    owner: str | None = None
    """Who gives permissions: the project itself if nobody is named."""
    words: list[str] = field(default_factory=list)

    def as_user(self, name: str, password: str) -> LogAddress:
        given = {"username": name, "password": password, "ca": self.authority.pem}
        return LogAddress(
            self.outside, make_security({**given, "mechanism": "SCRAM-SHA-512"})
        )  # fmt: skip

    def run(self, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.directory, env=self.environment, input=given,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        self.words += [done.stdout, done.stderr]
        return done.stdout


def orders(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def written(directory: Path, log: str) -> None:
    (directory / "tailrace.toml").write_text(TOML + log)
    (directory / "pipelines").mkdir()
    (directory / "pipelines" / "main.py").write_text(PIPELINE)
    orders(
        directory / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, country TEXT, amount INTEGER, status TEXT)",
        "INSERT INTO orders (country, amount, status) VALUES ('NL', 95, 'open'), ('BE', 5, 'open')",
    )


def certificates(directory: Path) -> Authority:
    authority = Authority()
    issued = authority.issue("log")
    (directory / "broker.pem").write_text(issued.key + issued.certificate)
    (directory / "broker.pem").chmod(0o600)
    (directory / "ca.pem").write_text(authority.pem)
    return authority


@pytest.fixture
def embedded(tmp_path: Path) -> Secured:
    directory = tmp_path / "project"
    directory.mkdir()
    authority, port = certificates(tmp_path), free_port()
    written(
        directory,
        f"""
[log]
listen = "127.0.0.1:0"
[log.broker]
listeners = "SASL_SSL://127.0.0.1:{port}"
"ssl.keystore.location" = "{tmp_path}/broker.pem"
"sasl.enabled.mechanisms" = "SCRAM-SHA-512"
"authorizer.class.name" = "{STANDARD_AUTHORIZER}"
""",
    )
    made = Secured(directory, f"127.0.0.1:{port}", authority, dict(os.environ))
    log = str(config.load(directory).log.directory)
    made.run("broker", "user", "add", "reader", "--data", log, "--password-file", "-",
             given=f"{READER}\n")  # fmt: skip
    return made


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Secured]:
    directory = tmp_path / "project"
    directory.mkdir()
    authority = certificates(tmp_path)
    controller, secured = free_port(), free_port()
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    try:
        cluster = Kafka(
            tmp_path,
            settings={
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listeners": f"SASL_SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"SASL_SSL://127.0.0.1:{secured}",
                "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "SASL_SSL",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f'{scram} username="admin" password="{PASSWORD}";',
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(tmp_path / "broker.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(tmp_path / "ca.pem"),
                "authorizer.class.name": STANDARD_AUTHORIZER,
                "super.users": "User:admin;User:ANONYMOUS",
                "auto.create.topics.enable": "false",
                "connections.max.reauth.ms": "10000",
            },
            users={"admin": PASSWORD, "shop": PASSWORD, "reader": READER},
            ports=[secured],
        )
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    try:
        written(
            directory,
            f"""
[log]
bootstrap = "127.0.0.1:{secured}"
[log.security]
mechanism = "SCRAM-SHA-512"
username = "shop"
password = "${{LOG_PASSWORD}}"
ca = "{tmp_path}/ca.pem"
""",
        )
        environment = dict(os.environ, LOG_PASSWORD=PASSWORD)
        made = Secured(directory, f"127.0.0.1:{secured}", authority, environment, "admin")
        rules = json.loads(made.run("acl", "for-project", ".", "--json"))
        with Admin(made.as_user("admin", PASSWORD)) as admin:
            Acls(admin).add([acl(row) for row in rules])
        yield made
    finally:
        cluster.stop()


def acl(row: dict[str, str]) -> Acl:
    """A rule as `tailrace acl` prints it."""
    from tailrace.broker.authorization.acls import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES

    def number(words: dict[int, str], word: str) -> int:
        return next(number for number, each in words.items() if each == word)

    return Acl(
        number(RESOURCES, row["resource"]), row["name"], number(PATTERNS, row["pattern"]),
        row["principal"], row["host"], number(OPERATIONS, row["operation"]),
        number(PERMISSIONS, row["permission"]),
    )  # fmt: skip


@contextmanager
def running(secured: Secured) -> Iterator[subprocess.Popen[bytes]]:
    output = (secured.directory / "up.txt").open("wb")
    process = subprocess.Popen(
        [PROGRAM, "up", str(secured.directory)], env=secured.environment,
        stdout=output, stderr=output,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            output.close()


def wait_until(true: Callable[[], bool], process: subprocess.Popen[bytes], place: Path) -> None:
    deadline = time.monotonic() + 400
    while not true():
        words = (place / "up.txt").read_text()
        assert process.poll() is None, words[-4000:]
        if time.monotonic() > deadline:
            reports = {path.name: path.read_text() for path in (place / ".tailrace/run").glob("*")}
            raise AssertionError(f"{reports}\n{words[-6000:]}")
        time.sleep(0.2)


def copied(directory: Path) -> list[tuple[str, int, int]]:
    try:
        with closing(sqlite3.connect(directory / "copies.db")) as database:
            return database.execute("SELECT country, orders, value FROM open_orders ORDER BY 1").fetchall()  # fmt: skip
    except sqlite3.OperationalError:
        return []


def asked(directory: Path, path: str, body: object = None) -> Any:
    """What the console answers to its operator."""
    (line,) = (one for one in (directory / "up.txt").read_text().splitlines() if one.startswith("console http"))  # fmt: skip
    address, _, token = line.removeprefix("console ").partition("/#token=")
    request = urllib.request.Request(
        address + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("log", ["embedded", "kafka"])
def test_a_project_runs_where_the_log_asks_who_it_is(
    log: str, request: pytest.FixtureRequest
) -> None:
    secured: Secured = request.getfixturevalue(log)
    place = secured.directory
    with running(secured) as process:
        wait_until(lambda: "\nready" in (place / "up.txt").read_text(), process, place)
        wait_until(lambda: copied(place) == [("BE", 1, 5), ("NL", 1, 95)], process, place)
        orders(
            place / "shop.db",
            "INSERT INTO orders (country, amount, status) VALUES ('NL', 92, 'open'), ('FR', 7, 'open')",
            "UPDATE orders SET status = 'paid' WHERE id = 1",
            "DELETE FROM orders WHERE country = 'BE'",
        )
        truth = [("FR", 1, 7), ("NL", 1, 92)]
        wait_until(lambda: copied(place) == truth, process, place)

        # The console, whose lists of topics and records stand on librdkafka.
        found = asked(place, "/api/views/open_orders")["rows"]
        assert sorted((row["country"], row["orders"], row["value"]) for row in found) == truth
        wait_until(
            lambda: (
                "large_orders" in {each["name"] for each in asked(place, "/api/topics")["topics"]}
            ),
            process,
            place,
        )

        def large() -> list[int]:
            newest = asked(place, "/api/topics/large_orders/latest?from=earliest")["records"]
            return sorted(json.loads(each["value"])["amount"] if isinstance(each["value"], str)
                          else each["value"]["amount"] for each in newest)  # fmt: skip

        wait_until(lambda: large() == [92, 95], process, place)
        assert asked(place, "/api/status")["ready"] is True
        assert isinstance(asked(place, "/api/groups")["groups"], list)
        assert asked(place, "/api/sinks/open_orders.sqlite/verify", {})["differences"] == []

        # The command line, in the project's directory.
        assert "large_orders" in secured.run("topic", "list")
        assert "open_orders.sqlite" in secured.run("sink", "list")
        secured.run("status")

        # Others: what they are allowed and nothing else.
        reader = secured.as_user("reader", READER)
        with tr.connect(reader) as outside, pytest.raises(ClientError):
            list(outside.read("open_orders_for_others"))
        if secured.owner is None:
            secured.run("acl", "add", "--principal", "User:reader", "--operation", "read",
                        "--topic", "open_orders_for_others", "--log", ".")  # fmt: skip
        else:
            rule = {"resource": "topic", "name": "open_orders_for_others", "pattern": "literal", "host": "*",
                    "principal": "User:reader", "operation": "read", "permission": "allow"}  # fmt: skip
            with Admin(secured.as_user(secured.owner, PASSWORD)) as admin:
                Acls(admin).add([acl(rule)])
        with tr.connect(reader) as outside:
            wait_until(
                lambda: {b"FR", b"NL"} <= {country(record.key) for record in outside.read("open_orders_for_others")},
                process,
                place,
            )  # fmt: skip
            with pytest.raises(ClientError), outside.producer() as producer:
                producer.send("open_orders_for_others", value=b"x").result(30)
        nobody = LogAddress(
            secured.outside, make_security({"protocol": "SSL", "ca": secured.authority.pem})
        )
        with pytest.raises(ClientError), Admin(nobody, timeout=3) as admin:
            admin.list_topics()

        # And again from where it was, as after any restart.
        words = (place / "up.txt").read_text()
    with running(secured) as process:
        wait_until(lambda: "\nready" in (place / "up.txt").read_text(), process, place)
        orders(place / "shop.db", "INSERT INTO orders (country, amount, status) VALUES ('DE', 3, 'open')")  # fmt: skip
        wait_until(lambda: copied(place) == [("DE", 1, 3), *truth], process, place)
        wait_until(lambda: large() == [92, 95], process, place)
        words += (place / "up.txt").read_text()
    state = [path.read_text(errors="replace") for path in place.rglob("*.json")]
    told = "".join([words, *secured.words, *state, (place / ".tailrace/up.log").read_text(errors="replace")])  # fmt: skip
    assert PASSWORD not in told
    assert READER not in told
    assert "authorization failed" not in told.lower()


def country(key: bytes | None) -> bytes:
    """The key of a row in a topic."""
    found = json.loads(key or b"null")
    return str(found["country"] if isinstance(found, dict) else found).encode()
