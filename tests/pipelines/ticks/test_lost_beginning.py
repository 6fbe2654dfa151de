"""A table without a key whose topic has lost its beginning gives no wrong rows."""

from __future__ import annotations

import orjson
import pytest

from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.errors import DataLostError
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.ticks.lost_inputs import check_beginnings
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.testing.ticks import table

TOPIC = "shop.public.lines"


def event(op: str, number: int | None) -> bytes:
    row = None if number is None else {"a": number, "b": "t"}
    return orjson.dumps({"op": op, "before": None, "after": row})


def test_a_fill_needs_the_beginning_or_a_truncate(tailrace_broker: str) -> None:
    with Admin(tailrace_broker) as admin:
        admin.create_topic(TOPIC, 1, {"retention.ms": "-1"})

        def write(*events: bytes) -> int:
            with TransactionalWriter(tailrace_broker, "capture") as writer:
                writer.init()
                for one in events:
                    writer.send(TOPIC, 0, None, one)
                writer.flush()
                writer.commit()
            return admin.topic_end_offsets(TOPIC)[0]

        graph = compile_views(
            [ViewDefinition("v", f"SELECT a, b FROM {TOPIC}")], [table(TOPIC, "a BIGINT, b STRING")]
        )
        end = write(*(event("c", number) for number in range(10)))
        with LogReader(tailrace_broker) as reader:
            check_beginnings(graph, Tick("p"), [Range(TOPIC, 0, 0, end)], reader)
            admin.delete_records({(TOPIC, 0): 4})
            begins = Range(TOPIC, 0, 4, end)
            with pytest.raises(DataLostError, match="lost its beginning") as lost:
                check_beginnings(graph, Tick("p"), [begins], reader)
            assert "tailrace source snapshot shop --table public.lines" in lost.value.hint
            # Whoever has read it before goes on.
            check_beginnings(graph, Tick("p", inputs={TOPIC: {0: 4}}), [begins], reader)
            end = write(event("t", None), event("r", 1))
            check_beginnings(graph, Tick("p"), [Range(TOPIC, 0, 4, end)], reader)
