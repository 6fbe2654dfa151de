"""What goes wrong around an owner: its disk, its clock, its neighbours, its callers' requests."""

from __future__ import annotations

import json
import logging
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

import tailrace as tr
from facts.test_kills import judge
from servers.accounts import Account, declare, deposit, rubbish
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.facts import messages
from tailrace.facts.errors import EventsDifferError, EventsTooLargeError
from tailrace.facts.index import LONGEST_STREAM
from tailrace.facts.links import NONCE_BYTES, PROOF_BYTES, prove
from tailrace.facts.membership import Directory
from tailrace.facts.opened import OpenedEvents


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        yield broker.address


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


# Disks ---------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_an_index_on_a_full_disk_loses_nothing_and_comes_back(
    address: str, small_disk: Path
) -> None:
    told: dict[str, int] = {}
    with (
        tr.connect(address) as log,
        declare("accounts", partitions=1).open(log, index=small_disk, timeout=3) as bank,
    ):

        def write(stream: str, number: int) -> bool:
            try:
                done = bank.execute(deposit, stream, amount=1, id=f"{stream}-{number}")
            except tr.errors.TailraceError as error:
                assert error.code in ("outcome-unknown", "owner-missing"), error.render()
                return False
            told[done.id] = done.version
            return True

        assert write("a", 0)
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(65536))
            except OSError:
                pass
        number = 1
        while number < 200 and write("a", number):
            number += 1
        ballast.unlink()
        deadline = time.monotonic() + 60
        while not write("a", number):  # the same id again: it is carried out once
            assert time.monotonic() < deadline
        for more in range(number + 1, number + 20):
            assert write("a", more)
        assert judge(log, "accounts", told) == {"a": len(told)}
        assert bank.state("a").value == Account("", len(told), len(told))


@pytest.mark.parametrize("damage", ["torn", "rubbish", "another"])
def test_a_damaged_index_is_read_again(address: str, tmp_path: Path, damage: str) -> None:
    index = tmp_path / "index"
    with tr.connect(address) as log:
        with declare("accounts", partitions=1).open(log, index=index) as bank:
            for number in range(50):
                bank.execute(deposit, "ab"[number % 2], amount=1, id=f"c{number}")
        (data,) = index.rglob("data.mdb")
        content = data.read_bytes()
        match damage:
            case "torn":
                data.write_bytes(content[: len(content) // 2])
            case "rubbish":
                data.write_bytes(random.Random(1).randbytes(len(content)))
            case "another":
                data.write_bytes(content[:8192] + bytes(len(content) - 8192))
        with declare("accounts", partitions=1).open(log, index=index) as bank:
            assert bank.state("a").value == Account("", 25, 25)
            assert bank.execute(deposit, "a", amount=1, id="c0").repeated
            assert bank.execute(deposit, "a", amount=1).version == 26


# Clocks --------------------------------------------------------------------------------------


class JumpingClock:
    """The machine's clock, a settable number of seconds off."""

    def __init__(self) -> None:
        self.off = 0.0

    def wall_ms(self) -> int:
        return int((time.time() + self.off) * 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def test_times_of_a_partition_never_go_back(address: str, tmp_path: Path) -> None:
    clock = JumpingClock()
    with tr.connect(address) as log:
        log._clock = clock
        declared = declare("accounts", partitions=1)
        with declared.open(log, index=tmp_path / "index") as bank:
            bank.execute(deposit, "a", amount=1)
            clock.off = 7200.0
            bank.execute(deposit, "a", amount=1)
            clock.off = -7200.0
            bank.execute(deposit, "a", amount=1)
        # Another owner, whose clock never jumped, keeps to what is in the log.
        clock.off = 0.0
        with declared.open(log, index=tmp_path / "other") as bank:
            bank.execute(deposit, "a", amount=1)
            times = [fact.at for fact in bank.history("a")]
            assert times == sorted(times)
            assert len(set(times[1:])) == 1  # all behind the jump stand at its time
            for version in (2, 3, 4):
                assert bank.state("a", at=times[1]).version == 4, version
            assert bank.state("a", at=times[0]).version == 1


# Topics that change behind our back ----------------------------------------------------------


def test_partitions_added_behind_our_back_change_nothing_and_are_told(
    address: str, tmp_path: Path
) -> None:
    declared = declare("accounts", partitions=2)
    with tr.connect(address) as log, declared.open(log, index=tmp_path / "index") as bank:
        streams = [f"s{number}" for number in range(20)]
        for stream in streams:
            bank.execute(deposit, stream, amount=1)
        with Admin(address) as admin:
            admin.add_partitions("accounts", 5)
        for stream in streams:  # each goes on where its events are
            assert bank.execute(deposit, stream, amount=1).version == 2
        assert judge(log, "accounts", {}) == dict.fromkeys(streams, 2)
        with pytest.raises(EventsDifferError) as wrong:
            declared.open(log, index=tmp_path / "other")
        assert "has 5 partitions and is declared with 2" in wrong.value.message
        assert wrong.value.hint


def test_an_event_beyond_the_limit_of_the_topic_fails_alone_also_when_the_limit_shrinks(
    address: str, tmp_path: Path
) -> None:
    declared = declare("accounts", partitions=1)
    with tr.connect(address) as log, declared.open(log, index=tmp_path / "index") as bank:
        with pytest.raises(EventsTooLargeError):
            bank.execute(rubbish, "a", what="big")
        log.alter_topic("accounts", {"max.message.bytes": "2000"})
        with pytest.raises(EventsTooLargeError) as wrong:
            bank.execute("open_account", "a", owner="x" * 5000)
        assert "2,000" in wrong.value.detail
        assert bank.execute(deposit, "a", amount=1).version == 1
        done = [bank.execute(deposit, "a", amount=1).version for _ in range(30)]
        assert done == list(range(2, 32))


# Commands ------------------------------------------------------------------------------------


def test_a_command_that_blocks_is_told_by_log_and_figure(
    address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    declared = declare("accounts", partitions=1)

    def wait(state: Account, seconds: float) -> None:
        time.sleep(seconds)

    declared.command(wait)
    with tr.connect(address) as log, declared.open(log, index=tmp_path / "index") as bank:
        bank.execute(deposit, "b", amount=1)
        (owner,) = bank.working()
        with caplog.at_level(logging.WARNING, "tailrace.facts.owner"):
            blocking = threading.Thread(
                target=bank.execute, args=("wait", "a"), kwargs={"seconds": 1.2}
            )
            blocking.start()
            # Who waits behind it is decided afterwards, and can be seen to wait.
            other = threading.Thread(target=bank.execute, args=(deposit, "b"), kwargs={"amount": 1})
            until(lambda: owner.waiting == 0, "the command is decided")
            other.start()
            # Looking is not deciding: it does not wait.
            assert bank.state("b").version >= 1
            blocking.join()
            other.join()
        assert bank.state("b").version == 2
        assert owner.longest_ms >= 1000
        (record,) = [r for r in caplog.records if "deciding takes long" in r.message]
        assert record.__dict__["seconds"] >= 1.0


# Hostile members -----------------------------------------------------------------------------


class Member:
    """A connection to an owner's door, by hand."""

    def __init__(self, address: str, secret: str | None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 10)
        nonce = self._exactly(NONCE_BYTES)
        if secret is not None:
            ours = os.urandom(NONCE_BYTES)
            self.socket.sendall(prove(secret, b"tailrace events client", nonce) + ours)
            self._exactly(PROOF_BYTES)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more
            data += more
        return data

    def ask(self, message: msgspec.Struct) -> messages.Answered:
        frame = messages.encode(message)
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._exactly(4), "big")
        return messages.decode_answered(self._exactly(size))

    def is_ended(self) -> bool:
        self.socket.settimeout(20)
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


@pytest.fixture
def door(address: str, tmp_path: Path) -> Iterator[tuple[OpenedEvents[Account], str, str]]:
    """An owner, the address of its door, and the secret of the group."""
    with (
        tr.connect(address) as log,
        declare("accounts", partitions=1).open(log, index=tmp_path / "index") as bank,
    ):
        directory = Directory(log.cluster(timeout=10), "accounts")
        table, _ = directory.look()
        directory.close()
        assert table is not None
        ((where, known),) = table.members.items()
        yield bank, where, known.secret


def test_a_stranger_is_turned_away_and_costs_nothing(
    door: tuple[OpenedEvents[Account], str, str],
) -> None:
    bank, where, _ = door
    chance = random.Random(5)
    for size in (1, 63, 64, 65, 100_000):
        with Member(where, None) as stranger:
            try:
                stranger.socket.sendall(chance.randbytes(size))
                if size < 64:
                    stranger.socket.shutdown(socket.SHUT_WR)
            except ConnectionError:
                pass
            assert stranger.is_ended()
    assert bank.execute(deposit, "a", amount=1).version == 1


def test_rubbish_behind_the_handshake_ends_its_own_link(
    door: tuple[OpenedEvents[Account], str, str],
) -> None:
    bank, where, secret = door
    chance = random.Random(6)
    look = messages.encode(messages.Look(1, 0, "state", stream="a"))
    frames = [
        (1 << 31).to_bytes(4, "big"),
        (4).to_bytes(4, "big") + b"\xc1\xff\x00\x01",
        *((n := chance.randrange(1, 200)).to_bytes(4, "big") + chance.randbytes(n) for _ in range(20)),
    ]  # fmt: skip
    for frame in frames:
        with Member(where, secret) as rude:
            rude.socket.sendall(frame)
            assert rude.is_ended()
    with Member(where, secret) as polite:
        polite.socket.sendall((len(look)).to_bytes(4, "big") + look[: len(look) // 2])
    assert bank.execute(deposit, "a", amount=1).version == 1


def test_requests_that_cannot_be_are_answered_with_an_error(
    door: tuple[OpenedEvents[Account], str, str],
) -> None:
    bank, where, secret = door
    right = messages.Decide(
        1, 0, "a", "id", True, False, "deposit", {"amount": 1}, [], None, None, None, None, None, -1
    )  # fmt: skip
    wrong: list[tuple[dict[str, object], str]] = [
        ({"partition": 7}, "partition-lost"),
        ({"partition": -1}, "partition-lost"),
        ({"stream": ""}, "usage"),
        ({"stream": "a\x00b"}, "usage"),
        ({"stream": "s" * (LONGEST_STREAM + 1)}, "usage"),
        ({"id": ""}, "usage"),
        ({"id": "i" * 5000}, "usage"),
        ({"command": "steal"}, "command-unknown"),
        ({"arguments": {"amount": "much"}}, "command-arguments"),
        ({"arguments": {"many": 1}}, "command-arguments"),
        ({"command": None, "events": [("Nothing", b"{}")]}, "event-unknown"),
        ({"command": None, "events": [("Deposited", b"[]")]}, "event-unreadable"),
    ]
    with Member(where, secret) as member:
        for changed, code in wrong:
            answer = member.ask(msgspec.structs.replace(right, **changed))
            assert isinstance(answer, messages.Failed), changed
            assert answer.parts["code"] == code
        look = messages.Look(2, 0, "everything", stream="a")
        answer = member.ask(look)
        assert isinstance(answer, messages.Failed)
        answer = member.ask(right)
        assert isinstance(answer, messages.Decided)
        assert answer.version == 1
    assert bank.state("a").value == Account("", 1, 1)


# A web application of several processes ------------------------------------------------------

APPLICATION = """
import os
from contextlib import asynccontextmanager
from pathlib import Path
from fastapi import FastAPI
import tailrace as tr
from servers.accounts import declare, deposit

@asynccontextmanager
async def lifespan(app):
    with tr.connect(os.environ["LOG"]) as log:
        with declare("accounts", partitions=4).open(log, index=os.environ["INDEX"]) as bank:
            app.state.bank = bank
            yield

app = FastAPI(lifespan=lifespan)

@app.post("/{stream}")
async def pay(stream: str, id: str):
    done = await app.state.bank.aexecute(deposit, stream, amount=1, id=id)
    return {"version": done.version, "pid": os.getpid()}
"""


@pytest.mark.crash
@pytest.mark.timeout(300)
def test_workers_of_a_web_application_decide_together(address: str, tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    tests = str(Path(__file__).parent.parent)
    environment = {
        **os.environ,
        "LOG": address,
        "INDEX": str(tmp_path / "index"),
        "PYTHONPATH": f"{tmp_path}:{tests}",
    }
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.set_inheritable(True)
        command = [
            sys.executable, "-m", "uvicorn", "application:app", "--workers", "4",
            "--fd", str(listening.fileno()), "--log-level", "error",
        ]  # fmt: skip
        served = subprocess.Popen(
            command, env=environment, pass_fds=[listening.fileno()], cwd=tmp_path
        )
        try:
            told: dict[str, int] = {}
            pids: set[int] = set()

            def pay(number: int) -> None:
                stream, command_id = f"s{number % 7}", f"c{number}"
                deadline = time.monotonic() + 100
                while True:
                    request = urllib.request.Request(f"{url}/{stream}?id={command_id}", b"")
                    try:
                        with urllib.request.urlopen(request, timeout=60) as answer:
                            found = json.load(answer)
                        break
                    except (urllib.error.URLError, ConnectionError):
                        assert time.monotonic() < deadline
                        time.sleep(0.05)
                told[command_id] = found["version"]
                pids.add(found["pid"])

            with ThreadPoolExecutor(12) as pool:
                list(pool.map(pay, range(300)))
            with tr.connect(address) as log:
                versions = judge(log, "accounts", told)
            assert sum(versions.values()) == 300
            assert pids
        finally:
            served.terminate()
            served.wait(60)
