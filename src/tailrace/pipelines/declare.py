"""What a project declares: views, streams and topics, as plain values.

Nothing here touches Spark, a file or a socket: importing a project has no effect, and a
declared stream stays an ordinary function of DataFrames that a test can call.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from tailrace.config import parse_duration
from tailrace.pipelines.errors import DeclarationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POLICIES = ("auto", "incremental", "strict", "full")
OUTPUT_MODES = ("append", "update", "complete")
FORMATS = ("json", "avro", "raw")
LATE_POLICIES = ("correct", "drop", "side")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


@runtime_checkable
class TableLike(Protocol):
    """A captured table, as a source declares it."""

    @property
    def topic(self) -> str:
        """Its change topic, `<source>.<schema>.<table>`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's files something was declared."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class EventTime:
    """When a stream's rows happened, and what becomes of stragglers.

    The watermark of a partition is the largest event time seen in it, less `delay`; the
    stream's is the smallest of its partitions, those without new rows for `idle` left
    out. It counts from the next tick on, so all operators of a tick see the same. A row
    more than `lateness` behind it is late: `correct` takes it all the same, `drop` counts
    it, `side` also puts it into `<topic>.late` with the reason.

    `keep` says how long results can be corrected: a row further behind the watermark is
    counted and dropped under any policy, and windows that ended before leave the state
    (what was shown stays). `alarm` is the share of late rows above which an alarm is raised.
    """

    column: str
    delay_ms: int = 0
    lateness_ms: int = 0
    idle_ms: int = 60_000
    late: str = "correct"
    keep_ms: int | None = None
    alarm: float = 0.01


@dataclass(frozen=True, slots=True)
class Topic:
    """A stream of plain records, from any topic.

    `schema` is Spark DDL ("user STRING, at TIMESTAMP"); without one the record's own
    columns are given (key, value, headers, topic, partition, offset, timestamp).
    """

    name: str
    schema: str | None = None
    format: str = "json"
    time: EventTime | None = None
    declared_at: Place | None = field(default=None, compare=False)

    @property
    def topic(self) -> str:
        return self.name


Input: TypeAlias = "TableLike | Topic | View | Stream"


@dataclass(frozen=True, slots=True)
class View:
    """SQL that stays true while its tables change; its changelog is the topic `name`."""

    name: str
    sql: str
    key: tuple[str, ...] | None = None
    policy: str = "auto"
    to: tuple[object, ...] = ()
    declared_at: Place | None = field(default=None, compare=False)
    indexes: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A pipeline written in PySpark: from DataFrames to a DataFrame, into topic `name`.

    Calling it calls the user's function, so a test needs nothing but DataFrames.
    """

    name: str
    inputs: tuple[Input, ...]
    function: Callable[..., DataFrame]
    key: tuple[str, ...] = ()
    output_mode: str = "append"
    trigger: str = "1 second"
    to: tuple[object, ...] = ()
    declared_at: Place | None = None

    @property
    def topic(self) -> str:
        return self.name

    @property
    def __wrapped__(self) -> Callable[..., DataFrame]:
        return self.function

    def __call__(self, *frames: DataFrame, **named: DataFrame) -> DataFrame:
        return self.function(*frames, **named)


def topic(
    name: str,
    schema: str | None = None,
    format: str = "json",
    *,
    time: str | None = None,
    watermark: str = "0 seconds",
    lateness: str = "0 seconds",
    idle: str = "1 minute",
    late: str = "correct",
    keep: str | None = None,
    late_alarm: float = 0.01,
) -> Topic:
    """A stream from any topic: `tr.topic("clicks", schema="user STRING, at TIMESTAMP")`.

    `time` names its event-time column; see `EventTime` for the other four.
    """
    place = caller()
    if late not in LATE_POLICIES:
        raise _wrong(
            place, f"unknown policy for late rows {late!r}", f"one of {', '.join(LATE_POLICIES)}"
        )
    if late != "correct" and time is None:
        raise _wrong(place, "only rows with an event time can be late", 'time="at"')
    policy = None
    if time is not None:
        kept = None if keep is None else _ms(keep)
        if kept is not None and kept < _ms(lateness):
            raise _wrong(
                place, "keep is shorter than lateness", 'lateness="1 minute", keep="1 day"'
            )
        policy = EventTime(time, _ms(watermark), _ms(lateness), _ms(idle), late, kept, late_alarm)
    elif keep is not None:
        raise _wrong(place, "keep needs an event time", 'time="at"')
    if format not in FORMATS:
        raise _wrong(place, f"unknown format {format!r}", f"one of {', '.join(FORMATS)}")
    return Topic(_checked_name(name, place), schema, format, policy, place)


def view(
    name: str,
    sql: str,
    *,
    key: str | Sequence[str] | None = None,
    policy: str = "auto",
    to: object | Iterable[object] = (),
    indexes: str | Sequence[str] = (),
) -> View:
    """A view kept up to date from its SQL (Spark's dialect); see `View`.

    `key` names the columns that tell its rows apart; without one it is inferred from
    GROUP BY or a table's key, and else the view is a bag whose rows carry a count.
    Columns in `indexes` are looked up quickly where the view is served.
    """
    return view_at(caller(), name, sql, key=key, policy=policy, to=to, indexes=indexes)


def view_at(
    place: Place,
    name: str,
    sql: str,
    *,
    key: str | Sequence[str] | None = None,
    policy: str = "auto",
    to: object | Iterable[object] = (),
    indexes: str | Sequence[str] = (),
) -> View:
    """`view`, for whoever declares one on a user's behalf."""
    if policy not in POLICIES:
        raise _wrong(place, f"unknown policy {policy!r}", f"one of {', '.join(POLICIES)}")
    if not sql.strip():
        raise _wrong(place, f'view "{name}" has no SQL', "give a SELECT statement")
    columns = None if key is None else _names(key)
    return View(
        _checked_name(name, place), sql, columns, policy, _targets(to), place, _names(indexes)
    )


def stream(
    *inputs: Input,
    name: str | None = None,
    key: str | Sequence[str] = (),
    output_mode: str = "append",
    trigger: str = "1 second",
    to: object | Iterable[object] = (),
) -> Callable[[Callable[..., DataFrame]], Stream]:
    """Declare a function of DataFrames as a pipeline; one parameter per input.

    Its rows go to the topic `name` (the function's name by default) as JSON, keyed by
    the columns in `key`; `output_mode` is Spark's.
    """
    place = caller()
    if not inputs:
        raise _wrong(place, "a stream needs at least one input", "@tr.stream(tr.topic(…))")
    if output_mode not in OUTPUT_MODES:
        raise _wrong(
            place, f"unknown output mode {output_mode!r}", f"one of {', '.join(OUTPUT_MODES)}"
        )

    def declare(function: Callable[..., DataFrame]) -> Stream:
        code = inspect.unwrap(function).__code__
        where = Place(code.co_filename, code.co_firstlineno)
        chosen = _checked_name(name or function.__name__, where)
        return Stream(
            chosen, inputs, function, _names(key), output_mode, trigger, _targets(to), where
        )

    return declare


def _ms(length: str) -> int:
    return int(parse_duration(length).total_seconds() * 1000)


def _names(key: str | Sequence[str]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def _targets(to: object | Iterable[object]) -> tuple[object, ...]:
    return tuple(to) if isinstance(to, (list, tuple)) else (to,)


def _checked_name(name: str, place: Place) -> str:
    if not _NAME.fullmatch(name) or name.startswith("__"):
        raise _wrong(
            place,
            f"{name!r} cannot be the name of a topic",
            "letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    return name


def caller() -> Place:
    """Where the function that calls this was itself called."""
    frame = sys._getframe(2)
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _wrong(place: Place, message: str, hint: str) -> DeclarationError:
    return DeclarationError(message, detail=f"declared at {place}", hint=hint)
