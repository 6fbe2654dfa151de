"""Moving partitions between brokers: planned, throttled if asked for, and cancelled.

A plan keeps the order of replicas: a newcomer takes the place of the one that leaves, so that a
preferred leader that stays remains preferred. The newcomer is the broker whose rack has no replica of the partition yet, then the one with
the fewest bytes after what is planned already. Kafka copies; a throttle holds it back, and must
be taken away afterwards: `throttled` does that at its end, also after an error. If the command that
set it may be killed, another process keeps watch (`keep_watch`) and takes it away when no
partition moves any more. One that is left all the same shows in `status`, and `clear_throttles` takes it away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from tailrace.client.admin import BROKER_RESOURCE, Admin, Place
from tailrace.client.errors import AuthenticationError, ClientError, RequestError
from tailrace.client.operations import (
    THROTTLED_RATES,
    THROTTLED_REPLICAS,
    ClusterState,
    Operations,
    Throttle,
    parse_places,
)
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import alter_partition_reassignments as messages
from tailrace.wire.messages import incremental_alter_configs as configs

SET, DELETE = 0, 1
WATCH_SECONDS = 1.0
LONGEST_WATCH_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A partition's replicas before and after, the preferred leader first."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    def document(self) -> dict[str, object]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "from": list(self.before),
            "to": list(self.after),
        }


Guard = Callable[[Sequence[Throttle]], AbstractContextManager[None]]


def plan_moves(
    state: ClusterState,
    sizes: Mapping[Place, int],
    *,
    places: Iterable[Place] | None = None,
    leaving: int | None = None,
    to: Sequence[int] | None = None,
) -> list[PlannedMove]:
    """Moves that take `leaving` off its partitions, or bring `places` to brokers of `to` alone.

    Raises UsageError for brokers that are not there, or too few of them.
    """
    up = {each.id: each for each in state.brokers if each.state == "up"}
    for broker in to or ():
        if broker not in up:
            raise UsageError(
                f"broker {broker} is not there to move to",
                detail=f"the brokers that are up: {', '.join(map(str, sorted(up)))}",
            )
    known = {each.id for each in state.brokers}
    if leaving is not None and leaving not in known:
        raise UsageError(
            f"there is no broker {leaving}", hint=f"there are {', '.join(map(str, sorted(known)))}"
        )
    allowed = [
        each for each in (sorted(up) if to is None else dict.fromkeys(to)) if each != leaving
    ]
    load = {each.id: max(0, each.bytes) for each in up.values()}
    held = {each.id: each.replicas for each in up.values()}
    chosen = None if places is None else set(places)
    moves = []
    for topic in state.topics:
        for each in topic.partitions:
            place = (topic.name, each.partition)
            if chosen is not None and place not in chosen:
                continue
            goes = {leaving} if leaving is not None else set(each.replicas) - set(allowed)
            if not goes & set(each.replicas):
                continue
            after = list(each.replicas)
            for position, replica in enumerate(each.replicas):
                if replica not in goes:
                    continue
                free = [broker for broker in allowed if broker not in after]
                if not free:
                    raise UsageError(
                        f"{topic.name}/{each.partition} has {len(each.replicas)} copies, and there "
                        f"are fewer brokers to hold them",
                        detail=f"brokers that may: {', '.join(map(str, allowed)) or 'none'}",
                        hint="name more brokers by --to",
                    )
                staying = {up[b].rack for b in after if b in up and b not in goes} - {None}
                newcomer = min(
                    free,
                    key=lambda b, staying=staying: (  # type: ignore[misc]
                        up[b].rack in staying,
                        load[b],
                        held[b],
                        b,
                    ),
                )
                after[position] = newcomer
                load[newcomer] += sizes.get(place, 0)
                held[newcomer] += 1
            moves.append(PlannedMove(*place, each.replicas, tuple(after)))
    return moves


def plan_or_move(
    admin: Admin,
    places: Iterable[str],
    *,
    leaving: int | None = None,
    to: Sequence[int] | None = None,
    execute: bool = False,
    throttle: int | None = None,
    guard: Guard = lambda throttles: nullcontext(),
    then: Callable[[set[Place]], None] = lambda moved: None,
) -> list[PlannedMove]:
    """The moves of TOPIC or TOPIC/PARTITION; begun if `execute`. `then` is called once they have
    begun, and the throttle lasts until it returns; `guard` is entered before it is set. A throttle
    that an earlier command left is taken away first."""
    operations = Operations(admin)
    state = operations.status()
    named = list(places)
    if leaving is None and (to is None or not named):
        raise UsageError(
            "what is to move, and where to?",
            hint="tailrace cluster move orders --to 1,2; tailrace cluster move --from 3",
        )
    sizes = {
        place: size
        for broker in state.brokers
        if broker.state == "up"
        for place, size in (operations.sizes(broker.id) or {}).items()
    }
    chosen = parse_places(named, state) if named else None
    moves = plan_moves(state, sizes, places=chosen, leaving=leaving, to=to)
    if not execute:
        return moves
    if state.left_throttles:
        clear_throttles(admin, state.throttles)
    if not moves:
        return moves
    held = [] if throttle is None else throttles_of(moves, throttle)
    with guard(held) if held else nullcontext(), throttled(admin, held):
        begin(admin, moves)
        then({(each.topic, each.partition) for each in moves})
    return moves


def plan_or_cancel(
    admin: Admin, places: Iterable[str], *, execute: bool = False
) -> list[PlannedMove]:
    """Moves on their way (of these topics, if named), as they would go back; stopped if
    `execute`. Throttles go with the last of them."""
    state = Operations(admin).status()
    named = list(places)
    chosen = set(parse_places(named, state)) if named else None
    found = [
        each for each in state.moves if chosen is None or (each.topic, each.partition) in chosen
    ]
    if execute:
        cancel(admin, [(each.topic, each.partition) for each in found])
        if len(found) == len(state.moves):
            clear_throttles(admin, state.throttles)
    return [
        PlannedMove(
            each.topic,
            each.partition,
            each.replicas,
            tuple(broker for broker in each.replicas if broker not in each.adding),
        )
        for each in found
    ]


def begin(admin: Admin, moves: Sequence[PlannedMove]) -> None:
    """Ask for the moves. If one is refused, those that were taken are cancelled, and Kafka's
    reason is raised."""
    try:
        _alter(admin, {(each.topic, each.partition): each.after for each in moves})
    except RequestError:
        cancel(admin, [(each.topic, each.partition) for each in moves])
        raise


def cancel(admin: Admin, places: Iterable[Place]) -> None:
    """Stop moves; partitions go back to where they were. One that is over already is no error."""
    _alter(admin, dict.fromkeys(places), passing=(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,))


def throttles_of(moves: Sequence[PlannedMove], bytes_a_second: int) -> list[Throttle]:
    """The settings that hold replication of these moves back."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    brokers: set[int] = set()
    for each in moves:
        brokers |= {*each.before, *each.after}
        leaders.setdefault(each.topic, []).extend(
            f"{each.partition}:{broker}" for broker in each.before
        )
        followers.setdefault(each.topic, []).extend(
            f"{each.partition}:{broker}" for broker in each.after if broker not in each.before
        )
    return [
        *(
            Throttle("topic", topic, name, ",".join(listed[topic]))
            for name, listed in zip(THROTTLED_REPLICAS, (leaders, followers), strict=True)
            for topic in listed
        ),
        *(
            Throttle("broker", str(broker), name, str(bytes_a_second))
            for broker in sorted(brokers)
            for name in THROTTLED_RATES
        ),
    ]


@contextmanager
def throttled(admin: Admin, throttles: Sequence[Throttle]) -> Iterator[None]:
    """Set throttles while this lasts."""
    try:
        for throttle in throttles:
            _set(admin, throttle, throttle.value)
        yield
    finally:
        clear_throttles(admin, throttles)


def keep_watch(admin: Admin, throttles: Sequence[Throttle], clock: Clock = SYSTEM) -> None:
    """Wait until no partition moves, and take the throttles away: while another move is on its way,
    it may have set the same. A log that does not answer is asked again, for a day; one that does
    not let us in is not."""
    operations = Operations(admin)
    until = clock.monotonic() + LONGEST_WATCH_SECONDS
    while clock.monotonic() < until:
        try:
            if not operations.moves():
                clear_throttles(admin, throttles)
                return
        except AuthenticationError:
            return
        except ClientError:
            pass  # a broker is away, perhaps with its throttle
        clock.sleep(WATCH_SECONDS)


def clear_throttles(admin: Admin, throttles: Iterable[Throttle]) -> None:
    """Take throttles away. Raises the first error after all were tried."""
    first: Exception | None = None
    for throttle in throttles:
        try:
            _set(admin, throttle, None)
        except Exception as error:
            first = first or error
    if first is not None:
        raise first


def _set(admin: Admin, throttle: Throttle, value: str | None) -> None:
    if throttle.kind == "topic":
        admin.alter_topic_config(throttle.name, {throttle.setting: value})
        return
    # A broker takes its own settings only.
    request = configs.IncrementalAlterConfigsRequest(
        [
            configs.AlterConfigsResource(
                BROKER_RESOURCE,
                throttle.name,
                [
                    configs.AlterableConfig(
                        throttle.setting, DELETE if value is None else SET, value
                    )
                ],
            )
        ]
    )
    api = APIS[ApiKey.INCREMENTAL_ALTER_CONFIGS]
    answer = admin.cluster.broker(int(throttle.name)).request(api, request)
    assert isinstance(answer, configs.IncrementalAlterConfigsResponse)
    (result,) = answer.responses
    if result.error_code != ErrorCode.NONE:
        raise RequestError.of(
            result.error_code,
            f"settings of broker {throttle.name}",
            detail=result.error_message or "",
        )


def _alter(
    admin: Admin,
    wanted: Mapping[Place, Sequence[int] | None],
    passing: tuple[ErrorCode, ...] = (),
) -> None:
    topics: dict[str, list[messages.ReassignablePartition]] = {}
    for (topic, partition), replicas in wanted.items():
        topics.setdefault(topic, []).append(
            messages.ReassignablePartition(partition, None if replicas is None else list(replicas))
        )
    if not topics:
        return
    answer = admin.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        messages.AlterPartitionReassignmentsRequest(
            30_000,
            topics=[messages.ReassignableTopic(name, each) for name, each in topics.items()],
        ),
        messages.AlterPartitionReassignmentsResponse,
    )
    if answer.error_code != ErrorCode.NONE:
        raise RequestError.of(
            answer.error_code, "moving partitions", detail=answer.error_message or ""
        )
    for found in answer.responses:
        for each in found.partitions:
            if each.error_code != ErrorCode.NONE and each.error_code not in passing:
                raise RequestError.of(
                    each.error_code,
                    f"moving {found.name}/{each.partition_index}",
                    detail=each.error_message or "",
                )
