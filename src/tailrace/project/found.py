"""Where a project is: its settings, read without its declarations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailrace import config
from tailrace.project.errors import ProjectMissingError


def settings_of(
    directory: str | Path,
    *,
    flags: Mapping[str, object] | None = None,
    need_file: bool = True,
) -> config.Settings:
    """The settings of the project in `directory`, without its declarations."""
    settings = config.load(directory, flags=flags)
    if need_file and not (settings.directory / config.FILE_NAME).exists():
        raise ProjectMissingError(
            f"no {config.FILE_NAME} here",
            detail=f"looked in {settings.directory}",
            hint="`tailrace init DIR` makes a project; or name one with --project DIR",
        )
    return settings
