"""Broker settings, by Kafka's names and with Kafka's meanings.

`DEFINITIONS` is the whole table: what the log reads (`log.settings`) and what the
broker itself reads. A name that is not in it is refused, because a promise that is
silently not kept is worse than an error. `DYNAMIC` may be changed while the broker
runs, as far as topics take their defaults from them they all are.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from tailrace.log.errors import InvalidConfigError
from tailrace.log.settings import BROKER_SETTINGS, INT_MAX, LogSettings, Setting

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_ONE_NODE = ("default.replication.factor", "offsets.topic.replication.factor",
             "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
             "min.insync.replicas")  # fmt: skip


def _own() -> list[Setting]:
    s = Setting
    return [
        s("node.id", "int", "1", "This broker's id.", least=0, read_only=True),
        s("broker.id", "int", "1", "Older name of node.id.", least=0, read_only=True),
        s("advertised.listeners", "string", "", "HOST:PORT that clients are told to connect to; the listening address if empty.", read_only=True),
        s("listeners", "string", "", "HOST:PORT to listen on; `--listen` goes first.", read_only=True),
        s("authorizer.class.name", "string", "", "Who decides what clients may do: nobody if empty, else Kafka's StandardAuthorizer by its full name.", choices=("", STANDARD_AUTHORIZER), read_only=True),
        s("super.users", "string", "", "Principals that may do everything, `User:a;User:b`.", read_only=True),
        s("allow.everyone.if.no.acl.found", "boolean", "false", "Whether a resource that no ACL concerns is open to everybody.", read_only=True),
        s("auto.create.topics.enable", "boolean", "true", "Whether a topic is created when a producer or consumer first names it."),
        s("delete.topic.enable", "boolean", "true", "Whether topics can be deleted."),
        s("default.replication.factor", "int", "1", "Copies of an auto-created topic's records.", least=1),
        s("socket.request.max.bytes", "int", "104857600", "Largest request.", least=1024, read_only=True),
        s("tailrace.request.max.bytes", "int", "1048576", "Largest request of the kinds that need no more; those that carry records may have socket.request.max.bytes, those that grow with a client's partitions 16 MiB.", least=65536, read_only=True),
        s("queued.max.request.bytes", "long", "268435456", "Memory for requests that are being received.", least=1 << 20, read_only=True),
        s("max.connections", "int", "20000", "Most connections at a time.", least=1, read_only=True),
        s("max.connections.per.ip", "int", str(INT_MAX), "Most connections from one address.", least=1, read_only=True),
        s("connections.max.idle.ms", "long", "600000", "Time after which a silent connection is closed.", least=1000, read_only=True),
        s("fetch.max.bytes", "int", "57671680", "Most bytes of records in one answer.", least=1024),
        s("max.incremental.fetch.session.cache.slots", "int", "1000", "Fetch sessions kept.", least=0, read_only=True),
        s("quota.window.num", "int", "11", "Windows over which a client's rate is taken for its quota.", least=2, read_only=True),
        s("quota.window.size.seconds", "int", "1", "Length of such a window.", least=1, read_only=True),
        s("metrics.listen", "string", "", "HOST:PORT of the Prometheus page; none if empty.", read_only=True),
        s("group.initial.rebalance.delay.ms", "int", "0", "Time the first rebalance of an empty group waits for more members.", least=0),
        s("group.min.session.timeout.ms", "int", "6000", "Shortest session time-out a member may ask for.", least=1),
        s("group.max.session.timeout.ms", "int", "1800000", "Longest session time-out a member may ask for.", least=1),
        s("group.max.size", "int", str(INT_MAX), "Most members of a group.", least=1),
        s("group.consumer.session.timeout.ms", "int", "45000", "Silence after which a member of a server-side group is dropped.", least=1),
        s("group.consumer.heartbeat.interval.ms", "int", "5000", "How often members of server-side groups are asked to say something.", least=1),
        s("group.consumer.max.size", "int", str(INT_MAX), "Most members of a server-side group.", least=1),
        s("group.consumer.migration.policy", "string", "bidirectional", "Whether groups with members may change between the classic and the server-side protocol.", choices=("bidirectional", "upgrade", "downgrade", "disabled"), read_only=True),
        s("group.share.session.timeout.ms", "int", "45000", "Silence after which a member of a share group is dropped.", least=1, read_only=True),
        s("group.share.heartbeat.interval.ms", "int", "5000", "How often members of share groups are asked to say something.", least=1, read_only=True),
        s("group.share.max.size", "int", "200", "Most members of a share group.", least=1, read_only=True),
        s("group.share.record.lock.duration.ms", "int", "30000", "How long a record is locked for the member of a share group that got it.", least=100),
        s("group.share.delivery.count.limit", "int", "5", "How often a share group delivers a record before it gives it up.", least=1, most=100),
        s("group.share.max.share.sessions", "int", "2000", "Most share sessions, one for each member that fetches.", least=1, read_only=True),
        s("group.share.partition.max.record.locks", "int", "2000", "Most records of a partition that a share group has in hand.", least=100, read_only=True),
        s("share.coordinator.state.topic.num.partitions", "int", "4", "Partitions of __share_group_state, fixed at its creation.", least=1, most=1000, read_only=True),
        s("offset.metadata.max.bytes", "int", "4096", "Longest text that goes with a committed offset.", least=0),
        s("offsets.topic.num.partitions", "int", "4", "Partitions of __consumer_offsets, fixed at its creation.", least=1, most=1000, read_only=True),
        s("offsets.topic.segment.bytes", "int", "104857600", "Segment size of __consumer_offsets.", least=1024, read_only=True),
        s("offsets.topic.replication.factor", "int", "1", "Copies of __consumer_offsets.", least=1, read_only=True),
        s("offsets.retention.minutes", "int", "10080", "Time after which the offsets of an empty group expire.", least=1),
        s("offsets.retention.check.interval.ms", "long", "600000", "Time between two looks for expired offsets.", least=1, read_only=True),
        s("transaction.max.timeout.ms", "int", "900000", "Longest transaction time-out a producer may ask for.", least=1),
        s("transaction.state.log.num.partitions", "int", "4", "Partitions of __transaction_state, fixed at its creation.", least=1, most=1000, read_only=True),
        s("transaction.state.log.segment.bytes", "int", "104857600", "Segment size of __transaction_state.", least=1024, read_only=True),
        s("transaction.state.log.replication.factor", "int", "1", "Copies of __transaction_state.", least=1, read_only=True),
        s("transaction.state.log.min.isr", "int", "1", "Copies that must have a transaction's state.", least=1, read_only=True),
        s("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int", "1000", "Time between two looks for transactions past their time-out.", least=1, read_only=True),
        s("transaction.flush", "boolean", "true", "Whether a committed transaction is on the disk before EndTxn is answered."),
        s("transactional.id.expiration.ms", "int", "604800000", "Time after which an unused transactional id is forgotten.", least=1),
    ]  # fmt: skip


OWN: dict[str, Setting] = {setting.name: setting for setting in _own()}
DEFINITIONS: dict[str, Setting] = {**BROKER_SETTINGS, **OWN}


class BrokerSettings:
    """The settings of one broker: what was set, over the defaults."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._given: dict[str, str] = {}
        self._dynamic: dict[str, str] = {}
        for name, value in (given or {}).items():
            check(name, value)
            self._given["node.id" if name == "broker.id" else name] = value

    def text(self, name: str) -> str:
        """The value as text."""
        found = self._dynamic.get(name)
        if found is None:
            found = self._given.get(name)
        return DEFINITIONS[name].default if found is None else found

    def integer(self, name: str) -> int:
        """The value of an `int` or `long` setting."""
        return int(self.text(name))

    def boolean(self, name: str) -> bool:
        """The value of a `boolean` setting."""
        return self.text(name).lower() == "true"

    def origin(self, name: str) -> str:
        """Where the value comes from: "dynamic", "given" or "default"."""
        if name in self._dynamic:
            return "dynamic"
        return "given" if name in self._given else "default"

    def change(self, name: str, value: str | None) -> None:
        """Change a setting of the running broker; None goes back to what it was."""
        check_dynamic(name, value)
        if value is None:
            self._dynamic.pop(name, None)
        else:
            self._dynamic[name] = value

    @property
    def dynamic(self) -> Mapping[str, str]:
        """What was changed while the broker ran."""
        return self._dynamic

    def log(self) -> LogSettings:
        """The log's part."""
        given = {**self._given, **self._dynamic}
        return LogSettings.from_mapping(
            {name: value for name, value in given.items() if name in BROKER_SETTINGS}
        )


def check_dynamic(name: str, value: str | None) -> None:
    """Raise unless `name` may be changed to `value` while the broker runs."""
    if value is not None:
        check(name, value)
    elif name not in DEFINITIONS:
        raise _unknown(name)
    if DEFINITIONS[name].read_only:
        raise InvalidConfigError(f"{name} cannot be changed while the broker runs")


def check(name: str, value: str) -> None:
    """Raise unless `name` is a setting and `value` one of its values."""
    if name not in DEFINITIONS:
        raise _unknown(name)
    parsed = DEFINITIONS[name].parse(value)
    if name in _ONE_NODE and isinstance(parsed, int) and parsed > 1:
        raise InvalidConfigError(
            f"{name}={value} cannot be kept by one node",
            detail="the embedded broker keeps one copy of every record",
            hint="run the project on an Apache Kafka cluster: set log.bootstrap in tailrace.toml",
        )


def _unknown(name: str) -> InvalidConfigError:
    near = difflib.get_close_matches(name, DEFINITIONS, n=1)
    return InvalidConfigError(
        f"this broker has no setting {name}",
        hint=f"did you mean {near[0]}?" if near else "the page on settings lists those there are",
    )
