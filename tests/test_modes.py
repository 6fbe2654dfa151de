"""What a project keeps is for its owner, whatever the umask; what a user's sinks write is not."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from log_helpers import batch
from tailrace import config, modes
from tailrace.broker.embedded import BrokerProcess
from tailrace.cli.doctor import examine
from tailrace.errors import ConfigValueError
from tailrace.log import archiver
from tailrace.log.store import Store
from tailrace.telemetry.part import Part


@pytest.fixture(autouse=True)
def careless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user who hides nothing, and a project that says nothing."""
    monkeypatch.delenv(modes.VARIABLE, raising=False)
    monkeypatch.setattr(modes, "_used", [])
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def filled(path: Path) -> None:
    with Store.open([path]) as store:
        topic = store.create_topic("t", 2, {"internal.segment.bytes": "150"})
        for number in range(5):
            topic.partitions[0].append(
                batch(b"x" * 90, producer_id=1, producer_epoch=0, base_sequence=number)
            )
        topic.partitions[0].append_marker(1, 0, False, 0)
        store.checkpoint()


@pytest.mark.parametrize(("text", "directory", "file"), [
    ("0700", 0o700, 0o600), ("0750", 0o750, 0o640), ("0770", 0o770, 0o660),
])  # fmt: skip
@pytest.mark.parametrize("umask", [0, 0o022, 0o027])
def test_everything_in_a_data_directory_is_for_those_the_mode_names(
    tmp_path: Path, text: str, directory: int, file: int, umask: int
) -> None:
    os.umask(umask)
    modes.use(text)
    filled(tmp_path / "a" / "data")
    paths = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert len(paths) > 15
    for path in paths:
        wanted = directory if path.is_dir() else file & ~umask
        assert mode(path) == wanted, path


def test_the_archive_is_private(tmp_path: Path) -> None:
    segment = tmp_path / "segment"
    segment.write_bytes(b"x")
    archiver.put(str(segment), str(tmp_path / "archive" / "t-0" / "1.log"))
    assert mode(tmp_path / "archive") == mode(tmp_path / "archive" / "t-0") == 0o700
    assert mode(tmp_path / "archive" / "t-0" / "1.log") == 0o600


def test_reports_are_private(tmp_path: Path) -> None:
    part = Part("shop", "source", "shop", "", tmp_path / ".tailrace")
    part.report("running")
    assert mode(part.report_path) == 0o600
    assert mode(part.report_path.parent) == mode(tmp_path / ".tailrace") == 0o700


def test_a_brokers_process_hides_what_it_writes(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "log") as broker:
        lines = Path(f"/proc/{broker.process.pid}/status").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("Umask:")] == ["0077"]


def test_directories_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    filled(tmp_path / "data")
    assert mode(tmp_path / "data") == 0o755
    assert mode(tmp_path / "data" / "t-0") == 0o700


def test_doctor_names_directories_that_are_open_to_others(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n[log]\ndirectory = "log"\n')
    for name in (".tailrace", "log"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
    found = [each for each in examine(tmp_path) if each.what == "modes"]
    assert [each.verdict for each in found] == ["note", "note"]
    assert str(tmp_path / ".tailrace") in found[0].found
    assert "chmod 0700" in found[0].meaning
    (tmp_path / ".tailrace").chmod(0o700)
    (tmp_path / "tailrace.toml").write_text(
        '[project]\nname = "p"\nmode = "0750"\n[log]\ndirectory = "log"\n'
    )
    (tmp_path / "log").chmod(0o750)
    assert not [each for each in examine(tmp_path) if each.what == "modes"]


@pytest.mark.parametrize("value", ['"0755"', '"0777"', "448", '"secret"'])
def test_a_mode_that_lets_everybody_in_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "tailrace.toml").write_text(f"[project]\nmode = {value}\n")
    with pytest.raises(ConfigValueError, match=r"project\.mode"):
        config.load(tmp_path)
