"""What can go wrong in the broker itself; the log's errors are in `log/errors.py`.

BrokerError                      broker
├── ListenError                  broker-listen
├── StartError                   broker-start
├── DamagedFileError             broker-file-damaged
├── CertificateError             broker-certificate
├── LogInSettingError            broker-log-in-setting
├── UserError                    broker-user
├── InvalidAclError              invalid-acl
└── InvalidQuotaError            invalid-quota
"""

from __future__ import annotations

from tailrace.errors import TailraceError


class BrokerError(TailraceError):
    """The embedded broker could not do what it was asked."""

    code = "broker"


class ListenError(BrokerError):
    """The address cannot be listened on: it is not one of this machine, its name is not
    known, or the port needs more rights. `0.0.0.0:PORT` listens on every address of the
    machine; tell clients which one to use with `advertised.listeners`."""

    code = "broker-listen"


class StartError(BrokerError):
    """A broker in a child process did not come up. The detail shows its last output."""

    code = "broker-start"


class DamagedFileError(BrokerError):
    """A small file beside the data (settings changed while the broker ran, the producer ids
    given out) is not what was written there: a bad disk, or a hand. It is written whole and
    synced, so no crash leaves a part of it. Restore or correct it; records are untouched."""

    code = "broker-file-damaged"


class CertificateError(BrokerError):
    """A listener's certificate, its private key or the authorities it trusts cannot be used. At
    the start the broker does not come up; while it runs it keeps what it has."""

    code = "broker-certificate"


class LogInSettingError(BrokerError):
    """What a listener asks of its clients is not complete or not safe: SASL without a
    mechanism, PLAIN where passwords would cross the network in the clear, OAUTHBEARER without
    the keys that sign tokens or from a URL that is not in the list of allowed ones."""

    code = "broker-log-in-setting"


class UserError(BrokerError):
    """A user cannot be kept or removed: no such user, a name or a number of iterations that
    cannot be used, or the log is served by a broker that must be asked instead."""

    code = "broker-user"

    def __init__(self, message: str, kafka_code: int = 42, **parts: str) -> None:
        super().__init__(message, **parts)
        self.kafka_code = kafka_code


class InvalidQuotaError(BrokerError):
    """A quota was set for something that cannot have one, or to a value that is none.
    Quotas are set for a user, a client id or both, to positive numbers."""

    code = "invalid-quota"
    kafka_code = 42


class InvalidAclError(BrokerError):
    """An access rule, or a filter for access rules, that Kafka would not take either. The
    message says what is wrong; `tailrace acl add --help` lists the words there are."""

    code = "invalid-acl"
    kafka_code = 42
