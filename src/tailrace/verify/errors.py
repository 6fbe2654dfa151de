"""What keeps the verifier from a verdict."""

from __future__ import annotations

from tailrace.errors import TailraceError, UsageError


class VerifyError(TailraceError):
    """The verifier could not do its work, so there is no verdict."""

    code = "verify"


class HistoryError(VerifyError):
    """A folder holds no history, or one that cannot be read: a file is missing or torn, columns
    have other names or types, or a record was sent twice under one number. `tailrace verify
    check` takes what `tailrace verify` wrote."""

    code = "verify-history"


class UnfinishedError(VerifyError):
    """The log did not come to rest after the load: a partition stayed without a leader, a
    transaction stayed open, or a consumer did not reach the end although nothing was hurt any
    more. There is no verdict; the message says what was waited for."""

    code = "verify-unfinished"


class NotTheLogsError(UsageError):
    """A node was named that is none of this log's: the process does not exist, belongs to
    another user, or does not listen on the address that the log gives for that broker. Nothing
    was hurt."""

    code = "verify-not-the-logs"


class ThrowAwayError(VerifyError):
    """The throw-away log could not be started: there is no Java, the directory does not hold
    Apache Kafka's jars, or the broker ended at once."""

    code = "verify-throw-away"
