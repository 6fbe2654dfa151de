"""The server-side protocol, without sockets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.broker.groups.assignors import Place
from tailrace.broker.groups.consumer_membership import Beat, BeatAnswer
from tailrace.broker.groups.coordinator import GroupCoordinator, GroupSettings
from tailrace.broker.groups.membership import Join, MembershipSettings
from tailrace.broker.groups.offsets import Commit, NewOffset
from tailrace.testing.fake_clock import FakeClock
from tailrace.testing.journal import MemoryJournal
from tailrace.wire.errors import ErrorCode


class Topics:
    """Topics by name; ids are made of the name."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def names(self) -> list[str]:
        return list(self.counts)

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        return (name.encode().ljust(16), self.counts[name]) if name in self.counts else None


@dataclass
class Client:
    """A member as clients are: says what it has when it has done what it was told, and
    everything anew after an answer was lost; what it had not done by then is void."""

    name: str
    topics: frozenset[str] = frozenset({"t"})
    instance: str | None = None
    pattern: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: frozenset[Place] = frozenset()
    told: frozenset[Place] = frozenset()
    done: bool = False
    anew: bool = False

    def first(self) -> Beat:
        return Beat(
            "g", self.name, 0, self.instance, rebalance_timeout_ms=60_000, topics=self.topics,
            pattern=self.pattern, assignor=self.assignor, owned=frozenset(), client_id="c",
        )  # fmt: skip

    def next(self) -> Beat:
        if self.epoch == 0:
            self.anew = self.done = False
            return self.first()
        if self.anew:
            self.anew, self.done, self.told = False, False, self.owned
            return replace(self.first(), epoch=self.epoch, owned=self.owned)
        owned = self.owned if self.done else None
        self.done = False
        return Beat("g", self.name, self.epoch, self.instance, owned=owned, client_id="c")

    def hear(self, answer: BeatAnswer) -> None:
        if answer.error in (
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ):
            self.epoch = 0
            self.owned = self.told = frozenset()
            return
        assert answer.error is ErrorCode.NONE, answer
        self.epoch = answer.epoch
        if answer.assigned is not None:
            self.told = answer.assigned

    def act(self) -> None:
        """Stop reading what was taken away, start what was given."""
        self.owned, self.done = self.told, True


@dataclass
class Board:
    """A coordinator and its clients."""

    topics: Topics = field(default_factory=lambda: Topics(t=6))
    clock: FakeClock = field(default_factory=FakeClock)
    journal: MemoryJournal = field(default_factory=MemoryJournal)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.groups = GroupCoordinator(
            GroupSettings(MembershipSettings(initial_rebalance_delay_ms=0)),
            self.clock,
            self.journal,
            catalog=self.topics,
        )

    def beat(self, beat: Beat) -> BeatAnswer:
        answers: list[BeatAnswer] = []
        self.groups.beat(beat, answers.append)
        return answers[0]

    def turn(self, *clients: Client) -> None:
        """Each client says something and does what it is told."""
        for one in clients:
            one.hear(self.beat(one.next()))
            one.act()

    def settle(self, *clients: Client) -> None:
        for _ in range(8):
            self.turn(*clients)

    def state(self) -> str:
        group = self.groups.group("g")
        assert group is not None
        assert group.consumer is not None
        return group.consumer.label

    def commit(self, member: str, epoch: int) -> ErrorCode:
        answers: list[dict[tuple[str, int], ErrorCode]] = []
        self.groups.commit(
            Commit("g", (NewOffset("t", 0, 5),), member, None, epoch), answers.append
        )
        return answers[0]["t", 0]


def indexes(client: Client) -> list[int]:
    return sorted(index for _, index in client.owned)


def test_first_member_gets_everything_at_once() -> None:
    board, one = Board(), Client("m1")
    answer = board.beat(one.first())
    assert (answer.error, answer.epoch) == (ErrorCode.NONE, 1)
    assert answer.assigned is not None
    assert len(answer.assigned) == 6
    one.hear(answer)
    one.act()
    assert board.beat(one.next()).assigned is None or board.state() == "Stable"


def test_partitions_are_handed_over_only_after_they_were_given_up() -> None:
    board, one, two = Board(), Client("m1"), Client("m2")
    board.settle(one)
    two.hear(board.beat(two.first()))
    assert two.told == frozenset()
    assert board.state() == "Reconciling"
    one.hear(board.beat(one.next()))
    assert len(one.told) == 3
    two.hear(board.beat(two.next()))
    assert two.told == frozenset(), "the first has not said that it stopped reading"
    one.act()
    one.hear(board.beat(one.next()))
    two.hear(board.beat(two.next()))
    assert len(two.told) == 3
    assert board.state() == "Stable"


def test_what_a_member_was_given_is_its_own_until_it_says_that_it_has_not_taken_it() -> None:
    """Hypothesis found two readers once, of a client that said "I have nothing" with its
    second request, before it had looked at what the first had given it, and then took it."""
    board, one, two = Board(), Client("m1"), Client("m2")
    one.act()  # on nothing, before it has joined: no word about what comes
    one.hear(board.beat(one.next()))
    assert len(one.told) == 6
    two.hear(board.beat(two.next()))
    board.beat(one.next())  # takes three of the six away; the answer is lost
    two.hear(board.beat(two.next()))
    assert two.told == frozenset(), "the first may take what it was given at any moment"
    one.act()
    one.anew = True
    one.hear(board.beat(one.next()))
    two.hear(board.beat(two.next()))
    assert two.told == frozenset(), "the first reads all six"
    board.settle(one, two)
    assert (len(one.owned), len(two.owned)) == (3, 3)


def test_a_member_that_says_anew_that_it_has_nothing_gives_up_what_it_was_given() -> None:
    board, one, two = Board(), Client("m1"), Client("m2")
    one.hear(board.beat(one.next()))
    two.hear(board.beat(two.next()))
    one.anew = True
    one.hear(board.beat(one.next()))
    two.hear(board.beat(two.next()))
    assert (one.owned, len(one.told), len(two.told)) == (frozenset(), 3, 3)


def test_members_come_and_go_and_the_rest_share() -> None:
    board, clients = Board(), [Client(f"m{n}") for n in range(3)]
    board.settle(*clients)
    assert [len(one.owned) for one in clients] == [2, 2, 2]
    board.beat(Beat("g", "m0", -1))
    board.settle(*clients[1:])
    assert [len(one.owned) for one in clients[1:]] == [3, 3]
    for one in clients[1:]:
        board.beat(Beat("g", one.name, -1))
    assert board.state() == "Empty"


def test_silent_member_is_dropped_after_its_session() -> None:
    board, one, two = Board(), Client("m1"), Client("m2")
    board.settle(one, two)
    for _ in range(10):
        board.clock.advance(5)
        board.groups.tick()
        board.turn(one)
    assert len(one.owned) == 6
    assert board.beat(two.next()).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_does_not_give_up_its_partitions_is_fenced() -> None:
    board, one, two = Board(), Client("m1"), Client("m2")
    board.settle(one)
    board.turn(two)
    for _ in range(14):
        board.clock.advance(5)
        board.groups.tick()
        board.turn(two)
        board.beat(one.next())  # alive, but it goes on reading
    assert len(two.owned) == 6
    assert board.beat(one.next()).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_new_partitions_and_topics_are_shared_out() -> None:
    board, one, two = Board(), Client("m1"), Client("m2", pattern="t.*")
    board.settle(one, two)
    board.topics.counts["t"] = 8
    board.settle(one, two)
    assert (len(one.owned), len(two.owned)) == (4, 4)
    board.topics.counts["tea"] = 2
    board.clock.advance(3)
    board.settle(one, two)
    assert {topic.strip() for topic, _ in two.owned} == {b"t", b"tea"}
    assert len(one.owned) + len(two.owned) == 10


def test_range_assignor_is_taken_when_members_ask_for_it() -> None:
    board = Board()
    one, two = Client("m1", assignor="range"), Client("m2", assignor="range")
    board.settle(one, two)
    assert (indexes(one), indexes(two)) == ([0, 1, 2], [3, 4, 5])


def test_static_member_returns_to_its_partitions_and_nobody_else_notices() -> None:
    board, one = Board(), Client("m1")
    two = Client("m2", instance="i")
    board.settle(one, two)
    share, epoch = two.owned, one.epoch
    twin = board.beat(Client("m3", instance="i").first())
    assert twin.error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert board.beat(Beat("g", "m2", -2, "i")).epoch == -2
    back = Client("m3", instance="i")
    board.settle(back, one)
    assert (back.owned, one.epoch) == (share, epoch)
    old = board.beat(two.next())
    assert old.error is ErrorCode.FENCED_INSTANCE_ID


def test_group_survives_a_restart_in_the_middle_of_a_handover() -> None:
    board, one, two = Board(), Client("m1"), Client("m2")
    board.settle(one)
    board.turn(two, one)
    board.restart()
    board.settle(one, two)
    assert (len(one.owned), len(two.owned)) == (3, 3)
    assert board.state() == "Stable"


def test_wrong_epochs_and_strangers_are_fenced() -> None:
    board, one = Board(), Client("m1")
    board.settle(one)
    future = Beat("g", "m1", one.epoch + 1, owned=one.owned)
    assert board.beat(future).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert board.beat(Beat("g", "m9", 3)).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert board.beat(Beat("nope", "m9", 3)).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert board.beat(Beat("g", "m9", -1)).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "beat",
    [
        Beat("", "m", 0, rebalance_timeout_ms=1, topics=frozenset(), owned=frozenset()),
        Beat("g", "", 0, rebalance_timeout_ms=1, topics=frozenset(), owned=frozenset()),
        Beat("g", "m", 0, topics=frozenset(), owned=frozenset()),
        Beat("g", "m", 0, rebalance_timeout_ms=1, owned=frozenset()),
        Beat("g", "m", 0, rebalance_timeout_ms=1, topics=frozenset()),
        Beat("g", "m", -2),
        Beat("g", "m", -7),
        Beat("g", "m", 1, ""),
    ],
)
def test_malformed_requests_are_refused(beat: Beat) -> None:
    assert Board().beat(beat).error is ErrorCode.INVALID_REQUEST


def test_unknown_assignors_and_bad_patterns_are_refused() -> None:
    board = Board()
    answer = board.beat(Client("m1", assignor="magic").first())
    assert answer.error is ErrorCode.UNSUPPORTED_ASSIGNOR
    answer = board.beat(Client("m1", pattern="(").first())
    assert answer.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert board.state() == "Empty"


def test_commits_need_the_members_epoch() -> None:
    board, one = Board(), Client("m1")
    board.settle(one)
    assert board.commit("m1", one.epoch) is ErrorCode.NONE
    assert board.commit("m1", one.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert board.commit("m9", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert board.commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert board.groups.check_fetch("g", "m1", one.epoch) is ErrorCode.NONE
    assert board.groups.check_fetch("g", "m1", 99) is ErrorCode.STALE_MEMBER_EPOCH
    assert board.groups.check_fetch("g", None, -1) is ErrorCode.NONE


def test_empty_group_changes_protocol_and_keeps_its_offsets() -> None:
    board, one = Board(), Client("m1")
    board.settle(one)
    board.commit("m1", one.epoch)
    answers: list[ErrorCode] = []
    join = Join(
        "g", "", None, "c", "/h", 10_000, 10_000, "consumer", (("range", b""),), id_required=False
    )
    board.groups.join(join, lambda answer: answers.append(answer.error))
    assert answers == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    board.beat(Beat("g", "m1", -1))
    members: list[str] = []
    board.groups.join(join, lambda answer: members.append(answer.member_id))
    assert board.groups.fetch("g", [("t", 0)])["t", 0][1].offset == 5
    board.groups.leave("g", [(members[0], None)])
    board.settle(Client("m2"))
    board.restart()
    assert board.state() == "Stable"
    assert board.groups.fetch("g", [("t", 0)])["t", 0][1].offset == 5


class Handover(RuleBasedStateMachine):
    """However members, messages and restarts interleave, no partition has two readers,
    and once all is quiet every partition has one."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Board(Topics(t=5, u=3))
        self.clients: list[Client] = []
        self.count = 0

    @precondition(lambda self: len(self.clients) < 5)
    @rule(topics=st.sampled_from([{"t"}, {"u"}, {"t", "u"}]))
    def join(self, topics: set[str]) -> None:
        self.count += 1
        self.clients.append(Client(f"m{self.count}", frozenset(topics)))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), lost=st.booleans())
    def beat(self, data: st.DataObject, lost: bool) -> None:
        one = data.draw(st.sampled_from(self.clients))
        answer = self.board.beat(one.next())
        if not lost:
            one.hear(answer)
        elif one.epoch > 0:
            one.anew = True

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.clients)).act()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.clients))
        self.clients.remove(one)
        self.board.beat(Beat("g", one.name, -1))

    @rule()
    def grow(self) -> None:
        self.board.topics.counts["t"] += 1

    @rule()
    def restart(self) -> None:
        self.board.restart()

    @invariant()
    def nobody_reads_what_another_reads(self) -> None:
        held = [place for one in self.clients for place in one.owned]
        assert len(held) == len(set(held))

    def teardown(self) -> None:
        self.board.clock.advance(3)
        self.board.settle(*self.clients)
        self.board.settle(*self.clients)
        self.nobody_reads_what_another_reads()
        wanted = frozenset().union(*(one.topics for one in self.clients))
        held = {place for one in self.clients for place in one.owned}
        assert len(held) == sum(self.board.topics.counts[topic] for topic in wanted)


TestHandover = Handover.TestCase
TestHandover.settings = settings(max_examples=50, stateful_step_count=40)
