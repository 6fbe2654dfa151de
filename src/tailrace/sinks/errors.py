"""What can go wrong on the way out.

SinkError                      sink
├── SinkDeclarationError       sink-declaration
├── TargetUnavailableError     target-unavailable     tried again, for ever
│   └── TargetRefusedError     target-refused         credentials, rights, read-only
├── RowsRefusedError           rows-refused           split until the bad rows are found
│   └── SealedValueError       sealed-value           it cannot be opened
├── ShapeError                 target-shape           parks the sink
├── SinkFencedError            sink-fenced            another writer took over
├── SinkAheadError             sink-ahead             the target knows more than the log
├── SinkHeldError              sink-held              rolled back, stays there until told
├── TooManyRefusedError        sink-refuses-all
└── UnknownSinkError           sink-unknown
"""

from __future__ import annotations

from tailrace.errors import TailraceError


class SinkError(TailraceError):
    """A copy could not be kept in step."""

    code = "sink"


class SinkDeclarationError(SinkError):
    """A sink is declared with values that cannot mean anything together."""

    code = "sink-declaration"


class TargetUnavailableError(SinkError):
    """The target does not answer, or broke off. The sink waits and tries again without end;
    capture and the other sinks go on meanwhile, and nothing is lost."""

    code = "target-unavailable"


class TargetRefusedError(TargetUnavailableError):
    """The target answers but lets nobody in: wrong credentials, missing rights, a
    read-only database. Tried again like an outage, because it can be mended there."""

    code = "target-refused"


class RowsRefusedError(SinkError):
    """The target took the statement but not the values in it. The sink splits the batch
    until it has found the rows, writes them to its dead-letter topic with the reason,
    and goes on with the rest."""

    code = "rows-refused"


class SealedValueError(RowsRefusedError):
    """A column that the sink opens holds a sealed value that no key of the project opens: it was
    changed, was sealed for another field than the project declares, or its key is lost. The row
    becomes a dead letter."""

    code = "sealed-value"


class ShapeError(SinkError):
    """The target's table does not fit the view: a column or the unique key is missing and
    may not be added, or a type cannot hold the values. The sink is parked (the others go
    on) until the table or the sink's `schema_change` is changed."""

    code = "target-shape"


class SinkFencedError(SinkError):
    """Another process opened the same sink later. This one stops at once and has changed
    nothing since."""

    code = "sink-fenced"


class SinkAheadError(SinkError):
    """The target has applied more than the log holds: the log was replaced or restored
    from an older copy. Continuing would skip or repeat changes. `tailrace sink replay
    NAME` fills the copy again from the log."""

    code = "sink-ahead"


class SinkBehindError(SinkError):
    """The target lacks changes that the log no longer keeps: it was stopped for longer
    than the topic's retention, or restored from an old backup. Nothing is skipped
    silently; `tailrace sink replay NAME` fills the copy from what the log has."""

    code = "sink-behind"


class SinkHeldError(SinkError):
    """The copy was rolled back with `tailrace sink rollback` to another generation than the
    view has now, and stays there: going on would build the newer one again. `tailrace
    sink switch NAME` goes forward again, `tailrace sink replay NAME` fills it again."""

    code = "sink-held"


class TooManyRefusedError(SinkError):
    """The target refused so many rows in a row that the rows are probably not the problem.
    No more rows become dead letters until the cause is removed."""

    code = "sink-refuses-all"


class UnknownSinkError(SinkError):
    """The project declares no sink of that name. `tailrace sink list` shows them."""

    code = "sink-unknown"
