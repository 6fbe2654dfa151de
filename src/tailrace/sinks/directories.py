"""Two directories that change places: how copies made of files are switched.

    <path>             the copy in use
    <path>__next       one being filled beside it
    <path>__previous   the one that the last switch replaced
    <path>__switching  there while a switch is under way: which directories, and the number
                       (inode) of the one that is to be in use afterwards

Linux exchanges two names at once (`renameat2`), so that a reader finds one whole copy or
the other at any moment; a file system that cannot do that leaves the name away for the
time between two renames. A crash leaves the note, and `finish_switch` does the rest.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path

import orjson

from tailrace.files import FILES
from tailrace.sinks.sql import NEXT, PREVIOUS

SWITCHING = "__switching"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def beside(path: Path) -> Path:
    """Where a second copy of `path` is filled."""
    return path.with_name(path.name + NEXT)


def before(path: Path) -> Path:
    """Where the copy is that the last switch replaced."""
    return path.with_name(path.name + PREVIOUS)


def switch(path: Path) -> None:
    """Put the copy beside in place of the one in use, which is kept as the one before."""
    _begin(path, before(path), beside(path))


def rollback(path: Path) -> None:
    """Bring the copy before back; the one in use becomes the copy beside."""
    _begin(path, beside(path), before(path))


def finish_switch(path: Path) -> None:
    """Do what a crash has left of a switch or a rollback."""
    note = path.with_name(path.name + SWITCHING)
    try:
        away, back, number = orjson.loads(note.read_bytes())
    except FileNotFoundError:
        return
    gone, new = path.with_name(away), path.with_name(back)
    if not path.exists():
        new.rename(path)
    elif path.stat().st_ino != number:
        _exchange(path, new, gone)
    if new.exists():
        new.rename(gone)
    note.unlink()
    FILES.sync_directory(path.parent)


def _begin(path: Path, away: Path, back: Path) -> None:
    shutil.rmtree(away, ignore_errors=True)
    note = path.with_name(path.name + SWITCHING)
    FILES.write_whole(note, orjson.dumps([away.name, back.name, back.stat().st_ino]))
    finish_switch(path)


def _exchange(path: Path, new: Path, gone: Path) -> None:
    """`path` and `new` change names; where that cannot be done at once, `path` goes to
    `gone` first."""
    library = ctypes.CDLL(None, use_errno=True)
    names = (_AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(new))
    try:
        failed = library.renameat2(*names, _RENAME_EXCHANGE) != 0
        code = ctypes.get_errno()
    except AttributeError:  # a C library without it
        failed, code = True, errno.ENOSYS
    if not failed:
        return
    if code not in _UNABLE:
        raise OSError(code, os.strerror(code), str(path))
    path.rename(gone)
    new.rename(path)
