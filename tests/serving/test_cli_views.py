from __future__ import annotations

import orjson
import pytest

import tailrace as tr
from tailrace.cli.main import main
from tailrace.serving.follower import Follower
from tailrace.telemetry.part import Part
from tailrace.testing.changelogs import MemoryLog, TickWriter


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    writer = TickWriter(MemoryLog())
    writer.declare("totals", ["country"], [("country", "STRING"), ("value", "DECIMAL(10,2)")])
    writer.declare("whole", [], [("n", "BIGINT")])
    writer.declare("totals_nl", ["country"], [("country", "STRING"), ("value", "DECIMAL(10,2)")])
    writer.tick(
        {
            "totals_nl": [({"country": "NL"}, {"country": "NL", "value": "1.50"})],
            "whole": [({}, {"n": 1}), ({}, {"n": 2})],
            "totals": [({"country": c}, {"country": c, "value": "1.50"}) for c in ("NL", "DE")],
        }
    )
    with Follower(tmp_path / ".tailrace" / "views", writer.log, "shop") as follower:
        follower.step(0)
        monkeypatch.chdir(tmp_path)
        yield tmp_path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    return left.value.code, captured.out, captured.err


def test_list_shows_keys_rows_and_columns(project, capsys):
    status, out, _ = run(capsys, "view", "list")
    assert status == 0
    assert "totals" in out
    assert "value DECIMAL(10,2)" in out
    _, out, _ = run(capsys, "view", "list", "--json")
    assert orjson.loads(out)[0]["rows"] == 2


def test_a_view_of_one_row_is_asked_without_a_key(project, capsys):
    assert run(capsys, "view", "get", "whole") == (0, "n  2\n", "")
    assert "(one row)" in run(capsys, "view", "list")[1]
    status, _, told = run(capsys, "view", "get", "totals")
    assert status
    assert "(country)" in told


def test_how_far_fills_are_is_told_while_somebody_fills(project, capsys):
    part = Part("shop", "pipelines", "shop", "", project / ".tailrace")
    part.report(
        "running",
        filled={"totals": 1.0, "half": 0.5, "later": 0.0},
        filling={"totals": 4, "half": 2, "later": 0},
        held=["totals"],
        dead=2,
    )
    told = [
        "totals: held beside the one shown, for `tailrace view switch`",
        "half: filling, 50% read; not shown until then",
        "later: waits to be filled; not shown until then",
    ]
    _, out, _ = run(capsys, "view", "list")
    assert out.splitlines()[-3:] == told
    _, out, _ = run(capsys, "view", "list", "--json")
    assert "view switch" in orjson.loads(out)[0]["filling"]
    _, out, _ = run(capsys, "status")
    assert out.splitlines()[-2] == "view half: filling, 50% read"
    assert "2 records of the views' tables could not be read: `tailrace pipeline" in out
    part.report("stopped")
    _, out, _ = run(capsys, "view", "list")
    assert "read" not in out
    _, out, _ = run(capsys, "status")
    assert "half" not in out


def test_status_tells_of_a_large_tick_that_runs(project, capsys):
    part = Part("shop", "pipelines", "shop", "", project / ".tailrace")
    began = part.clock.wall_ms() - 42_500
    part.report("running", working={"records": 300_000, "began_ms": began})
    _, out, _ = run(capsys, "status")
    assert out.splitlines()[-1].startswith("a tick of 300,000 records has run for 4")
    part.report(working=None)
    _, out, _ = run(capsys, "status")
    assert "a tick" not in out
    part.report("stopped", working={"records": 300_000, "began_ms": began})
    _, out, _ = run(capsys, "status")
    assert "a tick" not in out


def test_diff_compares_two_views_and_names_one_that_is_not_there(project, capsys):
    status, out, _ = run(capsys, "view", "diff", "totals", "totals")
    assert (status, out) == (0, "0 rows only in totals\n")
    status, out, _ = run(capsys, "view", "diff", "totals", "totals_nl", "--json")
    assert status == 1
    assert orjson.loads(out) == {
        "only in totals": [{"country": "DE", "value": "1.50"}],
        "only in totals_nl": [],
    }
    for given in (["total"], ["totals", "total"]):
        status, _, err = run(capsys, "view", "diff", *given)
        assert status == 2
        assert "there is no view 'total'" in err
        assert "did you mean 'totals'?" in err


def test_get_prints_the_row_or_says_no(project, capsys):
    status, out, _ = run(capsys, "view", "get", "totals", "NL", "--json")
    assert (status, orjson.loads(out)) == (0, {"row": {"country": "NL", "value": "1.50"}})
    status, _, err = run(capsys, "view", "get", "totals", "XX")
    assert status == 1
    assert "no row XX" in err
    status, _, err = run(capsys, "view", "get", "nothing", "XX")
    assert status == 1
    assert "view-unknown" in err


def test_sql_answers_with_the_position(project, capsys):
    query = "SELECT sum(value) AS v FROM totals"
    status, out, _ = run(capsys, "sql", query, "--json", "--at-least", "tick:shop:1")
    assert status == 0
    assert orjson.loads(out) == {"rows": [{"v": "3.00"}], "next": None, "position": "tick:shop:1"}
    status, out, err = run(capsys, "sql", "SELECT country FROM totals ORDER BY 1")
    assert out.split() == ["country", "───────", "DE", "NL"]
    assert "tick:shop:1" in err


def test_sql_that_waits_in_vain_fails_with_a_code(project, capsys):
    status, _, err = run(
        capsys, "sql", "SELECT 1", "--at-least", "tick:shop:9", "--timeout", "0.05"
    )
    assert status == 1
    assert "position-timeout" in err


def test_watch_begins_with_the_rows(project, capsys, monkeypatch):
    from tailrace.serving import reader

    monkeypatch.setattr(
        reader.Views,
        "wait_for_change",
        lambda self, seen, timeout: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    _, out, _ = run(capsys, "view", "watch", "totals", "--json")
    rows = [orjson.loads(line)["row"] for line in out.splitlines()]
    assert {row["country"] for row in rows} == {"NL", "DE"}


def test_rebuild_leaves_a_request_for_the_follower(project, capsys):
    assert run(capsys, "view", "rebuild", "totals", "--copy")[0] == 0
    assert (project / ".tailrace" / "views" / "rebuild").read_text() == "totals"


def test_rebuild_leaves_a_request_for_the_pipelines(project, capsys):
    from tailrace.pipelines.process.requests import waiting

    assert run(capsys, "view", "rebuild", "totals")[0] == 0
    assert [(r.action, r.name) for r in waiting(project / ".tailrace")] == [("rebuild", "totals")]


def test_diff_says_no_when_views_differ(project, capsys):
    assert run(capsys, "view", "diff", "totals", "totals")[0] == 0
    status, _, err = run(capsys, "view", "diff", "totals")
    assert status == 2
    assert "nothing is being built" in err


def test_views_can_be_opened_by_directory(project):
    with tr.views(project) as views:
        assert views["totals"].get("NL") == {"country": "NL", "value": "1.50"}
    assert tr.views("127.0.0.1:1").address == "127.0.0.1:1"


def test_a_console_that_does_not_answer_is_an_error_with_a_hint():
    from tailrace.serving.errors import ViewsRemoteError

    with tr.views("127.0.0.1:1") as views, pytest.raises(ViewsRemoteError) as caught:
        views["totals"].get("NL")
    assert "tailrace up" in caught.value.hint
