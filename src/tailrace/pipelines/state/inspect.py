"""Looking into state without disturbing whoever works on it."""

from __future__ import annotations

import contextlib
import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb

from tailrace.pipelines.state.cache import boot_id
from tailrace.pipelines.state.files import StateFiles
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.state.store import Version


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


def cached_sizes(cache: Path) -> dict[str, OperatorSize]:
    """The same at whatever tick the running caches of this host hold, without reading the
    state itself; empty where there is no cache."""
    found: dict[str, OperatorSize] = {}
    for path in sorted((cache / boot_id()).glob("*/data.mdb")):
        with contextlib.suppress(lmdb.Error):
            environment = lmdb.open(str(path.parent), readonly=True, max_dbs=1024, create=False)
            try:
                for operator, rows, size in _tables(environment):
                    known = found.get(operator, OperatorSize(0, 0))
                    found[operator] = OperatorSize(known.rows + rows, known.bytes + size)
            finally:
                environment.close()
    return found


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
