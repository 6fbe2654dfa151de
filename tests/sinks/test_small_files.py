"""Files that sinks remember things in: what a crash may have left of them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tailrace.sinks.base import SinkPosition
from tailrace.sinks.beginnings import SinkBeginning, begin_now, begins_path
from tailrace.sinks.changes import KnownColumns
from tailrace.sinks.errors import SinkError
from tailrace.sinks.local import LocalPosition
from tailrace.sinks.requests import ask, take
from tailrace.testing.changelogs import MemoryLog


def columns_file(path: Path) -> bytes:
    known = KnownColumns(path)
    known.learn([orjson.dumps({"a": 1, "b": "x"})], {}, {})
    known.offsets = {0: 7}
    known.save()
    return path.read_bytes()


def test_columns_are_remembered(tmp_path: Path) -> None:
    columns_file(tmp_path / "sinks" / "copy.columns")
    known = KnownColumns(tmp_path / "sinks" / "copy.columns")
    assert known.columns == {"a": "BIGINT", "b": "STRING"}
    assert known.offsets == {0: 7}


def test_columns_in_a_torn_file_are_read_again_from_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "copy.columns"
    whole = columns_file(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        known = KnownColumns(path)
        assert (known.columns, known.offsets) == ({}, {})
    path.write_bytes(b"[]")
    assert KnownColumns(path).offsets == {}


def test_a_damaged_position_is_named_and_never_taken_for_the_beginning(tmp_path: Path) -> None:
    position = LocalPosition(tmp_path, "copy")
    position.claim()
    position.store(SinkPosition("t", 1, 5, {0: 3}))
    path = tmp_path / "sinks" / "copy.position"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(SinkError, match="damaged") as problem:
            LocalPosition(tmp_path, "copy").claim()
        assert "remove it" in problem.value.hint
    path.write_bytes(whole)
    again = LocalPosition(tmp_path, "copy")
    again.claim()
    assert again.load() == SinkPosition("t", 1, 5, {0: 3})


def test_a_damaged_beginning_is_named_and_never_taken_for_now(tmp_path: Path) -> None:
    one = SinkBeginning("copy", "v", "v", "stream")
    goal = SinkPosition("v", 1, 5, {0: 30})
    path = begins_path(tmp_path, "copy")
    path.parent.mkdir()
    whole = b'{"topic":"v","offsets":{"0":7}}'
    for data in (b"", whole[:-1], b"[]", b"7"):
        path.write_bytes(data)
        with pytest.raises(SinkError, match="damaged"):
            begin_now(tmp_path, MemoryLog(), "shop", one, goal)
    path.write_bytes(whole)
    assert begin_now(tmp_path, MemoryLog(), "shop", one, goal).offsets == {0: 7}


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    asked = ask(tmp_path, "copy", "repair", [b"k"])
    assert take(tmp_path, "copy") == asked
    assert take(tmp_path, "copy") is None
    assert list((tmp_path / "sinks").iterdir()) == []
