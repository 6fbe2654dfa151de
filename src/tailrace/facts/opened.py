"""`accounts.open(log)`: decisions, states and histories of one event topic.

    with accounts.open(tr.connect("localhost:9092")) as bank:
        done = bank.execute(withdraw, "acc-1", amount=50, expected=7)
        bank.state("acc-1").value

Every call may come from any thread. A command goes to the owner of its stream's partition,
whoever calls.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tailrace.client.log import LocalLog, Log
from tailrace.errors import TailraceError, UsageError
from tailrace.facts.asking import (
    Answer,
    Ask,
    Channel,
    Done,
    Fact,
    LoopChannel,
    Read,
    StateAt,
    Waiting,
)
from tailrace.facts.declare import Command, Events
from tailrace.facts.erasures import Erasures
from tailrace.facts.errors import EventsClosedError, OutcomeUnknownError
from tailrace.facts.index import LONGEST_COMMAND_ID, check_stream
from tailrace.facts.mistakes import first_mistake
from tailrace.facts.owners import LocalOwners, Owners
from tailrace.facts.query import Query
from tailrace.facts.questions import Moment, When, difference, fact, matched, when
from tailrace.facts.reading import EventReader
from tailrace.facts.sealing import FollowErasures, seals_for
from tailrace.facts.topic import ensure_topic
from tailrace.records.partitioner import partition_for
from tailrace.records.position import parse_position

if TYPE_CHECKING:
    from tailrace.facts.owner import PartitionOwner
    from tailrace.facts.partition import Partition
    from tailrace.facts.sealing import Keys

S = TypeVar("S")
MOST_STREAMS_KNOWN = 65_536
GRACE_SECONDS = 2.0
"""Whoever looks for an owner knows more than whoever waits: it may answer first."""


class OpenedEvents(Generic[S]):
    """See the module and `Events.open`."""

    def __init__(
        self,
        declared: Events[S],
        log: Log,
        *,
        owns: bool = True,
        index: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        timeout: float = 30.0,
        key: str | None = None,
    ) -> None:
        mistake = first_mistake(declared)
        if mistake is not None:
            raise mistake
        self.declared = declared
        self.log = log
        self._timeout = timeout
        self._closed = False
        # Hashing takes longer than looking a state up.
        self._partition_of = lru_cache(MOST_STREAMS_KNOWN)(
            lambda stream: partition_for(stream.encode(), declared.partitions)
        )
        self._ids = f"{secrets.token_hex(8)}-"
        self._numbers = itertools.count()
        self._channels: dict[int, tuple[asyncio.AbstractEventLoop, LoopChannel]] = {}
        ensure_topic(log, declared)
        found = log.topic(declared.name)
        assert found is not None
        topic_id = found.id.hex()
        self.index_directory = _root(log, index) / f"{declared.name}-{topic_id[:12]}"
        self._reader = EventReader(log, timeout)
        try:
            seals = self._reader.seals = seals_for(log, declared, key)
            book = self._reader.erasures = Erasures(log) if seals is None else seals.keys.book
            book.refresh()
            self._following = FollowErasures(
                book,
                None if seals is None else seals.keys,
                declared.name,
                lambda: self._owners.begin_again(),
            )
            self._owners = self._make_owners(topic_id, owns, listen)
        except BaseException:
            self._close_reader()
            raise
        self._following.start()
        _OPENED.append(weakref.ref(self))

    def _make_owners(self, topic_id: str, owns: bool, listen: str) -> Owners:
        if isinstance(self.log, LocalLog):
            if not owns:
                raise UsageError(
                    "a log in this process has nobody else who could own its partitions",
                    hint="leave owns=False out",
                )
            return LocalOwners(
                self.declared, self.log, self._reader, self.index_directory, topic_id, self._timeout
            )
        from tailrace.facts.group_owners import GroupOwners

        return GroupOwners(
            self.declared,
            self.log,
            self._reader,
            self.index_directory,
            topic_id,
            self._timeout,
            owns=owns,
            listen=listen,
        )

    def __repr__(self) -> str:
        return f"<{self.declared!r} on {self.log!r}>"

    def __enter__(self) -> OpenedEvents[S]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is on its way and let the partitions go. The log stays open."""
        if not self._closed:
            self._closed = True
            _OPENED[:] = [each for each in _OPENED if each() not in (self, None)]
            self._following.close()
            self._owners.close()
            self._close_reader()

    def _close_reader(self) -> None:
        if self._reader.seals is not None:
            self._reader.seals.keys.close()
        elif self._reader.erasures is not None:
            self._reader.erasures.close()
        self._reader.close()

    # Deciding ------------------------------------------------------------------

    def execute(
        self,
        command: str | Callable[..., Any],
        stream: str,
        /,
        *,
        expected: int | None = None,
        id: str | None = None,
        actor: str | None = None,
        cause: str | None = None,
        correlation: str | None = None,
        **arguments: Any,
    ) -> Done[S]:
        """Decide on a stream and wait until its events are durable.

        `expected` is the version the stream must have (0: new, None: any). Repeating a call
        with the same `id` is harmless: the first answer comes back. Raises Rejected,
        VersionConflictError, OwnerMissingError, OutcomeUnknownError and what else `errors` has.
        """
        found = self.declared.find_command(command)
        found.check(arguments)
        waiting = Waiting()
        ask = self._ask(stream, waiting, id, expected, actor, cause, correlation, found, arguments)
        return self._wait(ask, waiting)

    async def aexecute(
        self,
        command: str | Callable[..., Any],
        stream: str,
        /,
        *,
        expected: int | None = None,
        id: str | None = None,
        actor: str | None = None,
        cause: str | None = None,
        correlation: str | None = None,
        **arguments: Any,
    ) -> Done[S]:
        """`execute` for asyncio."""
        found = self.declared.find_command(command)
        found.check(arguments)
        loop = asyncio.get_running_loop()
        ask = self._ask(
            stream, self._channel(loop), id, expected, actor, cause, correlation, found, arguments
        )
        return await self._answered(ask, loop)

    async def _answered(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> Done[S]:
        future: asyncio.Future[Answer] = loop.create_future()
        ask.ticket = future
        timer = loop.call_later(self._timeout + GRACE_SECONDS, _give_up, future)
        try:
            self._owners.ask(self.partition_of(ask.stream), ask)
            answer = await future
        except TimeoutError:
            raise self._unknown(ask) from None
        finally:
            timer.cancel()
        return self._told(answer)

    def append(
        self,
        stream: str,
        events: Iterable[object],
        *,
        expected: int | None = None,
        id: str | None = None,
        actor: str | None = None,
        cause: str | None = None,
        correlation: str | None = None,
        unless: Query | None = None,
        after: str | None = None,
    ) -> Done[S]:
        """Write events as they are, all or none. `unless`: not if an event that matches the
        query stands behind the position `after`."""
        waiting = Waiting()
        ask = self._ask(stream, waiting, id, expected, actor, cause, correlation)
        return self._wait(self._appending(ask, events, unless, after), waiting)

    async def aappend(
        self,
        stream: str,
        events: Iterable[object],
        *,
        expected: int | None = None,
        id: str | None = None,
        actor: str | None = None,
        cause: str | None = None,
        correlation: str | None = None,
        unless: Query | None = None,
        after: str | None = None,
    ) -> Done[S]:
        """`append` for asyncio."""
        loop = asyncio.get_running_loop()
        ask = self._ask(stream, self._channel(loop), id, expected, actor, cause, correlation)
        return await self._answered(self._appending(ask, events, unless, after), loop)

    def start(
        self,
        channel: Channel,
        command: str | Callable[..., Any],
        stream: str,
        arguments: Mapping[str, Any],
        *,
        id: str | None = None,
        actor: str | None = None,
        cause: str | None = None,
        correlation: str | None = None,
        ticket: Any = None,
    ) -> None:
        """`execute` for whoever must not wait: `channel` gets the answer, with `ticket`."""
        found = self.declared.find_command(command)
        found.check(arguments)
        ask = self._ask(
            stream, channel, id, None, actor, cause, correlation, found, dict(arguments)
        )
        ask.ticket = ticket
        self._owners.ask(self.partition_of(stream), ask)

    def _appending(
        self, ask: Ask, events: Iterable[object], unless: Query | None, after: str | None
    ) -> Ask:
        ask.events = tuple(events)
        if unless is not None:
            ask.unless, ask.after = unless, self._after(unless, after)
        elif after is not None:
            raise UsageError("`after` says from where on `unless` looks", hint="give unless= too")
        return ask

    def _after(self, query: Query, after: str | None) -> int:
        self._one_partition()
        unknown = {name for item in query.items for name, _ in item.tags} - {*self.declared.tags}
        if unknown:
            raise UsageError(
                f"{self.declared.name!r} has no tag {', '.join(sorted(unknown))}",
                detail=f"its tags are {', '.join(self.declared.tags) or 'none'}",
            )
        if after is None:
            return -1
        position = parse_position(after)
        if position.name != f"{self.declared.name}/0":
            raise UsageError(f"{after} is no position of {self.declared.name!r}")
        return position.number

    def _one_partition(self) -> None:
        if not self.declared.tags or self.declared.partitions != 1:
            raise UsageError(
                f"conditions on {self.declared.name!r} cannot be checked",
                detail="A condition is checked by one owner, so it needs tags and one partition.",
                hint='tr.events(…, tags=("course", "student"), partitions=1)',
            )

    def _ask(
        self,
        stream: str,
        channel: Channel,
        id: str | None,
        expected: int | None,
        actor: str | None,
        cause: str | None,
        correlation: str | None,
        command: Command | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> Ask:
        if self._closed:
            raise EventsClosedError(f"{self.declared.name!r} is closed in this program")
        key = check_stream(stream)
        named = id is not None
        if id is None:
            id = f"{self._ids}{next(self._numbers)}"
        elif not id or len(id.encode()) > LONGEST_COMMAND_ID:
            raise UsageError(f"a command id has 1 to {LONGEST_COMMAND_ID} bytes")
        return Ask(
            stream,
            key,
            id,
            channel,
            command,
            {} if arguments is None else arguments,
            (),
            expected,
            named,
            False,
            actor,
            cause,
            correlation,
        )

    def _wait(self, ask: Ask, waiting: Waiting) -> Done[S]:
        self._owners.ask(self.partition_of(ask.stream), ask)
        answer = waiting.wait(self._timeout + GRACE_SECONDS)
        if answer is None:
            raise self._unknown(ask)
        return self._told(answer)

    def _told(self, answer: Answer) -> Done[S]:
        if isinstance(answer, TailraceError):
            raise answer
        return answer

    def _unknown(self, ask: Ask) -> OutcomeUnknownError:
        error = OutcomeUnknownError(
            f"no answer came within {self._timeout:g} s",
            detail=f"command {ask.id} on {ask.stream!r}",
            hint=f"repeat it with id={ask.id!r}: it is carried out once",
        )
        error.id = ask.id
        return error

    def _channel(self, loop: asyncio.AbstractEventLoop) -> LoopChannel:
        found = self._channels.get(id(loop))
        if found is None or found[0] is not loop:
            if len(self._channels) > 100:
                self._channels.clear()  # loops that are gone
            found = self._channels[id(loop)] = (loop, LoopChannel(loop))
        return found[1]

    # Looking -------------------------------------------------------------------

    def state(
        self, stream: str, *, version: int | None = None, at: Moment | None = None
    ) -> StateAt[S]:
        """The state of a stream: now, at a version, or at a time or position."""
        check_stream(stream)
        partition = self.partition_of(stream)
        return self._owners.state(partition, stream, self._when(partition, version, at))

    def diff(
        self, stream: str, before: int | Moment, after: int | Moment | None = None
    ) -> dict[str, tuple[Any, Any]]:
        """The fields that differ between two versions, times or positions: (then, now)."""
        return difference(self._at(stream, before), self._at(stream, after))

    def _at(self, stream: str, moment: int | Moment | None) -> S:
        if isinstance(moment, int):
            return self.state(stream, version=moment).value
        return self.state(stream, at=moment).value

    def history(self, stream: str, *, first: int = 1, last: int | None = None) -> list[Fact]:
        """The events of a stream in order, with everything known of them."""
        check_stream(stream)
        partition = self.partition_of(stream)
        stored = self._owners.events(partition, stream, first, last)
        return [fact(self.declared, partition, each) for each in stored]

    def read(self, query: Query) -> Read:
        """The events that match a query, over all streams of the one partition."""
        self._one_partition()
        stored, last = self._owners.read(0, query)
        return matched(self.declared, 0, stored, last)

    def _when(self, partition: int, version: int | None, at: Moment | None) -> When:
        return when(self.declared, partition, version, at, self._offset_for_time)

    def _offset_for_time(self, partition: int, moment: int) -> int:
        return self._reader.offset_for_time(self.declared.name, partition, moment)

    # Where ---------------------------------------------------------------------

    def partition_of(self, stream: str) -> int:
        """The partition a stream's events stand in."""
        return self._partition_of(stream)

    def owners(self) -> dict[int, str]:
        """Where the owner of each partition listens."""
        return self._owners.addresses()

    def working(self) -> list[PartitionOwner]:
        """What decides here: an owner for each partition of this process."""
        return self._owners.working()

    def owned(self) -> list[Partition[S]]:
        """The partitions this process decides for now."""
        return self._owners.owned()

    @property
    def keys(self) -> Keys | None:
        """The keys of the subjects of its personal fields; None if it has none."""
        return None if self._reader.seals is None else self._reader.seals.keys

    def sure(self, partition: Partition[S]) -> bool:
        """Whether nobody else can have taken over a partition that this process owned."""
        return self._owners.sure(partition)


_OPENED: list[weakref.ref[OpenedEvents[Any]]] = []


def opened_here(log: Log, topic: str) -> OpenedEvents[Any] | None:
    """The topic as this program opened it last on this log, if it is still open."""
    for each in reversed(_OPENED):
        found: OpenedEvents[Any] | None = each()
        if found is not None and found.log is log and found.declared.name == topic:
            return found
    return None


def _give_up(future: asyncio.Future[Answer]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


def _root(log: Log, index: str | Path | None) -> Path:
    """Where indexes rest: beside a log in this process, else in the user's cache."""
    if index is not None:
        return Path(index)
    if isinstance(log, LocalLog):
        return log.directory / ".events"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tailrace" / "events"
