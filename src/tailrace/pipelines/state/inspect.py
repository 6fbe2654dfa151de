"""Looking into state without disturbing whoever works on it."""

from __future__ import annotations

import contextlib
import marshal
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb

from tailrace.pipelines.state.cache import read_stamp
from tailrace.pipelines.state.files import StateFiles
from tailrace.pipelines.state.route import route
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.state.store import Version
from tailrace.unsynced import boot_id

MOST_BYTES_READ = 256 << 20  # a few seconds


@dataclass(frozen=True, slots=True)
class OperatorSize:
    """How much one operator keeps, over all shards."""

    rows: int
    bytes: int


def sizes(
    files: StateFiles, cache: Path, versions: Mapping[int, Version]
) -> dict[str, OperatorSize]:
    """The size of every operator at these versions.

    `cache` should be a directory of its own: the running cache follows its driver.
    """
    found: dict[str, OperatorSize] = {}
    with Attempt.begin(files, cache, versions) as attempt:
        for number in versions:
            shard = attempt.shard(number)
            for operator in shard.operators():
                rows, size = shard.size(operator)
                known = found.get(operator, OperatorSize(0, 0))
                found[operator] = OperatorSize(known.rows + rows, known.bytes + size)
    return found


def current_sizes(
    files: StateFiles, cache: Path, scratch: Path, versions: Mapping[int, Version]
) -> tuple[dict[str, OperatorSize], bool]:
    """The same from the running caches where they hold these versions; a cache follows only
    when its shard is next worked on, and what lags is read from its files, up to
    MOST_BYTES_READ. Beyond that the second is False: the sizes are of a tick before."""
    behind = {
        shard: version
        for shard, version in versions.items()
        if version and _cached_version(cache, shard) != version
    }
    to_read = sum(
        files.size(shard, name)
        for shard, version in behind.items()
        for name in route(files, shard, version, None).files
    )
    if to_read > MOST_BYTES_READ:
        return cached_sizes(cache), False
    found = cached_sizes(cache, versions.keys() - behind.keys())
    for operator, size in sizes(files, scratch, behind).items():
        known = found.get(operator, OperatorSize(0, 0))
        found[operator] = OperatorSize(known.rows + size.rows, known.bytes + size.bytes)
    return found, True


def cached_sizes(cache: Path, shards: Collection[int] | None = None) -> dict[str, OperatorSize]:
    """The same at whatever tick the running caches of this host hold, without reading the
    state itself; empty where there is no cache."""
    found: dict[str, OperatorSize] = {}
    for path in sorted((cache / boot_id()).glob("*/data.mdb")):
        if shards is not None and path.parent.name not in {str(shard) for shard in shards}:
            continue
        with _opened(path.parent) as environment:
            for operator, rows, size in _tables(environment) if environment is not None else ():
                known = found.get(operator, OperatorSize(0, 0))
                found[operator] = OperatorSize(known.rows + rows, known.bytes + size)
    return found


def cached_values(cache: Path, operators: Sequence[str], key: bytes) -> Iterator[tuple[str, bytes]]:
    """The value of one (short) key in each shard of these operators, from the same caches."""
    for path in sorted((cache / boot_id()).glob("*/data.mdb")) if operators else ():
        with _opened(path.parent) as environment, contextlib.suppress(lmdb.Error):
            if environment is None:
                continue
            with environment.begin() as transaction:
                for operator in operators:
                    with contextlib.suppress(lmdb.NotFoundError):
                        name = operator.encode()
                        table = environment.open_db(name, txn=transaction, create=False)
                        value = transaction.get(key, db=table)
                        if value is not None:
                            yield operator, bytes(value)


def _cached_version(cache: Path, shard: int) -> Version | None:
    with _opened(cache / boot_id() / str(shard)) as environment:
        if environment is None:
            return None
        with environment.begin() as transaction:
            stamp = read_stamp(environment, transaction)
        return None if stamp is None or stamp.toward else stamp.version


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any | None]:
    """A cache for reading; None where there is none."""
    try:
        environment = lmdb.open(str(path), readonly=True, max_dbs=1024, create=False)
    except lmdb.Error:
        yield None
        return
    try:
        yield environment
    finally:
        environment.close()


def _tables(environment: Any) -> Iterator[tuple[str, int, int]]:
    with environment.begin() as transaction:
        with transaction.cursor() as cursor:
            names = [bytes(name) for name in cursor.iternext(values=False) if name[:1] != b"!"]
        for name in names:
            stat = transaction.stat(environment.open_db(name, txn=transaction, create=False))
            pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
            yield name.decode(), stat["entries"], pages * stat["psize"]


def entries(
    files: StateFiles, cache: Path, versions: Mapping[int, Version], operators: Sequence[str]
) -> Iterator[tuple[str, int, bytes, object]]:
    """What operators hold: operator, shard, key, value (as a Python value where it is one)."""
    with Attempt.begin(files, cache, versions) as attempt:
        for operator in operators:
            for number in versions:
                for key, value in attempt.of(number, operator).scan():
                    yield operator, number, key, _readable(value)


def _readable(value: bytes) -> object:
    try:
        return marshal.loads(value)
    except (ValueError, EOFError, TypeError):
        return value
