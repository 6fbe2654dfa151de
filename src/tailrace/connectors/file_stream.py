"""Kafka's two connectors for single files, under Kafka's names: lines of a file in, lines out.

For log files that are rotated there is `file_tail`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import orjson

from tailrace import __version__
from tailrace.connectors.base import (
    Offset,
    Offsets,
    Settings,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from tailrace.connectors.config import Config, Setting
from tailrace.connectors.errors import ConnectorError, ConnectorSettingError

_TEXT = {"type": "string", "optional": False}
_READ_BYTES = 256 * 1024


class FileStreamSource(SourceConnector):
    """Each line of a file that is only appended to is a record."""

    version = __version__
    config = Config(
        Setting("file", help="The file to read."),
        Setting("topic", required=True, help="The topic to write its lines to."),
        Setting("batch.size", int, default=2000, importance="low", help="The most lines in a transaction."),
    )  # fmt: skip

    def tasks(self, settings: Settings, most: int) -> list[Mapping[str, str]]:
        return [{}]

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Mapping[str, Offset | None]
    ) -> None:
        for text, offset in offsets.items():
            if offset is None:
                continue
            if "filename" not in orjson.loads(text):
                raise ConnectorError("Partition objects should contain the key 'filename'")
            if "position" not in offset:
                raise ConnectorError("Offset objects should either be null or contain the key 'position'")  # fmt: skip
            position = offset["position"]
            if isinstance(position, bool) or not isinstance(position, int):
                raise ConnectorError("The value for the 'position' key in the offset is expected to be a Long value")  # fmt: skip
            if position < 0:
                raise ConnectorError("The value for the 'position' key in the offset should be non-negative")  # fmt: skip

    class Task(SourceTask):
        def start(self, settings: Settings, offsets: Offsets) -> None:
            if not settings["file"]:
                raise ConnectorSettingError(
                    "file is missing", detail="a task has no standard input to read instead"
                )
            self._path = str(settings["file"])
            self._topic, self._most = str(settings["topic"]), int(settings["batch.size"])
            self._partition = {"filename": self._path}
            self._position = int((offsets(self._partition) or {}).get("position", 0))
            self._file: BinaryIO | None = None
            self._kept = b""

        def poll(self) -> Sequence[SourceRecord] | None:
            if self._file is None:
                try:
                    self._file = Path(self._path).open("rb", buffering=0)  # noqa: SIM115
                except FileNotFoundError:
                    return None  # it may come
                self._file.seek(self._position)
            if b"\n" not in self._kept:
                self._kept += self._file.read(_READ_BYTES) or b""
            lines = self._kept.split(b"\n")
            whole = lines[:-1][: self._most]
            if not whole:
                return None
            taken = sum(map(len, whole)) + len(whole)
            self._kept = self._kept[taken:]
            records = []
            for line in whole:
                self._position += len(line) + 1
                records.append(
                    SourceRecord(
                        self._partition,
                        {"position": self._position},
                        self._topic,
                        value=line.removesuffix(b"\r").decode("utf-8", "replace"),
                        value_schema=_TEXT,
                    )
                )
            return records

        def stop(self) -> None:
            if getattr(self, "_file", None) is not None and self._file is not None:
                self._file.close()


class FileStreamSink(SinkConnector):
    """Appends each value as a line. After a kill some lines may be there twice, as with Kafka's."""

    version = __version__
    config = Config(Setting("file", help="The file to append to."))

    class Task(SinkTask):
        def start(self, settings: Settings) -> None:
            if not settings["file"]:
                raise ConnectorSettingError(
                    "file is missing", detail="a task has no standard output to write to instead"
                )
            try:
                self._file = Path(settings["file"]).open("a", encoding="utf-8")  # noqa: SIM115
            except OSError as error:
                raise ConnectorError(
                    f"Couldn't find or create file '{settings['file']}' for FileStreamSinkTask",
                    detail=str(error),
                ) from error

        def put(self, records: Sequence[SinkRecord]) -> None:
            self._file.writelines(f"{_line(record.value)}\n" for record in records)

        def flush(self) -> None:
            self._file.flush()
            os.fsync(self._file.fileno())

        def stop(self) -> None:
            if hasattr(self, "_file"):
                self._file.close()


def _line(value: object) -> str:
    """A value as a line: text as it is, other values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return orjson.dumps(value, default=str).decode()
