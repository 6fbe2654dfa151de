"""What the target keeps of a mirror, in the compacted topic `__tailrace_mirrors`.

    <mirror>/<topic>/<partition>   {"next", "epoch", "topic_id", "target", …}: where it goes on
    runs/<mirror>/<n>              {"<topic>/<partition>": [[source, target, count], …]}
    runs/<mirror>/<shard>.<n>      the same, of a shard that is not the first
    state/<mirror>                 {"state", "source", "target", "topics", "names", "at", …}
    owner/<producer id>            {"site", "cluster", "mirror"}: whose records it writes
    stopped/<mirror>/<topic>/<partition>   {"code", "message", "detail"}; gone when it goes on
    again/<mirror>/<n>             {"<target>/<partition>": [[target, site, of], …]}: see `conflicts`
    kept/<mirror>                  see `fail_over`; of a mirror that this log is the source of
    settings/<mirror>/<topic>      the topic's own settings at the source, as they were copied

Every row is written in the transaction of the records that it tells of; that of an owner is
committed before the first record under its id. A run says that `count` records from source offset
`source` on stand at the target from `target` on, one after another; records that the source has
from a third site have the name of that site as the fourth part. Topics are names of the source. Rows
of runs are numbered in the order of their records; many small ones become a few large ones under
higher numbers, and are deleted, in one transaction. All runs of a partition stand in the rows
of one shard; the first shard sees to that when it finds another number of shards in the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from tailrace.client.admin import Admin, Place
from tailrace.client.fetcher import Fetcher

TOPIC = "__tailrace_mirrors"
RUNNING, FAILED_OVER, ENDED = "running", "failed-over", "ended"  # states of a mirror


class Run(NamedTuple):
    """Records one after another on both sides; `origin` is the site that wrote them, if it is not
    the source."""

    source: int
    target: int
    length: int
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a partition goes on: the next source offset, and the epoch of the last batch. Where
    conflicts are settled, `seen` is how far the target was looked at, and `conflicts` how many
    records have lost."""

    next: int
    epoch: int
    topic_id: str
    target: str
    seen: int = -1
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """A mirror as it was started, or failed over; clusters by their ids."""

    state: str
    source: str
    target: str
    topics: str
    names: str
    at: int
    site: str = ""
    others: tuple[str, ...] = ()
    groups: str | None = None
    ends: dict[str, int] = field(default_factory=dict)
    """Where the target ended, by `<topic>/<partition>` of the target, when it was failed over."""
    fail_overs: int = 0
    """How often it was failed over: which fail-back a row `kept/<mirror>` is of."""
    shards: int = 1
    """How many processes share its partitions."""
    sharing: bool = False
    """The first of them is about to change that: no shard begins until it has."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose records a producer writes: a site, by its name and by the id of its cluster."""

    site: str
    cluster: str
    mirror: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a partition does not go on."""

    code: str
    message: str
    detail: str


@dataclass(slots=True)
class Numbers:
    """Which rows of runs a shard has: `first` up to `next`; before `large_until` they are large."""

    first: int = 0
    next: int = 0
    large_until: int = 0


@dataclass(slots=True)
class MirrorRows:
    """All rows of one mirror, or of one of its shards."""

    positions: dict[Place, Position] = field(default_factory=dict)
    runs: dict[Place, list[Run]] = field(default_factory=dict)
    state: State | None = None
    stopped: dict[Place, Stop] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    numbers: dict[int, Numbers] = field(default_factory=dict)  # by shard

    def numbers_of(self, shard: int) -> Numbers:
        return self.numbers.setdefault(shard, Numbers())

    def run_keys(self, mirror: str) -> list[bytes]:
        """The keys of all rows of runs."""
        return [
            run_key(mirror, number, shard)
            for shard, each in sorted(self.numbers.items())
            for number in range(each.first, each.next)
        ]

    def of_shard(self, shard: int, shards: int) -> MirrorRows:
        """What of it one of its shards needs."""
        if shards == 1:
            return self

        def own(place: Place) -> bool:
            return shard_of(place, shards) == shard

        return replace(
            self,
            positions={place: each for place, each in self.positions.items() if own(place)},
            runs={place: each for place, each in self.runs.items() if own(place)},
            stopped={place: each for place, each in self.stopped.items() if own(place)},
        )

    @property
    def records(self) -> int:
        """How many were mirrored."""
        return sum(run.length for runs in self.runs.values() for run in runs)

    @property
    def conflicts(self) -> int:
        return sum(position.conflicts for position in self.positions.values())


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
    numbered: list[tuple[str, int, int, bytes]] = []
    for key, value in newest.items():
        if value is None:
            continue
        first, _, rest = key.decode().partition("/")
        name, _, last = rest.rpartition("/")
        if first in ("owner", "kept", "again"):
            continue  # see `origins` and `fail_over`
        if first == "state":
            found.setdefault(rest, MirrorRows()).state = _state(orjson.loads(value))
        elif first == "stopped":
            mirror, _, topic = name.partition("/")
            stop = Stop(**orjson.loads(value))
            found.setdefault(mirror, MirrorRows()).stopped[topic, int(last)] = stop
        elif first == "settings":
            found.setdefault(name, MirrorRows()).settings[last] = orjson.loads(value)
        elif first == "runs":
            shard, _, number = last.rpartition(".")
            numbered.append((name, int(shard or 0), int(number), value))
        else:
            rows = found.setdefault(first, MirrorRows())
            rows.positions[name, int(last)] = Position(**orjson.loads(value))
    for name, of, at, value in sorted(numbered):
        rows = found.setdefault(name, MirrorRows())
        numbers = rows.numbers.setdefault(of, Numbers(first=at))
        numbers.next = at + 1
        add_runs(rows.runs, decode_runs(value))
    return found


def shard_of(place: Place, shards: int) -> int:
    """Which shard of a mirror a partition of the source belongs to."""
    return (crc32(place[0].encode()) + place[1]) % shards


def position_row(mirror: str, place: Place, position: Position) -> tuple[bytes, bytes]:
    return f"{mirror}/{place[0]}/{place[1]}".encode(), orjson.dumps(asdict(position))


def _state(document: dict[str, Any]) -> State:
    return State(**{**document, "others": tuple(document.get("others", ()))})


def state_row(mirror: str, state: State) -> tuple[bytes, bytes]:
    return f"state/{mirror}".encode(), orjson.dumps(asdict(state))


def owner_row(producer_id: int, owner: Owner) -> tuple[bytes, bytes]:
    return f"owner/{producer_id}".encode(), orjson.dumps(asdict(owner))


def stop_row(mirror: str, place: Place, stop: Stop | None) -> tuple[bytes, bytes | None]:
    value = None if stop is None else orjson.dumps(asdict(stop))
    return f"stopped/{mirror}/{place[0]}/{place[1]}".encode(), value


def settings_row(mirror: str, topic: str, settings: Mapping[str, str]) -> tuple[bytes, bytes]:
    return f"settings/{mirror}/{topic}".encode(), orjson.dumps(dict(settings))


def runs_row(
    mirror: str, number: int, runs: Mapping[Place, list[Run]], shard: int = 0
) -> tuple[bytes, bytes]:
    document = {
        f"{topic}/{partition}": [tuple(run) if run.origin else run[:3] for run in each]
        for (topic, partition), each in runs.items()
    }
    return run_key(mirror, number, shard), orjson.dumps(document)


def again_row(mirror: str, number: int, copies: Mapping[Place, list[tuple[int, str, int]]], shard: int) -> tuple[bytes, bytes]:  # fmt: skip
    document = {f"{topic}/{partition}": each for (topic, partition), each in copies.items()}
    return f"again/{mirror}/{_label(number, shard)}".encode(), orjson.dumps(document)


def run_key(mirror: str, number: int, shard: int = 0) -> bytes:
    return f"runs/{mirror}/{_label(number, shard)}".encode()


def _label(number: int, shard: int) -> str:
    return f"{shard}.{number}" if shard else str(number)


def decode_runs(value: bytes) -> dict[Place, list[Run]]:
    found: dict[Place, list[Run]] = {}
    for name, runs in orjson.loads(value).items():
        topic, _, partition = name.rpartition("/")
        found[topic, int(partition)] = [Run(*run) for run in runs]
    return found


def add_runs(into: dict[Place, list[Run]], runs: Mapping[Place, Iterable[Run]]) -> None:
    """Add newer runs; one that goes on where the last one ended becomes part of it."""
    for place, each in runs.items():
        known = into.setdefault(place, [])
        for run in each:
            last = known[-1] if known else None
            if (
                last is not None
                and last.source + last.length == run.source
                and last.target + last.length == run.target
                and last.origin == run.origin
            ):
                known[-1] = last._replace(length=last.length + run.length)
            else:
                known.append(run)
