"""The examples are projects like any other: they load, draw, check and pass their own tests."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tailrace.project import graph, load
from tailrace.project.check import check

EXAMPLES = {
    "clicks": {"outcomes", "click_through", "strays", "rephrased"},
    "timeline": {"timeline", "home", "reach"},
    "alerts": {"alerts", "interest"},
    "fraud": {"card_testing", "unpaid", "thefts"},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_loads_draws_and_says_what_to_expect(checkout: Path, name: str) -> None:
    project = load.load(checkout / "examples" / name)
    assert project.name == name
    assert EXAMPLES[name] <= {node.name for node in graph.build(project).nodes}
    told = (checkout / "examples" / name / "README.md").read_text()
    assert "What to expect" in told
    assert all(view in told for view in EXAMPLES[name])


@pytest.mark.parametrize("name", ["clicks", "fraud", "alerts"])
def test_streams_compile_without_a_server(checkout: Path, name: str) -> None:
    found = list(check(load.load(checkout / "examples" / name)))
    assert not [one for one in found if one.error is not None]


def test_the_wheel_carries_every_example_that_init_knows(checkout: Path) -> None:
    built = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    included = built["targets"]["wheel"]["force-include"]
    assert included["examples"] == "tailrace/examples"


def own_tests(checkout: Path, *names: str, chosen: str = "") -> str:
    """Run the tests of examples as `tailrace test` does, in one process."""
    folders = [str(Path("examples") / name / "tests") for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
         "--import-mode=importlib", "-k", chosen, *folders],
        cwd=checkout, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_examples_pass_their_own_tests(checkout: Path) -> None:
    assert " passed" in own_tests(
        checkout, "shop", "clicks", "timeline", "fraud", "alerts", chosen="not star"
    )


@pytest.mark.thorough
def test_a_star_with_twenty_thousand_followers_holds_up_nobody(checkout: Path) -> None:
    assert "1 passed" in own_tests(checkout, "timeline", chosen="star")
