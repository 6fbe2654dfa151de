"""`tailrace view switch`, `rollback` and `drop` on a project with two generations."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_fill import OPEN, PAID, Project
from pipelines.ticks.test_generations import Wishes
from tailrace.cli.view import view
from tailrace.errors import UsageError
from tailrace.testing.feed import ChangeFeed


def call(directory: Path, *arguments: str) -> str:
    result = CliRunner().invoke(view, [*arguments, "--log", str(directory)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def shown(directory: Path, name: str) -> list[tuple[str, bool, bool]]:
    rows = orjson.loads(call(directory, "generations", name, "--json"))
    return [(row["topic"], row["shown"], row["kept up to date"]) for row in rows]


def test_the_commands_move_what_is_shown_and_refuse_what_cannot_be(
    tailrace_broker: str, tmp_path: Path
) -> None:
    home, state = tmp_path / "home", tmp_path / "home" / ".tailrace"
    state.mkdir(parents=True)
    project = Project(tailrace_broker, state)
    wishes, name = Wishes(project), f"{project.name}_paid"
    (home / "tailrace.toml").write_text(
        f'[project]\nname = "{project.name}"\n[log]\nbootstrap = "{tailrace_broker}"\n'
    )
    with pytest.raises(UsageError, match="has not ticked"):
        call(home, "rollback", name)
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(31, 10)][-1]
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
        refusals = {
            "rollback": "no earlier generation",
            "switch": "nothing to switch",
            "drop": "nothing to drop",
        }
        for command, words in refusals.items():
            with pytest.raises(UsageError, match=words) as refused:
                call(home, command, name)
            assert refused.value.detail
            assert refused.value.hint
        for command in ("rollback", "switch", "generations"):
            with pytest.raises(UsageError, match="there is no view 'nonsense'") as refused:
                call(home, command, "nonsense")
            assert name in refused.value.detail
        assert shown(home, name) == [(name, True, True)]
        with project.running(paid=OPEN) as ticks:
            project.catch_up(ticks, position)
            call(home, "rollback", name)
            wishes.carry_out(ticks)
            assert shown(home, name) == [(f"{name}.2", False, True), (name, True, False)]
            with pytest.raises(UsageError, match="nothing to drop"):
                call(home, "drop", name)
            call(home, "switch", name)
            wishes.carry_out(ticks)
            assert shown(home, name) == [(name, False, False), (f"{name}.2", True, True)]
            call(home, "drop", name, "--yes")
            wishes.carry_out(ticks)
            assert shown(home, name) == [(f"{name}.2", True, True)]
            call(home, "rebuild", "--hold", name)
            wishes.carry_out(ticks)
            call(home, "switch", name)
            wishes.carry_out(ticks)
            project.catch_up(ticks, position)
            wishes.carry_out(ticks)
            assert wishes.left == []
            assert [row[1:] for row in shown(home, name)] == [(False, False), (True, True)]
