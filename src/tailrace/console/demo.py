"""The demo's buttons: plugs to pull, and the proof that nothing is lost.

Only there when `tailrace demo` runs the console. What they do is what a person could do
with `kill` and `psql`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from tailrace.clock import SYSTEM
from tailrace.console.errors import UnknownNameError
from tailrace.errors import TailraceError
from tailrace.telemetry.part import read_reports
from tailrace.views.reader import Views

ENVIRONMENT = "TAILRACE_DEMO_DSN"
PEOPLE_FILE = "people.pid"
PAUSE_SECONDS = 20.0
PROOF_SECONDS = 60.0
_COUNT = "SELECT count(*), coalesce(sum(amount), 0)::text FROM orders WHERE status = 'open'"
_PAID = (
    "SELECT o.id, o.amount::text, c.name, c.country FROM payments p JOIN orders o ON o.id = p.order_id"
    " JOIN customers c ON c.id = o.customer_id ORDER BY p.id DESC LIMIT 5"
)
# What must agree to the cent: in the database, and in a view.
_PROOFS = {
    "open orders": (
        "SELECT count(*) FROM orders WHERE status = 'open'",
        "SELECT coalesce(sum(orders), 0) FROM open_orders",
    ),
    "their value": (
        "SELECT coalesce(sum(amount), 0) FROM orders WHERE status = 'open'",
        "SELECT coalesce(sum(value), 0) FROM open_orders",
    ),
    "money taken": (
        "SELECT coalesce(sum(amount), 0) FROM payments",
        "SELECT coalesce(sum(revenue), 0) FROM revenue_per_minute",
    ),
    "customers": ("SELECT count(*) FROM customers", "SELECT count(*) FROM customer_360"),
    "page views": (
        "SELECT count(*) FROM page_views",
        "SELECT coalesce(sum(visits), 0) FROM visits_per_minute",
    ),
}


class Refund(BaseModel):
    """Which order; the newest paid one if none is named."""

    order: int | None = None


def is_demo() -> bool:
    """Whether this console belongs to the demo."""
    return ENVIRONMENT in os.environ


def ask_database(*queries: str) -> tuple[list[list[tuple[Any, ...]]], str]:
    """Answers of the shop's own database, and its position after the last."""
    import psycopg

    with psycopg.connect(os.environ[ENVIRONMENT], autocommit=True) as connection:
        answers = [connection.execute(query.encode()).fetchall() for query in queries]
        lsn = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    assert lsn is not None
    return answers, f"pg:shop:{int(lsn[0]):016X}"


def compare(views: Views, seconds: float) -> dict[str, Any]:
    """The database and the view side by side, the view at least as new as the database."""
    (counted, paid), position = ask_database(_COUNT, _PAID)
    found = {
        "database": {"orders": counted[0][0], "value": counted[0][1]},
        "paid": [
            {"order": order, "amount": amount, "name": name, "country": country}
            for order, amount, name, country in paid
        ],
    }
    began = SYSTEM.monotonic()
    try:
        views.wait(position, seconds)
    except TailraceError as error:
        return {**found, "view": None, "waiting": error.message}
    took = SYSTEM.monotonic() - began
    page = views.sql(
        "SELECT coalesce(sum(orders), 0)::BIGINT AS orders, coalesce(sum(value), 0)::VARCHAR AS value"
        " FROM open_orders"
    )
    return {**found, "view": page.rows[0], "position": page.position, "ms": round(took * 1000)}


def prove(views: Views, directory: Path) -> dict[str, Any]:
    """Hold the people still, wait for the views, and compare to the cent."""
    began = SYSTEM.monotonic()
    with _people_held(directory):
        answers, position = ask_database(*(query for query, _ in _PROOFS.values()))
        views.wait(position, PROOF_SECONDS)
        with views.snapshot() as snapshot:
            at = snapshot.position
        rows = []
        for (what, (_, query)), answer in zip(_PROOFS.items(), answers, strict=True):
            seen = next(iter(views.sql(query).rows[0].values()))
            true = Decimal(str(answer[0][0]))
            rows.append({"what": what, "database": str(true), "view": str(seen), "equal": true == Decimal(str(seen))})  # fmt: skip
    return {"rows": rows, "position": at, "ms": round((SYSTEM.monotonic() - began) * 1000)}


@contextmanager
def _people_held(directory: Path) -> Iterator[None]:
    """Nobody in the shop moves meanwhile; without people there is nobody to hold."""
    try:
        pid = int((directory / PEOPLE_FILE).read_text())
        os.kill(pid, signal.SIGSTOP)
    except (OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def refund(order: int | None) -> dict[str, Any]:
    """Refund one paid order, or the newest."""
    import psycopg

    with psycopg.connect(os.environ[ENVIRONMENT]) as connection:
        found = connection.execute(
            "WITH gone AS (DELETE FROM payments WHERE order_id = coalesce(%s,"
            " (SELECT order_id FROM payments ORDER BY id DESC LIMIT 1))"
            " RETURNING order_id, amount), changed AS (UPDATE orders SET status = 'refunded'"
            " WHERE id IN (SELECT order_id FROM gone)) SELECT order_id, amount::text FROM gone",
            (order,),
        ).fetchone()
    if found is None:
        raise UnknownNameError(
            "no order is paid yet" if order is None else f"order {order} is not paid",
            hint="wait a moment, or choose another",
        )
    return {"did": f"refunded order {found[0]} of {found[1]}"}


def add_demo(app: FastAPI, views: Views, directory: Path, answer: type[Response]) -> None:
    """The demo's routes."""
    # An earlier console may have ended while it held somebody still.
    for pid in _held(directory):
        _resume(pid)

    def pid_of(kind: str) -> int:
        for report in read_reports(directory):
            if report["kind"] == kind and report.get("pid"):
                return int(report["pid"])
        raise UnknownNameError(f"no part {kind!r} runs")

    @app.get("/api/demo")
    async def side_by_side(wait: Annotated[float, Query(ge=0, le=60)] = 2.0) -> Response:
        """Database and view side by side, and the orders paid last."""
        return answer(await run_in_threadpool(compare, views, wait))

    @app.post("/api/demo/prove")
    async def proof() -> Response:
        """Hold the shop for a moment and compare database and views to the cent."""
        return answer(await run_in_threadpool(prove, views, directory))

    @app.post("/api/demo/refund")
    async def refund_order(question: Refund) -> Response:
        """Refund a paid order."""
        return answer(await run_in_threadpool(refund, question.order))

    @app.post("/api/demo/kill/{kind}")
    def kill(kind: str) -> Response:
        """kill -9 the broker, the source, the pipelines, the follower or a sink."""
        if kind not in ("broker", "source", "pipelines", "views", "sink"):
            raise UnknownNameError(f"the demo does not kill {kind!r}")
        pid = pid_of(kind)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return answer({"did": f"the {kind} is down already; it is being started again"})
        return answer({"did": f"killed the {kind} (process {pid}) with signal 9"})

    @app.post("/api/demo/pause")
    def pause() -> Response:
        """Stop the pipeline for 20 seconds; the log goes on filling."""
        pid = pid_of("pipelines")
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return answer({"did": "the pipeline is down already; it is being started again"})
        threading.Timer(PAUSE_SECONDS, _resume, [pid]).start()
        return answer({"did": f"stopped the pipeline (process {pid}) for {PAUSE_SECONDS:g} s"})


def _held(directory: Path) -> Iterator[int]:
    """Processes that the buttons stop for a while."""
    with suppress(OSError, ValueError):
        yield int((directory / PEOPLE_FILE).read_text())
    yield from (int(r["pid"]) for r in read_reports(directory) if r["kind"] == "pipelines" and r.get("pid"))  # fmt: skip


def _resume(pid: int) -> None:
    with suppress(ProcessLookupError):  # it may have been killed meanwhile, and a new one runs
        os.kill(pid, signal.SIGCONT)
