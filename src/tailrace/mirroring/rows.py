"""What the target keeps of a mirror, in the compacted topic `__tailrace_mirrors`.

    <mirror>/<topic>/<partition>   {"next", "epoch", "topic_id", "target"}: where it goes on
    runs/<mirror>/<n>              {"<topic>/<partition>": [[source, target, count], …]}
    state/<mirror>                 {"state", "source", "target", "topics", "names", "at"}

Every row is written in the transaction of the records that it tells of. A run says that `count`
records from source offset `source` on stand at the target from `target` on, one after another.
Topics are names of the source. Rows of runs are numbered in the order of their records; many small
ones become a few large ones under higher numbers, and are deleted, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import orjson

from tailrace.client.admin import Admin, Place
from tailrace.client.fetcher import Fetcher

TOPIC = "__tailrace_mirrors"
Run = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a partition goes on: the next source offset, and the epoch of the last batch."""

    next: int
    epoch: int
    topic_id: str
    target: str


@dataclass(frozen=True, slots=True)
class State:
    """A mirror as it was started, or failed over; clusters by their ids."""

    state: str
    source: str
    target: str
    topics: str
    names: str
    at: int


@dataclass(slots=True)
class MirrorRows:
    """All rows of one mirror."""

    positions: dict[Place, Position] = field(default_factory=dict)
    runs: dict[Place, list[Run]] = field(default_factory=dict)
    state: State | None = None
    first_run: int = 0
    next_run: int = 0
    large_until: int = 0  # rows of runs before this number are large ones already


def ensure_topic(admin: Admin) -> None:
    """Make the topic at the target unless it is there."""
    admin.ensure_topic(TOPIC, 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"})


def read_rows(admin: Admin, fetcher: Fetcher) -> dict[str, MirrorRows]:
    """Every mirror into this log, by name."""
    if admin.describe_topic(TOPIC) is None:
        return {}
    newest: dict[bytes, bytes | None] = {}
    for record in fetcher.read_all(TOPIC):
        if record.key is not None:
            newest[record.key] = record.value
    found: dict[str, MirrorRows] = {}
    numbered: list[tuple[str, int, bytes]] = []
    for key, value in newest.items():
        if value is None:
            continue
        first, _, rest = key.decode().partition("/")
        name, _, last = rest.rpartition("/")
        if first == "state":
            found.setdefault(rest, MirrorRows()).state = State(**orjson.loads(value))
        elif first == "runs":
            numbered.append((name, int(last), value))
        else:
            rows = found.setdefault(first, MirrorRows())
            rows.positions[name, int(last)] = Position(**orjson.loads(value))
    for name, number, value in sorted(numbered):
        rows = found.setdefault(name, MirrorRows())
        if not rows.runs:
            rows.first_run = number
        rows.next_run = number + 1
        add_runs(rows.runs, decode_runs(value))
    return found


def position_row(mirror: str, place: Place, position: Position) -> tuple[bytes, bytes]:
    return f"{mirror}/{place[0]}/{place[1]}".encode(), orjson.dumps(asdict(position))


def state_row(mirror: str, state: State) -> tuple[bytes, bytes]:
    return f"state/{mirror}".encode(), orjson.dumps(asdict(state))


def runs_row(mirror: str, number: int, runs: Mapping[Place, list[Run]]) -> tuple[bytes, bytes]:
    document = {f"{topic}/{partition}": each for (topic, partition), each in runs.items()}
    return run_key(mirror, number), orjson.dumps(document)


def run_key(mirror: str, number: int) -> bytes:
    return f"runs/{mirror}/{number}".encode()


def decode_runs(value: bytes) -> dict[Place, list[Run]]:
    found: dict[Place, list[Run]] = {}
    for name, runs in orjson.loads(value).items():
        topic, _, partition = name.rpartition("/")
        found[topic, int(partition)] = [(first, target, count) for first, target, count in runs]
    return found


def add_runs(into: dict[Place, list[Run]], runs: Mapping[Place, Iterable[Run]]) -> None:
    """Add newer runs; one that goes on where the last one ended becomes part of it."""
    for place, each in runs.items():
        known = into.setdefault(place, [])
        for source, target, count in each:
            if known and known[-1][0] + known[-1][2] == source and known[-1][1] + known[-1][2] == target:  # fmt: skip
                known[-1] = (known[-1][0], known[-1][1], known[-1][2] + count)
            else:
                known.append((source, target, count))
