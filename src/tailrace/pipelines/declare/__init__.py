"""What a project declares: views, streams and topics, as plain values.

Nothing here touches Spark, a file or a socket: importing a project has no effect, and a
declared stream stays an ordinary function of DataFrames that a test can call.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from tailrace.analyzers import LANGUAGES, is_language
from tailrace.client.schemas import Subject
from tailrace.config import parse_duration
from tailrace.errors import ConfigValueError
from tailrace.kinds import misfit
from tailrace.pipelines.errors import DeclarationError

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


def topic(
    name: str,
    schema: str | Subject | None = None,
    format: str = "json",
    *,
    time: str | None = None,
    watermark: str | int = "0 seconds",
    lateness: str | int = "0 seconds",
    idle: str | int = "1 minute",
    late: str = "correct",
    keep: str | int | None = None,
    late_alarm: float = 0.01,
    ahead: str | int = "1 day",
    key: str | Sequence[str] = (),
    pattern: str | None = None,
    metadata: str | None = None,
    wire: str = "plain",
    registry: str | None = None,
) -> Topic:
    """A stream from any topic: `tr.topic("clicks", schema="user STRING, at TIMESTAMP")`.

    `time` names its event-time column; see `EventTime` for the ones that follow. A `key` makes it
    a table for views: the last row of each record key. `pattern` reads every topic whose
    name fits, now and later. `metadata` names a struct column with the record's key,
    headers and position. Avro in Confluent's format: `wire="confluent"`, and `registry=` the
    address that knows the writers' schemas. `schema=registry["orders-value"]` takes columns and
    format from a subject, when the project runs.
    """
    place = caller()
    check_kinds(place, "tr.topic", topic, locals())
    subject = None
    if isinstance(schema, Subject):
        if format != "json" or wire != "plain" or registry is not None:
            raise _wrong(
                place,
                "the subject says the format, too",
                'only schema=registry["orders-value"], without format=, wire= and registry=',
            )
        subject, schema = schema, None
    if wire not in ("plain", "confluent"):
        raise _wrong(place, f"unknown wire format {wire!r}", "plain or confluent")
    if format not in FORMATS:
        raise _wrong(place, f"unknown format {format!r}", f"one of {', '.join(FORMATS)}")
    if wire == "confluent" and format != "avro":
        raise _wrong(place, f'wire="confluent" is a form of Avro, not of {format}', 'format="avro"')
    if registry is not None and wire != "confluent":
        raise _wrong(place, "registry= is for Avro in Confluent's format", 'wire="confluent"')
    if format == "avro" and schema is None:
        raise _wrong(place, "an Avro topic needs its schema", "schema=<the Avro schema in JSON>")
    if pattern is not None and _bad_pattern(pattern):
        raise _wrong(place, f"{pattern!r} is no regular expression", 'pattern="clicks-.*"')
    if late not in LATE_POLICIES:
        raise _wrong(
            place, f"unknown policy for late rows {late!r}", f"one of {', '.join(LATE_POLICIES)}"
        )
    if late != "correct" and time is None:
        raise _wrong(place, "only rows with an event time can be late", 'time="at"')
    policy = None
    if time is not None:
        kept = None if keep is None else _ms(keep, place, "keep=")
        borne = _ms(lateness, place, "lateness=")
        if kept is not None and kept < borne:
            raise _wrong(
                place, "keep is shorter than lateness", 'lateness="1 minute", keep="1 day"'
            )
        policy = EventTime(
            time,
            _ms(watermark, place, "watermark="),
            borne,
            _ms(idle, place, "idle="),
            late,
            kept,
            late_alarm,
            _ms(ahead, place, "ahead="),
        )
    else:
        _need_a_time(place, locals())
    if not 0 <= late_alarm <= 1:
        raise _wrong(place, f"late_alarm is a share, not {late_alarm!r}", "late_alarm=0.01")
    if subject is None:
        _check_columns(place, name, schema, format, time, _names(key), metadata, pattern)
    return Topic(
        _checked_name(name, place), schema, format, policy, place, _names(key), pattern, metadata,
        wire, registry, subject,
    )  # fmt: skip


def _need_a_time(place: Place, given: Mapping[str, object]) -> None:
    """Refuse what says something about an event time where there is none."""
    parameters = inspect.signature(topic).parameters
    for name in ("watermark", "lateness", "idle", "keep", "late_alarm", "ahead"):
        if given[name] != parameters[name].default:
            raise _wrong(place, f"{name} needs an event time", 'time="at"')


def _check_columns(
    place: Place,
    name: str,
    schema: str | None,
    format: str,
    time: str | None,
    key: Sequence[str],
    metadata: str | None,
    pattern: str | None,
) -> None:
    """Refuse a schema that cannot be read, and columns that it does not have."""
    if metadata == "":
        raise _wrong(place, "metadata= is the name of a column", 'metadata="kafka"')
    if repeated := _repeated(key):
        raise _wrong(place, f"key= names {repeated!r} twice", 'key=["country", "day"]')
    if key and (pattern is not None or format == "avro"):
        raise _wrong(
            place,
            "key= makes one topic of JSON rows a table; this is no such topic",
            "leave key= out",
        )
    if schema is None or format == "raw":
        if time is not None:
            raise _wrong(
                place,
                f'topic "{name}" has no column {time!r} for its event time',
                f'give its columns: schema="user STRING, {time} TIMESTAMP"',
            )
        if key:
            raise _wrong(
                place,
                f'topic "{name}" has no column {key[0]!r} for key=',
                f'give its columns: schema="{key[0]} STRING, …"',
            )
        return
    kinds = _columns(place, name, schema, format)
    for column, what in [(time, "time"), *((one, "key") for one in key)]:
        if column is not None and column not in kinds:
            near = difflib.get_close_matches(column, kinds, n=1)
            raise _wrong(
                place,
                f'topic "{name}" has no column {column!r} for {what}=',
                f"did you mean {near[0]!r}?" if near else f"its columns are {', '.join(kinds)}",
            )
    if time is not None and not kinds[time].startswith("TIMESTAMP"):
        raise _wrong(
            place,
            f'column {time!r} of topic "{name}" is {kinds[time]}: not an event time',
            f"declare it as {time} TIMESTAMP",
        )
    for column in key:
        if "MAP<" in kinds[column] or "VARIANT" in kinds[column]:
            raise _wrong(
                place,
                f'column {column!r} of topic "{name}" is {kinds[column]}: no key, such values '
                "cannot be compared",
                "give key= a column of numbers, texts or times",
            )
    if metadata is not None and metadata in kinds:
        raise _wrong(
            place,
            f'topic "{name}" has a column {metadata!r} already',
            "give metadata= a name that is free",
        )


def _columns(place: Place, name: str, schema: str, format: str) -> dict[str, str]:
    """The columns of a schema and their types in Spark's words."""
    # Here, not above: whoever only imports declarations need not load Arrow.
    from tailrace.pipelines.values import avro
    from tailrace.pipelines.values.topic_schema import KNOWN_TYPES, parse_schema
    from tailrace.pipelines.values.types import ddl

    if format == "avro":
        try:
            return {column: kind.upper() for column, kind in avro.columns(schema)}
        except DeclarationError as reason:
            raise _wrong(
                place,
                f'the Avro schema of topic "{name}" cannot be read: {reason.detail}',
                reason.hint,
            ) from reason
    try:
        return {field.name: ddl(field.type) for field in parse_schema(schema)}
    except ValueError as reason:
        raise _wrong(
            place,
            f'the schema of topic "{name}" cannot be read: {reason}',
            f'schema="user STRING, at TIMESTAMP"; types: {KNOWN_TYPES}',
        ) from reason


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
    if not isinstance(name, str):
        raise _wrong(place, f"the name of a view is a text, not {name!r}", 'tr.view("totals", …)')
    if policy not in POLICIES:
        raise _wrong(place, f"unknown policy {policy!r}", f"one of {', '.join(POLICIES)}")
    if not isinstance(sql, str):
        raise _wrong(
            place, f'the SQL of view "{name}" is a text, not {sql!r}', "give a SELECT statement"
        )
    if key is not None and key != () and not _are_names(key):  # () of a view of one row
        raise _wrong(
            place, f'the key of view "{name}" is {key!r}', 'key="id", or key=["country", "day"]'
        )
    if not _are_names(indexes) and indexes != ():
        raise _wrong(place, f'the indexes of view "{name}" are {indexes!r}', 'indexes=["status"]')
    if not sql.strip():
        raise _wrong(place, f'view "{name}" has no SQL', "give a SELECT statement")
    for what, named in (("key", key), ("indexes", indexes)):
        if repeated := _repeated(_names(named or ())):
            raise _wrong(place, f'{what} of view "{name}" names {repeated!r} twice', "name it once")
    columns = None if key is None else _names(key)
    return View(
        _checked_name(name, place), sql, columns, policy, _targets(to), place, _names(indexes)
    )


def stream(
    *inputs: Input,
    name: str | None = None,
    key: str | Sequence[str] | Mapping[str, str | Sequence[str]] = (),
    output_mode: str = "append",
    trigger: str = "1 second",
    to: object | Iterable[object] = (),
    on_error: str = "dead",
    retries: int = 0,
    pause: str | int = "1 minute",
    timeout: str | int | None = None,
    limit: int | None = None,
    on_loss: str = "fail",
    format: str = "json",
) -> Callable[[Callable[..., Frames]], Stream]:
    """Declare a function of DataFrames as a pipeline; one parameter per input.

    Its rows go to the topic `name` (the function's name by default) as JSON, keyed by
    the columns in `key`; `output_mode` and `trigger` ("1 second", "available now") are
    Spark's. `to` takes sinks, and topics for further outputs: with one DataFrame they get
    the same rows; a function may also give a tuple of DataFrames, one per topic in `to` (or
    its own topic first), or a dict of them by topic name. `key` may then be a dict too.

    `on_error`: a record the function fails on goes to `<name>.dead` and the stream goes on
    ("dead"); all later records of its key wait there with it ("block"); or the stream stops
    ("stop"). Before that it is tried `retries` times more, `pause` apart, through
    `<name>.retry`. A batch that takes longer than `timeout` is stopped. `limit`: most
    records of an input in a batch. `on_loss`: "fail" or "continue" when retention has
    removed what was not read. `format="raw"` writes the columns key and value as they are.
    """
    place = caller()
    given = {name: value for name, value in locals().items() if name != "inputs"}
    check_kinds(place, "tr.stream", stream, given)
    if not inputs:
        raise _wrong(place, "a stream needs at least one input", "@tr.stream(tr.topic(…))")
    for number, one in enumerate(inputs, 1):
        _check_input(place, number, one)
    _one_of(place, "output mode", output_mode, OUTPUT_MODES)
    if trigger != "available now":
        _ms(trigger, place, "trigger=")
    if limit is not None and limit < 1:
        raise _wrong(place, f"limit is at least 1, not {limit!r}", "limit=10_000")
    if retries < 0:
        raise _wrong(place, f"retries is at least 0, not {retries!r}", "retries=3")
    _one_of(place, "policy for errors", on_error, ERROR_POLICIES)
    _one_of(place, "policy for lost data", on_loss, ("fail", "continue"))
    _one_of(place, "format", format, STREAM_FORMATS)
    targets = _targets(to)
    topics = tuple(target for target in targets if isinstance(target, Topic))
    keys = {t: _names(k) for t, k in key.items()} if isinstance(key, Mapping) else {}
    own = () if isinstance(key, Mapping) else _names(key)
    for columns in (own, *keys.values()):
        if repeated := _repeated(columns):
            raise _wrong(place, f"key= names {repeated!r} twice", 'key=["country", "day"]')
    if format == "raw" and any(columns != ("key",) for columns in (own, *keys.values()) if columns):
        raise _wrong(place, "raw records have their keys in the column key", 'key="key"')
    waited = None if timeout is None else _ms(timeout, place, "timeout=")
    if waited == 0:
        raise _wrong(place, "timeout= must be longer than nothing", 'timeout="10 minutes"')

    def declare(function: Callable[..., Frames]) -> Stream:
        code = inspect.unwrap(function).__code__
        where = Place(code.co_filename, code.co_firstlineno)
        chosen = _checked_name(name or function.__name__, where)
        if wrong := _misfit_parameters(function, len(inputs)):
            raise _wrong(
                where, f'the function of stream "{chosen}" {wrong}', "one parameter per input"
            )
        if unknown := next((t for t in keys if t not in (chosen, *(o.name for o in topics))), None):
            raise _wrong(
                where,
                f'stream "{chosen}" has no output {unknown!r} for key=',
                f"its outputs are {', '.join([chosen, *(one.name for one in topics)])}",
            )
        return Stream(
            chosen,
            inputs,
            function,
            keys.get(chosen, own),
            output_mode,
            trigger,
            tuple(target for target in targets if not isinstance(target, Topic)),
            where,
            topics,
            keys,
            on_error,
            retries,
            _ms(pause, place, "pause="),
            waited,
            limit,
            on_loss,
            format,
        )

    return declare


def _misfit_parameters(function: Callable[..., Frames], inputs: int) -> str | None:
    """Why a function cannot be called with so many DataFrames."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return None  # one that does not say what it takes
    try:
        signature.bind(*range(inputs))
    except TypeError:
        takes = ", ".join(signature.parameters) or "nothing"
        return f"takes {takes}, and the stream has {inputs} input{'' if inputs == 1 else 's'}"
    return None


def _repeated(names: Sequence[str]) -> str | None:
    """The first name that is there twice, as SQL compares names."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None


def pattern(
    name: str,
    input: Input,
    *,
    key: str | Sequence[str],
    order_by: str,
    match: str,
    define: Mapping[str, str],
    select: Mapping[str, str] | None = None,
    within: str | int | None = None,
    gap: str | int | None = None,
    contiguity: str = "strict",
    until: Mapping[str, str] | None = None,
    skip: str = "past last row",
    rows: str = "one",
    subsets: Mapping[str, Sequence[str]] | None = None,
    matches: str = "preferred",
    limit: int = 1_000,
    timeouts: bool = False,
    emit: str = "final",
    watermark: str | int | None = None,
    lateness: str | int | None = None,
    idle: str | int | None = None,
    late: str | None = None,
    keep: str | int | None = None,
    to: object | Iterable[object] = (),
) -> Pattern:
    """A pattern in the rows of a stream, by key and event time; see `Pattern`.

    `match` is SQL's PATTERN, and `a -> b` (followed by: others are skipped up to the first b),
    `a ->> b` (by any b), `!b` (none there: between two steps; last: none within `within`; first:
    none within it before). `define` has a condition by variable, `select` what a match reports.
    `contiguity` says what may lie between the rows of a repetition: "strict" nothing, "relaxed"
    what does not fit, "any" all; `until` ends repetitions of a variable. A match is shorter than
    `within`, and neighbours in it are at most `gap` apart. `skip`: where the next match may begin,
    "past last row", "to next row", "to first b", "to last b". `rows`: "one" for a match, or "all",
    "all, unmatched", "all, no empty". `matches="every"`: all matches of a row, not the preferred
    one; at most `limit` from one row. `timeouts` reports partial matches whose time is over.
    `emit="early"` reports at once, and takes back what a later row changes.

    `watermark`, `lateness`, `idle`, `late` and `keep` are those of `tr.topic`, for inputs that do
    not say them.
    """
    place = caller()
    check_kinds(place, "tr.pattern", pattern, locals())
    given = (watermark, lateness, idle, late, keep)
    _check_pattern_input(place, input, any(one is not None for one in given))
    if not _are_names(key):
        raise _wrong(place, f'the key of pattern "{name}" is {key!r}', 'key="card_id"')
    for what, text in (("order_by", order_by), ("match", match)):
        if not text.strip():
            raise _wrong(place, f'pattern "{name}" has an empty {what}=', f'{what}="…"')
    for what, texts in (("define", define), ("select", select or {}), ("until", until or {})):
        for one, text in texts.items():
            if not one or not text.strip():
                raise _wrong(
                    place, f'{what}= of pattern "{name}" has {one!r}: {text!r}',
                    f'{what}={{"probe": "amount < 2"}}: names and expressions of SQL',
                )  # fmt: skip
    for one, members in (subsets or {}).items():
        if not _are_names(members):
            raise _wrong(
                place, f'subsets= of pattern "{name}" has {one!r}: {members!r}',
                'subsets={"any": ["probe", "theft"]}',
            )  # fmt: skip
    _one_of(place, "contiguity", contiguity, ("strict", "relaxed", "any"))
    _one_of(place, "rows", rows, ("one", "all", "all, unmatched", "all, no empty"))
    _one_of(place, "matches", matches, ("preferred", "every"))
    _one_of(place, "emit", emit, ("final", "early"))
    length = _positive(within, place, "within=")
    if matches == "every":
        if length is None:
            raise _wrong(place, 'matches="every" needs within=', 'within="10 minutes"')
        if skip != "past last row":
            raise _wrong(
                place, 'skip= with matches="every"', "every match is told: leave skip= out"
            )
        if limit < 1:
            raise _wrong(place, f"limit is at least 1, not {limit!r}", "limit=1_000")
    if timeouts and length is None:
        raise _wrong(place, "timeouts= needs within=", 'within="10 minutes"')
    return Pattern(
        _checked_name(name, place),
        input,
        _names(key),
        order_by,
        match,
        dict(define),
        dict(select or {}),
        length,
        _positive(gap, place, "gap="),
        contiguity,
        dict(until or {}),
        skip,
        rows,
        {one: _names(members) for one, members in (subsets or {}).items()},
        limit if matches == "every" else 0,
        timeouts,
        emit == "early",
        _pattern_time(place, order_by, watermark, lateness, idle, late, keep),
        _targets(to),
        place,
    )


OWN_COLUMNS = ("op", "query_id", "query_version", "event")  # of what a percolation reports


def percolate(
    name: str,
    stream: Input,
    *,
    queries: TableLike | Topic,
    id: str,
    query: str,
    text: str | Sequence[str] | Mapping[str, str] = (),
    fields: str | Sequence[str] = (),
    carry: str | Sequence[str] = (),
    language: str | None = None,
    operator: str = "or",
    once: str | None = None,
    per_hour: str | None = None,
    to: object | Iterable[object] = (),
) -> Percolation:
    """Stored queries over a stream; see `Percolation`.

    `queries` is a captured table, or a topic with a key: rows that come, change and go while this
    runs. `id` is its key, `query` the column of the query's text; `carry` are columns that stand
    in every match. `text`: the columns of the stream that are searched word by word, as
    `sinks.Search` does: `{"title": "text:en", "body": "text"}`, or names alone with one `language`
    for all. `fields`: the columns that are compared as a whole. `operator`: whether bare words
    mean any of them ("or") or all ("and"). `once`: a column that is true for queries reported
    once; `per_hour`: a column with the most matches to report within an hour.
    """
    place = caller()
    check_kinds(place, "tr.percolate", percolate, locals())
    what = f'percolation "{name}"'
    _check_pattern_input(place, stream, False, "percolation")
    if isinstance(queries, Topic):
        if not queries.tabular or not queries.key:
            raise _wrong(
                place,
                f'topic "{queries.name}" has no key: its rows cannot change or go',
                f'tr.topic("{queries.name}", schema="id BIGINT, query STRING", key="id")',
            )
    elif getattr(queries, "kind", None) != "table":
        raise _wrong(
            place,
            f"queries= of {what} is {queries!r}",
            'a table of a source, shop.table("saved_searches"), or a topic with a key',
        )
    for given, column in (("id", id), ("query", query), ("once", once), ("per_hour", per_hour)):
        if column is not None and not column:
            raise _wrong(place, f"{given}= of {what} is empty", f'{given}="…", a column')
    if id == query:
        raise _wrong(place, f"id= and query= of {what} are one column", 'id="id", query="query"')
    texts = _text_columns(place, what, text, language)
    compared, carried = _column_names(place, what, "fields", fields), _column_names(place, what, "carry", carry)  # fmt: skip
    if not texts and not compared:
        raise _wrong(place, f"{what} has neither text= nor fields=", 'text=["title"]')
    twice = {name for name, _ in texts} & set(compared)
    if twice:
        raise _wrong(
            place, f"{what}: column {min(twice)!r} is in text= and in fields=", "leave one out"
        )
    taken = [column for column in carried if column in OWN_COLUMNS or column.startswith("__")]
    if taken:
        raise _wrong(
            place,
            f"carry= of {what} has {taken[0]!r}, which every match has of its own",
            "name another column of the queries",
        )
    _one_of(place, "operator", operator, ("or", "and"))
    return Percolation(
        _checked_name(name, place), stream, queries, id, query, texts, compared, carried,
        operator == "and", once, per_hour, _targets(to), place,
    )  # fmt: skip


def _text_columns(
    place: Place, what: str, text: str | Sequence[str] | Mapping[str, str], language: str | None
) -> tuple[tuple[str, str], ...]:
    """Columns and their languages."""
    if not isinstance(text, Mapping):
        text = dict.fromkeys(_column_names(place, what, "text", text), "text")
    found: list[tuple[str, str]] = []
    for column, treatment in text.items():
        kind, colon, own = treatment.partition(":")
        if kind != "text" or (colon and not is_language(own)):
            raise _wrong(
                place,
                f"text= of {what}: column {column!r} cannot be {treatment!r}",
                f"text, or text and a language as in text:en; languages: {', '.join(LANGUAGES)}",
            )
        found.append((column, own or language or ""))
    if language is not None and not is_language(language):
        raise _wrong(
            place, f"unknown language {language!r} of {what}", f"one of {', '.join(LANGUAGES)}"
        )
    return tuple(found)


def _column_names(
    place: Place, what: str, given: str, columns: str | Sequence[str]
) -> tuple[str, ...]:
    if columns != () and columns != [] and not _are_names(columns):
        raise _wrong(place, f"{given}= of {what} is {columns!r}", f'{given}=["title", "body"]')
    names = _names(columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _wrong(place, f"{given}= of {what} names {twice!r} twice", "leave one out")
    return names


def _positive(length: str | int | None, place: Place, what: str) -> int | None:
    if length is None:
        return None
    found = _ms(length, place, what)
    if not found:
        raise _wrong(place, f"{what} is above zero", f'{what}"10 seconds"')
    return found


def _pattern_time(
    place: Place,
    order_by: str,
    watermark: str | int | None,
    lateness: str | int | None,
    idle: str | int | None,
    late: str | None,
    keep: str | int | None,
) -> EventTime:
    """When the rows of a pattern's input happened, where that does not say so itself."""
    late = "correct" if late is None else late
    _one_of(place, "policy for late rows", late, LATE_POLICIES)
    kept = None if keep is None else _ms(keep, place, "keep=")
    borne = 0 if lateness is None else _ms(lateness, place, "lateness=")
    if kept is not None and kept < borne:
        raise _wrong(place, "keep is shorter than lateness", 'lateness="1 minute", keep="1 day"')
    return EventTime(
        order_by,
        0 if watermark is None else _ms(watermark, place, "watermark="),
        borne,
        60_000 if idle is None else _ms(idle, place, "idle="),
        late,
        kept,
    )


def _check_pattern_input(place: Place, given: object, timed: bool, what: str = "pattern") -> None:
    """That a pattern, or a percolation, reads events whose columns are known."""
    if isinstance(given, Topic):
        if not given.tabular:
            raise _wrong(
                place,
                f'a {what} cannot read topic "{given.name}": its columns are not known',
                'one topic of JSON rows: tr.topic("orders", schema="id BIGINT, at TIMESTAMP")',
            )
        if given.time is not None and timed:
            raise _wrong(
                place,
                f'topic "{given.name}" says itself when its rows happened and which are late',
                "leave watermark=, lateness=, idle=, late= and keep= to tr.topic(…)",
            )
        return
    if isinstance(given, Pattern | Percolation) or getattr(given, "kind", None) == "inserts":
        return
    if getattr(given, "kind", None) == "table":
        instead = "; or MATCH_RECOGNIZE in a view, which follows corrections"
        raise _wrong(
            place,
            f"a {what} reads events: a table changes",
            ".inserts() behind it" + (instead if what == "pattern" else ""),
        )
    raise _wrong(
        place,
        f"a {what} cannot read {given!r}",
        "a table's .inserts(), tr.topic(…) with a schema, or another pattern",
    )


def _check_input(place: Place, number: int, given: object) -> None:
    if isinstance(given, Topic | View | Stream | Pattern | Percolation):
        return
    if getattr(given, "kind", None) in ("inserts", "changes", EVENTS):
        start = getattr(given, "start", "now")
        if start not in ("now", "snapshot"):
            raise _wrong(
                place,
                f"a stream cannot begin at {start!r} (input {number})",
                '.changes("now") or .changes("snapshot"); positions are for reading in Python',
            )
        return
    if isinstance(given, TableLike):
        raise _wrong(
            place,
            f"input {number} is a table, which changes: a stream reads its inserts or changes",
            ".inserts() or .changes() behind it",
        )
    raise _wrong(
        place,
        f"a stream cannot read {given!r} (input {number})",
        "a table's .inserts() or .changes(), tr.topic(…), tr.events(…), a view or another stream",
    )


def _one_of(place: Place, what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise _wrong(place, f"unknown {what} {given!r}", f"one of {', '.join(known)}")


def _bad_pattern(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return True
    return False


def _ms(length: str | int, place: Place, what: str) -> int:
    try:
        found = int(parse_duration(length).total_seconds() * 1000)
    except ConfigValueError as reason:
        raise _wrong(place, f"{what} {reason.message}", reason.hint) from reason
    if found < 0:
        raise _wrong(place, f"{what} cannot be negative", f'{what}"10 seconds"')
    return found


def _names(key: str | Sequence[str]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def _are_names(key: object) -> bool:
    """Whether this is a column's name or several."""
    if isinstance(key, str):
        return bool(key)
    return (
        isinstance(key, list | tuple) and all(isinstance(k, str) and k for k in key) and bool(key)
    )


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


def check_kinds(
    place: Place, owner: str, of: Callable[..., object], given: Mapping[str, object]
) -> None:
    """Refuse an argument of another kind than the parameters of `of` say."""
    if wrong := misfit(owner, of, given):
        raise _wrong(place, wrong, f"`python -c 'import tailrace as tr; help({owner})'` shows it")


def _wrong(place: Place, message: str, hint: str) -> DeclarationError:
    return DeclarationError(message, detail=f"declared at {place}", hint=hint)
