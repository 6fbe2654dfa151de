"""Transactions, without sockets."""

from __future__ import annotations

import pytest

from broker.transactions.conftest import Desk
from tailrace.broker.transactions import records
from tailrace.broker.transactions.coordinator import Identity
from tailrace.broker.transactions.state import MAX_EPOCH, State, TransactionRecord
from tailrace.wire.errors import ErrorCode

A, B = ("a", 0), ("b", 0)
BOTH_FLOWS = pytest.mark.parametrize("version", [0, 2])


def begin(desk: Desk, who: Identity, value: object, *places: tuple[str, int], version: int) -> None:
    if version < 2:
        assert desk.add(who, *places) is ErrorCode.NONE
    for place in places:
        assert desk.produce(who, place, value, implicit=version >= 2) is ErrorCode.NONE


@BOTH_FLOWS
def test_committed_records_become_visible_together(desk: Desk, version: int) -> None:
    who = desk.init()
    assert (who.error, who.epoch) == (ErrorCode.NONE, 0)
    begin(desk, who, 1, A, B, version=version)
    assert (desk.state(), desk.committed(A)) == ("Ongoing", [])
    after = desk.end(who, version=version)
    assert after.error is ErrorCode.NONE
    assert after.epoch == (1 if version == 2 else 0)
    assert (desk.committed(A), desk.committed(B)) == ([1], [1])
    assert desk.state() == "CompleteCommit"


def test_the_places_of_one_request_join_with_one_record(desk: Desk) -> None:
    who = desk.init()
    places = [("a", number) for number in range(20)]
    before = desk.partitions.steps
    desk.coordinator.join("tx", who.producer_id, who.epoch, places)
    assert desk.partitions.steps == before + 1
    for place in places:
        assert (
            desk.coordinator.check_produce("tx", who.producer_id, who.epoch, place, implicit=False)
            is ErrorCode.NONE
        )
    assert desk.partitions.steps == before + 1


def test_a_fenced_producer_lets_nothing_join(desk: Desk) -> None:
    old, new = desk.init(), desk.init()
    desk.coordinator.join("tx", old.producer_id, old.epoch, [A, B])
    desk.coordinator.join("nobody", new.producer_id, new.epoch, [A, B])
    assert desk.state() == "Empty"
    assert desk.produce(old, A, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


@BOTH_FLOWS
def test_aborted_records_never_become_visible(desk: Desk, version: int) -> None:
    who = desk.init()
    begin(desk, who, 1, A, version=version)
    who = desk.end(who, commit=False, version=version)
    begin(desk, who, 2, A, version=version)
    desk.end(who, version=version)
    assert desk.committed(A) == [2]


@BOTH_FLOWS
def test_new_producer_fences_the_old_one_and_ends_what_it_left(desk: Desk, version: int) -> None:
    old = desk.init()
    begin(desk, old, 1, A, version=version)
    new = desk.init()
    assert new.epoch > old.epoch
    assert desk.produce(old, A, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert desk.add(old, A) is ErrorCode.PRODUCER_FENCED
    assert desk.end(old, version=version).error is ErrorCode.PRODUCER_FENCED
    assert desk.end(old, commit=False, version=version).error is ErrorCode.PRODUCER_FENCED
    begin(desk, new, 3, A, version=version)
    desk.end(new, version=version)
    assert desk.committed(A) == [3]


@BOTH_FLOWS
def test_transaction_left_open_is_aborted_after_its_timeout(desk: Desk, version: int) -> None:
    who = desk.init(timeout_ms=10_000)
    begin(desk, who, 1, A, version=version)
    desk.pass_time(5)
    assert desk.state() == "Ongoing"
    desk.pass_time(6)
    assert desk.state() == "CompleteAbort"
    assert desk.end(who, version=version).error is ErrorCode.PRODUCER_FENCED
    assert desk.produce(who, A, 2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_abandoned_transaction_still_times_out_after_a_restart(desk: Desk) -> None:
    who = desk.init(timeout_ms=10_000)
    desk.produce(who, A, 1)
    desk.start()
    assert desk.state() == "Ongoing"
    desk.pass_time(11)
    assert (desk.state(), desk.committed(A)) == ("CompleteAbort", [])


def test_transaction_goes_on_after_a_restart(desk: Desk) -> None:
    who = desk.init()
    desk.produce(who, A, 1)
    desk.start()
    assert desk.produce(who, A, 2) is ErrorCode.NONE
    assert desk.end(who).error is ErrorCode.NONE
    assert desk.committed(A) == [1, 2]


def test_repeated_end_gets_the_same_answer(desk: Desk) -> None:
    who = desk.init()
    desk.produce(who, A, 1)
    first = desk.end(who)
    assert desk.end(who) == first
    assert desk.end(who, commit=False).error is ErrorCode.INVALID_TXN_STATE
    desk.start()
    assert desk.end(who) == first


def test_repeated_end_of_the_older_flow(desk: Desk) -> None:
    who = desk.init()
    desk.add(who, A)
    assert desk.end(who, version=0).error is ErrorCode.NONE
    assert desk.end(who, version=0).error is ErrorCode.NONE
    assert desk.end(who, commit=False, version=0).error is ErrorCode.INVALID_TXN_STATE


def test_end_without_a_transaction(desk: Desk) -> None:
    who = desk.init()
    assert desk.end(who, version=0).error is ErrorCode.INVALID_TXN_STATE
    assert desk.end(who).error is ErrorCode.INVALID_TXN_STATE
    # Since KIP-890 an abort is allowed at any time and gives a new epoch.
    after = desk.end(who, commit=False)
    assert (after.error, after.epoch) == (ErrorCode.NONE, who.epoch + 1)
    assert desk.end(after, commit=False).epoch == who.epoch + 2


def test_late_batch_of_an_ended_transaction_is_refused(desk: Desk) -> None:
    who = desk.init()
    desk.produce(who, A, 1)
    after = desk.end(who)
    assert desk.produce(who, A, "late") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert desk.produce(after, A, 2) is ErrorCode.NONE


def test_batch_for_a_partition_that_was_not_added(desk: Desk) -> None:
    who = desk.init()
    assert desk.produce(who, A, 1, implicit=False) is ErrorCode.INVALID_TXN_STATE
    desk.add(who, A)
    assert desk.produce(who, B, 1, implicit=False) is ErrorCode.INVALID_TXN_STATE


def test_strangers_are_turned_away(desk: Desk) -> None:
    who = desk.init()
    stranger = Identity(ErrorCode.NONE, 7, 0)
    assert desk.produce(stranger, A, 1) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.produce(who, A, 1, name="nope") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.add(stranger, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.add(who, A, name="nope") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.end(stranger).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    future = Identity(ErrorCode.NONE, who.producer_id, who.epoch + 5)
    assert desk.add(future, A) is ErrorCode.PRODUCER_FENCED
    assert desk.end(future).error is ErrorCode.PRODUCER_FENCED


def test_bad_ids_and_timeouts_are_refused(desk: Desk) -> None:
    assert desk.init("").error is ErrorCode.INVALID_REQUEST
    assert desk.init(timeout_ms=0).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert desk.init(timeout_ms=900_001).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert desk.add(Identity(ErrorCode.NONE, 1, 0), A, name="") is ErrorCode.INVALID_REQUEST


def test_producer_can_raise_its_own_epoch(desk: Desk) -> None:
    who = desk.init()
    raised = desk.init(expected=(who.producer_id, who.epoch))
    assert raised.epoch == who.epoch + 1
    # The same question again gets the same answer: the first one may have been lost.
    assert desk.init(expected=(who.producer_id, who.epoch)) == raised
    desk.init()
    fenced = desk.init(expected=(who.producer_id, who.epoch))
    assert fenced.error is ErrorCode.PRODUCER_FENCED
    assert desk.init(expected=(7, 0)).error is ErrorCode.PRODUCER_FENCED


def exhaust(desk: Desk, who: Identity, epoch: int) -> Identity:
    """Let the producer have used up its epochs up to `epoch`."""
    transaction = desk.coordinator.transactions["tx"]
    transaction.record = TransactionRecord("tx", who.producer_id, epoch, 60_000)
    return Identity(ErrorCode.NONE, who.producer_id, epoch)


def test_producer_without_epochs_left_gets_a_new_id(desk: Desk) -> None:
    who = exhaust(desk, desk.init(), MAX_EPOCH - 1)
    new = desk.init()
    assert (new.producer_id != who.producer_id, new.epoch) == (True, 0)


def test_commit_with_the_last_epoch_gives_a_new_id(desk: Desk) -> None:
    who = exhaust(desk, desk.init(), MAX_EPOCH - 1)
    desk.produce(who, A, 1)
    after = desk.end(who)
    assert (after.producer_id != who.producer_id, after.epoch) == (True, 0)
    assert desk.committed(A) == [1]
    assert desk.end(who) == after
    desk.start()
    assert desk.end(who) == after


def test_producer_without_a_transactional_id_just_gets_one(desk: Desk) -> None:
    answers: list[Identity] = []
    for _ in range(2):
        desk.coordinator.init_producer_id(None, 0, -1, -1, answers.append)
    assert answers[0].producer_id != answers[1].producer_id
    assert [one.epoch for one in answers] == [0, 0]


def test_full_disk_keeps_the_transaction_open_and_a_later_commit_works(desk: Desk) -> None:
    who = desk.init()
    desk.produce(who, A, 1)
    desk.partitions.failing = OSError("disk full")
    assert desk.end(who).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.produce(who, B, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.partitions.failing = None
    assert desk.end(who).error is ErrorCode.NONE
    assert desk.committed(A) == [1]


def test_markers_that_could_not_be_written_are_written_later(desk: Desk) -> None:
    who = desk.init()
    desk.produce(who, A, 1)
    write, answers = desk.partitions.write_marker, []
    desk.partitions.write_marker = _refuse  # type: ignore[method-assign]
    desk.coordinator.end("tx", who.producer_id, who.epoch, True, answers.append, version=2)
    assert (desk.state(), answers) == ("PrepareCommit", [])
    desk.pass_time(2)
    assert desk.state() == "PrepareCommit"
    desk.partitions.write_marker = write  # type: ignore[method-assign]
    desk.pass_time(2)
    assert desk.state() == "CompleteCommit"
    assert answers == [Identity(ErrorCode.NONE, who.producer_id, 1)]
    assert desk.committed(A) == [1]


def _refuse(*given: object) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize("jump", [-400 * 24 * 3600, -3600, 3600, 400 * 24 * 3600])
def test_a_jump_of_the_wall_clock_neither_ends_nor_keeps_a_transaction(
    desk: Desk, jump: float
) -> None:
    who = desk.init(timeout_ms=60_000)
    assert desk.add(who, A) is ErrorCode.NONE
    desk.pass_time(30)
    desk.clock.jump(jump)
    desk.pass_time(25)
    assert desk.state() == "Ongoing"
    desk.pass_time(10)
    assert desk.state() == "CompleteAbort"


def test_a_start_with_another_wall_clock_gives_at_most_the_whole_time_out(desk: Desk) -> None:
    who = desk.init(timeout_ms=60_000)
    assert desk.add(who, A) is ErrorCode.NONE
    desk.clock.jump(-3600)
    desk.start()
    desk.pass_time(55)
    assert desk.state() == "Ongoing"
    desk.pass_time(10)
    assert desk.state() == "CompleteAbort"


def test_ids_unused_for_long_are_forgotten(desk: Desk) -> None:
    who = desk.init()
    desk.init("busy")
    desk.clock.advance(6 * 24 * 3600)
    desk.init("busy")
    desk.clock.advance(2 * 24 * 3600)
    desk.coordinator.tick()
    assert set(desk.coordinator.transactions) == {"busy"}
    desk.start()
    assert desk.add(who, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("state", list(State))
def test_state_records_round_trip(state: State) -> None:
    record = TransactionRecord(
        "tx",
        5,
        3,
        60_000,
        state,
        frozenset() if state is State.EMPTY else frozenset({("a", 0), ("a", 1), ("b", 0)}),
        1000,
        900,
        4,
        6,
        2,
    )
    assert records.decode_key(records.encode_key("tx")) == "tx"
    assert records.decode_value("tx", records.encode_value(record)) == record


def test_no_transactional_id_expires_while_the_clock_is_in_doubt(desk: Desk) -> None:
    desk.init()
    desk.clock_trusted = False
    desk.clock.advance(8 * 24 * 3600)
    desk.coordinator.tick()
    assert desk.state() == "Empty"
    desk.clock_trusted = True
    desk.clock.advance(24 * 3600)
    desk.coordinator.tick()
    assert "tx" not in desk.coordinator.transactions
