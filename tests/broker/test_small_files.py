"""Small files beside the data that a crash, a bad disk or a hand left empty or torn."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.broker.errors import DamagedFileError
from tailrace.broker.producer_ids import ProducerIds
from tailrace.broker.server import Broker
from tailrace.broker.shares.settings import GroupSettings
from tailrace.errors import TailraceError
from tailrace.log.errors import ForeignDirectoryError, MetadataDamagedError
from tailrace.log.store import Store
from tailrace.testing.power import PowerFiles

TORN = [b"{", b'{"a": {', b"[]", b"\xff\xfe", b'"text"']
EMPTY = [b"", b"\0" * 64]


@pytest.mark.parametrize("data", EMPTY)
def test_empty_settings_of_groups_are_no_settings(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "group-settings.json"
    path.write_bytes(data)
    settings = GroupSettings(path)
    assert settings.groups == []
    settings.change("g", {"share.delivery.count.limit": "7"})
    assert GroupSettings(path).integer("g", "share.delivery.count.limit") == 7


@pytest.mark.parametrize("seed", range(5))
def test_settings_of_groups_outlive_a_power_cut(tmp_path: Path, seed: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    files = PowerFiles(disk)
    files.sync_directory(disk)
    path = disk / "group-settings.json"
    GroupSettings(path, files=files).change("g", {"share.delivery.count.limit": "7"})
    files.cut(tmp_path / "after", random.Random(seed))
    files.release()
    after = GroupSettings(tmp_path / "after" / path.name)
    assert after.integer("g", "share.delivery.count.limit") == 7


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *[("group-settings.json", data) for data in TORN],
        # Never left empty by a crash: who kept records for ever would lose them after a week.
        *[("dynamic-settings.json", data) for data in TORN + EMPTY],
        *[("meta.properties", data) for data in (b"\xff\xfe\x00{", b"", b"\0" * 64)],
    ],
)
def test_torn_settings_are_named(tmp_path: Path, name: str, data: bytes) -> None:
    Store.open([tmp_path]).close()
    (tmp_path / name).write_bytes(data)
    with pytest.raises((DamagedFileError, MetadataDamagedError), match=name) as caught:
        Broker([tmp_path], host=None)
    assert caught.value.hint
    assert (tmp_path / name).read_bytes() == data
    (tmp_path / name).unlink()
    if name == "meta.properties":
        return
    Store.open([tmp_path]).close()  # nothing was left locked


@pytest.mark.parametrize("data", [*TORN, *EMPTY])
def test_settings_are_taken_from_a_directory_whose_file_is_whole(
    tmp_path: Path, data: bytes
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    broker = Broker(disks, host=None)
    broker.alter_settings({"log.retention.ms": "12345"})
    broker.call_soon(broker.stop)
    broker.run()
    (disks[0] / "dynamic-settings.json").write_bytes(data)
    broker = Broker(disks, host=None)
    assert broker.settings.text("log.retention.ms") == "12345"
    broker.call_soon(broker.stop)
    broker.run()


@pytest.mark.parametrize("data", [b"", b"\0\0", b"12x", b"\xff", b"{}"])
def test_producer_ids_are_never_given_twice_for_a_torn_file(tmp_path: Path, data: bytes) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk in disks:
        disk.mkdir()
    first = [ProducerIds(disks).next() for _ in range(3)]
    (disks[0] / "producer-ids").write_bytes(data)
    assert ProducerIds(disks).next() > max(first)
    for disk in disks:
        (disk / "producer-ids").write_bytes(data)
    with pytest.raises(DamagedFileError, match="producer-ids"):
        ProducerIds(disks)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(120))


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:25])


def _without_directory(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("directory.id")))


@pytest.mark.parametrize("spoil", [_empty, _zeros, _half, _without_directory, Path.unlink])
def test_a_directory_that_lost_its_identity_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    with Store.open([tmp_path]) as store:
        store.create_topic("t")
    spoil(tmp_path / "meta.properties")
    before = (tmp_path / "meta.properties").exists()
    with pytest.raises(TailraceError, match=r"meta\.properties|has format") as caught:
        Store.open([tmp_path])
    assert caught.value.hint
    assert (tmp_path / "meta.properties").exists() == before


def test_an_empty_identity_alone_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    with pytest.raises(MetadataDamagedError, match=r"meta\.properties is damaged"):
        Store.open([tmp_path])


def test_a_directory_of_another_log_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        Store.open([tmp_path / name]).close()
    with pytest.raises(ForeignDirectoryError, match="another log"):
        Store.open([tmp_path / "a", tmp_path / "b"])
    Store.open([tmp_path / "a"]).close()


def test_a_copy_of_a_directory_is_refused_beside_it(tmp_path: Path) -> None:
    Store.open([tmp_path / "a"]).close()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(ForeignDirectoryError, match="copy"):
        Store.open([tmp_path / "a", tmp_path / "b"])
