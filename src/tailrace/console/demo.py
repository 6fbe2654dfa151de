"""The demo's buttons: plugs to pull, and the proof that nothing is lost.

Only there when `tailrace demo` runs the console. What they do is what a person could do
with `kill` and `psql`.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from fastapi import FastAPI, Response
from starlette.concurrency import run_in_threadpool

from tailrace.clock import SYSTEM
from tailrace.console.errors import UnknownNameError
from tailrace.errors import TailraceError
from tailrace.telemetry.part import read_reports
from tailrace.views.reader import Views

ENVIRONMENT = "TAILRACE_DEMO_DSN"
PAUSE_SECONDS = 20.0
_COUNT = "SELECT count(*), coalesce(sum(amount), 0)::text FROM orders WHERE status = 'open'"


def is_demo() -> bool:
    """Whether this console belongs to the demo."""
    return ENVIRONMENT in os.environ


def truth() -> tuple[dict[str, Any], str]:
    """What the shop's own database says of its open orders, and its position."""
    import psycopg

    with psycopg.connect(os.environ[ENVIRONMENT], autocommit=True) as connection:
        found = connection.execute(_COUNT).fetchone()
        lsn = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    assert found is not None
    assert lsn is not None
    return {"orders": found[0], "value": found[1]}, f"pg:shop:{int(lsn[0]):016X}"


def compare(views: Views, seconds: float) -> dict[str, Any]:
    """The database and the view side by side, the view at least as new as the database."""
    database, position = truth()
    began = SYSTEM.monotonic()
    try:
        views.wait(position, seconds)
    except TailraceError as error:
        return {"database": database, "view": None, "waiting": error.message}
    took = SYSTEM.monotonic() - began
    page = views.sql(
        "SELECT coalesce(sum(orders), 0)::BIGINT AS orders, coalesce(sum(value), 0)::VARCHAR AS value"
        " FROM open_orders"
    )
    return {
        "database": database,
        "view": page.rows[0],
        "position": page.position,
        "ms": round(took * 1000),
    }


def refund() -> dict[str, Any]:
    """Refund the newest paid order."""
    import psycopg

    with psycopg.connect(os.environ[ENVIRONMENT]) as connection:
        found = connection.execute(
            "WITH gone AS (DELETE FROM payments WHERE id = (SELECT max(id) FROM payments)"
            " RETURNING order_id, amount), changed AS (UPDATE orders SET status = 'refunded'"
            " WHERE id IN (SELECT order_id FROM gone)) SELECT order_id, amount::text FROM gone"
        ).fetchone()
    if found is None:
        raise UnknownNameError("no order is paid yet", hint="wait a moment")
    return {"did": f"refunded order {found[0]} of {found[1]}"}


def add_demo(app: FastAPI, views: Views, directory: Any, answer: type[Response]) -> None:
    """The demo's routes."""

    def pid_of(kind: str) -> int:
        for report in read_reports(directory):
            if report["kind"] == kind:
                return int(report["pid"])
        raise UnknownNameError(f"no part {kind!r} runs")

    @app.get("/api/demo")
    async def proof(wait: float = 2.0) -> Response:
        """Database and view side by side."""
        return answer(await run_in_threadpool(compare, views, min(wait, 60.0)))

    @app.post("/api/demo/refund")
    async def refund_order() -> Response:
        """Refund the newest paid order."""
        return answer(await run_in_threadpool(refund))

    @app.post("/api/demo/kill/{kind}")
    def kill(kind: str) -> Response:
        """kill -9 the broker, the source, the pipelines, the follower or a sink."""
        if kind not in ("broker", "source", "pipelines", "views", "sink"):
            raise UnknownNameError(f"the demo does not kill {kind!r}")
        pid = pid_of(kind)
        os.kill(pid, signal.SIGKILL)
        return answer({"did": f"killed the {kind} (process {pid}) with signal 9"})

    @app.post("/api/demo/pause")
    def pause() -> Response:
        """Stop the pipeline for 20 seconds; the log goes on filling."""
        pid = pid_of("pipelines")
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(PAUSE_SECONDS, _resume, [pid]).start()
        return answer({"did": f"stopped the pipeline (process {pid}) for {PAUSE_SECONDS:g} s"})


def _resume(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return  # it was killed meanwhile, and a new one runs
