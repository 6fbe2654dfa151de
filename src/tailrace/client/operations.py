"""The state of a cluster: brokers, leaders, in-sync replicas, controller, moves, throttles.

Any broker answers for the cluster; sizes and settings of a broker are asked of that broker. What
a log does not offer (the embedded broker has no quorum of controllers and no moves) is left out.
Elections and moves are in `elections` and `moves`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tailrace.client.admin import BROKER_RESOURCE, Admin
from tailrace.client.cluster import METADATA
from tailrace.client.errors import BrokerUnavailableError, RequestError
from tailrace.errors import UsageError
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import describe_configs as configs
from tailrace.wire.messages import describe_log_dirs as directories
from tailrace.wire.messages import describe_quorum as quorum
from tailrace.wire.messages import describe_topic_partitions as details
from tailrace.wire.messages import list_partition_reassignments as reassignments
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse

MIN_INSYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
THROTTLED_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")  # fmt: skip
THROTTLED_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
CONTROLLERS = "__cluster_metadata"
AT_ONCE = 1_000  # topics whose details one request asks for


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition. `eligible` may lead although they are not in sync; `leader` −1: none."""

    partition: int
    leader: int
    leader_epoch: int
    preferred: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    eligible: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic and the settings that decide what survives."""

    name: str
    replication_factor: int
    min_insync: int
    unclean: bool
    partitions: tuple[PartitionState, ...]

    @property
    def survives(self) -> str:
        """What the settings mean when brokers are lost, in words."""
        return survival(self.replication_factor, self.min_insync, self.unclean)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """`state` is up, or gone for one that only replicas name; `bytes` −1 if not told."""

    id: int
    state: str
    address: str
    rack: str | None
    leaders: int
    replicas: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ControllerState:
    """Who decides; `id` −1: nobody. `epoch` and `voters` of Apache Kafka's quorum."""

    id: int
    epoch: int | None = None
    voters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """A partition on its way to other brokers."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    progress: float | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """A limit on replication that somebody set: of a broker (`rate`) or a topic (`replicas`)."""

    kind: str
    name: str
    setting: str
    value: str


Place = dict[str, int | str]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Everything at one moment; `good` if nothing needs a person."""

    controller: ControllerState
    brokers: tuple[BrokerState, ...]
    topics: tuple[TopicState, ...]
    moves: tuple[Move, ...] = ()
    throttles: tuple[Throttle, ...] = ()

    def _places(self, chosen: Iterable[tuple[TopicState, PartitionState]]) -> list[Place]:
        return [{"topic": topic.name, "partition": each.partition} for topic, each in chosen]

    def _all(self) -> Iterable[tuple[TopicState, PartitionState]]:
        return ((topic, each) for topic in self.topics for each in topic.partitions)

    def _lacking(self) -> list[tuple[TopicState, PartitionState]]:
        """Those with fewer in sync than they have replicas; what is being added is not missed."""
        adding = {(each.topic, each.partition): set(each.adding) for each in self.moves}
        return [
            (topic, each)
            for topic, each in self._all()
            if set(each.replicas) - set(each.in_sync) - adding.get((topic.name, each.partition), set())
        ]  # fmt: skip

    @property
    def under_replicated(self) -> list[Place]:
        return self._places(self._lacking())

    @property
    def under_min_insync(self) -> list[Place]:
        return self._places(
            (topic, each) for topic, each in self._all() if len(each.in_sync) < topic.min_insync
        )

    @property
    def offline(self) -> list[Place]:
        return self._places((topic, each) for topic, each in self._all() if each.leader < 0)

    @property
    def suspects(self) -> list[dict[str, int]]:
        """Brokers that under-replicated partitions miss, most shared first."""
        missed = Counter(
            broker for _, each in self._lacking() for broker in set(each.replicas) - set(each.in_sync)
        )  # fmt: skip
        ranked = sorted(missed.items(), key=lambda item: (-item[1], item[0]))
        return [{"broker": broker, "partitions": count} for broker, count in ranked]

    @property
    def left_throttles(self) -> bool:
        """A throttle without a move: somebody's move ended without taking it away."""
        return bool(self.throttles) and not self.moves

    @property
    def good(self) -> bool:
        return not (self.under_replicated or self.offline or self.controller.id < 0)

    def document(self) -> dict[str, Any]:
        """As `tailrace cluster status --json` prints it."""
        return {
            "controller": asdict(self.controller),
            "brokers": [asdict(each) for each in self.brokers],
            "topics": [{**asdict(each), "survives": each.survives} for each in self.topics],
            "under_replicated": self.under_replicated,
            "under_min_insync": self.under_min_insync,
            "offline": self.offline,
            "suspects": self.suspects,
            "moves": [asdict(each) for each in self.moves],
            "throttles": [asdict(each) for each in self.throttles],
            "left_throttles": self.left_throttles,
        }


class Flapping:
    """Partitions whose in-sync replicas come and go, from one status after another."""

    def __init__(self, seconds: float = 1_800.0, least: int = 3) -> None:
        self._seconds = seconds
        self._least = least
        self._last: dict[tuple[str, int], tuple[int, ...]] = {}
        self._changes: dict[tuple[str, int], list[float]] = {}

    def observe(self, state: ClusterState, moment: float) -> list[dict[str, int | str]]:
        """Those that changed at least three times in the last half hour."""
        for topic in state.topics:
            for each in topic.partitions:
                place = (topic.name, each.partition)
                if self._last.setdefault(place, each.in_sync) != each.in_sync:
                    self._last[place] = each.in_sync
                    self._changes.setdefault(place, []).append(moment)
        found: list[dict[str, int | str]] = []
        for place, moments in sorted(self._changes.items()):
            moments[:] = [each for each in moments if moment - each <= self._seconds]
            if len(moments) >= self._least:
                found.append({"topic": place[0], "partition": place[1], "changes": len(moments)})
        return found


class Operations:
    """Questions about a cluster, on an `Admin`."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def status(self) -> ClusterState:
        """The state now. Raises ClientError."""
        seen = self._metadata()
        brokers = {each.node_id: each for each in seen.brokers}
        states = self._partitions(seen)
        settings = self._topic_settings(list(states))
        topics = tuple(
            TopicState(
                name,
                max((len(each.replicas) for each in partitions), default=0),
                int(settings.get(name, {}).get(MIN_INSYNC) or 1),
                settings.get(name, {}).get(UNCLEAN) == "true",
                partitions,
            )
            for name, partitions in sorted(states.items())
        )
        sizes = {id: self.sizes(id) for id in brokers}
        leads: Counter[int] = Counter()
        holds: Counter[int] = Counter()
        for topic in topics:
            for each in topic.partitions:
                leads[each.leader] += 1
                holds.update(each.replicas)
        known = sorted(set(brokers) | set(holds))
        return ClusterState(
            self._controller(seen),
            tuple(
                BrokerState(
                    id,
                    "up" if id in brokers else "gone",
                    f"{brokers[id].host}:{brokers[id].port}" if id in brokers else "",
                    brokers[id].rack if id in brokers else None,
                    leads[id],
                    holds[id],
                    _total(sizes.get(id)),
                )
                for id in known
            ),
            topics,
            self._moves(sizes, {(t.name, p.partition): p.leader for t in topics for p in t.partitions}),
            tuple(self._throttles(settings, brokers)),
        )  # fmt: skip

    def sizes(self, broker: int) -> dict[tuple[str, int], int] | None:
        """Bytes of every partition on a broker, as it says itself; None if it does not."""
        api = APIS[ApiKey.DESCRIBE_LOG_DIRS]
        try:
            connection = self._admin.cluster.broker(broker)
            if not connection.offers(api):
                return None
            answer = connection.request(api, directories.DescribeLogDirsRequest(None))
        except BrokerUnavailableError:
            return None
        assert isinstance(answer, directories.DescribeLogDirsResponse)
        found: Counter[tuple[str, int]] = Counter()
        for result in answer.results:
            for topic in result.topics:
                for each in topic.partitions:
                    found[topic.name, each.partition_index] += each.partition_size
        return dict(found)

    def moves(self) -> tuple[Move, ...]:
        """Partitions on their way to other brokers."""
        api = APIS[ApiKey.LIST_PARTITION_REASSIGNMENTS]
        if not self._admin.cluster.any().offers(api):
            return ()
        answer = self._admin.ask(
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            reassignments.ListPartitionReassignmentsRequest(30_000, None),
            reassignments.ListPartitionReassignmentsResponse,
        )
        if answer.error_code != ErrorCode.NONE:
            raise RequestError.of(
                answer.error_code, "asking for moves", detail=answer.error_message or ""
            )
        return tuple(
            Move(
                topic.name,
                each.partition_index,
                tuple(each.replicas),
                tuple(each.adding_replicas),
                tuple(each.removing_replicas),
            )
            for topic in answer.topics
            for each in topic.partitions
        )

    # Inside --------------------------------------------------------------------

    def _metadata(self) -> MetadataResponse:
        cluster = self._admin.cluster

        def ask() -> MetadataResponse:
            cluster.refresh([])  # so that ids lead to addresses
            answer = cluster.any().request(METADATA, MetadataRequest(None), 12)
            assert isinstance(answer, MetadataResponse)
            return answer

        return cluster.retry(ask, "asking for metadata")

    def _partitions(self, seen: MetadataResponse) -> dict[str, tuple[PartitionState, ...]]:
        found = {
            topic.name or "": tuple(
                PartitionState(
                    each.partition_index,
                    each.leader_id,
                    each.leader_epoch,
                    each.replica_nodes[0] if each.replica_nodes else -1,
                    tuple(each.replica_nodes),
                    tuple(sorted(each.isr_nodes)),
                )
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            )
            for topic in seen.topics
            if topic.error_code == ErrorCode.NONE
        }
        lacking = [
            name
            for name, partitions in found.items()
            if any(len(each.in_sync) < len(each.replicas) for each in partitions)
        ]
        eligible = self._eligible(lacking)
        return {
            name: tuple(
                PartitionState(
                    each.partition,
                    each.leader,
                    each.leader_epoch,
                    each.preferred,
                    each.replicas,
                    each.in_sync,
                    eligible.get((name, each.partition), ()),
                )
                for each in partitions
            )
            for name, partitions in found.items()
        }

    def _eligible(self, topics: list[str]) -> dict[tuple[str, int], tuple[int, ...]]:
        """Replicas out of sync that may lead all the same (KIP-966), of topics that lack some."""
        api = APIS[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
        found: dict[tuple[str, int], tuple[int, ...]] = {}
        if not topics or not self._admin.cluster.any().offers(api):
            return found
        for start in range(0, len(topics), AT_ONCE):
            asked = [details.TopicRequest(name) for name in topics[start : start + AT_ONCE]]
            cursor: details.RequestCursor | None = None
            while True:
                answer = self._admin.ask(
                    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                    details.DescribeTopicPartitionsRequest(asked, 2_000, cursor),
                    details.DescribeTopicPartitionsResponse,
                )
                for topic in answer.topics:
                    for each in topic.partitions:
                        place = (topic.name or "", each.partition_index)
                        found[place] = tuple(sorted(each.eligible_leader_replicas or ()))
                if answer.next_cursor is None:
                    break
                cursor = details.RequestCursor(
                    answer.next_cursor.topic_name, answer.next_cursor.partition_index
                )
        return found

    def _controller(self, seen: MetadataResponse) -> ControllerState:
        api = APIS[ApiKey.DESCRIBE_QUORUM]
        if not self._admin.cluster.any().offers(api):
            return ControllerState(seen.controller_id, None, (seen.controller_id,))
        answer = self._admin.ask(
            ApiKey.DESCRIBE_QUORUM,
            quorum.DescribeQuorumRequest(
                [quorum.RequestTopicData(CONTROLLERS, [quorum.RequestPartitionData(0)])]
            ),
            quorum.DescribeQuorumResponse,
        )
        if answer.error_code != ErrorCode.NONE or not answer.topics:
            return ControllerState(-1)
        (found,) = answer.topics[0].partitions
        return ControllerState(
            found.leader_id,
            found.leader_epoch,
            tuple(sorted(each.replica_id for each in found.current_voters)),
        )

    def _topic_settings(self, topics: list[str]) -> dict[str, dict[str, str | None]]:
        names = [MIN_INSYNC, UNCLEAN, *THROTTLED_REPLICAS]
        return self._admin.topic_settings(topics, names)

    def _throttles(
        self, settings: dict[str, dict[str, str | None]], brokers: Iterable[int]
    ) -> Iterable[Throttle]:
        for topic, values in sorted(settings.items()):
            for name in THROTTLED_REPLICAS:
                if value := values.get(name):
                    yield Throttle("topic", topic, name, value)
        for broker in sorted(brokers):
            for name, value in self.broker_settings(broker, THROTTLED_RATES).items():
                if value:
                    yield Throttle("broker", str(broker), name, value)

    def broker_settings(self, broker: int, names: Iterable[str]) -> dict[str, str | None]:
        """Settings that were made for this broker while it ran, asked of it."""
        api = APIS[ApiKey.DESCRIBE_CONFIGS]
        request = configs.DescribeConfigsRequest(
            [configs.DescribeConfigsResource(BROKER_RESOURCE, str(broker), list(names))]
        )
        try:
            answer = self._admin.cluster.broker(broker).request(api, request)
        except BrokerUnavailableError:
            return {}
        assert isinstance(answer, configs.DescribeConfigsResponse)
        (result,) = answer.results
        if result.error_code != ErrorCode.NONE:
            return {}
        dynamic = (2, 3)  # of this broker, of all brokers; the rest is the file's or the default
        return {each.name: each.value for each in result.configs if each.config_source in dynamic}

    def _moves(
        self,
        sizes: dict[int, dict[tuple[str, int], int] | None],
        leaders: dict[tuple[str, int], int],
    ) -> tuple[Move, ...]:
        found = []
        for each in self.moves():
            place = (each.topic, each.partition)
            whole = (sizes.get(leaders.get(place, -1)) or {}).get(place, 0)
            parts = [(sizes.get(broker) or {}).get(place, 0) for broker in each.adding]
            progress = None
            if each.adding and whole:
                progress = round(min(1.0, sum(parts) / (whole * len(parts))), 3)
            found.append(
                Move(
                    each.topic, each.partition, each.replicas, each.adding, each.removing, progress
                )
            )
        return tuple(found)


def _total(sizes: dict[tuple[str, int], int] | None) -> int:
    return -1 if sizes is None else sum(sizes.values())


def survival(copies: int, min_insync: int, unclean: bool) -> str:
    """What a topic's settings mean when brokers are lost, in words."""
    if copies <= 1:
        return "one copy: it is lost with its disk"
    if min_insync > copies:
        return f"{copies} copies, and {min_insync} must have a record: nothing can be written"
    lost, spare = min_insync - 1, copies - min_insync
    kept = (
        "what is acknowledged may be on one broker alone"
        if lost == 0
        else f"what is acknowledged survives {_brokers(lost)}"
    )
    goes_on = f"writes go on without {_brokers(spare)}" if spare else "writes need all of them"
    risk = "; an unclean election may lose it all the same" if unclean else ""
    must = "1 must have" if min_insync == 1 else f"{min_insync} must have"
    return f"{copies} copies, {must} a record: {kept}, {goes_on}{risk}"


def _brokers(count: int) -> str:
    return f"{count} broker" if count == 1 else f"{count} brokers"


def parse_places(places: Iterable[str], state: ClusterState) -> list[tuple[str, int]]:
    """TOPIC or TOPIC/PARTITION, each of which must exist. Raises UsageError."""
    known = {topic.name: len(topic.partitions) for topic in state.topics}
    found: list[tuple[str, int]] = []
    for text in places:
        name, slash, number = text.rpartition("/")
        if not slash:
            name, number = text, ""
        if name not in known:
            raise UsageError(f'there is no topic "{name}"', hint="`tailrace topic list`")
        if not slash:
            found += [(name, each) for each in range(known[name])]
        elif number.isdigit() and int(number) < known[name]:
            found.append((name, int(number)))
        else:
            raise UsageError(f'"{name}" has no partition {number!r}', detail=f"it has {known[name]}")  # fmt: skip
    return found
