"""Topic and log settings under Kafka's names, with Kafka's defaults and ranges.

`TOPIC_SETTINGS` is the table behind CreateTopics, AlterConfigs and DescribeConfigs;
`BROKER_SETTINGS` holds what the log itself reads from the broker's settings. A name
that stands in neither is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tailrace.log.errors import InvalidConfigError
from tailrace.records.erased_offsets import ERASE, read_request

Kind = Literal["int", "long", "double", "string", "list", "boolean", "password"]

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, type, default as text, range and meaning.

    `broker_name` is the broker setting a topic setting takes its default from.
    """

    name: str
    kind: Kind
    default: str
    documentation: str
    broker_name: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = False

    def parse(self, text: str) -> int | float | bool | str | tuple[str, ...]:
        """The value of `text`; raises `InvalidConfigError` naming the setting."""
        text = text.strip()
        try:
            return self._parse(text)
        except ValueError:
            raise InvalidConfigError(
                f'invalid value "{text}" for setting {self.name}',
                detail=f"it takes {self.takes()}",
            ) from None

    def _parse(self, text: str) -> int | float | bool | str | tuple[str, ...]:
        match self.kind:
            case "boolean":
                lowered = text.lower()
                if lowered not in ("true", "false"):
                    raise ValueError
                return lowered == "true"
            case "string" | "password":
                if self.choices and text not in self.choices:
                    raise ValueError
                return text
            case "list":
                words = tuple(word.strip() for word in text.split(",") if word.strip())
                if self.choices and (
                    any(word not in self.choices for word in words) or len(set(words)) != len(words)
                ):
                    raise ValueError
                return words
            case "double":
                number: int | float = float(text)
            case _:
                number = int(text)
                if not -(2**63) <= number <= (INT_MAX if self.kind == "int" else LONG_MAX):
                    raise ValueError
        if (self.least is not None and number < self.least) or (
            self.most is not None and number > self.most
        ):
            raise ValueError
        return number

    def takes(self) -> str:
        """What values the setting accepts, in words."""
        if self.choices:
            return ", ".join(self.choices)
        words = {"int": "a whole number", "long": "a whole number", "double": "a number"}.get(
            self.kind, "true or false" if self.kind == "boolean" else "text"
        )
        if self.least is not None:
            words += f" from {_plain(self.least)}"
        if self.most is not None:
            words += f" to {_plain(self.most)}"
        return words


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:g}"


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


_COMPRESSION = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")

TOPIC_SETTINGS: dict[str, Setting] = _table(
    Setting(
        "cleanup.policy", "list", "delete",
        "What happens to old records: delete by age and size, compact to the last record of every key, or both.",
        "log.cleanup.policy", choices=("compact", "delete"),
    ),
    Setting(
        "compression.type", "string", "producer",
        "Codec of stored batches; producer keeps each batch as it was sent.",
        "compression.type", choices=_COMPRESSION,
    ),
    Setting(
        "delete.retention.ms", "long", str(DAY_MS),
        "How long a compacted topic keeps tombstones and transaction markers.",
        "log.cleaner.delete.retention.ms", least=0,
    ),
    Setting(
        "file.delete.delay.ms", "long", "60000",
        "Time between taking a file out of use and deleting it.",
        "log.segment.delete.delay.ms", least=0,
    ),
    Setting(
        "flush.messages", "long", str(LONG_MAX),
        "Records after which a partition is synced to disk. With 1, every acknowledged record is on disk, and readers see no other.",
        "log.flush.interval.messages", least=1,
    ),
    Setting(
        "flush.ms", "long", str(LONG_MAX),
        "Time after which appended records are synced to disk.",
        "log.flush.interval.ms", least=0,
    ),
    Setting(
        "index.interval.bytes", "int", "4096",
        "Bytes of batches between two entries of the offset index.",
        "log.index.interval.bytes", least=0,
    ),
    Setting(
        "internal.segment.bytes", "int", "0",
        "Segment size below the public minimum, for tests; 0 leaves segment.bytes in force.",
        least=0,
    ),
    Setting(
        "local.retention.bytes", "long", "-2",
        "Bytes kept in the data directory once the topic is archived; -2 means retention.bytes.",
        "log.local.retention.bytes", least=-2,
    ),
    Setting(
        "local.retention.ms", "long", "-2",
        "Age kept in the data directory once the topic is archived; -2 means retention.ms.",
        "log.local.retention.ms", least=-2,
    ),
    Setting(
        "max.compaction.lag.ms", "long", str(LONG_MAX),
        "Longest time a record may stay uncompacted.",
        "log.cleaner.max.compaction.lag.ms", least=1,
    ),
    Setting(
        "max.message.bytes", "int", "1048588",
        "Largest batch accepted, after compression.",
        "message.max.bytes", least=0,
    ),
    Setting(
        "message.timestamp.after.max.ms", "long", str(HOUR_MS),
        "How far in the future a record's timestamp may lie.",
        "log.message.timestamp.after.max.ms", least=0,
    ),
    Setting(
        "message.timestamp.before.max.ms", "long", str(LONG_MAX),
        "How far in the past a record's timestamp may lie.",
        "log.message.timestamp.before.max.ms", least=0,
    ),
    Setting(
        "message.timestamp.type", "string", "CreateTime",
        "Whether a record's time is the producer's or that of the append.",
        "log.message.timestamp.type", choices=("CreateTime", "LogAppendTime"),
    ),
    Setting(
        "min.cleanable.dirty.ratio", "double", "0.5",
        "Share of the log that must be uncompacted before the cleaner takes it up.",
        "log.cleaner.min.cleanable.ratio", least=0, most=1,
    ),
    Setting(
        "min.compaction.lag.ms", "long", "0",
        "Shortest time a record stays uncompacted.",
        "log.cleaner.min.compaction.lag.ms", least=0,
    ),
    Setting(
        "min.insync.replicas", "int", "1",
        "Copies that must have a record before it is acknowledged; one node keeps one copy.",
        "min.insync.replicas", least=1,
    ),
    Setting(
        "remote.storage.enable", "boolean", "false",
        "Whether old segments are moved to the archive and read from there.",
    ),
    Setting(
        "retention.bytes", "long", "-1",
        "Size of a partition past which its oldest segments go; -1 for no limit.",
        "log.retention.bytes", least=-1,
    ),
    Setting(
        "retention.ms", "long", str(7 * DAY_MS),
        "Age past which segments go; -1 for no limit.",
        "log.retention.ms", least=-1,
    ),
    Setting(
        "segment.bytes", "int", str(1024**3),
        "Size at which a segment is closed and a new one begun.",
        "log.segment.bytes", least=1024**2,
    ),
    Setting(
        "segment.index.bytes", "int", str(10 * 1024**2),
        "Largest size of a segment's offset index.",
        "log.index.size.max.bytes", least=4,
    ),
    Setting(
        "segment.jitter.ms", "long", "0",
        "Random time taken off segment.ms, so that not all segments roll at once.",
        "log.roll.jitter.ms", least=0,
    ),
    Setting(
        "segment.ms", "long", str(7 * DAY_MS),
        "Age at which a segment is closed even when it is small.",
        "log.roll.ms", least=1,
    ),
    Setting(
        ERASE, "string", "",
        "Records that are being erased, as partition:offset,first-last;…; set by `tailrace erase` alone, and empty again when they are gone.",
    ),
    Setting(
        "tailrace.events", "boolean", "false",
        "Whether the topic holds events that states are told from: it is never compacted and loses nothing by age or size, and this cannot be taken back.",
    ),
    Setting(
        "tailrace.slow.consumer.group", "string", "",
        "Group, of any kind, that producers wait for under the policies slow and block.",
    ),
    Setting(
        "tailrace.slow.consumer.max.bytes", "long", "-1",
        "Bytes the group may be behind, or that are kept under drop; -1 for no limit.", least=-1,
    ),
    Setting(
        "tailrace.slow.consumer.max.ms", "long", "-1",
        "Age of the group's next record, or of what is kept under drop; -1 for no limit.", least=-1,
    ),
    Setting(
        "tailrace.slow.consumer.max.records", "long", "-1",
        "Records the group may be behind in all partitions, or that are kept of each under drop; -1 for no limit.",
        least=-1,
    ),
    Setting(
        "tailrace.slow.consumer.policy", "string", "buffer",
        "What happens when consumers are slower than producers: buffer keeps by retention, drop keeps no more than the limits, slow makes producers pause and block makes them wait while the group is behind by more.",
        choices=("buffer", "drop", "slow", "block"),
    ),
    Setting(
        "tailrace.validate", "string", "always",
        "Which compressed batches of producers are looked into before they are kept: always, or only where the topic is compacted. Uncompressed ones are in any case.",
        "tailrace.validate", choices=("always", "compacted"),
    ),
    Setting(
        "unclean.leader.election.enable", "boolean", "false",
        "Of meaning on a cluster only; one node has one copy.",
        "unclean.leader.election.enable",
    ),
)  # fmt: skip

BROKER_SETTINGS: dict[str, Setting] = _table(
    *(
        Setting(
            setting.broker_name, setting.kind, setting.default,
            f"Default of the topic setting {setting.name}. {setting.documentation}",
            least=setting.least, most=setting.most, choices=setting.choices,
        )
        for setting in TOPIC_SETTINGS.values()
        if setting.broker_name
    ),
    Setting("log.retention.minutes", "int", "", "retention.ms in minutes; log.retention.ms goes first.", least=-1),
    Setting("log.retention.hours", "int", "168", "retention.ms in hours; the finer settings go first.", least=-1),
    Setting("log.roll.hours", "int", "168", "segment.ms in hours; log.roll.ms goes first.", least=1),
    Setting("num.partitions", "int", "1", "Partitions of a topic that does not say.", least=1),
    Setting("log.retention.check.interval.ms", "long", "300000", "Time between two looks for segments past retention.", least=1),
    Setting("log.flush.offset.checkpoint.interval.ms", "int", "60000", "Time between two writes of the recovery points.", least=0),
    Setting("log.cleaner.enable", "boolean", "true", "Whether compacted topics are compacted."),
    Setting("log.cleaner.backoff.ms", "long", "15000", "Rest of the cleaner when there was nothing to clean.", least=0),
    Setting("log.cleaner.dedupe.buffer.size", "long", str(128 * 1024**2), "Memory for the cleaner's map of keys; 24 bytes a key.", least=1024),
    Setting("log.cleaner.io.max.bytes.per.second", "double", "1.7976931348623157E308", "Most bytes a second the cleaner reads and writes.", least=1),
    Setting("producer.id.expiration.ms", "int", str(DAY_MS), "Time after which an idle producer's sequences are forgotten.", least=1),
    Setting("tailrace.archive.cache.bytes", "long", str(1024**3), "Room for archived segments fetched back to be read.", least=0),
    Setting("tailrace.archive.url", "string", "", "Where archived segments go: a directory or any fsspec URL. Only given at the start.", read_only=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings in force for one topic, parsed once."""

    compact: bool
    delete: bool
    compression: str
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    timestamp_after_max_ms: int
    timestamp_before_max_ms: int
    log_append_time: bool
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    archived: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    validate_compressed: bool
    roll_ms: int
    """Age at which a segment is closed: segment.ms, or sooner so that it can be compacted."""
    values: Mapping[str, str] = field(compare=False)
    """Every topic setting as text, under Kafka's name, in force right now."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log's part of the broker's settings: texts under Kafka's names, checked."""

    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text in self.values.items():
            _known(BROKER_SETTINGS, name, "broker").parse(text)
        _refuse_replicas("min.insync.replicas", self.values)

    @classmethod
    def from_mapping(cls, values: Mapping[str, str]) -> LogSettings:
        """Settings from texts; raises `InvalidConfigError` for an unknown name or value."""
        return cls(dict(values))

    def get(self, name: str) -> int | float | bool | str | tuple[str, ...]:
        """The parsed value of one broker setting."""
        setting = _known(BROKER_SETTINGS, name, "broker")
        return setting.parse(self.values.get(name, setting.default))

    def number(self, name: str) -> int:
        """The value of a whole-number setting."""
        value = self.get(name)
        return int(value) if isinstance(value, int | float) else 0

    def topic_default(self, name: str) -> str:
        """The text a topic setting has on this broker when the topic does not say."""
        setting = _known(TOPIC_SETTINGS, name, "topic")
        values = self.values
        if setting.broker_name in values:
            return values[setting.broker_name]
        if name == "retention.ms":
            if values.get("log.retention.minutes"):
                minutes = int(values["log.retention.minutes"])
                return str(minutes * 60_000 if minutes >= 0 else -1)
            if "log.retention.hours" in values:
                hours = int(values["log.retention.hours"])
                return str(hours * HOUR_MS if hours >= 0 else -1)
        if name == "segment.ms" and "log.roll.hours" in values:
            return str(int(values["log.roll.hours"]) * HOUR_MS)
        return setting.default

    def topic(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic with these overrides; raises `InvalidConfigError`."""
        check_topic_config(overrides)
        _check_slow_consumers(overrides)
        _check_events(overrides)
        values = {name: overrides.get(name, self.topic_default(name)) for name in TOPIC_SETTINGS}

        def number(name: str) -> int:
            parsed = TOPIC_SETTINGS[name].parse(values[name])
            return parsed if isinstance(parsed, int) else 0

        policy = TOPIC_SETTINGS["cleanup.policy"].parse(values["cleanup.policy"])
        assert isinstance(policy, tuple)
        return TopicConfig(
            compact="compact" in policy,
            delete="delete" in policy,
            compression=values["compression.type"],
            delete_retention_ms=number("delete.retention.ms"),
            file_delete_delay_ms=number("file.delete.delay.ms"),
            flush_messages=number("flush.messages"),
            flush_ms=number("flush.ms"),
            index_interval_bytes=number("index.interval.bytes"),
            local_retention_bytes=number("local.retention.bytes"),
            local_retention_ms=number("local.retention.ms"),
            max_compaction_lag_ms=number("max.compaction.lag.ms"),
            max_message_bytes=number("max.message.bytes"),
            timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
            timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
            log_append_time=values["message.timestamp.type"] == "LogAppendTime",
            min_cleanable_dirty_ratio=float(values["min.cleanable.dirty.ratio"]),
            min_compaction_lag_ms=number("min.compaction.lag.ms"),
            archived=values["remote.storage.enable"].lower() == "true",
            retention_bytes=number("retention.bytes"),
            retention_ms=number("retention.ms"),
            segment_bytes=number("internal.segment.bytes") or number("segment.bytes"),
            segment_index_bytes=number("segment.index.bytes"),
            segment_jitter_ms=number("segment.jitter.ms"),
            segment_ms=number("segment.ms"),
            validate_compressed=values["tailrace.validate"] == "always",
            roll_ms=min(number("segment.ms"), number("max.compaction.lag.ms"))
            if "compact" in policy
            else number("segment.ms"),
            values=values,
        )

    def check_archive(self, config: TopicConfig) -> None:
        """Raises `InvalidConfigError` (40) if a topic is to be archived and cannot be."""
        if not config.archived:
            return
        if config.compact:
            raise InvalidConfigError("a compacted topic cannot be archived")
        if not self.get("tailrace.archive.url"):
            raise InvalidConfigError(
                "remote.storage.enable=true needs an archive",
                hint="set tailrace.archive.url to a directory or an fsspec URL",
            )


def check_topic_config(overrides: Mapping[str, str]) -> None:
    """Raises `InvalidConfigError` for a topic setting that is unknown or out of range."""
    for name, text in overrides.items():
        _known(TOPIC_SETTINGS, name, "topic").parse(text)
    try:
        read_request(overrides.get(ERASE, ""))
    except ValueError as error:
        raise InvalidConfigError(
            f"{overrides[ERASE][:100]!r} is no value for {ERASE}",
            detail=str(error),
            hint="partition:offset,first-last;…: 0:5-9,12;3:991",
        ) from error
    _refuse_replicas("min.insync.replicas", overrides)


def _check_slow_consumers(overrides: Mapping[str, str]) -> None:
    """A policy without what it needs would be a promise that is not kept."""
    prefix = "tailrace.slow.consumer."
    policy = overrides.get(f"{prefix}policy", "buffer").strip()
    if policy == "buffer":
        return
    if all(
        int(overrides.get(f"{prefix}max.{unit}", "-1")) < 0 for unit in ("records", "bytes", "ms")
    ):
        raise InvalidConfigError(
            f"{prefix}policy={policy} needs a limit",
            hint=f"set {prefix}max.records, {prefix}max.bytes or {prefix}max.ms too",
        )
    if policy in ("slow", "block") and not overrides.get(f"{prefix}group"):
        raise InvalidConfigError(
            f"{prefix}policy={policy} needs a group", hint=f"set {prefix}group too"
        )


def _check_events(overrides: Mapping[str, str]) -> None:
    """An event topic that lost a record would tell a wrong state."""
    if overrides.get("tailrace.events", "false").strip().lower() != "true":
        return
    wrong = []
    if "compact" in overrides.get("cleanup.policy", "delete"):
        wrong.append(f"cleanup.policy={overrides['cleanup.policy']}")
    limits = ("retention.ms", "retention.bytes")
    wrong += [f"{name}={overrides[name]}" for name in limits if int(overrides.get(name, "-1")) >= 0]
    if wrong or "retention.ms" not in overrides:
        raise InvalidConfigError(
            "a topic of events is never compacted and loses nothing by age or size",
            detail=", ".join(wrong) or "retention.ms is not -1",
            hint="to take something back, write a compensating event, such as Refunded after Charged",
        )


def keep_events(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """A topic that holds events holds them for good."""
    if "true" in before.get("tailrace.events", "").lower() and (
        after.get("tailrace.events", "").strip().lower() != "true"
    ):
        raise InvalidConfigError(
            "tailrace.events cannot be taken back",
            hint="delete the topic, or write events to a new one",
        )


def _refuse_replicas(name: str, values: Mapping[str, str]) -> None:
    if name in values and int(values[name]) > 1:
        raise InvalidConfigError(
            f"{name}={values[name]} cannot be kept by one node",
            detail="the embedded broker keeps one copy of every record",
            hint="run the project on an Apache Kafka cluster: set log.bootstrap in tailrace.toml",
        )


def _known(table: Mapping[str, Setting], name: str, owner: str) -> Setting:
    if name in table:
        return table[name]
    raise InvalidConfigError(
        f"unknown {owner} setting {name}", hint=_nearest(name, table) or "see the settings page"
    )


def _nearest(name: str, names: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, list(names), 1)
    return f"did you mean {found[0]}?" if found else ""
