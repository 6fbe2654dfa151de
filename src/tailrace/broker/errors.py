"""What can go wrong in the broker itself; the log's errors are in `log/errors.py`.

BrokerError                      broker
└── StartError                   broker-start
"""

from __future__ import annotations

from tailrace.errors import TailraceError


class BrokerError(TailraceError):
    """The embedded broker could not do what it was asked."""

    code = "broker"


class StartError(BrokerError):
    """A broker in a child process did not come up. The detail holds its last words."""

    code = "broker-start"
