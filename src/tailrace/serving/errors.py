"""What can go wrong when views are followed and asked.

ViewsError                     views
├── ViewsNotReadyError         views-not-ready
│   ├── ViewFillingError       view-filling
│   └── ViewFailedError        view-failed
├── UnknownViewError           view-unknown
├── ViewKeyError               view-key
├── PositionUnknownError       position-unknown
├── PositionTimeoutError       position-timeout
├── QueryTimeoutError          view-query-timeout
├── QueryTooLargeError         view-query-too-large
├── QueryError                 view-query
├── HistoryGoneError           view-history-gone
├── FollowerRunningError       follower-running
└── ViewsRemoteError           views-remote
"""

from __future__ import annotations

from tailrace.errors import TailraceError


class ViewsError(TailraceError):
    """A view could not be kept or asked."""

    code = "views"


class ViewsNotReadyError(ViewsError):
    """The follower has not applied a first tick yet, or never ran in this directory. It
    answers as soon as the pipelines have committed their first tick."""

    code = "views-not-ready"


class ViewFillingError(ViewsNotReadyError):
    """The view is declared and is being filled for the first time: it reads what its inputs
    hold, beside the views that run, and answers when it has caught up with them. The message
    says how many records it has read of those that are known. Over HTTP this is status 503."""

    code = "view-filling"


class ViewFailedError(ViewsNotReadyError):
    """The view is declared, but filling it for the first time failed, so there is nothing to
    show. `tailrace pipeline status NAME` shows the error; the other views go on."""

    code = "view-failed"


class ViewsDamagedError(ViewsError):
    """The disk has refused pages of the files that views are served from, or has given back
    others. The follower starts again by itself and reads the views from the log."""

    code = "views-damaged"


class UnknownViewError(ViewsError):
    """No view of that name is in the tick the follower has reached. `tailrace view list`
    shows those that are."""

    code = "view-unknown"


class ViewKeyError(ViewsError):
    """The key given does not fit the view's key columns: too many or too few parts, or a
    part that is not of the column's type."""

    code = "view-key"


class PositionUnknownError(ViewsError):
    """The views do not read the source or topic that the position belongs to, so waiting
    for it would never end."""

    code = "position-unknown"


class PositionTimeoutError(ViewsError):
    """The views have not reached the position within the time given. Over HTTP this is
    status 504; ask again, or look at `tailrace status` for the part that lags."""

    code = "position-timeout"


class QueryError(ViewsError):
    """The SQL cannot be answered. Views are asked in DuckDB's dialect, one SELECT at a
    time, read-only; tables are the project's views."""

    code = "view-query"


class QueryTimeoutError(ViewsError):
    """The SQL took longer than a question may. Over HTTP this is status 504. Ask for less,
    or declare a view that keeps the answer ready."""

    code = "view-query-timeout"


class QueryTooLargeError(ViewsError):
    """The SQL, or one row of its answer, needs more memory than a question may take. Ask
    for fewer or shorter columns, or declare a view that keeps the answer ready."""

    code = "view-query-too-large"


class HistoryGoneError(ViewsError):
    """The changes asked for are older than the history the follower keeps (bounded by
    size, and started over when a view is rebuilt). Take a snapshot and go on from there;
    subscriptions do so by themselves."""

    code = "view-history-gone"


class FollowerRunningError(ViewsError):
    """Another follower writes to the same directory."""

    code = "follower-running"


class ViewsRemoteError(ViewsError):
    """The console that serves the views answered with an error or not at all."""

    code = "views-remote"
