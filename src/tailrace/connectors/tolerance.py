"""What becomes of records that fail: tried again, passed by, or the end of the task. Connect's rules.

`errors.retry.timeout` and `errors.retry.delay.max.ms` are for errors that say they may pass
(RetriableError); `errors.tolerance = all` passes a record by whose conversion or transform failed.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tailrace.clock import SYSTEM, Clock
from tailrace.connectors.errors import RetriableError
from tailrace.masking import mask

log = logging.getLogger(__name__)
T = TypeVar("T")
FIRST_PAUSE_SECONDS = 0.3  # as Kafka Connect


class PassedBy(Exception):
    """A step failed for a record, and the record may be passed by."""

    def __init__(self, stage: str, by: str, cause: BaseException) -> None:
        super().__init__(stage)
        self.stage = stage
        self.by = by
        self.cause = cause


class Tolerance:
    """Runs single steps of the way of a record."""

    def __init__(
        self, settings: Mapping[str, Any], stopping: Callable[[], bool], clock: Clock = SYSTEM
    ) -> None:
        self._all = str(settings["errors.tolerance"]).lower() == "all"
        self._timeout = settings["errors.retry.timeout"] / 1000
        self._longest = settings["errors.retry.delay.max.ms"] / 1000
        self._log = settings["errors.log.enable"]
        self._details = settings["errors.log.include.messages"]
        self._stopping = stopping
        self._clock = clock

    def step(self, stage: str, by: str, work: Callable[[], T]) -> T:
        """Do one step. Raises PassedBy where the record may be passed by, else the error."""
        try:
            return self.retrying(work)
        except Exception as error:
            if not self._all:
                raise
            raise PassedBy(stage, by, error) from error

    def retrying(self, work: Callable[[], T], *, without_end: bool = False) -> T:
        """Do something again while it raises RetriableError and time is left."""
        began = self._clock.monotonic()
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except RetriableError:
                over = self._clock.monotonic() - began + pause > self._timeout
                if self._stopping() or (over and self._timeout >= 0 and not without_end):
                    raise
                self._clock.sleep(min(pause, self._longest))
                pause = min(pause * 2, self._longest)

    @property
    def passes(self) -> bool:
        return self._all

    def tell(self, place: str, passed: PassedBy) -> None:
        if self._log:
            more = {"stage": passed.stage, "by": passed.by, "error": mask(str(passed.cause))}
            if self._details:
                more["record"] = place
            log.warning("a record is passed by", extra=more)


def context_headers(
    topic: str, partition: int, offset: int, connector: str, task: int, passed: PassedBy
) -> tuple[tuple[str, bytes], ...]:
    """Connect's headers of a dead letter."""
    cause = passed.cause
    kind = type(cause)
    trace = mask("".join(traceback.format_exception(kind, cause, cause.__traceback__)))
    return tuple(
        (f"__connect.errors.{name}", text.encode("utf-8", "replace"))
        for name, text in (
            ("topic", topic),
            ("partition", str(partition)),
            ("offset", str(offset)),
            ("connector.name", connector),
            ("task.id", str(task)),
            ("stage", passed.stage),
            ("class.name", passed.by),
            ("exception.class.name", f"{kind.__module__}.{kind.__qualname__}"),
            ("exception.message", mask(str(cause))),
            ("exception.stacktrace", trace[-8000:]),
        )
    )
