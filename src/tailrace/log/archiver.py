"""Moves whole segments to and from the archive: what the child process does.

    python -m tailrace.log.archiver < job.json

A job is a list of [operation, local path, address]: `put` copies a segment out, `get`
brings one back, `remove` deletes one. An address is a plain path or any URL that fsspec
knows. Nothing is visible under its final name before it is whole.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import orjson

from tailrace import modes
from tailrace.errors import ComponentMissingError

_BLOCK_BYTES = 4 * 1024 * 1024


def is_plain(address: str) -> bool:
    """Whether an address is a path on this machine."""
    return "://" not in address


def put(path: str, address: str) -> None:
    """Copy the segment at `path` to `address` and make sure that it is all there."""
    size = os.path.getsize(path)
    if is_plain(address):
        modes.make_private(Path(address).parent)
        waiting = f"{address}.part"
        with open(path, "rb") as source, open(waiting, "wb", opener=modes.open_private) as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            # Over this descriptor: one that is opened later may not be told that a write
            # failed, and the segment here is deleted next.
            os.fsync(target.fileno())
        os.rename(waiting, address)
        _sync(os.path.dirname(address))
        found = os.path.getsize(address)
    else:
        filesystem, inner = _filesystem(address)
        filesystem.makedirs(os.path.dirname(inner), exist_ok=True)
        filesystem.put_file(path, inner)
        found = filesystem.size(inner)
    if found != size:
        raise OSError(f"{address} has {found} bytes of {size}")


def get(path: str, address: str) -> None:
    """Bring the segment at `address` to `path`."""
    waiting = f"{path}.part"
    if is_plain(address):
        shutil.copyfile(address, waiting)
    else:
        filesystem, inner = _filesystem(address)
        with filesystem.open(inner, "rb") as source, open(waiting, "wb") as target:
            shutil.copyfileobj(source, target, _BLOCK_BYTES)
    os.rename(waiting, path)


def remove(address: str) -> None:
    """Delete the segment at `address`, if it is there."""
    try:
        if is_plain(address):
            os.unlink(address)
        else:
            filesystem, inner = _filesystem(address)
            filesystem.rm_file(inner)
    except FileNotFoundError:
        return


def _filesystem(address: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as missing:
        raise ComponentMissingError(
            "the archive needs fsspec", hint="pip install 'tailrace[archive]'"
        ) from missing
    filesystem, inner = fsspec.core.url_to_fs(address)
    return filesystem, inner


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def run(job: list[list[str]]) -> list[str]:
    """Do one operation after the other; what went wrong with each, empty if nothing."""
    failures: list[str] = []
    for operation, path, address in job:
        try:
            match operation:
                case "put":
                    put(path, address)
                case "get":
                    get(path, address)
                case _:
                    remove(address)
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
        else:
            failures.append("")
    return failures


def main() -> None:
    os.nice(10)
    sys.stdout.buffer.write(orjson.dumps(run(orjson.loads(sys.stdin.buffer.read()))))


if __name__ == "__main__":
    main()
