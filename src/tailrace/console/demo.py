"""The demo's buttons: plugs to pull, and the proof that nothing is lost.

Only there when `tailrace demo` runs the console. What they do is what a person could do
with `kill` and `psql`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import FastAPI, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from tailrace.clock import SYSTEM
from tailrace.console.errors import UnknownNameError
from tailrace.errors import TailraceError
from tailrace.serving.reader import Views
from tailrace.telemetry.part import read_reports

if TYPE_CHECKING:
    from tailrace.console.app import Served

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


class Shop:
    """The shop's own database, asked over one connection. Safe to use from several threads."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._guard = threading.Lock()

    def ask(self, *queries: str) -> tuple[list[list[tuple[Any, ...]]], str]:
        """Answers to all of them, and the database's position after the last."""
        import psycopg

        with self._guard:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(os.environ[ENVIRONMENT], autocommit=True)
            try:
                answers = [self._connection.execute(query.encode()).fetchall() for query in queries]
                lsn = self._connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
            except psycopg.OperationalError:
                self._connection.close()  # the next question finds the server again
                raise
        return answers, f"pg:shop:{int(lsn[0]):016X}"

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()


def _counted(views: Views) -> dict[str, Any]:
    """Open orders as the view has them: a few rows, no query needed."""
    rows = views.rows("open_orders").rows
    value = sum((Decimal(str(row["value"])) for row in rows), Decimal(0))
    return {"orders": sum(int(row["orders"]) for row in rows), "value": str(value)}


def prove(shop: Shop, views: Views, directory: Path) -> dict[str, Any]:
    """Hold the people still, wait for the views, and compare to the cent."""
    began = SYSTEM.monotonic()
    with _people_held(directory):
        answers, position = shop.ask(*(query for query, _ in _PROOFS.values()))
        views.wait(position, PROOF_SECONDS)
        with views.snapshot() as snapshot:
            at = snapshot.position
        rows = []
        for (what, (_, query)), answer in zip(_PROOFS.items(), answers, strict=True):
            seen = next(iter(views.sql(query).rows[0].values()))
            true = Decimal(str(answer[0][0]))
            rows.append({"what": what, "database": str(true), "view": str(seen), "equal": true == Decimal(str(seen))})  # fmt: skip
    return {"rows": rows, "position": at, "ms": round((SYSTEM.monotonic() - began) * 1000)}


# Views whose SQL Spark takes as it is, without a clock; it answers them from the tables alone.
_JUDGED = ("open_orders", "best_sellers", "click_through")
_SPARK_SECONDS = 300.0


def beside_spark(project: Path) -> dict[str, Any]:
    """Views beside Spark's own batch answers, as `tailrace view verify` has them; the shop
    need not stand still, because both are of one tick."""
    began = SYSTEM.monotonic()
    command = [sys.executable, "-m", "tailrace", "view", "verify", *_JUDGED, "--json"]
    try:
        done = subprocess.run(
            [*command, "--project", str(project)],
            capture_output=True, text=True, timeout=_SPARK_SECONDS, cwd=project,
        )  # fmt: skip
        found = orjson.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise TailraceError(f"Spark has not answered in {_SPARK_SECONDS:g} s") from None
    except orjson.JSONDecodeError:
        said = done.stderr.strip().splitlines()
        raise TailraceError("the views were not compared", detail="\n".join(said[-3:])) from None
    return {"rows": [_judged(one) for one in found], "ms": round((SYSTEM.monotonic() - began) * 1000)}  # fmt: skip


def _judged(one: dict[str, Any]) -> dict[str, Any]:
    if one["equal"] is None:
        spark, view = "not compared", one["error"]["error"]
    else:
        spark = f"{one['spark_rows']} rows"
        view = f"{one['rows']} rows at tick {one['tick']}, {one['differing']} differ"
    return {"what": one["view"], "spark": spark, "view": view, "equal": one["equal"] is True}


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


def add_demo(app: FastAPI, served: Served, answer: type[Response]) -> Shop:
    """The demo's routes; close the shop they ask when the console ends."""
    shop, views, directory = Shop(), served.views, served.project.settings.state_directory
    judging = threading.Lock()
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
        (counted, paid), position = await run_in_threadpool(shop.ask, _COUNT, _PAID)
        found: dict[str, Any] = {
            "database": {"orders": counted[0][0], "value": counted[0][1]},
            "paid": [
                dict(zip(("order", "amount", "name", "country"), one, strict=True)) for one in paid
            ],
        }
        began = SYSTEM.monotonic()
        assert served.feed is not None
        try:
            await served.feed.wait(position, wait)
            found |= {"view": await run_in_threadpool(_counted, views), "position": views.position}
        except TailraceError as error:
            found |= {"view": None, "waiting": error.message}
        return answer({**found, "ms": round((SYSTEM.monotonic() - began) * 1000)})

    @app.post("/api/demo/prove")
    async def proof() -> Response:
        """Hold the shop for a moment and compare database and views to the cent."""
        return answer(await run_in_threadpool(prove, shop, views, directory))

    @app.post("/api/demo/verify")
    async def verification() -> Response:
        """Some views beside what Spark makes of their SQL at one tick; one question at a time."""
        if not judging.acquire(blocking=False):
            raise TailraceError("Spark is being asked already", hint="wait for its answer")
        try:
            return answer(await run_in_threadpool(beside_spark, served.project.directory))
        finally:
            judging.release()

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
        later = threading.Timer(PAUSE_SECONDS, _resume, [pid])
        later.daemon = True  # a console that ends leaves it to the next one
        later.start()
        return answer({"did": f"stopped the pipeline (process {pid}) for {PAUSE_SECONDS:g} s"})

    return shop


def _held(directory: Path) -> Iterator[int]:
    """Processes that the buttons stop for a while."""
    with suppress(OSError, ValueError):
        yield int((directory / PEOPLE_FILE).read_text())
    yield from (int(r["pid"]) for r in read_reports(directory) if r["kind"] == "pipelines" and r.get("pid"))  # fmt: skip


def _resume(pid: int) -> None:
    with suppress(ProcessLookupError):  # it may have been killed meanwhile, and a new one runs
        os.kill(pid, signal.SIGCONT)
