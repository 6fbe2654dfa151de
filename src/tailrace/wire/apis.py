"""The requests that are spoken here: key, versions, and where their codec lives.

The table is written by codegen/generate.py and holds every version Apache Kafka's
definitions give; a server chooses from it what it offers. The codec of a request is
imported when it is first used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from importlib import import_module

from tailrace.wire.errors import DecodeError, UnsupportedVersionError
from tailrace.wire.message import Message

NEVER = 32767

Decoders = Mapping[int, Callable[[memoryview, int], Message]]
Encoders = Mapping[int, Callable[[Message, bytearray], None]]

BROKEN_FRAME = (struct.error, IndexError, ValueError, OverflowError)


class ApiKey(IntEnum):
    """Kafka's API keys."""

    # begin generated keys
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    # end generated keys


class Api:
    """One request and its response, in all versions."""

    __slots__ = (
        "_decode_request",
        "_decode_response",
        "_encode_request",
        "_encode_response",
        "first_flexible",
        "key",
        "max_version",
        "min_version",
        "module",
    )

    def __init__(
        self, key: int, module: str, min_version: int, max_version: int, first_flexible: int
    ) -> None:
        self.key = key
        self.module = module
        self.min_version = min_version
        self.max_version = max_version
        self.first_flexible = first_flexible
        self._decode_request: Decoders | None = None

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.module} {self.min_version}–{self.max_version})"

    def _load(self) -> Decoders:
        codecs = vars(import_module(f"tailrace.wire.messages.{self.module}"))
        name = self.module.upper()
        self._decode_response: Decoders = codecs[f"DECODE_{name}_RESPONSE"]
        self._encode_request: Encoders = codecs[f"ENCODE_{name}_REQUEST"]
        self._encode_response: Encoders = codecs[f"ENCODE_{name}_RESPONSE"]
        decoders: Decoders = codecs[f"DECODE_{name}_REQUEST"]
        self._decode_request = decoders
        return decoders

    def flexible(self, version: int) -> bool:
        return version >= self.first_flexible

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.first_flexible else 1

    def response_header_version(self, version: int) -> int:
        """0, or 1 with tags; ApiVersions stays at 0 so that any client can read it."""
        return 1 if version >= self.first_flexible and self.key != ApiKey.API_VERSIONS else 0

    def decode_request(
        self, version: int, buffer: memoryview | bytes | bytearray, position: int = 0
    ) -> Message:
        """The request whose body starts at `position`. Raises DecodeError,
        UnsupportedVersionError."""
        return self._decode(self._decode_request or self._load(), version, buffer, position)

    def decode_response(
        self, version: int, buffer: memoryview | bytes | bytearray, position: int = 0
    ) -> Message:
        if self._decode_request is None:
            self._load()
        return self._decode(self._decode_response, version, buffer, position)

    def encode_request(self, version: int, message: Message, out: bytearray) -> None:
        """Append the body. Fields that the version does not carry are left out."""
        if self._decode_request is None:
            self._load()
        self._encode(self._encode_request, version, message, out)

    def encode_response(self, version: int, message: Message, out: bytearray) -> None:
        if self._decode_request is None:
            self._load()
        self._encode(self._encode_response, version, message, out)

    def _decode(
        self,
        table: Decoders,
        version: int,
        buffer: memoryview | bytes | bytearray,
        position: int,
    ) -> Message:
        decode = table.get(version)
        if decode is None:
            raise self._unsupported(version)
        if type(buffer) is not memoryview:
            buffer = memoryview(buffer)
        try:
            return decode(buffer, position)
        except BROKEN_FRAME as error:
            raise DecodeError(f"malformed {self.module} in version {version}: {error}") from error

    def _encode(self, table: Encoders, version: int, message: Message, out: bytearray) -> None:
        encode = table.get(version)
        if encode is None:
            raise self._unsupported(version)
        encode(message, out)

    def _unsupported(self, version: int) -> UnsupportedVersionError:
        return UnsupportedVersionError(
            f"{self.module} has no version {version}",
            detail=f"versions {self.min_version} to {self.max_version} exist",
        )


APIS: dict[int, Api] = {
    # begin generated table
    ApiKey.PRODUCE: Api(0, "produce", 3, 13, 9),
    ApiKey.FETCH: Api(1, "fetch", 4, 18, 12),
    ApiKey.LIST_OFFSETS: Api(2, "list_offsets", 1, 11, 6),
    ApiKey.METADATA: Api(3, "metadata", 0, 13, 9),
    ApiKey.OFFSET_COMMIT: Api(8, "offset_commit", 2, 10, 8),
    ApiKey.OFFSET_FETCH: Api(9, "offset_fetch", 1, 10, 6),
    ApiKey.FIND_COORDINATOR: Api(10, "find_coordinator", 0, 6, 3),
    ApiKey.JOIN_GROUP: Api(11, "join_group", 0, 9, 6),
    ApiKey.HEARTBEAT: Api(12, "heartbeat", 0, 4, 4),
    ApiKey.LEAVE_GROUP: Api(13, "leave_group", 0, 5, 4),
    ApiKey.SYNC_GROUP: Api(14, "sync_group", 0, 5, 4),
    ApiKey.DESCRIBE_GROUPS: Api(15, "describe_groups", 0, 6, 5),
    ApiKey.LIST_GROUPS: Api(16, "list_groups", 0, 5, 3),
    ApiKey.SASL_HANDSHAKE: Api(17, "sasl_handshake", 0, 1, NEVER),
    ApiKey.API_VERSIONS: Api(18, "api_versions", 0, 4, 3),
    ApiKey.CREATE_TOPICS: Api(19, "create_topics", 2, 7, 5),
    ApiKey.DELETE_TOPICS: Api(20, "delete_topics", 1, 6, 4),
    ApiKey.DELETE_RECORDS: Api(21, "delete_records", 0, 2, 2),
    ApiKey.INIT_PRODUCER_ID: Api(22, "init_producer_id", 0, 6, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(23, "offset_for_leader_epoch", 2, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(24, "add_partitions_to_txn", 0, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(25, "add_offsets_to_txn", 0, 4, 3),
    ApiKey.END_TXN: Api(26, "end_txn", 0, 5, 3),
    ApiKey.WRITE_TXN_MARKERS: Api(27, "write_txn_markers", 1, 2, 1),
    ApiKey.TXN_OFFSET_COMMIT: Api(28, "txn_offset_commit", 0, 5, 3),
    ApiKey.DESCRIBE_ACLS: Api(29, "describe_acls", 1, 3, 2),
    ApiKey.CREATE_ACLS: Api(30, "create_acls", 1, 3, 2),
    ApiKey.DELETE_ACLS: Api(31, "delete_acls", 1, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: Api(32, "describe_configs", 1, 4, 4),
    ApiKey.ALTER_CONFIGS: Api(33, "alter_configs", 0, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Api(34, "alter_replica_log_dirs", 1, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Api(35, "describe_log_dirs", 1, 5, 2),
    ApiKey.SASL_AUTHENTICATE: Api(36, "sasl_authenticate", 0, 2, 2),
    ApiKey.CREATE_PARTITIONS: Api(37, "create_partitions", 0, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: Api(38, "create_delegation_token", 1, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: Api(39, "renew_delegation_token", 1, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Api(40, "expire_delegation_token", 1, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Api(41, "describe_delegation_token", 1, 3, 2),
    ApiKey.DELETE_GROUPS: Api(42, "delete_groups", 0, 2, 2),
    ApiKey.ELECT_LEADERS: Api(43, "elect_leaders", 0, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(44, "incremental_alter_configs", 0, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(45, "alter_partition_reassignments", 0, 1, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(46, "list_partition_reassignments", 0, 0, 0),
    ApiKey.OFFSET_DELETE: Api(47, "offset_delete", 0, 0, NEVER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Api(48, "describe_client_quotas", 0, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: Api(49, "alter_client_quotas", 0, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Api(50, "describe_user_scram_credentials", 0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Api(51, "alter_user_scram_credentials", 0, 0, 0),
    ApiKey.DESCRIBE_QUORUM: Api(55, "describe_quorum", 0, 2, 0),
    ApiKey.UPDATE_FEATURES: Api(57, "update_features", 0, 2, 0),
    ApiKey.DESCRIBE_CLUSTER: Api(60, "describe_cluster", 0, 2, 0),
    ApiKey.DESCRIBE_PRODUCERS: Api(61, "describe_producers", 0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: Api(65, "describe_transactions", 0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: Api(66, "list_transactions", 0, 2, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Api(68, "consumer_group_heartbeat", 0, 1, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Api(69, "consumer_group_describe", 0, 1, 0),
    ApiKey.LIST_CONFIG_RESOURCES: Api(74, "list_config_resources", 0, 1, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(75, "describe_topic_partitions", 0, 0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: Api(76, "share_group_heartbeat", 1, 1, 0),
    ApiKey.SHARE_GROUP_DESCRIBE: Api(77, "share_group_describe", 1, 1, 0),
    ApiKey.SHARE_FETCH: Api(78, "share_fetch", 1, 2, 0),
    ApiKey.SHARE_ACKNOWLEDGE: Api(79, "share_acknowledge", 1, 2, 0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Api(90, "describe_share_group_offsets", 0, 1, 0),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Api(91, "alter_share_group_offsets", 0, 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Api(92, "delete_share_group_offsets", 0, 0, 0),
    # end generated table
}
