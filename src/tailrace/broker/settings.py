"""Broker settings, by Kafka's names and with Kafka's meanings.

`DEFINITIONS` is the whole table: what the log reads (`log.settings`) and what the
broker itself reads. A name that is not in it is refused, because a promise that is
silently not kept is worse than an error. `DYNAMIC` may be changed while the broker
runs, as far as topics take their defaults from them they all are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from tailrace.log.errors import InvalidConfigError
from tailrace.log.settings import BROKER_SETTINGS, INT_MAX, LogSettings, Setting
from tailrace.masking import remember

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_ONE_NODE = ("default.replication.factor", "offsets.topic.replication.factor",
             "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
             "min.insync.replicas")  # fmt: skip


def _security() -> list[Setting]:
    s = Setting
    return [
        s("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", "Versions of TLS.", choices=("TLSv1.2", "TLSv1.3"), read_only=True),
        s("ssl.cipher.suites", "list", "", "OpenSSL's names of the cipher suites for TLS 1.2; its own choice if empty.", read_only=True),
        s("ssl.keystore.type", "string", "PEM", "Form of ssl.keystore.location.", choices=("PEM", "PKCS12"), read_only=True),
        s("ssl.keystore.location", "string", "", "File with the broker's private key and its certificate chain; read again when it changes.", read_only=True),
        s("ssl.keystore.password", "password", "", "Password of a PKCS12 file.", read_only=True),
        s("ssl.key.password", "password", "", "Password of an encrypted private key.", read_only=True),
        s("ssl.keystore.certificate.chain", "string", "", "The certificate chain itself, as PEM text.", read_only=True),
        s("ssl.keystore.key", "password", "", "The private key itself, as PEM text.", read_only=True),
        s("ssl.truststore.type", "string", "PEM", "Form of ssl.truststore.location.", choices=("PEM", "PKCS12"), read_only=True),
        s("ssl.truststore.location", "string", "", "File with the authorities of client certificates, and lists of revoked ones; read again when it changes.", read_only=True),
        s("ssl.truststore.password", "password", "", "Password of a PKCS12 file of authorities.", read_only=True),
        s("ssl.truststore.certificates", "string", "", "The authorities themselves, as PEM text.", read_only=True),
        s("ssl.client.auth", "string", "none", "Whether clients show a certificate.", choices=("none", "requested", "required"), read_only=True),
        s("ssl.principal.mapping.rules", "string", "DEFAULT", "How a certificate's name becomes a user: RULE:pattern/replacement/[LU],…,DEFAULT; the first that matches.", read_only=True),
        s("ssl.allow.dn.changes", "boolean", "false", "Whether a new certificate of the broker may have another name.", read_only=True),
        s("ssl.allow.san.changes", "boolean", "false", "Whether a new certificate of the broker may lack a host name of the old one.", read_only=True),
        s("tailrace.ssl.kernel.offload", "boolean", "false", "Whether the kernel encrypts where it can (module tls), so that records go out by sendfile.", read_only=True),
        s("sasl.enabled.mechanisms", "list", "", "Mechanisms clients may log in with.", choices=MECHANISMS, read_only=True),
        s("sasl.jaas.config", "password", "", "Only as listener.name.LISTENER.MECHANISM.sasl.jaas.config: for PLAIN, its users as user_NAME=\"PASSWORD\".", read_only=True),
        s("sasl.server.max.receive.size", "int", "524288", "Largest message before a client has logged in.", least=1024, most=1 << 24, read_only=True),
        s("connection.failed.authentication.delay.ms", "int", "100", "How long the answer to a failed log-in waits.", least=0, most=60_000, read_only=True),
        s("connections.max.reauth.ms", "long", "0", "Time after which a client must have logged in again; 0: as long as its credentials last.", least=0, read_only=True),
        s("tailrace.login.timeout.ms", "int", "30000", "Time in which a new connection must have finished its TLS handshake and its log-in.", least=1000, read_only=True),
        s("sasl.oauthbearer.jwks.endpoint.url", "string", "", "Where the keys are that sign tokens; it must be in the list of allowed URLs.", read_only=True),
        s("org.apache.kafka.sasl.oauthbearer.allowed.urls", "list", "", "URLs that keys of tokens may be read from. In Kafka a property of the Java process.", read_only=True),
        s("sasl.oauthbearer.expected.issuer", "string", "", "Who must have issued a token.", read_only=True),
        s("sasl.oauthbearer.expected.audience", "list", "", "For whom a token must be: one of these.", read_only=True),
        s("sasl.oauthbearer.clock.skew.seconds", "int", "30", "How far clocks may differ.", least=0, most=3600, read_only=True),
        s("sasl.oauthbearer.scope.claim.name", "string", "scope", "The claim with a token's scopes.", read_only=True),
        s("sasl.oauthbearer.sub.claim.name", "string", "sub", "The claim that becomes the user.", read_only=True),
        s("sasl.oauthbearer.jwks.endpoint.refresh.ms", "long", "3600000", "How often the keys are read again.", least=1000, read_only=True),
        s("delegation.token.secret.key", "password", "", "Turns delegation tokens on; kept secret, and the same after every start.", read_only=True),
        s("delegation.token.max.lifetime.ms", "long", "604800000", "Longest life of a delegation token, renewed or not.", least=1, read_only=True),
        s("delegation.token.expiry.time.ms", "long", "86400000", "How long a delegation token lasts until it is renewed.", least=1, read_only=True),
        s("delegation.token.expiry.check.interval.ms", "long", "3600000", "How often expired delegation tokens are removed.", least=1000, read_only=True),
    ]  # fmt: skip


def _own() -> list[Setting]:
    s = Setting
    return [
        s("node.id", "int", "1", "This broker's id.", least=0, read_only=True),
        s("broker.id", "int", "1", "Older name of node.id.", least=0, read_only=True),
        s("advertised.listeners", "string", "", "NAME://HOST:PORT,…: what clients that came in on a listener are told to connect to; the listening address if empty.", read_only=True),
        s("listeners", "string", "", "NAME://HOST:PORT,… to listen on; `--listen` goes first.", read_only=True),
        s("listener.security.protocol.map", "string", "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL", "NAME:PROTOCOL,…: what is spoken on each listener.", read_only=True),
        s("allow.insecure.listeners", "boolean", "false", "Whether PLAINTEXT and SASL_PLAINTEXT may be spoken where other machines can reach it, and PLAIN without TLS.", read_only=True),
        s("authorizer.class.name", "string", "", "Who decides what clients may do: nobody if empty, else Kafka's StandardAuthorizer by its full name.", choices=("", STANDARD_AUTHORIZER), read_only=True),
        s("super.users", "string", "", "Principals that may do everything, `User:a;User:b`.", read_only=True),
        s("allow.everyone.if.no.acl.found", "boolean", "false", "Whether a resource that no ACL concerns is open to everybody.", read_only=True),
        s("auto.create.topics.enable", "boolean", "true", "Whether a topic is created when a producer or consumer first names it."),
        s("delete.topic.enable", "boolean", "true", "Whether topics can be deleted."),
        s("default.replication.factor", "int", "1", "Copies of an auto-created topic's records.", least=1),
        s("socket.request.max.bytes", "int", "104857600", "Largest request.", least=1024, read_only=True),
        s("tailrace.request.max.bytes", "int", "1048576", "Largest request of the kinds that need no more; those that carry records may have socket.request.max.bytes, those that grow with a client's partitions 16 MiB.", least=65536, read_only=True),
        s("queued.max.request.bytes", "long", "268435456", "Memory for requests that are being received.", least=1 << 20, read_only=True),
        s("max.connections", "int", "20000", "Most connections at a time; as listener.name.LISTENER.max.connections through one listener. More wait until one goes.", least=1, read_only=True),
        s("max.connections.per.ip", "int", str(INT_MAX), "Most connections from one address; more are closed.", least=1, read_only=True),
        s("max.connections.per.ip.overrides", "string", "", "ADDRESS:NUMBER,…: another limit for single addresses.", read_only=True),
        s("max.connection.creation.rate", "int", str(INT_MAX), "Most new connections a second, of one listener or of all; more wait.", least=1, read_only=True),
        s("connections.max.idle.ms", "long", "600000", "Time after which a silent connection is closed.", least=1000, read_only=True),
        s("fetch.max.bytes", "int", "57671680", "Most bytes of records in one answer.", least=1024),
        s("max.incremental.fetch.session.cache.slots", "int", "1000", "Fetch sessions kept.", least=0, read_only=True),
        s("quota.window.num", "int", "11", "Windows over which a client's rate is taken for its quota.", least=2, read_only=True),
        s("quota.window.size.seconds", "int", "1", "Length of such a window.", least=1, read_only=True),
        *_security(),
        s("metrics.listen", "string", "", "HOST:PORT of the Prometheus page; none if empty.", read_only=True),
        s("group.initial.rebalance.delay.ms", "int", "0", "Time the first rebalance of an empty group waits for more members.", least=0),
        s("group.min.session.timeout.ms", "int", "6000", "Shortest session time-out a member may ask for.", least=1),
        s("group.max.session.timeout.ms", "int", "1800000", "Longest session time-out a member may ask for.", least=1),
        s("group.max.size", "int", str(INT_MAX), "Most members of a group.", least=1),
        s("group.consumer.session.timeout.ms", "int", "45000", "Silence after which a member of a server-side group is dropped.", least=1),
        s("group.consumer.heartbeat.interval.ms", "int", "5000", "How often members of server-side groups send heartbeats.", least=1),
        s("group.consumer.max.size", "int", str(INT_MAX), "Most members of a server-side group.", least=1),
        s("group.consumer.migration.policy", "string", "bidirectional", "Whether groups with members may change between the classic and the server-side protocol.", choices=("bidirectional", "upgrade", "downgrade", "disabled"), read_only=True),
        s("group.share.session.timeout.ms", "int", "45000", "Silence after which a member of a share group is dropped.", least=1, read_only=True),
        s("group.share.heartbeat.interval.ms", "int", "5000", "How often members of share groups send heartbeats.", least=1, read_only=True),
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
PER_LISTENER = frozenset(
    name
    for name in OWN
    if name.startswith(("ssl.", "sasl."))
    or name in ("connections.max.reauth.ms", "max.connections", "max.connection.creation.rate")
)
"""What may be said of one listener, as `listener.name.LISTENER.NAME`."""
PER_MECHANISM = frozenset(
    name
    for name in PER_LISTENER
    if (name.startswith("sasl.") and name != "sasl.enabled.mechanisms")
    or name == "connections.max.reauth.ms"
)
"""What may be said of one mechanism there, as `listener.name.LISTENER.MECHANISM.NAME`."""
_OF_LISTENER = re.compile(r"listener\.name\.([a-z0-9_-]{1,100})\.(.{1,200})")


def definition(name: str) -> Setting | None:
    """The setting of this name, as it is or as it is said of one listener or mechanism."""
    found = DEFINITIONS.get(name)
    if found is not None or not name.startswith("listener.name."):
        return found
    match = _OF_LISTENER.fullmatch(name)
    rest = match[2] if match else ""
    if rest in PER_LISTENER and rest != "sasl.jaas.config":
        return OWN[rest]
    mechanism, _, rest = rest.partition(".")
    if mechanism.upper() in MECHANISMS and rest in PER_MECHANISM:
        return OWN[rest]
    return None


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
        if found is not None:
            return found
        known = DEFINITIONS.get(name) or definition(name)
        if known is None:
            raise _unknown(name)
        return known.default

    def of_listener(self, listener: str, name: str, mechanism: str = "") -> str:
        """The value for a listener, or for a mechanism on it: the most special one given."""
        prefix = f"listener.name.{listener.lower()}."
        names = [f"{prefix}{name}", name]
        if mechanism and name in PER_MECHANISM:
            names.insert(0, f"{prefix}{mechanism.lower()}.{name}")
        for one in names:
            if one in self._dynamic or one in self._given:
                return self.text(one)
        return self.text(name)

    @property
    def of_listeners(self) -> Iterator[str]:
        """The names given for single listeners."""
        return (one for one in {**self._given, **self._dynamic} if one not in DEFINITIONS)

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


def host_limits(text: str) -> dict[str, int]:
    """`ADDRESS:NUMBER,…` by address; raises InvalidConfigError."""
    found: dict[str, int] = {}
    for part in (one.strip() for one in text.split(",")):
        if not part:
            continue
        host, colon, number = part.rpartition(":")
        if not colon or not host or not number.isdigit():
            raise InvalidConfigError(
                f"max.connections.per.ip.overrides holds {part!r}",
                hint="write ADDRESS:NUMBER, for example 10.0.0.7:200",
            )
        found[host.strip("[]")] = int(number)
    return found


def check_dynamic(name: str, value: str | None) -> None:
    """Raise unless `name` may be changed to `value` while the broker runs."""
    if value is not None:
        check(name, value)
    known = definition(name)
    if known is None:
        raise _unknown(name)
    if known.read_only:
        raise InvalidConfigError(f"{name} cannot be changed while the broker runs")


def check(name: str, value: str) -> None:
    """Raise unless `name` is a setting and `value` one of its values."""
    _refuse_by_name(name, value)
    known = definition(name)
    if known is None:
        raise _unknown(name)
    parsed = known.parse(value)
    if known.kind == "password":
        remember(value)
    if name in _ONE_NODE and isinstance(parsed, int) and parsed > 1:
        raise InvalidConfigError(
            f"{name}={value} cannot be kept by one node",
            detail="the embedded broker keeps one copy of every record",
            hint="run the project on an Apache Kafka cluster: set log.bootstrap in tailrace.toml",
        )


def _refuse_by_name(name: str, value: str) -> None:
    """Say what to do instead of what Kafka has and we have not."""
    if name.endswith("store.type") and value.upper() in ("JKS", "JCEKS"):
        raise InvalidConfigError(
            f"{name}={value}: Java key stores cannot be read",
            hint="convert it: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 "
            f"-deststoretype PKCS12, and set {name}=PKCS12",
        )
    offered = value.upper() if name.endswith("sasl.enabled.mechanisms") else ""
    if "GSSAPI" in offered or ".kerberos." in name or ".gssapi." in name:
        raise InvalidConfigError(
            f"{name}: Kerberos (GSSAPI) is not supported",
            hint=f"use one of {', '.join(MECHANISMS)}",
        )


def _unknown(name: str) -> InvalidConfigError:
    near = difflib.get_close_matches(name, DEFINITIONS, n=1)
    return InvalidConfigError(
        f"this broker has no setting {name}",
        hint=f"did you mean {near[0]}?" if near else "the page on settings lists those there are",
    )
