"""CRC-32C (Castagnoli), the checksum of record batches and producer snapshots."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import cast


def _load() -> Callable[..., int]:
    # The package's own __init__ reads its version from the installed metadata, which
    # costs 50 ms: half of what a broker may take to start. Its extension does the work.
    spec = importlib.util.find_spec("crc32c")
    if spec is not None and spec.submodule_search_locations:
        finder = importlib.machinery.FileFinder(
            str(Path(next(iter(spec.submodule_search_locations)))),
            (
                importlib.machinery.ExtensionFileLoader,
                importlib.machinery.EXTENSION_SUFFIXES,
            ),
        )
        extension = finder.find_spec("_crc32c")
        if extension is not None and extension.loader is not None:
            module = importlib.util.module_from_spec(extension)
            extension.loader.exec_module(module)
            return cast("Callable[..., int]", module.crc32c)
    import crc32c as package

    return cast("Callable[..., int]", package.crc32c)


crc32c = _load()
"""`crc32c(buffer, start=0) -> int`; takes any buffer, releases the GIL on large ones."""
