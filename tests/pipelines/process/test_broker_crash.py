"""kill -9 of the broker while views and streams run."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from pipelines.process.test_pipelines_crash import Running, inserted, wait_for_progress
from pipelines.shop import CUSTOMERS, ORDERS, recompute, shown, traffic
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.errors import ClientError
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.driver import last_row
from tailrace.testing.feed import ChangeFeed

pytestmark = [pytest.mark.crash, pytest.mark.spark]


@dataclass(frozen=True, slots=True)
class Killable:
    """A log that can be killed and comes back at the same address with its data."""

    bootstrap: str
    kill_and_restart: Callable[[], None]


@pytest.fixture(params=["tailrace", pytest.param("kafka", marks=pytest.mark.cluster)])
def killable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Killable]:
    if request.param == "kafka":
        from servers.kafka import Kafka, KafkaUnavailable

        try:
            cluster = Kafka(tmp_path)
        except KafkaUnavailable as reason:
            pytest.skip(f"needs a real Kafka: {reason}")

        def again() -> None:
            cluster.kill()
            cluster.restart()

        yield Killable(cluster.bootstrap, again)
        cluster.stop()
        return
    running = [BrokerProcess(tmp_path / "log")]
    address = running[0].address

    def restart() -> None:
        running[0].kill()
        running[0] = BrokerProcess(tmp_path / "log", listen=address)

    yield Killable(address, restart)
    running[0].kill()


@pytest.mark.timeout(900)
def test_a_killed_broker_loses_and_doubles_nothing(killable: Killable, tmp_path: Path) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    directory = tmp_path / "project"
    directory.mkdir()
    placed: list[tuple[int, str]] = []
    bootstrap = killable.bootstrap
    with ChangeFeed(bootstrap, source, [ORDERS, CUSTOMERS]) as feed:
        running = Running(bootstrap, source, directory)
        try:
            position = ""
            for number, changes in enumerate(traffic(43, 90)):
                placed += inserted(feed, changes)
                position = feed.transaction(*changes)
                if number % 30 == 20:
                    wait_for_progress(bootstrap, source, running)
                    time.sleep(random.random())
                    killable.kill_and_restart()
                running.keep_running()
            written: list[dict[str, str]] = []
            began = time.monotonic()
            while time.monotonic() - began < 400:
                running.keep_running()
                try:
                    with LogReader(bootstrap) as reader:
                        row = last_row(reader, source)
                        written = [
                            orjson.loads(value or b"")
                            for records in read_all(reader, f"{source}_placed")
                            for value in records.values
                        ]
                except ClientError:
                    continue
                if row and row.positions.get(source) == position and len(written) >= len(placed):
                    break
                time.sleep(0.3)
        finally:
            running.stop()
        said = running.log.read_text()[-3000:]
        assert row is not None and row.positions.get(source) == position, said  # noqa: PT018
        assert shown(bootstrap, f"{source}_open_orders") == recompute(feed)
    assert Counter((row["id"], row["amount"]) for row in written) == Counter(placed)
