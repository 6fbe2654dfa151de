"""`tailrace schema` and `tailrace registry`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace import config
from tailrace.cli.main import main
from tailrace.errors import ConfigError
from tailrace.node.parts import parts_of
from tailrace.project.load import load

FIRST = '{"type":"record","name":"R","fields":[]}'
SECOND = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["schema", *arguments])
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


def test_schemas_are_registered_listed_checked_and_shown(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one.avsc", tmp_path / "other.avsc"
    one.write_text(FIRST)
    other.write_text(SECOND)
    at = ("--registry", url)
    assert run(capsys, "list", *at)[1] == "no subjects yet\n"
    assert run(capsys, "register", "s", str(one), *at)[1] == "schema 1 is registered under s\n"
    status, out, _ = run(capsys, "list", *at, "--json")
    assert (status, json.loads(out)) == (
        0,
        [{"subject": "s", "type": "AVRO", "versions": 1, "latest": 1, "id": 1,
          "compatibility": "BACKWARD"}],
    )  # fmt: skip
    assert json.loads(run(capsys, "get", "s", *at)[1]) == json.loads(FIRST)
    assert json.loads(run(capsys, "get", "s", "1", "--json", *at)[1])["id"] == 1
    assert run(capsys, "check", "s", str(one), *at)[0] == 0
    status, _, err = run(capsys, "check", "s", str(other), *at)
    assert status == 1
    assert "[schema-incompatible]" in err
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in err
    assert 'hint: give "a" a default' in err
    status, _, err = run(capsys, "register", "s", str(other), *at)
    assert (status, "409" in err) == (1, True)
    assert run(capsys, "get", "none", *at)[0] == 1
    text = tmp_path / "text.txt"
    text.write_text(FIRST)
    assert run(capsys, "check", "s", str(text), *at)[0] == 2
    assert run(capsys, "check", "s", str(text), "--type", "avro", *at)[0] == 0


def test_a_registry_that_does_not_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "list", "--registry", "http://127.0.0.1:1")
    assert (status, "did not answer" in err) == (1, True)
    assert run(capsys, "list", "--registry", "ftp://x")[0] == 2


def test_a_project_runs_a_registry_or_names_one(tmp_path: Path) -> None:
    def settings(text: str) -> config.RegistrySettings:
        (tmp_path / "tailrace.toml").write_text(text)
        return config.load(tmp_path).registry

    own = settings('[registry]\nlisten = "127.0.0.1:8081"\n')
    assert own.url == "http://127.0.0.1:8081"
    assert "registry" in [part.kind for part in parts_of(load(tmp_path))]
    other = settings('[registry]\nurl = "https://r:1"\nuser = "u"\npassword = "hidden-password"\n')
    assert other.url == "https://r:1"
    assert "hidden-password" not in repr(other)
    assert "registry" not in [part.kind for part in parts_of(load(tmp_path))]
    for wrong in (
        '[registry]\nlisten = "127.0.0.1:8081"\nurl = "http://x"\n',
        '[registry]\nlisten = "127.0.0.1:0"\n',
        '[registry]\nlisten = "127.0.0.1:1"\ncert = "c.pem"\n',
    ):
        with pytest.raises(ConfigError):
            settings(wrong)


def test_the_command_says_where_it_listens_and_ends_on_sigterm(tailrace_broker: str) -> None:
    command = [sys.executable, "-m", "tailrace", "registry", "start", "--bootstrap", tailrace_broker,
               "--listen", "127.0.0.1:0"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:")
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
