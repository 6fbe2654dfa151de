"""A naive model of one classic group: plain lists, everything worked out anew each time.

It judges the real coordinator. Members share one protocol and one rebalance time-out,
the first rebalance is not delayed, and every member has a session time-out of its own,
so that no two deadlines fall together. Answers that come later are kept in `later`:
each is (number of the request, answer).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.wire.errors import ErrorCode

REBALANCE_SECONDS = 60.0
NEW_MEMBER_SECONDS = 300.0

Answer = tuple[object, ...]


@dataclass
class ModelMember:
    """A member, and the requests of it that wait for an answer."""

    name: str
    session: float
    due: float
    join: int | None = None
    sync: int | None = None
    new: bool = True
    asked_share: bool = False
    share: bytes = b""


@dataclass
class GroupModel:
    """Phases are Kafka's names of the group's states."""

    now: float = 0.0
    phase: str = "Empty"
    generation: int = 0
    members: list[ModelMember] = field(default_factory=list)
    leader: str | None = None
    join_due: float | None = None
    sync_due: float | None = None
    later: list[tuple[int, Answer]] = field(default_factory=list)

    def member(self, name: str) -> ModelMember | None:
        return next((one for one in self.members if one.name == name), None)

    # requests; each is numbered, and its answer turns up in `later`

    def join_new(self, number: int, name: str, session: float) -> None:
        """Someone new comes, under the name the coordinator gave it."""
        due = self.now + NEW_MEMBER_SECONDS
        self.members.append(ModelMember(name, session, due, join=number))
        if self.leader is None:
            self.leader = name
        self._rebalance()

    def join_again(self, number: int, name: str) -> None:
        one = self.member(name)
        if one is None:
            self.later.append((number, (ErrorCode.UNKNOWN_MEMBER_ID,)))
        elif self.phase == "CompletingRebalance" or (
            self.phase == "Stable" and self.leader != name
        ):
            self.later.append((number, self._joined(one)))
        else:
            if one.join is not None:
                self.later.append((one.join, (ErrorCode.REBALANCE_IN_PROGRESS,)))
            one.join = number
            one.due = float("inf")
            self._rebalance()

    def ask_share(
        self, number: int, name: str, generation: int, shares: dict[str, bytes] | None
    ) -> None:
        one = self.member(name)
        if one is None:
            self.later.append((number, (ErrorCode.UNKNOWN_MEMBER_ID, b"")))
        elif generation != self.generation:
            self.later.append((number, (ErrorCode.ILLEGAL_GENERATION, b"")))
        elif self.phase == "PreparingRebalance":
            self.later.append((number, (ErrorCode.REBALANCE_IN_PROGRESS, b"")))
        elif self.phase == "Stable":
            one.asked_share = True
            one.due = self.now + one.session
            if all(each.asked_share for each in self.members):
                self.sync_due = None
            self.later.append((number, (ErrorCode.NONE, one.share)))
        else:
            if one.sync is not None:
                self.later.append((one.sync, (ErrorCode.REBALANCE_IN_PROGRESS, b"")))
            one.sync = number
            one.asked_share = True
            if name == self.leader:
                self._share_out(shares or {})

    def beat(self, name: str, generation: int) -> ErrorCode:
        one = self.member(name)
        if one is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        one.due = self.now + one.session
        if self.phase == "PreparingRebalance":
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def commit(self, name: str, generation: int) -> ErrorCode:
        one = self.member(name)
        if one is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if self.phase == "CompletingRebalance":
            return ErrorCode.REBALANCE_IN_PROGRESS
        one.due = self.now + one.session
        return ErrorCode.NONE

    def leave(self, name: str) -> ErrorCode:
        if self.member(name) is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._drop(name)
        self._after_loss()
        return ErrorCode.NONE

    def advance(self, seconds: float) -> None:
        """Let time pass and do, one by one, what has become due; earliest first."""
        self.now += seconds
        while True:
            due = [(one.due, one.name) for one in self.members]
            if self.join_due is not None:
                due.append((self.join_due, "(join)"))
            if self.sync_due is not None:
                due.append((self.sync_due, "(sync)"))
            due = sorted(each for each in due if each[0] <= self.now)
            if not due:
                return
            _, what = due[0]
            if what == "(join)":
                self.join_due = None
                self._begin_generation()
            elif what == "(sync)":
                self.sync_due = None
                late = [one.name for one in self.members if not one.asked_share]
                for name in late:
                    self._drop(name)
                if late:
                    self._prepare()
            else:
                one = self.member(what)
                assert one is not None
                if not one.new and (one.join is not None or one.sync is not None):
                    one.due = float("inf")
                else:
                    self._drop(what)
                    self._after_loss()

    def restart(self) -> None:
        """What is in the log is the last settled generation: only settled groups are
        compared after a restart."""
        for one in self.members:
            one.due = self.now + one.session

    # how a rebalance goes

    def _rebalance(self) -> None:
        if self.phase != "PreparingRebalance":
            self._prepare()
        elif all(one.join is not None for one in self.members):
            self._begin_generation()

    def _after_loss(self) -> None:
        if self.phase in ("Stable", "CompletingRebalance"):
            self._prepare()
        elif self.phase == "PreparingRebalance" and all(
            one.join is not None for one in self.members
        ):
            self._begin_generation()

    def _prepare(self) -> None:
        first = self.phase == "Empty"
        for one in self.members:
            if self.phase == "CompletingRebalance":
                if one.sync is not None:
                    self.later.append((one.sync, (ErrorCode.REBALANCE_IN_PROGRESS, b"")))
                    one.sync = None
                if one.join is None:
                    one.due = self.now + one.session
            one.asked_share = False
        self.sync_due = None
        self.phase = "PreparingRebalance"
        self.join_due = self.now + REBALANCE_SECONDS
        if first or all(one.join is not None for one in self.members):
            self._begin_generation()

    def _begin_generation(self) -> None:
        for one in [each for each in self.members if each.join is None]:
            self._drop(one.name)
        self.join_due = None
        self.generation += 1
        if not self.members:
            self.phase, self.leader = "Empty", None
            return
        self.phase = "CompletingRebalance"
        self.sync_due = self.now + REBALANCE_SECONDS
        for one in self.members:
            one.new = False
            one.asked_share = False
            assert one.join is not None
            self.later.append((one.join, self._joined(one)))
            one.join = None
            one.due = self.now + one.session

    def _share_out(self, shares: dict[str, bytes]) -> None:
        self.phase = "Stable"
        for one in self.members:
            one.share = shares.get(one.name, b"")
            if one.sync is not None:
                one.due = self.now + one.session
                self.later.append((one.sync, (ErrorCode.NONE, one.share)))
                one.sync = None
        if all(one.asked_share for one in self.members):
            self.sync_due = None

    def _drop(self, name: str) -> None:
        one = self.member(name)
        assert one is not None
        self.members.remove(one)
        if self.leader == name:
            self.leader = self.members[0].name if self.members else None
        if one.join is not None:
            self.later.append((one.join, (ErrorCode.UNKNOWN_MEMBER_ID,)))
        if one.sync is not None:
            self.later.append((one.sync, (ErrorCode.UNKNOWN_MEMBER_ID, b"")))

    def _joined(self, one: ModelMember) -> Answer:
        seen = len(self.members) if one.name == self.leader else 0
        return (ErrorCode.NONE, self.generation, self.leader, seen)
