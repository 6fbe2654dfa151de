"""Produce and Fetch by hand say the same as the generated codecs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.wire import fetch, produce
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import decode_request_header, decode_response
from tailrace.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from tailrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PRODUCE = APIS[ApiKey.PRODUCE]
FETCH = APIS[ApiKey.FETCH]

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
names = st.text(max_size=200).filter(lambda text: len(text.encode()) < 32000)
ids = st.binary(min_size=16, max_size=16)


def topics(version: int) -> st.SearchStrategy[str | bytes]:
    return ids if version >= 13 else names


@given(data=st.data(), version=st.integers(3, 13))
def test_a_produce_request_is_read_as_the_generated_codec_reads_it(
    data: st.DataObject, version: int
) -> None:
    chosen = data.draw(st.lists(topics(version), unique=True, max_size=4))
    records = st.none() | st.binary(max_size=300)
    request = ProduceRequest(
        transactional_id=data.draw(st.none() | names),
        acks=data.draw(st.sampled_from([-1, 0, 1])),
        timeout_ms=data.draw(int32),
        topic_data=[
            TopicProduceData(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partition_data=[
                    PartitionProduceData(data.draw(int32), data.draw(records))
                    for _ in range(data.draw(st.integers(0, 4)))
                ],
            )
            for topic in chosen
        ],
    )
    body = bytearray(b"head")
    PRODUCE.encode_request(version, request, body)
    read = produce.decode_produce_request(version, memoryview(body), 4)
    assert read.transactional_id == request.transactional_id
    assert (read.acks, read.timeout_ms) == (request.acks, request.timeout_ms)
    assert [tuple(each) for each in read.partitions] == [
        (topic.topic_id if version >= 13 else topic.name, each.index, each.records)
        for topic in request.topic_data
        for each in topic.partition_data
    ]


@given(data=st.data(), version=st.integers(3, 13))
def test_a_produce_request_is_written_as_the_generated_codec_reads_it(
    data: st.DataObject, version: int
) -> None:
    chosen = data.draw(st.lists(topics(version), unique=True, max_size=4))
    partitions = [
        (topic, index, data.draw(st.binary(max_size=300)))
        for topic in chosen
        for index in range(data.draw(st.integers(1, 4)))
    ]
    pieces = produce.encode_produce_request(version, 7, "t", -1, 1000, partitions)
    frame = b"".join(pieces)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = decode_request_header(memoryview(frame)[4:])
    assert (header.api_key, header.api_version, header.correlation_id) == (0, version, 7)
    request = PRODUCE.decode_request(version, memoryview(frame)[4:], header.body)
    assert isinstance(request, ProduceRequest)
    assert [
        (topic.topic_id if version >= 13 else topic.name, each.index, bytes(each.records or b""))
        for topic in request.topic_data
        for each in topic.partition_data
    ] == partitions


@given(data=st.data(), version=st.integers(3, 13))
def test_a_produce_response_is_written_as_the_generated_codec_reads_it(
    data: st.DataObject, version: int
) -> None:
    chosen = data.draw(st.lists(topics(version), unique=True, max_size=4))
    results = [
        produce.ProduceResult(
            topic, index, data.draw(st.integers(-1, 99)), data.draw(int64), data.draw(int64),
            data.draw(int64), data.draw(st.none() | names),
        )
        for topic in chosen
        for index in range(data.draw(st.integers(1, 3)))
    ]  # fmt: skip
    frame = produce.encode_produce_response(version, 9, results, 11)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, response = decode_response(PRODUCE, version, memoryview(frame)[4:])
    assert isinstance(response, ProduceResponse)
    assert (correlation_id, response.throttle_time_ms) == (9, 11)
    read = [
        produce.ProduceResult(
            topic.topic_id if version >= 13 else topic.name,
            each.index, each.error_code, each.base_offset, each.log_append_time_ms,
            each.log_start_offset, each.error_message,
        )
        for topic in response.responses
        for each in topic.partition_responses
    ]  # fmt: skip
    wanted = results
    if version < 8:
        wanted = [each._replace(error_message=None) for each in wanted]
    if version < 5:
        wanted = [each._replace(log_start_offset=-1) for each in wanted]
    assert read == wanted


@given(data=st.data(), version=st.integers(4, 18))
def test_a_fetch_request_is_read_as_the_generated_codec_reads_it(
    data: st.DataObject, version: int
) -> None:
    request = FetchRequest(
        max_wait_ms=data.draw(int32),
        min_bytes=data.draw(int32),
        max_bytes=data.draw(int32),
        isolation_level=data.draw(st.integers(0, 1)),
        session_id=data.draw(int32),
        session_epoch=data.draw(int32),
        rack_id=data.draw(names),
        topics=[
            FetchTopic(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partitions=[
                    FetchPartition(*(data.draw(kind) for kind in (int32, int32, int64, int32, int64, int32)))
                    for _ in range(data.draw(st.integers(0, 3)))
                ],
            )
            for topic in data.draw(st.lists(topics(version), max_size=3))
        ],
        forgotten_topics_data=[
            ForgottenTopic(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partitions=data.draw(st.lists(int32, max_size=3)),
            )
            for topic in data.draw(st.lists(topics(version), max_size=2))
        ],
    )  # fmt: skip
    body = bytearray()
    FETCH.encode_request(version, request, body)
    wanted = FETCH.decode_request(version, body)
    assert isinstance(wanted, FetchRequest)
    read = fetch.decode_fetch_request(version, memoryview(body), 0)

    def key(topic: FetchTopic | ForgottenTopic) -> str | bytes:
        return topic.topic_id if version >= 13 else topic.topic

    assert read[:6] == (
        wanted.max_wait_ms, wanted.min_bytes, wanted.max_bytes, wanted.isolation_level,
        wanted.session_id, wanted.session_epoch,
    )  # fmt: skip
    assert read.rack_id == wanted.rack_id
    assert read.replica_id == -1 or version < 15
    assert read.forgotten == [
        (key(topic), index) for topic in wanted.forgotten_topics_data for index in topic.partitions
    ]
    start = (lambda each: each.log_start_offset) if version >= 9 else (lambda each: -1)
    assert [tuple(each) for each in read.partitions] == [
        (
            key(topic), each.partition, each.fetch_offset, each.partition_max_bytes,
            each.current_leader_epoch, each.last_fetched_epoch, start(each),
        )
        for topic in wanted.topics
        for each in topic.partitions
    ]  # fmt: skip


@given(data=st.data(), version=st.integers(4, 18))
def test_a_fetch_response_around_records_is_what_the_generated_codec_reads(
    data: st.DataObject, version: int
) -> None:
    chosen = data.draw(st.lists(topics(version), unique=True, max_size=3))
    records: list[bytes] = []
    answers = []
    for topic in chosen:
        for index in range(data.draw(st.integers(1, 3))):
            records.append(data.draw(st.binary(max_size=200)))
            aborted = data.draw(st.none() | st.lists(st.tuples(int64, int64), max_size=2))
            answers.append(
                fetch.FetchAnswer(
                    topic, index, data.draw(st.integers(-1, 99)), data.draw(int64),
                    data.draw(int64), data.draw(int64), len(records[-1]), aborted,
                    data.draw(st.none() | st.tuples(int32, int64)) if version >= 12 else None,
                )
            )  # fmt: skip
    pieces = fetch.encode_fetch_response(
        version, 5, answers, error_code=3, session_id=4, throttle_time_ms=6
    )
    assert len(pieces) == len(answers) + 1
    frame = bytearray(pieces[0])
    for piece, kept in zip(pieces[1:], records, strict=True):
        frame += kept + piece
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    _, response = decode_response(FETCH, version, memoryview(frame)[4:])

    expected = FetchResponse(
        throttle_time_ms=6,
        error_code=3 if version >= 7 else 0,
        session_id=4 if version >= 7 else 0,
    )
    for answer, kept in zip(answers, records, strict=True):
        named = isinstance(answer.topic, str)
        last = expected.responses[-1] if expected.responses else None
        if last is None or (last.topic if named else last.topic_id) != answer.topic:
            last = FetchableTopicResponse(
                topic=answer.topic if isinstance(answer.topic, str) else "",
                topic_id=answer.topic if isinstance(answer.topic, bytes) else bytes(16),
            )
            expected.responses.append(last)
        last.partitions.append(
            PartitionData(
                partition_index=answer.partition,
                error_code=answer.error_code,
                high_watermark=answer.high_watermark,
                last_stable_offset=answer.last_stable_offset,
                log_start_offset=answer.log_start_offset if version >= 5 else -1,
                diverging_epoch=EpochEndOffset(*(answer.diverging_epoch or (-1, -1))),
                aborted_transactions=None
                if answer.aborted is None
                else [AbortedTransaction(*pair) for pair in answer.aborted],
                records=kept,
            )
        )
    assert response == expected
