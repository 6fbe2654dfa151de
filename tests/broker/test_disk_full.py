"""A full disk: producing is refused, reading goes on, and it ends by itself.

Run on a real file system of a few megabytes, which needs the right to mount one; else on
a file layer that refuses writes.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.log.files import Files
from tailrace.testing.wire_client import WireClient, batch_of, values_of

STORAGE_ERROR = 56


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_refuses_producers_and_recovers_when_there_is_space(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 << 20))
    written: list[bytes] = []
    with BrokerProcess(small_disk / "log") as broker, WireClient(broker.address) as client:
        client.create("t", retention_ms="-1")
        refused = 0
        for number in range(400):
            value = b"%d " % number + os.urandom(20_000)
            result = client.produce("t", batch_of(value))
            if result.error_code:
                assert result.error_code == STORAGE_ERROR, result
                refused += 1
                if refused > 5:
                    break
            else:
                assert result.base_offset == len(written)
                written.append(value)
        assert refused > 5
        assert read_all(client) == written
        ballast.unlink()
        for number in range(20):
            value = b"after %d " % number + os.urandom(20_000)
            result = client.produce("t", batch_of(value))
            assert result.error_code == 0, result
            assert result.base_offset == len(written)
            written.append(value)
        assert read_all(client) == written
        broker.kill()
    with BrokerProcess(small_disk / "log") as broker, WireClient(broker.address) as client:
        assert read_all(client) == written


def read_all(client: WireClient) -> list[bytes | None]:
    values: list[bytes | None] = []
    while True:
        found = client.fetch("t", len(values))
        assert found.error_code == 0, found
        more = values_of(found.records)
        if not more:
            return values
        values += more


class FullDisk(Files):
    """A file layer whose disk can be full."""

    full = False

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().pwrite(number, data, position)


def test_storage_errors_are_kafkas_and_end_with_their_cause(
    broker: BrokerThread, talk: WireClient
) -> None:
    talk.create("t")
    assert talk.produce("t", batch_of(b"before")).error_code == 0
    disk = FullDisk()
    broker.broker.store.shelf.files = disk
    disk.full = True
    for _ in range(3):
        assert talk.produce("t", batch_of(b"refused")).error_code == STORAGE_ERROR
        assert values_of(talk.fetch("t", 0).records) == [b"before"]
    disk.full = False
    assert talk.produce("t", batch_of(b"after")).base_offset == 1
    assert values_of(talk.fetch("t", 0).records) == [b"before", b"after"]
