"""Logging: a fixed message, its data beside it.

`log.info("segment rolled", extra={"topic": t, "base_offset": n})` comes out as

    10:20:30.123 INFO  log.partition  segment rolled  topic=clicks base_offset=4096

on a terminal, or as one JSON object a line with `fmt="json"`. Values whose name looks
like a secret are masked in both: whoever logs a DSN or a password has made a mistake,
and the log must not repeat it. Control characters in values, which clients choose, are shown
as escapes: a line stays one line and a terminal does nothing odd. A warning that repeats itself many times a second, as on a
full disk, is shown a few times and then counted (`repeated=450`), so that it does not fill
what is left of the disk nor hide the others.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, TextIO

import orjson

from tailrace.clock import to_datetime
from tailrace.masking import HIDDEN, mask, mask_all

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET = re.compile(
    r"passw|passphrase|secret|token|api_?key|credential|authorization|cookie", re.IGNORECASE
)


def _data(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in vars(record).items():
        if name in _STANDARD:
            continue
        # A number is no secret: api_key is also what Kafka calls a kind of request.
        if _SECRET.search(name) and value is not None and not isinstance(value, int | float):
            found[name] = HIDDEN
        elif isinstance(value, str | Mapping | list | tuple):
            found[name] = mask_all(value)
        elif isinstance(value, BaseException):
            found[name] = mask(str(value))
        else:
            found[name] = value
    return found


def _line(text: str) -> str:
    """Text that stays within its line and moves no terminal: control characters as escapes."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


class HumanFormatter(logging.Formatter):
    """One readable line; the data follows the message as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        at = to_datetime(int(record.created * 1000)).strftime("%H:%M:%S.%f")[:-3]
        name = record.name.removeprefix("tailrace.")
        data = " ".join(f"{key}={_line(str(value))}" for key, value in _data(record).items())
        line = f"{at} {record.levelname:<7} {name}  {_line(mask(record.getMessage()))}"
        if data:
            line += f"  {data}"
        if record.exc_info:
            trace = mask(self.formatException(record.exc_info))
            line += "\n" + "\n".join(_line(one) for one in trace.split("\n"))
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
