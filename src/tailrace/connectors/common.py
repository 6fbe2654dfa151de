"""The settings that every connector has, under Kafka Connect's names."""

from __future__ import annotations

from tailrace import __version__
from tailrace.connectors.config import Config, Setting
from tailrace.connectors.names import CONVERTERS, HEADER_CONVERTER, long_name


def _filled(value: object) -> str | None:
    return None if str(value).strip() else "String may not be empty"


def _converter(value: object) -> str | None:
    if value in (None, "") or long_name(str(value)) is not None:
        return None
    return f"Class {value} could not be found."


def _setting(
    name: str,
    of: type = str,
    default: object = None,
    importance: str = "low",
    group: str = "Common",
    order: int = 0,
    width: str = "short",
    display: str = "",
    text: str = "",
    **more: object,
) -> Setting:
    return Setting(name, of, default=default, importance=importance, group=group, order=order, width=width, display=display, help=text, **more)  # type: ignore[arg-type]  # fmt: skip


_COMMON = (
    _setting("name", importance="high", order=1, width="medium", display="Connector name", text="What the connector is called.", required=True, check=_filled),
    _setting("connector.class", importance="high", order=2, width="long", display="Connector class", text="The connector's class, with or without its module.", required=True),
    _setting("connector.plugin.version", importance="medium", order=3, width="medium", display="Connector version", text="The version of the connector."),
    _setting("tasks.max", int, 1, "high", order=4, display="Tasks max", text="The most tasks the connector is split into.", least=1),
    _setting("tasks.max.enforce", bool, True, order=5, display="Enforce tasks max", text="Whether a connector that makes more tasks than tasks.max fails."),
    _setting("key.converter", order=6, display="Key converter class", text="How keys become bytes.", kind="CLASS", check=_converter, recommended=CONVERTERS),
    _setting("key.converter.plugin.version", order=7, display="Key converter version", text="The version of that converter."),
    _setting("value.converter", order=8, display="Value converter class", text="How values become bytes.", kind="CLASS", check=_converter, recommended=CONVERTERS),
    _setting("value.converter.plugin.version", order=9, display="Value converter version", text="The version of that converter."),
    _setting("header.converter", order=10, display="Header converter class", text="How headers become bytes.", kind="CLASS", check=_converter, recommended=tuple(sorted((*CONVERTERS, HEADER_CONVERTER)))),
    _setting("header.converter.plugin.version", order=11, display="Header converter version", text="The version of that converter."),
    _setting("transforms", list, [], group="Transforms", order=12, width="long", display="Transforms", text="Names of transforms, applied in this order; transforms.NAME.type is the function."),
    _setting("predicates", list, [], group="Predicates", order=13, width="long", display="Predicates", text="Not supported: a transform decides for itself.", check=lambda value: "predicates are not supported" if value else None),
    _setting("config.action.reload", default="restart", order=14, width="medium", display="Reload Action", text="Kept for Kafka's tools; secrets are read when a task starts.", choices=("none", "restart")),
    _setting("errors.retry.timeout", int, 0, "medium", "Error Handling", 1, "medium", "Retry Timeout for Errors", "How many milliseconds a failed step is tried again; -1 without end.", kind="LONG"),
    _setting("errors.retry.delay.max.ms", int, 60_000, "medium", "Error Handling", 2, "medium", "Maximum Delay Between Retries for Errors", "The longest wait between two tries.", kind="LONG"),
    _setting("errors.tolerance", default="none", importance="medium", group="Error Handling", order=3, display="Error Tolerance", text="none: a record that cannot be converted or transformed fails the task; all: it is passed by.", choices=("none", "all")),
    _setting("errors.log.enable", bool, False, "medium", "Error Handling", 4, "short", "Log Errors", "Whether records passed by are logged."),
    _setting("errors.log.include.messages", bool, False, "medium", "Error Handling", 5, "short", "Log Error Details", "Whether the log line has the record's topic, partition and offset."),
)  # fmt: skip
_SOURCE = (
    _setting("topic.creation.groups", list, [], group="Topic Creation", order=1, width="long", display="Topic Creation Groups", text="Not supported: topics are made with the log's defaults.", check=lambda value: "topic.creation.groups is not supported" if value else None),
    _setting("exactly.once.support", default="requested", importance="medium", group="Exactly Once Support", order=2, display="Exactly once support", text="Every source is exactly once, whatever this says.", choices=("requested", "required")),
    _setting("transaction.boundary", default="poll", importance="medium", group="Exactly Once Support", order=3, display="Transaction Boundary", text="poll: a transaction for each poll; interval: one for each interval.", choices=("poll", "interval")),
    _setting("transaction.boundary.interval.ms", int, None, group="Exactly Once Support", order=4, display="Transaction boundary interval", text="The interval, in milliseconds, at most 30,000; the worker's offset.flush.interval.ms if absent.", kind="LONG", least=1),
    _setting("offsets.storage.topic", default=None, group="offsets.topic", order=1, width="long", display="Offsets topic", text="Not supported: offsets are in the worker's topic.", check=lambda value: "a topic of its own for offsets is not supported" if value else None),
)  # fmt: skip
_SINK = (
    _setting("topics", list, [], "high", "Common", 4, "long", "Topics", "The topics to read, with commas."),
    _setting("topics.regex", default="", importance="high", order=4, width="long", display="Topics regex", text="A pattern of the topics to read."),
    _setting("errors.deadletterqueue.topic.name", default="", importance="medium", group="Error Handling", order=6, width="medium", display="Dead Letter Queue Topic Name", text="Where records are written that could not be converted, transformed or put."),
    _setting("errors.deadletterqueue.topic.replication.factor", int, 3, "medium", "Error Handling", 7, "medium", "Dead Letter Queue Topic Replication Factor", "Kept for Kafka's tools; the topic is made with the log's default.", kind="SHORT"),
    _setting("errors.deadletterqueue.context.headers.enable", bool, False, "medium", "Error Handling", 8, "medium", "Enable Error Context Headers", "Whether such a record has headers that tell what went wrong."),
)  # fmt: skip

# Beyond Kafka's: when a connector counts as hanging.
_TIMES = (
    _setting("task.start.timeout.ms", int, 60_000, group="Common", order=15, display="Start time-out", text="After how many milliseconds a start counts as hanging.", kind="LONG", least=1),
    _setting("task.poll.timeout.ms", int, 300_000, group="Common", order=16, display="Poll time-out", text="After how many milliseconds a poll or put counts as hanging.", kind="LONG", least=1),
)  # fmt: skip

SOURCE = Config(*_COMMON, *_SOURCE)
SINK = Config(*_COMMON, *_SINK)
TIMES = Config(*_TIMES)


def common(kind: str) -> Config:
    """The settings of all sources, or of all sinks."""
    return SOURCE if kind == "source" else SINK


def groups(kind: str) -> list[str]:
    """Their groups in Kafka's order."""
    found = ["Common", "Transforms", "Predicates", "Error Handling"]
    return [*found, "Topic Creation", "Exactly Once Support", "offsets.topic"] if kind == "source" else found  # fmt: skip


def default_version(given: str) -> str:
    """A connector that has no version has that of Tailrace."""
    return given or __version__
