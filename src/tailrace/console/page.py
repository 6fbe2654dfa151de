"""The page's files, from memory: three of them, asked for by every visitor at once."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import Response
from starlette.exceptions import HTTPException

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    packed: bytes
    tag: str
    kind: str


class Page:
    """Answers for the files below a directory as they were when it was made."""

    def __init__(self, directory: Path) -> None:
        self._files = {
            str(path.relative_to(directory)): _read(path)
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }

    def answer(self, name: str, headers: Mapping[str, str]) -> Response:
        """A file, packed where the caller takes that; 304 if it has it; 404 if there is none."""
        found = self._files.get(name)
        if found is None:
            raise HTTPException(404)
        # A new version of the package has the same names: ask each time, send it once.
        common = {"cache-control": "no-cache", "etag": found.tag, "vary": "accept-encoding"}
        if headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=common)
        if "gzip" in headers.get("accept-encoding", ""):
            common["content-encoding"] = "gzip"
            return Response(found.packed, media_type=found.kind, headers=common)
        return Response(found.content, media_type=found.kind, headers=common)


def _read(path: Path) -> _File:
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    kind = TYPES.get(path.suffix, "application/octet-stream")
    return _File(content, gzip.compress(content, mtime=0), tag, kind)
