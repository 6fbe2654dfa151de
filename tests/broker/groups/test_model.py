"""The coordinator against a naive model, by random histories."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.groups.conftest import Table
from tailrace.broker.groups.group import GroupState, JoinAnswer, SyncAnswer
from tailrace.broker.groups.membership import Join, Sync
from tailrace.testing.group_model import Answer, GroupModel
from tailrace.wire.errors import ErrorCode


class GroupHistory(RuleBasedStateMachine):
    """Members come, work, fall silent and go; after every step both sides must agree."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table()
        self.model = GroupModel()
        self.numbers = 0
        self.names: list[str] = []
        self.answers: list[tuple[int, Answer]] = []

    # requests

    @rule()
    def someone_new_joins(self) -> None:
        # A fraction of its own keeps the deadlines of different members apart.
        session_ms = 10_000 + 7 * (len(self.names) + 1)
        number = self._number()
        name = f"client-{len(self.names) + 1}"
        self.names.append(name)
        self._join(number, "", session_ms)
        self.model.join_new(number, name, session_ms / 1000)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def someone_joins_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names))
        number = self._number()
        self._join(number, name, 10_000 + 7 * (self.names.index(name) + 1))
        self.model.join_again(number, name)

    @precondition(lambda self: self.names)
    @rule(data=st.data(), stale=st.integers(0, 4))
    def someone_asks_for_its_share(self, data: st.DataObject, stale: int) -> None:
        name = data.draw(st.sampled_from(self.names))
        number = self._number()
        generation = self.model.generation - (stale == 4)
        shares = (
            {one.name: f"{generation}:{one.name}".encode() for one in self.model.members}
            if name == self.model.leader
            else {}
        )

        def reply(answer: SyncAnswer) -> None:
            self.answers.append((number, (answer.error, answer.assignment)))

        self.table.groups.sync(
            Sync("g", name, None, generation, None, None, tuple(shares.items())), reply
        )
        self.model.ask_share(number, name, generation, shares)

    @precondition(lambda self: self.names)
    @rule(data=st.data(), stale=st.booleans())
    def someone_beats(self, data: st.DataObject, stale: bool) -> None:
        name = data.draw(st.sampled_from(self.names))
        generation = self.model.generation - stale
        assert self.table.heartbeat(name, generation) is self.model.beat(name, generation)

    @precondition(lambda self: self.names)
    @rule()
    def all_beat(self) -> None:
        for name in self.names:
            generation = self.model.generation
            assert self.table.heartbeat(name, generation) is self.model.beat(name, generation)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def someone_commits(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names))
        generation = self.model.generation
        found = self.table.commit(1, member=name, generation=generation)
        assert found is self.model.commit(name, generation)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def someone_leaves(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names))
        [(_, _, error)] = self.table.groups.leave("g", [(name, None)])[1]
        assert error is self.model.leave(name)

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.table.clock.advance(seconds)
        self.table.groups.tick()
        self.model.advance(seconds)

    @precondition(lambda self: self.model.phase == "Stable" and not self._waiting())
    @rule()
    def the_broker_restarts(self) -> None:
        self.table.restart()
        assert self.table.groups.group("g") is not None
        self.model.restart()
        # Who has asked for its share is not in the log: a restart lets everybody off.
        self.model.sync_due = None
        for one in self.model.members:
            one.asked_share = True

    # judgement

    @invariant()
    def both_agree(self) -> None:
        group = self.table.groups.group("g")
        state = GroupState.EMPTY if group is None else group.state
        assert state.value == self.model.phase
        assert sorted(self.answers) == sorted(self.model.later)
        if group is not None:
            assert group.generation == self.model.generation
            assert list(group.members) == [one.name for one in self.model.members]
            assert group.leader == self.model.leader

    # pieces

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _waiting(self) -> bool:
        return len(self.model.later) < self.numbers

    def _join(self, number: int, name: str, session_ms: int) -> None:
        def reply(answer: JoinAnswer) -> None:
            if answer.error is ErrorCode.NONE:
                self.answers.append(
                    (number, (answer.error, answer.generation, answer.leader, len(answer.members)))
                )
            else:
                self.answers.append((number, (answer.error,)))

        self.table.groups.join(
            Join(
                "g", name, None, "client", "/h", session_ms, 60_000, "consumer",
                (("range", b"s"),), id_required=False,
            ),
            reply,
        )  # fmt: skip


TestGroupHistory = GroupHistory.TestCase
TestGroupHistory.settings = settings(max_examples=60, stateful_step_count=40)
