"""What others ask of a sink that runs: a file it looks for, and its report as the answer.

    <directory>/sinks/<name>.request       {"id": …, "do": "replay", "keys": […]}

`keys` are those to repair. The report's `answered` is `{"id": …, "count": rows written,
"error": null or the four parts}`. A sink that runs does what must be written itself:
whoever else opens its copy takes it over, and it would have to start again.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from tailrace.files import FILES

Work = Literal["replay", "switch", "rollback", "repair", "retry"]


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """One thing to do."""

    id: str
    work: Work
    keys: tuple[bytes, ...] = ()


def ask(directory: Path, name: str, work: Work, keys: Sequence[bytes] = ()) -> SinkRequest:
    """Ask the running sink `name` to do something; replaces what was asked before."""
    request = SinkRequest(uuid.uuid4().hex, work, tuple(keys))
    path = _path(directory, name)
    FILES.make_directories(path.parent)
    texts = [key.decode() for key in keys]
    document = orjson.dumps({"id": request.id, "do": work, "keys": texts})
    FILES.write_whole(path, document, shared=True)
    return request


def take(directory: Path, name: str) -> SinkRequest | None:
    """What was asked, once."""
    path = _path(directory, name)
    known = FILES.read_whole(path)
    if known is None:
        return None
    path.unlink(missing_ok=True)
    document = orjson.loads(known)
    keys = tuple(key.encode() for key in document.get("keys", ()))
    return SinkRequest(document["id"], document["do"], keys)


def answer(report: Mapping[str, Any], request: SinkRequest) -> Mapping[str, Any] | None:
    """The answer to a request in a sink's report; None: not yet."""
    answered = report.get("answered") or {}
    return answered if answered.get("id") == request.id else None


def _path(directory: Path, name: str) -> Path:
    return directory / "sinks" / f"{name}.request"
