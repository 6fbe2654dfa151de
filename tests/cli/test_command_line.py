"""The command line's frame: help, errors, exit codes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli.main import COMMANDS, machine_error, main
from tailrace.errors import all_errors


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("tailrace")
    return subprocess.run([program, *arguments], capture_output=True, text=True, cwd=cwd)


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
