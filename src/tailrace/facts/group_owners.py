"""The owners of a topic's partitions, in whichever processes they are.

A decision on a partition of our own goes to its thread, one on another's over a link to its
process. Where neither is at hand it waits with the *router*: a thread that looks the owner up in
the group, connects, and lets a member leave the group whose address refuses connections. A
decision keeps its id on all its ways, so it is carried out once.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from tailrace.client.errors import ClientError
from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.facts import messages
from tailrace.facts.asking import Ask, StateAt, deliver
from tailrace.facts.declare import Events
from tailrace.facts.errors import (
    CommandArgumentsError,
    EventsDifferError,
    OutcomeUnknownError,
    OwnerMissingError,
    PartitionLostError,
)
from tailrace.facts.links import Links
from tailrace.facts.membership import Directory, Member, Membership, Table, difference
from tailrace.facts.owner import PartitionOwner
from tailrace.facts.owners import make_owner
from tailrace.facts.partition import Partition
from tailrace.facts.peers import Peer
from tailrace.facts.query import Query
from tailrace.facts.questions import When, events, read, state
from tailrace.facts.reading import EventReader
from tailrace.facts.records import Stored
from tailrace.facts.serving import Serving, plain_query

if TYPE_CHECKING:
    from tailrace.client.log import Log

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS = 0.02
"""Between two looks into the group while somebody waits for an owner."""
SILENT_SECONDS = 1.0
CONNECT_SECONDS = 2.0
REJOIN_SECONDS = 1.0


class GroupOwners:
    """See the module. With `owns=False` only the routing."""

    def __init__(
        self,
        declared: Events[Any],
        log: Log,
        reader: EventReader,
        root: Path,
        topic_id: str,
        timeout: float,
        *,
        owns: bool,
        listen: str,
    ) -> None:
        self._declared = declared
        self._log = log
        self._reader = reader
        self._root = root
        self._topic_id = topic_id
        self._timeout = timeout
        self._lock = threading.Lock()
        self._local: dict[int, PartitionOwner] = {}
        self._mine: set[int] = set()
        self._table = Table()
        self._peers: dict[str, Peer] = {}
        self._unrouted: SimpleQueue[tuple[int, Ask] | None] = SimpleQueue()
        self._stopping = False
        self._lapsed = False
        """The group went on without us, and has not said yet what is ours: what we know of our
        partitions may be old, so nothing is answered from it."""
        self._rejoined_at = 0.0
        self._serving = Serving(declared, self._owner)
        self._links = Links(self._serving.on_frame, self._serving.on_closed)
        self._directory = Directory(log.cluster(timeout=timeout), declared.name)
        self._directory_lock = threading.Lock()
        self._membership: Membership | None = None
        self._router = threading.Thread(target=self._route, name="events router", daemon=True)
        self._router.start()
        try:
            self._refuse_difference()
            if owns:
                self._join(listen)
        except BaseException:
            self.close()
            raise

    def _refuse_difference(self) -> None:
        with self._directory_lock:
            # A log whose first group this is makes room for groups now.
            table, members = self._directory.look()
            self._directory.timeout = min(self._timeout, 2.0)
        self._table = table or self._table
        ours = self._declared.shape()
        for member in members:
            if member.declared and member.declared != ours:
                raise EventsDifferError(
                    f"this program declares {self._declared.name!r} differently from "
                    f"process {member.pid} at {member.address}",
                    detail=difference(member.declared, ours),
                    hint="deploy one declaration everywhere",
                )

    # Being a member ------------------------------------------------------------

    def _join(self, listen: str) -> None:
        self._links.listen(listen)
        self._membership = Membership(
            self._log.cluster(timeout=2.0),
            self._declared.name,
            self._declared.partitions,
            self._described,
            self._on_table,
            self._on_lapse,
        )
        self._membership.start()
        if not self._membership.joined.wait(self._timeout):
            raise OwnerMissingError(
                f"the group of {self._declared.name!r} does not answer",
                hint="`tailrace doctor` says whether the log can be reached",
            )
        if self._membership.failure is not None:
            raise self._membership.failure
        for owner in list(self._local.values()):
            owner.ready.wait()
            if owner.trouble is not None and not owner.lost and not owner.serving:
                raise owner.trouble

    def _described(self) -> Member:
        with self._lock:
            owned = sorted(n for n, owner in self._local.items() if not owner.lost)
        return Member(
            self._links.address,
            os.getpid(),
            self._links.secret,
            owned,
            self._declared.shape(),
        )

    def _on_lapse(self) -> None:
        self._lapsed = True

    def _may_answer(self) -> bool:
        membership = self._membership
        return membership is not None and membership.heard() and not self._lapsed

    def _on_table(self, table: Table) -> None:
        """What the group says: begin with what is ours, let go of what is not any more."""
        ours = self._links.address
        mine = {partition for partition, address in table.owners.items() if address == ours}
        with self._lock:
            self._table = table
            self._mine = mine
            # After a lapse every owner begins anew, the partition's index and fence with it.
            leaving = [
                self._local.pop(n) for n in list(self._local) if n not in mine or self._lapsed
            ]
            again = [n for n in mine if n not in self._local or self._local[n].lost]
        for owner in leaving:
            self._send_again(owner.number, owner.stop())
        self._lapsed = False
        for number in sorted(again):
            self._begin(number)

    def _begin(self, number: int) -> None:
        partition, writer = make_owner(
            self._declared,
            number,
            self._log,
            self._reader,
            self._root,
            self._topic_id,
            self._timeout,
        )
        owner = PartitionOwner(partition, writer, self._log.clock, self._on_lost, self._may_answer)
        with self._lock:
            self._local[number] = owner
        owner.start()

    def _on_lost(self, owner: PartitionOwner, left: list[Ask]) -> None:
        """Another one writes the partition. If the group says that it is ours, ask again."""
        with self._lock:
            if self._local.get(owner.number) is owner:
                del self._local[owner.number]
        self._send_again(owner.number, left)
        if self._membership is not None and not self._stopping:
            self._membership.kick()

    def _owner(self, number: int) -> PartitionOwner:
        owner = self._local.get(number)
        if owner is None or owner.lost:
            raise PartitionLostError(f"{self._declared.name}/{number} is not owned here")
        return owner

    def _send_again(self, number: int, asks: list[Ask]) -> None:
        """Decisions of this process go on to the next owner; others are told to look again."""
        for ask in asks:
            self._unrouted.put((number, ask))

    # Asking --------------------------------------------------------------------

    def ask(self, partition: int, ask: Ask) -> None:
        owner = self._local.get(partition)
        if owner is not None and not owner.lost:
            owner.ask(ask)
            return
        peer = self._peers.get(self._table.owners.get(partition, ""))
        if peer is not None and not peer.closed:
            self._hand_over(peer, partition, ask)
            return
        self._unrouted.put((partition, ask))

    def _hand_over(self, peer: Peer, partition: int, ask: Ask) -> None:
        try:
            peer.ask(partition, ask)
        except (TypeError, ValueError, OverflowError) as error:
            name = "append" if ask.command is None else f"the command {ask.command.name}"
            told = CommandArgumentsError(
                f"the arguments of {name} cannot be sent to the owner of {ask.stream!r}",
                detail=str(error),
                hint="use numbers, text, times, decimals, lists, dicts, dataclasses",
            )
            deliver([(ask, told)])

    def _on_unanswered(self, left: list[tuple[int, Ask]]) -> None:
        for each in left:
            self._unrouted.put(each)

    # The router ----------------------------------------------------------------

    def _route(self) -> None:
        waiting: list[tuple[int, Ask, float]] = []
        while not self._stopping:
            try:
                found = self._unrouted.get(timeout=LOOK_SECONDS if waiting else SILENT_SECONDS / 2)
                while found is not None:
                    until = SYSTEM.monotonic() + self._timeout
                    waiting.append((*found, until))
                    found = self._unrouted.get_nowait()
            except Empty:
                pass
            try:
                self._look_after_silent_peers()
                waiting = self._try(waiting)
            except Exception:
                log.exception("the router of an event topic stumbled")
        left = [(ask, self._nobody(number)) for number, ask, _ in waiting]
        while True:
            try:
                found = self._unrouted.get_nowait()
            except Empty:
                break
            if found is not None:
                left.append((found[1], self._nobody(found[0])))
        deliver(left)

    def _try(self, waiting: list[tuple[int, Ask, float]]) -> list[tuple[int, Ask, float]]:
        """What still waits after every decision with an owner was handed over."""
        if not waiting:
            return waiting
        self._refresh()
        for number in {each[0] for each in waiting}:
            self._reach(number)
        left: list[tuple[int, Ask, float]] = []
        now = SYSTEM.monotonic()
        for number, ask, until in waiting:
            owner = self._local.get(number)
            peer = self._peers.get(self._table.owners.get(number, ""))
            if owner is not None and not owner.lost:
                owner.ask(ask)
            elif peer is not None and not peer.closed:
                self._hand_over(peer, number, ask)
            elif now > until:
                error = self._unsure(ask) if ask.tried else self._nobody(number)
                deliver([(ask, error)])
            else:
                left.append((number, ask, until))
        return left

    def _refresh(self) -> None:
        try:
            with self._directory_lock:
                table, _ = self._directory.look()
        except ClientError:
            return
        if table is not None:
            self._table = table

    def _reach(self, number: int) -> None:
        """A link to the partition's owner, if it is another process that answers."""
        address = self._table.owners.get(number)
        if address is None or address == self._links.address:
            return
        peer = self._peers.get(address)
        if peer is not None and not peer.closed:
            return
        door = self._table.members.get(address)
        if door is None:
            return
        try:
            self._peers[address] = Peer(
                self._declared,
                self._links,
                address,
                door.secret,
                self._on_unanswered,
                CONNECT_SECONDS,
            )
        except ConnectionRefusedError:
            self._expel(door.id)
        except OSError as error:
            log.warning("an owner cannot be reached", extra={"address": address, "error": str(error)})  # fmt: skip

    def _expel(self, member_id: str) -> None:
        """Nobody listens where a member said it would: it is dead, and others can begin."""
        try:
            with self._directory_lock:
                self._directory.expel(member_id)
        except ClientError:
            return
        if self._membership is not None and SYSTEM.monotonic() - self._rejoined_at > REJOIN_SECONDS:
            self._rejoined_at = SYSTEM.monotonic()
            self._membership.kick()

    def _look_after_silent_peers(self) -> None:
        """Decisions that a stopped process keeps are asked of whoever owns them now."""
        silent = {
            (peer, number)
            for peer in list(self._peers.values())
            for number in peer.unanswered_for(SILENT_SECONDS)
        }
        if not silent:
            return
        self._refresh()
        for peer, number in silent:
            if self._table.owners.get(number) != peer.address:
                peer.take_back(number)

    def _nobody(self, number: int) -> TailraceError:
        return OwnerMissingError(
            f"nobody owns {self._declared.name}/{number}",
            detail=f"no owner was found within {self._timeout:g} s; nothing was written",
            hint="start one: `tailrace up`, or a program that opens the topic with owns=True",
        )

    def _unsure(self, ask: Ask) -> TailraceError:
        error = OutcomeUnknownError(
            f"the owner of {ask.stream!r} was lost before it answered",
            detail=f"command {ask.id}",
            hint=f"repeat it with id={ask.id!r}: it is carried out once",
        )
        error.id = ask.id
        return error

    # Looking -------------------------------------------------------------------

    def _looked(
        self,
        number: int,
        here: Callable[[Partition[Any]], T],
        there: Callable[[Peer], T],
    ) -> T:
        """An answer from the owner, wherever it is, waited for while it changes."""
        owner = self._local.get(number)
        if owner is not None and owner.serving and not owner.lost:
            try:
                return owner.partition.looked(here)
            except lmdb.Error:
                pass  # its index was given up, and is read again
        until = SYSTEM.monotonic() + self._timeout
        while True:
            owner = self._local.get(number)
            if owner is not None and not owner.lost:
                owner.ready.wait(max(0.0, until - SYSTEM.monotonic()))
                if owner.trouble is not None and not owner.lost:
                    raise owner.trouble
                if owner.serving and not self._lapsed:
                    try:
                        return owner.partition.looked(here)
                    except lmdb.Error:
                        pass  # its index was given up, and is read again
            else:
                peer = self._peers.get(self._table.owners.get(number, ""))
                if peer is not None and not peer.closed:
                    try:
                        return there(peer)
                    except (ConnectionError, TimeoutError, PartitionLostError):
                        pass
                with self._lock:
                    self._refresh()
                    self._reach(number)
            if SYSTEM.monotonic() > until:
                raise self._nobody(number)
            SYSTEM.sleep(LOOK_SECONDS)

    def state(self, partition: int, stream: str, when: When) -> StateAt[Any]:
        def there(peer: Peer) -> StateAt[Any]:
            found = peer.look(
                partition,
                "state",
                self._timeout,
                stream=stream,
                version=when.version,
                before=when.before,
            )
            assert isinstance(found, messages.State)
            return StateAt(peer.state(found.state), found.version, found.position)

        return self._looked(partition, lambda own: state(own, stream, when), there)

    def events(self, partition: int, stream: str, first: int, last: int | None) -> list[Stored]:
        def there(peer: Peer) -> list[Stored]:
            found = peer.look(
                partition, "events", self._timeout, stream=stream, first=first, last=last
            )
            assert isinstance(found, messages.Listed)
            return found.stored

        return self._looked(partition, lambda own: events(own, stream, first, last), there)

    def read(self, partition: int, query: Query) -> tuple[list[Stored], int]:
        def there(peer: Peer) -> tuple[list[Stored], int]:
            found = peer.look(partition, "read", self._timeout, query=plain_query(query))
            assert isinstance(found, messages.Listed)
            return found.stored, found.last

        return self._looked(partition, lambda own: read(own, query), there)

    def begin_again(self) -> None:
        for owner in list(self._local.values()):
            owner.begin_again()

    def addresses(self) -> dict[int, str]:
        self._refresh()
        return dict(self._table.owners)

    def owned(self) -> list[Partition[Any]]:
        return [owner.partition for owner in list(self._local.values()) if owner.serving]

    def sure(self, partition: Partition[Any]) -> bool:
        return self._may_answer() and any(each is partition for each in self.owned())

    def working(self) -> list[PartitionOwner]:
        return list(self._local.values())

    def close(self) -> None:
        # First out of the group, so that the next owners begin while we finish.
        if self._membership is not None:
            self._membership.stop()
        with self._lock:
            owners = list(self._local.values())
            self._local = {}
        for owner in owners:
            self._send_again(owner.number, owner.stop())
        self._stopping = True
        self._unrouted.put(None)
        self._router.join()
        self._serving.close()
        self._links.close()
        with self._directory_lock:
            self._directory.close()
