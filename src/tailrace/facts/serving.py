"""An owner's side of the connections: decisions and questions of other processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tailrace.errors import TailraceError, UsageError
from tailrace.facts import messages
from tailrace.facts.asking import Answer, Ask, Done
from tailrace.facts.declare import Events
from tailrace.facts.errors import OutcomeUnknownError, PartitionLostError, to_parts
from tailrace.facts.event_types import encode_json
from tailrace.facts.index import LONGEST_COMMAND_ID, check_stream
from tailrace.facts.links import Link
from tailrace.facts.owner import PartitionOwner
from tailrace.facts.partition import Partition
from tailrace.facts.query import Item, Query
from tailrace.facts.questions import When, events, read, state

OwnerOf = Callable[[int], PartitionOwner]
"""Raises PartitionLostError for a partition that is not ours."""


class LinkChannel:
    """Answers to the decisions that came over one link."""

    def __init__(self, link: Link, declared: Events[Any]) -> None:
        self._link = link
        self._declared = declared

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        self._link.send([self._frame(ask, answer) for ask, answer in answers])

    def _frame(self, ask: Ask, answer: Answer) -> bytes:
        try:
            return self._encoded(ask, answer)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            # The events are written; a state whose fields hold what they should not is told.
            told = OutcomeUnknownError(
                f"the state of {ask.stream!r} cannot be sent",
                detail=f"{type(error).__name__}: {error}",
                hint=f"command {ask.id} is carried out; correct evolve",
            )
            told.id = ask.id
            return messages.encode(messages.Failed(ask.ticket, to_parts(told)))

    def _encoded(self, ask: Ask, answer: Answer) -> bytes:
        if isinstance(answer, Done):
            by_class = self._declared.types.by_class
            told = [(by_class[type(each)].written, encode_json(each)) for each in answer.events]
            return messages.encode(
                messages.Decided(
                    ask.ticket,
                    told,
                    answer.version,
                    answer.position,
                    encode_json(answer.state),
                    answer.id,
                    answer.repeated,
                )
            )
        return messages.encode(messages.Failed(ask.ticket, to_parts(answer)))


class Serving:
    """Takes frames of links that others opened."""

    def __init__(self, declared: Events[Any], owner_of: OwnerOf) -> None:
        self._declared = declared
        self._owner_of = owner_of
        self._channels: dict[Link, LinkChannel] = {}
        # Old states are read from the log, which must not keep decisions waiting.
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="events questions")

    def close(self) -> None:
        self._readers.shutdown(cancel_futures=True)

    def on_closed(self, link: Link) -> None:
        self._channels.pop(link, None)

    def on_frame(self, link: Link, frame: bytes) -> None:
        said = messages.decode_said(frame)
        try:
            owner = self._owner_of(said.partition)
            if isinstance(said, messages.Decide):
                owner.ask(self._ask(link, said))
            else:
                self._readers.submit(self._look, link, said, owner.partition)
        except TailraceError as error:
            link.send([messages.encode(messages.Failed(said.number, to_parts(error)))])

    def _ask(self, link: Link, said: messages.Decide) -> Ask:
        key = check_stream(said.stream)
        if not said.id or len(said.id.encode()) > LONGEST_COMMAND_ID:
            raise UsageError(f"a command id has 1 to {LONGEST_COMMAND_ID} bytes")
        channel = self._channels.get(link)
        if channel is None:
            channel = self._channels[link] = LinkChannel(link, self._declared)
        command = None if said.command is None else self._declared.find_command(said.command)
        arguments = {} if command is None else command.convert(said.arguments, strict=False)
        return Ask(
            said.stream,
            key,
            said.id,
            channel,
            command,
            arguments,
            tuple(self._declared.types.decode(kind, value) for kind, value in said.events),
            said.expected,
            said.named,
            said.tried,
            said.actor,
            said.cause,
            said.correlation,
            None if said.unless is None else query_of(said.unless),
            said.after,
            said.number,
        )

    def _look(self, link: Link, said: messages.Look, partition: Partition[Any]) -> None:
        try:
            frame = messages.encode(partition.looked(lambda own: self._answer(said, own)))
        except TailraceError as error:
            frame = messages.encode(messages.Failed(said.number, to_parts(error)))
        except Exception as error:  # the partition was given up meanwhile: its index is closed
            lost = PartitionLostError("the partition was given up", detail=str(error))
            frame = messages.encode(messages.Failed(said.number, to_parts(lost)))
        link.send([frame])

    def _answer(self, said: messages.Look, partition: Partition[Any]) -> messages.Answered:
        match said.what:
            case "state":
                found = state(partition, said.stream, When(said.version, said.before))
                told = encode_json(found.value)
                return messages.State(said.number, told, found.version, found.position)
            case "events":
                some = events(partition, said.stream, said.first, said.last)
                return messages.Listed(said.number, some, -1)
            case "read":
                some, last = read(partition, query_of(said.query))
                return messages.Listed(said.number, some, last)
        raise UsageError(f"nobody can be asked for {said.what!r}")


PlainQuery = list[tuple[list[str], list[tuple[str, Any]]]]


def plain_query(query: Query) -> PlainQuery:
    return [(sorted(item.types), list(item.tags)) for item in query.items]


def query_of(plain: PlainQuery) -> Query:
    return Query(
        tuple(
            Item(frozenset(types), tuple((name, value) for name, value in tags))
            for types, tags in plain
        )
    )
