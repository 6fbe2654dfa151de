"""The project's mirrors over HTTP: how each is, and leaving a site or coming back.

Both POSTs only plan until `execute` is true, and need an operator's token. A fail-back answers when
everything is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fastapi import FastAPI, Response
from pydantic import BaseModel

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.client.fetcher import Fetcher
from tailrace.console.errors import UnknownNameError
from tailrace.mirroring import status as states
from tailrace.mirroring.fail_over import fail_back, fail_over
from tailrace.mirroring.plan import MirrorPlan
from tailrace.mirroring.rows import read_rows

if TYPE_CHECKING:
    from tailrace.console.app import Served

Answer = type[Response]
TIMEOUT = 5.0


class FailOverQuestion(BaseModel):
    """Where groups go on: `translated` offsets, by `time`, at the `earliest` or `latest` record."""

    start: Literal["translated", "time", "earliest", "latest"] = "translated"
    execute: bool = False


class FailBackQuestion(BaseModel):
    """Without `execute`, what would be copied."""

    execute: bool = False


def add_mirrors(app: FastAPI, served: Served, answer: Answer) -> None:
    """All of them."""

    @app.get("/api/mirrors")
    def mirrors() -> Response:
        """The project's mirrors and how far each is."""
        found = [describe(served, plan) for plan in served.project.mirrors.values()]
        return answer({"mirrors": found})

    @app.get("/api/mirrors/{name}")
    def mirror(name: str) -> Response:
        """One mirror, by partition."""
        return answer(describe(served, _plan(served, name)))

    @app.post("/api/mirrors/{name}/fail-over")
    def over(name: str, question: FailOverQuestion) -> Response:
        """What would be missing at the target; with `execute` it stands alone from now on."""
        source, target = _ends(served, _plan(served, name))
        found = fail_over(name, target, source, start=question.start, execute=question.execute)
        return answer(found.document())

    @app.post("/api/mirrors/{name}/fail-back")
    def back(name: str, question: FailBackQuestion) -> Response:
        """What only one side has; with `execute` it is kept and copied, and the mirror runs."""
        source, target = _ends(served, _plan(served, name))
        return answer(fail_back(name, source, target, execute=question.execute).document())


def describe(served: Served, plan: MirrorPlan) -> dict[str, Any]:
    """The document of `mirroring.status`, and the plan; `state` is null where the target does not
    answer, and `new` where nothing was mirrored."""
    source, target = _ends(served, plan)
    about = {
        "from": plan.source,
        "to": plan.target,
        "patterns": list(plan.topics),
        "rule": plan.conflicts,
    }
    try:
        with Admin(target, timeout=TIMEOUT) as admin, Fetcher(target, timeout=TIMEOUT) as fetcher:
            rows = read_rows(admin, fetcher).get(plan.name)
    except ClientError:
        return {"name": plan.name, "state": None, **about, **_NOTHING}
    if rows is None:
        return {"name": plan.name, "state": "new", **about, **_NOTHING}
    return {**about, **states.document(plan.name, rows, source)}


_NOTHING: dict[str, Any] = {
    "lag_records": None,
    "lag_ms": None,
    "records": 0,
    "conflicts": 0,
    "topics": [],
}


def _plan(served: Served, name: str) -> MirrorPlan:
    plan = served.project.mirrors.get(name)
    if plan is None:
        raise UnknownNameError(
            f"there is no mirror {name!r}",
            hint=f"the project has {', '.join(sorted(served.project.mirrors)) or 'none'}",
        )
    return plan


def _ends(served: Served, plan: MirrorPlan) -> tuple[str, str]:
    project = served.project
    return (
        project.cluster(plan.source, served.bootstrap),
        project.cluster(plan.target, served.bootstrap),
    )
