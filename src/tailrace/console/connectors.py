"""The connectors of the project's worker: states, tasks, offsets, errors; pause, resume, stop, restart.

The page asks the worker by its REST interface, as anybody does. Where the worker asks who comes in,
the console is the first user of `connect.users` who may write. POSTs need an operator's token.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import FastAPI, Response

from tailrace.config import ConnectSettings
from tailrace.connectors.errors import ConnectorError
from tailrace.connectors.forwarding import send
from tailrace.connectors.secrets import refers
from tailrace.console.errors import UnknownNameError
from tailrace.http_users import read_users
from tailrace.masking import mask, names_a_secret

if TYPE_CHECKING:
    from tailrace.console.app import Served

Answer = type[Response]
TIMEOUT = 10.0
USER_AND_PASSWORD = "basic.auth.user.info"  # ann:s3cret
_HOW: dict[str, tuple[str, str]] = {
    "pause": ("PUT", "pause"),
    "resume": ("PUT", "resume"),
    "stop": ("PUT", "stop"),
    "restart": ("POST", "restart?includeTasks=true"),
    "restart-failed": ("POST", "restart?includeTasks=true&onlyFailed=true"),
}


def add_connectors(app: FastAPI, served: Served, answer: Answer) -> None:
    """All of them."""

    @app.get("/api/connectors")
    def connectors() -> Response:
        """The connectors of the project's worker; `worker` is null where there is none."""
        chosen = served.project.settings.connect
        if chosen.listen is None:
            return answer({"worker": None, "connectors": []})
        found = _ask(chosen, "GET", "/connectors?expand=status&expand=info")
        rows = [_row(name, about) for name, about in sorted(found.items())]
        return answer({"worker": chosen.listen, "connectors": rows})

    @app.get("/api/connectors/{name:path}")
    def connector(name: str) -> Response:
        """One connector: its settings without secrets, tasks, offsets and topics."""
        chosen, at = _worker(served), f"/connectors/{quote(name, safe='')}"
        info, status = _ask(chosen, "GET", at), _ask(chosen, "GET", f"{at}/status")
        kind = quote(str(info["config"].get("connector.class", "")), safe="")
        return answer(
            {
                **_row(name, {"info": info, "status": status}),
                "config": _shown(info["config"], _ask(chosen, "GET", f"/connector-plugins/{kind}/config")),
                "tasks": status["tasks"],
                "worker": status["connector"]["worker_id"],
                "offsets": _ask(chosen, "GET", f"{at}/offsets")["offsets"],
                "topics": _ask(chosen, "GET", f"{at}/topics")[name]["topics"],
            }
        )  # fmt: skip

    # Before the other, whose name would take its path.
    @app.post("/api/connectors/{name:path}/tasks/{number}/restart")
    def restart_task(name: str, number: int) -> Response:
        """Restart one task."""
        path = f"/connectors/{quote(name, safe='')}/tasks/{number}/restart"
        _ask(_worker(served), "POST", path)
        return answer({"name": name, "task": number})

    @app.post("/api/connectors/{name:path}/{act}")
    def operate(
        name: str, act: Literal["pause", "resume", "stop", "restart", "restart-failed"]
    ) -> Response:
        """Pause, resume, stop or restart a connector with its tasks; `restart-failed` only what
        has failed."""
        method, path = _HOW[act]
        _ask(_worker(served), method, f"/connectors/{quote(name, safe='')}/{path}")
        return answer({"name": name, "asked": act})


def _worker(served: Served) -> ConnectSettings:
    chosen = served.project.settings.connect
    if chosen.listen is None:
        raise UnknownNameError(
            "the project has no worker for connectors", hint='[connect] listen = "127.0.0.1:8083"'
        )
    return chosen


def _ask(chosen: ConnectSettings, method: str, path: str) -> Any:
    """What the worker answers. Raises UnknownNameError and ConnectorError."""
    url = f"{'http' if chosen.cert is None else 'https'}://{chosen.listen}"
    headers: dict[str, str] = {}
    if chosen.users is not None:
        known = read_users(chosen.users)
        name = next((name for name, one in known.items() if not one.reads_only), next(iter(known)))
        coded = base64.b64encode(f"{name}:{known[name].password}".encode()).decode()
        headers["Authorization"] = f"Basic {coded}"
    try:
        status, body, _ = send(url, method, path, b"", headers, _trust(chosen), TIMEOUT)
        found: Any = orjson.loads(body) if body else {}
    except (OSError, ValueError) as error:
        raise ConnectorError(
            "the worker for connectors does not answer",
            detail=f"{url}: {error}",
            hint="`tailrace status` says whether its part runs",
        ) from error
    if status == 404:
        raise UnknownNameError(str(found["message"]))
    if status >= 400:
        raise ConnectorError("the worker for connectors refuses", detail=str(found["message"]))
    return found


def _trust(chosen: ConnectSettings) -> ssl.SSLContext | None:
    """The worker is this project's: its own certificate is enough, whatever name is in it."""
    if chosen.cert is None:
        return None
    context = ssl.create_default_context(cafile=chosen.ca or chosen.cert)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _row(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """A connector as the list shows it."""
    status, config = about["status"], about["info"]["config"]
    states = [one["state"] for one in status["tasks"]]
    everything = [status["connector"], *status["tasks"]]
    return {
        "name": name,
        "type": about["info"]["type"],
        "class": str(config.get("connector.class", "")),
        "state": status["connector"]["state"],
        "running": states.count("RUNNING"),
        "count": len(states),
        "failed": sum(one["state"] == "FAILED" for one in everything),
        "trace": next((one["trace"] for one in everything if one.get("trace")), None),
    }


def _shown(config: Mapping[str, str], definitions: list[Mapping[str, Any]]) -> dict[str, str]:
    """Settings without what their class or their name calls a secret: a class does not declare its
    converters' settings. References to secrets stay."""
    declared = {one["name"] for one in definitions if one["type"] == "PASSWORD"}

    def is_secret(name: str) -> bool:
        return name in declared or names_a_secret(name) or name.endswith(USER_AND_PASSWORD)

    return {
        name: "[hidden]" if is_secret(name) and not refers(text) else mask(text)
        for name, text in config.items()
    }
