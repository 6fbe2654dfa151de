"""Connectors of one's own: sources that read something and sinks that write something.

    from tailrace import connectors

    class Numbers(connectors.SourceConnector):
        config = connectors.Config(connectors.Setting("topic", str, required=True))

        class Task(connectors.SourceTask):
            def start(self, settings, offsets): …
            def poll(self): return [connectors.SourceRecord(…)]

`tailrace connect start --plugins DIR` runs them, with Kafka Connect's REST interface and its three
topics. What a connector is stands in `base`, `config`, `converters`, `transforms`; the ones that
come along in `file_tail` and `file_stream`; a task's process in `task`, `source_task`,
`sink_task`; a worker in `configured` (the fold of the topic of settings), `statuses`, `offsets`,
`assignment`, `membership`, `worker`, `rest` and `serve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.connectors import testing
    from tailrace.connectors.base import (
        Record,
        SinkConnector,
        SinkRecord,
        SinkTask,
        SourceConnector,
        SourceRecord,
        SourceTask,
    )
    from tailrace.connectors.config import Config, Setting
    from tailrace.connectors.converters import Converter
    from tailrace.connectors.errors import ConnectorError, RetriableError
    from tailrace.connectors.file_stream import FileStreamSink, FileStreamSource
    from tailrace.connectors.file_tail import FileTail

__all__ = [
    "Config",
    "ConnectorError",
    "Converter",
    "FileStreamSink",
    "FileStreamSource",
    "FileTail",
    "Record",
    "RetriableError",
    "Setting",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "testing",
]

_HOMES = {
    "Record": "base",
    "SinkConnector": "base",
    "SinkRecord": "base",
    "SinkTask": "base",
    "SourceConnector": "base",
    "SourceRecord": "base",
    "SourceTask": "base",
    "Config": "config",
    "Setting": "config",
    "Converter": "converters",
    "ConnectorError": "errors",
    "RetriableError": "errors",
    "FileStreamSink": "file_stream",
    "FileStreamSource": "file_stream",
    "FileTail": "file_tail",
}


def __getattr__(name: str) -> object:
    if name == "testing":
        from importlib import import_module

        return import_module("tailrace.connectors.testing")
    # Not imported at once: a worker that waits needs none of it.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"tailrace.connectors.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
