"""Who may read what a project keeps: its owner, or with `project.mode` its group, too.

Logs, views, state and reports hold rows of the databases that are captured, so directories
are made 0700 and files 0600 whatever the umask is. `0750` lets the group read and `0770`
write. What a user's sinks write at places of the user's choice keeps the user's umask.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TAILRACE_PROJECT__MODE"
"""The setting `project.mode`, as every process of a project finds it in its environment."""
DEFAULT = "0700"
MODES = {"0700": (0o700, 0o600), "0750": (0o750, 0o640), "0770": (0o770, 0o660)}


_used: list[str] = []


def use(mode: str) -> None:
    """Have this process make directories and files of this mode; children read the variable."""
    _used[:] = [mode]


def directory_mode() -> int:
    return _modes()[0]


def file_mode() -> int:
    return _modes()[1]


def _modes() -> tuple[int, int]:
    chosen = _used[0] if _used else os.environ.get(VARIABLE, DEFAULT)
    return MODES.get(chosen, MODES[DEFAULT])


def make_private(path: Path) -> None:
    """Make a directory and those above it that are missing, for those the mode names.

    A directory that is there stays as it is.
    """
    if path.is_dir():
        return
    make_private(path.parent)
    try:
        os.mkdir(path, directory_mode())
    except FileExistsError:
        if path.is_dir():
            return  # made by another process at this moment
        raise
    # The umask takes bits away; those of a group that was asked for are meant.
    os.chmod(path, directory_mode())


def open_private(path: str | Path, flags: int) -> int:
    """For `open(…, opener=open_private)`: a file that is made is for those the mode names."""
    return os.open(path, flags, file_mode())


def hide() -> None:
    """Set the umask of a process that writes nothing but what a project keeps."""
    os.umask(0o777 & ~directory_mode())


def looser(path: Path, mode: str) -> int | None:
    """The mode of a directory that lets in more than `mode`; None if it does not, or is not
    there."""
    try:
        found = path.stat().st_mode & 0o777
    except OSError:
        return None
    return found if found & ~MODES[mode][0] else None
