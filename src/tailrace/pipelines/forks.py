"""The process that Spark forks its Python workers from: PySpark's own, without its last words.

A worker that is idle when Spark ends finds its socket closed, and PySpark prints the stack of
that. Nobody reads what such a worker has left to say.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable

from pyspark import daemon

from tailrace.pipelines.importable import Freshness, make_named_importable

Worker = Callable[[socket.socket, bool], int]


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
    setattr(daemon, "worker", quiet(daemon.worker))  # noqa: B010 - mypy takes no new function
    daemon.manager()
