"""One module per family of requests; each offers `routes(broker)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.broker.server import Broker


def install_coordinators(broker: Broker) -> None:
    """Let the group and transaction coordinators serve their requests."""
    try:
        from tailrace.broker.coordination import Coordination
    except ImportError:
        return
    broker.router.add(Coordination(broker).routes())


def group_lags(broker: Broker) -> Iterable[tuple[str, str, int, int]]:
    """Group, topic, partition and lag of every committed offset."""
    return ()
