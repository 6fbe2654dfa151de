"""Lines of StatsD and DogStatsD, and what they add up to between two flushes.

    name:value[:value…]|type[|@rate][|#tag,tag:value]

    c   counter: the sum of values ÷ rate, back to 0 at a flush
    g   gauge: the last value; +n and −n change it; kept over flushes
    s   set: how many different values
    ms, h, d   timer, histogram, distribution: count, sum, min, max, mean, p50, p95, p99 of the values,
               each ÷ rate times

A metric without a value since the last flush is not written again. Series are told apart by name, type
and tags (sorted); there may be `SERIES_LIMIT` of them, `VALUES_LIMIT` values of each, and `ROOM_BYTES`
for all together, beyond which lines are refused and counted. A gauge that was not set since the last
flush gives way to a new series when there is no room left.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, field
from itertools import accumulate

SERIES_LIMIT = 100_000
VALUES_LIMIT = 100_000
LINE_LIMIT_BYTES = 8192
ROOM_BYTES = 256 << 20
FORMS_LIMIT, FORM_LIMIT_BYTES = 20_000, 300
_SERIES_BYTES, _TEXT_BYTES, _NUMBER_BYTES = 500, 80, 48
TYPES = {
    b"c": "counter",
    b"g": "gauge",
    b"s": "set",
    b"ms": "timer",
    b"h": "histogram",
    b"d": "distribution",
}
_SPREAD = ("timer", "histogram", "distribution")
Series = tuple[str, str, tuple[str, ...]]


class BadLine(Exception):
    """The line says nothing that can be counted."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a flush."""

    name: str
    kind: str
    value: float
    tags: tuple[str, ...]


@dataclass(slots=True)
class _Spread:
    values: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)


class Aggregate:
    """What lines add up to. Not for use from several threads."""

    def __init__(
        self,
        series_limit: int = SERIES_LIMIT,
        values_limit: int = VALUES_LIMIT,
        room_bytes: int = ROOM_BYTES,
    ) -> None:
        self._series_limit = series_limit
        self._values_limit = values_limit
        self._left_bytes = self._room_bytes = room_bytes
        self._counters: dict[Series, float] = {}
        self._gauges: dict[Series, float] = {}
        self._touched: dict[Series, None] = {}
        self._sets: dict[Series, set[bytes]] = {}
        self._spreads: dict[Series, _Spread] = {}
        # What stands around the values of lines says the same each time it comes.
        self._known_forms: dict[tuple[bytes, bytes], tuple[Series, float]] = {}

    def add(self, line: bytes) -> None:
        """Take one line. Raises BadLine, and then nothing of it counts."""
        if len(line) > LINE_LIMIT_BYTES:
            raise BadLine
        name, _, rest = line.partition(b":")
        values_text, bar, about = rest.partition(b"|")
        if not name or not bar:
            raise BadLine
        known = self._known_forms.get((name, about))
        if known is None:
            known = _form(name, about)
            if len(line) <= FORM_LIMIT_BYTES:
                if len(self._known_forms) >= FORMS_LIMIT:
                    self._known_forms.clear()
                self._known_forms[name, about] = known
        series, rate = known
        kind = series[1]
        given = values_text.split(b":")
        if kind == "set":
            self._add_to_set(series, given)
            return
        values = [_number(one) for one in given]
        if kind == "counter":
            before = self._counters.get(series)
            total = (before or 0.0) + sum(values) / rate
            if not math.isfinite(total):
                raise BadLine
            if before is None:
                self._room(series, self._counters)
            self._counters[series] = total
        elif kind == "gauge":
            self._set_gauge(series, given, values)
        else:
            self._add_to_spread(series, values, rate)

    def _room(self, series: Series, held: Container[Series], more_bytes: int = 0) -> None:
        """Make room for a line's values, and for its series if that is new."""
        new = series not in held
        needed = more_bytes + (_size(series) if new else 0)
        while (new and self._known >= self._series_limit) or needed > self._left_bytes:
            old = next(iter(self._gauges), None)
            # Those that were set go to the end, so the first has waited longest.
            if old is None or old in self._touched or old == series:
                raise BadLine
            del self._gauges[old]
            self._left_bytes += _size(old)
        self._left_bytes -= needed

    @property
    def _known(self) -> int:
        return len(self._counters) + len(self._gauges) + len(self._sets) + len(self._spreads)

    def _set_gauge(self, series: Series, given: list[bytes], values: list[float]) -> None:
        value = self._gauges.get(series, 0.0)
        for text, one in zip(given, values, strict=True):
            value = value + one if text[:1] in (b"+", b"-") else one
        if not math.isfinite(value):
            raise BadLine
        self._room(series, self._gauges)
        self._gauges.pop(series, None)
        self._gauges[series] = value
        self._touched[series] = None

    def _add_to_set(self, series: Series, given: list[bytes]) -> None:
        held = self._sets.get(series, set())
        if len(held) + len(given) > self._values_limit:
            raise BadLine
        new = {one for one in given if one not in held}
        self._room(series, self._sets, sum(_TEXT_BYTES + len(one) for one in new))
        self._sets.setdefault(series, held).update(given)

    def _add_to_spread(self, series: Series, values: list[float], rate: float) -> None:
        held = self._spreads.get(series, _Spread())
        if len(held.values) + len(values) > self._values_limit:
            raise BadLine
        self._room(series, self._spreads, _NUMBER_BYTES * len(values))
        self._spreads.setdefault(series, held)
        held.values += values
        held.weights += [1 / rate] * len(values)

    def take(self) -> list[Metric]:
        """Everything since the last time, and begin again; gauges keep what they are."""
        found = [Metric(n, k, value, tags) for (n, k, tags), value in self._counters.items()]
        found += [Metric(*one[:2], self._gauges[one], one[2]) for one in self._touched]
        found += [Metric(n, k, len(held), tags) for (n, k, tags), held in self._sets.items()]
        for (name, kind, tags), held in self._spreads.items():
            found += [Metric(f"{name}.{what}", kind, value, tags) for what, value in _figures(held)]
        self._counters.clear()
        self._touched.clear()
        self._sets.clear()
        self._spreads.clear()
        self._left_bytes = self._room_bytes - sum(map(_size, self._gauges))
        return found


def _form(name: bytes, about: bytes) -> tuple[Series, float]:
    """The series and the rate of a line, from what stands before and behind its values."""
    word, *parts = about.split(b"|")
    kind = TYPES.get(word)
    if kind is None:
        raise BadLine
    rate = 1.0
    tags: tuple[str, ...] = ()
    for part in parts:
        if part.startswith(b"@"):
            rate = _number(part[1:])
        elif part.startswith(b"#"):
            tags = tuple(sorted(_text(one) for one in part[1:].split(b",") if one))
        elif part[:2] not in (b"c:", b"T1"):  # a container or a time, of newer DogStatsD
            raise BadLine
    if not 0 < rate <= 1:
        raise BadLine
    return (_text(name), kind, tags), rate


def _size(series: Series) -> int:
    name, _, tags = series
    # A text with one wide letter has four bytes for each of its letters.
    texts = sum(_TEXT_BYTES + len(one) * (1 if one.isascii() else 4) for one in (name, *tags))
    return _SERIES_BYTES + texts


def _figures(held: _Spread) -> list[tuple[str, float]]:
    pairs = sorted(zip(held.values, held.weights, strict=True))
    count = math.fsum(weight for _, weight in pairs)
    total = math.fsum(value * weight for value, weight in pairs)
    figures = [
        ("count", count),
        ("sum", total),
        ("min", pairs[0][0]),
        ("max", pairs[-1][0]),
        ("mean", total / count),
    ]
    for what, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        reached = accumulate(weight for _, weight in pairs)
        place = next((n for n, sum_ in enumerate(reached) if sum_ >= share * count), len(pairs) - 1)
        figures.append((what, pairs[place][0]))
    return figures


def _number(text: bytes) -> float:
    # Not what Python takes beside numbers: 1_0, infinity, blanks.
    if not text or text.strip(b"+-.0123456789eE"):
        raise BadLine
    try:
        value = float(text)
    except ValueError:
        raise BadLine from None
    if not math.isfinite(value):
        raise BadLine
    return value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadLine from None
