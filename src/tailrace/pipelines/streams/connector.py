"""Spark's own Kafka connector in place of our data source, where its jar is present.

Chosen by `spark.tailrace.reader = kafka` in `[spark] conf`; the jar comes by
`spark.jars.packages` (`org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION`). The options are
those of `source`, and so are the columns; typed forms, dead letters and records held back
are made of its raw rows by the same code. Not with it: the pause before a record is tried
again, and topics that do not exist yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import ComponentMissingError
from tailrace.pipelines.reading.forms import Piece, ddl_of, form_of, form_records
from tailrace.pipelines.streams.left_out import Held, bury, retried
from tailrace.pipelines.streams.source import Offsets, Reading
from tailrace.records.decode_columns import RecordColumns
from tailrace.security import address_of, security_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTING = "spark.tailrace.reader"
_EARLIEST = -2
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def chosen(spark: SparkSession) -> bool:
    """Whether this session reads through Spark's connector."""
    return spark.conf.get(SETTING, "tailrace") == "kafka"


def available(spark: SparkSession) -> bool:
    """Whether the connector's jar is there."""
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Class.forName(
            _PROVIDER, False, jvm.java.lang.Thread.currentThread().getContextClassLoader()
        )
    except Exception:  # py4j wraps ClassNotFoundException in errors of its own
        return False
    return True


def load(spark: SparkSession, options: Mapping[str, str], *, streaming: bool) -> DataFrame:
    """What `spark.read.format("tailrace")` gives for these options."""
    if not available(spark):
        raise ComponentMissingError(
            "Spark's Kafka connector is not on its class path",
            detail=f"{SETTING} is kafka",
            hint='[spark] conf."spark.jars.packages" = '
            '"org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0", or leave the setting out',
        )
    reader: Any = spark.readStream if streaming else spark.read
    raw = reader.format("kafka").options(**kafka_options(options, streaming=streaming)).load()
    frame: DataFrame = raw.select(
        "key", "value", "headers", "topic", "partition", "offset", "timestamp"
    )
    if form_of(options) == "raw" and "held" not in options:
        return frame
    given = dict(options)

    def form(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from formed(batch, given)

    return frame.mapInArrow(form, ddl_of(options))


def _security(options: Mapping[str, str]) -> dict[str, str]:
    security = security_of(address_of(options))
    return {} if security is None else security.java()


def kafka_options(options: Mapping[str, str], *, streaming: bool) -> dict[str, str]:
    """Our options in the connector's words."""
    found = {
        "kafka.bootstrap.servers": options["bootstrap"],
        **{f"kafka.{name}": value for name, value in _security(options).items()},
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "false" if options.get("on_loss") == "continue" else "true",
    }
    if "pattern" in options:
        found["subscribePattern"] = options["pattern"]
    else:
        found["subscribe"] = ",".join([options["topics"], *_again(options)])
    start = options.get("start", "latest" if streaming else "earliest")
    if start.startswith("{"):
        start = _every_partition(options, orjson.loads(start))
    found |= _place("starting", start)
    if not streaming:
        found |= _place("ending", options.get("end", "latest"))
    elif "limit" in options:
        found["maxOffsetsPerTrigger"] = options["limit"]
    return found


def _every_partition(options: Mapping[str, str], start: Offsets) -> str:
    """The connector wants a place for every partition there is: those that appeared since
    the start was written down are read from their first record."""
    reading = Reading(dict(options))
    there = reading.bounds() | reading.log().bounds(reading.log().named(_again(options)))
    whole = {
        topic: {str(p): start.get(topic, {}).get(str(p), _EARLIEST) for p in by.partitions}
        for topic, by in there.items()
    }
    return orjson.dumps(start | whole).decode() if start or whole else "earliest"


def _again(options: Mapping[str, str]) -> list[str]:
    """The topic of records to be tried again, if it is there."""
    if "retry" not in options:
        return []
    return list(Reading(dict(options)).log().named([options["retry"]]))


def _place(which: str, wish: str) -> dict[str, str]:
    if wish.startswith("@"):
        return {
            f"{which}Timestamp": wish[1:],
            "startingOffsetsByTimestampStrategy": "latest",
        }
    return {f"{which}Offsets": wish}


def formed(batch: pa.RecordBatch, options: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Raw rows in the form asked for."""
    reading, held = Reading(dict(options)), Held.of(options)
    for piece in _pieces(batch):
        if piece.topic == options.get("retry"):
            piece = retried(piece, reading.reads)
        piece, waiting = held.sift(piece)
        table, bad = form_records(piece, options)
        if bad or waiting:
            bury(options, piece, bad, waiting)
        yield from table.combine_chunks().to_batches()


def _pieces(batch: pa.RecordBatch) -> Iterator[Piece]:
    """Raw rows by the partition they come from, in order."""
    rows = pa.Table.from_batches([batch])
    for place in rows.select(["topic", "partition"]).group_by(["topic", "partition"]).aggregate([]).to_pylist():  # fmt: skip
        topic, partition = place["topic"], place["partition"]
        wanted = pc.and_(pc.equal(rows["topic"], topic), pc.equal(rows["partition"], partition))
        own = rows.filter(wanted).combine_chunks()
        headers = own["headers"].to_pylist()
        times = own["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
        yield Piece(
            topic,
            partition,
            RecordColumns(
                own["offset"].to_numpy().astype(np.int64),
                times // 1000,
                _whole(own["key"]),
                _whole(own["value"]),
                None
                if not any(headers)
                else [tuple((h["key"], h["value"]) for h in each or ()) for each in headers],
            ),
        )


def _whole(column: pa.ChunkedArray) -> pa.BinaryArray:
    return pa.concat_arrays([chunk.cast(pa.binary()) for chunk in column.chunks])
