"""Looking into state without disturbing whoever works on it."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
