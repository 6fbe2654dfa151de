"""The outbox: rows, or logical messages, that are messages for other topics.

An application writes its message in the transaction that changes its data; capture
routes it. A row of the outbox table goes to the topic its type names; its update and
delete are clean-up and send nothing. The same without a table, on Postgres:

    SELECT pg_logical_emit_message(true, 'outbox',
        '{"type": "order", "key": "17", "payload": {…}, "headers": {…}}');
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from tailrace.sources.declare import Outbox

MESSAGE_PREFIX = "outbox"


@dataclass(frozen=True, slots=True)
class Routed:
    """A message and where it goes."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def is_outbox(outbox: Outbox | None, table: str) -> bool:
    """Whether `table` ("schema.table") is the declared outbox."""
    if outbox is None:
        return False
    return table == (outbox.table if "." in outbox.table else f"public.{outbox.table}")


def read_object(content: bytes) -> dict[str, object]:
    """A message's content as a JSON object; anything else becomes a `note`."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = content.decode(errors="replace")
    return document if isinstance(document, dict) else {"note": document}


def route_row(outbox: Outbox, source: str, row: dict[str, Any]) -> Routed:
    """The message in a row of the outbox table."""
    kind = row.get(outbox.type)
    headers = row.get(outbox.headers) if outbox.headers else None
    return _routed(
        outbox.topic, source, kind, row.get(outbox.key), row.get(outbox.payload),
        row.get(outbox.id), headers,
    )  # fmt: skip


def route_message(outbox: Outbox | None, source: str, content: bytes) -> Routed | None:
    """The message in a logical message; None if it is not of that form."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict) or "type" not in document:
        return None
    topic = outbox.topic if outbox is not None else Outbox("outbox").topic
    return _routed(
        topic, source, document["type"], document.get("key"), document.get("payload"),
        document.get("id"), document.get("headers"),
    )  # fmt: skip


def _routed(
    topic: str, source: str, kind: Any, key: Any, payload: Any, identifier: Any, headers: Any
) -> Routed:
    name = topic.replace("{type}", str(kind)).replace("{source}", source)
    value = payload if payload is None or isinstance(payload, str) else orjson.dumps(payload)
    if isinstance(value, str):
        value = value.encode()
    found: dict[str, bytes | None] = {} if identifier is None else {"id": _text(identifier)}
    given = orjson.loads(headers) if isinstance(headers, str) and headers else headers
    if isinstance(given, dict):
        found |= {str(k): None if v is None else _text(v) for k, v in given.items()}
    return Routed(name, None if key is None else _text(key), value, tuple(found.items()))


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else orjson.dumps(value)
