"""Every extra works alone, and whoever lacks one is told its name.

An installation with one extra is played by hiding every package that the extra does not bring,
found from pyproject.toml and the metadata of what is installed here. `make test-extras` installs
each for real.
"""

from __future__ import annotations

import importlib.metadata
import json
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tailrace.extras import MODULES

PROJECT = {
    "tailrace.toml": '[project]\nname = "shop"\n',
    "pipelines/shop.py": """
import tailrace as tr
from tailrace import sources

shop = sources.SQLite("shop", "shop.db", tables=["orders"])
""",
}
HIDE = """
import json, sys

class Hiding:
    names = set(json.loads(sys.argv.pop(1)))

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in self.names
        return None if hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Hiding(f) for f in sys.meta_path if hasattr(f, "find_spec")]
from tailrace.__main__ import main
main()
"""


@pytest.fixture
def declared(checkout: Path) -> Mapping[str, list[str]]:
    """The requirements of each extra; those of the core under the name ""."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


_distributions = cache(importlib.metadata.packages_distributions)


@cache
def _needs(distribution: str, extras: frozenset[str]) -> tuple[str, ...]:
    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    wanted = [{"extra": extra} for extra in (extras or {""})]
    found = [Requirement(line) for line in lines]
    return tuple(
        str(requirement)
        for requirement in found
        if requirement.marker is None or any(map(requirement.marker.evaluate, wanted))
    )


def brought_by(extra: str, declared: Mapping[str, list[str]]) -> set[str]:
    """The names of all distributions that `pip install 'tailrace[extra]'` installs."""
    waiting, seen, names = [*declared[""], *declared[extra]], set[str](), set[str]()
    while waiting:
        line = waiting.pop()
        if line in seen:
            continue
        seen.add(line)
        requirement = Requirement(line)
        if requirement.name == "tailrace":
            waiting += [line for name in requirement.extras for line in declared[name]]
        else:
            names.add(canonicalize_name(requirement.name))
            waiting += _needs(requirement.name, frozenset(requirement.extras))
    return names


def hidden_without(extra: str, declared: Mapping[str, list[str]]) -> list[str]:
    """The modules that are not there if only this extra is installed."""
    brought = brought_by(extra, declared)
    return sorted(
        module
        for module, distributions in _distributions().items()
        if not module.startswith("_")
        and module != "tailrace"
        and not brought & {canonicalize_name(name) for name in distributions}
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    return tmp_path


def tailrace(hidden: list[str], project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", HIDE, json.dumps(hidden), *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=100)


def test_every_module_that_an_extra_brings_is_known_by_an_extra_that_exists(
    declared: Mapping[str, list[str]],
) -> None:
    assert set(MODULES.values()) <= set(declared)
    for module, extra in MODULES.items():
        assert module not in hidden_without(extra, declared), f"{extra} does not bring {module}"


@pytest.mark.parametrize(
    "extra",
    ["project", "spark", "postgres", "mysql", "console", "duckdb", "redis", "search", "delta", "local"],
)  # fmt: skip
def test_a_project_can_be_checked_and_drawn_with_any_extra_of_a_project(
    extra: str, declared: Mapping[str, list[str]], project: Path
) -> None:
    hidden = hidden_without(extra, declared)
    for arguments in (["check"], ["graph"]):
        ended = tailrace(hidden, project, *arguments)
        assert ended.returncode == 0, ended.stderr
        assert "shop" in ended.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        "check", "graph", "sql SELECT\u00a01", "view list", "pipeline list", "sink list",
        "source list", "search x y", "demo --no-browser", "up",
    ],
)  # fmt: skip
def test_the_core_alone_names_the_extra_that_a_command_needs(
    arguments: str, declared: Mapping[str, list[str]], project: Path
) -> None:
    ended = tailrace(hidden_without("", declared), project, *arguments.split(" "))
    assert "Traceback" not in ended.stderr + ended.stdout
    if ended.returncode:
        assert "component-missing" in ended.stderr, ended.stderr
        assert "pip install 'tailrace[" in ended.stderr


@pytest.mark.parametrize(
    "arguments", ["version", "doctor", "status", "errors usage", "topic --help", "init p"]
)
def test_the_core_alone_runs_what_needs_no_extra(
    arguments: str, declared: Mapping[str, list[str]], project: Path
) -> None:
    ended = tailrace(hidden_without("", declared), project, *arguments.split(" "))
    assert not ended.stderr


def test_the_public_names_need_no_extra_to_be_looked_up(
    declared: Mapping[str, list[str]], project: Path
) -> None:
    script = HIDE.split("from tailrace")[0] + (
        "import tailrace\nfor name in dir(tailrace): getattr(tailrace, name)\nprint('all there')\n"
    )
    command = [sys.executable, "-P", "-c", script, json.dumps(hidden_without("", declared))]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=100)
    assert ended.stdout == "all there\n", ended.stderr
