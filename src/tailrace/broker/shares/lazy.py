"""Share groups, loaded when somebody first asks for them; see `broker/lazy.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey

if TYPE_CHECKING:
    from tailrace.broker.handlers.shares import ShareRequests

OFFERED: tuple[tuple[ApiKey, int, int], ...] = (
    (ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1),
    (ApiKey.SHARE_GROUP_DESCRIBE, 1, 1),
    (ApiKey.SHARE_FETCH, 1, 2),
    (ApiKey.SHARE_ACKNOWLEDGE, 1, 2),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0),
)


def routes(load: Callable[[], ShareRequests]) -> Iterable[Route]:
    """Routes that load share groups and hand the request on to them."""

    def first(request: Request[Any]) -> None:
        for route in load().routes():
            if route.api_key == request.api_key:
                route.handler(request)
                return

    for key, minimum, maximum in OFFERED:
        yield Route(key, minimum, maximum, first)
