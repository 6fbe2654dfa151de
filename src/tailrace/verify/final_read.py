"""The last committed read of a topic: all that is there once nothing is written any more."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.client.admin import Admin
from tailrace.client.columns import ColumnFetcher
from tailrace.clock import SYSTEM, Clock
from tailrace.verify.errors import UnfinishedError
from tailrace.verify.history import Columns, Rows, decode_payload

Wait = Callable[[Callable[[], bool], float], bool]


def read_everything(
    address: str,
    topic: str,
    partitions: int,
    run: bytes,
    *,
    wait: Wait,
    seconds: float,
    clock: Clock = SYSTEM,
) -> Columns:
    """The table `log` of a history, up to the high watermark of every partition.

    `wait` is asked between steps and may raise. Raises UnfinishedError if a transaction is still
    open after `seconds`.
    """
    rows = Rows("log")
    places = [(topic, each) for each in range(partitions)]
    with Admin(address, timeout=seconds, clock=clock) as admin:
        ends = admin.end_offsets(places, "read_uncommitted")
        stable: dict[tuple[str, int], int] = {}

        def closed() -> bool:
            stable.update(admin.end_offsets(places, "read_committed"))
            return stable == ends

        if not wait(closed, seconds):
            open_at = next(place for place in places if stable[place] != ends[place])
            raise UnfinishedError(
                "a transaction stayed open",
                detail=f"partition {open_at[1]} is stable up to {stable[open_at]} of {ends[open_at]}",
            )
        starts = admin.start_offsets(places)
    fetcher = ColumnFetcher(address, timeout=seconds, clock=clock)
    try:
        for place, end in ends.items():
            for columns in fetcher.read(*place, starts[place], end):
                wait(lambda: True, 0.0)
                names = [decode_payload(run, value) for value in columns.values.to_pylist()]
                rows.extend(
                    partition=[place[1]] * len(names),
                    offset=columns.offsets.tolist(),
                    producer=[name[0] for name in names],
                    sequence=[name[1] for name in names],
                )
    finally:
        fetcher.close()
    return rows.columns()
