"""Settings over the wire: describe, replace, change one by one, list what has some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import orjson

from tailrace.broker.guard import INTERNAL, write_refusal
from tailrace.broker.router import Request, Route
from tailrace.broker.settings import DEFINITIONS, check_dynamic, definition
from tailrace.broker.shares.settings import GROUP_SETTINGS
from tailrace.errors import TailraceError
from tailrace.log.errors import InvalidConfigError
from tailrace.log.settings import TOPIC_SETTINGS, Setting, check_topic_config
from tailrace.records.erased_offsets import ERASE
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import alter_configs, incremental_alter_configs
from tailrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from tailrace.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.log.store import Topic

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
# Where a value comes from, in Kafka's numbers.
FROM_TOPIC, FROM_DYNAMIC, FROM_STATIC, FROM_DEFAULT, FROM_GROUP = 1, 2, 4, 5, 8
KINDS = {"boolean": 1, "string": 2, "int": 3, "long": 5, "double": 6, "list": 7, "password": 9}
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

# Settings in one answer, some 20 MB of them.
ENTRIES_PER_ANSWER = 100_000

# Not a setting: what DescribeConfigs tells of a topic or group when asked for it by name.
# What an operator may change of the broker's own topics: nothing here loses a record.
TUNABLE = frozenset(
    {
        "compression.type", "file.delete.delay.ms", "flush.messages", "flush.ms",
        "index.interval.bytes", "internal.segment.bytes", "max.compaction.lag.ms",
        "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "segment.bytes",
        "segment.index.bytes", "segment.jitter.ms", "segment.ms",
    }
)  # fmt: skip
STATUS = "tailrace.status"

_ORIGINS = {"dynamic": FROM_DYNAMIC, "given": FROM_STATIC, "default": FROM_DEFAULT}


class _Refused(Exception):
    """A resource cannot be served; carries Kafka's code and the message."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = int(code)
        self.message = message


class Configs:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    # describing

    def describe(self, request: Request[DescribeConfigsRequest]) -> None:
        body = request.body
        results: list[DescribeConfigsResult] = []
        # Who asks for the same thing twice is told once: the answer is 800 times the question.
        wanted = {
            (
                one.resource_type,
                one.resource_name,
                None if one.configuration_keys is None else tuple(one.configuration_keys),
            ): one
            for one in body.resources
        }

        def steps() -> Iterator[None]:
            entries = 0
            for resource in wanted.values():
                if entries > ENTRIES_PER_ANSWER:
                    results.append(_too_much(resource))
                    continue
                results.append(self._describe(resource, body))
                entries += len(results[-1].configs)
                yield
            request.answer(DescribeConfigsResponse(results=results))

        request.in_turns(steps(), self._broker.loop)

    def _describe(
        self, resource: DescribeConfigsResource, body: DescribeConfigsRequest
    ) -> DescribeConfigsResult:
        answer = DescribeConfigsResult(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            if resource.resource_type == TOPIC:
                topic = self._topic(resource.resource_name)
                found = [
                    self._topic_entry(topic, setting, body) for setting in TOPIC_SETTINGS.values()
                ]
            elif resource.resource_type == BROKER:
                found = self._broker_entries(resource.resource_name, body)
            elif resource.resource_type == GROUP:
                found = self._group_entries(resource.resource_name, body)
            elif resource.resource_type == CLIENT_METRICS:
                found = []
            else:
                raise _Refused(ErrorCode.INVALID_REQUEST, "no settings of this type here")
        except _Refused as refused:
            answer.error_code, answer.error_message = refused.code, refused.message
            return answer
        keys = resource.configuration_keys
        named = None if keys is None else set(keys)
        answer.configs = [one for one in found if named is None or one.name in named]
        if keys is not None and STATUS in keys and resource.resource_type in (TOPIC, GROUP):
            answer.configs.append(self._status(resource.resource_type, resource.resource_name))
        return answer

    def _status(self, kind: int, name: str) -> DescribeConfigsResourceResult:
        """Figures about slow consumers, as JSON; only for those who ask by this name."""
        pressure = self._broker.pressure
        told = pressure.of_topic(name) if kind == TOPIC else pressure.of_group(name)
        return DescribeConfigsResourceResult(
            name=STATUS,
            value=orjson.dumps(told).decode(),
            read_only=True,
            config_source=FROM_DEFAULT,
            config_type=KINDS["string"],
        )

    def _topic(self, name: str) -> Topic:
        topic = self._broker.store.topics.get(name)
        if topic is None:
            raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic

    def _topic_entry(
        self, topic: Topic, setting: Setting, body: DescribeConfigsRequest
    ) -> DescribeConfigsResourceResult:
        broker = self._broker
        synonyms: list[DescribeConfigsSynonym] = []
        if body.include_synonyms:
            if setting.name in topic.overrides:
                synonyms.append(_synonym(setting.name, topic.overrides[setting.name], FROM_TOPIC))
            if setting.broker_name:
                synonyms += self._broker_synonyms(setting.broker_name)
        return DescribeConfigsResourceResult(
            name=setting.name,
            value=topic.config.values[setting.name],
            read_only=setting.read_only,
            config_source=topic_source(broker, topic, setting.name),
            synonyms=synonyms,
            config_type=KINDS[setting.kind],
            documentation=setting.documentation if body.include_documentation else None,
        )

    def _broker_entries(
        self, name: str, body: DescribeConfigsRequest
    ) -> list[DescribeConfigsResourceResult]:
        settings = self._broker.settings
        if name not in ("", str(self._broker.node_id)):
            raise _Refused(ErrorCode.INVALID_REQUEST, f"there is no broker {name}")
        names: Iterable[str] = (*DEFINITIONS, *settings.of_listeners) if name else settings.dynamic
        return [self._broker_entry(one, body) for one in names]

    def _broker_entry(
        self, name: str, body: DescribeConfigsRequest
    ) -> DescribeConfigsResourceResult:
        settings, setting = self._broker.settings, definition(name)
        assert setting is not None
        secret = setting.kind == "password"
        return DescribeConfigsResourceResult(
            name=name,
            value=None if secret else settings.text(name),
            read_only=setting.read_only,
            config_source=_ORIGINS[settings.origin(name)],
            is_sensitive=secret,
            synonyms=self._broker_synonyms(name) if body.include_synonyms else [],
            config_type=KINDS[setting.kind],
            documentation=setting.documentation if body.include_documentation else None,
        )

    def _group_entries(
        self, group: str, body: DescribeConfigsRequest
    ) -> list[DescribeConfigsResourceResult]:
        settings = self._broker.group_settings
        given = settings.given(group)
        return [
            DescribeConfigsResourceResult(
                name=name,
                value=settings.text(group, name),
                config_source=FROM_GROUP if name in given else FROM_DEFAULT,
                config_type=KINDS[setting.kind],
                documentation=setting.documentation if body.include_documentation else None,
            )
            for name, setting in GROUP_SETTINGS.items()
        ]

    def _broker_synonyms(self, name: str) -> list[DescribeConfigsSynonym]:
        settings, setting = self._broker.settings, definition(name)
        assert setting is not None
        synonyms = []
        secret = setting.kind == "password"
        if settings.origin(name) != "default":
            value = None if secret else settings.text(name)
            synonyms.append(_synonym(name, value, _ORIGINS[settings.origin(name)]))
        synonyms.append(_synonym(name, None if secret else setting.default, FROM_DEFAULT))
        return synonyms

    # altering

    def replace(self, request: Request[alter_configs.AlterConfigsRequest]) -> None:
        """AlterConfigs: what is not named goes back to its default."""
        responses: list[alter_configs.AlterConfigsResourceResponse] = []

        def steps() -> Iterator[None]:
            for resource in request.body.resources:
                kind, name = resource.resource_type, resource.resource_name
                given = {one.name: one.value for one in resource.configs}
                # An erasure is not ended by whoever names the settings he knows.
                changes = {one: None for one in self._present(kind, name) if one != ERASE}
                code, message = self._alter(
                    kind,
                    name,
                    {**changes, **given},
                    request.body.validate_only,
                    request.connection.project,
                )
                responses.append(
                    alter_configs.AlterConfigsResourceResponse(
                        error_code=code,
                        error_message=message,
                        resource_type=kind,
                        resource_name=name,
                    )
                )
                yield
            request.answer(alter_configs.AlterConfigsResponse(responses=responses))

        request.in_turns(steps(), self._broker.loop)

    def change(
        self, request: Request[incremental_alter_configs.IncrementalAlterConfigsRequest]
    ) -> None:
        """IncrementalAlterConfigs: only what is named changes."""
        responses: list[incremental_alter_configs.AlterConfigsResourceResponse] = []

        def steps() -> Iterator[None]:
            for resource in request.body.resources:
                code, message = 0, None
                try:
                    changes = self._changes(resource)
                except _Refused as refused:
                    code, message = refused.code, refused.message
                else:
                    code, message = self._alter(
                        resource.resource_type,
                        resource.resource_name,
                        changes,
                        request.body.validate_only,
                        request.connection.project,
                    )
                responses.append(
                    incremental_alter_configs.AlterConfigsResourceResponse(
                        error_code=code,
                        error_message=message,
                        resource_type=resource.resource_type,
                        resource_name=resource.resource_name,
                    )
                )
                yield
            request.answer(
                incremental_alter_configs.IncrementalAlterConfigsResponse(responses=responses)
            )

        request.in_turns(steps(), self._broker.loop)

    def _changes(
        self, resource: incremental_alter_configs.AlterConfigsResource
    ) -> dict[str, str | None]:
        names = [one.name for one in resource.configs]
        if len(set(names)) != len(names):
            raise _Refused(ErrorCode.INVALID_REQUEST, "a setting is named twice")
        changes: dict[str, str | None] = {}
        for one in resource.configs:
            match one.config_operation:
                case 0:
                    if one.value is None:
                        raise _Refused(ErrorCode.INVALID_REQUEST, f"{one.name} has no value")
                    changes[one.name] = one.value
                case 1:
                    changes[one.name] = None
                case 2 | 3:
                    present = self._list(resource.resource_type, resource.resource_name, one.name)
                    given = [word for word in (one.value or "").split(",") if word]
                    if one.config_operation == APPEND:
                        present += [word for word in given if word not in present]
                    else:
                        present = [word for word in present if word not in given]
                    changes[one.name] = ",".join(present)
                case _:
                    raise _Refused(ErrorCode.INVALID_REQUEST, "no such operation on a setting")
        return changes

    def _list(self, kind: int, resource: str, name: str) -> list[str]:
        """The present words of a list setting."""
        table = {TOPIC: TOPIC_SETTINGS, GROUP: GROUP_SETTINGS}.get(kind, DEFINITIONS)
        if name not in table or table[name].kind != "list":
            raise _Refused(ErrorCode.INVALID_CONFIG, f"{name} is not a list")
        if kind == TOPIC:
            text = self._topic(resource).config.values[name]
        else:
            text = self._broker.settings.text(name)
        return [word for word in text.split(",") if word]

    def _present(self, kind: int, name: str) -> Iterable[str]:
        if kind == TOPIC:
            topic = self._broker.store.topics.get(name)
            return topic.overrides if topic is not None else ()
        if kind == GROUP:
            return self._broker.group_settings.given(name)
        return self._broker.settings.dynamic

    def _alter(
        self,
        kind: int,
        name: str,
        changes: Mapping[str, str | None],
        validate_only: bool,
        project: bool,
    ) -> tuple[int, str | None]:
        try:
            if kind == TOPIC:
                self._topic(name)
                why = write_refusal(name, project=project)
                if why is not None and not self._tunes(name, changes):
                    raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
                if ERASE in changes and not project:
                    raise InvalidConfigError(f"{ERASE} is set by `tailrace erase` alone")
                check_topic_config({k: v for k, v in changes.items() if v is not None})
                unknown = [one for one in changes if one not in TOPIC_SETTINGS]
                if unknown:
                    raise InvalidConfigError(f"unknown topic setting {unknown[0]}")
                if not validate_only:
                    self._broker.alter_topic(name, changes)
            elif kind == BROKER:
                if name not in ("", str(self._broker.node_id)):
                    raise _Refused(ErrorCode.INVALID_REQUEST, f"there is no broker {name}")
                for one, value in changes.items():
                    check_dynamic(one, value)
                if not validate_only:
                    self._broker.alter_settings(changes)
            elif kind == GROUP:
                if not name:
                    raise _Refused(ErrorCode.INVALID_REQUEST, "a group needs a name")
                self._broker.group_settings.change(name, changes, validate_only=validate_only)
            else:
                raise _Refused(ErrorCode.INVALID_REQUEST, "no settings of this type here")
        except _Refused as refused:
            return refused.code, refused.message
        except TailraceError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return getattr(error, "kafka_code", -1), error.message + hint
        return 0, None

    def _tunes(self, name: str, changes: Mapping[str, str | None]) -> bool:
        """Whether changes to a topic of the broker leave all its records where they are."""
        present = self._topic(name).config.values
        return name in INTERNAL and all(
            one in TUNABLE or (value is not None and value == present.get(one))
            for one, value in changes.items()
        )

    # listing

    def resources(self, request: Request[ListConfigResourcesRequest]) -> None:
        answer = ListConfigResourcesResponse()
        if request.version >= 1:
            wanted = set(request.body.resource_types) or {TOPIC, BROKER, CLIENT_METRICS, GROUP}
            if wanted - {TOPIC, BROKER, CLIENT_METRICS, GROUP, 8}:
                answer.error_code = int(ErrorCode.UNSUPPORTED_VERSION)
            else:
                if TOPIC in wanted:
                    answer.config_resources += [
                        ConfigResource(resource_name=name, resource_type=TOPIC)
                        for name in self._broker.store.topics
                    ]
                if BROKER in wanted:
                    answer.config_resources.append(
                        ConfigResource(
                            resource_name=str(self._broker.node_id), resource_type=BROKER
                        )
                    )
        request.answer(answer)


def topic_source(broker: Broker, topic: Topic, name: str) -> int:
    """Where a topic's setting comes from, in Kafka's numbers."""
    if name in topic.overrides:
        return FROM_TOPIC
    broker_name = TOPIC_SETTINGS[name].broker_name
    return _ORIGINS[broker.settings.origin(broker_name)] if broker_name else FROM_DEFAULT


def _too_much(resource: DescribeConfigsResource) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=int(ErrorCode.POLICY_VIOLATION),
        error_message="the answer would be too large; ask for fewer at a time",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _synonym(name: str, value: str | None, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = Configs(broker)
    yield Route(ApiKey.DESCRIBE_CONFIGS, 1, 4, handlers.describe)
    yield Route(ApiKey.ALTER_CONFIGS, 0, 2, handlers.replace)
    yield Route(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, handlers.change)
    yield Route(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, handlers.resources)
