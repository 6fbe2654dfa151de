"""The headers that make a record an event. They stand first and in this order.

tailrace.event     the type, `Opened`; of a later version `Opened.2`
tailrace.version   the number of the event in its stream: 1, 2, 3 …
tailrace.meta      JSON: id, command, name, cause, correlation, actor

An event that was erased has the type `Erased`, the value `{}`, and of the meta data id, command and name.
Any other record that was erased has the header `tailrace.erased` and no value.

The record of a published state has `tailrace.version` alone: that of the stream's last event.
"""

from __future__ import annotations

EVENT, VERSION, META = "tailrace.event", "tailrace.version", "tailrace.meta"
STATE_TOPIC = ".state"
ERASED, ERASED_TYPE = "tailrace.erased", "Erased"


def split_name(written: str) -> tuple[str, int]:
    """`Opened.2` as name and version; `Opened` is version 1."""
    name, dot, number = written.rpartition(".")
    if dot and number.isascii() and number.isdigit():
        return name, int(number)
    return written, 1
