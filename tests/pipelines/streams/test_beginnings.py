"""Where streams begin: written down before Spark, kept whatever happens afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from tailrace import config
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.errors import CheckpointError, DataLostError, DeclarationError
from tailrace.pipelines.process import runner
from tailrace.pipelines.streams.beginnings import (
    DIRECTORY,
    Beginning,
    InputStart,
    Start,
    beginning_of,
    record,
)
from tailrace.pipelines.streams.checkpoint import StreamFiles
from tailrace.pipelines.streams.queries import _same_topics
from tailrace.sources.declare import TableRef
from tailrace.telemetry.part import Part

Write = Callable[..., None]
ORDERS = TableRef("shop", "public", "orders", "forever")


def stream(*inputs: object, name: str = "placed", **more: str) -> Stream:
    return tr.stream(*inputs, name=name, **more)(lambda *frames: frames[0])  # type: ignore[arg-type]


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex[:6]}"


@pytest.fixture
def write(log_address: str) -> Write:
    def send(topic: str, count: int, *, commit: bool = True) -> None:
        with TransactionalWriter(log_address, f"w.{topic}") as writer:
            writer.init()
            for number in range(count):
                writer.send(topic, 0, None, orjson.dumps({"n": number}))
            writer.flush()
            writer.commit() if commit else writer.abort()

    return send


def offsets(directory: Path, name: str = "placed") -> list[object]:
    starts = StreamFiles(directory / DIRECTORY, name).starts()
    return [None if one is None else one.offsets for one in starts]


def end_of(address: str, topic: str) -> int:
    with Admin(address) as admin:
        return admin.topic_end_offsets(topic)[0]


def test_the_place_is_kept_however_late_the_first_start_is(
    log_address: str, topic: str, write: Write, tmp_path: Path
) -> None:
    with Admin(log_address) as admin:
        admin.create_topic(topic, 2)
    write(topic, 3)
    began = end_of(log_address, topic)
    wanted = Beginning("placed", (InputStart((topic,), "latest"),))
    record(tmp_path, log_address, [wanted])
    write(topic, 200)
    record(tmp_path, log_address, [wanted])
    assert offsets(tmp_path) == [{topic: {"0": began, "1": 0}}]


def test_a_transaction_that_is_open_then_is_read_as_a_whole(
    log_address: str, topic: str, tmp_path: Path
) -> None:
    with Admin(log_address) as admin:
        admin.create_topic(topic, 1)
    with TransactionalWriter(log_address, f"w.{topic}") as writer:
        writer.init()
        writer.send(topic, 0, None, b"{}")
        writer.flush()
        record(tmp_path, log_address, [Beginning("placed", (InputStart((topic,), "latest"),))])
        writer.commit()
    assert offsets(tmp_path) == [{topic: {"0": 0}}]


def test_topics_that_do_not_exist_are_read_from_their_first_record(
    log_address: str, topic: str, write: Write, tmp_path: Path
) -> None:
    wanted = Beginning("placed", (InputStart((topic,), "latest"),))
    record(tmp_path, log_address, [wanted])
    with Admin(log_address) as admin:
        admin.create_topic(topic, 1)
    write(topic, 5)
    record(tmp_path, log_address, [wanted])
    assert offsets(tmp_path) == [{}]


def test_what_declarations_say_about_where_a_stream_begins() -> None:
    other = stream(tr.topic("clicks"), name="other")
    view = tr.view("totals", "SELECT 1 AS one")
    inputs = (
        ORDERS.inserts(), ORDERS.inserts(snapshot=True), ORDERS.changes(), ORDERS.changes("snapshot"),
        tr.topic("clicks"), tr.topic("all", pattern="c.*"), other, view,
    )  # fmt: skip
    table = ("shop.public.orders",)
    assert beginning_of(stream(*inputs)).inputs == (
        InputStart(table, "latest"), InputStart(table, "earliest"),
        InputStart(table, "latest"), InputStart(table, "earliest"),
        InputStart(("clicks",), "earliest"), InputStart(("c.*",), "earliest", pattern=True),
        InputStart(("other",), "earliest"), None,
    )  # fmt: skip


def test_a_stream_cannot_begin_at_a_position_of_a_source() -> None:
    with pytest.raises(DeclarationError, match="cannot begin at"):
        stream(ORDERS.changes("pg:shop:0000000201A2B3C4"))


def test_a_declaration_that_changes_before_the_first_start_begins_where_it_is_then(
    log_address: str, topic: str, write: Write, tmp_path: Path
) -> None:
    other = f"{topic}b"
    with Admin(log_address) as admin:
        admin.create_topic(topic, 1)
        admin.create_topic(other, 1)
    first = InputStart((topic,), "latest")
    record(tmp_path, log_address, [Beginning("placed", (first,))])
    write(topic, 4)
    write(other, 4)
    second = InputStart((other,), "latest")
    record(tmp_path, log_address, [Beginning("placed", (first, second))])
    assert offsets(tmp_path) == [{topic: {"0": 0}}, {other: {"0": end_of(log_address, other)}}]
    earlier = InputStart((other,), "earliest")
    record(tmp_path, log_address, [Beginning("placed", (earlier,))])
    assert offsets(tmp_path) == [{other: {"0": 0}}]


def test_once_spark_has_run_a_stream_other_inputs_are_refused(tmp_path: Path) -> None:
    files = StreamFiles(tmp_path, "placed")
    there = Start({"clicks": {"0": 3}}, {"clicks": "id"})
    files.begin([InputStart(("clicks",), "latest"), None], lambda _: there)
    files.record_query("placed", "q1")
    later = Start({"clicks": {"0": 9}})
    view = InputStart(("totals",), "earliest")
    # the view's topic is known by now, the table's wish is no longer asked
    found = files.begin([InputStart(("clicks",), "earliest"), view], lambda _: later)
    assert found == [there, later]
    with pytest.raises(CheckpointError, match="reads other topics"):
        files.begin([InputStart(("taps",), "latest"), view], lambda _: later)


def test_files_of_earlier_versions_go_on(tmp_path: Path) -> None:
    files = StreamFiles(tmp_path, "placed")
    files.root.mkdir(parents=True)
    old = {"stream": "placed", "inputs": [["clicks"]], "starts": ['{"clicks":{"0":17}}'], "queries": {}}  # fmt: skip
    (files.root / "stream.json").write_bytes(orjson.dumps(old))

    pattern = StreamFiles(tmp_path, "all")
    pattern.root.mkdir(parents=True)
    old = {"stream": "all", "inputs": [["c{1", "2}"]], "starts": ["{}"], "queries": {"all": "q"}}
    (pattern.root / "stream.json").write_bytes(orjson.dumps(old))

    def never(wanted: InputStart) -> Start:
        raise AssertionError("it is known already")

    assert files.begin([InputStart(("clicks",), "latest")], never) == [
        Start({"clicks": {"0": 17}}, {})
    ]
    assert pattern.begin([InputStart(("c{1,2}",), "earliest", pattern=True)], never) == [Start()]


def test_a_topic_made_again_before_the_first_batch_is_not_taken_for_the_old_one(
    log_address: str, topic: str, write: Write, tmp_path: Path
) -> None:
    from tailrace.pipelines.reading.ranges import kept_ranges

    with Admin(log_address) as admin:
        admin.create_topic(topic, 1)
        write(topic, 9)
        record(tmp_path, log_address, [Beginning("placed", (InputStart((topic,), "latest"),))])
        admin.delete_topic(topic)
        admin.create_topic(topic, 1)
    write(topic, 30)
    (start,) = StreamFiles(tmp_path / DIRECTORY, "placed").starts()
    assert start is not None
    ranges = kept_ranges(log_address)
    with pytest.raises(DataLostError, match="is not the one"):
        _same_topics(stream(tr.topic(topic)), start, ranges)
    goes_on = _same_topics(stream(tr.topic(topic), on_loss="continue"), start, ranges)
    assert goes_on.offsets == {}


def test_it_is_written_before_spark_is_started(
    log_address: str, topic: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    own = TableRef(topic, "public", "orders", "forever")
    with Admin(log_address) as admin:
        admin.create_topic(f"{topic}.public.orders", 1)

    class Killed(BaseException): ...

    def killed(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(runner.session, "start", killed)
    part = Part("p", "pipelines", "p", log_address, tmp_path / ".tailrace")
    for _ in range(2):
        with pytest.raises(Killed):
            runner.run(
                runner.Declared([], [stream(own.inserts())], [], config.load(tmp_path)), part
            )
        write(f"{topic}.public.orders", 7)
    assert offsets(tmp_path / ".tailrace") == [{f"{topic}.public.orders": {"0": 0}}]


def test_files_that_are_not_in_order_stop_only_their_stream(
    log_address: str, topic: str, tmp_path: Path
) -> None:
    broken = StreamFiles(tmp_path / DIRECTORY, "broken")
    broken.checkpoint("broken").mkdir(parents=True)
    wanted = [Beginning(name, (InputStart((topic,), "latest"),)) for name in ("broken", "placed")]
    record(tmp_path, log_address, wanted)
    assert offsets(tmp_path) == [{}]
    assert broken.written() is None


@pytest.mark.parametrize("data", [b"", b'{"id": ', b"[]", b"{}", b"7"])
def test_a_file_of_spark_that_a_crash_left_empty_is_told_with_a_way_out(
    tmp_path: Path, data: bytes
) -> None:
    files = StreamFiles(tmp_path, "s")
    files.record_query("t", "one")
    kept = files.checkpoint("t") / "metadata"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b'{"id": "one"}')
    files.check_queries()
    kept.write_bytes(data)
    with pytest.raises(CheckpointError, match="not the one it wrote") as told:
        files.check_queries()
    assert "pipeline reset s" in told.value.hint
    assert "damaged" in told.value.detail
