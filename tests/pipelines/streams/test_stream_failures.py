"""Poison records, keys they block, functions that loop or give another schema, batches that
are repeated after they took effect."""

from __future__ import annotations

import base64
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import tailrace as tr
from pipelines.streams.stream_harness import Harness
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.errors import (
    CheckpointError,
    DiskFullError,
    StreamStuckError,
    UserFunctionError,
)
from tailrace.pipelines.process.running_streams import RunningStreams
from tailrace.pipelines.streams.dead_letters import letters, retry_letters
from tailrace.pipelines.streams.failures import described, passes
from tailrace.pipelines.streams.progress import StreamProgress, publish
from tailrace.pipelines.streams.writer import Marker, Outgoing, write_slot
from tailrace.telemetry.metrics import exposition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = "available now"


@pytest.fixture
def harness(tailrace_broker: str, tmp_path: Path, spark: SparkSession) -> Harness:
    return Harness(tailrace_broker, tmp_path, spark)


def dividing(harness: Harness, **more: Any) -> Stream:
    """A stream that fails on rows whose n is 0."""
    from pyspark.sql.functions import udf

    @udf("int")
    def divide(n):  # type: ignore[no-untyped-def]
        return 100 // n

    clicks = tr.topic(harness.name("clicks"), schema="user STRING, n INT")

    @tr.stream(clicks, name=harness.name("divided"), trigger="200 milliseconds", **more)
    def divided(frame: DataFrame) -> DataFrame:
        return frame.select("user", divide("n").alias("share"))

    return divided


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_poison_record_is_put_aside_and_can_be_tried_again(harness: Harness) -> None:
    stream = dividing(harness, retries=1, pause="100 milliseconds")
    topic = harness.name("clicks")
    rows = [{"user": f"u{n}", "n": n} for n in range(20)]
    harness.write(topic, *rows, b"{no json", key="user")
    dead = f"{stream.name}.dead"

    def settled(_: object) -> bool:
        waiting = letters(harness.bootstrap, dead)
        return len(waiting) == 2 and len(harness.read(stream.name)) == 19

    running = harness.look_after(stream, settled)
    assert sorted(row["user"] for row in harness.read(stream.name)) == sorted(f"u{n}" for n in range(1, 20))  # fmt: skip
    unread, failed = letters(harness.bootstrap, dead)
    if "stack" in unread:
        unread, failed = failed, unread
    assert "ZeroDivisionError" in failed["reason"]
    assert f'File "{__file__}"' in failed["stack"]
    assert orjson.loads(base64.b64decode(failed["value"])) == rows[0]
    assert base64.b64decode(failed["key"]) == b"u0"
    assert dict(failed["headers"])["tailrace.attempt"] == base64.b64encode(b"1").decode()
    assert running.progress()[stream.name]["failures"]
    # tried again, it fails again and is a letter again; the rest goes on
    assert retry_letters(harness.bootstrap, dead, [failed["position"]]) == 1
    harness.write(topic, {"user": "more", "n": 1}, key="user")

    def again(_: object) -> bool:
        waiting = letters(harness.bootstrap, dead)
        return len(waiting) == 2 and len(harness.read(stream.name)) == 20

    harness.look_after(stream, again)


@pytest.mark.crash
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_record_that_ends_the_worker_is_put_aside(harness: Harness) -> None:
    """As a library that crashes does: there is no exception and no stack."""
    from pyspark.sql.functions import udf

    @udf("int")
    def crash(n):  # type: ignore[no-untyped-def]
        import os

        if n == 7:
            os._exit(1)
        return n

    clicks = tr.topic(harness.name("clicks"), schema="user STRING, n INT")

    @tr.stream(clicks, name=harness.name("crashing"), trigger="200 milliseconds")
    def crashing(frame: DataFrame) -> DataFrame:
        return frame.select(crash("n").alias("n"))

    harness.write(clicks.name, *({"user": "u", "n": n} for n in range(12)))
    dead = f"{crashing.name}.dead"
    harness.look_after(crashing, lambda _: len(harness.read(crashing.name)) == 11)
    assert sorted(row["n"] for row in harness.read(crashing.name)) == [*range(7), *range(8, 12)]
    (letter,) = letters(harness.bootstrap, dead)
    assert orjson.loads(base64.b64decode(letter["value"]))["n"] == 7
    assert "Python worker exited" in letter["reason"]


@pytest.mark.crash
@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mistake", ["name", "every"])
def test_a_mistake_in_the_function_is_not_blamed_on_the_records(
    harness: Harness, mistake: str
) -> None:
    from pyspark.sql.functions import udf

    @udf("int")
    def wrong(n):  # type: ignore[no-untyped-def]
        return no_such_name if mistake == "name" else n + "1"  # type: ignore[name-defined]  # noqa: F821

    clicks = tr.topic(harness.name("clicks"), schema="user STRING, n INT")

    @tr.stream(clicks, name=harness.name("mistaken"), trigger="200 milliseconds")
    def mistaken(frame: DataFrame) -> DataFrame:
        return frame.select(wrong("n").alias("n"))

    count = 3 if mistake == "name" else 12
    harness.write(clicks.name, *({"user": "u", "n": n} for n in range(count)))
    running = harness.look_after(mistaken, lambda r: bool(r.progress()[mistaken.name]["error"]))
    error = running.progress()[mistaken.name]["error"]
    assert isinstance(error, dict)
    assert error["code"] == "user-function"
    assert ("NameError" if mistake == "name" else "TypeError") in error["error"]
    assert __file__ in error["detail"]
    assert letters(harness.bootstrap, f"{mistaken.name}.dead") == []


@pytest.mark.crash
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_poison_key_blocks_only_itself(harness: Harness) -> None:
    stream = dividing(harness, on_error="block")
    topic, dead = harness.name("clicks"), f"{harness.name('divided')}.dead"
    harness.write(topic, {"user": "a", "n": 1}, {"user": "b", "n": 0}, {"user": "b", "n": 2}, {"user": "c", "n": 4}, key="user")  # fmt: skip
    harness.look_after(stream, lambda _: len(letters(harness.bootstrap, dead)) == 2 and len(harness.read(stream.name)) == 2)  # fmt: skip
    assert sorted(row["user"] for row in harness.read(stream.name)) == ["a", "c"]
    first, second = sorted(letters(harness.bootstrap, dead), key=lambda one: "blocked_by" in one)
    assert second["blocked_by"] == first["position"]
    # its letter is taken away by hand: the key is free, what waited is read
    from tailrace.client.writer import TransactionalWriter

    with TransactionalWriter(harness.bootstrap, "t") as writer:
        writer.init()
        writer.send(dead, 0, first["position"].encode(), None)
        writer.commit()
    harness.write(topic, {"user": "b", "n": 5}, key="user")
    harness.look_after(stream, lambda _: len(harness.read(stream.name)) == 4)
    shares = [row["share"] for row in harness.read(stream.name) if row["user"] == "b"]
    assert sorted(shares) == [20, 50]
    assert letters(harness.bootstrap, dead) == []


@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.crash
def test_a_batch_repeated_after_it_took_effect_changes_nothing(harness: Harness) -> None:
    clicks = tr.topic(harness.name("clicks"), schema="user STRING, n INT")

    @tr.stream(clicks, name=harness.name("plain"), key="user", trigger=NOW)
    def plain(frame: DataFrame) -> DataFrame:
        return frame

    for number in range(2):
        harness.write(clicks.name, {"user": "a", "n": number}, {"user": "b", "n": number})
        harness.run(plain)
    # Spark never heard that the last batch was complete: it aborts and runs it again
    commits = harness.streams.files(plain).checkpoint(plain.name) / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in commits.glob(f"*{last}*"):
        path.unlink()
    harness.run(plain)
    assert len(harness.read(plain.name)) == 4
    # a function that gives other rows now is refused: part of the first answer is there
    for path in commits.glob(f"*{last}*"):
        path.unlink()

    @tr.stream(clicks, name=harness.name("plain"), key="user", trigger=NOW)
    def changed(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("user", "n + 1 AS n")

    with pytest.raises(Exception, match="other rows when repeated") as caught:
        harness.run(changed)
    assert "deterministic" in caught.value.hint  # type: ignore[attr-defined]
    assert len(harness.read(plain.name)) == 4


@pytest.mark.crash
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_functions_that_loop_or_give_another_schema_are_named(harness: Harness) -> None:
    import pyarrow as pa
    from pyspark.sql.functions import udf

    clicks = tr.topic(harness.name("clicks"), schema="user STRING, n INT")
    harness.write(clicks.name, {"user": "a", "n": 1})

    @tr.stream(clicks, name=harness.name("spinning"), timeout="1 second", trigger=NOW)
    def spinning(frame: DataFrame) -> DataFrame:
        while True:
            pass

    with pytest.raises(StreamStuckError) as caught:
        harness.streams.start(spinning)
    line = spinning.function.__code__.co_firstlineno
    assert any(f"{__file__}:{line + n}" in caught.value.detail for n in (2, 3))

    looks: list[object] = []

    def looked_at(running: RunningStreams) -> bool:
        looks.append(running.progress()[spinning.name]["failures"])
        return looks.count(1) > 40  # four seconds: it would have been started again

    harness.look_after(spinning, looked_at)
    assert set(looks) == {1}

    def texts(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            yield pa.record_batch([pa.array(["x"] * batch.num_rows)], names=["n"])

    @tr.stream(clicks, name=harness.name("misfit"), trigger=NOW)
    def misfit(frame: DataFrame) -> DataFrame:
        return frame.mapInArrow(texts, "n INT")

    with pytest.raises(UserFunctionError):
        harness.run(misfit)

    @udf("int")
    def loop(n):  # type: ignore[no-untyped-def]
        while True:
            pass

    @tr.stream(clicks, name=harness.name("looping"), timeout="8 seconds")
    def looping(frame: DataFrame) -> DataFrame:
        return frame.select(loop("n"))

    busy: list[object] = []

    def stuck(running: RunningStreams) -> bool:
        busy.append(running.progress()[looping.name]["busy_seconds"])
        return bool(running.progress()[looping.name]["error"])

    running = harness.look_after(looping, stuck)
    assert any(busy)  # before it is given up, its status says how long it has been at it
    error = running.progress()[looping.name]["error"]
    assert isinstance(error, dict)
    assert error["code"] == "stream-stuck"


def test_of_two_attempts_at_a_slot_one_writes(tailrace_broker: str) -> None:
    """Speculation, or a task believed dead that goes on: both begin, one takes the slot."""
    from tailrace.client.writer import TransactionalWriter
    from tailrace.pipelines.reading.reader import LogReader, read_all

    options = {"bootstrap": tailrace_broker, "stream": "s", "topic": "s"}
    rows = [Outgoing.of([b"k"] * 50, [b"%d" % n for n in range(50)])]
    results: list[object] = []
    # an attempt that has begun and then hangs
    hanging = TransactionalWriter(tailrace_broker, "tailrace.s.0")
    hanging.init()
    hanging.send("s", 0, b"k", b"of the dead")
    hanging.flush()

    def attempt() -> None:
        try:
            results.append(write_slot(options, 0, Marker("q", 0, "f"), rows))
        except BaseException as problem:
            results.append(problem)

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == ["False", "False", "False", "True"]
    with pytest.raises(Exception, match=r"fenced|epoch|newer"):
        hanging.commit()
    hanging.close()
    with LogReader(tailrace_broker) as reader:
        values = [v for records in read_all(reader, "s") for v in records.values]
    assert sorted(int(v or b"") for v in values) == list(range(50))


def test_failures_are_told_in_our_words(tmp_path: Path) -> None:
    @tr.stream(tr.topic("clicks"), name="s")
    def stream(frame: DataFrame) -> DataFrame:
        return frame

    full = described(stream, Exception("x\njava.io.IOException: No space left on device\n at y"))
    assert isinstance(full, DiskFullError)
    assert "No space left" in full.detail
    old = described(
        stream, Exception("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema")
    )
    assert isinstance(old, CheckpointError)
    assert "reset s" in old.hint
    lost = "Traceback …\ntailrace.pipelines.errors.DataLostError: records 1 to 2 are gone\ndetail: by retention\nhint: reset it\n\tat org.apache"  # fmt: skip
    told = described(stream, Exception(lost))
    assert (told.message, told.detail, told.hint) == ("records 1 to 2 are gone", "by retention", "reset it")  # fmt: skip
    assert passes(Exception("tailrace.client.errors.BrokerUnavailableError: no broker answers"))
    assert not passes(Exception("ZeroDivisionError: division by zero"))


def test_a_full_disk_is_told_before_a_stream_begins(tmp_path: Path) -> None:
    from tailrace.pipelines.streams.beginnings import InputStart, Start
    from tailrace.pipelines.streams.checkpoint import StreamFiles

    wanted = InputStart(("clicks",), "latest")
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("needs /dev/full")
    files = StreamFiles(tmp_path, "s")
    files.root.mkdir()
    (files.root / "stream.json.tmp").symlink_to(device)
    with pytest.raises(DiskFullError, match="no space"):
        files.begin([wanted], lambda _: Start())
    shutil.rmtree(files.root)
    assert files.begin([wanted], lambda _: Start()) == [Start()]


def test_a_rate_is_over_the_time_that_has_passed() -> None:
    def batch(number: int, second: int, rows: int) -> dict[str, object]:
        at = datetime.fromtimestamp(second, UTC).isoformat()
        return {"batchId": number, "timestamp": at, "numInputRows": rows, "durationMs": {}}

    progress = StreamProgress()
    progress.take([batch(0, 100, 16)])  # in 200 ms, as Spark says
    progress.pass_time(110_000)
    assert progress.rows_per_second == 1.6
    progress.take([batch(1, 130, 104)])
    progress.pass_time(160_000)
    assert progress.rows_per_second == 2.0  # of a minute
    progress.pass_time(400_000)
    assert progress.rows_per_second == 0.0


def test_progress_becomes_gauges() -> None:
    progress = StreamProgress(state="failed", lag=7, dead=2)
    report = {
        "batchId": 3, "numInputRows": 10, "timestamp": "2026-01-01T00:00:00.000Z",
        "durationMs": {"triggerExecution": 40},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "stateOperators": [{"numRowsDroppedByWatermark": 4, "numRowsTotal": 9}],
    }  # fmt: skip
    progress.take([report, report, {**report, "batchId": 4, "stateOperators": []}])
    document = progress.document()
    assert (document["batch"], document["rows_total"], document["late"]) == (4, 20, 4)
    publish({"clicks_stream": document})
    text = exposition().decode()
    for line in (
        'tailrace_stream_rows{stream="clicks_stream"} 20.0',
        'tailrace_stream_lag_records{stream="clicks_stream"} 7.0',
        'tailrace_stream_late_rows{stream="clicks_stream"} 4.0',
        'tailrace_stream_dead_letters{stream="clicks_stream"} 2.0',
        'tailrace_stream_failed{stream="clicks_stream"} 1.0',
        'tailrace_stream_watermark_milliseconds{stream="clicks_stream"}',
    ):
        assert line in text
