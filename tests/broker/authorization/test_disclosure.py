"""What one may not see is not told: lists, bits, patterns, and what happens when rules change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import tailrace as tr
from broker.authorization.users import Guarded
from tailrace.broker.authorization.acls import (
    ALL,
    ALLOW,
    ALTER,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Acl,
)
from tailrace.broker.handlers import acls as handlers
from tailrace.broker.principals import ANONYMOUS
from tailrace.broker.quotas.table import PRODUCER_BYTES, Entity
from tailrace.client.errors import NotAllowedError
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_groups,
    describe_topic_partitions,
    fetch,
    init_producer_id,
    list_groups,
    list_transactions,
    metadata,
    offset_commit,
    offset_fetch,
)

NOT_ASKED = -(2**31)
OVER = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


def topics(client: WireClient, *names: str, version: int = 9) -> dict[str, int]:
    wanted = [metadata.MetadataRequestTopic(name=name) for name in names] if names else None
    answer = client.ask(ApiKey.METADATA, version, metadata.MetadataRequest(wanted, False))
    return {topic.name: topic.error_code for topic in answer.topics}


def commit(client: WireClient, group: str, topic: str) -> int:
    answer = client.ask(
        ApiKey.OFFSET_COMMIT,
        9,
        offset_commit.OffsetCommitRequest(
            group,
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    topic, partitions=[offset_commit.OffsetCommitRequestPartition(0, 7)]
                )
            ],
        ),
    )
    return int(answer.topics[0].partitions[0].error_code)


def test_lists_of_topics_leave_out_what_one_may_not_describe(guarded: Guarded) -> None:
    for name in ("a", "b", "c"):
        guarded.admin.create(name)
    guarded.allow("u", (READ, TOPIC, "a"), (DESCRIBE, TOPIC, "c"))
    user = guarded.speak("u")
    assert topics(user) == {"a": 0, "c": 0}
    assert topics(user, "a", "b", "none") == {"a": 0, "b": OVER, "none": OVER}
    everything = user.ask(ApiKey.METADATA, 0, metadata.MetadataRequest([]))
    assert {topic.name for topic in everything.topics} == {"a", "c"}
    only_hidden = user.ask(
        ApiKey.METADATA, 0, metadata.MetadataRequest([metadata.MetadataRequestTopic(name="b")])
    )
    assert [(one.name, one.error_code) for one in only_hidden.topics] == [("b", OVER)]
    answer = user.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        describe_topic_partitions.DescribeTopicPartitionsRequest(cursor=None),
    )
    assert [one.name for one in answer.topics] == ["a", "c"]
    answer = user.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest("b")], cursor=None
        ),
    )
    assert [(one.name, one.error_code, one.partitions) for one in answer.topics] == [
        ("b", OVER, [])
    ]


def test_nobody_is_told_by_an_id_what_a_topic_is_called(guarded: Guarded) -> None:
    topic_id = guarded.admin.create("secret")
    user = guarded.speak("u")
    answer = user.ask(
        ApiKey.METADATA,
        12,
        metadata.MetadataRequest([metadata.MetadataRequestTopic(topic_id=topic_id, name=None)]),
    )
    assert [(one.name, one.error_code) for one in answer.topics] == [(None, OVER)]
    wanted = [delete_topics.DeleteTopicState(name=None, topic_id=topic_id)]
    answer = user.ask(ApiKey.DELETE_TOPICS, 6, delete_topics.DeleteTopicsRequest(topics=wanted))
    assert [(one.name, one.error_code) for one in answer.responses] == [(None, OVER)]
    guarded.allow("u", (DESCRIBE, TOPIC, "secret"))
    answer = user.ask(ApiKey.DELETE_TOPICS, 6, delete_topics.DeleteTopicsRequest(topics=wanted))
    assert [(one.name, one.error_code) for one in answer.responses] == [("secret", OVER)]
    guarded.allow("u", (DELETE, TOPIC, "secret"))
    answer = user.ask(ApiKey.DELETE_TOPICS, 6, delete_topics.DeleteTopicsRequest(topics=wanted))
    assert [(one.name, one.error_code) for one in answer.responses] == [("secret", 0)]


def test_a_topic_that_was_made_shows_its_settings_only_to_those_who_may_see_them(
    guarded: Guarded,
) -> None:
    guarded.add(
        [
            Acl(TOPIC, "new", PREFIXED, "User:u", "*", CREATE, ALLOW),
            Acl(TOPIC, "new-seen", LITERAL, "User:u", "*", DESCRIBE_CONFIGS, ALLOW),
        ]
    )
    user = guarded.speak("u")
    answer = user.ask(
        ApiKey.CREATE_TOPICS,
        7,
        create_topics.CreateTopicsRequest(
            topics=[create_topics.CreatableTopic(name, 2, 1) for name in ("new", "new-seen", "b")]
        ),
    )
    made = {one.name: one for one in answer.topics}
    assert [made[name].error_code for name in ("new", "new-seen", "b")] == [0, 0, OVER]
    assert made["new"].topic_config_error_code == OVER
    assert (made["new"].num_partitions, made["new"].configs) == (-1, [])
    assert made["new-seen"].topic_config_error_code == 0
    assert made["new-seen"].num_partitions == 2
    assert made["new-seen"].configs


def test_lists_of_groups_and_transactions_leave_out_what_one_may_not_describe(
    guarded: Guarded,
) -> None:
    guarded.admin.create("t")
    for group in ("g1", "g2"):
        assert commit(guarded.admin, group, "t") == 0
    for one in ("x1", "x2"):
        guarded.admin.ask(
            ApiKey.INIT_PRODUCER_ID, 5, init_producer_id.InitProducerIdRequest(one, 1000)
        )
    user = guarded.speak("u")

    def groups() -> list[str]:
        answer = user.ask(ApiKey.LIST_GROUPS, 5, list_groups.ListGroupsRequest())
        assert answer.error_code == 0
        return sorted(one.group_id for one in answer.groups)

    def transactions() -> list[str]:
        request = list_transactions.ListTransactionsRequest()
        answer = user.ask(ApiKey.LIST_TRANSACTIONS, 1, request)
        return sorted(one.transactional_id for one in answer.transaction_states)

    assert (groups(), transactions()) == ([], [])
    guarded.allow("u", (READ, GROUP, "g1"), (WRITE, TRANSACTIONAL_ID, "x2"))
    assert (groups(), transactions()) == (["g1"], ["x2"])
    guarded.allow("u", (DESCRIBE, CLUSTER, CLUSTER_NAME))
    assert (groups(), transactions()) == (["g1", "g2"], ["x2"])


def test_offsets_of_all_topics_leave_out_what_one_may_not_describe(guarded: Guarded) -> None:
    for name in ("a", "b"):
        guarded.admin.create(name)
        assert commit(guarded.admin, "g", name) == 0
    guarded.allow("u", (DESCRIBE, GROUP, "g"), (DESCRIBE, TOPIC, "a"))
    user = guarded.speak("u")
    answer = user.ask(
        ApiKey.OFFSET_FETCH,
        8,
        offset_fetch.OffsetFetchRequest(
            groups=[offset_fetch.OffsetFetchRequestGroup("g", None, -1, None)]
        ),
    )
    assert [topic.name for topic in answer.groups[0].topics] == ["a"]
    answer = user.ask(ApiKey.OFFSET_FETCH, 7, offset_fetch.OffsetFetchRequest("g", None))
    assert [topic.name for topic in answer.topics] == ["a"]


def test_the_bits_say_what_one_may_do(guarded: Guarded) -> None:
    guarded.admin.create("t")
    commit(guarded.admin, "g", "t")
    guarded.allow("u", (WRITE, TOPIC, "t"), (READ, GROUP, "g"), (CREATE, CLUSTER, CLUSTER_NAME))
    user = guarded.speak("u")

    def topic_bits() -> int:
        request = metadata.MetadataRequest(
            [metadata.MetadataRequestTopic(name="t")], False, True, True
        )
        answer = user.ask(ApiKey.METADATA, 9, request)
        return int(answer.topics[0].topic_authorized_operations)

    assert topic_bits() == bits(WRITE, DESCRIBE)
    answer = user.ask(ApiKey.DESCRIBE_GROUPS, 5, describe_groups.DescribeGroupsRequest(["g"], True))
    assert answer.groups[0].authorized_operations == bits(READ, DESCRIBE)
    answer = user.ask(ApiKey.DESCRIBE_GROUPS, 5, describe_groups.DescribeGroupsRequest(["g"]))
    assert answer.groups[0].authorized_operations == NOT_ASKED
    asked = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert user.ask(ApiKey.DESCRIBE_CLUSTER, 1, asked).cluster_authorized_operations == 0
    guarded.allow("u", (ALTER, CLUSTER, CLUSTER_NAME))
    answer = user.ask(ApiKey.DESCRIBE_CLUSTER, 1, asked)
    assert answer.cluster_authorized_operations == bits(CREATE, ALTER, DESCRIBE)
    guarded.allow("u", (ALL, TOPIC, "*"))
    assert topic_bits() == bits(3, 4, 5, 6, 7, 8, 10, 11)


def test_a_pattern_finds_only_what_the_member_may_describe(guarded: Guarded) -> None:
    ids = {name: guarded.admin.create(name) for name in ("ev-a", "ev-b", "other")}
    guarded.allow("u", (READ, GROUP, "g"), (READ, TOPIC, "ev-b"))
    user = guarded.speak("u")

    def beat(epoch: int, pattern: str | None) -> object:
        return user.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=epoch,
                rebalance_timeout_ms=1000 if epoch == 0 else -1,
                subscribed_topic_names=None,
                subscribed_topic_regex=pattern,
                topic_partitions=[] if epoch == 0 else None,
            ),
        )

    answer = beat(0, "ev-.*")
    assert answer.error_code == 0  # type: ignore[attr-defined]
    assigned = [one.topic_id for one in answer.assignment.topic_partitions]  # type: ignore[attr-defined]
    assert assigned == [ids["ev-b"]]
    described = consumer_group_describe.ConsumerGroupDescribeRequest(["g"])
    answer = user.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, described)
    assert answer.groups[0].error_code == 0
    guarded.allow("w", (DESCRIBE, GROUP, "g"))
    answer = guarded.speak("w").ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, described)
    assert (answer.groups[0].error_code, answer.groups[0].members) == (OVER, [])


def test_rules_that_change_hold_for_the_next_request(guarded: Guarded) -> None:
    guarded.admin.create("t")
    user = guarded.speak("u")
    code = user.produce("t", batch_of(b"1")).error_code
    assert code == OVER
    guarded.allow("u", (WRITE, TOPIC, "t"))
    assert user.produce("t", batch_of(b"2")).error_code == 0
    guarded.add([Acl(TOPIC, "t", PREFIXED, "User:*", "*", WRITE, DENY)])
    assert user.produce("t", batch_of(b"3")).error_code == OVER
    assert values_of(guarded.admin.fetch("t", 0).records) == [b"2"]


def test_rules_that_change_under_load_hold_once_they_are_answered(guarded: Guarded) -> None:
    guarded.admin.create("t")
    rule = Acl(TOPIC, "t", LITERAL, "User:u", "*", WRITE, ALLOW)
    stop, strange = threading.Event(), list[int]()

    def load(client: WireClient) -> None:
        while not stop.is_set():
            code = client.produce("t", batch_of(b"load")).error_code
            if code not in (0, OVER):
                strange.append(code)

    others = [threading.Thread(target=load, args=(guarded.speak("u"),)) for _ in range(3)]
    for each in others:
        each.start()
    try:
        user = guarded.speak("u")
        for _ in range(25):
            assert user.produce("t", batch_of(b"x")).error_code == OVER
            guarded.add([rule])
            assert user.produce("t", batch_of(b"x")).error_code == 0
            guarded.remove((TOPIC, "t", LITERAL, "User:u", "*", WRITE, ALLOW))
    finally:
        stop.set()
        for each in others:
            each.join(60)
    assert not strange


def test_a_new_log_in_forgets_what_the_old_one_was_allowed(guarded: Guarded) -> None:
    guarded.admin.create("t")
    guarded.allow("u", (WRITE, TOPIC, "t"))
    user = guarded.speak("u")
    assert user.produce("t", batch_of(b"1")).error_code == 0
    guarded.change(user, principal=ANONYMOUS)
    assert user.produce("t", batch_of(b"2")).error_code == OVER


def test_a_fetch_that_waits_is_refused_when_its_permission_goes(guarded: Guarded) -> None:
    guarded.admin.create("t")
    guarded.allow("u", (READ, TOPIC, "t"))
    user = guarded.speak("u")
    user.say(ApiKey.FETCH, 12, user.fetch_request("t", 0, max_wait_ms=60_000))
    guarded.wait_until(lambda: guarded.broker.fetch.parked_count > 0)
    guarded.remove()
    guarded.admin.produce("t", batch_of(b"secret"))
    answer = user.hear()
    partition = answer.responses[0].partitions[0]
    assert (partition.error_code, bytes(partition.records or b"")) == (OVER, b"")


def test_a_fetch_session_is_asked_for_permission_each_time(guarded: Guarded) -> None:
    for name in ("a", "b"):
        guarded.admin.create(name)
        guarded.admin.produce(name, batch_of(b"v"))
    guarded.allow("u", (READ, TOPIC, "a"), (READ, TOPIC, "b"))
    user = guarded.speak("u")

    def ask(session: int, epoch: int, names: tuple[str, ...]) -> fetch.FetchResponse:
        request = fetch.FetchRequest(
            max_wait_ms=0,
            max_bytes=1000,
            session_id=session,
            session_epoch=epoch,
            topics=[
                fetch.FetchTopic(
                    topic=name,
                    partitions=[fetch.FetchPartition(0, -1, 0, partition_max_bytes=1000)],
                )
                for name in names
            ],
        )
        answer: fetch.FetchResponse = user.ask(ApiKey.FETCH, 12, request)
        return answer

    first = ask(0, 0, ("a", "b"))
    assert first.session_id
    guarded.remove()
    guarded.allow("u", (READ, TOPIC, "a"))
    codes = {
        topic.topic: topic.partitions[0].error_code
        for topic in ask(first.session_id, 1, ()).responses
    }
    assert codes == {"a": 0, "b": OVER}


def test_one_refused_topic_does_not_keep_the_others_from_being_written(guarded: Guarded) -> None:
    for name in ("a", "b"):
        guarded.admin.create(name)
    guarded.allow("u", (WRITE, TOPIC, "a"))
    user = guarded.speak("u")
    request = user.produce_request("b", batch_of(b"1"))
    request.topic_data += user.produce_request("a", batch_of(b"2")).topic_data
    answer = user.ask(ApiKey.PRODUCE, 9, request)
    codes = {one.name: one.partition_responses[0].error_code for one in answer.responses}
    assert codes == {"a": 0, "b": OVER}
    assert values_of(guarded.admin.fetch("a", 0).records) == [b"2"]
    assert guarded.admin.fetch("b", 0).high_watermark == 0


def test_who_does_not_listen_is_hung_up_on_when_refused(guarded: Guarded) -> None:
    guarded.admin.create("t")
    user = guarded.speak("u")
    user.say(ApiKey.PRODUCE, 9, user.produce_request("t", batch_of(b"1"), acks=0))
    user.expect_nothing()
    assert user.closed_by_peer()


def test_rules_name_addresses(guarded: Guarded) -> None:
    guarded.admin.create("t")
    user = guarded.speak("u")
    guarded.allow("u", (WRITE, TOPIC, "t"), host="10.1.2.3")
    assert user.produce("t", batch_of(b"1")).error_code == OVER
    guarded.allow("u", (WRITE, TOPIC, "t"), host="127.0.0.1")
    assert user.produce("t", batch_of(b"2")).error_code == 0


def test_an_anonymous_client_needs_rules_for_anonymous(guarded: Guarded) -> None:
    guarded.admin.create("t")
    with WireClient(guarded.address) as stranger:
        assert stranger.produce("t", batch_of(b"1")).error_code == OVER
        guarded.allow("ANONYMOUS", (WRITE, TOPIC, "t"))
        assert stranger.produce("t", batch_of(b"2")).error_code == 0


def test_reading_without_a_group_needs_no_permission_for_one(guarded: Guarded) -> None:
    guarded.admin.create("t")
    guarded.admin.produce("t", batch_of(b"1", b"2"))
    guarded.allow("ANONYMOUS", (READ, TOPIC, "t"))
    with tr.connect(guarded.address) as log:
        reading = log.read("t", follow=True)
        assert [next(reading).value for _ in range(2)] == [b"1", b"2"]
        # librdkafka asks after the group that it must be given a name of, and is refused.
        asked = guarded.broker.router.requests
        guarded.wait_until(lambda: asked[ApiKey.FIND_COORDINATOR] > 1)
        guarded.admin.produce("t", batch_of(b"3"))
        assert next(reading).value == b"3"
        reading.close()
        with log.consumer(group="g", topics=["t"]) as reading, pytest.raises(NotAllowedError):
            next(iter(reading))


def test_a_producer_that_may_not_write_is_told_and_does_not_hang(guarded: Guarded) -> None:
    guarded.admin.create("t")
    guarded.allow("ANONYMOUS", (READ, TOPIC, "t"))
    with tr.connect(guarded.address) as log, log.producer() as producer:
        sent = [producer.send("t", value=b"%d" % number) for number in range(10)]
        for each in sent:
            with pytest.raises(NotAllowedError):
                each.result(60)
        with pytest.raises(NotAllowedError):
            producer.send("t", value=b"later").result(60)


def test_everything_is_open_where_no_rule_is_only_if_that_is_set(
    start_guarded: Callable[..., Guarded],
) -> None:
    broker = start_guarded(allow_everyone_if_no_acl_found="true")
    broker.admin.create("t")
    user = broker.speak("u")
    assert user.produce("t", batch_of(b"1")).error_code == 0
    broker.allow("other", (READ, TOPIC, "t"))
    assert user.produce("t", batch_of(b"2")).error_code == OVER


def test_the_project_owns_its_topics_and_nothing_else(guarded: Guarded) -> None:
    project = guarded.speak(ANONYMOUS, project=True)
    project.create("__tailrace_ticks")
    assert project.produce("__tailrace_ticks", batch_of(b"1")).error_code == 0
    assert project.fetch("__tailrace_ticks", 0).error_code == 0
    guarded.admin.create("t")
    assert project.produce("t", batch_of(b"1")).error_code == OVER
    guarded.add([Acl(TOPIC, "t", LITERAL, "Project:tailrace", "*", WRITE, ALLOW)])
    assert project.produce("t", batch_of(b"1")).error_code == 0
    with WireClient(guarded.address) as stranger:
        assert stranger.produce("t", batch_of(b"1")).error_code == OVER
        assert stranger.produce("__tailrace_ticks", batch_of(b"1")).error_code == OVER
    guarded.allow("u", (ALL, TOPIC, "*"))
    refused = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
    user = guarded.speak("u")
    assert user.produce("__tailrace_ticks", batch_of(b"1")).error_code == refused


def test_the_audit_log_tells_denials_and_only_those_asked_for(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    audit = "tailrace.broker.authorizer"
    caplog.set_level(logging.INFO, audit)

    def heard() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == audit]

    guarded.admin.create("t")
    user = guarded.speak("eve\nINFO")
    topics(user)
    assert not heard()
    for _ in range(2):  # the second one is remembered, and told all the same
        user.produce("t", batch_of(b"1"))
    assert [record.getMessage() for record in heard()] == ["denied", "denied"]
    told = vars(heard()[0])
    assert told["principal"] == "User:eve\nINFO"
    assert (told["operation"], told["resource"], told["resource_name"]) == ("write", "topic", "t")
    assert (told["host"], told["request"], told["rule"]) == ("127.0.0.1", "produce", "none")
    assert guarded.broker.authorizer is not None
    assert guarded.broker.authorizer.denied_total == 2
    caplog.clear()
    caplog.set_level(logging.DEBUG, audit)
    guarded.admin.produce("t", batch_of(b"1"))
    told = vars(heard()[-1])
    assert (told["levelname"], told["msg"], told["rule"]) == ("DEBUG", "allowed", "super user")


def test_quotas_of_users_hold_for_the_user_who_logged_in(guarded: Guarded) -> None:
    guarded.admin.create("t")
    guarded.allow("slow", (WRITE, TOPIC, "t"))
    quotas = guarded.broker.quotas
    guarded.broker.call_from_thread(lambda: quotas.change(Entity("slow"), {PRODUCER_BYTES: 1.0}))
    guarded.wait_until(lambda: bool(quotas.table))
    slow = guarded.speak("slow")
    answer = slow.ask(ApiKey.PRODUCE, 9, slow.produce_request("t", batch_of(b"x" * 10_000)))
    assert answer.throttle_time_ms > 0
    answer = guarded.admin.ask(
        ApiKey.PRODUCE, 9, guarded.admin.produce_request("t", batch_of(b"x" * 10_000))
    )
    assert answer.throttle_time_ms == 0
    assert (
        b'kafka_server_produce_quota{user="slow",client_id=""} 1.0' in guarded.broker.metrics.page()
    )


def test_rules_are_there_again_after_a_restart(tmp_path: Path) -> None:
    acls = {
        Acl(TOPIC, "a", LITERAL, "User:u", "*", READ, ALLOW),
        Acl(GROUP, "g", PREFIXED, "User:u", "10.0.0.1", READ, DENY),
    }
    with Guarded(tmp_path / "log") as broker:
        broker.add(acls | {Acl(TOPIC, "gone", LITERAL, "User:u", "*", READ, ALLOW)})
        assert [
            len(one.matching_acls) for one in broker.remove((2, "gone", 3, None, None, 1, 1))
        ] == [1]
        assert broker.acls() == acls
    with Guarded(tmp_path / "log") as broker:
        assert broker.acls() == acls
        assert broker.acls(TOPIC, "abc", 2, None, None, 1, 1) == set()
        assert broker.acls(GROUP, "gx", 2, None, None, 1, 1) == {max(acls)}


def test_without_an_authorizer_there_are_no_rules_to_see(start: Callable[..., object]) -> None:
    broker = start()
    with WireClient(broker.address) as client:  # type: ignore[attr-defined]
        guarded = object.__new__(Guarded)
        guarded.admin = client
        acl = Acl(TOPIC, "a", LITERAL, "User:u", "*", READ, ALLOW)
        disabled = int(ErrorCode.SECURITY_DISABLED)
        assert [one.error_code for one in guarded.add([acl])] == [disabled]
        assert [one.error_code for one in guarded.remove()] == [disabled]
        with pytest.raises(AssertionError, match="No Authorizer"):
            guarded.acls()


def test_wrong_rules_are_told_one_by_one_and_the_right_ones_kept(guarded: Guarded) -> None:
    right = Acl(TOPIC, "a", LITERAL, "User:u", "*", READ, ALLOW)
    wrong = right._replace(principal="u")
    results = guarded.add([wrong, right, right, right._replace(resource=CLUSTER)])
    assert [one.error_code for one in results] == [42, 0, 0, 42]
    assert guarded.acls() == {right}
    too_many = [right._replace(name=f"t{number}") for number in range(10_001)]
    assert {one.error_code for one in guarded.add(too_many)} == {44}
    assert guarded.acls() == {right}


def test_a_request_that_would_compare_for_minutes_is_refused(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "COMPARISONS_PER_REQUEST", 10)
    rules = [Acl(TOPIC, f"t{number}", LITERAL, "User:u", "*", READ, ALLOW) for number in range(6)]
    guarded.add(rules)
    vague = (TOPIC, None, 1, None, None, 1, 1)
    assert {one.error_code for one in guarded.remove(vague, vague)} == {44}
    assert guarded.acls() == set(rules)
    gone = guarded.remove(*rules[:5])  # each names one rule
    assert [len(one.matching_acls) for one in gone] == [1] * 5
    assert [len(one.matching_acls) for one in guarded.remove(vague)] == [1]


def test_one_request_does_not_fill_the_audit_log(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tailrace.broker.authorizer")
    user = guarded.speak("u")
    codes = set(topics(user, *(f"t{number}" for number in range(300))).values())
    assert codes == {OVER}
    told = [one for one in caplog.records if one.name == "tailrace.broker.authorizer"]
    assert len(told) == 100
