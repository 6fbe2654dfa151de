"""Records that are cut out: of the log, of every cache that was made of them, for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerThread
from tailrace.client.errors import RequestError
from tailrace.client.log import Log
from tailrace.errors import UsageError
from tailrace.facts.declare import Events
from tailrace.facts.erasures import Erasures
from tailrace.facts.errors import (
    ErasureRefusedError,
    EventsDeclarationError,
    RecordsMissingError,
    SubjectErasedError,
)
from tailrace.facts.event_types import Erased
from tailrace.facts.excising import (
    erase_key,
    erase_records,
    find_key,
    find_records,
    finish,
    is_key,
    verify,
)
from tailrace.facts.failpoints import VARIABLE
from tailrace.facts.folding import fold
from tailrace.facts.partition import Partition

NEEDLE = "Wilhelmina Zonderling"


@dataclass(frozen=True, slots=True)
class Said:
    words: str
    course: str = "c1"


@dataclass(frozen=True, slots=True)
class Talk:
    words: tuple[str, ...] = ()


def declare(name: str = "talks", **more: object) -> Events[Talk]:
    declared = tr.events(name, Said, state=Talk, partitions=2, **more)  # type: ignore[arg-type]

    @declared.evolve
    def talk(state: Talk, event: Said) -> Talk:
        return Talk((*state.words, event.words))

    @declared.command
    def say(state: Talk, words: str) -> Said:
        return Said(words)

    return declared


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as made:
        yield made


@pytest.fixture
def book(log: Log) -> Iterator[Erasures]:
    made = Erasures(log)
    yield made
    made.close()


def until(told: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def files_with(place: Path, needle: str = NEEDLE) -> list[str]:
    return [
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.is_file() and needle.encode() in path.read_bytes()
    ]


def test_an_event_is_erased_from_log_index_and_snapshots_and_its_slot_stays(
    log: Log, book: Erasures, tmp_path: Path
) -> None:
    talks = declare()
    with talks.open(log) as hall:
        for number in range(40):  # past a snapshot
            words = NEEDLE if number == 3 else f"word {number}"
            done = hall.execute("say", "t-1", words=words, id=f"c{number}")
        hall.execute("say", "t-2", words="other")
        assert files_with(tmp_path) != []
        third = hall.history("t-1")[3]
        assert third.event == Said(NEEDLE)
        erased = erase_records(log, book, [third.position], "request 4711")
        assert erased.state == "done"
        assert erased.kind == "record"
        assert erased.counts == {"talks": 1}
        assert erased.offsets == {"talks": third.position.partition("/")[2]}
        assert list(erased.hashes) == ["talks"]
        until(lambda: len(hall.state("t-1").value.words) == 39)
        until(lambda: files_with(tmp_path) == [])
        slot = hall.history("t-1")[3]
        assert (slot.event, slot.type, slot.version) == (Erased(), "Erased", 4)
        assert (slot.command, slot.position) == ("c3", third.position)
        assert hall.state("t-1", version=4).value == Talk(("word 0", "word 1", "word 2"))
        # The command is remembered: a repeat writes nothing.
        again = hall.execute("say", "t-1", words=NEEDLE, id="c3")
        assert (again.repeated, again.events) == (True, (Erased(),))
        assert hall.execute("say", "t-1", words="more").version == done.version + 1
        folded = fold(log, talks)
        assert folded.broken == {}
        assert folded.streams["t-1"] == (41, hall.state("t-1").value)
        assert verify(log, book, erased.id, needle=NEEDLE, places=[tmp_path]).good
        assert not verify(log, book, erased.id, needle="word 7", places=[tmp_path]).good
    with talks.open(log) as hall:  # a warm index, and nobody reads it anew
        assert len(hall.state("t-1").value.words) == 40


def test_an_index_that_was_closed_meanwhile_is_not_believed(
    log: Log, book: Erasures, tmp_path: Path
) -> None:
    talks = declare()
    with talks.open(log) as hall:
        for _ in range(33):
            done = hall.execute("say", "t-1", words=NEEDLE)
    erase_records(log, book, [done.position], "request")
    with talks.open(log) as hall:
        assert len(hall.state("t-1").value.words) == 32


def test_a_stream_is_erased_whole_and_takes_no_event_again(
    log: Log, book: Erasures, tmp_path: Path
) -> None:
    talks = declare(publish=True)
    with talks.open(log) as hall:
        for _ in range(3):
            hall.execute("say", "t-1", words=NEEDLE, id="first")
            hall.execute("say", "t-1", words=NEEDLE)
            kept = hall.execute("say", "t-2", words="kept")
        found, keys = find_key(log, "talks", "t-1")
        assert keys == {b"t-1"}
        assert found.counts == {"talks": 4, "talks.state": 4}
        erased = erase_key(log, book, "talks", "t-1", "request 4711")
        assert erased.state == "done"
        assert erased.counts == {"talks": 4, "talks.state": 4}
        assert b"t-1" not in orjson.dumps(erased.digest)
        with pytest.raises(SubjectErasedError, match="does not come back"):
            until(lambda: hall.execute("say", "t-1", words=NEEDLE) is None)
        assert hall.execute("say", "t-1", words="x", id="first").repeated
        until(lambda: files_with(tmp_path) == [])
        until(lambda: hall.state("t-1").value == Talk())
        assert hall.state("t-2").value == kept.state
        # Asked for again, it is the same one; its file of keys tells nobody's name.
        assert erase_key(log, book, "talks", "t-1", "again").id == erased.id
        states = {r.key: r.value for r in log.read("talks.state")}
        assert states[b"t-1"] in (None, b'{"words":[]}')
        assert states[b"t-2"] is not None
        assert verify(log, book, erased.id, needle=NEEDLE, places=[tmp_path]).good
    with talks.open(log) as hall, pytest.raises(SubjectErasedError):
        hall.execute("say", "t-1", words=NEEDLE)


def test_states_that_are_published_are_told_anew(log: Log, book: Erasures, tmp_path: Path) -> None:
    talks = declare(publish=True)
    with talks.open(log) as hall:
        first = hall.execute("say", "t-1", words=NEEDLE)
        hall.execute("say", "t-1", words="second")
        erased = erase_records(log, book, [first.position], "request")
        assert erased.counts == {"talks": 1, "talks.state": 2}
        until(lambda: _state(log, b"t-1") == {"words": ["second"]})
        until(lambda: files_with(tmp_path) == [])


def _state(log: Log, stream: bytes) -> object:
    last = None
    for record in log.read("talks.state"):
        if record.key == stream:
            last = record.value
    return None if last is None else orjson.loads(last)


def test_conditions_forget_the_tags_of_what_was_erased(log: Log, book: Erasures) -> None:
    talks = tr.events("talks", Said, state=Talk, tags=("course",), partitions=1)

    @talks.evolve
    def talk(state: Talk, event: Said) -> Talk:
        return state

    with talks.open(log) as hall:
        done = hall.append("t-1", [Said("a", "c1"), Said("b", "c2")])
        first = (
            done.position.rpartition(":")[0] + ":" + str(int(done.position.rpartition(":")[2]) - 1)
        )
        erase_records(log, book, [first], "request")
        until(lambda: len(hall.read(tr.matching(course="c1")).events) == 0)
        assert hall.read(tr.matching(course="c2")).events == (Said("b", "c2"),)


def test_copies_that_say_where_they_came_from_go_too(
    log: Log, book: Erasures, tmp_path: Path
) -> None:
    for topic in ("orders", "shop.dead", "shop.late", "shop.retry", "sink.dead", "elsewhere"):
        log.create_topic(topic, 1)
    with log.producer() as producer:
        producer.send("orders", key=b"1", value=NEEDLE.encode())
        producer.send("orders", key=b"2", value=b"kept")
        value = NEEDLE.encode()
        producer.send("shop.dead", key=b"log:orders/0:0", value=value)
        producer.send("shop.late", key=b"log:orders/0:1", value=b"kept")
        origin = [("tailrace.origin", b"log:orders/0:0")]
        producer.send("shop.retry", key=b"1", value=value, headers=origin)
        producer.send("sink.dead", key=b"orders/0:0", value=value)
        producer.send("elsewhere", key=b"my orders/0:0", value=b"not ours")
    dry = find_records(log, ["log:orders/0:0"])
    counts = {"orders": 1, "shop.dead": 1, "shop.retry": 1, "sink.dead": 1}
    assert dry.counts == counts
    erased = erase_records(log, book, ["orders/0:0"], "request")
    assert erased.counts == counts
    assert files_with(tmp_path) == []
    (gone, kept) = log.read("orders")
    assert (gone.key, gone.value, gone.header("tailrace.erased")) == (b"1", None, b"")
    assert (kept.key, kept.value) == (b"2", b"kept")
    assert [each.value for each in log.read("elsewhere")] == [b"not ours"]


def test_a_row_of_a_table_is_deleted_with_its_history(
    log: Log, book: Erasures, tmp_path: Path
) -> None:
    log.create_topic("shop.customers", 1, {"cleanup.policy": "compact,delete"})

    def change(op: str, id: int, before: str | None, after: str | None) -> tuple[bytes, bytes]:
        rows = [None if n is None else {"id": id, "name": n} for n in (before, after)]
        told = {"op": op, "before": rows[0], "after": rows[1], "source": {"name": "shop"}}
        return orjson.dumps({"id": id}), orjson.dumps(told)

    with log.producer() as producer:
        for one in (change("c", 17, None, NEEDLE), change("u", 17, NEEDLE, f"{NEEDLE} 2"), change("c", 170, None, "Bo")):  # fmt: skip
            producer.send("shop.customers", key=one[0], value=one[1])
    erased = erase_key(log, book, "shop.customers", "17", "request")
    assert (erased.state, erased.counts) == ("done", {"shop.customers": 2})
    assert files_with(tmp_path) == []
    left = [(each.key, each.value) for each in log.read("shop.customers")]
    key = b'{"id":17}'
    deletion = orjson.loads(left[3][1])
    assert (deletion["op"], deletion["before"], deletion["after"]) == (
        "d", {"id": 17, "name": None}, None,
    )  # fmt: skip
    assert [each[0] for each in left] == [key, key, b'{"id":170}', key, key]
    assert [left[0][1], left[1][1], left[4][1]] == [None, None, None]
    assert verify(log, book, erased.id, needle=NEEDLE, places=[tmp_path]).good
    # Its source brings it back: found, and cut again by who looks.
    with log.producer() as producer:
        again = change("c", 17, None, NEEDLE)
        producer.send("shop.customers", key=again[0], value=again[1])
    assert not verify(log, book, erased.id).good
    assert finish(log, book, erased.id).counts == {"shop.customers": 3}
    assert verify(log, book, erased.id, needle=NEEDLE, places=[tmp_path]).good


@pytest.mark.parametrize(
    ("key", "text", "same"),
    [
        (b"acc-1", "acc-1", True),
        (b'{"id":17}', "17", True),
        (b'{"id":17}', '{"id": 17}', True),
        (b'{"id":"17"}', "17", True),
        (b'{"id":170}', "17", False),
        (b'{"a":17,"b":1}', "17", False),
        (b'{"a":17,"b":1}', '{"b":1,"a":17}', True),
        (b'{"schema":{},"payload":{"id":17}}', "17", True),
        (b"\xff\x00", "17", False),
    ],
)
def test_keys_are_typed_as_people_write_them(key: bytes, text: str, same: bool) -> None:
    assert is_key(key, text) is same


def test_what_cannot_be_erased_is_told_before_anything_is_done(log: Log, book: Erasures) -> None:
    talks = declare()
    with talks.open(log) as hall:
        hall.execute("say", "t-1", words="a")
    for wrong in ("nonsense", "talks/0", "talks/x:1"):
        with pytest.raises(UsageError, match="position"):
            erase_records(log, book, [wrong], "request")
    with pytest.raises(RecordsMissingError, match="no record at log:talks/1:900"):
        erase_records(log, book, ["log:talks/1:900"], "request")
    with pytest.raises(RecordsMissingError, match="no topic"):
        erase_records(log, book, ["log:none/0:0"], "request")
    with pytest.raises(RecordsMissingError, match="the key 'nobody'"):
        erase_key(log, book, "talks", "nobody", "request")
    with pytest.raises(ErasureRefusedError):
        erase_key(log, book, "__consumer_offsets", "x", "request")
    assert book.found == {}
    assert {each.type for each in _facts(log, talks)} == {"Said"}


def _facts(log: Log, talks: Events[Talk]) -> list[tr.Fact]:
    with talks.open(log) as hall:
        return hall.history("t-1")


def test_no_event_may_be_called_as_erased_ones_are() -> None:
    @dataclass
    class Erased:
        words: str

    with pytest.raises(EventsDeclarationError, match="Erased"):
        tr.events("talks", Erased, state=Talk)


SCRIPT = """
import sys
import tailrace as tr
from tailrace.facts.erasures import Erasures
from tailrace.facts.excising import erase_key
with tr.connect(sys.argv[1]) as log:
    erase_key(log, Erasures(log), "talks", "t-1", "request")
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path / "broker") as started:
        yield started


STEPS = ["excising.begun", "excising.deleted", "excising.asked", "excising.cut"]


@pytest.mark.parametrize(
    "step",
    [each if number == 2 else pytest.param(each, marks=pytest.mark.crash) for number, each in enumerate(STEPS)],
)  # fmt: skip
def test_an_erasure_that_was_killed_is_finished(
    broker: BrokerThread, tmp_path: Path, step: str
) -> None:
    talks = declare()
    with tr.connect(broker.address) as log, talks.open(log, index=tmp_path / "index") as hall:
        for _ in range(3):
            hall.execute("say", "t-1", words=NEEDLE)
        killed = subprocess.run(
            [sys.executable, "-c", SCRIPT, broker.address],
            env={**os.environ, VARIABLE: step}, timeout=100, check=False,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL
        book = Erasures(log)
        try:
            book.refresh()
            (begun,) = book.found.values()
            assert begun.state == "begun"
            # As a part of `up` does: a look now and then, without waiting.
            until(lambda: finish(log, book, begun.id, patience=0.0).state == "done")
            until(lambda: files_with(tmp_path) == [])
            until(lambda: hall.state("t-1").value == Talk())
        finally:
            book.close()


def test_strangers_cannot_have_records_erased(broker: BrokerThread) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    with tr.connect(broker.address) as log:
        log.create_topic("orders", 1)
        with log.producer() as producer:
            producer.send("orders", key=b"1", value=b"kept")
        admin = AdminClient({"bootstrap.servers": broker.address})
        entry = ConfigEntry("tailrace.erase", "0:0", incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
        (answer,) = admin.incremental_alter_configs([wanted]).values()
        with pytest.raises(Exception, match="tailrace erase"):
            answer.result(30)
        assert [each.value for each in log.read("orders")] == [b"kept"]


def test_requests_that_make_no_sense_are_refused(log: Log) -> None:
    log.create_topic("orders", 1)
    with pytest.raises(RequestError, match="invalid config"):
        log.alter_topic("orders", {"tailrace.erase": "nonsense"})


def test_a_request_that_another_erasure_took_back_is_made_again(
    log: Log, book: Erasures, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.ensure_topic("notes", 1)
    with log.producer() as producer:
        producer.send("notes", value=NEEDLE.encode()).result(30)
    alter, asked = log.alter_topic, list[object]()

    def alter_later(topic: str, settings: dict[str, str | None]) -> None:
        asked.append(settings)
        if len(asked) > 1:  # the first is overwritten by whoever asks at the same time
            alter(topic, settings)

    monkeypatch.setattr(log, "alter_topic", alter_later)
    done = erase_records(log, book, ["notes/0:0"], "asked for")
    assert done.state == "done"
    assert len(asked) == 2
    assert [record.value for record in log.read("notes")] == [None]
    log.delete_topic("notes")
    assert verify(log, book, done.id).values == 0


def test_nobody_sees_an_index_that_is_being_read_again(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = tr.events("talks", Said, state=Talk, tags=("course",), partitions=1)

    @talks.evolve
    def talk(state: Talk, event: Said) -> Talk:
        return Talk((*state.words, event.words))

    begun, go = threading.Event(), threading.Event()
    begin = Partition.start_afresh

    def slowly(partition: Partition[Talk]) -> None:
        begin(partition)
        begun.set()
        assert go.wait(60)

    with talks.open(log) as hall, ThreadPoolExecutor(2) as threads:
        hall.append("t-1", [Said("a"), Said("b")])
        monkeypatch.setattr(Partition, "start_afresh", slowly)
        hall.owned()[0]._erased = "something"
        hall._owners.begin_again()
        try:
            assert begun.wait(60)
            events = threads.submit(lambda: hall.read(tr.matching(course="c1")).events)
            state = threads.submit(lambda: hall.state("t-1").value)
            assert not wait([events, state], 0.2).done
        finally:
            go.set()
        assert events.result(60) == (Said("a"), Said("b"))
        assert state.result(60) == Talk(("a", "b"))
