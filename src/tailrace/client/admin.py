"""Topics, offsets and groups of a log, asked for synchronously on our own wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, TypeVar

from tailrace.client.cluster import Cluster, TopicInformation, TryAgain
from tailrace.client.connection import Opener, open_socket
from tailrace.client.errors import BrokerUnavailableError, RequestError, TopicExistsError
from tailrace.clock import SYSTEM, Clock
from tailrace.config import REPLICATION
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

Place = tuple[str, int]  # topic and partition
T = TypeVar("T", bound=Message)

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
STATUS = "tailrace.status"
MOST_SETTINGS = 1_000  # topics whose settings one request asks for
TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic or broker, and where its value comes from."""

    name: str
    value: str | None
    is_default: bool
    read_only: bool
    documentation: str | None = None


@dataclass(frozen=True, slots=True)
class TimeOffset:
    """The first record at or after a time; offset −1 if there is none."""

    offset: int
    timestamp: int


class Admin:
    """Not for use from several threads."""

    def __init__(
        self,
        bootstrap: str,
        *,
        timeout: float = 60.0,
        opener: Opener = open_socket,
        clock: Clock = SYSTEM,
    ) -> None:
        self.cluster = Cluster(bootstrap, timeout=timeout, opener=opener, clock=clock)

    @classmethod
    def over(cls, cluster: Cluster) -> Admin:
        """On the connections of another client."""
        admin = cls.__new__(cls)
        admin.cluster = cluster
        return admin

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.cluster.close()

    # Topics --------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        config: Mapping[str, str] | None = None,
        *,
        replication_factor: int = -1,
        validate_only: bool = False,
    ) -> None:
        """Make a topic (−1: the log's default) and wait until it has leaders.

        Raises TopicExistsError, RequestError.
        """
        from tailrace.wire.messages import create_topics as messages

        request = messages.CreateTopicsRequest(
            topics=[
                messages.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    configs=[
                        messages.CreatableTopicConfig(key, str(value))
                        for key, value in (config or {}).items()
                    ],
                )
            ],
            timeout_ms=30_000,
            validate_only=validate_only,
        )
        response = self.ask(ApiKey.CREATE_TOPICS, request, messages.CreateTopicsResponse)
        result = response.topics[0]
        self._judge(result.error_code, f'creating topic "{name}"', result.error_message)
        if not validate_only:
            self._wait_for_leaders(name)

    def ensure_topic(
        self, name: str, partitions: int = -1, config: Mapping[str, str] | None = None
    ) -> bool:
        """Make the topic unless it exists; True if it was made now. An existing topic
        keeps its partitions and settings. `replication` among the settings is the number
        of copies, without it the log's default."""
        if self.describe_topic(name) is not None:
            return False
        settings = dict(config or {})
        copies = int(settings.pop(REPLICATION, -1))
        try:
            self.create_topic(name, partitions, settings, replication_factor=copies)
        except TopicExistsError:
            self._wait_for_leaders(name)
            return False
        return True

    def delete_topic(self, name: str) -> None:
        from tailrace.wire.messages import delete_topics as messages

        request = messages.DeleteTopicsRequest(
            topics=[messages.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=30_000
        )
        response = self.ask(ApiKey.DELETE_TOPICS, request, messages.DeleteTopicsResponse)
        result = response.responses[0]
        self.cluster.forget(name)
        self._judge(result.error_code, f'deleting topic "{name}"', result.error_message)

    def add_partitions(self, name: str, total: int) -> None:
        """Raise the number of partitions to `total`. Keys then move to other partitions."""
        from tailrace.wire.messages import create_partitions as messages

        request = messages.CreatePartitionsRequest(
            topics=[messages.CreatePartitionsTopic(name, total, None)], timeout_ms=30_000
        )
        response = self.ask(ApiKey.CREATE_PARTITIONS, request, messages.CreatePartitionsResponse)
        result = response.results[0]
        self._judge(result.error_code, f'adding partitions to "{name}"', result.error_message)
        self.cluster.forget(name)
        self._wait_for_leaders(name)

    def list_topics(self, *, internal: bool = False) -> list[TopicInformation]:
        """All topics by name; those the log keeps for itself only if asked for."""
        answers = self._retry(lambda: self.cluster.refresh(None), "listing topics")
        names = sorted(each.name or "" for each in answers if each.error_code == ErrorCode.NONE)
        found = [self.cluster.topic(name) for name in names]
        return [topic for topic in found if internal or not topic.internal]

    def describe_topic(self, name: str) -> TopicInformation | None:
        """The topic as it is now; None if it does not exist."""

        def ask() -> TopicInformation | None:
            (answer,) = self.cluster.refresh([name])
            if answer.error_code == ErrorCode.NONE:
                return self.cluster.topic(name)
            if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            self._judge(answer.error_code, f'topic "{name}"')
            raise AssertionError("unreachable")

        return self._retry(ask, f'describing topic "{name}"')

    def topic_ids(self, names: Iterable[str]) -> dict[str, bytes]:
        """The identity of each of these topics that exists, in one request; a topic that was
        deleted and created again has another."""
        wanted = list(names)

        def ask() -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for answer in self.cluster.refresh(wanted) if wanted else ():
                if answer.error_code == ErrorCode.NONE:
                    found[answer.name or ""] = answer.topic_id
                elif answer.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self._judge(answer.error_code, f'topic "{answer.name}"')
            return found

        return self._retry(ask, "asking which topics there are")

    def _wait_for_leaders(self, name: str) -> None:
        def ask() -> None:
            (answer,) = self.cluster.refresh([name])
            if answer.error_code != ErrorCode.NONE:
                raise TryAgain(answer.error_code, 0.01)
            if any(leader < 0 for leader in self.cluster.topic(name).leaders):
                raise TryAgain(ErrorCode.LEADER_NOT_AVAILABLE, 0.01)

        self._retry(ask, f'waiting for topic "{name}"')

    # Settings ------------------------------------------------------------------

    def topic_config(self, name: str) -> dict[str, ConfigEntry]:
        """Every setting of a topic, by Kafka's name."""
        return self._config(TOPIC_RESOURCE, name)

    def broker_config(self, node_id: int) -> dict[str, ConfigEntry]:
        """Every setting of a broker, asked of it: no other one knows them."""
        return self._config(BROKER_RESOURCE, str(node_id), broker=node_id)

    def topic_settings(
        self, names: Iterable[str], keys: Iterable[str]
    ) -> dict[str, dict[str, str | None]]:
        """Some settings of many topics; topics that are gone by then are left out."""
        from tailrace.wire.messages import describe_configs as messages

        asked, wanted = list(names), list(keys)
        found: dict[str, dict[str, str | None]] = {}
        for start in range(0, len(asked), MOST_SETTINGS):
            some = asked[start : start + MOST_SETTINGS]
            resources = [messages.DescribeConfigsResource(TOPIC_RESOURCE, name, wanted) for name in some]  # fmt: skip
            answer = self.ask(
                ApiKey.DESCRIBE_CONFIGS,
                messages.DescribeConfigsRequest(resources),
                messages.DescribeConfigsResponse,
            )
            for result in answer.results:
                if result.error_code == ErrorCode.NONE:
                    found[result.resource_name] = {each.name: each.value for each in result.configs}
        return found

    def group_config(self, group: str) -> dict[str, ConfigEntry]:
        """Every setting of a group, by Kafka's name."""
        return self._config(GROUP_RESOURCE, group)

    def _config(
        self, kind: int, name: str, keys: list[str] | None = None, broker: int | None = None
    ) -> dict[str, ConfigEntry]:
        from tailrace.wire.messages import describe_configs as messages

        request = messages.DescribeConfigsRequest(
            resources=[messages.DescribeConfigsResource(kind, name, keys)],
            include_documentation=True,
        )
        if broker is None:
            response = self.ask(ApiKey.DESCRIBE_CONFIGS, request, messages.DescribeConfigsResponse)
        else:
            answer = self.cluster.broker(broker).request(APIS[ApiKey.DESCRIBE_CONFIGS], request)
            assert isinstance(answer, messages.DescribeConfigsResponse)
            response = answer
        result = response.results[0]
        self._judge(result.error_code, f'settings of "{name}"', result.error_message)
        own = 1 if kind == TOPIC_RESOURCE else 4  # sources: dynamic topic, static broker
        return {
            each.name: ConfigEntry(
                each.name, each.value, each.config_source > own, each.read_only, each.documentation
            )
            for each in result.configs
        }

    def status(self, kind: Literal["topic", "group"], name: str) -> str | None:
        """What the embedded broker counts about slow consumers of a topic, or about a group,
        as JSON; None on other brokers."""
        number = TOPIC_RESOURCE if kind == "topic" else GROUP_RESOURCE
        found = self._config(number, name, [STATUS])
        return found[STATUS].value if STATUS in found else None

    def alter_topic_config(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set settings of a topic; None puts one back to its default.

        Raises EventsCompactedError for a topic of events that would lose some.
        """
        from tailrace.client.event_topics import refuse_change

        refuse_change(self.cluster, name, changes)
        self._alter_config(TOPIC_RESOURCE, name, changes)

    def alter_group_config(self, group: str, changes: Mapping[str, str | None]) -> None:
        """Set settings of a group (`share.auto.offset.reset` …); None: back to default."""
        self._alter_config(GROUP_RESOURCE, group, changes)

    def _alter_config(self, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
        from tailrace.wire.messages import incremental_alter_configs as messages

        request = messages.IncrementalAlterConfigsRequest(
            resources=[
                messages.AlterConfigsResource(
                    kind,
                    name,
                    [
                        messages.AlterableConfig(key, 1 if value is None else 0, value)
                        for key, value in changes.items()
                    ],
                )
            ]
        )
        response = self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, request, messages.IncrementalAlterConfigsResponse
        )
        result = response.responses[0]
        self._judge(result.error_code, f'settings of "{name}"', result.error_message)

    # Offsets -------------------------------------------------------------------

    def start_offsets(self, partitions: Iterable[Place]) -> dict[Place, int]:
        """The first offset kept of each partition."""
        return {place: found.offset for place, found in self._offsets(
            dict.fromkeys(partitions, EARLIEST), "read_uncommitted").items()}  # fmt: skip

    def end_offsets(
        self, partitions: Iterable[Place], isolation: str = "read_committed"
    ) -> dict[Place, int]:
        """The offset behind the last record (committed: before the first open transaction)."""
        if isolation == "committed":
            isolation = "read_committed"
        return {place: found.offset for place, found in self._offsets(
            dict.fromkeys(partitions, LATEST), isolation).items()}  # fmt: skip

    def offsets_for_times(self, times: Mapping[Place, int]) -> dict[Place, TimeOffset]:
        """For each partition the first record at or after a time in milliseconds."""
        return self._offsets(times, "read_uncommitted")

    def topic_end_offsets(self, topic: str, isolation: str = "read_committed") -> dict[int, int]:
        """`end_offsets` of every partition of a topic."""
        count = len(self.cluster.topic(topic).leaders)
        ends = self.end_offsets([(topic, index) for index in range(count)], isolation)
        return {index: end for (_, index), end in ends.items()}

    def _offsets(self, wanted: Mapping[Place, int], isolation: str) -> dict[Place, TimeOffset]:
        api = APIS[ApiKey.LIST_OFFSETS]
        found: dict[Place, TimeOffset] = {}

        def ask() -> None:
            leaders: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
            for (topic, index), timestamp in wanted.items():
                if (topic, index) not in found:
                    topics = leaders.setdefault(self.cluster.leader(topic, index), {})
                    topics.setdefault(topic, []).append(ListOffsetsPartition(index, -1, timestamp))
            again: TryAgain | None = None
            for leader, topics in leaders.items():
                request = ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=int(isolation == "read_committed"),
                    topics=[ListOffsetsTopic(name, each) for name, each in topics.items()],
                    timeout_ms=30_000,
                )
                try:
                    response = self.cluster.broker(leader).request(api, request, 10)
                except BrokerUnavailableError:
                    for topic in topics:
                        self.cluster.forget(topic)
                    raise
                assert isinstance(response, ListOffsetsResponse)
                for answered in response.topics:
                    for each in answered.partitions:
                        place = (answered.name, each.partition_index)
                        if each.error_code == ErrorCode.NONE:
                            found[place] = TimeOffset(each.offset, each.timestamp)
                            continue
                        self.cluster.forget(answered.name)
                        if not ErrorCode(each.error_code).retriable:
                            raise RequestError.of(each.error_code, f'offsets of "{place[0]}"')
                        again = TryAgain(each.error_code)
            if again is not None:
                raise again

        self._retry(ask, "asking for offsets")
        return found

    def delete_records(self, before: Mapping[Place, int]) -> dict[Place, int]:
        """Remove the records before these offsets (−1: all); the new start offsets."""
        from tailrace.wire.messages import delete_records as messages

        api = APIS[ApiKey.DELETE_RECORDS]
        found: dict[Place, int] = {}
        for (topic, index), offset in before.items():
            request = messages.DeleteRecordsRequest(
                [
                    messages.DeleteRecordsTopic(
                        topic, [messages.DeleteRecordsPartition(index, offset)]
                    )
                ],
                30_000,
            )

            def ask(
                topic: str = topic,
                index: int = index,
                request: messages.DeleteRecordsRequest = request,
            ) -> int:
                leader = self.cluster.leader(topic, index)
                response = self.cluster.broker(leader).request(api, request)
                assert isinstance(response, messages.DeleteRecordsResponse)
                result = response.topics[0].partitions[0]
                self._judge(result.error_code, f'deleting records of "{topic}"')
                return result.low_watermark

            found[topic, index] = self._retry(ask, f'deleting records of "{topic}"')
        return found

    # Asking --------------------------------------------------------------------

    def ask(self, key: ApiKey, request: Message, kind: type[T]) -> T:
        """A request to any broker; Kafka's brokers pass it on to their controller."""
        api = APIS[key]

        def ask() -> T:
            response = self.cluster.any().request(api, request)
            assert isinstance(response, kind)
            return response

        return self._retry(ask, api.module.replace("_", " "))

    def _retry(self, work: Callable[[], R], action: str) -> R:
        return self.cluster.retry(work, action)

    def _judge(self, error_code: int, action: str, message: str | None = None) -> None:
        if error_code == ErrorCode.NONE:
            return
        raise RequestError.of(error_code, action, detail=message or "")


R = TypeVar("R")
