"""Coroutines in tests: each runs on a loop of its own, in a thread of its own.

Playwright's browser keeps an event loop running in the main thread for as long as it lives, and
`asyncio.run` refuses such a thread. Which tests share a process, and in which order, is nobody's
to know; `test_fresh_loop.py` sees that no test starts a loop in another way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T], seconds: float = 100.0) -> T:
    """What `coroutine` gives; its error is raised here, and it is cancelled after `seconds`."""
    with ThreadPoolExecutor(1, "fresh-loop") as thread:
        return thread.submit(asyncio.run, asyncio.wait_for(coroutine, seconds)).result()
