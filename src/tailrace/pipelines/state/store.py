"""What an operator sees of its state: an ordered map of bytes to bytes.

An operator never learns where its state lives. It reads rows of the last committed
tick together with the changes it has made in this one, and changes become real only
when the tick's row is committed.

A *version* of a shard is a tuple of file names, the ones its tick row gives; the empty
tuple is the empty state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

Version: TypeAlias = tuple[str, ...]


class OperatorState(Protocol):
    """The state of one operator in one shard, during one tick."""

    def get(self, key: bytes) -> bytes | None:
        """The value under `key`, or None."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under `keys`, in their order; fastest when the keys are sorted."""

    def put_many(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Set values; None deletes. Later pairs win over earlier ones.

        Keys are not empty. Whoever has reduced a batch to one pair per key and sorted
        it pays least.
        """

    def scan(self, prefix: bytes = b"", after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Pairs whose key begins with `prefix` and comes after `after`, in the order of keys.

        Sees this tick's own changes up to the call. The state must not be changed
        while the iterator is in use.
        """


class States(Protocol):
    """All shards' states of one attempt at one tick."""

    def of(self, shard: int, operator: str) -> OperatorState:
        """The state of `operator` in `shard`; a new operator's is empty."""
