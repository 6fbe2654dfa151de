"""The future of one record, made light.

A `concurrent.futures.Future` brings a condition with a lock and two queues, and a
producer makes one a record: ten times the cost of sending it. Here the condition is made
only when somebody waits before the record is written, which is rare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from tailrace.client.errors import ClientError
from tailrace.client.record import Delivery

Callback = Callable[[Delivery | None, ClientError | None], None]

_making = threading.Lock()  # between making a condition and finishing without one


class Counting(Protocol):
    """Who is told how a record fared."""

    def written(self, started: float | None) -> None: ...

    def failed(self) -> None: ...


class DeliveryFuture(Future[Delivery]):
    """A future like any other (`wait`, `as_completed`, `asyncio.wrap_future` take it);
    a record that was handed over cannot be cancelled."""

    def __init__(
        self, owner: Counting, callback: Callback | None = None, started: float | None = None
    ) -> None:
        # not Future.__init__: it would make the condition
        self._made_condition: threading.Condition | None = None
        self._state = "RUNNING"
        self._result: Any = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []
        self._owner = owner
        self._callback = callback
        self._started = started

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        made = self._made_condition
        if made is None:
            with _making:
                made = self._made_condition
                if made is None:
                    made = self._made_condition = threading.Condition()
        return made

    def cancel(self) -> bool:
        return False

    def resolve(self, delivery: Delivery | None, error: ClientError | None) -> None:
        """Say how the record fared; called once, from any thread."""
        with _making:
            alone = self._made_condition is None
            if alone:
                self._result, self._exception, self._state = delivery, error, "FINISHED"
        if not alone:
            if error is not None:
                self.set_exception(error)
            else:
                self.set_result(delivery)  # type: ignore[arg-type]
        if error is None:
            self._owner.written(self._started)
        else:
            self._owner.failed()
        if self._callback is not None:
            self._callback(delivery, error)
