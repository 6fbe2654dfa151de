"""What can go wrong between a client and a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.errors import TailraceError
from tailrace.wire.errors import ErrorCode, error_name

if TYPE_CHECKING:
    from tailrace.client.record import LogRecord


class ClientError(TailraceError):
    """A request to the log failed."""

    code = "client"


class BrokerUnavailableError(ClientError):
    """No broker of the given addresses answers: nothing listens there, the name does
    not resolve, or the connection was refused or lost. Start the broker, or correct
    the address."""

    code = "client-unavailable"


class AuthenticationError(ClientError):
    """The log does not let us in: a wrong user name, password or certificate, a mechanism it
    does not offer, or a server that cannot prove who it is. Trying again does not help; correct
    `[log.security]` or the users of the log."""

    code = "client-authentication"


class RequestTimeoutError(ClientError):
    """The log did not give a final answer in time. For a write this means *unknown*:
    it may or may not have happened. A transaction that is given up is aborted by the
    log after its transaction time-out."""

    code = "client-timeout"


class RequestError(ClientError):
    """The log answered with an error that trying again does not change. `error_code`
    is Kafka's number for it."""

    code = "client-request"
    error_code: int = ErrorCode.UNKNOWN_SERVER_ERROR

    @classmethod
    def of(cls, error_code: int, action: str, *, detail: str = "", hint: str = "") -> RequestError:
        """The error for a code, as the narrowest type there is."""
        kind = _KINDS.get(error_code, RequestError if cls is ClientError else cls)
        try:
            sentence = ErrorCode(error_code).message
        except ValueError:
            sentence = "an error this version does not know"
        error = kind(
            f"{action}: {error_name(error_code).lower().replace('_', ' ')}",
            detail=detail or f"{sentence} (Kafka error {error_code})",
            hint=hint,
        )
        error.error_code = error_code
        return error


class ProducerFencedError(RequestError):
    """A newer writer with the same transactional id has taken over, or the transaction
    took longer than its time-out and the log ended it. This writer must stop: nothing
    of its open transaction will ever be visible."""

    code = "client-fenced"
    error_code = ErrorCode.PRODUCER_FENCED


class UnknownTopicError(RequestError):
    """The topic or partition does not exist on this log. `tailrace topic list` shows
    what exists; `tailrace topic create` makes one."""

    code = "client-unknown-topic"
    error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TopicExistsError(RequestError):
    """A topic of this name exists already."""

    code = "client-topic-exists"
    error_code = ErrorCode.TOPIC_ALREADY_EXISTS


class RecordTooLargeError(RequestError):
    """A record is larger than the topic takes (`max.message.bytes`). Raise the topic's
    setting, or keep large objects elsewhere and send their address."""

    code = "client-too-large"
    error_code = ErrorCode.MESSAGE_TOO_LARGE
    place: tuple[str, int] | None = None


class OffsetOutOfRangeError(RequestError):
    """The offset is not in the log: before its start (retention removed it) or past its
    end (the log was truncated or recreated)."""

    code = "client-offset-out-of-range"
    error_code = ErrorCode.OFFSET_OUT_OF_RANGE


class NotAllowedError(RequestError):
    """The log refuses this user the operation. Ask its operator for the permission."""

    code = "client-not-allowed"
    error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class TopicProtectedError(RequestError):
    """The log does not take this topic: the name is not allowed, or the topic belongs to the
    broker itself (`__consumer_offsets`, …) or to the project (`__tailrace…`). A process of the
    project shows that it is one by the token in `project-token` of the log's directory. Where
    it cannot read that file, because it runs as another user or on another machine, give it
    the token in the environment variable `TAILRACE_LOG_TOKEN`."""

    code = "client-topic-protected"
    error_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class EventsCompactedError(ClientError):
    """An event topic is never compacted and never loses records by age or size: its events are
    the truth, and a state could not be told from them any more. To take something back, write a
    compensating event, such as `Refunded` after `Charged`."""

    code = "events-compacted"


class CommitFailedError(RequestError):
    """Offsets were not stored because the group has moved on: the member was removed or
    its partitions now belong to another. The records will be read again by their new
    owner."""

    code = "client-commit-failed"
    error_code = ErrorCode.ILLEGAL_GENERATION


class TransactionStateError(ClientError):
    """A call that the state of the writer does not allow: sending before `init()`,
    or going on after an error without `abort()`."""

    code = "client-transaction-state"


class ClientClosedError(ClientError):
    """The client was closed and cannot be used any more."""

    code = "client-closed"


class ConcurrentUseError(ClientError):
    """A consumer was used from two threads at once. Give each thread its own consumer;
    only `wakeup()` may be called from anywhere."""

    code = "client-two-threads"


class WakeupError(ClientError):
    """`wakeup()` was called while the consumer waited in `poll()`."""

    code = "client-wakeup"


class BufferFullError(ClientError):
    """The producer's buffer (`buffer_memory`) stayed full for `max_block`: records are
    sent more slowly than they are made."""

    code = "client-buffer-full"


class SerializationError(ClientError):
    """A value could not be turned into bytes; nothing was sent."""

    code = "client-serialization"


class DeserializationError(ClientError):
    """The bytes of a record are not in the form the reader expects: another serializer
    wrote them, or their schema is not in this registry. `record` is the record as it
    stands in the log. A consumer stays in front of it: `consumer.seek` to the offset
    behind it goes on, after keeping the record wherever bad records are kept."""

    code = "client-deserialization"
    record: LogRecord | None = None


class UnreadableBatchError(ClientError):
    """A batch in the log cannot be read although its checksum is right: a producer wrote bytes
    that are no records, and a broker took them without a look (this one does look, unless
    `tailrace.validate=compacted`). Reading it again does not help. The message names topic,
    partition and offsets. A consumer stays in front of it: `consumer.seek` to the offset behind
    it goes on. `kafka-delete-records.sh` up to that offset removes it, with all before it, for
    every reader. `first_offset` and `last_offset` say what the batch holds."""

    code = "client-unreadable-batch"
    topic: str = ""
    partition: int = -1
    first_offset: int = -1
    last_offset: int = -1

    @classmethod
    def at(
        cls, topic: str, partition: int, first: int, last: int, reason: str
    ) -> UnreadableBatchError:
        """The error for one batch."""
        offsets = f"record {first}" if first == last else f"records {first} to {last}"
        error = cls(
            f"{offsets} of {topic}/{partition} cannot be read",
            detail=reason,
            hint=f"go on behind it, at offset {last + 1}; `tailrace errors {cls.code}` says how",
        )
        error.topic, error.partition = topic, partition
        error.first_offset, error.last_offset = first, last
        return error


class DamagedBatchError(ClientError):
    """A batch does not match its checksum: bytes changed on a disk, in memory or on the way.
    The message names topic, partition and offsets. Nothing of it is used, and reading it again
    helps only if the bytes changed on the way. Kafka's `kafka-dump-log.sh` looks at the files.
    `first_offset` and `last_offset` say what the batch holds."""

    code = "client-damaged-batch"
    first_offset: int = -1
    last_offset: int = -1


class RegistryError(ClientError):
    """The schema registry did not answer, or refused. `status` is what it answered over
    HTTP (None: nothing). 409: the schema is not compatible with the one before it; 401
    and 403: wrong credentials; 404: the subject or schema is not registered."""

    code = "client-registry"
    status: int | None = None


_KINDS: dict[int, type[RequestError]] = {
    ErrorCode.INVALID_PRODUCER_EPOCH: ProducerFencedError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExistsError,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLargeError,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLargeError,
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.INVALID_TOPIC_EXCEPTION: TopicProtectedError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: NotAllowedError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: NotAllowedError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: NotAllowedError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAllowedError,
    ErrorCode.ILLEGAL_GENERATION: CommitFailedError,
    ErrorCode.UNKNOWN_MEMBER_ID: CommitFailedError,
    ErrorCode.FENCED_INSTANCE_ID: CommitFailedError,
}
