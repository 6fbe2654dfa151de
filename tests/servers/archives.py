"""Archives of files that tests and their servers begin with."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, target: Path) -> None:
    """All of it, as it was packed: Python before 3.11.4 knows no filters by name, and later ones
    want to be told."""
    archive.extraction_filter = lambda member, path: member
    archive.extractall(target)
