"""Settings and fixtures that every suite shares."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

for name, examples in (("fast", 25), ("thorough", 1000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # the machine is shared: a slow example is no failure
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        print_blob=True,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


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


def _children() -> dict[int, str]:
    found: dict[int, str] = {}
    for child in psutil.Process().children(recursive=True):
        try:
            found[child.pid] = " ".join(child.cmdline()[:6])
        except psutil.Error:
            continue
    return found


def _sockets() -> set[str]:
    found: set[str] = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves a process, a thread that is no daemon, or a socket behind fails.

    Fixtures of a wider scope may start servers during the first test that asks for
    them; `keeps_processes` marks such fixtures' tests.
    """
    wide = {"kafka", "postgres_server", "redis_server", "mariadb_server", "spark", "browser"}
    names = set(request.fixturenames)
    if hasattr(request.node, "callspec"):
        # a test over several logs asks for the one it runs on by name
        names |= {each for each in request.node.callspec.params.values() if isinstance(each, str)}
    if wide & names or request.node.get_closest_marker("spark"):
        yield
        return
    processes, threads, sockets = _children(), set(threading.enumerate()), _sockets()
    yield
    gone = psutil.wait_procs(
        [p for p in psutil.Process().children(recursive=True) if p.pid not in processes], timeout=3
    )[1]
    left = {p.pid: " ".join(p.cmdline()[:6]) for p in gone if p.status() != psutil.STATUS_ZOMBIE}
    assert not left, f"processes left behind: {left}"
    strays = [t.name for t in set(threading.enumerate()) - threads if not t.daemon and t.is_alive()]
    assert not strays, f"threads left behind: {strays}"
    if not request.node.get_closest_marker("clients"):
        import gc

        gc.collect()
        assert not (_sockets() - sockets), "sockets left open"


@pytest.fixture
def checkout() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent
