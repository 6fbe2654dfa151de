"""Watching over Spark's JVM, the one process that pipelines cannot do without.

Every call into Spark waits on a socket to the JVM, and a dead JVM is not always noticed
there: a callback, a query that is being stopped or a session that is being closed may wait
for good. So a thread watches the process itself. When it is gone, whoever works with Spark
gets some seconds to notice and raise; then this process ends, wherever it hangs. That loses
nothing: a kill -9 at any moment is what ticks and streams are built for.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from tailrace.pipelines.errors import SparkLostError

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
GRACE_SECONDS = 5.0


class JvmWatch:
    """Knows whether Spark's JVM lives; ends this process if it cannot end by itself.

    `told` is called from the watching thread, with the error when the JVM is gone.
    Leaving the context stops the watching.
    """

    def __init__(
        self,
        spark: SparkSession,
        told: Callable[[SparkLostError], None],
        *,
        grace_seconds: float = GRACE_SECONDS,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        gateway: Any = spark.sparkContext._gateway
        # None where spark-submit has started us: then the JVM is our parent, not our child
        self._process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
        self._told = told
        self._grace_seconds = grace_seconds
        self._end = end
        self._left = threading.Event()
        self._gone = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch of the JVM", daemon=True)

    def __enter__(self) -> Self:
        if self._process is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._process is not None:
            self._thread.join()

    def gone(self, within_seconds: float = 0.0) -> bool:
        """Whether the JVM has ended, or ends within this time."""
        return self._process is not None and self._gone.wait(within_seconds)

    def error(self) -> SparkLostError:
        status = None if self._process is None else self._process.returncode
        return SparkLostError(
            f"Spark's process ended {_told_status(status)}",
            detail="nothing is lost: ticks and streams go on from what they last committed",
            hint="the pipelines start again by themselves; if it happens again, look into "
            "spark.log and the kernel's log (is memory short?)",
        )

    def _watch(self) -> None:
        assert self._process is not None
        while self._process.poll() is None:
            if self._left.wait(LOOK_SECONDS):
                return
        self._gone.set()
        self._told(self.error())
        if not self._left.wait(self._grace_seconds):
            log.error("a call waits for a Spark that is gone; the process ends")
            faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
            sys.stderr.flush()
            self._told(self.error())  # a report of the hanging thread may have come in between
            self._end(1)


def _told_status(status: int | None) -> str:
    if status is None:
        return "unexpectedly"
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
