"""Writing the files of a deployment; what was changed by hand is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailrace.deployment.errors import FilesChangedError


def write(directory: Path, files: Mapping[str, str], *, force: bool) -> list[Path]:
    """Write `files` into `directory`; their paths."""
    changed = [
        name
        for name, text in files.items()
        if (directory / name).exists() and (directory / name).read_text("utf-8") != text
    ]
    if changed and not force:
        raise FilesChangedError(
            f"{len(changed)} {'file is' if len(changed) == 1 else 'files are'} there and would change",
            detail=", ".join(str(directory / name) for name in changed),
            hint="give --force to write over them, or name another directory",
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in files]
