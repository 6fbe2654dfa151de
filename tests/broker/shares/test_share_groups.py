"""Share groups through sockets: what survives, what runs out, what others' clients see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, Cluster
from tailrace.client.log import Log
from tailrace.client.queue import Job, Queue
from tailrace.clock import SYSTEM
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import uuid_text
from tailrace.wire.messages import (
    alter_share_group_offsets,
    delete_groups,
    describe_share_group_offsets,
    list_groups,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)


def fill(log: Log, topic: str, count: int) -> None:
    log.ensure_topic(topic, 1)
    with log.producer() as producer:
        for number in range(count):
            producer.send(topic, key=b"k", value=b"%d" % number)


def take(queue: Queue, count: int) -> list[Job]:
    found: list[Job] = []
    until = SYSTEM.monotonic() + 40
    while len(found) < count:
        assert SYSTEM.monotonic() < until, f"only {len(found)} jobs of {count}"
        found += queue.poll(0.5)
    return found


def numbers(jobs: list[Job]) -> list[int]:
    return sorted(int(job.value or b"") for job in jobs)


def test_kill_minus_nine_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    log = tr.connect(broker.address)
    fill(log, "jobs", 20)
    queue = log.queue("jobs", "workers")
    for job in take(queue, 20):
        number = int(job.value or b"")
        if number % 2 == 0:
            job.ack()
        elif number % 5 == 0:
            job.reject()
    queue.flush()
    broker.kill()
    broker = BrokerProcess(tmp_path, listen=broker.address)
    queue._membership._stopping.set()
    with log.queue("jobs", "workers") as after:
        jobs = take(after, 8)
        assert numbers(jobs) == [1, 3, 7, 9, 11, 13, 17, 19]
        for job in jobs:
            job.ack()
        after.flush()
        assert after.poll(0.5) == []
    queue.close()
    log.close()
    broker.stop()


def test_a_killed_worker_gives_its_jobs_back_at_once(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 5)
        program = (
            "import sys, time, tailrace as tr\n"
            "queue = tr.connect(sys.argv[1]).queue('jobs', 'workers')\n"
            "while not queue.poll(1): pass\n"
            "print('has them', flush=True)\n"
            "time.sleep(100)\n"
        )
        worker = subprocess.Popen(
            [sys.executable, "-c", program, broker.address], stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None
        assert worker.stdout.readline() == "has them\n"
        worker.kill()
        worker.wait()
        worker.stdout.close()
        with log.queue("jobs", "workers") as queue:
            jobs = take(queue, 5)  # long before the lock of 30 s runs out
            assert {job.delivery_count for job in jobs} == {2}
            for job in jobs:
                assert job.locked_until - SYSTEM.monotonic() < 31
                job.ack()


def test_a_lock_that_runs_out_gives_the_record_to_another(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 3)
        with Admin(broker.address) as admin:
            admin.alter_group_config("workers", {"share.record.lock.duration.ms": "2000"})
        with log.queue("jobs", "workers") as slow, log.queue("jobs", "workers") as quick:
            held = take(slow, 3)
            again = take(quick, 3)
            assert {job.delivery_count for job in again} == {2}
            for job in held:
                job.ack()
            slow.flush()
            assert len(slow.lost) == 3  # too late, and told so
            for job in again:
                job.ack()
            quick.flush()
            assert not quick.lost
            assert slow.poll(0.7) == []


def test_a_record_past_its_delivery_count_goes_to_the_dead_letters(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 2)
        with Admin(broker.address) as admin:
            admin.alter_group_config(
                "workers",
                {
                    "share.delivery.count.limit": "2",
                    "errors.deadletterqueue.topic.name": "jobs.dead",
                },
            )
        with log.queue("jobs", "workers") as queue:
            for delivery in (1, 2):
                for job in take(queue, 2 if delivery == 1 else 1):
                    assert job.delivery_count == delivery
                    if job.value == b"0" and delivery == 1:
                        job.reject()
                    else:
                        job.release()
            assert queue.poll(0.5) == []
        dead = sorted(log.read("jobs.dead"), key=lambda record: record.value or b"")
        assert [(r.value, r.header("tailrace.dead.reason")) for r in dead] == [
            (b"0", b"rejected"),
            (b"1", b"delivered too often"),
        ]
        assert dead[1].header("tailrace.dead.topic") == b"jobs"
        assert dead[1].header("tailrace.dead.offset") == b"1"


def test_a_dead_letter_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 2)
        setting = "errors.deadletterqueue.topic.name"
        with Admin(broker.address) as admin:
            admin.alter_group_config("workers", {setting: "no/such name"})
            with log.queue("jobs", "workers") as queue:
                poison, good = take(queue, 2)
                poison.reject()
                good.ack()
                assert queue.poll(0.5) == []
                admin.alter_group_config("workers", {setting: "jobs.dead"})
                for _ in range(100):
                    assert queue.poll(0.1) == []
                    if admin.describe_topic("jobs.dead"):
                        break
        (dead,) = log.read("jobs.dead")
        assert dead.value == poison.value


def test_a_queue_skips_what_was_aborted(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        log.create_topic("jobs", 1)
        with Admin(broker.address) as admin:
            admin.alter_group_config("workers", {"share.isolation.level": "read_committed"})
        with log.producer(transactional_id="p") as producer:
            for number in range(6):
                producer.begin()
                producer.send("jobs", value=b"%d" % number)
                producer.flush()
                if number % 2:
                    producer.abort()
                else:
                    producer.commit()
        with log.queue("jobs", "workers") as queue:
            jobs = take(queue, 3)
            assert numbers(jobs) == [0, 2, 4]
            for job in jobs:
                job.ack()
            queue.flush()
            assert queue.poll(0.3) == []
        with Admin(broker.address) as admin:
            topic = admin.cluster.topic("jobs")
        kept = broker.broker.shares.shares.start_of(("workers", topic.id, 0))
        assert kept == 12  # six records and six markers, all done for


@pytest.mark.parametrize(
    "log_name", ["tailrace_broker", pytest.param("kafka", marks=pytest.mark.clients)]
)
def test_wrong_requests_get_kafkas_codes(log_name: str, request: pytest.FixtureRequest) -> None:
    cluster = Cluster(request.getfixturevalue(log_name))
    group = f"wrong-{os.getpid()}"
    member = uuid_text(os.urandom(16))
    cluster.retry(lambda: cluster.coordinator(group, GROUP), "finding the coordinator")
    line = cluster.any()

    def beat(epoch: int, topics: list[str] | None, name: str = member) -> int:
        while True:
            answer = line.request(
                APIS[ApiKey.SHARE_GROUP_HEARTBEAT],
                share_group_heartbeat.ShareGroupHeartbeatRequest(group, name, epoch, None, topics),
            )
            assert isinstance(answer, share_group_heartbeat.ShareGroupHeartbeatResponse)
            if answer.error_code not in COORDINATOR_MOVED:
                return answer.error_code
            SYSTEM.sleep(0.1)

    assert beat(0, None) == ErrorCode.INVALID_REQUEST
    assert beat(0, ["t"], "") == ErrorCode.INVALID_REQUEST
    assert beat(0, ["t"]) == ErrorCode.NONE
    assert beat(5, None, uuid_text(os.urandom(16))) == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(99, None) == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(-1, None) == ErrorCode.NONE
    assert beat(-1, None) == ErrorCode.UNKNOWN_MEMBER_ID

    def fetch(epoch: int) -> int:
        answer = line.request(
            APIS[ApiKey.SHARE_FETCH],
            share_fetch.ShareFetchRequest(
                group, member, epoch, max_wait_ms=0, min_bytes=0, max_records=1, batch_size=1
            ),
        )
        assert isinstance(answer, share_fetch.ShareFetchResponse)
        return answer.error_code

    def acknowledge(epoch: int) -> int:
        answer = line.request(
            APIS[ApiKey.SHARE_ACKNOWLEDGE],
            share_acknowledge.ShareAcknowledgeRequest(group, member, epoch),
        )
        assert isinstance(answer, share_acknowledge.ShareAcknowledgeResponse)
        return answer.error_code

    assert fetch(7) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acknowledge(3) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acknowledge(0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert fetch(0) == ErrorCode.NONE
    assert fetch(2) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert fetch(1) == ErrorCode.NONE
    assert fetch(-1) == ErrorCode.NONE
    assert fetch(2) == ErrorCode.SHARE_SESSION_NOT_FOUND
    cluster.close()


def test_offsets_are_described_and_moved_while_nobody_is_there(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 10)
        cluster = Cluster(broker.address)

        def start() -> tuple[int, int]:
            answer = cluster.any().request(
                APIS[ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS],
                describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
                    [describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup("g", None)]
                ),
            )
            assert isinstance(answer, describe_share_group_offsets.DescribeShareGroupOffsetsResponse)  # fmt: skip
            row = answer.groups[0].topics[0].partitions[0]
            return row.start_offset, row.lag

        def move(offset: int) -> int:
            answer = cluster.any().request(
                APIS[ApiKey.ALTER_SHARE_GROUP_OFFSETS],
                alter_share_group_offsets.AlterShareGroupOffsetsRequest(
                    "g",
                    [
                        alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
                            "jobs",
                            [
                                alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
                                    0, offset
                                )
                            ],
                        )
                    ],
                ),
            )
            assert isinstance(answer, alter_share_group_offsets.AlterShareGroupOffsetsResponse)
            return answer.error_code

        assert move(3) == ErrorCode.NONE  # a group that never was begins there
        assert start() == (3, 7)
        assert move(0) == ErrorCode.NONE
        with log.queue("jobs", "g") as queue:
            for job in take(queue, 10):
                job.ack()
            queue.flush()
            assert start() == (10, 0)
            assert move(3) == ErrorCode.NON_EMPTY_GROUP
            described = cluster.any().request(
                APIS[ApiKey.SHARE_GROUP_DESCRIBE],
                share_group_describe.ShareGroupDescribeRequest(["g", "nobody"]),
            )
            assert isinstance(described, share_group_describe.ShareGroupDescribeResponse)
            assert described.groups[0].group_state == "Stable"
            assert described.groups[0].members[0].member_id == queue.member_id
            assert described.groups[1].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert move(7) == ErrorCode.NONE
        assert start() == (7, 3)
        with log.queue("jobs", "g") as queue:
            assert numbers(take(queue, 3)) == [7, 8, 9]
        cluster.close()


def test_share_groups_are_listed_and_deleted_like_others(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 3)
        cluster = Cluster(broker.address)

        def listed() -> list[tuple[str, str, str]]:
            answer = cluster.any().request(
                APIS[ApiKey.LIST_GROUPS], list_groups.ListGroupsRequest()
            )
            assert isinstance(answer, list_groups.ListGroupsResponse)
            return [(one.group_id, one.group_state, one.group_type) for one in answer.groups]

        def delete() -> int:
            answer = cluster.any().request(
                APIS[ApiKey.DELETE_GROUPS], delete_groups.DeleteGroupsRequest(["workers"])
            )
            assert isinstance(answer, delete_groups.DeleteGroupsResponse)
            return answer.results[0].error_code

        assert listed() == []
        with log.queue("jobs", "workers") as queue:
            for job in take(queue, 3):
                job.ack()
            queue.flush()
            assert listed() == [("workers", "Stable", "share")]
            assert delete() == ErrorCode.NON_EMPTY_GROUP
        assert listed() == [("workers", "Empty", "share")]
        assert delete() == ErrorCode.NONE
        assert listed() == []
        with log.queue("jobs", "workers") as queue:
            assert len(take(queue, 3)) == 3  # a new group of that name starts anew
        cluster.close()


@pytest.mark.clients
def test_librdkafkas_share_consumer_takes_every_record(tmp_path: Path) -> None:
    from confluent_kafka import ShareConsumer

    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 50)
        with Admin(broker.address) as admin:
            admin.alter_group_config("g", {"share.auto.offset.reset": "earliest"})
        consumer = ShareConsumer(
            {"bootstrap.servers": broker.address, "group.id": "g", "log_level": 0}
        )
        consumer.subscribe(["jobs"])
        found: list[int] = []
        until = SYSTEM.monotonic() + 40
        while len(found) < 50 and SYSTEM.monotonic() < until:
            found += [int(m.value()) for m in consumer.poll(1.0) or () if m.error() is None]
        consumer.commit_sync()
        consumer.close()
        assert found == list(range(50))
        with log.queue("jobs", "g") as queue:
            assert queue.poll(0.5) == []


@pytest.mark.clients
def test_javas_share_consumer_takes_every_record(tmp_path: Path) -> None:
    from servers.kafka import KafkaUnavailable, jars, tool

    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 25)
        with Admin(broker.address) as admin:
            admin.alter_group_config("g", {"share.auto.offset.reset": "earliest"})
        out = tool(
            "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
            "--bootstrap-server", broker.address, "--topic", "jobs", "--group", "g",
            "--max-messages", "25", "--timeout-ms", "30000",
        )  # fmt: skip
        assert sorted(int(line) for line in out.split()) == list(range(25))
        with log.queue("jobs", "g") as queue:
            assert queue.poll(0.5) == []


def test_a_share_group_is_listed_described_and_moved_by_command(tmp_path: Path) -> None:
    import json

    from click.testing import CliRunner

    from tailrace.cli.main import cli

    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:

        def run(*words: str) -> str:
            done = CliRunner().invoke(cli, ["group", *words, "--log", broker.address])
            assert done.exception is None, (done.output, done.exception)
            return done.output

        fill(log, "jobs", 5)
        with log.queue("jobs", "workers") as queue:
            for job in take(queue, 5)[:2]:
                job.ack()
            queue.flush()
            [row] = json.loads(run("list", "--json"))
            assert (row["kind"], row["members"], row["lag"]) == ("share", 1, 3)
            shown = json.loads(run("describe", "workers", "--json"))
            assert shown["kind"] == "share"
            assert shown["partitions"][0]["committed"] == 2
            assert shown["partitions"][0]["member"] == queue.member_id
            refused = CliRunner().invoke(
                cli,
                ["group", "reset", "workers", "--to", "0", "--execute", "--log", broker.address],
            )
            assert "stop its workers first" in str(getattr(refused.exception, "hint", ""))
        run("reset", "workers", "--to", "earliest", "--execute")
        assert json.loads(run("describe", "workers", "--json"))["partitions"][0]["committed"] == 0
        page = broker.broker.metrics.page().decode()
        lag = 'kafka_consumergroup_lag{consumergroup="workers",topic="jobs",partition="0"} 5'
        assert lag in page
        with log.queue("jobs", "workers") as queue:
            assert numbers(take(queue, 5)) == [0, 1, 2, 3, 4]


@pytest.mark.thorough
def test_a_worker_over_its_quota_gets_its_jobs_and_a_pause(tmp_path: Path) -> None:
    from tailrace.client.quotas import CLIENT_ID, Quotas

    with BrokerThread(tmp_path, durable=False) as broker, tr.connect(broker.address) as log:
        fill(log, "jobs", 40)
        with Admin(broker.address) as admin:
            Quotas(admin).change({CLIENT_ID: None}, {"consumer_byte_rate": 20.0})
        with log.queue("jobs", "workers") as queue:
            for job in take(queue, 40):
                job.ack()
        [(_, meter, _)] = list(broker.broker.quotas.rows("consumer_byte_rate"))
        assert meter.pauses > 0


def test_sessions_are_limited_and_defaults_are_the_brokers(tmp_path: Path) -> None:
    settings = {
        "group.share.max.share.sessions": "3",
        "group.share.record.lock.duration.ms": "12345",
        "group.share.delivery.count.limit": "2",
    }
    with BrokerThread(tmp_path, settings=settings, durable=False) as broker:
        cluster = Cluster(broker.address)
        line = cluster.any()

        def fetch(member: str, epoch: int = 0) -> share_fetch.ShareFetchResponse:
            answer = line.request(
                APIS[ApiKey.SHARE_FETCH],
                share_fetch.ShareFetchRequest("g", member, epoch, max_wait_ms=0, max_records=1),
            )
            assert isinstance(answer, share_fetch.ShareFetchResponse)
            return answer

        codes = [fetch(f"m{number}").error_code for number in range(4)]
        assert codes == [0, 0, 0, ErrorCode.SHARE_SESSION_LIMIT_REACHED]
        assert fetch("m0").acquisition_lock_timeout_ms == 12345  # begins its own one anew
        assert fetch("m0", -1).error_code == 0
        assert fetch("m3").error_code == 0
        cluster.close()
        with Admin(broker.address) as admin:
            assert admin.group_config("g")["share.delivery.count.limit"].value == "2"


def test_settings_of_a_group_hold_from_the_next_job_on(tmp_path: Path) -> None:
    with (
        BrokerThread(tmp_path, durable=False) as broker,
        tr.connect(broker.address) as log,
        Admin(broker.address) as admin,
    ):
        fill(log, "jobs", 2)
        with log.queue("jobs", "workers", max_records=1) as queue:
            take(queue, 1)[0].ack()
            queue.flush()
            admin.alter_group_config("workers", {"share.delivery.count.limit": "1"})
            take(queue, 1)[0].release()
            assert queue.poll(0.5) == []  # that was its only delivery
