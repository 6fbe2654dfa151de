"""Levels of logging that people set while a worker runs: `/admin/loggers`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from tailrace.clock import SYSTEM

TO_PYTHON = {"OFF": logging.CRITICAL + 10, "FATAL": logging.CRITICAL, "ERROR": logging.ERROR,
             "WARN": logging.WARNING, "INFO": logging.INFO, "DEBUG": logging.DEBUG,
             "TRACE": logging.DEBUG - 5}  # fmt: skip
_FROM_PYTHON = {number: name for name, number in TO_PYTHON.items()}


class Levels:
    """Which were set, and when. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set: dict[str, tuple[str, int]] = {}

    def set(self, name: str, level: str) -> list[str]:
        """The loggers that changed."""
        logging.getLogger(None if name == "root" else name).setLevel(TO_PYTHON[level])
        with self._lock:
            self._set[name] = (level, SYSTEM.wall_ms())
        return [name]

    def take(self, levels: Mapping[str, str]) -> None:
        """Those that count for the whole group."""
        for name, level in levels.items():
            with self._lock:
                known = self._set.get(name, ("", 0))[0]
            if level in TO_PYTHON and known != level:
                self.set(name, level)

    def listed(self) -> dict[str, dict[str, object]]:
        with self._lock:
            return {name: _shown(*found) for name, found in sorted(self._set.items())}

    def level(self, name: str) -> dict[str, object] | None:
        """None for a logger that there is not."""
        with self._lock:
            found = self._set.get(name)
        if found is not None:
            return _shown(*found)
        if name == "root" or name in logging.Logger.manager.loggerDict:
            number = logging.getLogger(None if name == "root" else name).getEffectiveLevel()
            return _shown(_FROM_PYTHON.get(number, str(number)), None)
        return None


def _shown(level: str, modified: int | None) -> dict[str, object]:
    return {"level": level, "last_modified": modified}
