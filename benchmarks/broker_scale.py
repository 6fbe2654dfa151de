"""What grows and what must not: history, partitions, idle connections, cold readers.

    python -m benchmarks.broker_scale [--segments 20000]

One table; each figure beside its limit from the specification. The numbers used are
printed, because the free disk decides how long the history can be. Counts are checked.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

import psutil
from benchmarks import broker_load as load
from benchmarks.measure import touch_pages

from tailrace.broker.embedded import BrokerProcess, BrokerThread

SEGMENTS = 20_000
SEGMENT_BYTES = 1 << 20
PARTITIONS = 2_000
CONNECTIONS = 5_000
COLD_ROUNDS = 4


def run(segments: int = SEGMENTS) -> list[dict[str, object]]:
    """All measurements, printed as they come."""
    rows: list[dict[str, object]] = []
    print(f"{'figure':<62}{'value':>10} {'unit':<8}wanted")

    def tell(what: str, value: float, unit: str, limit: str, met: bool) -> None:
        rows.append({"what": what, "value": value, "unit": unit, "limit": limit, "met": met})
        print(
            f"{what:<62}{value:>10,.2f} {unit:<8}{limit:<12}{'' if met else 'missed'}", flush=True
        )

    scratch = Path(tempfile.mkdtemp(prefix="tailrace-scale-"))
    try:
        for part in (fixture, many_partitions, idle_connections, cold_fetch):
            part(scratch / part.__name__, tell)
            shutil.rmtree(scratch / part.__name__, ignore_errors=True)
        long_history(scratch / "history", tell, segments)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return rows


def fixture(directory: Path, tell: object) -> None:
    """The pytest fixture: a fresh broker in this process, until a topic is there."""
    assert callable(tell)
    took = []
    for number in range(10):
        before = time.perf_counter()
        with BrokerThread(directory / str(number)) as broker:
            load.create_topic(broker.address, "t", 1, {})
            took.append(time.perf_counter() - before)
    tell("fresh broker for a test, median of 10", statistics.median(took) * 1000, "ms", "< 100", statistics.median(took) < 0.1)  # fmt: skip


def many_partitions(directory: Path, tell: object) -> None:
    """A start over 2,000 partitions that all hold data."""
    assert callable(tell)
    with BrokerProcess(directory) as broker:
        records, _ = load.batch(100, 1000)
        for number in range(PARTITIONS // 500):
            load.create_topic(broker.address, f"t{number}", 500, {})
            with load.Line(broker.address) as line:
                for index in range(500):
                    line.sock.sendall(load.produce_frame(f"t{number}", index, records))
                    load.check_produced(line.read())
        broker.stop()
    before = time.perf_counter()
    with BrokerProcess(directory) as broker:
        took = time.perf_counter() - before
        memory = psutil.Process(broker.pid).memory_info().rss / 1e6
        tell(f"start over {PARTITIONS:,} partitions", took, "s", "< 1", took < 1)
        tell(f"memory with {PARTITIONS:,} partitions", memory, "MB", "< 150", memory < 150)


def idle_connections(directory: Path, tell: object) -> None:
    """Connections that asked once and then stay silent."""
    assert callable(tell)
    soft = _allow_files(CONNECTIONS + 200)
    wanted = min(CONNECTIONS, soft - 200)
    with BrokerProcess(directory) as broker:
        host, _, port = broker.address.rpartition(":")
        socks = [socket.create_connection((host, int(port)), timeout=30) for _ in range(wanted)]
        load.create_topic(broker.address, "t", 1, {})
        frame = bytes(load.fetch_frame("t", {0: 0}, 1 << 20, 0))
        for sock in socks:
            sock.sendall(frame)
        for sock in socks:
            sock.recv(65536)
        memory = psutil.Process(broker.pid).memory_info().rss / 1e6
        times = sorted(load.acknowledgement_seconds(broker.address, "t", 500))
        tell(f"memory with {wanted:,} idle connections", memory, "MB", "< 200", memory < 200)
        tell(f"acknowledgement p50 beside {wanted:,} idle connections", times[250] * 1000, "ms", "", True)  # fmt: skip
        for sock in socks:
            sock.close()


def _allow_files(count: int) -> int:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def cold_fetch(directory: Path, tell: object) -> None:
    """Acknowledgements while another client reads what is not in memory."""
    assert callable(tell)
    with BrokerProcess(directory) as broker:
        load.create_topic(broker.address, "cold", 1, {"segment.bytes": str(64 << 20)})
        load.create_topic(broker.address, "t", 1, {})
        sent = load.produce_load(broker.address, "cold", 1, 1024, 1_000_000, 1 << 30)
        chilled = True
        rounds: list[tuple[float, float, float]] = []
        for _ in range(COLD_ROUNDS):
            alone = sorted(load.acknowledgement_seconds(broker.address, "t", 3000))
            warm = _beside(broker.address, sent.messages)
            chilled = _chill(directory / "cold-0") and chilled
            cold = _beside(broker.address, sent.messages)
            alone_p99, warm_p99, cold_p99 = (
                times[int(len(times) * 0.99)] * 1000 for times in (alone, warm, cold)
            )
            rounds.append((alone_p99, warm_p99, cold_p99))
        p99 = [min(figures) for figures in zip(*rounds, strict=True)]
        every = "; ".join("/".join(f"{figure:.2f}" for figure in one) for one in rounds)
        tell(f"acknowledgement p99 alone (rounds {every})", p99[0], "ms", "", True)
        tell("acknowledgement p99 beside a reader of warm data", p99[1], "ms", "", True)
        tell("acknowledgement p99 beside a reader of cold data", p99[2], "ms", "", True)
        tell(
            f"cold reader of lowest priority beside it ÷ alone ({'' if chilled else 'cache could not be '}dropped)",
            p99[2] / p99[0], "×", "≤ 2", p99[2] <= 2 * p99[0],
        )  # fmt: skip


def _beside(address: str, messages: int) -> list[float]:
    reader = threading.Thread(
        target=lambda: load.consume_load(address, "cold", 1, messages, yielding=True)
    )
    reader.start()
    times: list[float] = []
    while reader.is_alive() or len(times) < 500:
        times += load.acknowledgement_seconds(address, "t", 300)
    reader.join()
    return sorted(times)


def _chill(directory: Path) -> bool:
    """Have the kernel forget the cached pages of these files."""
    for path in directory.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    return True


def long_history(directory: Path, tell: object, wanted: int) -> None:
    """Throughput on a log of many real segments, opened by a normal start, beside an empty
    one; produce, and consume of what was produced, in alternating rounds."""
    assert callable(tell)
    directory.mkdir(parents=True)
    free = shutil.disk_usage(directory).free
    segments = min(wanted, free // 2 // SEGMENT_BYTES)
    settings = {"log.segment.bytes": str(SEGMENT_BYTES), "log.retention.ms": "-1"}
    with BrokerProcess(directory / "long", settings=settings) as broker:
        load.create_topic(broker.address, "history", 1, {})
        size = segments * 1_000_000
        sent = load.produce_load(broker.address, "history", 1, 1024, 1_000_000, size)
        end = _counted(broker.address, "history", sent.messages)
        broker.stop()
    made = len(list((directory / "long" / "history-0").glob("*.log")))
    tell(f"history: {made:,} segments, {_size(directory / 'long') / 1e9:.1f} GB", made, "", f"{wanted:,}", made >= wanted)  # fmt: skip
    ends = {"long": end, "empty": 0}
    produced: dict[str, list[float]] = {"empty": [], "long": []}
    consumed: dict[str, list[float]] = {"empty": [], "long": []}
    for number in range(4):
        for kind in ("empty", "long"):
            before = time.perf_counter()
            with BrokerProcess(directory / kind, settings=settings) as broker:
                took = time.perf_counter() - before
                if number == 0:
                    what = "an empty log" if kind == "empty" else f"{made:,} segments"
                    tell(f"start over {what}", took, "s", "", True)
                    load.create_topic(broker.address, "history", 1, {})
                first = ends[kind]
                touch_pages(directory, 400_000_000)
                moved = load.produce_load(broker.address, "history", 1, 1024, 900_000, 300_000_000)
                ends[kind] = _counted(broker.address, "history", first + moved.messages)
                got = load.consume_load(broker.address, "history", 1, moved.messages, first=first)
                if (got.messages, got.bytes) != (moved.messages, moved.bytes):
                    raise SystemExit(f"sent {moved}, read {got}")
                if number:  # the first is a warm-up
                    produced[kind].append(moved.bytes / moved.seconds / 1e6)
                    consumed[kind].append(got.bytes / got.seconds / 1e6)
                broker.stop()
    for name, figures in (("produce", produced), ("consume", consumed)):
        ratio = max(figures["long"]) / max(figures["empty"])
        tell(f"{name} on an empty log", max(figures["empty"]), "MB/s", "", True)
        tell(f"{name} behind {made:,} segments", max(figures["long"]), "MB/s", "", True)
        tell(f"{name}, long ÷ empty", ratio, "×", "≥ 0.9", ratio >= 0.9)


def _counted(address: str, topic: str, wanted: int) -> int:
    end = load.end_offsets(address, topic, 1)
    if end != wanted:
        raise SystemExit(f"{wanted} messages were sent, the log holds {end}")
    return end


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    given = parser.parse_args()
    print(f"python -m benchmarks.broker_scale --segments {given.segments}")
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"load before: {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    run(given.segments)


if __name__ == "__main__":
    main()
