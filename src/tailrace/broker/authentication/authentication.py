"""What each listener asks of its clients, made from the settings.

Loaded with every broker, so it imports TLS, SCRAM and the rest only where a listener has them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tailrace.broker.endpoints import (
    PROJECT_LISTENER,
    Endpoint,
    endpoints,
    refuse_open_endpoints,
    told,
)
from tailrace.broker.errors import LogInSettingError
from tailrace.broker.listener import Acceptor
from tailrace.broker.principals import Principal
from tailrace.broker.quotas.rate import Rate
from tailrace.loopback import is_loopback
from tailrace.project_token import (
    PROJECT_MECHANISM,
    PROJECT_USER,
    asks_everybody,
    project_password,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from tailrace.broker.authentication.delegation import DelegationTokens
    from tailrace.broker.authentication.exchange import Exchange, Step
    from tailrace.broker.authentication.log_in import Counts, LogIns
    from tailrace.broker.authentication.users import Users
    from tailrace.broker.connection import Connection
    from tailrace.broker.server import Broker
    from tailrace.wire.scram import ScramCredential

log = logging.getLogger("tailrace.broker.authentication")

PROJECT = Principal("User", PROJECT_USER)
_Begin = Callable[["Connection"], "Exchange"]


class Authentication:
    """Owns the users, the tokens and the thread that checks passwords."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._users: Users | None = None
        self._tokens: DelegationTokens | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._project: ScramCredential | None = None
        self._log_ins: dict[str, LogIns] = {}

    @property
    def users(self) -> Users:
        """The users of this log; loaded on first use."""
        if self._users is None:
            from tailrace.broker.authentication.users import Users

            secret = self._broker.project_token.derived(b"unknown users")
            self._users = Users(self._broker.store, secret)
        return self._users

    @property
    def tokens(self) -> DelegationTokens | None:
        """Delegation tokens; None unless `delegation.token.secret.key` turns them on."""
        if self._tokens is None and self._broker.settings.text("delegation.token.secret.key"):
            from tailrace.broker.authentication.delegation import DelegationTokens

            self._tokens = DelegationTokens(self._broker)
        return self._tokens

    @property
    def counts(self) -> dict[str, Counts]:
        """Log-ins by listener."""
        return {name: each.counts for name, each in self._log_ins.items()}

    def acceptors(
        self, host: str | None, port: int, *, project_listener: bool = False
    ) -> list[Acceptor]:
        """The listeners of the settings, or the one at `host` and `port` if they name none.

        With `project_listener` that address stays besides, for the project's processes alone;
        so it is the only one where there is an authorizer and no listener is named.
        """
        settings = self._broker.settings
        found = endpoints(settings)
        named = {name: settings.text(name) for name in ("listeners", "authorizer.class.name")}
        asks = project_listener and asks_everybody(named)
        if not found and not asks:
            found = told([Endpoint("PLAINTEXT", "PLAINTEXT", host, port)], settings)
        else:
            refuse_open_endpoints(found, insecure=settings.boolean("allow.insecure.listeners"))
            if asks:
                if not is_loopback(host or ""):
                    raise LogInSettingError(
                        f"the project's own processes cannot be served at {host}",
                        detail="log.listen is theirs when log.broker names listeners or an authorizer",
                        hint="set log.listen to an address of this machine alone, 127.0.0.1:PORT",
                    )
                found.insert(0, Endpoint(PROJECT_LISTENER, "SASL_PLAINTEXT", host, port))
        if any(each.sasl for each in found) and self.tokens is not None:
            self.tokens.begin()
        return [self._acceptor(each) for each in found]

    def _acceptor(self, endpoint: Endpoint) -> Acceptor:
        settings, name = self._broker.settings, endpoint.name
        acceptor = Acceptor(endpoint)
        if name == PROJECT_LISTENER:
            acceptor.protected = True
        else:
            acceptor.limit = int(settings.of_listener(name, "max.connections"))
            acceptor.rate = int(settings.of_listener(name, "max.connection.creation.rate"))
        acceptor.made = Rate(
            settings.integer("quota.window.num"),
            float(settings.integer("quota.window.size.seconds")),
        )
        if endpoint.tls:
            from tailrace.broker.authentication.tls import Tls

            acceptor.tls = Tls(name, settings)
        if endpoint.sasl:
            acceptor.log_ins = self._log_ins[endpoint.name] = self._make_log_ins(endpoint)
        return acceptor

    def _make_log_ins(self, endpoint: Endpoint) -> LogIns:
        from tailrace.broker.authentication.log_in import LogIns

        broker, settings, name = self._broker, self._broker.settings, endpoint.name
        if name == PROJECT_LISTENER:
            enabled = [PROJECT_MECHANISM]
        else:
            text = settings.of_listener(name, "sasl.enabled.mechanisms")
            enabled = [one.strip() for one in text.split(",") if one.strip()]
        if not enabled:
            raise LogInSettingError(
                f"listener {name} is {endpoint.protocol} and offers no mechanism",
                hint="set sasl.enabled.mechanisms, for example to SCRAM-SHA-512",
            )
        return LogIns(
            listener=name,
            mechanisms={one: self._begin(endpoint, one) for one in enabled},
            loop=broker.loop,
            router=broker.router,
            clock=broker.clock,
            work=self.work,
            connections=lambda: broker.listener,
            frame_limit_bytes=int(settings.of_listener(name, "sasl.server.max.receive.size")),
            delay_seconds=settings.integer("connection.failed.authentication.delay.ms") / 1000,
            session_ms={
                one: int(settings.of_listener(name, "connections.max.reauth.ms", one))
                for one in enabled
            },
            project=PROJECT,
        )

    def _begin(self, endpoint: Endpoint, mechanism: str) -> _Begin:
        settings, name = self._broker.settings, endpoint.name
        if mechanism == "OAUTHBEARER":
            from tailrace.broker.authentication.bearer import Bearer, Keys

            keys = Keys(name, settings, self._broker.clock)
            return lambda connection: Bearer(keys)
        users = self.users
        project = {} if mechanism != PROJECT_MECHANISM else self._project_users()
        if mechanism == "PLAIN":
            from tailrace.broker.authentication.passwords import Plain, users_of_jaas
            from tailrace.broker.authentication.users import Passwords

            if not endpoint.tls and not (
                is_loopback(endpoint.host or "") or settings.boolean("allow.insecure.listeners")
            ):
                raise LogInSettingError(
                    f"with PLAIN on listener {name} passwords would cross the network in the clear",
                    hint="use SASL_SSL, or SCRAM-SHA-512",
                )
            setting = f"listener.name.{name.lower()}.plain.sasl.jaas.config"
            given = settings.of_listener(name, "sasl.jaas.config", mechanism)
            own, passwords = users_of_jaas(given, setting), Passwords()
            return lambda connection: Plain(users, passwords, own)
        from tailrace.broker.authentication.passwords import Scram

        tokens = self.tokens if name != PROJECT_LISTENER else None
        if name == PROJECT_LISTENER:
            from tailrace.broker.authentication.users import NobodyElse

            users = NobodyElse(users)
        return lambda connection: Scram(mechanism, users, tokens, project)

    def _project_users(self) -> dict[str, ScramCredential]:
        """The user that the project's own processes are, by the project's token."""
        if self._project is None:
            from tailrace.wire.scram import make_credential

            token = self._broker.project_token.reveal()
            self._project = make_credential(PROJECT_MECHANISM, project_password(token).encode())
        return {PROJECT_USER: self._project}

    # work beside the loop

    def work(self, job: Callable[[], Step], done: Callable[[Step | Exception], None]) -> None:
        """Do `job` on another thread; `done` gets its result or its error on the loop's."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(2, thread_name_prefix="log-in")
        loop = self._broker.loop

        def run() -> None:
            outcome: Any
            try:
                outcome = job()
            except Exception as error:
                outcome = error
            loop.call_from_thread(lambda: done(outcome))

        self._pool.submit(run)

    def close(self) -> None:
        """Let no more work begin."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
