"""Event topics by HTTP: decide, look at states and histories, see who owns what.

    POST /api/events/TOPIC/STREAM/COMMAND    JSON of the arguments; If-Match: "7" is the version the
                                             stream must have, Idempotency-Key the command's id
    GET  /api/events/TOPIC/STREAM            the state now, at `?version=` or `?at=` a time or position
    GET  /api/events/TOPIC/STREAM/history    its events, with everything known of them
    GET  /api/events · /api/events/TOPIC     figures; owners and fences of the partitions

The console owns nothing: it asks the owners, and opens a topic at the first call that needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import orjson
from fastapi import FastAPI, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from tailrace.client.event_topics import fences
from tailrace.client.log import connect
from tailrace.console.errors import UnknownNameError, ViewerError
from tailrace.console_login import OPERATOR, VIEWER
from tailrace.errors import UsageError
from tailrace.facts.errors import CommandArgumentsError, OwnerMissingError
from tailrace.telemetry.part import read_reports

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.console.app import Served
    from tailrace.facts.asking import Done, Fact
    from tailrace.facts.declare import Events
    from tailrace.facts.opened import OpenedEvents

PATIENCE_SECONDS = 10.0
MOST_EVENTS = 1_000
Answer = type[Response]
RESERVED = frozenset({"expected", "id", "actor", "cause", "correlation"})
"""Names that a call has for itself: a command with such an argument is called from Python."""
Word = Annotated[str | None, Header(max_length=480)]


class EventDoors:
    """The event topics of the project as this process calls them; opened when first needed."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lock = threading.RLock()
        self._log: Log | None = None
        self._opened: dict[str, OpenedEvents[Any]] = {}
        self._replaced: dict[str, OpenedEvents[Any]] = {}
        self._closed = False

    def declared(self, topic: str) -> Events[Any]:
        found = self._served.project.events.get(topic)
        if found is None:
            known = ", ".join(self._served.project.events) or "none"
            raise UnknownNameError(
                f"there is no event topic {topic!r}", detail=f"the project declares {known}"
            )
        return found

    def opened(self, topic: str) -> OpenedEvents[Any]:
        """Blocks: for a thread, not for the loop."""
        declared = self.declared(topic)
        with self._lock:
            found = self._opened.get(topic)
            if found is not None and found.declared is declared:
                return found
            if found is not None:
                # Declared again by files that were taken over. Calls that run may end.
                if (before := self._replaced.pop(topic, None)) is not None:
                    before.close()
                self._replaced[topic] = self._opened.pop(topic)
            if self._closed:
                raise OwnerMissingError("the console is ending")
            log = self.log()
            if log.topic(topic) is None:
                raise OwnerMissingError(
                    f"nobody has made the event topic {topic!r} yet",
                    hint="start its owner: `tailrace up`",
                )
            found = declared.open(log, owns=False, timeout=PATIENCE_SECONDS)
            self._opened[topic] = found
            return found

    def log(self) -> Log:
        """The log of the project, connected to at the first call."""
        with self._lock:
            if self._log is None:
                self._log = connect(self._served.bootstrap)
            return self._log

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for each in (*self._opened.values(), *self._replaced.values()):
                each.close()
            self._opened.clear()
            self._replaced.clear()
            if self._log is not None:
                self._log.close()
                self._log = None


def add_events(app: FastAPI, served: Served, answer: Answer) -> EventDoors:
    """All routes of event topics."""
    doors = EventDoors(served)
    _add_topics(app, served, doors, answer)
    _add_streams(app, doors, answer)
    return doors


def _add_topics(app: FastAPI, served: Served, doors: EventDoors, answer: Answer) -> None:
    @app.get("/api/events")
    def topics() -> Response:
        """Every event topic with its figures."""
        told = figures_of(served)
        found = [_about(each, told.get(name, {})) for name, each in served.project.events.items()]
        return answer({"topics": found})

    @app.get("/api/events/{topic}")
    def topic(topic: str) -> Response:
        """Owners and fences of each partition, beside the figures of the topic."""
        opened = doors.opened(topic)
        declared = opened.declared
        owners = opened.owners()
        known = fences(opened.log.cluster(timeout=PATIENCE_SECONDS), topic, declared.partitions)
        told = figures_of(served).get(topic, {})
        about = _about(declared, told)
        by_number = {each["partition"]: each for each in told.get("owned", ())}
        about["owners"] = [
            {
                "partition": number,
                "owner": owners.get(number),
                "producer_id": known[number].producer_id if number in known else None,
                "epoch": known[number].epoch if number in known else None,
                "waiting": by_number.get(number, {}).get("waiting"),
                "events": by_number.get(number, {}).get("events"),
            }
            for number in range(declared.partitions)
        ]
        return answer(about)


def _about(declared: Events[Any], told: dict[str, Any]) -> dict[str, Any]:
    names = ("events", "bytes", "streams", "foreign", "rebuilt_events", "rebuilt_seconds")
    return {
        "topic": declared.name,
        "partitions": declared.partitions,
        "types": [each.written for each in declared.types],
        "commands": {
            each.name: [name for name in each.parameters if not (each.wants_time and name == "at")]
            for each in declared.commands.values()
        },
        "publish": declared.publish,
        **{name: told.get(name) for name in names},
        "commands_total": told.get("commands"),
        "rejected_total": told.get("rejected"),
        "rate": told.get("rate"),
    }


def figures_of(served: Served) -> dict[str, dict[str, Any]]:
    """What the parts that own event topics last said of them, by topic."""
    found: dict[str, dict[str, Any]] = {}
    for report in read_reports(served.project.settings.state_directory):
        if report.get("kind") == "events":
            found |= report.get("topics") or {}
    return found


def _add_streams(app: FastAPI, doors: EventDoors, answer: Answer) -> None:
    async def ask(request: Request, topic: str, work: Callable[[OpenedEvents[Any]], Any]) -> Any:
        if doors.declared(topic).types.has_personal and _role(request) == VIEWER:
            raise ViewerError(
                f"the events of {topic!r} have personal fields, which operators see and viewers do not",
                hint="views of the topic show them sealed",
            )
        return await run_in_threadpool(lambda: work(doors.opened(topic)))

    @app.get("/api/events/{topic}/{stream:path}/history")
    async def history(
        request: Request,
        topic: str,
        stream: str,
        first: Annotated[int, Query(ge=1, le=2**62)] = 1,
        limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = MOST_EVENTS,
    ) -> Response:
        """The events of a stream, from version `first` on; `next` is where to go on."""

        def work(opened: OpenedEvents[Any]) -> dict[str, Any]:
            facts = opened.history(stream, first=first, last=first + limit - 1)
            more = len(facts) == limit
            return {"events": [shown(each) for each in facts], "next": first + limit if more else None}  # fmt: skip

        return answer(await ask(request, topic, work))

    @app.get("/api/events/{topic}/{stream:path}")
    async def state(
        request: Request,
        topic: str,
        stream: str,
        version: Annotated[int | None, Query(ge=0, le=2**62)] = None,
        at: Annotated[str | None, Query(max_length=500)] = None,
    ) -> Response:
        """The state of a stream: now, at a version, or at a time or position."""

        def work(opened: OpenedEvents[Any]) -> Any:
            return opened.state(stream, version=version, at=at)

        found = await ask(request, topic, work)
        body = {
            "stream": stream,
            "version": found.version,
            "position": found.position,
            "state": plain(found.value),
        }
        return answer(body, headers=_headers(found.version, found.position))

    @app.post("/api/events/{topic}/{stream:path}/{command}")
    async def execute(
        request: Request,
        topic: str,
        stream: str,
        command: str,
        if_match: Word = None,
        idempotency_key: Word = None,
        tailrace_actor: Word = None,
        tailrace_cause: Word = None,
        tailrace_correlation: Word = None,
    ) -> Response:
        """Decide on a stream: the body is the JSON object of the command's arguments."""
        given = _arguments(await request.body())
        expected = _version(if_match)
        opened = await run_in_threadpool(doors.opened, topic)
        found = opened.declared.find_command(command)
        if taken := sorted(RESERVED & given.keys()):
            raise CommandArgumentsError(
                f"the argument {taken[0]} of {command} cannot be given by HTTP",
                detail="its name is one of the call's own",
                hint="rename the argument of the command",
            )
        done = await opened.aexecute(
            command,
            stream,
            expected=expected,
            id=idempotency_key,
            actor=tailrace_actor,
            cause=tailrace_cause,
            correlation=tailrace_correlation,
            **found.convert(given),
        )
        return answer(told(opened, done), headers=_headers(done.version, done.position))


def _role(request: Request) -> str:
    """Who asks, as the guard before these routes knows it."""
    return str(getattr(request.state, "role", OPERATOR))


def _headers(version: int, position: str | None) -> dict[str, str]:
    headers = {"ETag": f'"{version}"'}
    return headers if position is None else {**headers, "Tailrace-Position": position}


def told(opened: OpenedEvents[Any], done: Done[Any]) -> dict[str, Any]:
    """What a decision came to."""
    types = opened.declared.types.by_class
    return {
        "version": done.version,
        "position": done.position,
        "events": [{"type": types[type(each)].name, **plain(each)} for each in done.events],
        "state": plain(done.state),
        "id": done.id,
        "repeated": done.repeated,
    }


def shown(fact: Fact) -> dict[str, Any]:
    """An event with what is known of it."""
    return {
        "version": fact.version,
        "type": fact.type,
        "at": fact.at.isoformat(),
        "event": plain(fact.event),
        "position": fact.position,
        "id": fact.id,
        "command": fact.command,
        "name": fact.name,
        "cause": fact.cause,
        "correlation": fact.correlation,
        "actor": fact.actor,
    }


def plain(value: object) -> Any:
    """A state or event as JSON has it."""
    return msgspec.to_builtins(value, str_keys=True)


def _arguments(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise CommandArgumentsError("the body is not JSON", detail=str(error)) from error
    if not isinstance(given, dict):
        raise CommandArgumentsError(
            "the body is no JSON object", hint='the arguments by name: {"amount": 50}'
        )
    return given


def _version(if_match: str | None) -> int | None:
    """The version of `If-Match: "7"`; 0 is a stream that is new."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UsageError(
            f"{if_match!r} is no version of a stream", hint='If-Match: "7", or "0" for a new one'
        )
    return int(text)
