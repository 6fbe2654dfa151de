"""Errors of the console."""

from __future__ import annotations

from tailrace.errors import TailraceError


class ConsoleError(TailraceError):
    """The console cannot answer."""

    code = "console"


class TokenNeededError(ConsoleError):
    """The console listens on an address that other machines can reach, so every call
    needs the token of `console.token`, as `Authorization: Bearer …` or `?token=…`."""

    code = "token-needed"


class ForeignRequestError(ConsoleError):
    """The request came from another site's page, or names a host this console does not
    serve. It is refused, because a browser would send it without its user's wish."""

    code = "foreign-request"


class UnknownNameError(ConsoleError):
    """There is nothing of that name."""

    code = "unknown-name"


class LogUnreachableError(ConsoleError):
    """The console cannot reach the log; what it shows of topics is the last it knew."""

    code = "log-unreachable"


class TooManySubscribersError(ConsoleError):
    """Each subscription to a topic's records holds a reader; their number is limited so
    that callers cannot exhaust the console. Views have no such limit."""

    code = "too-many-subscribers"
