from __future__ import annotations

import orjson
import pytest

from tailrace.client.ranges import KafkaRanges, Range
from tailrace.sinks import Topic
from tailrace.sinks.registry import Surroundings
from tailrace.testing.sink_contract import SinkContract, Target


class TopicTarget(Target):
    def __init__(self, directory, address):
        super().__init__(directory)
        self.address = address
        self.surroundings = Surroundings(directory, address)

    def declare(self, view, **options):
        return Topic(f"copy-of-{view}", **options)

    def rows(self, copy):
        topic = copy.declaration.topic
        reader = KafkaRanges(self.address)
        ranges = [Range(topic, p, s, e) for p, (s, e) in reader.bounds(topic).items()]
        held: dict[bytes, dict] = {}
        for chunk in reader.read(ranges):
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                held.pop(key, None)
                if value is not None:
                    held[key] = orjson.loads(value)
        reader.close()
        return list(held.values())


class TestTopicSink(SinkContract):
    adds_columns = False
    kill_lines = range(3, 300, 50)

    @pytest.fixture
    def place(self, tmp_path, tailrace_broker):
        return TopicTarget(tmp_path, tailrace_broker)
