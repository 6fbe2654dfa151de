"""The cluster behind the log, over HTTP: its state, and plans of elections and moves.

Both POSTs only plan until `execute` is true, and need an operator's token, as everything that
changes something. A throttle needs somebody who waits for the end of the moves and takes it away,
so it is the command's (`tailrace cluster move --throttle … --wait`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from fastapi import FastAPI, Path, Response
from pydantic import BaseModel, Field

from tailrace.client.admin import Admin
from tailrace.client.elections import plan_or_elect
from tailrace.client.moves import plan_or_cancel, plan_or_move
from tailrace.client.operations import Operations
from tailrace.console.errors import UnknownNameError
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.console.app import Served

TIMEOUT = 20.0
Answer = type[Response]
Name = Annotated[str, Field(min_length=1, max_length=260)]
Id = Annotated[int, Field(ge=0, le=2**31 - 1)]


class MoveQuestion(BaseModel):
    """TOPIC or TOPIC/PARTITION and where to, or the broker to empty; or what to cancel."""

    topics: list[Name] = Field(default=[], max_length=1000)
    leaving: Id | None = Field(default=None, alias="from")
    to: list[Id] | None = Field(default=None, max_length=1000)
    cancel: bool = False
    execute: bool = False


class ElectQuestion(BaseModel):
    """Preferred leaders; or, with `unclean` and `accept_loss`, any leader for those without."""

    topics: list[Name] = Field(default=[], max_length=1000)
    unclean: bool = False
    accept_loss: bool = False
    execute: bool = False


def add_cluster(app: FastAPI, served: Served, answer: Answer) -> None:
    """All of them."""

    @app.get("/api/cluster")
    def cluster() -> Response:
        """Brokers, leaders, in-sync replicas, controller, moves and throttles. `flapping` and
        `events`, from a look every two seconds, are null for the embedded log: it has one copy."""
        watched = served.cluster.document if served.cluster else None
        with Admin(served.bootstrap, timeout=TIMEOUT) as admin:
            document = Operations(admin).status().document()
        seen = {name: watched[name] if watched else None for name in ("flapping", "events")}
        return answer({**document, **seen})

    @app.get("/api/brokers/{broker}")
    def settings(broker: Annotated[int, Path(ge=0, le=2**31 - 1)]) -> Response:
        """A broker: where it listens, what it leads and keeps, its settings and which are not
        the defaults."""
        with Admin(served.bootstrap, timeout=TIMEOUT) as admin:
            state = Operations(admin).status()
            about = next((each for each in state.brokers if each.id == broker), None)
            if about is None or about.state != "up":
                raise UnknownNameError(f"there is no broker {broker}, or it does not answer")
            entries = sorted(admin.broker_config(broker).items())
        return answer(
            {
                **asdict(about),
                "controller": state.controller.id == broker,
                "config": {name: entry.value for name, entry in entries},
                "changed": [name for name, entry in entries if not entry.is_default],
                "fixed": [name for name, entry in entries if entry.read_only],
                "about": {name: entry.documentation for name, entry in entries if entry.documentation},
            }
        )  # fmt: skip

    @app.post("/api/cluster/move")
    def move(question: MoveQuestion) -> Response:
        """Plan moves, or cancel those on their way; carried out with `execute`."""
        with Admin(served.bootstrap, timeout=TIMEOUT) as admin:
            if question.cancel:
                if question.leaving is not None or question.to is not None:
                    raise UsageError("what is cancelled goes back to where it was")
                moves = plan_or_cancel(admin, question.topics, execute=question.execute)
            else:
                moves = plan_or_move(
                    admin,
                    question.topics,
                    leaving=question.leaving,
                    to=question.to,
                    execute=question.execute,
                )
        return answer({"executed": question.execute, "moves": [each.document() for each in moves]})

    @app.post("/api/cluster/elect")
    def elect(question: ElectQuestion) -> Response:
        """Plan elections; held with `execute`."""
        if question.unclean != question.accept_loss:
            raise UsageError(
                "an unclean election loses what the new leader misses",
                hint="unclean and accept_loss go together",
            )
        with Admin(served.bootstrap, timeout=TIMEOUT) as admin:
            elections = plan_or_elect(
                admin, question.topics, unclean=question.unclean, execute=question.execute
            )
        return answer(
            {"executed": question.execute, "elections": [asdict(each) for each in elections]}
        )
