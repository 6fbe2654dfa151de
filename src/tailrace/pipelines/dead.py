"""Dead letters: records a pipeline could not read, kept with their reason.

`<name>.dead` holds one JSON record per position (`log:<topic>/<partition>:<offset>`),
which is also its key; the record itself is inside, in base64.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.reader import LogReader, read_all


def letters(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """All letters that wait, the newest word about each position."""
    found: dict[bytes, dict[str, Any]] = {}
    with LogReader(bootstrap) as reader:
        for records in read_all(reader, topic):
            for key, value in zip(records.keys, records.values, strict=True):
                if key is None:
                    continue
                found.pop(key, None)
                if value is not None:
                    found[key] = orjson.loads(value)
    return list(found.values())


def retry_letters(bootstrap: str, topic: str) -> int:
    """Write every waiting record to the topic it came from, and take its letter away; how
    many. Both happen in one transaction."""
    waiting = letters(bootstrap, topic)
    if not waiting:
        return 0
    with TransactionalWriter(bootstrap, f"tailrace.{topic}.retry") as writer:
        writer.init()
        for letter in waiting:
            position = str(letter["position"])
            origin, _, partition = position.removeprefix("log:").rpartition(":")[0].rpartition("/")
            key, value = _decoded(letter["key"]), _decoded(letter["value"])
            writer.send(origin, int(partition), key, value)
            writer.send(topic, None, position.encode(), None)
        writer.commit()
    return len(waiting)


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
