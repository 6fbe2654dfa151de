"""Everything is in the topic: restarts, two registries at once, topics of others."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import tailrace as tr
from registry.conftest import Asking
from tailrace.client.log import Log
from tailrace.registry.errors import Refusal, RegistryStoreError
from tailrace.registry.serve import RegistryServer, Settings
from tailrace.registry.topic import TRANSACTIONAL_ID, SchemaTopic
from tailrace.schemas.model import Schema
from tailrace.schemas.subjects import Subjects, Version, Written, schema_record


def add(topic: SchemaTopic, subject: str) -> int:
    def decide(subjects: Subjects) -> tuple[int, list[Written]]:
        number = subjects.next_id(".")
        one = Version(subject, subjects.next_version(subject), number, Schema(f'"s{number}"'))
        return number, [schema_record(one)]

    return topic.write(decide)


def test_a_registry_finds_everything_again(tmp_path: Path) -> None:
    for expected in (1, 2):
        with (
            tr.open(tmp_path / "log") as log,
            RegistryServer(log, Settings("127.0.0.1:0")) as server,
        ):
            server.start()
            ask = Asking(f"http://{server.address}")
            assert ask.register(f"s{expected}", json.dumps({"type": "map", "values": "int"})) == 1
            assert ask.register("all", f'{{"type":"enum","name":"E","symbols":["A{"B" * expected}"],"default":"A{"B" * expected}"}}') == expected + 1  # fmt: skip
            ask.client.close()


def test_two_registries_that_write_at_once_never_give_one_id_twice(log: Log) -> None:
    given: list[int] = []
    with SchemaTopic(log) as one, SchemaTopic(log) as other:
        for topic in (one, other):
            topic.start()

        def work(topic: SchemaTopic, name: str) -> None:
            given.extend(add(topic, f"{name}{n}") for n in range(12))

        threads = [
            threading.Thread(target=work, args=(topic, name))
            for topic, name in ((one, "a"), (other, "b"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(given) == list(range(1, 25))
        add(one, "last")
        add(other, "last")
        assert other.look(lambda subjects: [v.id for v in subjects.versions("last")]) == [25, 26]


def test_a_writer_that_was_ended_decides_again_on_what_came_between(log: Log) -> None:
    with SchemaTopic(log) as topic, SchemaTopic(log) as other:
        topic.start()
        other.start()
        assert add(topic, "a") == 1
        seen: list[int] = []

        def decide(subjects: Subjects) -> tuple[int, list[Written]]:
            number = subjects.next_id(".")
            seen.append(number)
            if len(seen) == 1:
                assert add(other, "b") == 2
            return number, [schema_record(Version("c", 1, number, Schema('"x"')))]

        # Not under the lock of its own state, which `add` of the other does not need.
        assert topic.write(decide) == 3
        assert seen == [2, 3]


def test_what_others_left_open_is_ended_first(log: Log) -> None:
    with SchemaTopic(log) as topic:
        topic.start()
        left = log.transactional_writer(TRANSACTIONAL_ID)
        left.init()
        left.send("_schemas", 0, *schema_record(Version("lost", 1, 1, Schema('"x"'))))
        left.flush()
        assert add(topic, "s") == 1
        assert topic.look(lambda subjects: subjects.names()) == ["s"]
        left.close()


def test_a_topic_of_confluents_registry_is_taken_over(log: Log) -> None:
    log.create_topic("_schemas", 1, {"cleanup.policy": "compact"})
    with log.producer() as producer:
        for key, value in (
            ({"keytype": "NOOP", "magic": 0}, None),
            ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
            ({"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1},
             {"subject": "s", "version": 1, "id": 41, "schema": '"int"', "deleted": False}),
            ({"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s", "version": 1}),
        ):  # fmt: skip
            producer.send(
                "_schemas",
                key=json.dumps(key).encode(),
                value=None if value is None else json.dumps(value).encode(),
            )
    with RegistryServer(log, Settings("127.0.0.1:0")) as server:
        server.start()
        ask = Asking(f"http://{server.address}")
        assert ask("GET", "/config") == (200, {"compatibilityLevel": "FULL"})
        assert ask("GET", "/subjects?deleted=true") == (200, ["s"])
        assert ask.register("t", '"long"') == 42
        ask.client.close()
    keys = [json.loads(record.key or b"") for record in log.read("_schemas")]
    assert keys[-1] == {"keytype": "SCHEMA", "subject": "t", "version": 1, "magic": 1}


def test_a_topic_that_would_lose_schemas_is_refused(log: Log) -> None:
    log.create_topic("several", 2, {"cleanup.policy": "compact"})
    log.create_topic("deleting", 1, {"cleanup.policy": "delete"})
    for name, why in (("several", "one partition"), ("deleting", "must be compacted")):
        with SchemaTopic(log, name) as topic, pytest.raises(RegistryStoreError, match=why):
            topic.start()


def test_a_refusal_writes_nothing(log: Log) -> None:
    def refuse(subjects: Subjects) -> tuple[None, list[Written]]:
        raise Refusal(42205, "no")

    with SchemaTopic(log) as topic:
        topic.start()
        with pytest.raises(Refusal):
            topic.write(refuse)
        assert add(topic, "s") == 1
