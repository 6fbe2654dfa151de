"""Every snippet in README and docs is run.

On a page, all `python` blocks share one namespace and run in order in an empty
directory; `console` blocks run the lines behind `$ ` in the same directory and compare
what follows (`…` stands for anything); `toml` blocks must be a valid tailrace.toml.
A page that names `localhost:9092` gets a broker of its own in place of that address.
Blocks of any other kind (`text`, `sql`) are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pytest

from tailrace import config

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
BROKER = "localhost:9092"


def blocks(page: Path) -> list[tuple[str, str, int]]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        body = "\n".join(part.removeprefix(match[1]) for part in match[3].split("\n"))
        found.append((match[2], body, line))
    return found


def with_snippets() -> list[Path]:
    kinds = {"python", "console", "toml"}
    return [page for page in PAGES if kinds & {kind for kind, _, _ in blocks(page)}]


@pytest.mark.parametrize("page", with_snippets(), ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    address = BROKER
    if BROKER in page.read_text():
        address = str(request.getfixturevalue("tailrace_broker"))
    place = tmp_path
    module = types.ModuleType("snippet")  # dataclasses look for the module they are in
    monkeypatch.setitem(sys.modules, "snippet", module)
    for kind, body, line in blocks(page):
        body = body.replace(BROKER, address)
        if kind == "python":
            code = compile("\n" * (line - 1) + body, str(page), "exec", dont_inherit=True)
            exec(code, module.__dict__)
        elif kind == "console":
            place = run_console(body, place, f"{page.name}:{line}")
        elif kind == "toml":
            directory = tmp_path / f"toml-{line}"
            directory.mkdir()
            (directory / config.FILE_NAME).write_text(body)
            assert config.load(directory).project.name


def run_console(body: str, directory: Path, where: str) -> Path:
    """Run commands as in one shell; the directory in which the last one ended."""
    command, expected = "", []
    for line in [*body.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                directory = check_command(command, "\n".join(expected).strip(), directory, where)
            command, expected = line[2:], []
        else:
            expected.append(line)
    return directory


def check_command(command: str, expected: str, directory: Path, where: str) -> Path:
    with tempfile.NamedTemporaryFile("r") as ended_in:
        run = subprocess.run(
            ["bash", "-c", f'trap \'pwd > "{ended_in.name}"\' EXIT\n{command}'],
            cwd=directory, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        ended = Path(ended_in.read().rstrip("\n") or directory)
    output = (run.stdout + run.stderr).strip()
    if expected:
        lines = [re.escape(line.rstrip()).replace("…", ".*") for line in expected.splitlines()]
        pattern = r"\s*\n".join(lines)
        assert re.fullmatch(pattern, output, re.DOTALL), f"{where}: {command}\n{output}"
    else:
        assert run.returncode == 0, f"{where}: {command}\n{output}"
    return ended


def test_every_page_is_reached_by_the_runner() -> None:
    assert any(page.name == "README.md" for page in with_snippets())


def test_the_reference_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
