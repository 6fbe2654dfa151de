"""Numbered datagrams of a group: order, duplicates, gaps, and the topic sent the other way."""

from __future__ import annotations

import errno
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace as tr
from tailrace import sources
from tailrace.client.log import Log
from tailrace.sources.edges import sequences
from tailrace.sources.edges.datagrams import arriving, bound, sending
from tailrace.sources.edges.multicast import SEQUENCE_HEADER, Receiving
from tailrace.sources.edges.multicast_out import Places, Publishing
from tailrace.sources.edges.repair import RepairServer, ask
from tailrace.sources.edges.sequences import Sequence, pack, unpack
from tailrace.sources.errors import SourceDeclarationError

HERE = "127.0.0.1"


def multicast_works() -> bool:
    """Whether a datagram to a group comes back on this machine."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker, sending("239.7.4.1", HERE, 1) as giver:  # fmt: skip
            taker.bind(("239.7.4.1", 0))
            there = socket.inet_aton("239.7.4.1") + socket.inet_aton(HERE)
            taker.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, there)
            taker.settimeout(2)
            giver.sendto(b"x", taker.getsockname())
            return taker.recv(9) == b"x"
    except OSError:
        return False


needs_multicast = pytest.mark.skipif(
    not multicast_works(), reason="multicast over the loopback interface does not work here"
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        opened.create_topic("quotes", partitions=1)
        yield opened


@contextmanager
def receiving(log: Log, **settings: Any) -> Iterator[Receiving]:
    """An edge that listens; datagrams are handed to it by `take`."""
    edge = sources.Multicast("quotes", "239.7.4.2:0", interface=HERE, **settings)
    found = Receiving(edge, log)
    try:
        found.start()
        yield found
    finally:
        found.close()


def wait_for(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


def values(log: Log, topic: str = "quotes") -> list[bytes]:
    return [one.value or b"" for one in log.read(topic)]


@contextmanager
def repairing(known: dict[int, bytes]) -> Iterator[str]:
    """The sender's side of a repair: the numbers that it still has."""

    def find(source: int, first: int, last: int) -> Iterator[bytes | None]:
        for number in range(first, last + 1):
            yield pack(source, number, known[number]) if number in known else None

    server = RepairServer(HERE, 0, find)
    server.start()
    try:
        yield f"{HERE}:{server.address[1]}"
    finally:
        server.close()


class Unlucky(socket.socket):
    """A socket whose first calls fail as they do when descriptors or memory run out."""

    failures = 2

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.ENOBUFS, "no buffer space")

    def accept(self) -> tuple[socket.socket, Any]:
        self._fail()
        return super().accept()

    def recv(self, *arguments: int) -> bytes:
        self._fail()
        return super().recv(*arguments)


def test_repairs_go_on_after_an_error_of_the_system() -> None:
    server = RepairServer(HERE, 0, lambda source, first, last: iter([pack(source, first, b"x")]))
    server._sock = Unlucky(fileno=server._sock.detach())
    server.start()
    try:
        assert list(ask(server.address, 7, 3, 3, 10)) == [(3, b"x")]
    finally:
        server.close()


def test_datagrams_are_read_on_after_an_error_of_the_system() -> None:
    with bound(HERE, 0, 1 << 16) as plain, Unlucky(fileno=plain.detach()) as sock:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"one", sock.getsockname())
        found = arriving(sock)
        assert [next(found) for _ in range(3)] == [[], [], [b"one"]]
    assert list(found) == []


# --- sequences -----------------------------------------------------------------------------------


def in_order(sequence: Sequence) -> list[int]:
    return [number for number, _ in sequence.ready()]


def test_what_is_ahead_of_a_gap_waits_for_it() -> None:
    sequence = Sequence()
    assert sequence.take(5, b"", 1.0)
    assert in_order(sequence) == [5]
    for number in (8, 7, 7, 5, 10):
        assert sequence.take(number, b"", 2.0)
    assert in_order(sequence) == []
    assert sequence.waiting_since() == 2.0
    assert list(sequence.missing(100)) == [(6, 6), (9, 9)]
    assert list(sequence.missing(100, near=2)) == [(6, 9)]
    assert sequence.take(6, b"", 3.0, asked=True)
    assert in_order(sequence) == [6, 7, 8]
    sequence.give_up()
    assert in_order(sequence) == [10]
    assert (sequence.lost, sequence.repeated, sequence.filled) == (1, 2, 1)


def test_those_before_the_first_one_heard_are_asked_for_and_count_for_nothing() -> None:
    sequence = Sequence(catch_up=True)
    sequence.take(3, b"", 1.0)
    assert list(sequence.missing(2)) == [(0, 1), (2, 2)]
    sequence.skip(0, 0)
    sequence.take(1, b"", 1.0, asked=True)
    assert in_order(sequence) == [1]
    sequence.skip(2, 2)
    assert in_order(sequence) == [3]
    assert sequence.lost == 0


def test_a_leap_is_believed_when_the_next_comes_too() -> None:
    sequence = Sequence(10)
    far = 10 + 2 * sequences.LEAP
    assert not sequence.take(2**64 - 1, b"", 1.0)
    assert not sequence.take(far, b"", 1.0)
    assert sequence.take(10, b"", 1.0)
    assert in_order(sequence) == [10]
    assert not sequence.take(far, b"", 1.0)
    assert sequence.take(far + 1, b"", 1.0)
    sequence.give_up()
    assert in_order(sequence) == [far, far + 1]
    assert sequence.lost == far - 11


def test_what_waits_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "HELD_BYTES", 100)
    sequence = Sequence(0)
    for number in range(1, 50):
        assert sequence.take(number, b"x" * 30, 1.0)
    assert sequence.take(0, b"x" * 200, 1.0), "what is next has always room"
    assert in_order(sequence) == [0, 1, 2, 3]
    assert sequence.next == 4


@given(st.integers(1, 60), st.randoms(use_true_random=False), st.data())
def test_a_sorted_list_says_the_same(count: int, shuffle: random.Random, data: Any) -> None:
    """Datagrams in any order, some repeated, some lost for good, some repaired: what is handed out
    is what anybody has, sorted."""
    lost = data.draw(st.sets(st.integers(1, count), max_size=20))
    gone = {number for number in lost if shuffle.random() < 0.5}
    sent = [number for number in range(count + 1) if number not in lost]
    arrived = sent + [shuffle.choice(sent) for _ in range(10)]
    head, rest = arrived[:1], arrived[1:]
    shuffle.shuffle(rest)
    sequence = Sequence()
    out: list[int] = []
    for number in head + rest:
        assert sequence.take(number, b"", 0.0)
        out += in_order(sequence)
    for first, last in list(sequence.missing(3, near=1)):
        for number in range(first, last + 1):
            if number in gone:
                sequence.skip(number, number)
            else:
                sequence.take(number, b"", 0.0, asked=True)
            out += in_order(sequence)
    end = max(sent)
    assert out == [number for number in range(end + 1) if number not in gone]
    assert sequence.lost == len([number for number in gone if number < end])


# --- in ------------------------------------------------------------------------------------------


def test_a_lossy_feed_is_whole_in_the_log(log: Log) -> None:
    sent = {number: b"quote %d" % number for number in range(300)}
    chance = random.Random(4)
    gone = {40, 41, 250}
    arriving = [n for n in sent if n not in gone and chance.random() > 0.2] + [299]
    arriving += [chance.choice(arriving) for _ in range(30)]
    arriving.sort(key=lambda number: number + chance.random() * 5)
    kept = {number: payload for number, payload in sent.items() if number not in gone}
    with repairing(kept) as address, receiving(log, repair=address) as edge:
        for number in arriving:
            edge.take(pack(7, number, sent[number]))
        wait_for(lambda: edge.figures()["accepted"] == 297)
        now = edge.figures()
    assert values(log) == list(kept.values())
    first = next(iter(log.read("quotes")))
    assert (first.key, dict(first.headers)[SEQUENCE_HEADER]) == (b"7", b"0")
    assert now["lost"] == 3
    assert now["repeated"] > 0
    assert now["repaired"] == len(kept) - len(set(arriving))


def test_without_a_repair_a_gap_is_given_up_and_counted(log: Log) -> None:
    with receiving(log, patience="50 ms") as edge:
        for number in (0, 1, 5, 4):
            edge.take(pack(1, number, b"%d" % number))
        wait_for(lambda: edge.figures()["accepted"] == 4)
        assert edge.figures()["lost"] == 2
    assert values(log) == [b"0", b"1", b"4", b"5"]


def test_after_a_restart_nothing_is_twice_and_what_was_missed_is_a_gap(log: Log) -> None:
    known = {number: b"%d" % number for number in range(10)}
    with repairing(known) as address:
        with receiving(log, repair=address) as edge:
            for number in range(4):
                edge.take(pack(1, number, known[number]))
            wait_for(lambda: edge.figures()["accepted"] == 4)
        with receiving(log, repair=address) as edge:
            for number in (2, 9):
                edge.take(pack(1, number, known[number]))
            wait_for(lambda: edge.figures()["accepted"] == 6)
            assert edge.figures()["lost"] == 0
    assert values(log) == list(known.values())


def test_a_writer_that_was_fenced_writes_nothing_twice(log: Log) -> None:
    with receiving(log) as edge:
        for number in range(200):
            edge.take(pack(1, number, b"%d" % number))
            if number % 50 == 25:
                other = log.transactional_writer("tailrace.edge.quotes")
                other.init()
                other.close()
            time.sleep(0.002)
        wait_for(lambda: edge.figures()["accepted"] == 200)
    assert values(log) == [b"%d" % number for number in range(200)]


def test_a_record_too_large_for_its_topic_is_counted_and_the_rest_goes_on(log: Log) -> None:
    log.alter_topic("quotes", {"max.message.bytes": 1000})
    with receiving(log) as edge:
        for number in range(20):
            edge.take(pack(1, number, b"x" * 5000 if number == 7 else b"%d" % number))
        wait_for(lambda: edge.figures()["accepted"] == 19)
        assert edge.figures()["lost"] == 1
    assert len(values(log)) == 19


def test_any_bytes_are_survived(log: Log) -> None:
    chance = random.Random(1)
    with receiving(log, patience="10 ms") as edge:
        for number in range(500):
            data = chance.randbytes(chance.randrange(60))
            edge.take(data if number % 2 else sequences.MAGIC + data)
        edge.take(b"")
        edge.take(pack(2**32 - 1, 2**64 - 1, b"last"))
        edge.take(pack(5, 1, b"good"))
        wait_for(lambda: edge.figures()["accepted"] > 100)
        wait_for(lambda: b"good" in values(log))
        assert edge.figures()["refused"] >= 250
        assert edge.figures()["received"] == 503


def answers(reply: bytes) -> Iterator[str]:
    """A repair that answers each request with these bytes and hangs up."""
    with socket.create_server((HERE, 0)) as server:
        stopping = threading.Event()

        def serve() -> None:
            while not stopping.is_set():
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                with sock:
                    sock.recv(100)
                    sock.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"{HERE}:{server.getsockname()[1]}"
        finally:
            stopping.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    "reply",
    [b"", b"\0", struct.pack("!I", 2**32 - 1), struct.pack("!I", 3) + b"abc",
     struct.pack("!I", 16) + pack(9, 9, b"")],
)  # fmt: skip
def test_a_repair_that_answers_nonsense_is_given_up(log: Log, reply: bytes) -> None:
    made = contextmanager(answers)
    with made(reply) as address, receiving(log, repair=address, patience="100 ms") as edge:
        for number in (0, 3):
            edge.take(pack(1, number, b"%d" % number))
        wait_for(lambda: edge.figures()["accepted"] == 2)
        assert edge.figures()["lost"] == 2 or edge.figures()["repaired"] == 0


# --- out -----------------------------------------------------------------------------------------


@contextmanager
def publishing(log: Log, directory: Path, **settings: Any) -> Iterator[Publishing]:
    edge = sources.Multicast(
        "out", "239.7.4.3:7403", interface=HERE, send="quotes", repair=f"{HERE}:0", source=70,
        **settings,
    )  # fmt: skip
    found = Publishing(edge, log, directory)
    try:
        found.start()
        yield found
    finally:
        found.close()


def write(log: Log, numbers: range, *, commit: bool = True) -> None:
    with log.producer(transactional_id="test") as producer:
        producer.begin()
        for number in numbers:
            producer.send("quotes", b"%d" % number)
        producer.flush()
        (producer.commit if commit else producer.abort)()


def test_what_was_sent_is_found_again_in_the_log_by_its_number(log: Log, tmp_path: Path) -> None:
    for n in range(5):
        write(log, range(n * 10, n * 10 + 10))
        write(log, range(1000, 1003), commit=False)
    with publishing(log, tmp_path) as edge:
        wait_for(lambda: edge.figures()["accepted"] == 50)
        for first, last in ((0, 49), (17, 17), (45, 52), (50, 60)):
            found = list(edge.find(70, first, last))
            assert len(found) == last - first + 1
            for number, datagram in enumerate(found, first):
                assert datagram == (pack(70, number, b"%d" % number) if number < 50 else None)
        assert list(edge.find(99, 0, 2)) == [None] * 3
    with publishing(log, tmp_path) as edge:  # its numbers go on
        write(log, range(50, 60))
        wait_for(lambda: edge.figures()["accepted"] == 10)
        assert list(edge.find(70, 5, 5)) == [pack(70, 5, b"5")]
        assert list(edge.find(70, 55, 55)) == [pack(70, 55, b"55")]


def test_without_its_file_a_sender_never_uses_a_number_again(log: Log, tmp_path: Path) -> None:
    write(log, range(10))
    with publishing(log, tmp_path / "a") as edge:
        wait_for(lambda: edge.figures()["accepted"] == 10)
    with publishing(log, tmp_path / "b") as edge:
        write(log, range(10, 12))
        wait_for(lambda: edge.figures()["accepted"] == 2)
        found = [unpack(one) for one in edge.find(70, 0, 40) if one is not None]
    assert [payload for _, _, payload in found] == [b"10", b"11"]
    assert found[0][1] >= 10


def test_places_count_over_records_that_left() -> None:
    places = Places([(0, 0)])
    assert [places.advance(offset, 0) for offset in (0, 1, 3)] == [0, 1, 2]
    assert places.advance(10, 5) == 8  # up to five of the offsets 4 to 9 were records
    assert places.find(1, 0) == (0, 0)
    assert places.find(1, 2) == (8, 10)
    assert places.find(9, 0) is None
    assert places.number_at(10) == 8
    assert Places(places.pairs()).next == 9


def test_a_compacted_topic_is_not_sent(log: Log, tmp_path: Path) -> None:
    log.alter_topic("quotes", {"cleanup.policy": "compact"})
    with pytest.raises(tr.TailraceError, match="compacted"), publishing(log, tmp_path):
        pass


@needs_multicast
def test_a_topic_is_the_same_at_the_other_end(log: Log, tmp_path: Path) -> None:
    log.create_topic("copies", partitions=1)
    log.alter_topic("quotes", {"max.message.bytes": 200_000})
    with publishing(log, tmp_path) as out:
        assert out.repairs is not None
        taking = sources.Multicast(
            "copies", "239.7.4.3:7403", interface=HERE, repair=f"{HERE}:{out.repairs[1]}"
        )
        write(log, range(5))  # before anybody listens
        wait_for(lambda: out.figures()["accepted"] == 5)
        edge = Receiving(taking, log)
        edge.start()
        try:
            for n in range(5, 300, 50):
                write(log, range(n, n + 50))
            with log.producer() as producer:
                producer.send("quotes", b"y" * 100_000)  # no datagram is that large
            write(log, range(305, 310))
            wait_for(lambda: edge.figures()["accepted"] == 311)
            assert edge.figures()["lost"] == 0
        finally:
            edge.close()
    assert values(log, "copies") == values(log)


WRONG: list[tuple[Any, str]] = [
    (lambda: sources.Multicast("m", "127.0.0.1:1"), "no multicast group"),
    (lambda: sources.Multicast("m", "239.1.1.1"), "m"),
    (lambda: sources.Multicast("m", "239.1.1.1:1", patience="soon"), "duration"),
    (lambda: sources.Multicast("m", "239.1.1.1:1", repair="nowhere"), "address"),
    (lambda: sources.Multicast("m", "239.1.1.1:0", send="t"), "port"),
    (lambda: sources.Multicast("m", "239.1.1.1:1", send="t", topic="u"), "one topic"),
    (lambda: sources.Multicast("m", "239.1.1.1:1", source=2**32), "32 bits"),
]


@pytest.mark.parametrize(("declare", "why"), WRONG)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(declare: Any, why: str) -> None:
    with pytest.raises(SourceDeclarationError, match=why):
        declare()
