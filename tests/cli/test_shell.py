"""`tailrace shell`: statements, what TAB completes, and answers without a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.cli import shell
from tailrace.cli.main import main
from tailrace.serving.follower import Follower
from tailrace.testing.changelogs import MemoryLog, TickWriter

COLUMNS = {"orders": ["id", "country", "amount"], "points": ["customer", "left"]}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    writer = TickWriter(MemoryLog())
    writer.declare("totals", ["country"], [("country", "STRING"), ("n", "BIGINT")])
    writer.tick({"totals": [({"country": "NL"}, {"country": "NL", "n": 2})]})
    with Follower(tmp_path / ".tailrace" / "views", writer.log, "shop") as follower:
        follower.step(0)
        yield tmp_path


@pytest.fixture
def asked(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[object, str]]:
    def ask(text: str) -> tuple[object, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        with pytest.raises(SystemExit) as left:
            main(["shell", "--project", str(project)])
        captured = capsys.readouterr()
        return left.value.code, captured.out + captured.err

    return ask


def test_statements_end_at_a_semicolon_outside_quotes_and_comments() -> None:
    text = "SELECT ';' AS a, 1;\nSELECT 2 -- no; end\n  AS b; .views\nSELECT \"x;y\"\nFROM t\n"
    assert [" ".join(one.split()) for one in shell.split(io.StringIO(text))] == [
        "SELECT ';' AS a, 1", "SELECT 2 AS b", ".views", 'SELECT "x;y" FROM t',
    ]  # fmt: skip


def test_what_is_typed_goes_on_until_a_semicolon_or_an_empty_line() -> None:
    lines = iter(["SELECT 1", "  AS a;", ".views", "SELECT 2", "", KeyboardInterrupt, "SELECT 3;"])

    def typed(prompt: str) -> str:
        line = next(lines, EOFError)
        if isinstance(line, type):
            raise line
        return line

    found = [" ".join(one.split()) for one in shell._typed(typed)]
    assert found == ["SELECT 1 AS a", ".views", "SELECT 2", "SELECT 3"]


def test_columns_of_the_views_in_the_line_are_completed_first() -> None:
    def found(line: str) -> list[str]:
        return shell.completions(COLUMNS, line, line.split(" ")[-1])

    assert found("SELECT * FROM o")[0] == "orders"
    assert found("SELECT * FROM orders WHERE c")[0] == "country"
    assert "customer" not in found("SELECT * FROM orders WHERE c")
    assert found("SELECT orders.a") == ["orders.amount"]
    assert found("SE") == ["SELECT"]
    assert found(".v") == [".views"]


def test_statements_of_the_standard_input_are_answered_in_turn(
    asked: Callable[[str], tuple[object, str]],
) -> None:
    status, out = asked("SELECT n FROM totals;\n.views\nSELECT country FROM totals")
    assert status == 0
    assert "n\n─\n2" in out
    assert "country, n" in out
    assert "NL" in out


def test_a_mistake_is_told_and_the_rest_goes_on(asked: Callable[[str], tuple[object, str]]) -> None:
    status, out = asked("SELECT nothing FROM totals; SELECT n FROM totals;")
    assert status == 1
    assert "error: " in out
    assert "nothing" in out
    assert "n\n─\n2" in out
