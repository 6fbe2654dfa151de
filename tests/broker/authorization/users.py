"""Connections that speak for a user without a log-in, and the rules of a broker under test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tailrace.broker.authorization.acls import ALLOW, LITERAL, Acl
from tailrace.broker.connection import Connection
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.principals import Principal
from tailrace.broker.settings import STANDARD_AUTHORIZER
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import create_acls, delete_acls, describe_acls

GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}


class Guarded(BrokerThread):
    """A broker with an authorizer. Nothing is synced."""

    def __init__(self, directory: Path, settings: Mapping[str, str] = GUARDED) -> None:
        super().__init__(directory, settings=settings, durable=False)
        self._clients: list[WireClient] = []
        self.admin = self.speak("admin")

    def speak(self, user: str | Principal, *, project: bool = False) -> WireClient:
        """A connection of this user, who is taken to have logged in."""
        client = WireClient(self.address)
        self._clients.append(client)
        who = user if isinstance(user, Principal) else Principal("User", user)
        self.change(client, principal=who, project=project)
        return client

    def change(self, client: WireClient, **facts: Any) -> None:
        """Have the broker take other things for true of a connection."""
        ours = client.sock.getsockname()

        def found() -> bool:
            for connection in self.broker.listener.connections.values():
                if _peer(connection) == ours:
                    for name, value in facts.items():
                        setattr(connection, name, value)
                    return True
            return False  # it is not accepted yet

        self.wait_until(found)

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Wait for something that is asked on the broker's own thread."""
        done = threading.Event()

        def look() -> None:
            if true():
                done.set()
            else:
                self.broker.call_later(0.001, look)

        self.broker.call_from_thread(look)
        assert done.wait(30)

    def allow(self, user: str, *granted: tuple[int, int, str], host: str = "*") -> None:
        """Let a user do (operation, resource, name), and that alone."""
        self.add(
            Acl(resource, name, LITERAL, f"User:{user}", host, operation, ALLOW)
            for operation, resource, name in granted
        )

    def add(self, acls: Iterable[Acl]) -> list[Any]:
        """CreateAcls, as the administrator; the results."""
        answer = self.admin.ask(
            ApiKey.CREATE_ACLS,
            3,
            create_acls.CreateAclsRequest(
                creations=[create_acls.AclCreation(*acl) for acl in acls]
            ),
        )
        return list(answer.results)

    def remove(self, *wanted: Any) -> list[Any]:
        """DeleteAcls of all rules that these filters mean (everything without any)."""
        filters = [
            delete_acls.DeleteAclsFilter(*one) for one in wanted or [(1, None, 1, None, None, 1, 1)]
        ]
        answer = self.admin.ask(
            ApiKey.DELETE_ACLS, 3, delete_acls.DeleteAclsRequest(filters=filters)
        )
        return list(answer.filter_results)

    def acls(self, *wanted: Any) -> set[Acl]:
        """DescribeAcls."""
        answer = self.admin.ask(
            ApiKey.DESCRIBE_ACLS,
            3,
            describe_acls.DescribeAclsRequest(*(wanted or (1, None, 1, None, None, 1, 1))),
        )
        assert answer.error_code == 0, answer
        return {
            Acl(one.resource_type, one.resource_name, one.pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
            for one in answer.resources
            for acl in one.acls
        }  # fmt: skip

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        super().stop()


def _peer(connection: Connection) -> object:
    try:
        return connection.sock.getpeername()
    except OSError:
        return None
