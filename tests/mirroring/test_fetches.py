"""Requests on their way to leaders, while other questions are asked."""

from __future__ import annotations

from pathlib import Path

from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import connect
from tailrace.mirroring.fetch import Fetches


def test_a_topic_is_looked_up_while_a_leader_owes_an_answer(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker, connect(broker.address) as log:
        log.create_topic("quiet")
        log.create_topic("new")
        with log.producer() as producer:
            producer.send("new", value=b"1").result(30)
        fetches = Fetches(broker.address, most_bytes=1 << 20)
        try:
            fetches.begin({("quiet", 0): 0})
            fetches.begin({("quiet", 0): 0, ("new", 0): 0})  # asks who leads "new"
            found: list[tuple[str, int]] = []
            while not found:
                found += [place for place, _, _ in fetches.receive(1.0)]
                fetches.begin({("quiet", 0): 0, ("new", 0): 0})
            assert found == [("new", 0)]
        finally:
            fetches.close()
