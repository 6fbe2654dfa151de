"""A guard before every route: it asks for permission, and answers for what is refused.

A guard hands the request on with only what the caller may do, and adds the refusals to the
answer when it comes. Handlers know nothing of it. A request without a guard cannot be routed
while there is an authorizer, so none is forgotten.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tailrace.broker.authorization import (
    cluster_guards,
    group_guards,
    offset_guards,
    share_guards,
    topic_guards,
    transaction_guards,
)
from tailrace.broker.authorization.acls import Acl
from tailrace.broker.authorization.authorizer import PROJECT, Authorizer, Caller, super_users
from tailrace.broker.authorization.guarding import Guard
from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

OPEN = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""Requests that need no permission: they come before one is known."""

OWN = frozenset(
    {
        ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)  # fmt: skip
"""Requests whose handlers ask for permission themselves."""


def all_guards(broker: Broker) -> dict[int, Guard]:
    """The guards of every request that has one."""
    return {
        **topic_guards.guards(broker),
        **group_guards.guards(broker),
        **offset_guards.guards(broker),
        **transaction_guards.guards(broker),
        **cluster_guards.guards(),
        **share_guards.guards(),
    }


def install(broker: Broker) -> Authorizer:
    """Make the authorizer that the settings ask for, and have every route guarded.

    The log of a project is the project's: who has its token could change the files, too.
    """
    settings = broker.settings
    owner = frozenset({str(PROJECT)}) if broker.of_project else frozenset()
    authorizer = Authorizer(
        (Acl(*row) for row in broker.store.journal.catalogue.acls),
        super_users(settings.text("super.users")) | owner,
        unruled=settings.boolean("allow.everyone.if.no.acl.found"),
    )
    guards = all_guards(broker)

    def guarded(route: Route) -> Route:
        if route.api_key in OPEN or route.api_key in OWN:
            return route
        guard = guards[route.api_key]
        serve = route.handler

        def handle(request: Request[Any]) -> None:
            if request.guarded:  # it came through here on its way to code that was loaded for it
                serve(request)
                return
            request.guarded = True
            guard(Caller(authorizer, request.connection, request.api_key), request, serve)

        return replace(route, handler=handle)

    broker.router.guard = guarded
    return authorizer
