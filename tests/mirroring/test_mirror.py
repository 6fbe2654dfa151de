"""Topics of one log in another: equal, once, also when the mirror is killed at any step."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.client.batches import Pending
from tailrace.client.errors import RecordTooLargeError
from tailrace.client.fetcher import Fetcher
from tailrace.client.groups import Groups
from tailrace.client.log import connect
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SystemClock
from tailrace.errors import TailraceError, UsageError
from tailrace.mirroring import relay
from tailrace.mirroring.compare import compare
from tailrace.mirroring.errors import (
    MirrorFailedOverError,
    MirrorFencedError,
    MirrorLoopError,
    MirrorRecordsGoneError,
    MirrorSourceTruncatedError,
    MirrorTopicAnewError,
)
from tailrace.mirroring.fail_over import fail_over
from tailrace.mirroring.relay import Mirror
from tailrace.mirroring.rows import TOPIC, MirrorRows, Run, add_runs, read_rows
from tailrace.mirroring.translate import translate, translate_back
from tailrace.records.batch import (
    Record,
    check_batch,
    decode_records,
    encode_columns,
    iterate_batches,
)


class Logs(NamedTuple):
    source: str
    target: str


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    with (
        BrokerThread(tmp_path / "source", durable=False) as source,
        BrokerThread(tmp_path / "target", durable=False) as target,
    ):
        yield Logs(source.address, target.address)


def _write(address: str, topic: str, count: int, seed: int = 0) -> None:
    """Transactions, some aborted, of several codecs, with keys, headers and no values."""
    chance = random.Random(seed)
    for codec in ("none", "lz4", "zstd", "gzip"):
        with TransactionalWriter(address, f"w-{codec}", compression=codec) as writer:
            writer.init()
            for number in range(count // 4):
                writer.send(
                    topic,
                    chance.randrange(2),
                    b"k%d" % chance.randrange(9),
                    None if chance.random() < 0.1 else chance.randbytes(40),
                    {"trace": b"%d" % number} if chance.random() < 0.3 else (),
                    1_700_000_000_000 + number,
                )
                if chance.random() < 0.2:
                    writer.abort() if chance.random() < 0.3 else writer.commit()
            writer.commit()


def _make(logs: Logs, topic: str = "orders", **config: str) -> None:
    with Admin(logs.source) as admin:
        admin.create_topic(topic, 2, {"retention.ms": "-1", **config})


def _read(address: str, topic: str, partition: int) -> list[Record]:
    with Fetcher(address) as fetcher:
        return list(fetcher.read_all(topic, partition))


def _content(records: list[Record]) -> list[tuple[object, ...]]:
    return [(each.key, each.value, each.timestamp, tuple(each.headers)) for each in records]


def _rows(logs: Logs, name: str = "m") -> MirrorRows:
    with Admin(logs.target) as admin, Fetcher(logs.target) as fetcher:
        return read_rows(admin, fetcher)[name]


def _assert_equal(logs: Logs, topic: str = "orders", target: str = "orders") -> None:
    """Both sides hold the same records, and every offset is translated to its record."""
    rows = _rows(logs)
    for partition in range(2):
        here, there = _read(logs.source, topic, partition), _read(logs.target, target, partition)
        assert _content(here) == _content(there)
        runs = rows.runs.get((topic, partition), [])
        for ours, theirs in zip(here, there, strict=True):
            assert translate(runs, ours.offset, -1) == theirs.offset
            assert translate_back(runs, theirs.offset, -1) == ours.offset


def _mirror(logs: Logs, **settings: object) -> Mirror:
    return Mirror("m", logs.source, logs.target, topics="orders|carts", **settings)  # type: ignore[arg-type]


def test_committed_records_are_there_with_keys_times_headers_and_codec(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 200)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        _assert_equal(logs)
        _write(logs.source, "orders", 80, seed=1)
        mirror.run_until_caught_up()
        assert sum(mirror.lag().values()) == 0
    _assert_equal(logs)
    with Admin(logs.target) as admin:
        assert admin.topic_config("orders")["retention.ms"].value == "-1"


def test_new_topics_and_partitions_follow(logs: Logs) -> None:
    _make(logs)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        with Admin(logs.source) as admin:
            admin.add_partitions("orders", 3)
            admin.create_topic("carts", 1)
            admin.create_topic("others", 1)
        with connect(logs.source) as log, log.producer() as producer:
            producer.send("orders", value=b"x", partition=2)
            producer.send("carts", value=b"y")
            producer.send("others", value=b"z")
        mirror._looked_at = -1e9
        mirror.run_until_caught_up()
    assert [each.value for each in _read(logs.target, "orders", 2)] == [b"x"]
    assert [each.value for each in _read(logs.target, "carts", 0)] == [b"y"]
    with Admin(logs.target) as admin:
        assert admin.describe_topic("others") is None


def test_names_may_have_a_prefix(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 20)
    with _mirror(logs, names="prefix", source_name="ams") as mirror:
        mirror.run_until_caught_up()
    _assert_equal(logs, target="ams.orders")


class _Killed(BaseException):
    pass


def _run_and_die(logs: Logs, at: int) -> bool:
    """A mirror that is killed before its `at`-th step; False if it was done before. Nothing is
    aborted or closed as a process that ends by itself would."""
    steps = [0]

    def step(name: str) -> None:
        steps[0] += 1
        if steps[0] == at:
            raise _Killed(name)

    mirror: Mirror | None = None
    try:
        mirror = _mirror(logs, step=step)
        mirror.run_until_caught_up()
    except _Killed:
        if mirror is not None:
            mirror._writer.cluster.close()
            mirror.close()
        return True
    mirror.close()
    return False


def test_a_mirror_that_is_killed_at_any_step_goes_on_without_loss_or_repeat(logs: Logs) -> None:
    _make(logs)
    at = 1
    while True:
        _write(logs.source, "orders", 12, seed=at)
        if not _run_and_die(logs, at):
            break
        at += 1
    assert at > 4  # init, fetch, flush, commit, committed
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    _assert_equal(logs)


def test_many_rows_of_runs_become_few_and_translate_as_before(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "MOST_RUN_ROWS", 4)
    monkeypatch.setattr(relay, "RUNS_IN_A_ROW", 3)
    _make(logs)
    killed = 0
    for number in range(14):
        _write(logs.source, "orders", 12, seed=number)
        killed += _run_and_die(logs, at=2 + number % 7)
    assert 0 < killed < 14
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        kept = mirror.rows
    _assert_equal(logs)
    rows = _rows(logs)
    assert rows.runs == kept.runs
    assert rows.numbers[0].first > 0
    assert (rows.numbers[0].first, rows.numbers[0].next) == (
        kept.numbers[0].first,
        kept.numbers[0].next,
    )


def test_the_newest_mirror_of_a_name_fences_the_one_before(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 20)
    with _mirror(logs) as first, _mirror(logs) as second:
        with pytest.raises(MirrorFencedError):
            first.run_until_caught_up()
        second.run_until_caught_up()
    _assert_equal(logs)


def test_rows_behind_an_open_transaction_of_another_mirror_are_waited_for(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 20)

    class Ending(SystemClock):
        def sleep(self, seconds: float) -> None:
            while is_open:
                is_open.pop().commit()
            super().sleep(seconds)

    with TransactionalWriter(logs.target, "other") as other:
        other.init()
        with _mirror(logs) as mirror:
            other.send(TOPIC, 0, b"owner/77", None)
            other.flush()
            mirror.run_until_caught_up()
        is_open = [other]
        with _mirror(logs, clock=Ending()) as mirror:
            assert mirror.rows.records
            mirror.run_until_caught_up()
    _assert_equal(logs)


def test_a_mirror_that_was_failed_over_is_fenced_and_never_starts_again(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 20)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        fail_over("m", logs.target)
        _write(logs.source, "orders", 20, seed=1)
        with pytest.raises(MirrorFencedError):
            mirror.run_until_caught_up()
    with pytest.raises(MirrorFailedOverError):
        _mirror(logs)
    with pytest.raises(UsageError, match='no mirror "n"'):
        fail_over("n", logs.target)


def test_a_loop_is_refused(logs: Logs) -> None:
    _make(logs)
    with pytest.raises(MirrorLoopError, match="one log"):
        Mirror("m", logs.source, logs.source, topics="orders")
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        with pytest.raises(MirrorLoopError, match="brings orders here"):
            Mirror("back", logs.target, logs.source, topics=".*")


def test_what_retention_removed_is_not_passed_over(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        mirror.finish()
        reached = mirror.rows.positions["orders", 0].next
    _write(logs.source, "orders", 40, seed=1)
    with Admin(logs.source) as admin:
        end = admin.end_offsets([("orders", 0)])["orders", 0]
        admin.delete_records({("orders", 0): end - 1})
    with _mirror(logs) as mirror, pytest.raises(MirrorRecordsGoneError) as lost:
        mirror.run_until_caught_up()
    assert f"offset {reached}" in lost.value.message
    assert f"to {end - 2}" in lost.value.detail


def test_a_topic_that_was_made_again_is_not_mixed_with_the_old_one(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 20)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        with Admin(logs.source) as admin:
            admin.delete_topic("orders")
        _make(logs)
        mirror._looked_at = -1e9
        with pytest.raises(MirrorTopicAnewError, match="made again"):
            mirror.run_until_caught_up()


def test_a_source_that_was_killed_goes_on_under_a_new_epoch(tmp_path: Path) -> None:
    with BrokerThread(tmp_path / "b", durable=False) as target:
        first = BrokerProcess(tmp_path / "a")
        logs = Logs(first.address, target.address)
        try:
            _make(logs)
            _write(logs.source, "orders", 40)
            with _mirror(logs) as mirror:
                mirror.run_until_caught_up()
                first.kill()
                with BrokerProcess(tmp_path / "a", listen=logs.source):
                    _write(logs.source, "orders", 40, seed=1)
                    mirror.run_until_caught_up()
                    epochs = {each.epoch for each in mirror.rows.positions.values()}
                    assert epochs == {1}
                    _assert_equal(logs)
        finally:
            first.kill()


def test_a_source_that_was_cut_back_is_not_mixed_with_what_was_there(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        place = ("orders", 0)
        known = mirror.rows.positions[place]
        # As if an unclean election had lost the epoch under which the last records came.
        mirror.rows.positions[place] = replace(known, epoch=known.epoch + 3)
        _write(logs.source, "orders", 40, seed=1)
        with pytest.raises(MirrorSourceTruncatedError, match="was cut back"):
            mirror.run_until_caught_up()


def test_a_batch_that_is_too_large_for_the_target_is_cut(logs: Logs) -> None:
    _make(logs)
    with Admin(logs.target) as admin:
        admin.create_topic("orders", 2, {"max.message.bytes": "2000"})
    with TransactionalWriter(logs.source, "w") as writer:
        writer.init()
        for number in range(40):
            writer.send("orders", 0, None, bytes([number]) * 300)
        writer.commit()
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    _assert_equal(logs)


def test_a_record_that_is_too_large_for_the_target_stops_the_mirror(logs: Logs) -> None:
    _make(logs)
    with Admin(logs.target) as admin:
        admin.create_topic("orders", 2, {"max.message.bytes": "2000"})
    with connect(logs.source) as log, log.producer() as producer:
        producer.send("orders", value=bytes(3000), partition=0)
    with _mirror(logs) as mirror, pytest.raises(TailraceError, match="too large"):
        mirror.run_until_caught_up()


def test_a_row_of_its_own_that_is_too_large_ends_the_mirror(logs: Logs) -> None:
    _make(logs)
    with Admin(logs.target) as admin, _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        _write(logs.source, "orders", 40)
        admin.alter_topic_config(TOPIC, {"max.message.bytes": "120"})
        turns = iter([False, False, False, True])
        with pytest.raises(RecordTooLargeError, match=TOPIC):
            mirror.run(lambda: next(turns))


def test_the_runs_of_a_cycle_are_shared_among_rows(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "RUNS_IN_A_ROW", 3)
    _make(logs)
    for number in range(8):  # the end of each transaction is a gap
        with TransactionalWriter(logs.source, "w") as writer:
            writer.init()
            for partition in range(2):
                writer.send("orders", partition, None, b"%d" % number)
            writer.commit()
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        numbers = mirror.rows.numbers_of(0)
        assert numbers.next == _rows(logs).numbers[0].next >= 6
    assert [len(runs) for runs in _rows(logs).runs.values()] == [8, 8]
    _assert_equal(logs)


def test_times_of_the_log_are_kept(logs: Logs) -> None:
    """A batch whose log set its times is opened: the target would take its producers' times."""
    _make(logs, **{"message.timestamp.type": "LogAppendTime"})
    with connect(logs.source) as log, log.producer() as producer:
        producer.send("orders", value=b"x", partition=0, timestamp=1_000)
    with Admin(logs.target) as admin:
        admin.create_topic("orders", 2, {})
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    _assert_equal(logs)


def test_batches_with_gaps_are_opened(tmp_path: Path) -> None:
    """The source's cleaner left some records of a batch; no log takes such a batch as it is."""
    with (
        BrokerThread(tmp_path / "a", durable=False, settings={"log.cleaner.backoff.ms": "20"}) as a,
        BrokerThread(tmp_path / "b", durable=False) as b,
    ):
        logs = Logs(a.address, b.address)
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        with Admin(logs.source) as admin:
            admin.create_topic("orders", 1, {**compacted, "internal.segment.bytes": "14000"})
        with Admin(logs.target) as admin:
            admin.create_topic("orders", 1)
        with connect(logs.source) as log, log.producer() as producer:
            for number in range(300):
                producer.send("orders", key=b"k%d" % (number % 7), value=bytes(300), partition=0)
                if number % 10 == 9:
                    producer.flush()
        until = time.monotonic() + 60
        with Fetcher(logs.source) as source, Fetcher(logs.target) as target:
            while True:
                batches = iterate_batches(source.ask("orders", 0, 0).buffer)
                if any(each.record_count <= each.last_offset_delta for _, each in batches):
                    break
                assert time.monotonic() < until
                time.sleep(0.01)
            with _mirror(logs) as mirror:
                mirror.run_until_caught_up()
            found = compare(_rows(logs), source, target)
        assert found.differences == ()
        assert found.compared > 0


def test_a_difference_is_found_with_its_offsets(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    rows = _rows(logs)
    with Fetcher(logs.source) as source, Fetcher(logs.target) as target:
        found = compare(rows, source, target)
        assert (found.differences, found.gone) == ((), 0)
        (first, at, count, _), *_ = rows.runs["orders", 0]
        assert count > 3
        rows.runs["orders", 0] = [Run(first, at + 1, count - 1)]  # as if one record was missing
        found = compare(rows, source, target)
    assert found.differences[0].first == first
    assert (found.differences[0].topic, found.differences[0].partition) == ("orders", 0)


def test_what_retention_removed_on_one_side_is_no_difference(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    here, there = _read(logs.source, "orders", 0), _read(logs.target, "orders", 0)
    with Admin(logs.source) as admin:
        admin.delete_records({("orders", 0): here[2].offset})
    with Admin(logs.target) as admin:
        admin.delete_records({("orders", 0): there[5].offset})
    with Fetcher(logs.source) as source, Fetcher(logs.target) as target:
        found = compare(_rows(logs), source, target)
    assert found.differences == ()
    assert found.gone == 5


def _stored(address: str, group: str) -> dict[tuple[str, int], int]:
    with Admin(address) as admin:
        return Groups(admin).offsets(group)


def test_groups_go_on_at_the_target_with_the_record_they_had_not_read(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    here = _read(logs.source, "orders", 1)
    with Admin(logs.source) as admin:
        end = admin.end_offsets([("orders", 0)])["orders", 0]
        for group in ("billing", "stranger"):
            Groups(admin).commit(group, {("orders", 1): here[4].offset, ("orders", 0): end})
    with _mirror(logs, groups="billing|mail") as mirror:
        mirror.run_until_caught_up()
        there = _read(logs.target, "orders", 1)
        stored = _stored(logs.target, "billing")
        assert stored["orders", 1] == there[4].offset
        assert stored["orders", 0] == _read(logs.target, "orders", 0)[-1].offset + 1
        assert _stored(logs.target, "stranger") == {}
        # It goes forward with the source, and never back.
        with Admin(logs.source) as admin:
            Groups(admin).commit("billing", {("orders", 1): here[6].offset})
        mirror.run_until_caught_up()
        assert _stored(logs.target, "billing")["orders", 1] == there[6].offset
        with Admin(logs.source) as admin:
            Groups(admin).commit("billing", {("orders", 1): here[2].offset})
        mirror.run_until_caught_up()
        assert _stored(logs.target, "billing")["orders", 1] == there[6].offset


def test_a_group_with_members_at_the_target_is_left_alone(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    with _mirror(logs, groups=".*") as mirror:
        mirror.run_until_caught_up()
        with Admin(logs.source) as admin:
            Groups(admin).commit("billing", {("orders", 1): 3})
        settings = {"enable_auto_commit": False, "session_timeout_ms": 60_000}
        with (
            connect(logs.target) as log,
            log.consumer("billing", ["orders"], **settings) as consumer,
        ):
            until = time.monotonic() + 60
            while not consumer.assignment():
                consumer.poll(0.1)
                assert time.monotonic() < until
            mirror.run_until_caught_up()
            assert _stored(logs.target, "billing") == {}
        mirror.run_until_caught_up()
        assert set(_stored(logs.target, "billing")) == {("orders", 1)}


# Pieces --------------------------------------------------------------------------


def test_a_batch_is_passed_through_with_another_head() -> None:
    values = [b"a", None, b"c" * 500]
    batch = encode_columns([b"k"] * 3, values, [5, 6, 7], base_offset=90, compression="zstd", producer_id=4, producer_epoch=1, base_sequence=8)  # fmt: skip
    pending = Pending()
    pending.add_batch(bytes(batch))
    assert pending.take(10, 100) == 3
    made = pending.encode(compression="none", producer_id=77, producer_epoch=2, base_sequence=30, transactional=True)  # fmt: skip
    header = check_batch(made)
    assert (header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence) == (0, 77, 2, 30)  # fmt: skip
    assert header.transactional
    assert header.codec == check_batch(batch).codec
    assert made[61:] == batch[61:]
    assert [each.value for each in decode_records(made)] == values
    assert pending.done() == 3
    assert len(pending) == pending.size_bytes == 0


RUNS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)), max_size=8)


@given(RUNS, st.integers(0, 60))
def test_offsets_are_translated_as_a_list_of_pairs_says(steps: list[tuple[int, int, int]], offset: int) -> None:  # fmt: skip
    pairs: list[tuple[int, int]] = []
    runs: dict[tuple[str, int], list[Run]] = {}
    source = target = 0
    for skipped, marked, count in steps:
        source, target = source + skipped, target + marked
        add_runs(runs, {("t", 0): [Run(source, target, count)]})
        pairs += [(source + number, target + number) for number in range(count)]
        source, target = source + count, target + count
    known = runs.get(("t", 0), [])
    there = [ours for theirs, ours in pairs if theirs >= offset]
    assert translate(known, offset, -7) == (there[0] if there else -7)
    back = [theirs for theirs, ours in pairs if ours >= offset]
    assert translate_back(known, offset, -7) == (back[0] if back else -7)


# The command ---------------------------------------------------------------------


def _command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["mirror", *arguments])
    if isinstance(result.exception, UsageError):
        return 2, result.exception.message
    return result.exit_code, result.output


def test_the_command_mirrors_tells_translates_compares_and_fails_over(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    ends = ("--from", logs.source, "--to", logs.target)
    running = subprocess.run(
        [sys.executable, "-P", "-m", "tailrace", "mirror", "run", "m", *ends, "--topics", "orders", "--until-caught-up"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert running.returncode == 0, running.stderr
    assert running.stdout == "mirroring m\n"
    _assert_equal(logs)
    status, text = _command("status", "m", *ends, "--json")
    document = json.loads(text)
    assert (status, document["state"], document["lag_records"]) == (0, "running", 0)
    assert document["records"] > 0
    assert json.loads(_command("list", "--to", logs.target, "--json")[1])[0]["name"] == "m"
    status, text = _command("verify", "m", *ends, "--json")
    assert (status, json.loads(text)["equal"]) == (0, True)
    first = _read(logs.source, "orders", 1)[3].offset
    there = _read(logs.target, "orders", 1)[3].offset
    place = f"orders/1:{first}"
    assert json.loads(_command("translate", "m", place, "--to", logs.target, "--json")[1]) == {"offset": there}  # fmt: skip
    back = _command("translate", "m", f"orders/1:{there}", "--back", "--to", logs.target)
    assert back == (0, f"{first}\n")
    assert _command("translate", "m", "orders", "--to", logs.target)[0] == 2
    assert _command("status", "n", *ends)[0] == 2
    assert _command("run", *ends, "--topics", "orders")[0] == 2
    planned = json.loads(_command("fail-over", "m", *ends, "--json")[1])
    told = {"groups": {}, "living": [], "mirrored_until": None}
    assert planned == {"executed": False, "not_mirrored": 0, **told}
    done = json.loads(_command("fail-over", "m", "--to", logs.target, "--execute", "--json")[1])
    newest = done.pop("mirrored_until")  # of the source nobody asked
    assert newest == max(each.timestamp for number in range(2) for each in _read(logs.target, "orders", number)[-1:])  # fmt: skip
    assert done == {"executed": True, "not_mirrored": None, "groups": {}, "living": []}
    assert (
        json.loads(_command("list", "--to", logs.target, "--json")[1])[0]["state"] == "failed-over"
    )


@pytest.mark.crash
def test_a_mirror_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    chance = random.Random(18)
    with BrokerProcess(tmp_path / "a") as source, BrokerProcess(tmp_path / "b") as target:
        logs = Logs(source.address, target.address)
        _make(logs)
        for number in range(40):
            _write(logs.source, "orders", 400, seed=number)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tailrace", "mirror", "run", "m", "--from", logs.source,
                 "--to", logs.target, "--topics", "orders"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        with _mirror(logs) as mirror:
            mirror.run_until_caught_up()
        _assert_equal(logs)


def test_a_target_that_is_away_longer_than_requests_are_patient_is_waited_for(
    tmp_path: Path,
) -> None:
    with BrokerThread(tmp_path / "source", durable=False) as source:
        target = BrokerThread(tmp_path / "target", durable=False)
        logs = Logs(source.address, target.address)
        _make(logs)
        with _mirror(logs, timeout=2.0) as mirror:
            mirror.run_until_caught_up()
            _write(logs.source, "orders", 20)
            target.stop()
            for _ in range(4):
                assert mirror.cycle() == 0
            host, _, port = logs.target.rpartition(":")
            with BrokerThread(tmp_path / "target", host=host, port=int(port), durable=False):
                mirror.run_until_caught_up()
                _assert_equal(logs)
