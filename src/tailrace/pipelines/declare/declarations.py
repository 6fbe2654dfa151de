"""What a project declares: views, streams, topics, patterns and percolations, as plain values.

Nothing here touches Spark, a file or a socket: importing a project has no effect, and a
declared stream stays an ordinary function of DataFrames that a test can call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from tailrace.client.schemas import Subject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Frames: TypeAlias = Any
    """A DataFrame; for several outputs a tuple of them, or a dict by topic."""

POLICIES = ("auto", "incremental", "strict", "full")
OUTPUT_MODES = ("append", "update", "complete")
FORMATS = ("json", "avro", "raw")
EVENTS = "events"
"""The kind of an event topic as the input of a stream."""
LATE_POLICIES = ("correct", "drop", "side")
ERROR_POLICIES = ("dead", "block", "stop")
STREAM_FORMATS = ("json", "raw")


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

    An event time more than `ahead` after the time of the tick is wrong: the row is taken, but
    it does not move the watermark, or one wrong clock would make all other rows late.
    """

    column: str
    delay_ms: int = 0
    lateness_ms: int = 0
    idle_ms: int = 60_000
    late: str = "correct"
    keep_ms: int | None = None
    alarm: float = 0.01
    ahead_ms: int = 86_400_000


@dataclass(frozen=True, slots=True)
class Topic:
    """A stream of plain records, from any topic.

    `schema` is Spark DDL ("user STRING, at TIMESTAMP"); without one the record's own
    columns are given (key, value, headers, topic, partition, offset, timestamp). For Avro it
    is the Avro schema in JSON. With a `key` views see a table: the last row of each key.
    """

    name: str
    schema: str | None = None
    format: str = "json"
    time: EventTime | None = None
    declared_at: Place | None = field(default=None, compare=False)
    key: tuple[str, ...] = ()
    pattern: str | None = None
    metadata: str | None = None
    wire: str = "plain"
    registry: str | None = field(default=None, repr=False)
    subject: Subject | None = None

    @property
    def topic(self) -> str:
        return self.name

    @property
    def tabular(self) -> bool:
        """Whether views can read it: one topic of rows whose columns are known, as JSON or, in
        Confluent's wire format, as Avro."""
        if self.schema is None or self.pattern is not None:
            return False
        return self.format == "json" or (self.format == "avro" and self.registry is not None)

    @property
    def avro(self) -> dict[str, str]:
        """How its Avro records are read: the options of `avro.decoder`."""
        options = {"avro": self.schema or "", "wire": self.wire}
        return options if self.registry is None else options | {"registry": self.registry}


Input: TypeAlias = "TableLike | Topic | View | Stream | Pattern | Percolation"


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


def mark_of(sql: str, policy: str) -> str:
    """A few letters that change when a view's text does; runs of a view tell it."""
    return hashlib.blake2b(f"{policy}\n{sql}".encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A pipeline written in PySpark: from DataFrames to a DataFrame, into topic `name`.

    Calling it calls the user's function, so a test needs nothing but DataFrames. `outputs`
    are topics beside its own; `keys` the key columns of each, where they differ.
    """

    name: str
    inputs: tuple[Input, ...]
    function: Callable[..., Frames]
    key: tuple[str, ...] = ()
    output_mode: str = "append"
    trigger: str = "1 second"
    to: tuple[object, ...] = ()
    declared_at: Place | None = None
    outputs: tuple[Topic, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_error: str = "dead"
    retries: int = 0
    pause_ms: int = 60_000
    timeout_ms: int | None = None
    limit: int | None = None
    on_loss: str = "fail"
    format: str = "json"

    @property
    def topic(self) -> str:
        return self.name

    @property
    def __wrapped__(self) -> Callable[..., Frames]:
        return self.function

    def __call__(self, *frames: DataFrame, **named: DataFrame) -> Frames:
        return self.function(*frames, **named)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Complex events: what follows what among the rows of a key, reported once when it is final.

    Matches go to the topic `name`: `{"match_id", "op", <key>, <select>}`; partial matches whose
    time is over to `<name>.timeouts`, if asked.
    """

    name: str
    input: Input
    key: tuple[str, ...]
    order_by: str
    match: str
    define: Mapping[str, str]
    select: Mapping[str, str]
    within_ms: int | None = None
    gap_ms: int | None = None
    contiguity: str = "strict"
    until: Mapping[str, str] = field(default_factory=dict)
    skip: str = "past last row"
    rows: str = "one"
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    every: int = 0  # most matches and partial matches from one row; 0: the preferred one alone
    timeouts: bool = False
    early: bool = False
    time: EventTime | None = None  # None: as the input's topic says
    to: tuple[object, ...] = ()
    declared_at: Place | None = field(default=None, compare=False)

    @property
    def topic(self) -> str:
        return self.name

    @property
    def told_apart_by(self) -> tuple[str, ...]:
        """The key of its copies: one row for a match, whose `op` says whether it stands."""
        return ("match_id",) if self.rows == "one" else ()

    @property
    def copied(self) -> bool:
        """Whether it begins with the rows of a table's first copy."""
        return bool(getattr(self.input, "snapshot", False))


@dataclass(frozen=True, slots=True)
class Percolation:
    """Stored queries: rows of a table, each matched against every event of a stream.

    A pair of an event and a query that matches it goes to the topic `name`:
    `{"op", "query_id", "query_version", <carry>, "event"}`. `text`: the columns searched word
    by word, and the language of each ("": none). `once` and `per_hour` name columns of the
    queries that say how often each is reported.
    """

    name: str
    input: Input
    queries: TableLike | Topic
    id: str
    query: str
    text: tuple[tuple[str, str], ...] = ()
    fields: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    every: bool = False  # bare words must all be there; else any of them
    once: str | None = None
    per_hour: str | None = None
    to: tuple[object, ...] = ()
    declared_at: Place | None = field(default=None, compare=False)

    @property
    def topic(self) -> str:
        return self.name

    @property
    def key(self) -> tuple[str, ...]:
        return ("query_id",)

    @property
    def told_apart_by(self) -> tuple[str, ...]:
        """Its copies have no key: a query matches many events."""
        return ()

    @property
    def copied(self) -> bool:
        """Whether it begins with the rows of a table's first copy."""
        return bool(getattr(self.input, "snapshot", False))
