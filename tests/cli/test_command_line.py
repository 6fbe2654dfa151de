"""The command line's frame: help, errors, exit codes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tailrace.cli.main import COMMANDS, cli, machine_error, main
from tailrace.errors import all_errors
from tailrace.project import scaffold


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("tailrace")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL
    )


def test_help_lists_every_command_and_loads_no_room() -> None:
    code = (
        "import sys\n"
        "from tailrace.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pyspark', 'fastapi', 'psycopg', 'confluent_kafka', 'pyarrow', 'duckdb'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "set()"
    for name in COMMANDS:
        assert name in done.stdout


def test_importing_tailrace_brings_in_no_heavy_package() -> None:
    code = "import tailrace, sys; print({'pyspark', 'fastapi', 'psycopg', 'orjson'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([name, "--help"])
    assert leaving.value.code == 0
    assert "Usage: tailrace" in capsys.readouterr().out


def test_an_unknown_command_is_wrong_usage_and_names_the_nearest() -> None:
    done = run("toppic")
    assert done.returncode == 2
    assert "[usage]" in done.stderr
    assert "tailrace topic" in done.stderr


def test_a_wrong_option_is_wrong_usage_in_four_part_form() -> None:
    done = run("version", "--colour")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "hint: see `tailrace version --help`" in done.stderr


def test_errors_are_json_when_json_is_asked_for() -> None:
    done = run("errors", "no-such-code", "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["code"] == "usage"


def test_every_command_that_ends_can_answer_in_json() -> None:
    lasting = {
        "demo",
        "up",
        "mcp",
        "broker start",
        "registry start",
        "connect start",
        "test",
        "completion",
        "shell",  # `tailrace sql --json` answers in JSON
    }  # run, or pass on others' words
    lacking = []

    def look(command: click.Command, path: str) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                look(found, f"{path} {name}".strip())
        elif not any("--json" in option.opts for option in command.params):
            lacking.append(path)

    look(cli, "")
    assert set(lacking) == lasting


def test_what_was_done_is_said_in_json(tmp_path: Path) -> None:
    scaffold.create(tmp_path / "shop")
    done = run("source", "pause", "shop", "--json", cwd=tmp_path / "shop")
    assert "change table" in json.loads(done.stdout)["did"]
    assert run("source", "resume", "shop", cwd=tmp_path / "shop").stdout == "shop goes on\n"


def test_a_log_that_is_not_there_is_told_soon_and_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, but not listening
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        done = run("topic", "list", "--log", address)
    assert done.returncode == 1
    assert f"no broker answers at {address}" in done.stderr
    assert "tailrace up" in done.stderr
    wrong = run("topic", "list", "--log", str(tmp_path / "absent"))
    assert wrong.returncode == 2
    assert "no such directory" in wrong.stderr


def test_a_question_that_nobody_answers_is_wrong_usage() -> None:
    done = run("topic", "delete", "clicks")
    assert done.returncode == 2
    assert "--yes" in done.stderr


def test_every_error_code_is_unique_and_explained() -> None:
    kinds = list(all_errors())
    codes = [kind.code for kind in kinds if "code" in vars(kind)]
    assert len(codes) == len(set(codes)), sorted(codes)
    for kind in kinds:
        assert kind.__doc__, kind


def test_doctor_names_what_a_broken_file_means(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text("[project\n")
    done = run("doctor", str(tmp_path), "--json")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 1
    assert findings["settings"]["verdict"] == "bad"
    assert findings["Python"]["verdict"] == "good"


def test_completion_prints_a_script() -> None:
    done = run("completion", "bash")
    assert done.returncode == 0
    assert "_TAILRACE_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PermissionError(13, "Permission denied", "/x"), "not-writable"),
        (OSError(30, "Read-only file system", "/x"), "not-writable"),
        (OSError(98, "Address already in use"), "port-in-use"),
        (OSError(28, "No space left on device"), "environment"),
    ],
)
def test_errors_of_the_machine_have_four_parts(error: OSError, code: str) -> None:
    said = machine_error(error)
    assert said.code == code
    assert said.detail
    assert said.hint


def test_a_port_in_use_is_told_with_its_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("broker", "start", "--data", str(tmp_path / "d"), "--listen", address)
    assert done.returncode == 1
    assert "[port-in-use]" in done.stderr
    assert "hint:" in done.stderr


def test_a_file_in_the_way_of_the_data_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("in the way")
    done = run("broker", "start", "--data", str(tmp_path / "d" / "log"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert "\nerror: " in "\n" + done.stderr
    assert "hint: " in done.stderr


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out.startswith("tailrace ")


@pytest.mark.parametrize("command", ["status", "check", "graph", "up", "sql", "view", "test"])
def test_a_directory_without_a_project_is_said_to_be_none(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rest = {"sql": ["SELECT 1"], "view": ["list"]}.get(command, [])
    with pytest.raises(SystemExit) as leaving:
        main([command, *rest])
    assert leaving.value.code == 1
    assert "[project-missing]" in capsys.readouterr().err


def test_a_place_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["view", "list", "--project", str(tmp_path), "--bootstrap", "127.0.0.1:1"])
    assert leaving.value.code == 2
    assert "--project and --bootstrap both say where" in capsys.readouterr().err
    with pytest.raises(SystemExit) as leaving:
        main(["status", "--project", str(tmp_path), str(tmp_path)])
    assert leaving.value.code == 2


@pytest.mark.parametrize("way", ["--project", "-C", "--log"])
def test_a_project_is_named_by_its_directory(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAILRACE_LOG", "127.0.0.1:1")  # what is said on the line goes before
    scaffold.create(tmp_path / "shop")
    with pytest.raises(SystemExit):
        main(["sink", "list", way, str(tmp_path / "shop")])
    assert "open_orders" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["events list", "events reactions", "erase list", "test"])
def test_a_project_elsewhere_is_named_and_the_command_comes_back(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path.cwd()
    for directory, code in ((tmp_path, "project-missing"), (tmp_path / "absent", "usage")):
        with pytest.raises(SystemExit):
            main([*command.split(), "--project", str(directory)])
        assert f"[{code}]" in capsys.readouterr().err
        assert Path.cwd() == before
