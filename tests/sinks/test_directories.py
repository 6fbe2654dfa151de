from __future__ import annotations

import ctypes
import errno

import pytest

from tailrace.sinks import directories
from tailrace.testing.crash import kill_at_line


@pytest.fixture(params=["exchanged at once", "renamed one by one"])
def copies(tmp_path, request, monkeypatch):
    if request.param == "renamed one by one":

        class Unable:
            @staticmethod
            def renameat2(*arguments):
                ctypes.set_errno(errno.EINVAL)
                return -1

        monkeypatch.setattr(directories.ctypes, "CDLL", lambda *a, **k: Unable)
    path = tmp_path / "t"
    for one, text in ((path, "old"), (directories.beside(path), "new")):
        one.mkdir()
        (one / "text").write_text(text)
    return path


def text_of(path):
    return (path / "text").read_text() if path.exists() else None


def all_of(path):
    return [text_of(p) for p in (path, directories.beside(path), directories.before(path))]


def test_a_switch_keeps_the_copy_before_and_a_rollback_brings_it_back(copies):
    directories.switch(copies)
    assert all_of(copies) == ["new", None, "old"]
    directories.rollback(copies)
    assert all_of(copies) == ["old", "new", None]
    directories.switch(copies)
    assert all_of(copies) == ["new", None, "old"]


def test_a_switch_takes_the_place_of_an_older_copy_before(copies):
    directories.before(copies).mkdir()
    directories.switch(copies)
    assert all_of(copies) == ["new", None, "old"]


@pytest.mark.crash
def test_a_switch_killed_at_any_line_is_done_or_not_begun(copies):
    expected = ["old", "new", None]
    kills = 0
    for line in range(1, 60):
        work = directories.switch if expected[1] == "new" else directories.rollback
        kills += kill_at_line(lambda work=work: work(copies), ["sinks/directories.py"], line)
        directories.finish_switch(copies)
        found = all_of(copies)
        assert found in (["old", "new", None], ["new", None, "old"], ["old", None, None])
        if found[1:] == [None, None]:  # killed before the first step of a rollback
            pytest.fail("a copy is lost")
        expected = found
    assert kills > 10


def test_nothing_to_finish_is_no_error(tmp_path):
    directories.finish_switch(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
