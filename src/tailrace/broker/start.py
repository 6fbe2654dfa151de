"""Starting a broker from a command line, in as little time as possible.

`tailrace broker start` is parsed here when every option is of the plain form; the
command-line library alone costs as much time as the broker needs to answer. Anything
else (`--help`, a misspelt option) goes the long way through `cli/broker.py`, which ends
in the same `start`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.errors import TailraceError, UsageError

LISTEN = "127.0.0.1:9092"
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("human", "json")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(slots=True)
class Start:
    """What the command line said."""

    directories: list[str] = field(default_factory=list)
    listen: str | None = None
    settings: list[str] = field(default_factory=list, repr=False)
    properties: list[str] = field(default_factory=list)
    metrics: str | None = None
    insecure: bool = False
    log_level: str = "warning"
    log_format: str = "human"


def parse(arguments: Sequence[str]) -> Start | None:
    """The options of `tailrace broker start`, or None if they are not all of the plain form."""
    start = Start()
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name == "--insecure" and not equals:
            start.insecure = True
            continue
        if not equals:
            if not rest or rest[0].startswith("-"):
                return None
            value = rest.pop(0)
        match name:
            case "--data":
                start.directories.append(value)
            case "--listen":
                start.listen = value
            case "--set":
                start.settings.append(value)
            case "--config":
                start.properties.append(value)
            case "--metrics":
                start.metrics = value
            case "--log-level" if value in LOG_LEVELS:
                start.log_level = value
            case "--log-format" if value in LOG_FORMATS:
                start.log_format = value
            case _:
                return None
    return start if start.directories else None


def run(start: Start) -> None:
    """Serve until SIGTERM or Ctrl-C; prints `listening on HOST:PORT` once it answers."""
    from tailrace.broker.endpoints import endpoints, refuse_open_endpoints
    from tailrace.broker.process import serve
    from tailrace.broker.server import Broker
    from tailrace.broker.settings import BrokerSettings
    from tailrace.telemetry import logs

    logs.configure(start.log_level, start.log_format)
    given: dict[str, str] = {}
    for path in start.properties:
        given |= read_properties(path)
    given |= dict(_pair(one) for one in start.settings)
    if start.insecure:
        given["allow.insecure.listeners"] = "true"
    if start.listen is not None or "listeners" not in given:
        given["listeners"] = _listeners(start.listen or LISTEN)
    if start.metrics:
        split_address(start.metrics, "--metrics")
        given["metrics.listen"] = start.metrics
    settings = BrokerSettings(given)
    refuse_open_endpoints(
        endpoints(settings), insecure=settings.boolean("allow.insecure.listeners")
    )
    broker = Broker(start.directories, settings=settings)
    serve(broker, lambda address: print(f"listening on {address}", flush=True))


def main(start: Start) -> None:
    """`run` as a program: errors in four parts on stderr, exit status 1 or 2."""
    try:
        run(start)
    except TailraceError as error:
        print(error.render(), file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)


def split_address(text: str, option: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, `[::1]:9092` included."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise UsageError(
            f"{option} takes HOST:PORT, not {text!r}", hint=f"for example {option} 127.0.0.1:9092"
        )
    return host.strip("[]"), int(port)


def read_properties(path: str) -> dict[str, str]:
    """The settings of a file as Kafka's `server.properties`: NAME=VALUE, # for comments, a line
    that ends in a backslash goes on; `${NAME}` is a variable of the environment."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", detail=str(error)) from error
    found: dict[str, str] = {}
    for line in text.replace("\\\n", "").splitlines():
        name, equals, value = line.strip().partition("=")
        if not name or name.startswith(("#", "!")):
            continue
        if not equals:
            raise UsageError(f"{path} has a line that is no NAME=VALUE", detail=name[:40])
        found[name.strip()] = _VARIABLE.sub(lambda one: _variable(one[1]), value.strip())
    return found


def _variable(name: str) -> str:
    if name not in os.environ:
        raise UsageError(f"the environment has no variable {name}", hint=f"export {name}=…")
    return os.environ[name]


def _listeners(text: str) -> str:
    """`--listen` as the setting `listeners`."""
    for part in text.split(","):
        split_address(part.rpartition("://")[2], "--listen")
    return text


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(
            f"--set takes NAME=VALUE, not {text!r}", hint="for example --set num.partitions=3"
        )
    return name.strip(), value.strip()
