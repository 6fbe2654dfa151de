from __future__ import annotations

import shutil

import orjson
import pytest

from tailrace.cli.main import main
from tailrace.errors import UsageError
from tailrace.sinks import Search
from tailrace.sinks.declare import Declaration
from tailrace.sinks.errors import ShapeError, SinkDeclarationError, SinkError
from tailrace.sinks.search import search
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.testing.sink_contract import SinkContract, Target


class SearchTarget(Target):
    def declare(self, view, **options) -> Declaration:
        return Search(self.directory / f"index-{view}", **options)

    def take_down(self):
        for path in self.directory.glob("index-*"):
            path.rename(path.with_name(f"away-{path.name}"))
            path.write_text("a file, not a directory")

    def bring_up(self):
        for path in self.directory.glob("away-*"):
            place = path.with_name(path.name.removeprefix("away-"))
            place.unlink()
            path.rename(place)


class TestSearchSink(SinkContract):
    kill_lines = range(3, 900, 220)
    switch_kills = range(260, 760, 250)

    def target(self, directory):
        return SearchTarget(directory)


COLUMNS = [("id", "BIGINT"), ("title", "STRING"), ("body", "STRING"), ("price", "DECIMAL(8,2)")]
ROWS = [
    (1, "Red shoes", "running in the rain", "19.90"),
    (2, "Blue shoes", "for a walk", "29.90"),
    (3, "Red hat", "against the sun, with shoes", "9.90"),
]


@pytest.fixture
def filled(tmp_path):
    def fill(**options):
        contract, place = TestSearchSink(), SearchTarget(tmp_path)
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["id"], COLUMNS)
        names = [name for name, _ in COLUMNS]
        writer.tick({"v": [({"id": row[0]}, dict(zip(names, row, strict=True))) for row in ROWS]})
        contract.deliver(place, contract.copy(place, "v", **options), writer)
        return tmp_path / "index-v"

    return fill


def ids(found):
    return [item["row"]["id"] for item in found]


def test_words_are_found_in_all_text_columns_best_first(filled):
    index = filled()
    scores = [item["score"] for item in search(index, "shoes")]
    assert scores == sorted(scores, reverse=True)
    assert sorted(ids(search(index, "shoes"))) == [1, 2, 3]
    assert sorted(ids(search(index, "title:red AND shoes"))) == [1, 3]
    assert ids(search(index, '"red shoes"')) == [1]
    assert ids(search(index, "price:[10 TO 20]")) == [1]
    assert sorted(ids(search(index, "*"))) == [1, 2, 3]
    assert len(search(index, "*", limit=2)) == 2
    assert search(index, "nothing") == []


def test_a_language_finds_other_forms_of_a_word(filled):
    index = filled(fields={"body": "text:en"})
    assert ids(search(index, "walks")) == [2]
    assert ids(search(index, "runs")) == [1]


def test_keywords_match_as_a_whole(filled):
    index = filled(fields={"title": "keyword", "body": "text"})
    assert ids(search(index, 'title:"Red hat"')) == [3]
    assert ids(search(index, "title:red")) == []


@pytest.mark.parametrize("words", ['"open', "nofield:x", "price:[", "AND AND"])
def test_a_question_that_cannot_be_read_is_an_error_with_the_fields(filled, words):
    with pytest.raises(UsageError) as caught:
        search(filled(), words)
    assert "title" in caught.value.hint


def test_an_index_that_is_not_there_is_an_error_with_a_hint(tmp_path):
    with pytest.raises(UsageError):
        search(tmp_path, "x")


def test_fields_in_a_torn_file_are_those_declared_and_no_row_is_lost(filled):
    # A crash of the machine may leave any part of it; the rows are in the index itself.
    index = filled()
    (path,) = index.glob("data*/fields.json")
    whole = path.read_bytes()
    for torn in (b"", whole[:-1], whole[:3], b"[]", b'{"title": 7}'):
        path.write_bytes(torn)
        with pytest.raises(SinkError, match="damaged"):
            search(index, "shoes")
    filled()  # the sink starts again
    assert sorted(ids(search(index, "shoes"))) == [1, 2, 3]
    assert ids(search(index, '"red shoes"')) == [1]
    assert len(search(index, "*")) == 3


def test_unknown_treatments_and_columns_are_refused(filled, tmp_path):
    with pytest.raises(SinkDeclarationError):
        Search(tmp_path, fields={"title": "words"})
    with pytest.raises(ShapeError):
        filled(fields={"nothing": "text"})


def test_the_command_searches_by_sink_or_view(filled, tmp_path, monkeypatch, capsys):
    index = filled()
    home = tmp_path / "project"
    (home / "pipelines").mkdir(parents=True)
    shutil.copytree(index, home / "idx", symlinks=True)
    (home / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    (home / "pipelines" / "v.py").write_text(
        "import tailrace as tr\nfrom tailrace import sinks\n"
        'v = tr.view("v", "SELECT * FROM shop.items", to=sinks.Search("idx"))\n'
    )
    monkeypatch.chdir(home)
    for name in ("v", "v.search"):
        with pytest.raises(SystemExit) as left:
            main(["search", name, '"red shoes"', "--json"])
        assert left.value.code == 0
        assert orjson.loads(capsys.readouterr().out)[0]["row"]["price"] == "19.90"
    with pytest.raises(SystemExit) as left:
        main(["search", "nothing", "x"])
    assert left.value.code == 1
    assert "v.search" in capsys.readouterr().err
