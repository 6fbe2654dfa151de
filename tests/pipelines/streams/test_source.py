"""The data source without Spark: planning and reading, against a log."""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import fastavro
import orjson
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.errors import DataLostError, DeclarationError, UndecodableRecordError
from tailrace.pipelines.reading.forms import ddl_of
from tailrace.pipelines.streams.dead_letters import letters
from tailrace.pipelines.streams.left_out import ORIGIN, TIMESTAMP
from tailrace.pipelines.streams.source import LogBatchReader, LogStreamReader

Write = Callable[..., None]
ALL = ReadAllAvailable()
KEEP = {"retention.ms": "-1"}  # the records say they are of 1970


@pytest.fixture
def admin(log_address: str) -> Iterator[Admin]:
    with Admin(log_address) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    name = f"clicks{uuid.uuid4().hex[:6]}"
    admin.create_topic(name, 2, KEEP)
    return name


@pytest.fixture
def write(log_address: str, admin: Admin) -> Iterator[Write]:
    """Write a transaction; Kafka answers its end before the marker is in the partition."""
    with TransactionalWriter(log_address, f"w{uuid.uuid4().hex[:6]}") as writer:
        writer.init()

        def send(
            topic: str, *values: object, partition: int = 0, at: int | None = None, commit: bool = True, **more: Any
        ) -> None:  # fmt: skip
            for number, value in enumerate(values):
                data = value if isinstance(value, bytes | None) else orjson.dumps(value)
                stamp = None if at is None else at + number * int(more.get("apart", 0))
                writer.send(topic, partition, more.get("key"), data, more.get("headers", ()), stamp)
            writer.flush()
            if commit:
                writer.commit()
            else:
                writer.abort()
            place = (topic, partition)
            while admin.end_offsets([place]) != admin.end_offsets([place], "read_uncommitted"):
                time.sleep(0.01)

        yield send


def table(reader: LogBatchReader | LogStreamReader, partitions: Any) -> pa.Table:
    batches = [batch for partition in partitions for batch in reader.read(partition)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def batch(bootstrap: str, **options: str) -> pa.Table:
    reader = LogBatchReader({"bootstrap": bootstrap, **options})
    return table(reader, reader.partitions())


def numbers(found: pa.Table) -> list[int]:
    return sorted(int(value) for value in found["value"].to_pylist()) if found.num_rows else []


class Following:
    """A stream reader as Spark drives it: one trigger after the other."""

    def __init__(self, bootstrap: str, **options: str) -> None:
        self.reader = LogStreamReader({"bootstrap": bootstrap, **options})
        self.at = self.reader.initialOffset()

    def trigger(self, limit: Any = ALL) -> pa.Table:
        # through JSON, as Spark keeps it in the checkpoint
        start = orjson.loads(orjson.dumps(self.at))
        end = orjson.loads(orjson.dumps(self.reader.latestOffset(start, limit)))
        found = table(self.reader, self.reader.partitions(start, end))
        self.at = end
        return found


def test_batches_read_by_offsets_and_by_times(log_address: str, topic: str, write: Write) -> None:
    # One transaction: its marker is of now, and Kafka's search by time would stop at one between.
    write(topic, *range(10), at=1000, apart=1)
    write(topic, -1, -2, commit=False)
    write(topic, 100, partition=1, at=1005)
    assert numbers(batch(log_address, topics=topic)) == [*range(10), 100]
    assert numbers(batch(log_address, topics=topic, start="@1006")) == [6, 7, 8, 9]
    assert numbers(batch(log_address, topics=topic, start="@1004", end="@1006")) == [4, 5, 100]
    offsets = {row["value"]: row["offset"] for row in batch(log_address, topics=topic).to_pylist()}
    given = orjson.dumps({topic: {"0": offsets[b"7"], "1": -1}}).decode()
    assert numbers(batch(log_address, topics=topic, start=given)) == [7, 8, 9]
    assert numbers(batch(log_address, topics=topic, end=given)) == [*range(7), 100]
    assert numbers(batch(log_address, topics=topic, start="latest")) == []


def test_a_stream_reads_what_is_new_and_keeps_to_its_limit(
    log_address: str, topic: str, write: Write
) -> None:
    write(topic, 0)
    late = Following(log_address, topics=topic, start="latest")
    stream = Following(log_address, topics=topic, start="earliest", limit="5")
    assert isinstance(stream.reader.getDefaultReadLimit(), ReadMaxRows)
    write(topic, *range(1, 11))
    write(topic, -1, commit=False)
    write(topic, *range(11, 21), partition=1)
    found = [stream.trigger(stream.reader.getDefaultReadLimit()) for _ in range(8)]
    assert sorted(n for part in found for n in numbers(part)) == list(range(21))
    assert all(part.num_rows <= 6 for part in found)
    assert numbers(late.trigger()) == list(range(1, 21))
    assert late.trigger().num_rows == 0


def test_available_now_ends_where_the_log_ended(log_address: str, topic: str, write: Write) -> None:
    write(topic, 1, 2)
    stream = Following(log_address, topics=topic, start="earliest")
    stream.reader.prepareForTriggerAvailableNow()
    write(topic, 3)
    assert numbers(stream.trigger()) == [1, 2]
    assert stream.trigger().num_rows == 0


def test_new_partitions_and_topics_of_a_pattern_are_read_from_their_beginning(
    log_address: str, admin: Admin, topic: str, write: Write
) -> None:
    write(topic, 1)
    stream = Following(log_address, pattern=f"{topic}.*", start="latest")
    admin.add_partitions(topic, 3)
    write(topic, 2, partition=2)
    admin.create_topic(f"{topic}-more", 1)
    write(f"{topic}-more", 3)
    assert numbers(stream.trigger()) == [2, 3]
    write(topic, 4)
    assert numbers(stream.trigger()) == [4]


def test_records_removed_before_they_were_read_are_told_or_left_out(
    log_address: str, admin: Admin, topic: str, write: Write
) -> None:
    stream = Following(log_address, topics=topic, start="earliest")
    going_on = Following(log_address, topics=topic, start="earliest", on_loss="continue")
    write(topic, 1, 2, 3)
    admin.delete_records({(topic, 0): 2})
    with pytest.raises(DataLostError, match="records 0 to 1") as lost:
        stream.trigger()
    assert any("on_loss" in note for note in lost.value.__notes__)
    assert numbers(going_on.trigger()) == [3]
    with pytest.raises(DataLostError):
        batch(log_address, topics=topic, start=orjson.dumps({topic: {"0": 1}}).decode())


def test_records_removed_while_a_task_reads_are_told(
    log_address: str, admin: Admin, topic: str, write: Write
) -> None:
    write(topic, 1, 2, 3)
    options = {"bootstrap": log_address, "topics": topic}
    planned = LogBatchReader(options).partitions()
    admin.delete_records({(topic, 0): 2})
    with pytest.raises(DataLostError, match="are gone"):
        table(LogBatchReader(options), planned)
    going_on = LogBatchReader({**options, "on_loss": "continue"})
    assert numbers(table(going_on, planned)) == [3]


def test_a_topic_deleted_or_made_again_is_not_taken_for_the_old_one(
    log_address: str, admin: Admin, topic: str, write: Write
) -> None:
    write(topic, 1, 2)
    stream = Following(log_address, topics=topic, start="earliest")
    going_on = Following(log_address, topics=topic, start="earliest", on_loss="continue")
    assert numbers(stream.trigger()) == numbers(going_on.trigger()) == [1, 2]
    admin.delete_topic(topic)
    with pytest.raises(DataLostError, match="gone"):
        stream.trigger()
    admin.create_topic(topic, 2)
    write(topic, *range(10, 20))  # longer than it was: only its id tells
    with pytest.raises(DataLostError, match="not the one"):
        stream.trigger()
    assert numbers(going_on.trigger()) == list(range(10, 20))
    with pytest.raises(DataLostError, match="does not exist"):
        batch(log_address, topics=f"{topic}x")


def test_a_topic_made_again_between_plan_and_read_is_not_taken_for_the_old_one(
    log_address: str, admin: Admin, topic: str, write: Write
) -> None:
    write(topic, 1, 2)
    options = {"bootstrap": log_address, "topics": topic}
    planned = LogBatchReader(options).partitions()
    assert any(part.range.end > part.range.start for part in planned)
    admin.delete_topic(topic)
    admin.create_topic(topic, len(planned))
    write(topic, *range(10, 20))
    with pytest.raises(DataLostError, match=r"not the one|are gone"):
        table(LogBatchReader(options), planned)
    with suppress(DataLostError):  # or nothing, if the task still sees no topic at all
        assert not table(LogBatchReader({**options, "on_loss": "continue"}), planned).num_rows
    assert numbers(batch(log_address, topics=topic)) == list(range(10, 20))


def test_changes_of_a_table_have_op_before_and_after(
    log_address: str, topic: str, write: Write
) -> None:
    write(topic, {"op": "r", "before": None, "after": {"id": 1, "amount": "2.50"}})
    write(topic, {"op": "c", "before": None, "after": {"id": 2, "amount": "3.50"}})
    write(topic, {"op": "u", "before": {"id": 1, "amount": "2.50"}, "after": {"id": 1, "amount": "4"}})  # fmt: skip
    write(topic, {"op": "d", "before": {"id": 1, "amount": "4"}, "after": None}, None)
    columns = '[["id","BIGINT"],["amount","DECIMAL(10,2)"]]'
    changes = batch(log_address, topics=topic, form="changes", columns=columns)
    assert changes["op"].to_pylist() == ["r", "c", "u", "d"]
    assert [row and str(row["amount"]) for row in changes["after"].to_pylist()] == ["2.50", "3.50", "4.00", None]  # fmt: skip
    assert [row and row["id"] for row in changes["before"].to_pylist()] == [None, None, 1, 1]
    inserts = batch(log_address, topics=topic, form="inserts", columns=columns)
    assert inserts["id"].to_pylist() == [2]
    copied = batch(log_address, topics=topic, form="inserts", columns=columns, snapshot="true")
    assert copied["id"].to_pylist() == [1, 2]
    again = {"source": {"snapshot": "incremental"}, "op": "r", "before": None}
    write(topic, {"op": "t", "before": None, "after": None})
    write(topic, {**again, "after": {"id": 2, "amount": "3.50"}})
    write(topic, {**again, "source": {"snapshot": "last"}, "after": {"id": 5, "amount": "1"}})
    copied = batch(log_address, topics=topic, form="inserts", columns=columns, snapshot="true")
    assert copied["id"].to_pylist() == [1, 2, 5]
    changes = batch(log_address, topics=topic, form="changes", columns=columns)
    assert changes["op"].to_pylist() == ["r", "c", "u", "d", "t", "r", "r"]
    assert changes["after"].to_pylist()[4] is None


def test_changes_of_a_view_have_their_key(log_address: str, topic: str, write: Write) -> None:
    write(topic, {"row": {"country": "NL", "n": 1}}, key=b'{"country":"NL"}')
    write(topic, None, key=b'{"country":"NL"}')
    write(topic, b"{", key=b'{"country":"FR"}')
    options = {"form": "view", "columns": '[["country","STRING"],["n","BIGINT"]]', "key": '["country"]'}  # fmt: skip
    found = batch(log_address, topics=topic, dead=f"{topic}.dead", **options)
    assert found["op"].to_pylist() == ["u", "d"]
    assert [row["country"] for row in found["key"].to_pylist()] == ["NL", "NL"]
    assert found["after"].to_pylist() == [{"country": "NL", "n": 1}, None]
    assert "STRUCT<`country`: STRING>" in ddl_of(options)


SCHEMA = {
    "type": "record", "name": "Click",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "n", "type": ["null", "long"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip


def test_avro_is_read_plain_and_in_confluents_format(
    log_address: str, topic: str, write: Write
) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    from tailrace.pipelines.values.avro import columns

    schema = orjson.dumps(SCHEMA).decode()
    row = {"user": "a", "n": 7, "at": datetime(2026, 1, 2, tzinfo=UTC), "price": Decimal("1.25"), "id": str(uuid.uuid4()), "tags": ["x"]}  # fmt: skip
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(SCHEMA)), row)
    write(topic, out.getvalue(), b"\x04ab")
    write(topic, b"\0\0\0\0\x07" + out.getvalue(), out.getvalue(), partition=1)
    named = orjson.dumps(columns(schema)).decode()
    assert dict(columns(schema))["price"] == "DECIMAL(9,2)"
    common = {"form": "avro", "columns": named, "avro": schema, "dead": f"{topic}.dead"}
    only = orjson.dumps({topic: {"1": 0}}).decode()
    plain = batch(log_address, topics=topic, end=only, **common)
    assert plain.to_pylist() == [row]
    other = orjson.dumps({topic: {"0": 0}}).decode()
    confluent = batch(log_address, topics=topic, end=other, wire="confluent", **common)
    assert confluent.to_pylist() == [row]
    assert {letter["position"][-3:] for letter in letters(log_address, f"{topic}.dead")} == {"0:1", "1:1"}  # fmt: skip


def test_malformed_and_misfitting_values_are_letters_with_everything_they_had(
    log_address: str, topic: str, write: Write
) -> None:
    options = {"topics": topic, "form": "json", "columns": '[["n","INT"]]'}
    write(topic, {"n": 1}, at=5)
    write(topic, b"{not json", key=b"k", headers=(("trace", b"t"), ("empty", None)), at=1234)
    write(topic, {"n": "many"}, b"[1]", b"", None, {"n": 2, "more": True})
    with pytest.raises(UndecodableRecordError, match=f"of {topic}/0 cannot be read"):
        batch(log_address, **options)
    found = batch(log_address, dead=f"{topic}.dead", metadata="record", **options)
    assert found["n"].to_pylist() == [1, 2]
    assert found["record"].to_pylist()[0]["topic"] == topic
    first, *others = letters(log_address, f"{topic}.dead")
    assert (first["key"], first["timestamp"]) == ("aw==", 1234)
    assert first["headers"] == [["trace", "dA=="], ["empty", None]]
    assert len(others) == 3
    batch(log_address, dead=f"{topic}.dead", **options)  # a repeated batch adds no letters
    assert len(letters(log_address, f"{topic}.dead")) == 4


def test_records_to_be_tried_again_come_back_as_they_were_when_they_are_due(
    log_address: str, admin: Admin, topic: str, write: Write
) -> None:
    again = f"{topic}.retry"
    stream = Following(log_address, topics=topic, start="earliest", retry=again, pause="3600000")
    at_once = Following(log_address, topics=topic, start="earliest", retry=again)
    admin.create_topic(again, 1)
    mine = ((ORIGIN, f"log:{topic}/1:41".encode()), (TIMESTAMP, b"1234"), ("trace", b"t"))
    write(again, 5, headers=mine)
    write(again, 6, headers=((ORIGIN, b"log:other/0:1"),))
    (row,) = at_once.trigger().to_pylist()
    assert (row["topic"], row["partition"], row["offset"]) == (topic, 1, 41)
    assert row["timestamp"].timestamp() == 1.234
    assert row["headers"] == [{"key": "trace", "value": b"t"}]
    assert stream.trigger().num_rows == 0
    # what an earlier life left there is passed over where the start says so
    behind = orjson.dumps({topic: {"0": 0, "1": 0}, again: {"0": 2}}).decode()
    anew = Following(log_address, topics=topic, start=behind, retry=again)
    assert anew.trigger().num_rows == 0


def test_options_that_make_no_sense_are_refused(log_address: str, topic: str) -> None:
    for options in ({"topics": topic, "form": "xml"}, {}, {"topics": topic, "start": "yesterday"}):
        with pytest.raises(DeclarationError):
            batch(log_address, **options)
    with pytest.raises(DeclarationError):
        ddl_of({"form": "json"})
