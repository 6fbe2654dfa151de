"""A test that runs a coroutine may stand beside a browser, whose loop runs in the main thread."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

import fresh_loop

TESTS = Path(__file__).parent
STARTERS = {"run", "Runner", "new_event_loop", "get_event_loop", "run_until_complete"}


def loops_started(tree: ast.Module) -> list[int]:
    """Lines that start a loop, or take one, in the thread they run in."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="asyncio", names=names):
                if STARTERS & {each.name for each in names}:
                    found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="asyncio"), attr=attribute):
                if attribute in STARTERS:
                    found.append(node.lineno)
            case ast.Attribute(attr="run_until_complete"):
                found.append(node.lineno)
    return found


def test_a_coroutine_runs_beside_a_loop_of_the_calling_thread() -> None:
    async def inner() -> int:
        await asyncio.sleep(0)
        return 3

    async def outer() -> int:  # a loop runs in this thread, as it does beside a browser
        return fresh_loop.run(inner())

    assert fresh_loop.run(outer()) == 3


def test_an_error_of_a_coroutine_is_raised_in_its_test() -> None:
    async def failing() -> None:
        raise ValueError("as told")

    with pytest.raises(ValueError, match="as told"):
        fresh_loop.run(failing())
    with pytest.raises(TimeoutError):
        fresh_loop.run(asyncio.sleep(60), 0.01)


def test_no_test_starts_a_loop_in_its_own_thread() -> None:
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text("utf-8")
        spoken_of = "asyncio" in text or "run_until_complete" in text
        if spoken_of and path.name != "fresh_loop.py" and (lines := loops_started(ast.parse(text))):
            found[path.relative_to(TESTS).as_posix()] = lines
    assert not found, "use fresh_loop.run: a browser's loop may run in the main thread"


def test_the_rule_sees_what_it_is_for() -> None:
    for text in (
        "import asyncio\nasyncio.run(work())\n",
        "import threading\nthread(target=asyncio.run)\n",
        "loop = 1\nloop.run_until_complete(work())\n",
        "a = 1\nfrom asyncio import run\n",
    ):
        assert loops_started(ast.parse(text)) == [2], text
    assert not loops_started(ast.parse("asyncio.run_coroutine_threadsafe(a, loop)\n"))
