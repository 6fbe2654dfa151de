"""Records that went bad on the disk are found when they are read, told, and never served."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tailrace.broker.embedded import BrokerThread
from tailrace.cli.broker import broker as broker_command
from tailrace.log.errors import CorruptSegmentError
from tailrace.log.reading import read_checked
from tailrace.testing.wire_client import WireClient, batch_of, values_of

COUNT = 60
STORAGE_ERROR = 56


def value(number: int) -> bytes:
    return b"%d:" % number + random.Random(number).randbytes(900)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log of several segments, stopped cleanly."""
    with BrokerThread(tmp_path / "log") as broker, WireClient(broker.address) as talk:
        talk.create("t", **{"internal.segment.bytes": "20000"})
        for number in range(COUNT):
            talk.produce("t", batch_of(value(number)))
    return tmp_path / "log"


def segments(directory: Path) -> list[Path]:
    return sorted((directory / "t-0").glob("*.log"))


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def batch_positions(path: Path) -> Iterator[tuple[int, int]]:
    """(position, size) of every batch of a whole file."""
    data, position = path.read_bytes(), 0
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        yield position, size
        position += size


def read_everything(address: str) -> tuple[dict[int, bytes], set[int]]:
    """Every offset asked for by itself: what came, and where an error was told."""
    found: dict[int, bytes] = {}
    refused: set[int] = set()
    with WireClient(address) as talk:
        for offset in range(COUNT):
            answer = talk.fetch("t", offset)
            if answer.error_code:
                assert answer.error_code == STORAGE_ERROR
                refused.add(offset)
                continue
            for number, got in enumerate(values_of(answer.records), offset):
                assert got is not None
                assert found.setdefault(number, got) == got
    return found, refused


@pytest.mark.parametrize(
    "place",
    ["first byte of a record", "last byte of a record", "length", "magic", "checksum", "count"],
)
def test_a_flipped_bit_in_a_cold_segment_is_found_told_and_not_served(
    directory: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = segments(directory)[1]
    base = int(path.stem)
    position, size = list(batch_positions(path))[3]
    within = {
        "first byte of a record": 61, "last byte of a record": size - 1, "length": 10,
        "magic": 16, "checksum": 19, "count": 59,
    }[place]  # fmt: skip
    flip(path, position + within, 3)
    with BrokerThread(directory) as broker:
        found, refused = read_everything(broker.address)
    assert refused == {base + 3}
    assert found == {n: value(n) for n in range(COUNT) if n != base + 3}
    (told,) = [each for each in caplog.records if "damaged" in each.message]
    assert (told.path, told.base_offset, told.last_offset) == (str(path), base + 3, base + 3)  # type: ignore[attr-defined]
    assert "restore the file" in told.hint  # type: ignore[attr-defined]
    assert (directory / "t-0" / "damaged-ranges").read_text().startswith(f"{base + 3} {base + 3} ")


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_anywhere_are_never_served(directory: Path, seed: int) -> None:
    chance = random.Random(seed)
    hit: set[int] = set()
    for path in chance.sample(segments(directory)[:-1], 2):
        place, (position, size) = chance.choice(list(enumerate(batch_positions(path))))
        # Base offset and leader epoch are outside the checksum, as in Kafka.
        flip(path, position + chance.choice([*range(8, 12), *range(16, size)]), chance.randrange(8))
        hit.add(int(path.stem) + place)
    with BrokerThread(directory) as broker:
        found, refused = read_everything(broker.address)
    assert refused == hit
    assert found == {n: value(n) for n in range(COUNT) if n not in hit}


def test_inspect_names_what_is_damaged(directory: Path) -> None:
    whole = CliRunner().invoke(broker_command, ["inspect", "--check", str(directory)])
    assert (whole.exit_code, "damaged" in whole.stdout) == (0, False)
    path = segments(directory)[1]
    position, size = list(batch_positions(path))[2]
    flip(path, position + 70)
    told = CliRunner().invoke(broker_command, ["inspect", "--check", "--json", str(directory)])
    assert told.exit_code == 1
    ((damage,),) = [row["damaged"] for row in json.loads(told.stdout)["partitions"]]
    offset = int(path.stem) + 2
    assert damage == {
        "path": str(path), "position": position, "end_position": position + size,
        "first_offset": offset, "last_offset": offset,
    }  # fmt: skip
    text = CliRunner().invoke(broker_command, ["inspect", "--check", str(directory)])
    assert f"damaged: t-0 offsets {offset} to {offset}, {path}" in text.stdout


def test_a_restored_file_is_served_again(directory: Path) -> None:
    path = segments(directory)[0]
    good = path.read_bytes()
    flip(path, 100)
    with BrokerThread(directory) as broker:
        assert read_everything(broker.address)[1] == {0}
    path.write_bytes(good)
    with BrokerThread(directory) as broker:
        found, refused = read_everything(broker.address)
    assert refused == set()
    assert len(found) == COUNT
    assert not (directory / "t-0" / "damaged-ranges").exists()


def test_a_page_that_comes_back_from_the_disk_is_checked_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BrokerThread(directory) as broker:
        assert read_everything(broker.address)[1] == set()
        flip(segments(directory)[0], 100)
        # Whether a page stays dropped, and whether asking brings it back, is the kernel's affair.
        monkeypatch.setattr("tailrace.broker.handlers.fetch.is_warm", lambda part: False)
        assert read_everything(broker.address)[1] == {0}


def test_what_is_whole_is_checked_once(directory: Path) -> None:
    with BrokerThread(directory) as broker:
        for _ in range(3):
            assert len(read_everything(broker.address)[0]) == COUNT
        partition = broker.broker.store.partition("t", 0)
        assert all(segment.unread_bytes == 0 for segment in partition.segments)


def test_readers_inside_the_broker_are_told_too(directory: Path) -> None:
    flip(segments(directory)[0], 100)
    with BrokerThread(directory) as broker:
        partition = broker.broker.store.partition("t", 0)
        with pytest.raises(CorruptSegmentError, match="records 0 to 0 are damaged"):
            read_checked(partition, 0, 100_000, partition.high_watermark)
        assert read_checked(partition, 1, 100_000, partition.high_watermark)
