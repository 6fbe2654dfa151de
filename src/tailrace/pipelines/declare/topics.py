"""`tr.topic`: a stream, or with a key a table, from any topic."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence

from tailrace.client.schemas import Subject
from tailrace.pipelines.declare.checks import (
    as_names,
    caller,
    check_kinds,
    checked_name,
    milliseconds,
    refused,
    repeated_name,
)
from tailrace.pipelines.declare.declarations import FORMATS, LATE_POLICIES, EventTime, Place, Topic
from tailrace.pipelines.errors import DeclarationError


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
            raise refused(
                place,
                "the subject says the format, too",
                'only schema=registry["orders-value"], without format=, wire= and registry=',
            )
        subject, schema = schema, None
    if wire not in ("plain", "confluent"):
        raise refused(place, f"unknown wire format {wire!r}", "plain or confluent")
    if format not in FORMATS:
        raise refused(place, f"unknown format {format!r}", f"one of {', '.join(FORMATS)}")
    if wire == "confluent" and format != "avro":
        raise refused(
            place, f'wire="confluent" is a form of Avro, not of {format}', 'format="avro"'
        )
    if registry is not None and wire != "confluent":
        raise refused(place, "registry= is for Avro in Confluent's format", 'wire="confluent"')
    if format == "avro" and schema is None:
        raise refused(place, "an Avro topic needs its schema", "schema=<the Avro schema in JSON>")
    if pattern is not None and _bad_pattern(pattern):
        raise refused(place, f"{pattern!r} is no regular expression", 'pattern="clicks-.*"')
    if late not in LATE_POLICIES:
        raise refused(
            place, f"unknown policy for late rows {late!r}", f"one of {', '.join(LATE_POLICIES)}"
        )
    if late != "correct" and time is None:
        raise refused(place, "only rows with an event time can be late", 'time="at"')
    policy = None
    if time is not None:
        kept = None if keep is None else milliseconds(keep, place, "keep=")
        borne = milliseconds(lateness, place, "lateness=")
        if kept is not None and kept < borne:
            raise refused(
                place, "keep is shorter than lateness", 'lateness="1 minute", keep="1 day"'
            )
        policy = EventTime(
            time,
            milliseconds(watermark, place, "watermark="),
            borne,
            milliseconds(idle, place, "idle="),
            late,
            kept,
            late_alarm,
            milliseconds(ahead, place, "ahead="),
        )
    else:
        _need_a_time(place, locals())
    if not 0 <= late_alarm <= 1:
        raise refused(place, f"late_alarm is a share, not {late_alarm!r}", "late_alarm=0.01")
    if subject is None:
        _check_columns(place, name, schema, format, time, as_names(key), metadata, pattern)
    return Topic(
        checked_name(name, place), schema, format, policy, place, as_names(key), pattern, metadata,
        wire, registry, subject,
    )  # fmt: skip


def _need_a_time(place: Place, given: Mapping[str, object]) -> None:
    """Refuse what says something about an event time where there is none."""
    parameters = inspect.signature(topic).parameters
    for name in ("watermark", "lateness", "idle", "keep", "late_alarm", "ahead"):
        if given[name] != parameters[name].default:
            raise refused(place, f"{name} needs an event time", 'time="at"')


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
        raise refused(place, "metadata= is the name of a column", 'metadata="kafka"')
    if repeated := repeated_name(key):
        raise refused(place, f"key= names {repeated!r} twice", 'key=["country", "day"]')
    if key and (pattern is not None or format == "avro"):
        raise refused(
            place,
            "key= makes one topic of JSON rows a table; this is no such topic",
            "leave key= out",
        )
    if schema is None or format == "raw":
        if time is not None:
            raise refused(
                place,
                f'topic "{name}" has no column {time!r} for its event time',
                f'give its columns: schema="user STRING, {time} TIMESTAMP"',
            )
        if key:
            raise refused(
                place,
                f'topic "{name}" has no column {key[0]!r} for key=',
                f'give its columns: schema="{key[0]} STRING, …"',
            )
        return
    kinds = _columns(place, name, schema, format)
    for column, what in [(time, "time"), *((one, "key") for one in key)]:
        if column is not None and column not in kinds:
            near = difflib.get_close_matches(column, kinds, n=1)
            raise refused(
                place,
                f'topic "{name}" has no column {column!r} for {what}=',
                f"did you mean {near[0]!r}?" if near else f"its columns are {', '.join(kinds)}",
            )
    if time is not None and not kinds[time].startswith("TIMESTAMP"):
        raise refused(
            place,
            f'column {time!r} of topic "{name}" is {kinds[time]}: not an event time',
            f"declare it as {time} TIMESTAMP",
        )
    for column in key:
        if "MAP<" in kinds[column] or "VARIANT" in kinds[column]:
            raise refused(
                place,
                f'column {column!r} of topic "{name}" is {kinds[column]}: no key, such values '
                "cannot be compared",
                "give key= a column of numbers, texts or times",
            )
    if metadata is not None and metadata in kinds:
        raise refused(
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
            raise refused(
                place,
                f'the Avro schema of topic "{name}" cannot be read: {reason.detail}',
                reason.hint,
            ) from reason
    try:
        return {field.name: ddl(field.type) for field in parse_schema(schema)}
    except ValueError as reason:
        raise refused(
            place,
            f'the schema of topic "{name}" cannot be read: {reason}',
            f'schema="user STRING, at TIMESTAMP"; types: {KNOWN_TYPES}',
        ) from reason


def _bad_pattern(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return True
    return False
