"""The rows kept beside a Postgres source are a cache: whatever cannot be trusted is begun again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace import unsynced
from tailrace.sources.errors import StateStorageError
from tailrace.sources.postgres.toast import RowStore


def kept(path: Path) -> bytes | None:
    store = RowStore(path)
    found = store.get("t", b"k")
    store.close()
    return None if found is None else found.json


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "rows"
    store = RowStore(path)
    store.put("t", b"k", b'{"body": "large"}')
    store.commit({"topic": 1})
    store.close()
    assert unsynced.WRITE_BACK.wait()
    return path


def test_a_restart_of_the_process_keeps_the_rows(written: Path) -> None:
    assert kept(written) == b'{"body": "large"}'


def test_a_copy_of_the_directory_is_not_believed(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "copy")
    assert kept(tmp_path / "copy") is None


def test_an_unknown_boot_is_never_the_same(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsynced, "_BOOT_ID", tmp_path / "no such file")
    monkeypatch.setenv(unsynced._UNKNOWN_BOOT, "unknown-1")
    store = RowStore(written)
    store.put("t", b"k", b"{}")
    store.commit({"topic": 1})
    store.close()
    assert kept(written) == b"{}"
    monkeypatch.setenv(unsynced._UNKNOWN_BOOT, "unknown-2")
    assert kept(written) is None


def test_pages_that_the_disk_refused_end_the_capture_and_begin_again(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    watching = unsynced.WriteBack(every=0.0, flush=refuse)
    monkeypatch.setattr("tailrace.sources.postgres.toast.WRITE_BACK", watching)
    store = RowStore(written)
    store.put("t", b"other", b"{}")
    store.commit({"topic": 2})
    assert watching.wait()
    store.put("t", b"third", b"{}")
    with pytest.raises(StateStorageError, match="cannot be trusted"):
        store.commit({"topic": 3})
    store.close()
    assert kept(written) is None
