"""Logging: a fixed message, its data beside it.

`log.info("segment rolled", extra={"topic": t, "base_offset": n})` comes out as

    10:20:30.123 INFO  log.partition  segment rolled  topic=clicks base_offset=4096

on a terminal, or as one JSON object a line with `fmt="json"`. Values whose name looks
like a secret are masked in both: whoever logs a DSN or a password has made a mistake,
and the log must not repeat it. A warning that repeats itself many times a second, as on a
full disk, is shown a few times and then counted (`repeated=450`), so that it does not fill
what is left of the disk nor hide the others.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, TextIO

import orjson

from tailrace.clock import to_datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET = re.compile(r"passw|secret|token|api_?key|credential", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(\w+://[^:/@\s]*):[^@/\s]+@")
_DSN_PASSWORD = re.compile(r"(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)


def mask(text: str) -> str:
    """`text` with the passwords of URLs and connection strings replaced by ***."""
    return _DSN_PASSWORD.sub(r"\1***", _URL_PASSWORD.sub(r"\1:***@", text))


def _data(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in vars(record).items():
        if name not in _STANDARD:
            secret = _SECRET.search(name)
            found[name] = "***" if secret else mask(value) if isinstance(value, str) else value
    return found


class HumanFormatter(logging.Formatter):
    """One readable line; the data follows the message as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        at = to_datetime(int(record.created * 1000)).strftime("%H:%M:%S.%f")[:-3]
        name = record.name.removeprefix("tailrace.")
        data = " ".join(f"{key}={value}" for key, value in _data(record).items())
        line = f"{at} {record.levelname:<7} {name}  {mask(record.getMessage())}"
        if data:
            line += f"  {data}"
        if record.exc_info:
            line += "\n" + mask(self.formatException(record.exc_info))
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "at": to_datetime(int(record.created * 1000)).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
            **_data(record),
        }
        if record.exc_info:
            document["exception"] = mask(self.formatException(record.exc_info))
        return orjson.dumps(document, default=str).decode()


class Repeats(logging.Filter):
    """Lets an equal warning or error through `MOST` times in `SECONDS`, then counts it.

    The first one shown after that says how many were left out. Two threads may be let
    through at once: harmless.
    """

    MOST = 10
    SECONDS = 10.0
    REMEMBERED = 1000

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._now = now
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        same = (record.name, record.lineno, record.getMessage(), str(_data(record)))
        now = self._now()
        began, count = self._seen.get(same, (now, 0))
        if now - began >= self.SECONDS:
            if count > self.MOST:
                record.repeated = count - self.MOST
            began, count = now, 0
        if len(self._seen) >= self.REMEMBERED:
            self._seen.clear()
        self._seen[same] = (began, count + 1)
        return count < self.MOST


def configure(level: str = "info", fmt: str = "human", stream: TextIO | None = None) -> None:
    """Send the logs of the process to `stream` (stderr) once; calling again replaces it."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if fmt == "json" else HumanFormatter())
    handler.addFilter(Repeats())
    root = logging.getLogger("tailrace")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
