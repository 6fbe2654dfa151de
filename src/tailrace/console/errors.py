"""Errors of the console."""

from __future__ import annotations

from tailrace.errors import TailraceError


class ConsoleError(TailraceError):
    """The console cannot answer."""

    code = "console"


class TokenNeededError(ConsoleError):
    """Every call needs the console's token, as `Authorization: Bearer …`. `tailrace up`
    prints a link that carries it and keeps it in `.tailrace/console.token`, which only the
    project's owner can read; `console.token` in the settings names one of your own, and
    `console.token = "none"` asks for none."""

    code = "token-needed"


class TooManyGuessesError(ConsoleError):
    """More than ten wrong tokens in a minute came from one address. It is answered again
    after a minute."""

    code = "too-many-guesses"


class BodyTooLargeError(ConsoleError):
    """The body of a request is larger than any call needs, or does not say how long it is.
    It was refused unread."""

    code = "body-too-large"


class ForeignRequestError(ConsoleError):
    """The request came from another site's page, or names a host this console does not
    serve. It is refused, because a browser would send it without its user's wish."""

    code = "foreign-request"


class ViewerError(ConsoleError):
    """The call would change something, or show personal fields of events, and came from somebody
    who may only look (`console.viewer_token`, or a log-in as viewer). The token of operators is `console.token`, or the one that
    `tailrace up` made."""

    code = "console-viewer"


class LogInFailedError(ConsoleError):
    """The issuer of `console.oidc` did not say who somebody is: it was not reached, refused, or
    its answer is not to be trusted. The log stream `console.login` says which."""

    code = "log-in-failed"


class NoRoleError(ConsoleError):
    """Somebody logged in who is neither operator nor viewer: none of the names under
    `console.oidc.operators`, `.viewers` (or `console.proxy`) is among their groups."""

    code = "no-role"


class UnknownNameError(ConsoleError):
    """There is nothing of that name."""

    code = "unknown-name"


class LogUnreachableError(ConsoleError):
    """The console cannot reach the log; what it shows of topics is the last it knew."""

    code = "log-unreachable"


class ConditionTimeoutError(ConsoleError):
    """A `?where=` on changes or records took longer than one subscriber may hold up the
    others. The subscription has ended; a view can answer the same condition for good."""

    code = "condition-timeout"


class TooManyQuestionsError(ConsoleError):
    """Questions in SQL are answered a few at a time, and a bounded number waits. Ask again
    later, or declare a view that keeps the answer ready."""

    code = "too-many-questions"


class TooManySubscribersError(ConsoleError):
    """Each subscription to a topic's records or to the live state costs the console
    something; their number is limited so that callers cannot exhaust it. Changes of views
    have no such limit."""

    code = "too-many-subscribers"
