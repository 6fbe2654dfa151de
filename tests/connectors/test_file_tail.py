"""Log files that are rotated, copied, truncated and packed: every line once, in order."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors import FileTail, testing
from tailrace.connectors.common import common
from tailrace.connectors.file_tail import base, family
from tailrace.connectors.lines import LinePattern, last_end, split
from tailrace.connectors.offsets import StoredOffsets, canonical

FAST = {"scan.interval.ms": "10", "quiet.ms": "40", "multiline.timeout.ms": "40"}


class Following:
    """A task and the offsets it has committed; `crash` begins again from those."""

    def __init__(self, path: Path | str, **settings: str) -> None:
        given = {name.replace("__", "."): value for name, value in settings.items()}
        text = {"name": "t", "connector.class": "FileTail", "path": str(path), "topic": "lines", **FAST, **given}  # fmt: skip
        self.settings: dict[str, Any] = {**common("source").typed(text), **FileTail.config.typed(text)}  # fmt: skip
        self.stored = StoredOffsets("t")
        self.values: list[Any] = []
        self.headers: list[Any] = []
        self.begin()

    def begin(self) -> None:
        self.task = FileTail.Task()
        self.task.start(self.settings, self.stored)

    def crash(self) -> None:
        self.task.stop()
        self.begin()

    def poll(self, commit: bool = True) -> bool:
        records = self.task.poll() or []
        if commit:
            for one in records:
                key = self.stored.key(canonical(one.partition))
                self.stored.apply(key, orjson.dumps(dict(one.offset)))
            self.values += [one.value for one in records if one.topic]
            self.headers += [one.headers for one in records if one.topic]
        return bool(records)

    def read(self, seconds: float = 0.0) -> list[Any]:
        """Everything there is now, and what comes within a time."""
        until = time.monotonic() + seconds
        time.sleep(0.012)
        while self.poll() or time.monotonic() < until:
            pass
        return self.values


def test_lines_are_read_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    following = Following(path)
    assert following.read() == []
    path.write_text("one\ntwo\nthr")
    assert following.read() == ["one", "two"]
    with path.open("a") as file:
        file.write("ee\r\nfour\n")
    assert following.read() == ["one", "two", "three", "four"]


def test_a_crash_reads_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("".join(f"line {n}\n" for n in range(1000)))
    following = Following(path, batch__bytes="1024")
    for _ in range(5):
        following.poll()
        following.poll(commit=False)
        following.crash()
    assert following.read() == [f"line {n}" for n in range(1000)]


def test_a_renamed_file_is_read_until_it_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("a\n")
    following = Following(path)
    following.read()
    with path.open("a") as old:
        path.rename(tmp_path / "app.log.1")
        path.write_text("c\n")
        old.write("b\n")
    assert following.read(0.1) == ["a", "b", "c"]


def test_rotation_while_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("a\nb\n")
    following = Following(path)
    following.poll()
    following.task.stop()
    time.sleep(0.01)
    with path.open("a") as file:
        file.write("c\n")
    path.rename(tmp_path / "app.log.2")
    path.write_text("d\n")  # came and went unseen
    path.rename(tmp_path / "app.log.1")
    path.write_text("e\n")
    following.begin()
    assert following.read(0.1) == ["a", "b", "c", "d", "e"]


def test_older_rotated_files_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "app.log.1").write_text("old\n")
    os.utime(tmp_path / "app.log.1", (1, 1))
    path = tmp_path / "app.log"
    path.write_text("a\n")
    following = Following(path)
    following.read()
    following.crash()
    assert following.read(0.1) == ["a"]


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_copy_and_truncate(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "app.log"
    path.write_text("".join(f"line {n}\n" for n in range(100)))
    following = Following(tmp_path / pattern)
    following.read()
    shutil.copy(path, tmp_path / "app.log.1")
    os.truncate(path, 0)
    following.read(0.05)
    with path.open("a") as file:
        file.write("new\n")
    assert following.read(0.1) == [f"line {n}" for n in range(100)] + ["new"]


def test_a_copy_gives_what_was_truncated_away_unread(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("".join(f"line {n}\n" for n in range(100)))
    following = Following(tmp_path / "app.log*")
    following.read()
    following.task.stop()
    with path.open("a") as file:
        file.write("late\n")
    shutil.copy(path, tmp_path / "app.log.1")
    path.write_text("new\n")
    following.begin()
    found = following.read(0.2)
    assert sorted(found) == sorted([*(f"line {n}" for n in range(100)), "late", "new"])


def test_a_truncated_file_that_grew_past_its_old_size_is_another(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("short\n")
    following = Following(path)
    following.read()
    path.write_text("a much longer line than before\nand one more\n")
    assert following.read() == ["short", "a much longer line than before", "and one more"]


def test_packed_files_go_on_where_the_plain_one_was(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    lines = [f"line {n}" for n in range(500)]
    path.write_text("".join(f"{line}\n" for line in lines))
    following = Following(tmp_path / "app.log*", batch__bytes="1024")
    following.poll()
    assert 0 < len(following.values) < 500
    following.task.stop()
    with gzip.open(tmp_path / "app.log.1.gz", "wt") as packed:
        packed.write(path.read_text())
    path.unlink()
    path.write_text("new\n")
    following.begin()
    assert sorted(following.read(0.1)) == sorted([*lines, "new"])


def test_a_packed_file_that_is_not_whole_waits(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(os.urandom(20).hex().encode() + b"\n" for _ in range(3000)))
    path = tmp_path / "old.log.gz"
    path.write_bytes(packed[:-2000])
    following = Following(tmp_path / "*.gz")
    following.read(0.05)
    path.write_bytes(packed)
    following.read(0.1)
    assert following.values == gzip.decompress(packed).decode().splitlines()


def test_files_with_the_same_beginning_are_not_confused(tmp_path: Path) -> None:
    banner = "# " + "=" * 300 + "\n"
    path = tmp_path / "app.log"
    path.write_text(banner + "a\n")
    following = Following(tmp_path / "app.log*")
    following.read()
    path.rename(tmp_path / "app.log.1")
    path.write_text(banner + "b\n")
    assert following.read(0.2) == [banner[:-1], "a", banner[:-1], "b"]


@pytest.mark.parametrize(
    ("match", "pattern", "text", "records"),
    [
        ("start", r"^\d\d\d\d-", "2026-1 a\n  at x\n  at y\n2026-2 b\n", ["2026-1 a\n  at x\n  at y", "2026-2 b"]),
        ("continue", r"^\s", "a\n  x\nb\n", ["a\n  x", "b"]),
        ("start", "^BEGIN", "loose\nBEGIN 1\n", ["loose", "BEGIN 1"]),
    ],
)  # fmt: skip
def test_records_of_several_lines(tmp_path: Path, match: str, pattern: str, text: str, records: list[str]) -> None:  # fmt: skip
    path = tmp_path / "app.log"
    path.write_text(text)
    following = Following(path, multiline__pattern=pattern, multiline__match=match)
    following.poll()
    following.crash()
    assert following.read(0.2) == records
    with path.open("a") as file:
        file.write("2026-3 BEGIN c\n")
    assert following.read(0.2)[-1].endswith("2026-3 BEGIN c")


def test_a_pattern_that_backtracks_elsewhere_costs_what_its_line_does() -> None:
    pattern = LinePattern("^(a|aa)+$")
    began = time.monotonic()
    assert not pattern.found("a" * 500 + "b")
    assert time.monotonic() - began < 5
    for number in range(300):
        pattern.found("".join(chr(0x4E00 + number * 20 + n) for n in range(20)))
    assert LinePattern("x|ERROR").found("an ERROR here")
    with pytest.raises(ValueError):
        LinePattern("(")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "app.log"
    path.write_bytes("grüße\nzwölf Ċ\n".replace("Ċ", "x").encode(encoding))
    following = Following(path, encoding="utf-8" if encoding == "utf-8-sig" else encoding)
    assert following.read() == ["grüße", "zwölf x"]


def test_bytes_that_are_no_text_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"good\n\xff\xfebad\n")
    assert Following(path).read() == ["good", b"\xff\xfebad"]
    found = testing.run(FileTail, {"path": str(path), "topic": "t", **FAST})
    assert found.values == [b"good", b"\xff\xfebad"]


def test_long_lines_come_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("é" * 1000 + "\nshort\n")
    following = Following(path, line__max__bytes="256", batch__bytes="1024")
    following.read()
    assert "".join(following.values) == "é" * 1000 + "short"
    assert all(len(one.encode()) <= 256 for one in following.values)
    assert following.headers[0] == () == following.headers[-1]
    assert following.headers[1] == (("tailrace.continued", "true"),)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "gb18030", "euc-jp"])
def test_a_long_line_is_cut_between_characters(tmp_path: Path, encoding: str) -> None:
    text = "a" + "\U0001f30a語" * 300 if encoding != "euc-jp" else "a" + "語" * 600
    path = tmp_path / "app.log"
    path.write_bytes((text + "\nshort\n").encode(encoding))
    following = Following(path, line__max__bytes="256", batch__bytes="1024", encoding=encoding)
    following.read()
    assert "".join(following.values) == text + "short"


def test_what_is_known_of_a_packed_file_outlives_the_inode_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("a\nb\n")
    following = Following(tmp_path / "app.log*")
    following.read()
    with gzip.open(tmp_path / "app.log.1.gz", "wb") as packed:
        packed.write(path.read_bytes())
    with path.open("r+") as same:  # the same inode, with another file's content
        same.truncate()
        same.write("c\nd\n")
    following.read()
    following.crash()
    assert following.read(0.1) == ["a", "b", "c", "d"]


def test_instances_that_say_the_same_are_read_each(tmp_path: Path) -> None:
    for name in ("app1.log", "app2.log", "app-1.log", "app-2.log"):
        (tmp_path / name).write_text("started\n")
    following = Following(tmp_path / "app*.log")
    assert following.read(0.1) == ["started"] * 4
    (tmp_path / "app3.log").write_text("started\n")
    assert following.read(0.1) == ["started"] * 5
    (tmp_path / "app3.log").rename(tmp_path / "app3.log.1")
    (tmp_path / "app3.log").write_text("started\n")  # begins as the one before
    assert following.read(0.1) == ["started"] * 6


def test_only_rotated_names_are_looked_for_beside_the_globs(tmp_path: Path) -> None:
    (tmp_path / "app1.log").write_text("a\n")
    following = Following(tmp_path / "app1.log")
    following.read()
    following.task.stop()
    time.sleep(0.01)
    (tmp_path / "app2.log").write_text("somebody else's\n")
    (tmp_path / "app1.log").rename(tmp_path / "app1.log.1")
    following.begin()
    assert following.read(0.1) == ["a"]


@pytest.mark.parametrize("name", ["app.log", "app.log.1", "app.log.2.gz", "app.log-20261119", "app.log-20261119.gz", "app.log.old"])  # fmt: skip
def test_names_of_rotated_files(name: str) -> None:
    assert base(f"/x/{name}") == "/x/app.log"
    assert base("/x/app-1.log") == "/x/app-1.log"


def test_start_at_the_end_reads_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("old\n")
    following = Following(path, start="end")
    assert following.read() == []
    with path.open("a") as file:
        file.write("new\n")
    assert following.read() == ["new"]
    following.crash()
    assert following.read() == ["new"]


def test_tasks_share_files_and_their_rotated_names(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.log").write_text(f"{name}\n")
        (tmp_path / f"{name}.log.1").write_text(f"{name} before\n")
    found: list[str] = []
    for number in range(3):
        following = Following(tmp_path / "*.log*", task__number=str(number), task__count="3")
        values = following.read()
        assert all((f"{one[0]} before" in values) == (one[0] in values) for one in values)
        found += values
    assert sorted(found) == sorted([*"abcd", *(f"{one} before" for one in "abcd")])
    assert family("/x/app.log") == family("/x/app.log.2.gz") == family("/x/app-2026-11-19.log")
    assert family("/x/app.log") != family("/y/app.log")


def test_kills_at_every_step_lose_and_repeat_nothing(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("".join(f"line {n}\n" for n in range(200)))
    settings = {"path": str(path), "topic": "t", "batch.bytes": "1024", **FAST}
    hurt = testing.run(FileTail, settings, kill=testing.EVERYWHERE)
    assert hurt.values == [f"line {n}".encode() for n in range(200)]
    assert hurt.kills > 3


OPERATIONS = st.lists(
    st.sampled_from(["append", "append", "partial", "rename", "truncate", "pack", "crash", "poll"]),
    max_size=14,
)


@given(OPERATIONS)
def test_whatever_happens_to_a_file_each_line_is_read_once(operations: list[str]) -> None:
    """The naive twin is the list of lines that were written."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "app.log"
        following = Following(Path(name) / "app.log*", batch__bytes="1024")
        written: list[str] = []
        count = 0
        part = ""
        for operation in operations:
            path.touch()  # whoever rotated it made a new one
            match operation:
                case "append" | "partial":
                    with path.open("a") as file:
                        for _ in range(3):
                            file.write(f"{count:06}\n" if not part else "\n")
                            written.append(part or f"{count:06}")
                            part, count = "", count + 1
                        if operation == "partial":
                            part = f"{count:06}"
                            file.write(part)
                case "rename" | "truncate" | "pack":
                    if part:
                        with path.open("a") as file:
                            file.write("\n")
                        written.append(part)
                        part, count = "", count + 1
                    following.read()
                    target = f"{path}.{count}"
                    if operation == "truncate":
                        shutil.copy(path, target)
                        os.truncate(path, 0)
                    elif operation == "rename":
                        path.rename(target)
                    elif path.stat().st_size:
                        with gzip.open(f"{target}.gz", "wb") as packed:
                            packed.write(path.read_bytes())
                        path.unlink()
                    following.read()
                case "crash":
                    following.poll(commit=False)
                    following.crash()
                case "poll":
                    following.read()
        following.read(0.06)
        following.task.stop()
        assert sorted(following.values) == sorted(written)


@given(st.text(alphabet="a\nĊ਍", max_size=30), st.sampled_from(["utf-8", "utf-16-le", "utf-32-be"]))
def test_lines_are_found_in_any_encoding(text: str, encoding: str) -> None:
    data, newline = text.encode(encoding), "\n".encode(encoding)
    end = last_end(data, newline)
    assert data[:end].decode(encoding) == text[: text.rfind("\n") + 1]
    assert [one.decode(encoding) for one in split(data, newline)] == text.split("\n")
