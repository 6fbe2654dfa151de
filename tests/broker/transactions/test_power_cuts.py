"""The power is cut under a running broker: what was answered as committed is there, whole.

Every file survives up to a moment of its own, from its last sync on. `tailrace.testing.power`
keeps account of the syncs and builds the disk that the next start finds.
"""

from __future__ import annotations

import os
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.broker.server import Broker
from tailrace.broker.settings import BrokerSettings
from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.client.fetcher import Fetcher
from tailrace.client.groups import Groups
from tailrace.client.writer import TransactionalWriter
from tailrace.testing.power import PowerFiles

Place = tuple[str, int]
PLACES: list[Place] = [("a", 0), ("a", 1), ("b", 0)]


@dataclass
class Story:
    """What a client wrote and what it was told."""

    chance: random.Random
    number: int = 0
    places: dict[int, list[Place]] = field(default_factory=dict)
    told: dict[int, bool] = field(default_factory=dict)

    def live(self, address: str, power: threading.Event) -> None:
        """Transactions until the power goes."""
        try:
            with TransactionalWriter(address, "writer") as writer:
                writer.init()
                while not power.is_set():
                    self.number += 1
                    places = self.chance.sample(PLACES, self.chance.randint(1, 3))
                    self.places[self.number] = places
                    for topic, index in places:
                        writer.send(topic, index, None, b"%d" % self.number)
                    writer.send_offsets("group", {("in", 0): self.number})
                    if self.chance.random() < 0.75:
                        writer.commit()
                        self.told[self.number] = True
                    else:
                        writer.abort()
                        self.told[self.number] = False
        except (ClientError, OSError):
            pass  # the power went

    def judge(self, address: str, told: dict[int, bool]) -> None:
        with Admin(address) as admin, Fetcher(address) as fetcher:
            ends = admin.end_offsets(PLACES)
            seen = {
                place: [
                    int(record.value or b"")
                    for record in fetcher.read_range(*place, 0, ends[place])
                ]
                for place in PLACES
            }
            offset = Groups(admin).offsets("group").get(("in", 0), 0)
        for place, values in seen.items():
            assert values == sorted(set(values)), f"{place}: {values}"
        visible = 0
        for number, places in self.places.items():
            found = {number in seen[place] for place in places}
            assert len(found) == 1, f"half of transaction {number} is there"
            if number in told:
                assert found == {told[number]}, f"transaction {number} was told otherwise"
            if found == {True}:
                visible = number
        assert offset == visible, "the offset did not move with the records"


def cut(disk: Path, following: Path, story: Story) -> dict[int, bool]:
    """Work on `disk` for a while, then cut the power; what the client knew just before."""
    files = PowerFiles(disk)
    for folder, _, names in os.walk(disk):
        files.sync_directory(folder)  # what the last cut left is on the disk
        for name in names:
            with open(f"{folder}/{name}", "rb") as file:
                files.sync_data(file.fileno())
    broker = Broker([disk], settings=BrokerSettings(), files=files)
    thread = threading.Thread(target=broker.run, daemon=True)
    thread.start()
    address = "{}:{}".format(*broker.address)
    with Admin(address) as admin:
        for topic, partitions in (("in", 1), ("a", 2), ("b", 1)):
            admin.ensure_topic(topic, partitions)
    power, done = threading.Event(), threading.Event()
    told: dict[int, bool] = {}
    client = threading.Thread(target=story.live, args=(address, power))
    client.start()
    time.sleep(story.chance.uniform(0.02, 0.4))

    def now() -> None:
        # On the broker's own thread: between two of its steps, like a real cut.
        told.update(dict(story.told))
        files.cut(following, story.chance)
        power.set()
        done.set()

    broker.call_from_thread(now)
    assert done.wait(30)
    client.join()  # its last transaction ends on a disk that is no more
    broker.stop()
    thread.join()
    files.release()
    for number in [one for one in story.told if one not in told]:
        del story.told[number]  # told by a broker that no longer exists
    return told


def lives(folder: Path, seed: int, cuts: int) -> None:
    print(f"seed {seed}")
    story = Story(random.Random(seed))
    disk = folder / "disk-0"
    disk.mkdir()
    for number in range(1, cuts + 1):
        following = folder / f"disk-{number}"
        told = cut(disk, following, story)
        disk = following
        with BrokerThread(disk, durable=False) as broker:
            with TransactionalWriter(broker.address, "writer") as writer:
                writer.init()  # ends what was left open
            story.judge(broker.address, told)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answered_commits_survive_power_cuts(tmp_path: Path, seed: int) -> None:
    lives(tmp_path, seed, cuts=3)


@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("round", range(10))
def test_answered_commits_survive_many_power_cuts(tmp_path: Path, round: int) -> None:
    lives(tmp_path, random.randrange(2**32), cuts=10)
