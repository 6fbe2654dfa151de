from __future__ import annotations

import random
import threading
import time

from servers.ticks import Driver
from tailrace.client.ranges import KafkaRanges, Range
from tailrace.client.ticks import last_row
from tailrace.serving.follower import Follower, run
from tailrace.serving.reader import Views
from tailrace.telemetry.part import Part, read_reports


def test_a_follower_on_a_broker_applies_committed_ticks_only(tailrace_broker, tmp_path):
    driver = Driver(tailrace_broker)
    chance = random.Random(1)
    reader = KafkaRanges(tailrace_broker)
    with Follower(tmp_path, reader, "shop") as follower, Views(tmp_path) as views:
        follower.step(0.05)
        assert follower.tick is None
        for _ in range(12):
            changes = {f"C{chance.randrange(8)}": chance.choice([None, 1, 2, 3]) for _ in range(5)}
            driver.write({"never": 1}, commit=False)
            driver.write(changes)
            while follower.tick != driver.tick:
                follower.step(1)
            rows = {row["country"]: row["n"] for row in views.rows("totals").rows}
            assert rows == driver.rows
    driver.close()
    reader.close()


def test_ranges_end_at_their_end_though_markers_stand_between(tailrace_broker):
    driver = Driver(tailrace_broker)
    for n in range(20):
        driver.write({"a": n, "b": n, "c": n, "d": n}, commit=n % 3 != 0)
    reader = KafkaRanges(tailrace_broker)
    bounds = reader.bounds("totals")
    assert set(bounds) == {0, 1}
    seen = 0
    for partition, (start, end) in bounds.items():
        following = start
        for chunk in reader.read([Range("totals", partition, start, end)]):
            seen += len(chunk.offsets)
            assert all(start <= offset < end for offset in chunk.offsets)
            following = chunk.following
        assert following >= end
    assert seen == 13 * 4
    assert reader.bounds("nothing") == {}
    row = last_row(reader, "shop")
    assert row is not None
    assert row.tick == 13
    driver.close()
    reader.close()


def test_a_follower_process_is_running_once_it_serves_a_tick(tailrace_broker, tmp_path):
    part = Part("views", "views", "shop", tailrace_broker, tmp_path)
    thread = threading.Thread(target=run, args=(part,), kwargs={"expected": True})
    thread.start()
    states = set()

    def state():
        reports = read_reports(tmp_path)
        states.add(reports[0]["state"] if reports else None)
        return reports[0]["state"] if reports else None

    while state() != "starting":
        time.sleep(0.01)
    driver = Driver(tailrace_broker)
    driver.write({"NL": 1})
    while state() != "running":
        time.sleep(0.01)
    with Views(tmp_path / "views") as views:
        assert views["totals"].get("NL") == {"country": "NL", "n": 1}
    driver.close()
    part.stopping.set()
    thread.join()
    assert read_reports(tmp_path)[0]["state"] == "stopped"
