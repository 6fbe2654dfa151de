"""What can go wrong with connectors, and what a worker answers instead of what it was asked for."""

from __future__ import annotations

from tailrace.errors import TailraceError


class ConnectorError(TailraceError):
    """A connector or one of its tasks raised an error. The detail holds its traceback; the rest of
    the worker goes on. `POST /connectors/NAME/restart?includeTasks=true` starts it again."""

    code = "connector-failed"


class ConnectorHangsError(ConnectorError):
    """A method of a connector or task did not come back in time, so its process was ended. The
    times are `task.start.timeout.ms`, `task.poll.timeout.ms` and, when stopping,
    `task.shutdown.graceful.timeout.ms`, settings of the worker or of a connector."""

    code = "connector-hangs"


class ConnectorEndedError(ConnectorError):
    """The process of a task ended by itself: it was killed, ran out of memory, or the connector
    ended it. Its transaction is aborted, so nothing of what it was doing is visible."""

    code = "connector-ended"


class PluginError(ConnectorError):
    """A file of the directory of plugins cannot be imported, or holds no connector."""

    code = "connector-plugin"


class ConnectorSettingError(ConnectorError):
    """A setting of a connector is missing or cannot be used."""

    code = "connector-setting"


class ConverterError(ConnectorError):
    """A converter could not turn a value into bytes, or bytes into a value. With
    `errors.tolerance = all` such records are passed by, those of a sink to the topic of dead
    letters if one is named."""

    code = "connector-converter"


class RetriableError(ConnectorError):
    """For connectors to raise: the same again may work. A sink's records are put again, a
    source is polled again, until `errors.retry.timeout` is over."""

    code = "connector-retriable"


class ConnectStoreError(ConnectorError):
    """A topic in which Connect keeps its state cannot be used: that of the settings must have one
    partition, and all three must be compacted."""

    code = "connect-store"


class Refused(Exception):
    """An answer with another status than was hoped for, in Kafka Connect's words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def missing(name: str) -> Refused:
    return Refused(404, f"Connector {name} not found")


def unknown(name: str) -> Refused:
    return Refused(404, f"Unknown connector: {name}")
