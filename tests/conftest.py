"""Settings and fixtures that every suite shares."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hundreds of tests start processes of their own, and each that may not keep its compiled modules
# compiles all it imports again: five times the processor time of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

for name, examples in (("fast", 25), ("thorough", 1000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # the machine is shared: a slow example is no failure
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        # A failure is told with its case, and never hidden by drawing the same cases for ever
        # (which is Hypothesis's way where the variable CI is set).
        print_blob=True,
        derandomize=False,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A random test that fails has time to find and print its smallest case: Hypothesis looks
    for it for up to five minutes, and a test that is cut off prints nothing."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)) and not item.get_closest_marker(
            "timeout"
        ):
            item.add_marker(pytest.mark.timeout(600))


# What a run keeps for others in the directory for temporary files is its own: Spark's expressions
# are computed by a JVM that is found there (`pipelines.catalyst.door`), and runs beside one another
# would end one another's. The directories of tests stay where pytest puts them.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
own_directory = os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="tr-")
os.chmod(own_directory, 0o711)  # a database that is another user's reaches its files in it


def pytest_unconfigure() -> None:
    """The JVM that computes Spark's expressions ends with the run that shares it."""
    if "tailrace.pipelines.spark.catalyst.door" in sys.modules:
        from tailrace.pipelines.spark.catalyst import client, door

        client.close()
        door.end()
    shutil.rmtree(own_directory, ignore_errors=True)


# The second compiler of a JVM takes half of its processor time where it runs for seconds only.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1"

# A shell starts what runs in its background deaf to Ctrl-C, and programs that tests start and
# interrupt would be deaf too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Apache Kafka of one node."""
    from servers.kafka import Kafka, KafkaUnavailable

    try:
        cluster = Kafka(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield cluster.bootstrap
    cluster.stop()


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """One Spark session for all tests that need one; with Spark's Kafka connector where a
    test of both readers runs, if it can be had."""
    from servers.spark_kafka import ConnectorUnavailable, connector_jars
    from tailrace.pipelines.spark import session
    from tailrace.pipelines.streams.source import register_log

    conf: dict[str, str] = {}
    if any("test_readers" in item.nodeid for item in request.session.items):
        with suppress(ConnectorUnavailable):
            conf["spark.jars"] = ",".join(str(path) for path in connector_jars())
    directory = tmp_path_factory.mktemp("spark")
    running = session.start("tests", directory, master="local[2]", conf=conf)
    register_log(running)
    yield running
    running.stop()


PATIENCE = 60.0  # seconds until what a test leaves is a leak; a busy machine closes things late


def _children() -> set[int]:
    """The numbers of all descendants. Asked of the kernel by parent where it knows: this is
    done twice for each of thousands of tests, and a look at every process takes 7 ms."""
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        of = waiting.pop()
        try:
            for task in os.listdir(f"/proc/{of}/task"):
                with open(f"/proc/{of}/task/{task}/children") as listed:
                    waiting += (new := set(map(int, listed.read().split())) - found)
                found |= new
        except FileNotFoundError:
            if of == os.getpid():  # this kernel does not tell
                return {child.pid for child in psutil.Process().children(recursive=True)}
        except OSError:
            continue  # it has ended
    return found


def _processes(numbers: Iterable[int]) -> Iterator[psutil.Process]:
    for number in numbers:
        with suppress(psutil.Error):
            yield psutil.Process(number)


def _shared() -> set[int]:
    """The JVM that computes Spark's expressions: the tests of a run share it."""
    door = sys.modules.get("tailrace.pipelines.spark.catalyst.door")
    return set() if door is None else {each.pid for each in door._started_here}


def _started_since(before: set[int]) -> list[psutil.Process]:
    """Descendants that are new, leaving out what older ones (Spark, a database) started."""
    found = []
    for child in _processes(_children() - before - _shared()):
        with suppress(psutil.Error):
            if not any(parent.pid in before for parent in child.parents()):
                found.append(child)
    return found


def _words(process: psutil.Process) -> str:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        # A process that is just being executed has a name before it has words.
        return " ".join(process.cmdline()[:6]) or process.name()
    except psutil.Error:
        return ""


def _sockets() -> dict[str, int]:
    """The open sockets of this process: what the kernel calls each, and a descriptor of it."""
    found: dict[str, int] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:"):
            found[target] = int(name)
    return found


def _ports(processes: Iterable[psutil.Process]) -> set[int]:
    found: set[int] = set()
    for process in processes:
        try:
            found |= {each.laddr.port for each in process.net_connections("inet") if each.laddr}
        except psutil.Error:
            continue
    return found


def _listening(sockets: Iterable[int]) -> set[int]:
    """The ports on which this process itself listens: a broker that many tests share."""
    found: set[int] = set()
    for descriptor in sockets:
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.add(copy.getsockname()[1])
    return found


def _place(descriptor: int) -> tuple[object, object]:
    """Both ends of a socket: ports, or the process at the other end of a Unix socket."""
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family == socket.AF_UNIX:
            credentials = copy.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return copy.getsockname(), struct.unpack("3i", credentials)[0]
        return copy.getsockname()[1], copy.getpeername()[1]


def _leaked(before: dict[str, int], listening: set[int], lasting: set[int]) -> list[str]:
    """New sockets, without those to or from a server that outlives the test."""
    new = {name: each for name, each in _sockets().items() if name not in before}
    if not new:
        return []
    known: set[object] = {*listening, *_ports(_processes(lasting)), *lasting}
    leaked = []
    for name, descriptor in new.items():
        try:
            here, there = _place(descriptor)
        except OSError:  # connected to nothing
            here, there = "", _what_it_is(descriptor)
        if not {here, there} & known:
            leaked.append(f"{name} {here} → {there}{_holders(descriptor)}")
    return leaked


def _what_it_is(descriptor: int) -> str:
    """For a socket that has no other end: its kind, its own address, its state by its number."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            state = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
            told = f"{copy.family.name} {copy.type.name} {copy.getsockname()} in state {state}"
    except OSError as problem:
        told = str(problem)
    return told


def _holders(descriptor: int) -> str:
    """Who holds the socket, if Python knows it."""
    for one in gc.get_objects():
        if type(one) is socket.socket and one.fileno() == descriptor:
            holders = [type(each) for each in gc.get_referrers(one)]
            return " held by " + ", ".join(f"{each.__module__}.{each.__name__}" for each in holders)
    return ""


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves a process, a thread that is no daemon, or a socket behind fails.

    Tests that ask for a fixture of a wider scope are left out: it may start its server
    during any of them. Sockets to a server that ran before the test are no leak: its
    clients, shared by many tests, connect when they like.
    """
    wide = {
        "kafka",
        "postgres_server",
        "redis_server",
        "mariadb_server",
        "mysql_server",
        "spark",
        "browser",
    }
    names = set(request.fixturenames)
    if hasattr(request.node, "callspec"):
        # a test over several logs asks for the one it runs on by name
        names |= {each for each in request.node.callspec.params.values() if isinstance(each, str)}
    if wide & names or request.node.get_closest_marker("spark"):
        yield
        return
    processes, threads, sockets = _children(), set(threading.enumerate()), _sockets()
    listening = _listening(sockets.values())
    yield
    deadline = time.monotonic() + PATIENCE
    while left := {
        child.pid: words for child in _started_since(processes) if (words := _words(child))
    }:
        assert time.monotonic() < deadline, f"processes left behind: {left}"
        time.sleep(0.02)
    while strays := [each.name for each in set(threading.enumerate()) - threads if not each.daemon]:
        assert time.monotonic() < deadline, f"threads left behind: {strays}"
        time.sleep(0.02)
    lasting = (processes | _children() if processes else set()) | _shared()
    pause = 0.05
    while leaked := _leaked(sockets, listening, lasting):
        gc.collect()  # a socket that only garbage holds is closed by this
        assert time.monotonic() < deadline, f"sockets left open: {leaked}"
        time.sleep(pause)
        pause = min(pause * 2, 2)  # beside Spark a collection takes its time


@pytest.fixture
def checkout() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent
