"""The process that Spark forks its Python workers from: PySpark's own, without its last words.

A worker that is idle when Spark ends finds its socket closed, and PySpark prints the stack of
that. Nobody reads what such a worker has left to say.
"""

from __future__ import annotations

import gc
import importlib
import select
import socket
from collections.abc import Callable
from contextlib import suppress

from pyspark import daemon

from tailrace.pipelines.spark.importable import Freshness, make_named_importable

Worker = Callable[[socket.socket, bool], int]
NEEDED = ("tailrace.pipelines.ticks.job", "tailrace.pipelines.streams.source", "pandas")
"""What nearly every task imports: once here takes less than once in each worker, and the
workers share its memory. PyArrow imports pandas where that is installed."""


def preload() -> None:
    for name in NEEDED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def quiet(worker: Worker) -> Worker:
    """`worker`, which ends without a stack when its other end is gone, and has the project's
    files imported again for the first task after they were taken over changed."""
    fresh = Freshness()

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            if authenticated:  # it has worked before: wait for the next task, then look
                select.select([sock], [], [])
                fresh.renew()
            return worker(sock, authenticated)
        except BrokenPipeError:
            return 1

    return run


if __name__ == "__main__":
    make_named_importable()
    preload()
    setattr(daemon, "worker", quiet(daemon.worker))  # noqa: B010 - mypy takes no new function
    daemon.manager()
