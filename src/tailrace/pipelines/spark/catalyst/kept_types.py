"""Types that Spark has told, kept in the user's cache: the next `check` needs no JVM.

One file for each version of Spark and of the program that asks it, text and types of columns; what cannot be read is asked again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from tailrace.pipelines.spark.catalyst.door import program


@dataclass(frozen=True, slots=True)
class KeptTypes:
    """A directory of answers."""

    directory: Path

    @staticmethod
    @lru_cache(maxsize=1)
    def here() -> KeptTypes:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return KeptTypes(Path(cache) / "tailrace" / "spark-types" / program())

    def get(self, text: str, schema: pa.Schema) -> Any:
        """What Spark said of it; None where that is not known."""
        try:
            kept = orjson.loads(self._path(text, schema).read_bytes())
            return kept["type"] if kept["text"] == text else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, text: str, schema: pa.Schema, told: Any) -> None:
        """Keep it; a cache that cannot be written is none."""
        path = self._path(text, schema)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_bytes(orjson.dumps({"text": text, "type": told}))
            draft.replace(path)

    def _path(self, text: str, schema: pa.Schema) -> Path:
        told = text.encode() + b"\0" + schema.serialize().to_pybytes()
        return self.directory / hashlib.blake2b(told, digest_size=16).hexdigest()
