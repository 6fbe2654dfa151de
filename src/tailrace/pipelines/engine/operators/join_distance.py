"""How long partners of a join of streams are apart: a histogram beside the join's rows.

    "h" -> marshal {bucket: pairs}          of one shard; the view's is their sum

Counted are the pairs that the join's keys and the bounds of time in its condition let meet, as
they come; a pair that is taken back is taken out. What the join forgets stays counted: it is the
distribution since the view was filled. Bucket n ≥ 0 holds the pairs whose right row is later by
more than `EDGES[n - 1]` and at most `EDGES[n]`, bucket -n - 1 those whose left row is.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.identity import not_identity
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.rows import dumps

HISTOGRAM = b"h"
_SECOND = 1_000_000
_WORDS = (
    ("1 ms", 1_000), ("10 ms", 10_000), ("100 ms", 100_000), ("1 s", _SECOND), ("2 s", 2 * _SECOND),
    ("5 s", 5 * _SECOND), ("10 s", 10 * _SECOND), ("20 s", 20 * _SECOND), ("30 s", 30 * _SECOND),
    ("1 min", 60 * _SECOND), ("2 min", 120 * _SECOND), ("5 min", 300 * _SECOND),
    ("10 min", 600 * _SECOND), ("20 min", 1_200 * _SECOND), ("30 min", 1_800 * _SECOND),
    ("1 h", 3_600 * _SECOND), ("2 h", 7_200 * _SECOND), ("6 h", 21_600 * _SECOND),
    ("12 h", 43_200 * _SECOND), ("1 d", 86_400 * _SECOND), ("2 d", 172_800 * _SECOND),
    ("7 d", 604_800 * _SECOND), ("30 d", 2_592_000 * _SECOND), ("365 d", 31_536_000 * _SECOND),
)  # fmt: skip
EDGES = np.array([micros for _, micros in _WORDS], dtype="i8")
_NAMES = [word for word, _ in _WORDS]


@dataclass(frozen=True, slots=True)
class Between:
    """The times of the two sides in the join's output, what they are, and how much later than
    the left one (microseconds) the right one may be; None: by any time."""

    left: str
    right: str
    from_what: str = field(metadata=not_identity("a text for people"))
    to_what: str = field(metadata=not_identity("a text for people"))
    least: int | None
    most: int | None

    def describe(self) -> str:
        return f" counting {self.right} - {self.left} in {self.least}..{self.most}"

    def count(self, state: OperatorState, pairs: pa.Table) -> None:
        """Count the pairs that a tick has put out."""
        if not pairs.num_rows:
            return
        apart = pc.subtract(
            pairs.column(self.right).cast(pa.int64()), pairs.column(self.left).cast(pa.int64())
        )
        known = apart.is_valid().to_numpy()
        gaps = apart.fill_null(0).to_numpy()
        if self.least is not None:
            known = known & (gaps >= self.least)
        if self.most is not None:
            known = known & (gaps <= self.most)
        gaps, weights = gaps[known], pairs.column(WEIGHT).to_numpy()[known]
        if not len(gaps):
            return
        buckets = np.searchsorted(EDGES, np.abs(gaps), "left")
        buckets = np.where(gaps < 0, -buckets - 1, buckets)
        stored = state.get(HISTOGRAM)
        counts: dict[int, int] = marshal.loads(stored) if stored is not None else {}
        found, places = np.unique(buckets, return_inverse=True)
        for bucket, more in zip(found.tolist(), np.bincount(places, weights).tolist(), strict=True):
            counts[bucket] = counts.get(bucket, 0) + int(more)
        kept = {bucket: count for bucket, count in sorted(counts.items()) if count}
        state.put_many([(HISTOGRAM, dumps(kept) if kept else None)])


def told(between: Between, counts: Mapping[int, int]) -> list[str]:
    """The histogram as lines of text, shortest distance first; percentiles are of distances."""
    total = sum(counts.values())
    title = f"time from {between.from_what} to {between.to_what}"
    if total <= 0:
        return [f"{title}: no pairs yet"]
    shares = ", ".join(f"{part} within {_within(counts, total * share)}" for part, share in _SHARES)
    lines = [f"{title}, of {total:,} pair{'s' if total != 1 else ''}: {shares}"]
    for bucket in sorted(counts):
        percent = 100 * counts[bucket] / total
        lines.append(f"  {_range(bucket):<24}{counts[bucket]:>12,}{percent:>7.1f} %")
    return lines


_SHARES = (("half", 0.5), ("90 %", 0.9), ("99 %", 0.99))


def _within(counts: Mapping[int, int], wanted: float) -> str:
    """The edge within which so many pairs are."""
    distances: dict[int, int] = {}
    for bucket, count in counts.items():
        place = bucket if bucket >= 0 else -bucket - 1
        distances[place] = distances.get(place, 0) + count
    seen = 0
    for place in sorted(distances):
        seen += distances[place]
        if seen >= wanted:
            return _NAMES[place] if place < len(_NAMES) else f"more than {_NAMES[-1]}"
    return f"more than {_NAMES[-1]}"


def _range(bucket: int) -> str:
    place, side = (bucket, "") if bucket >= 0 else (-bucket - 1, " before")
    if place == 0:
        return f"up to {_NAMES[0]}{side}"
    if place == len(_NAMES):
        return f"over {_NAMES[-1]}{side}"
    return f"{_NAMES[place - 1]} to {_NAMES[place]}{side}"
