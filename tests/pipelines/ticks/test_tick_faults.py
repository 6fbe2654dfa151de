"""What ticks do when state, caches or topics are lost: an error with a way out, never fewer rows."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.test_ticks import in_process
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.errors import (
    DataLostError,
    StateFileDamagedError,
    StateFileMissingError,
    StateOwnedError,
    StateVersionError,
)
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams.dead_letters import letters
from tailrace.pipelines.ticks import lost_inputs
from tailrace.pipelines.ticks.driver import TickSettings, last_row
from tailrace.pipelines.ticks.project import ProjectTicks


class Words:
    """A topic of words, and a view that counts them."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.name = f"words{uuid.uuid4().hex[:6]}"
        self.topic = tr.topic(self.name, schema="word STRING")
        self.views = [
            tr.view(
                f"{self.name}_{n}", f"SELECT word, count(*) AS n FROM {self.name} GROUP BY word"
            )
            for n in ("a", "b")
        ]
        self.create()

    def create(self) -> None:
        with Admin(self.bootstrap) as admin:
            admin.ensure_topic(self.name, 1, {})

    def delete(self) -> None:
        with Admin(self.bootstrap) as admin:
            admin.delete_topic(self.name)

    def write(self, *words: str) -> None:
        with TransactionalWriter(self.bootstrap, f"w{self.name}") as writer:
            writer.init()
            for word in words:
                writer.send(self.name, 0, None, orjson.dumps({"word": word}))
            writer.commit()

    def project(self, name: str | None = None) -> ProjectTicks:
        graph = compile_views(self.views, [topic_table(self.topic)])
        settings = TickSettings(
            name or f"p{self.name}", self.bootstrap, str(self.directory / "state"), str(self.directory / "cache")
        )  # fmt: skip
        return ProjectTicks(graph, settings, in_process, plain=frozenset([self.name]))

    def run(self, *rebuilding: int) -> None:
        project = self.project()
        try:
            project.start([self.views[n].name for n in rebuilding])
            for _ in range(50):
                if project.step(0.0) is None and not project.waiting:
                    return
        finally:
            project.close()

    def shown(self, number: int) -> dict[str, int]:
        """A view as its last generation tells it."""
        rows: dict[str, int] = {}
        with LogReader(self.bootstrap) as reader:
            tick = last_row(reader, f"p{self.name}")
            assert tick is not None
            for records in read_all(reader, tick.views[self.views[number].name].topic):
                for value in records.values:
                    row = orjson.loads(value or b"null")["row"]
                    rows[row["word"]] = row["n"]
        return rows


@pytest.fixture
def words(tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Words:
    monkeypatch.setattr(lost_inputs, "LOOK_EVERY_SECONDS", 0.0)
    made = Words(tailrace_broker, tmp_path)
    made.write("x", "y", "x")
    made.run()
    assert made.shown(0) == made.shown(1) == {"x": 2, "y": 1}
    return made


def told(problem: TailraceError) -> None:
    assert problem.code
    assert problem.detail
    assert "rebuild" in (problem.hint or "")


def test_a_topic_that_is_gone_is_told(words: Words) -> None:
    words.delete()
    with pytest.raises(DataLostError, match="is gone") as problem:
        words.run()
    told(problem.value)


@pytest.mark.parametrize("again", [["z"], ["z"] * 20], ids=["fewer", "more"])
def test_a_topic_created_again_is_told_and_a_rebuild_reads_the_new_one(
    words: Words, again: list[str]
) -> None:
    words.delete()
    words.create()
    words.write(*again)
    with pytest.raises(DataLostError, match="deleted and created again") as problem:
        words.run()
    told(problem.value)
    assert words.shown(0) == {"x": 2, "y": 1}
    words.run(0)  # the other view has not been asked for: it waits
    assert words.shown(0) == {"z": len(again)}
    assert words.shown(1) == {"x": 2, "y": 1}
    words.run()  # and goes on waiting, whoever starts anew
    assert words.shown(1) == {"x": 2, "y": 1}
    words.run(1)
    assert words.shown(0) == words.shown(1) == {"z": len(again)}
    words.write("q")
    words.run()
    assert words.shown(1) == {"z": len(again), "q": 1}


def test_a_topic_created_again_while_it_is_read_is_noticed(words: Words) -> None:
    project = words.project()
    try:
        project.start()
        words.delete()
        words.create()
        words.write(*["z"] * 20)
        with pytest.raises(DataLostError, match="deleted and created again"):
            project.step(0.0)
    finally:
        project.close()


def test_nothing_of_a_topic_created_again_is_ever_counted(
    words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even in the moment between two looks at the topics."""
    monkeypatch.setattr(lost_inputs, "LOOK_EVERY_SECONDS", 3600.0)
    project = words.project()
    try:
        project.start()
        words.write("y")
        project.step(0.0)
        words.delete()
        words.create()
        words.write(*["z"] * 20)  # more than were read of the old one
        with pytest.raises(DataLostError, match="deleted and created again"):
            project.step(0.0)
    finally:
        project.close()
    assert words.shown(0) == words.shown(1) == {"x": 2, "y": 2}


class Two(Words):
    """Two topics, and a view of each and of both."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        super().__init__(bootstrap, directory)
        self.other = Words(bootstrap, directory)
        counted = "SELECT word, count(*) AS n FROM {} GROUP BY word"
        both = f"(SELECT word FROM {self.name} UNION ALL SELECT word FROM {self.other.name})"
        self.views = [
            tr.view(f"{self.name}_{name}", counted.format(of))
            for name, of in (("ours", self.name), ("theirs", self.other.name), ("both", both))
        ]

    def project(self, name: str | None = None) -> ProjectTicks:
        tables = [topic_table(self.topic), topic_table(self.other.topic)]
        settings = TickSettings(
            f"p{self.name}", self.bootstrap, str(self.directory / "state"), str(self.directory / "cache")
        )  # fmt: skip
        plain = frozenset([self.name, self.other.name])
        return ProjectTicks(compile_views(self.views, tables), settings, in_process, plain=plain)


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "between two runs"])
@pytest.mark.parametrize("loss", ["gone", "created again", "retention"])
def test_a_lost_topic_stops_its_readers_alone(
    tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str, running: bool
) -> None:
    monkeypatch.setattr(lost_inputs, "LOOK_EVERY_SECONDS", 0.0)
    two = Two(tailrace_broker, tmp_path)
    two.write("x")
    two.other.write("x", "y")
    two.run()
    ours, both = two.views[0].name, two.views[2].name

    def lose() -> None:
        two.write("p", "q")
        if loss == "retention":
            with Admin(two.bootstrap) as admin:
                admin.delete_records({(two.name, 0): 5})
            return
        two.delete()
        if loss == "created again":
            two.create()
            two.write("z", "z", "z", "z")

    if not running:
        lose()
    project = two.project()
    try:
        project.start()
        if running:
            lose()
        two.other.write("y")
        for _ in range(10):
            project.step(0.0)
        assert project.failed.keys() == {ours, both}
        told(DataLostError(**{"message" if k == "error" else k: v for k, v in project.failed[ours].items() if k != "code"}))  # fmt: skip
        assert project.waiting == []
        assert two.shown(1) == {"x": 1, "y": 2}
        assert two.shown(0) == {"x": 1}
        assert two.shown(2) == {"x": 2, "y": 1}
    finally:
        project.close()
    two.other.write("z")
    two.run()  # a new start does not fill them from what is left
    assert two.shown(1) == {"x": 1, "y": 2, "z": 1}
    assert two.shown(0) == {"x": 1}
    assert two.shown(2) == {"x": 2, "y": 1}
    if loss == "gone":
        two.create()
    two.write("new")
    left = {"gone": {}, "created again": {"z": 4}, "retention": {}}[loss]
    project = two.project()
    try:
        project.start()
        assert project.rebuild(ours)  # asked for while the others run
        for _ in range(20):
            project.step(0.0)
        assert project.failed.keys() == {both}
        assert two.shown(0) == {**left, "new": 1}
    finally:
        project.close()
    two.run(2)
    two.write("new")
    two.run()
    rest = {word: left.get(word, 0) + n for word, n in {"x": 1, "y": 2, "z": 1}.items()}
    assert two.shown(2) == {**rest, "new": 2}
    assert two.shown(0) == {**left, "new": 2}


def test_records_past_retention_are_told_and_a_rebuild_goes_on(words: Words) -> None:
    words.write("p", "q")
    with Admin(words.bootstrap) as admin:
        admin.delete_records({(words.name, 0): 6})
    with pytest.raises(DataLostError, match="gone before they were read") as problem:
        words.run()
    told(problem.value)
    words.run(0, 1)
    words.write("r")
    words.run()
    assert words.shown(0) == {"r": 1}


def test_records_that_cannot_be_read_are_letters_of_the_project_in_a_rebuild_too(
    words: Words,
) -> None:
    with TransactionalWriter(words.bootstrap, "bad") as writer:
        writer.init()
        writer.send(words.name, 0, None, b"{no json")
        writer.commit()
    project = words.project()
    try:
        project.start()
        while project.step(0.0) is not None:
            pass
        project.rebuild(words.views[0].name)
        for _ in range(20):
            project.step(0.0)
        assert not project.waiting
    finally:
        project.close()
    (letter,) = letters(words.bootstrap, f"p{words.name}.dead")
    assert letter["position"].startswith(f"log:{words.name}/0:")
    assert words.shown(0) == words.shown(1) == {"x": 2, "y": 1}


def test_lost_caches_are_restored(words: Words) -> None:
    shutil.rmtree(words.directory / "cache")
    words.write("x")
    words.run()
    assert words.shown(0) == {"x": 3, "y": 1}


def test_a_cache_lost_while_it_runs_is_restored(words: Words) -> None:
    project = words.project()
    try:
        project.start()
        for count in (3, 4):
            for data in (words.directory / "cache").glob("*/*/data.mdb"):
                data.unlink()
            words.write("x")
            project.step(0.0)
            assert words.shown(0) == {"x": count, "y": 1}
    finally:
        project.close()


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_lost_state_files_are_told_and_a_rebuild_of_all_views_goes_on(
    words: Words, damage: str
) -> None:
    shutil.rmtree(words.directory / "cache")  # it alone would be enough to go on
    for path in (words.directory / "state").glob("*/*.delta"):
        if damage == "missing":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            data[-9] ^= 255
            path.write_bytes(data)
    words.write("x")
    expected = StateFileMissingError if damage == "missing" else StateFileDamagedError
    with pytest.raises(expected) as problem:
        words.run()
    told(problem.value)
    assert words.shown(0) == {"x": 2, "y": 1}
    words.run(0, 1)
    assert words.shown(0) == words.shown(1) == {"x": 3, "y": 1}


def test_state_in_another_form_is_refused_before_it_runs(
    words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "format", 3)
    words.write("x")
    with pytest.raises(StateVersionError, match="in form 2") as problem:
        words.run()
    told(problem.value)
    assert words.shown(0) == {"x": 2, "y": 1}
    words.run(0, 1)
    assert words.shown(0) == {"x": 3, "y": 1}
    words.write("y")
    words.run()  # the new form is its own now
    assert words.shown(1) == {"x": 3, "y": 2}


def test_state_in_a_form_that_is_still_read_goes_on(
    words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "format", 3)
    monkeypatch.setattr(Group, "reads", (1, 2))
    words.write("x")
    words.run()
    assert words.shown(0) == {"x": 3, "y": 1}
    monkeypatch.setattr(Group, "format", 2)
    monkeypatch.setattr(Group, "reads", (1,))
    words.write("y")
    with pytest.raises(StateVersionError, match="in form 3"):
        words.run()  # the version before does not know what the newer one wrote


def test_the_state_directory_of_another_project_is_refused(words: Words) -> None:
    other = words.project("another")
    try:
        with pytest.raises(StateOwnedError, match='not of "another"'):
            other.start()
    finally:
        other.close()
