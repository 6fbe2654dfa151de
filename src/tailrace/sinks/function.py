"""Changes handed to a Python function, at least once."""

from __future__ import annotations

from typing import ClassVar, Literal

from tailrace.sinks.base import Batch, Shape, SinkPosition
from tailrace.sinks.declare import Function
from tailrace.sinks.errors import RowsRefusedError, TargetUnavailableError
from tailrace.sinks.local import LocalPosition
from tailrace.sinks.registry import Copy, Surroundings


class FunctionSink:
    """Calls the function with an Arrow table of changes, in the order of the log.

    An `OSError` (which `ConnectionError` and `TimeoutError` are) means "later"; any other
    exception refuses the rows, which are then tried one by one to find the bad ones.
    """

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Function)
        self._function = copy.declaration.function
        self._name = copy.declaration.place
        self._position = LocalPosition(surroundings.directory, copy.name)

    def open(self, shape: Shape) -> None:
        self._position.claim()

    def position(self) -> SinkPosition | None:
        return self._position.load()

    def apply(self, batch: Batch) -> None:
        self._position.check()
        if batch.changes.num_rows:
            try:
                self._function(batch.changes)
            except OSError as reason:
                raise TargetUnavailableError(
                    f"{self._name} cannot reach its target",
                    detail=str(reason),
                    hint="it is called again",
                ) from reason
            except Exception as reason:
                raise RowsRefusedError(
                    f"{self._name} failed", detail=f"{type(reason).__name__}: {reason}"
                ) from reason
        self._position.store(batch.position)

    def close(self) -> None:
        """The function keeps its own resources."""
