"""Errors of a running project."""

from __future__ import annotations

from tailrace.errors import TailraceError


class NodeError(TailraceError):
    """The project's processes cannot be run."""

    code = "node"


class AlreadyRunningError(NodeError):
    """Another `tailrace up` runs this project in the same directory. Two would fence
    each other endlessly. Stop the first, or look at it with `tailrace status`."""

    code = "already-running"


class BrokerDidNotStartError(NodeError):
    """The embedded broker ended before it answered. The detail shows its last output."""

    code = "broker-did-not-start"


class UnknownPartError(NodeError):
    """`--only` names a part the project does not have."""

    code = "unknown-part"


class NotRunningError(NodeError):
    """The command asks a running project, and nothing runs in this directory. Start it with
    `tailrace up`."""

    code = "not-running"


class NeedsRestartError(NodeError):
    """A section of `tailrace.toml` that counts when the project starts was changed, so the change
    cannot be taken over by a running project. Stop `tailrace up` and start it again."""

    code = "needs-restart"


class NotTakenOverError(NodeError):
    """The running project could not take over its changed files: it has stopped, or does not
    answer. What ran before goes on as it was."""

    code = "not-taken-over"


class StateGoneError(NodeError):
    """The project's directory of state (`.tailrace`), or the log's own, was deleted or replaced
    while the project ran. What is written from then on would be lost, so everything is
    stopped. Put the directory back, or start again: sources are captured and views filled
    from the beginning, and sinks may say that they are ahead of the log."""

    code = "state-gone"
