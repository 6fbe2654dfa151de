"""Values in Confluent's wire format as the JSON that views read: a zero byte, the schema's id, data.

A value that cannot be opened becomes one that is no JSON, so that it is a dead record where it is
read; the reason is kept.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson

from tailrace.client.errors import RegistryError

if TYPE_CHECKING:
    from tailrace.pipelines.declare import Topic

Wire = tuple[tuple[str, str], ...]
_HEAD_BYTES = 5
_NO_JSON = b"\0"


def wire_of(topic: Topic) -> Wire:
    """How the values of a topic become JSON; empty if they are."""
    if topic.wire != "confluent":
        return ()
    if topic.format == "avro":
        return (("format", "avro"), *sorted(topic.avro.items()))
    return (("format", "json"),)


def to_json(
    wire: Wire, values: Sequence[bytes | None]
) -> tuple[list[bytes | None], dict[int, str]]:
    """The values as JSON, and why some are not, by their place."""
    options = dict(wire)
    bad: dict[int, str] = {}
    opened: list[bytes | None] = []
    read = None
    if options["format"] == "avro":
        from tailrace.pipelines.values.avro import decoder

        read = decoder(options)
    for index, value in enumerate(values):
        if value is None:
            opened.append(None)
            continue
        try:
            opened.append(without_id(value) if read is None else _as_json(read(value)))
        except RegistryError as reason:
            if reason.status != 404:
                raise  # the registry is away: the tick waits for it, and no record is given up
            bad[index] = (
                f"schema {int.from_bytes(value[1:_HEAD_BYTES], 'big')} is not in the registry"
            )
            opened.append(_NO_JSON)
        except Exception as reason:  # fastavro raises whatever its parser stumbles over
            bad[index] = f"{type(reason).__name__}: {reason}"
            opened.append(_NO_JSON)
    return opened, bad


def without_id(value: bytes) -> bytes:
    """JSON behind the id of its schema; as it is where there is none, which is told as no JSON."""
    return value[_HEAD_BYTES:] if value[:1] == b"\0" and len(value) > _HEAD_BYTES else value


def _as_json(row: dict[str, Any]) -> bytes:
    return orjson.dumps(_plain(row), default=_text)


def _plain(value: Any) -> Any:
    """Numbers that JSON has no word for as text; everything else as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return format(value, "f") if isinstance(value, Decimal) else str(value)
