"""Dead letters: records a pipeline could not read or process, kept with their reason.

`<name>.dead` holds one JSON record per position (`log:<topic>/<partition>:<offset>`),
which is also its key; the record itself is inside, in base64, with its headers, and the
stack of the function that failed on it. A null takes a letter away.

A retry puts the record into `<name>.retry`, from where only this stream reads it again:
other readers of the topic it came from see nothing twice.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams.left_out import ATTEMPT, ORIGIN, TIMESTAMP


def letters(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """All letters that wait, the newest word about each position.

    Each has `position` and `reason`; `key` and `value` (base64 or null) of the record;
    where known `headers`, `timestamp`, `stack`, and `blocked_by`, the position it waits
    behind.
    """
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


def retry_letters(bootstrap: str, topic: str, positions: Collection[str] | None = None) -> int:
    """Put waiting records (all, or those at `positions`) into the retry topic and take their
    letters away, in one transaction; how many. `topic` is `<name>.dead`.

    Records of a blocked key follow each other as they were written. A letter about a batch
    that cannot be read holds no record: it stays.
    """
    waiting = [
        letter
        for letter in letters(bootstrap, topic)
        if (positions is None or letter["position"] in positions)
        and not letter["key"] is letter["value"] is None
    ]
    if not waiting:
        return 0
    again = topic.removesuffix(".dead") + ".retry"
    with TransactionalWriter(bootstrap, f"tailrace.{topic}.retry") as writer:
        writer.init()
        for letter in sorted(waiting, key=_order):
            writer.send(
                again,
                None,
                decoded(letter["key"]),
                decoded(letter["value"]),
                retry_headers(letter),
            )
            writer.send(topic, None, str(letter["position"]).encode(), None)
        writer.commit()
    return len(waiting)


def attempts(letter: Mapping[str, Any]) -> int:
    """How often the record of a letter has been tried again already."""
    headers = {name: decoded(value) for name, value in letter.get("headers") or ()}
    return int(headers.get(ATTEMPT) or 0)


def retry_headers(letter: Mapping[str, Any]) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record in the retry topic: its own, and where it came from."""
    own = [(name, decoded(value)) for name, value in letter.get("headers") or ()]
    kept = [(name, value) for name, value in own if name != ATTEMPT]
    told: list[tuple[str, bytes | None]] = [
        (ORIGIN, str(letter["position"]).encode()),
        (ATTEMPT, b"%d" % (attempts(letter) + 1)),
    ]
    if letter.get("timestamp") is not None:
        told.append((TIMESTAMP, b"%d" % letter["timestamp"]))
    return (*kept, *told)


def _order(letter: dict[str, Any]) -> tuple[str, int]:
    place, _, offset = str(letter["position"]).rpartition(":")
    return place, int(offset)


def decoded(text: str | None) -> bytes | None:
    """Bytes as a letter holds them."""
    return None if text is None else base64.b64decode(text)
