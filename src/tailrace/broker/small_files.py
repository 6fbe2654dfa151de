"""Small JSON files beside the data: settings that were changed while the broker ran.

Written whole and synced (`tailrace.files`). A file that is not what was written is damaged,
and an error that names it. Settings of groups, which earlier versions did not sync, may also
be empty or hold zeros only after a power cut: that says nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from tailrace.broker.errors import DamagedFileError
from tailrace.log.files import FILES, Files

log = logging.getLogger(__name__)


def read_object(path: Path, hint: str, *, maybe_empty: bool = False) -> dict[str, Any] | None:
    """The JSON object at `path`; None if there is none. Raises `DamagedFileError`."""
    data = FILES.read_whole(path)
    if data is None:
        if not path.exists():
            return None
        data = b""
    if maybe_empty and not data.strip(b"\0"):
        log.error("a file of settings is empty: they are lost", extra={"path": str(path)})
        return None
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DamagedFileError(f"{path} is damaged", detail=str(error), hint=hint) from error
    if not isinstance(found, dict):
        raise DamagedFileError(f"{path} is damaged", detail="no JSON object", hint=hint)
    return found


def encode_object(values: Mapping[str, object]) -> bytes:
    """The bytes of such a file."""
    return orjson.dumps(dict(values), option=orjson.OPT_INDENT_2)


def write_object(path: Path, values: Mapping[str, object], files: Files = FILES) -> None:
    """Have `values` on disk at `path`; a crash leaves the old file or the new one."""
    files.write_whole(path, encode_object(values))
