"""Topics that clients may read and not write.

Internal topics are the broker's own: nobody else writes them, as in Kafka. Topics whose name
begins with `__tailrace` are the project's: ticks, markers and the progress of copies decide
what followers and sinks take for true, so only connections that have shown to be the
project's (`project_token`) write, create or change them.
"""

from __future__ import annotations

from tailrace.project_token import ENVIRONMENT, TOKEN_FILE

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
PROJECT_PREFIX = "__tailrace"


def write_refusal(topic: str, *, project: bool) -> str | None:
    """Why a connection may not write to this topic; None if it may."""
    if topic[:2] != "__":
        return None
    if topic in INTERNAL:
        return f"{topic} belongs to the broker itself"
    if not project and topic.startswith(PROJECT_PREFIX):
        return (
            f"{topic} belongs to the Tailrace project alone "
            f"(its processes read {TOKEN_FILE} in the log's directory, or have {ENVIRONMENT})"
        )
    return None
