"""Personal fields: sealed in every file, open to who reads the topic, and erased for good."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import orjson
import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import Log
from tailrace.facts.asking import Fact
from tailrace.facts.declare import Events
from tailrace.facts.erasing import erase_subject, erasure, finish, search, verify
from tailrace.facts.errors import (
    EventsDeclarationError,
    EventsKeyError,
    EventUnreadableError,
    SubjectErasedError,
    SubjectUnknownError,
)
from tailrace.facts.failpoints import VARIABLE
from tailrace.facts.folding import fold
from tailrace.facts.mistakes import mistakes
from tailrace.facts.opened import OpenedEvents
from tailrace.facts.personal import ERASED
from tailrace.facts.sealing import KEYS, Keys, is_sealed

SECRET = "a secret of the tests, long enough to be one"
NAME, PHONE = "Wilhelmina Zonderling", "+31 6 5550 1234"


@dataclass(frozen=True, slots=True)
class Registered:
    customer: str
    name: Annotated[str, tr.personal("customer")]
    phone: Annotated[str | None, tr.personal("customer")] = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    customer: str
    city: Annotated[str, tr.personal("customer")]


@dataclass(frozen=True, slots=True)
class Customer:
    name: str = ""
    phone: str | None = None
    city: str = ""
    events: int = 0


def evolve(state: Customer, event: object) -> Customer:
    match event:
        case Registered(_, name, phone):
            return Customer(name, phone, state.city, state.events + 1)
        case Moved(_, city):
            return Customer(state.name, state.phone, city, state.events + 1)
    raise TypeError(event)


def declare(name: str = "customers") -> Events[Customer]:
    declared = tr.events(name, Registered | Moved, state=Customer, partitions=2)
    declared.evolve(evolve)

    @declared.command
    def register(state: Customer, customer: str, name: str, phone: str | None = None) -> Registered:
        return Registered(customer, name, phone)

    @declared.command
    def move(state: Customer, customer: str, city: str) -> Moved:
        return Moved(customer, city)

    return declared


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_EVENTS__KEY", SECRET)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log", log_cleaner_backoff_ms=50) as made:
        yield made


def until(told: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def files_with(place: Path, needle: bytes) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_a_personal_field_is_sealed_in_every_file_and_open_to_readers(
    log: Log, tmp_path: Path
) -> None:
    customers = declare()
    with customers.open(log) as shop:
        for _ in range(40):  # past a snapshot, which would hold the state as it is read
            done = shop.execute("register", "c17", customer="17", name=NAME, phone=PHONE)
        assert done.state == Customer(NAME, PHONE, "", 40)
        assert done.events[0].name == NAME
        assert shop.history("c17")[0].event.phone == PHONE
    for needle in (NAME, PHONE):
        assert files_with(tmp_path, needle.encode()) == []
    first = next(iter(log.read("customers")))
    value = orjson.loads(first.value)
    assert value["customer"] == "17"
    assert value["name"].startswith("tr1.")
    assert is_sealed(value["name"])
    with customers.open(log, index=tmp_path / "another") as shop:
        assert shop.state("c17").value == Customer(NAME, PHONE, "", 40)
        assert shop.state("c17", version=1).value == Customer(NAME, PHONE, "", 1)
        folded = fold(log, customers)
        assert folded.streams["c17"] == (40, Customer(NAME, PHONE, "", 40))
        assert folded.broken == {}


def test_without_the_right_key_nothing_opens(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    customers = declare()
    with customers.open(log, key="another secret, also long enough for it") as shop:
        shop.execute("register", "c17", customer="17", name=NAME)
    with pytest.raises(EventsKeyError):
        customers.open(log, index=tmp_path / "fresh")
    monkeypatch.delenv("TAILRACE_EVENTS__KEY")
    with pytest.raises(EventsKeyError) as missing:
        customers.open(log)
    assert "openssl" in missing.value.hint
    with pytest.raises(EventsKeyError, match="fewer"):
        customers.open(log, key="short")


def test_an_erased_subject_is_unreadable_and_does_not_come_back(log: Log, tmp_path: Path) -> None:
    customers = declare()
    keys = Keys(log, SECRET)
    try:
        with customers.open(log) as shop:
            for number in range(3):
                shop.execute("register", f"c17-{number}", customer="17", name=NAME, phone=PHONE)
            shop.execute("move", "c17-0", customer="17", city="Zutphen")
            shop.execute("register", "c18", customer="18", name="Bob")
            keys.refresh()
            wrapped = [each.wrapped for each in keys.raw() if each.tag == keys.tag("customer:17")]
            assert len(wrapped) == 1
            done = erase_subject(log, keys, "customer:17", "request 4711")
            assert (done.state, done.counts, len(done.keys)) == ("done", {"customers": 4}, 1)
            assert sum(len(each) for each in done.positions.values()) >= 2
            assert done.unreachable
            # An owner that had everything open learns of it.
            until(lambda: shop.state("c17-0").value.name == ERASED)
            assert shop.state("c17-0").value == Customer(ERASED, None, ERASED, 2)
            assert shop.state("c18").value.name == "Bob"
            assert shop.history("c17-1")[0].event == Registered("17", ERASED, None)
            with pytest.raises(SubjectErasedError) as refused:
                shop.execute("move", "c17-0", customer="17", city="Breda")
            assert refused.value.code == "subject-erased"
            with pytest.raises(SubjectErasedError):
                shop.append("elsewhere", [Registered("17", NAME)])
            assert shop.state("c17-0").version == 2
        assert wrapped[0] is not None
        until(lambda: files_with(tmp_path, wrapped[0] or b"") == [])  # not even the wrapped key
        found = verify(log, keys, done.id, needle=NAME, places=[tmp_path])
        assert (found.good, found.keys_left, found.values) == (True, 0, 4)
        again = erase_subject(log, keys, "customer:17", "once more")
        assert (again.id, again.reason) == (done.id, "request 4711")
        with pytest.raises(SubjectUnknownError):
            erase_subject(log, keys, "customer:99", "nobody")
        # Caches and index gone, another program: it stays erased.
        with customers.open(log, index=tmp_path / "another") as shop:
            assert shop.state("c17-0").value == Customer(ERASED, None, ERASED, 2)
            assert fold(log, customers).streams["c17-0"] == (2, Customer(ERASED, None, ERASED, 2))
    finally:
        keys.close()


def test_the_proof_names_what_and_where(log: Log) -> None:
    customers = declare()
    with customers.open(log) as shop:
        places = [
            shop.execute("register", f"s{n}", customer="17", name=NAME).position for n in range(5)
        ]
    keys = Keys(log, SECRET)
    try:
        before = search(log, keys.tag("customer:17"))
        assert before.counts == {"customers": 5}
        offsets = sorted(str(place).removeprefix("log:") for place in places)
        for place, (first, last) in before.positions.items():
            assert f"{place}:{first}" in offsets
            assert f"{place}:{last}" in offsets
        done = erase_subject(log, keys, "customer:17", "why")
        assert done.hashes == before.hashes
        assert search(log, done.tag).hashes == done.hashes  # the records are as they were
        assert NAME.encode() not in b"".join(r.value or b"" for r in log.read("__tailrace_erased"))
        assert b"customer:17" not in b"".join(r.value or b"" for r in log.read("__tailrace_erased"))
    finally:
        keys.close()


def test_text_that_looks_sealed_is_text(log: Log) -> None:
    customers = declare()
    forged = "tr1.0123456789abcdef." + "A" * 64
    assert is_sealed(forged)
    with customers.open(log) as shop:
        shop.append("c1", [Registered("1", NAME, None, forged)])
        assert shop.history("c1")[0].event == Registered("1", NAME, None, forged)
        shop.append("c2", [Registered("2", forged)])
        assert shop.history("c2")[0].event.name == forged


def test_a_sealed_value_opens_only_where_it_was_sealed(log: Log) -> None:
    keys = Keys(log, SECRET)
    try:
        sealed = keys.seal("customers", "name", "customer:17", NAME)
        assert keys.unseal("customers", "name", sealed) == (True, NAME)
        for topic, field in (("others", "name"), ("customers", "city")):
            with pytest.raises(EventUnreadableError):
                keys.unseal(topic, field, sealed)
        changed = sealed[:-6] + ("A" if sealed[-6] != "A" else "B") + sealed[-5:]
        with pytest.raises(EventUnreadableError):
            keys.unseal("customers", "name", changed)
        assert keys.seal("customers", "name", "customer:17", NAME) != sealed
    finally:
        keys.close()


def test_two_processes_that_make_a_key_at_once_lose_nothing(log: Log) -> None:
    one, two = Keys(log, SECRET), Keys(log, SECRET)
    try:
        # Neither has read what the other wrote: each makes a key of its own.
        first = one.seal("t", "f", "customer:17", "a")
        second = two.seal("t", "f", "customer:17", "b")
        for keys in (one, two):
            assert keys.unseal("t", "f", first) == (True, "a")
            assert keys.unseal("t", "f", second) == (True, "b")
        assert len(one.live(one.tag("customer:17"))) == 2
        one.write(
            "__tailrace_erased",
            "e-1",
            orjson.dumps({"id": "e-1", "tag": one.tag("customer:17"), "reason": "", "at": "", "state": "begun"}),
        )  # fmt: skip
        # `two` does not know yet and seals under a key that is destroyed with the others.
        late = two.seal("t", "f", "customer:17", "c")
        assert finish(log, one, "e-1").state == "done"
        two.refresh()
        for keys in (one, two):
            for sealed in (first, second, late):
                assert keys.unseal("t", "f", sealed) == (False, None)
            with pytest.raises(SubjectErasedError):
                keys.seal("t", "f", "customer:17", "d")
    finally:
        one.close()
        two.close()


def test_what_cannot_be_personal_is_told() -> None:
    @dataclass(frozen=True)
    class Wrong:
        customer: Annotated[str, tr.personal("name")]
        age: Annotated[int, tr.personal("id")] = 0
        name: Annotated[str, tr.personal("nobody")] = ""
        inner: Registered | None = None
        id: str = ""

    Wrong.__annotations__ = {
        "customer": Annotated[str, tr.personal("name")],
        "age": Annotated[int, tr.personal("id")],
        "name": Annotated[str, tr.personal("nobody")],
        "inner": Registered | None,
        "id": str,
    }
    wrong = tr.events("wrong", Wrong, state=Customer, tags=("name",), partitions=1)
    wrong.evolve(lambda state, event: state)
    found = " ".join(each.message for each in mistakes(wrong))
    for part in ("itself personal", "does not have", "None or text", "holds an object"):
        assert part in found
    with pytest.raises(EventsDeclarationError):
        wrong.given()


class Renamed(msgspec.Struct, rename="camel"):
    customer: str
    full_name: Annotated[str, tr.personal("customer")]


class Listed(msgspec.Struct, array_like=True):
    customer: str
    name: Annotated[str, tr.personal("customer")]


@pytest.mark.parametrize(
    ("kind", "why"), [(Renamed, "is written as 'fullName'"), (Listed, "written as an array")]
)
def test_a_personal_field_that_json_calls_otherwise_is_refused(kind: type, why: str) -> None:
    declared: Events[Customer] = tr.events("others", kind, state=Customer, partitions=1)
    declared.evolve(lambda state, event: state)
    with pytest.raises(EventsDeclarationError) as wrong:
        declared.given()
    assert why in wrong.value.message


def test_states_made_of_personal_fields_are_not_published() -> None:
    with pytest.raises(EventsDeclarationError) as wrong:
        tr.events("people", Registered, state=Customer, partitions=1, publish=True)
    assert "cannot be published" in wrong.value.message
    assert "personal" in wrong.value.detail


SCRIPT = """
import sys, tailrace as tr
from tailrace.facts.erasing import erase_subject
from tailrace.facts.sealing import Keys
with tr.connect(sys.argv[1]) as log:
    keys = Keys(log, sys.argv[2])
    erase_subject(log, keys, "customer:17", "request 4711")
"""


def refused(shop: OpenedEvents[Customer]) -> bool:
    try:
        shop.execute("register", "c17", customer="17", name=secrets.token_hex(4))
    except SubjectErasedError:
        return True
    return False


def run_killed(tmp_path: Path, step: str) -> None:
    with BrokerThread(
        tmp_path / "log", durable=False, settings={"log.cleaner.backoff.ms": "50"}
    ) as broker, tr.connect(broker.address) as log, declare().open(log, index=tmp_path / "i") as shop:  # fmt: skip
        shop.execute("register", "c17", customer="17", name=NAME)
        killed = subprocess.run(
            [sys.executable, "-c", SCRIPT, broker.address, SECRET],
            env={**os.environ, VARIABLE: step}, timeout=100, check=False,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL
        keys = Keys(log, SECRET)
        try:
            (begun,) = keys.erasures.values()
            assert begun.state == "begun"
            # From the beginning on nothing new is written of it.
            until(lambda: refused(shop))
            # As a part of `up` does: a look now and then, without waiting.
            until(lambda: finish(log, keys, begun.id, patience=0.0).state == "done")
            done = erasure(keys, begun.id)
            assert done.counts == {"customers": 1}
            assert all(each.wrapped is None for each in keys.raw() if each.tag == done.tag)
            until(lambda: shop.state("c17").value.name == ERASED)
        finally:
            keys.close()


def test_an_erasure_that_was_killed_is_finished(tmp_path: Path) -> None:
    run_killed(tmp_path, "erasing.begun")


@pytest.mark.crash
@pytest.mark.parametrize("step", ["erasing.destroyed", "erasing.cleaned"])
def test_an_erasure_that_was_killed_at_a_later_step_is_finished(tmp_path: Path, step: str) -> None:
    run_killed(tmp_path, step)


def test_the_topic_of_keys_is_what_kafka_calls_compacted(log: Log) -> None:
    keys = Keys(log, SECRET)
    keys.close()
    assert log.topic_config(KEYS)["cleanup.policy"] == "compact"


@dataclass(frozen=True, slots=True)
class Mailed:
    customer: str
    to: Annotated[str, tr.personal("customer")]


@dataclass(frozen=True, slots=True)
class Greeted:
    name: str = ""


def test_what_a_reaction_records_is_sealed_and_erased_too(log: Log, tmp_path: Path) -> None:
    customers = declare()
    letters = tr.events("letters", Mailed, state=Customer, partitions=1)
    letters.evolve(lambda state, event: Customer(event.to))
    closed = [True]

    @letters.command
    def mail(state: Customer, customer: str, to: str) -> Mailed:
        if closed[0]:
            raise KeyError(f"no letters for {to}")
        return Mailed(customer, to)

    @tr.reaction("greeting", customers, state=Greeted)
    def greeting(state: Greeted, fact: Fact) -> Iterator[object]:
        match fact.event:
            case Registered(customer, name):
                yield tr.send(mail, "out", customer=customer, to=name)
                yield tr.later("1 day", "again")
            case tr.Refused(code="subject-erased"):
                yield tr.cancel("again")

    @greeting.evolve
    def greeted(state: Greeted, event: object) -> Greeted:
        return Greeted(event.name) if isinstance(event, Registered) else state

    keys = Keys(log, SECRET)
    try:
        with customers.open(log) as shop, letters.open(log) as post, greeting.open(log) as opened:
            shop.execute("register", "c17", customer="17", name=NAME)
            shop.execute("register", "c18", customer="18", name="Bartholomew")
            until(lambda: opened.state("c17") == Greeted(NAME))
            until(lambda: all(opened.process(each).open[0].attempts > 0 for each in ("c17", "c18")))
            assert opened.process("c17").open[0].arguments == {"customer": "17", "to": NAME}
            assert opened.process("c17").open[0].error == "command-failed"
            for needle in (NAME, "Bartholomew"):
                assert files_with(tmp_path, needle.encode()) == []
            done = erase_subject(log, keys, "customer:17", "why")
            assert done.counts["greeting.reactions"] >= 1
            until(lambda: opened.state("c17") == Greeted())
            until(lambda: not opened.process("c17").open)
            assert opened.process("c17").timers == {}  # the refusal was a fact to it
            assert opened.state("c18") == Greeted("Bartholomew")
            closed[0] = False
            until(lambda: post.state("out").version == 1)
            assert post.state("out").value.name == "Bartholomew"
            assert files_with(tmp_path, b"Bartholomew") == []
    finally:
        keys.close()
