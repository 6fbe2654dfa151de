"""Tailrace's own sources and sinks as connectors.

Settings are the parameters of `tailrace.sources` and `tailrace.sinks`, with dots for underscores:
`copy.connections`, `mask.key`. Lists are texts with commas, mappings are JSON. The class that keeps
the position is the one a project uses, so each is exactly as often there as in a project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from typing import Any, ClassVar

import orjson

from tailrace import sinks, sources
from tailrace.config import SECRET, EnvironmentValue, parse_duration
from tailrace.connectors.base import Offset, Partition, Settings, SinkConnector, SourceConnector
from tailrace.connectors.config import Config, Setting
from tailrace.connectors.errors import ConnectorError, ConnectorSettingError
from tailrace.connectors.independent import IndependentTask, TaskPart
from tailrace.errors import TailraceError

TOPIC = "${topic}"
_HIDDEN = "***"  # what stands for a secret that only a task reads
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PLACES = ("table", "index", "prefix", "path", "topic")


def setting_name(parameter: str) -> str:
    return parameter.replace("_", ".")


def _form(declared: Field[Any]) -> str:
    """How a parameter is written: text, int, bool, list, json or duration."""
    told = str(declared.type)
    if "Mapping" in told or "Outbox" in told:
        return "json"
    if "Sequence[" in told or "tuple[" in told or "list[" in told:
        return "list"
    if "timedelta" in told:
        return "duration"
    if told.startswith(("int", "bool")):
        return told.split(" ")[0]
    return "text"


_TYPES = {"int": int, "bool": bool, "list": list}


def _json(value: object) -> str | None:
    try:
        found = None if value is None else orjson.loads(str(value))
    except ValueError:
        return "it is no JSON object"
    return None if isinstance(found, dict | None) else "it is no JSON object"


def _duration(value: object) -> str | None:
    try:
        _ = value is None or parse_duration(str(value))
    except TailraceError as error:
        return str(error)
    return None


def _settings(declared: type, left_out: Sequence[str]) -> Iterable[Setting]:
    for one in fields(declared):
        if one.name in left_out:
            continue
        form = _form(one)
        required = one.default is MISSING and one.default_factory is MISSING
        default = one.default if isinstance(one.default, str | int) else None
        if isinstance(one.default, timedelta):
            default = f"{one.default.total_seconds():g} seconds"
        if isinstance(one.default, tuple):
            default = None
        yield Setting(
            setting_name(one.name),
            _TYPES.get(form, str),
            required=required,
            default=[] if form == "list" and not required else default,
            help=f"`{one.name}` of `{declared.__module__.split('.')[1]}.{declared.__name__}`"
            + (", as a JSON object." if form == "json" else "."),
            secret=one.metadata == SECRET,
            check={"json": _json, "duration": _duration}.get(form),
            importance="high" if required else "medium",
        )


def declaration(
    declared: type, name: str | None, settings: Settings, left_out: Sequence[str]
) -> Any:
    """What a project would write. Raises what the declaration raises."""
    given: dict[str, Any] = {}
    topic = str(settings.get("topics") or "")
    for one in fields(declared):
        value = settings.get(setting_name(one.name))
        if one.name in left_out or value is None or value == []:
            continue
        form = _form(one)
        if isinstance(value, str):
            value = value.replace(TOPIC, topic)
            if _HIDDEN in value and one.metadata == SECRET:
                value = EnvironmentValue("HIDDEN")
            elif form == "json":
                value = orjson.loads(value)
                if "Outbox" in str(one.type):
                    value = sources.Outbox(**value)
            elif form == "duration":
                value = parse_duration(value)
        elif form == "list" and "tuple[" in str(one.type):
            value = tuple(value)
        given[one.name] = value
    if name is not None:
        given["name"] = name
    return declared(**given)


# Sources ----------------------------------------------------------------------------------------


class OwnSource(SourceConnector):
    """A source of `tailrace.sources`. Its name, with which its topics begin, is `topic.prefix`."""

    independent = True
    declared: ClassVar[type] = object

    def __init_subclass__(cls) -> None:
        own = Setting("topic.prefix", help="The source's name, which its topics begin with; the connector's name if absent.")  # fmt: skip
        cls.config = Config(*_settings(cls.declared, ("name",)), own)

    @classmethod
    def declaration(cls, settings: Settings) -> Any:
        name = settings.get("topic.prefix") or settings.get("name")
        return declaration(cls.declared, name, settings, ("name",))

    def check(self, settings: Settings) -> Mapping[str, str]:
        return _wrong(lambda: self.declaration(settings), "connector.class")

    def tasks(self, settings: Settings, most: int) -> Sequence[Mapping[str, str]]:
        self.declaration(settings)
        return [{}]

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Mapping[str, Offset | None]
    ) -> None:
        raise ConnectorError(
            "the position of this source is in its own transactions in the log",
            hint="to read everything again, give it another topic.prefix",
        )


class _Capture(IndependentTask):
    made: ClassVar[type[OwnSource]]

    def run(self, settings: Mapping[str, Any], part: TaskPart) -> None:
        from tailrace.sources.runner import run

        run(self.made.declaration(settings), part)

    def places(self, part: TaskPart) -> Iterable[tuple[Partition, Offset]]:
        if part.position:
            yield {"source": part.name}, {"position": part.position}


class _Edge(_Capture):
    def run(self, settings: Mapping[str, Any], part: TaskPart) -> None:
        from tailrace.sources.edges.runner import run

        run(self.made.declaration(settings), part)


def _wrong(make: Any, setting: str) -> dict[str, str]:
    try:
        make()
    except TailraceError as error:
        more = f" ({error.detail})" if error.detail else ""
        hint = f"; {error.hint}" if error.hint else ""
        return {setting: f"{error.message}{more}{hint}"}
    except (TypeError, ValueError) as error:
        return {setting: str(error)}
    return {}


def _source(declared: type, task: type[_Capture]) -> type[OwnSource]:
    name = f"{declared.__name__}Source"
    made: type[OwnSource] = type(name, (OwnSource,), {"declared": declared, "__doc__": declared.__doc__, "__module__": __name__})  # fmt: skip
    made.Task = type("Task", (task,), {"made": made})
    return made


PostgresSource = _source(sources.Postgres, _Capture)
MySQLSource = _source(sources.MySQL, _Capture)
SQLiteSource = _source(sources.SQLite, _Capture)
WebhookSource = _source(sources.Webhook, _Edge)
HTTPSource = _source(sources.HTTP, _Edge)
StatsDSource = _source(sources.StatsD, _Edge)
MulticastSource = _source(sources.Multicast, _Edge)
ZeroMQSource = _source(sources.ZeroMQ, _Edge)


# Sinks ------------------------------------------------------------------------------------------

_NOT_OF_SINKS = ("name", "open")


class OwnSink(SinkConnector):
    """A sink of `tailrace.sinks`, fed from topics of JSON objects; a task for each topic. The
    position is kept in the target, with the rows."""

    independent = True
    declared: ClassVar[type] = object

    def __init_subclass__(cls) -> None:
        key = Setting("key", list, default=[], help="Columns that tell rows apart; without them rows are only appended.")  # fmt: skip
        cls.config = Config(key, *_settings(cls.declared, _NOT_OF_SINKS))

    @classmethod
    def declaration(cls, settings: Settings) -> Any:
        return declaration(cls.declared, None, settings, _NOT_OF_SINKS)

    def check(self, settings: Settings) -> Mapping[str, str]:
        topics = _topics(settings)
        if not _NAME.fullmatch(str(settings.get("name"))):
            return {"name": "the name of this sink is that of its dead letters: letters, digits, '.', '_' and '-'"}  # fmt: skip
        if settings.get("topics.regex"):
            return {"topics.regex": "this sink needs topics by name: each has a copy of its own"}
        placed = [setting_name(one.name) for one in fields(self.declared) if one.name in _PLACES]
        if (
            len(topics) > 1
            and placed
            and not any(TOPIC in str(settings.get(one)) for one in placed)
        ):
            return {placed[0]: f"{len(topics)} topics cannot be copied to one place; write {TOPIC} in it"}  # fmt: skip
        if len(topics) > int(settings.get("tasks.max") or 1):
            return {"tasks.max": f"each topic is a task; {len(topics)} are needed"}
        found = dict(settings)
        for topic in topics:
            wrong = _wrong(lambda: self.declaration({**found, "topics": topic}), "connector.class")  # noqa: B023
            if wrong:
                return wrong
        return {}

    def tasks(self, settings: Settings, most: int) -> Sequence[Mapping[str, str]]:
        if wrong := self.check(settings):
            raise ConnectorSettingError("; ".join(wrong.values()))
        return [{"topics": topic} for topic in _topics(settings)]

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Mapping[str, Offset | None]
    ) -> None:
        raise ConnectorError(
            "the position of this sink is in its target, with the rows",
            hint="to write everything again, give it another place",
        )


class _Delivery(IndependentTask):
    made: ClassVar[type[OwnSink]]

    def run(self, settings: Mapping[str, Any], part: TaskPart) -> None:
        from tailrace.sinks.process import run
        from tailrace.sinks.registry import Copy

        [topic] = _topics(settings)
        target = self.made.declaration({**settings, "topics": topic})
        run(
            Copy(f"{part.name}.{topic}", topic, topic, "stream", tuple(settings["key"]), target),
            part,
        )

    def places(self, part: TaskPart) -> Iterable[tuple[Partition, Offset]]:
        from tailrace.sinks.base import decode_position

        position = decode_position(part.position)
        if position is not None:
            for partition, offset in position.offsets.items():
                place = {"kafka_topic": position.topic, "kafka_partition": partition}
                yield place, {"kafka_offset": offset}


def _topics(settings: Settings) -> list[str]:
    given = settings.get("topics") or []
    listed = given.split(",") if isinstance(given, str) else given
    return list(dict.fromkeys(one.strip() for one in listed if one.strip()))


def _sink(declared: type) -> type[OwnSink]:
    name = f"{declared.__name__}Sink"
    made: type[OwnSink] = type(name, (OwnSink,), {"declared": declared, "__doc__": declared.__doc__, "__module__": __name__})  # fmt: skip
    made.Task = type("Task", (_Delivery,), {"made": made})
    return made


PostgresSink = _sink(sinks.Postgres)
MySQLSink = _sink(sinks.MySQL)
SQLiteSink = _sink(sinks.SQLite)
DuckDBSink = _sink(sinks.DuckDB)
RedisSink = _sink(sinks.Redis)
SearchSink = _sink(sinks.Search)
ElasticsearchSink = _sink(sinks.Elasticsearch)
DeltaSink = _sink(sinks.Delta)
ParquetSink = _sink(sinks.Parquet)
IcebergSink = _sink(sinks.Iceberg)
WebhookSink = _sink(sinks.Webhook)
EmailSink = _sink(sinks.Email)
TopicSink = _sink(sinks.Topic)
