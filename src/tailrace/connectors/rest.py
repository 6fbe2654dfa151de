"""Kafka Connect's REST paths.

What changes something is done by the leader: another worker passes the request on, and answers when
it has read what the leader wrote. What is asked is answered by whoever is asked.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from tailrace import __version__
from tailrace.client.errors import ClientError
from tailrace.connectors import configured
from tailrace.connectors.altering import alter, listed, reset
from tailrace.connectors.configured import PAUSED, STARTED, STOPPED, Configured
from tailrace.connectors.errors import Refused, missing, unknown
from tailrace.connectors.levels import TO_PYTHON
from tailrace.connectors.worker import Worker
from tailrace.errors import TailraceError
from tailrace.masking import mask
from tailrace.plain_http import Answer, Request

log = logging.getLogger(__name__)

_POSITION = "x-tailrace-connect-position"
SECRET = "x-tailrace-connect"
STOP_SECONDS = 15.0


class Done(Exception):
    """An answer with a status, and a body or none."""

    def __init__(self, status: int, body: Any = None, location: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.location = location


def refuse(status: int, reason: str) -> Answer:
    """An answer before anybody looked at the path."""
    return _problem(status, reason if status in (401, 403, 500) else f"HTTP {status} {reason}")


def _problem(status: int, message: str) -> Answer:
    return Answer(status, orjson.dumps({"error_code": status, "message": mask(message)}))


class Rest:
    """Requests to answers."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __call__(self, request: Request) -> Answer:
        try:
            made = self._route(request)
        except Done as done:
            headers = [(_POSITION.title(), str(self._worker.configs.position))]
            if done.location:
                headers.append(("Location", done.location))
            body = b"" if done.body is None else orjson.dumps(done.body)
            return Answer(done.status, body, headers=tuple(headers))
        except Refused as refused:
            return _problem(refused.status, refused.message)
        except ClientError as error:
            return _problem(500, error.render())
        except TailraceError as error:
            return _problem(500, str(error))
        if isinstance(made, Answer):
            return made
        return Answer(200, orjson.dumps(made))

    def _route(self, request: Request) -> Any:
        ask = _Ask(request, self._worker)
        methods: dict[str, Callable[[], Any]] = {}
        leads: dict[str, Callable[[], Any]] = {}
        match request.path:
            case ():
                methods = {"GET": ask.root}
            case ("health",):
                methods = {"GET": ask.health}
            case ("connectors",):
                methods, leads = {"GET": ask.connectors}, {"POST": ask.create}
            case ("connectors", name):
                methods, leads = {"GET": lambda: ask.info(name)}, {"DELETE": lambda: ask.delete(name)}  # fmt: skip
            case ("connectors", name, "config"):
                methods = {"GET": lambda: ask.config(name)}
                leads = {"PUT": lambda: ask.put_config(name), "PATCH": lambda: ask.patch_config(name)}  # fmt: skip
            case ("connectors", name, "status"):
                methods = {"GET": lambda: ask.status(name)}
            case ("connectors", name, "pause"):
                leads = {"PUT": lambda: ask.target(name, PAUSED)}
            case ("connectors", name, "resume"):
                leads = {"PUT": lambda: ask.target(name, STARTED)}
            case ("connectors", name, "stop"):
                leads = {"PUT": lambda: ask.stop(name)}
            case ("connectors", name, "restart"):
                leads = {"POST": lambda: ask.restart(name)}
            case ("connectors", name, "tasks"):
                methods = {"GET": lambda: ask.tasks(name), "POST": lambda: ask.take_tasks(name)}
            case ("connectors", name, "fence"):
                methods = {"PUT": lambda: ask.fence(name)}
            case ("connectors", name, "tasks", number, "status") if number.isdigit():
                methods = {"GET": lambda: ask.task_status(name, int(number))}
            case ("connectors", name, "tasks", number, "restart") if number.isdigit():
                methods = {"POST": lambda: ask.restart_task(name, int(number))}
            case ("connectors", name, "topics"):
                methods = {"GET": lambda: ask.topics(name)}
            case ("connectors", name, "topics", "reset"):
                methods = {"PUT": lambda: ask.reset_topics(name)}
            case ("connectors", name, "offsets"):
                methods = {"GET": lambda: ask.offsets(name)}
                leads = {"PATCH": lambda: ask.alter_offsets(name), "DELETE": lambda: ask.reset_offsets(name)}  # fmt: skip
            case ("connector-plugins",):
                methods = {"GET": ask.plugins}
            case ("connector-plugins", name, "config"):
                methods = {"GET": lambda: ask.plugin(name)}
            case ("connector-plugins", name, "config", "validate"):
                methods = {"PUT": lambda: ask.validate(name)}
            case ("admin", "loggers"):
                methods = {"GET": ask.loggers}
            case ("admin", "loggers", name):
                methods = {"GET": lambda: ask.logger(name), "PUT": lambda: ask.set_level(name)}
            case _:
                raise Refused(404, "HTTP 404 Not Found")
        method = "GET" if request.method == "HEAD" else request.method
        if method in leads:
            return leads[method]() if self._worker.leads else self._pass_on(request)
        if method in methods:
            return methods[method]()
        raise Refused(405, "HTTP 405 Method Not Allowed")

    def _pass_on(self, request: Request) -> Answer:
        """Have the leader do it, and wait until we know what it did."""
        leader = self._worker.leader()
        if leader.url == self._worker.url or request.headers.get("x-tailrace-forwarded"):
            raise Refused(409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)")  # fmt: skip
        path = "/" + "/".join(quote(part, safe="") for part in request.path)
        if request.query:
            path += "?" + urlencode([(n, v) for n, each in request.query.items() for v in each])
        host = request.headers.get("host", "")
        try:
            status, body, told = self._worker.send(
                leader, request.method, path, request.body, forwarded="1", host=host
            )
        except OSError as error:
            raise Refused(500, f"IO Error trying to forward REST request: {error}") from error
        if _POSITION in told:
            self._worker.configs.wait_for(int(told[_POSITION]), 10)
        more = (("Location", told["location"]),) if "location" in told else ()
        return Answer(status, body, headers=more)


class _Ask:
    """One request behind its path."""

    def __init__(self, request: Request, worker: Worker) -> None:
        self._request = request
        self._worker = worker

    # What the request says -----------------------------------------------------------

    @property
    def _state(self) -> Configured:
        return self._worker.configs.state()

    def _known(self, name: str) -> Configured:
        state = self._state
        if name not in state.connectors:
            raise missing(name)
        return state

    def _body(self) -> Any:
        try:
            return orjson.loads(self._request.body)
        except orjson.JSONDecodeError as error:
            raise Refused(500, f"the body is no JSON: {error}") from error

    def _object(self) -> dict[str, Any]:
        found = self._body()
        if not isinstance(found, dict):
            raise Refused(500, "the body is no JSON object")
        return found

    def _texts(self, found: Any) -> dict[str, str]:
        """Settings: numbers and truth values become the texts that stand for them."""
        if not isinstance(found, dict):
            raise Refused(500, "the settings of a connector are a JSON object")
        texts: dict[str, str] = {}
        for name, value in found.items():
            match value:
                case None:
                    continue
                case bool():
                    texts[name] = "true" if value else "false"
                case str():
                    texts[name] = value
                case int() | float():
                    texts[name] = str(value)
                case _:
                    raise Refused(500, f"the setting {name} is neither text nor number")
        return texts

    def _flag(self, name: str) -> bool:
        return self._request.parameter(name).lower() == "true"

    def _here(self, name: str) -> str:
        host = self._request.headers.get("x-tailrace-host") or self._request.headers.get("host")
        scheme = self._worker.url.partition("://")[0]
        return f"{scheme}://{host or self._worker.name}/connectors/{quote(name, safe='')}"

    def _from_worker(self) -> None:
        given, secret = self._request.headers.get(SECRET), self._worker.secret
        if given is None or not hmac.compare_digest(given.encode(), secret.encode()):
            raise Refused(403, "only workers of the group may ask for this")

    # About the worker ----------------------------------------------------------------

    def root(self) -> Any:
        return {
            "version": __version__,
            "commit": "tailrace",
            "kafka_cluster_id": self._worker.cluster_id(),
        }

    def health(self) -> Any:
        return {
            "status": "healthy",
            "message": "Worker has completed startup and is ready to handle requests.",
        }

    def loggers(self) -> Any:
        return self._worker.levels.listed()

    def logger(self, name: str) -> Any:
        found = self._worker.levels.level(name)
        if found is None:
            raise Refused(404, f"Logger {name} not found.")
        return found

    def set_level(self, name: str) -> Any:
        level = self._object().get("level")
        if level is None:
            raise Refused(400, "Desired 'level' parameter was not specified in request.")
        if str(level).upper() not in TO_PYTHON:
            raise Refused(404, f"invalid log level '{level}'.")
        if self._request.parameter("scope").lower() == "cluster":
            self._lead([configured.write_level(name, str(level).upper())])
            raise Done(204)
        return self._worker.levels.set(name, str(level).upper())

    def _lead(self, records: list[configured.Written]) -> None:
        """Write to the topic of settings, here or at the leader."""
        if not self._worker.leads:
            raise Done(204) if self._send_on() else Refused(500, "the leader did not answer")
        self._worker.write(records)

    def _send_on(self) -> bool:
        request = self._request
        path = "/" + "/".join(quote(part, safe="") for part in request.path) + "?scope=cluster"
        leader = self._worker.leader()
        status, _, _ = self._worker.send(leader, request.method, path, request.body)
        return status == 204

    # Connectors ----------------------------------------------------------------------

    def connectors(self) -> Any:
        state = self._state
        wanted = self._request.query.get("expand")
        if wanted is None:
            return list(state.connectors)
        found: dict[str, dict[str, Any]] = {}
        for name in state.connectors:
            each: dict[str, Any] = {}
            if "status" in wanted:
                status = self._status(name, state)
                if status is None:
                    continue  # it is about to begin
                each["status"] = status
            if "info" in wanted:
                each["info"] = self._info(name, state)
            found[name] = each
        return found

    def _info(self, name: str, state: Configured, settings: Mapping[str, str] | None = None) -> dict[str, Any]:  # fmt: skip
        shown = state.connectors[name] if settings is None else settings
        count = len(state.tasks.get(name, ()))
        return {
            "name": name,
            "config": shown,
            "tasks": [{"connector": name, "task": number} for number in range(count)],
            "type": self._type(shown),
        }

    def _type(self, settings: Mapping[str, str]) -> str:
        try:
            return self._worker.catalogue.of(settings).kind
        except Refused:
            return "unknown"

    def info(self, name: str) -> Any:
        return self._info(name, self._known(name))

    def config(self, name: str) -> Any:
        return self._known(name).connectors[name]

    def _checked(self, name: str, settings: dict[str, str]) -> dict[str, str]:
        """Settings with the connector's name in them. Raises Refused."""
        given = settings.setdefault("name", name)
        if given != name:
            raise Refused(400, f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")  # fmt: skip
        self._worker.catalogue.check(settings, settings.get("connector.class", ""))
        return settings

    def create(self) -> Any:
        body = self._object()
        if more := set(body) - {"name", "config", "initial_state"}:
            raise Refused(500, f'Unrecognized field "{min(more)}", not marked as ignorable (3 known properties: "config", "name", "initial_state")')  # fmt: skip
        name, state = body.get("name"), body.get("initial_state")
        settings = self._texts(body.get("config"))
        if state is not None and (not isinstance(state, str) or state.upper() not in ("RUNNING", PAUSED, STOPPED)):  # fmt: skip
            raise Refused(500, f"no such initial_state: {state}; RUNNING, PAUSED or STOPPED")
        if name is None:
            name = settings.get("name", "")
        name = str(name).strip()
        if any(ord(letter) < 32 for letter in name):
            raise Refused(400, "a connector's name has no control characters")
        settings = self._checked(name, settings)
        if name in self._state.connectors:
            raise Refused(409, f"Connector {name} already exists")
        records = [configured.write_connector(name, settings)]
        if state is not None:
            target = STARTED if state.upper() == "RUNNING" else state.upper()
            records.insert(0, configured.write_target(name, target))
        self._worker.write(records)
        raise Done(201, self._info(name, self._state, settings), self._here(name))

    def put_config(self, name: str) -> Any:
        settings = self._checked(name, self._texts(self._object()))
        existed = name in self._state.connectors
        self._worker.write([configured.write_connector(name, settings)])
        answer = self._info(name, self._state, settings)
        raise Done(200, answer) if existed else Done(201, answer, self._here(name))

    def patch_config(self, name: str) -> Any:
        settings = dict(self._known(name).connectors[name])
        changes = self._object()
        for key, value in changes.items():
            if value is None:
                settings.pop(key, None)
        settings |= self._texts(changes)
        settings = self._checked(name, settings)
        self._worker.write([configured.write_connector(name, settings)])
        return self._info(name, self._state, settings)

    def delete(self, name: str) -> Any:
        self._known(name)
        self._worker.write(
            [configured.write_connector(name, None), configured.write_target(name, None)]
        )
        self._worker.statuses.forget(name)
        raise Done(204)

    # States --------------------------------------------------------------------------

    def _status(self, name: str, state: Configured) -> dict[str, Any] | None:
        own = self._worker.statuses.status((name, -1))
        if own is None:
            return None
        tasks = []
        for number in range(len(state.tasks.get(name, ()))):
            found = self._worker.statuses.status((name, number))
            if found is not None:
                tasks.append({"id": number, **_shown(found)})
        return {
            "name": name,
            "connector": _shown(own),
            "tasks": tasks,
            "type": self._type(state.connectors[name]),
        }

    def status(self, name: str) -> Any:
        state = self._state
        found = self._status(name, state) if name in state.connectors else None
        if found is None:
            raise Refused(404, f"No status found for connector {name}")
        return found

    def task_status(self, name: str, number: int) -> Any:
        found = self._worker.statuses.status((name, number))
        if found is None or number >= len(self._state.tasks.get(name, ())):
            raise Refused(404, f"No status found for task {name}-{number}")
        return {"id": number, **_shown(found)}

    def target(self, name: str, target: str) -> Any:
        if name not in self._state.connectors:
            raise Refused(404, f"Unknown connector {name}")
        self._worker.write([configured.write_target(name, target)])
        raise Done(202)

    def stop(self, name: str) -> Any:
        if name not in self._state.connectors:
            raise Refused(404, f"Unknown connector {name}")
        self._worker.write(
            [*configured.write_tasks(name, []), configured.write_target(name, STOPPED)]
        )
        raise Done(204)

    def restart(self, name: str) -> Any:
        state = self._state
        if name not in state.connectors:
            raise unknown(name)
        tasks, only_failed = self._flag("includeTasks"), self._flag("onlyFailed")
        before = self._status(name, state)
        if (tasks or only_failed) and before is None:
            raise Refused(404, f"No status found for connector {name}")
        self._worker.write([configured.write_restart(name, tasks=tasks, only_failed=only_failed)])
        if not tasks and not only_failed:
            raise Done(204)
        assert before is not None
        for each in [before["connector"], *(before["tasks"] if tasks else ())]:
            if not only_failed or each["state"] == "FAILED":
                each["state"] = "RESTARTING"
        raise Done(202, before)

    def restart_task(self, name: str, number: int) -> Any:
        state = self._state
        if name not in state.connectors:
            raise unknown(name)
        if number >= len(state.tasks.get(name, ())):
            raise Refused(404, f"Unknown task: {name}-{number}")
        if not self._worker.restart_task((name, number)):
            runner = self._worker.runner((name, number))
            if runner is None or runner.url == self._worker.url or self._request.headers.get("x-tailrace-forwarded"):  # fmt: skip
                raise Refused(409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)")  # fmt: skip
            path = f"/connectors/{quote(name, safe='')}/tasks/{number}/restart"
            status, body, _ = self._worker.send(runner, "POST", path, b"", forwarded="1")
            return Answer(status, body)
        raise Done(204)

    # Tasks ---------------------------------------------------------------------------

    def tasks(self, name: str) -> Any:
        found = self._known(name).tasks.get(name, ())
        return [
            {"id": {"connector": name, "task": number}, "config": settings}
            for number, settings in enumerate(found)
        ]

    def take_tasks(self, name: str) -> Any:
        self._from_worker()
        body = self._body()
        if not isinstance(body, list):
            raise Refused(500, "tasks are a JSON array")
        self._worker.take_tasks(name, [self._texts(each) for each in body])
        raise Done(200)

    def fence(self, name: str) -> Any:
        self._from_worker()
        self._known(name)
        self._worker.fence(name)
        raise Done(200)

    def topics(self, name: str) -> Any:
        return {name: {"topics": self._worker.statuses.topics(name)}}

    def reset_topics(self, name: str) -> Any:
        self._worker.statuses.forget_topics(name)
        raise Done(202)

    # Offsets -------------------------------------------------------------------------

    def offsets(self, name: str) -> Any:
        settings = self._known(name).connectors[name]
        return {"offsets": listed(self._worker, name, settings)}

    def _stopped(self, name: str) -> Mapping[str, str]:
        state = self._known(name)
        stopped = state.target(name) == STOPPED and not state.tasks.get(name)
        if not stopped or not self._worker.has_stopped(name, STOP_SECONDS):
            raise Refused(
                400,
                "Connectors must be in the STOPPED state before their offsets can be modified. This "
                "can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint",
            )
        return state.connectors[name]

    def alter_offsets(self, name: str) -> Any:
        given = self._object().get("offsets")
        if not given:
            raise Refused(400, "Partitions / offsets need to be provided for an alter offsets request")  # fmt: skip
        settings = self._stopped(name)
        alter(self._worker, name, settings, given)
        return {"message": "The offsets for this connector have been altered successfully"}

    def reset_offsets(self, name: str) -> Any:
        settings = self._stopped(name)
        reset(self._worker, name, settings)
        return {"message": "The offsets for this connector have been reset successfully"}

    # Plugins -------------------------------------------------------------------------

    def plugins(self) -> Any:
        self._worker.catalogue.look_again()
        listed_now = [
            {"class": one.name, "type": one.kind, "version": one.version}
            for one in self._worker.catalogue.listed()
        ]
        if self._request.parameter("connectorsOnly", "true").lower() == "false":
            from tailrace.connectors.names import CONVERTERS, HEADER_CONVERTER

            for kind, names in (("converter", CONVERTERS), ("header_converter", (HEADER_CONVERTER,))):  # fmt: skip
                listed_now += [{"class": one, "type": kind, "version": __version__} for one in names]  # fmt: skip
        return listed_now

    def plugin(self, name: str) -> Any:
        found = self._worker.catalogue.find(name)
        if found is None:
            raise Refused(404, f"Unknown plugin {name}.")
        return self._worker.catalogue.definitions(found)

    def validate(self, name: str) -> Any:
        settings = self._texts(self._object())
        try:
            found = self._worker.catalogue.of(settings)
        except Refused as refused:
            raise Refused(500, refused.message) from refused
        if found != self._worker.catalogue.find(name):
            shown = settings["connector.class"]
            raise Refused(400, f"Included connector type {shown} does not match request type {name}")  # fmt: skip
        return self._worker.catalogue.validate(settings, name)


def _shown(found: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"state": found["state"], "worker_id": found.get("worker_id")}
    if found.get("trace"):
        shown["trace"] = mask(str(found["trace"]))
    if found.get("version"):
        shown["version"] = found["version"]
    return shown
