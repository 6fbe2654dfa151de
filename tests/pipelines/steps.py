"""The steps of a tick as they are reached, for drivers that end themselves at one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.state.shard import Attempt


def tell_steps(reached: Callable[[str], None]) -> None:
    """Have `reached` called with every step of this process's ticks but those of their job."""

    def after(kind: Any, method: str, name: str) -> None:
        original: Callable[..., Any] = getattr(kind, method)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            reached(name)
            return result

        setattr(kind, method, wrapped)

    def end(self: Any, *, commit: bool) -> None:
        reached("committing")
        original_end(self, commit=commit)

    original_end = TransactionalWriter._end
    TransactionalWriter._end = end  # type: ignore[method-assign]
    after(Attempt, "finish", "state written")
    after(TransactionalWriter, "flush", "changes sent")
    after(TransactionalWriter, "commit", "committed")
