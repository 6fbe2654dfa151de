"""The whole row of a tick, as the driver writes and reads it.

Followers and sinks read the part in `tailrace.records.tick`; the rest belongs to the
driver: the operators' state files, watermarks, the number of shards, the fingerprint of
the operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.pipelines.engine.identity import VERSION
from tailrace.pipelines.state.store import Version
from tailrace.records.tick import ViewInfo, parse_view

Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Generation:
    """A changelog of a view that is kept but not shown, and where it ended."""

    info: ViewInfo
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Seeding:
    """A fill that begins with the rows of running operators (see `shared`): which those are,
    and what is still to be read: operator, shard, the place in its state to go on from.
    `ends`: where topics that none of them reads are read to, from their start."""

    shared: tuple[str, ...]
    left: tuple[tuple[str, int, bytes], ...]
    ends: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A view that cannot go on and waits for a rebuild: what the operator is that ended it, and
    why, in the four parts of an error."""

    node: str
    why: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Tick:
    """One committed tick: everything the next one starts from."""

    project: str
    number: int = 0
    cut: Mapping[str, str] = field(default_factory=dict)
    inputs: Offsets = field(default_factory=dict)
    positions: Mapping[str, str] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)  # by topic, for the next tick
    newest: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # event time, seen at
    state: Mapping[int, Version] = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    views: Mapping[str, ViewInfo] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)  # the operator that ends each view
    operators: tuple[str, ...] = ()
    others: Mapping[str, tuple[Generation, ...]] = field(default_factory=dict)  # oldest first
    live: Mapping[str, str] = field(default_factory=dict)  # topics written, not shown, by view
    fingerprint: str = ""
    naming: int = VERSION  # the rules that name operators; 0: those before there was a number
    carried: Mapping[str, str] = field(default_factory=dict)  # names of other rules: see `carried`
    formats: Mapping[str, int] = field(default_factory=dict)  # of state, by kind of operator
    topics: Mapping[str, str] = field(default_factory=dict)  # identity of every input
    shards: int = 1
    ts_ms: int = 0
    seeding: Seeding | None = None  # of a fill that has not yet begun to read topics
    stopped: Mapping[str, Stopped] = field(default_factory=dict)  # by view
    purged: str = ""  # changes when copies of what is gone must go everywhere, see `clearing`
    build: Mapping[str, Any] = field(default_factory=dict)  # of a pattern: see `pattern_builds`

    def written(self, name: str) -> ViewInfo | None:
        """The generation of a view that ticks write: the one shown, unless rolled back."""
        topic = self.live.get(name)
        for generation in self.others.get(name, ()):
            if generation.info.topic == topic:
                return generation.info
        return self.views.get(name)

    def keeps(self, name: str, node: str) -> bool:
        """Whether the state of a view that ends in operator `node` is in this tick."""
        return self.nodes.get(name) == node and node in self.operators

    def highest(self, name: str) -> int:
        """The highest number a generation of this view has had; 0 for none."""
        numbers = [generation.info.generation for generation in self.others.get(name, ())]
        if name in self.views:
            numbers.append(self.views[name].generation)
        return max(numbers, default=0)

    def previous(self, name: str) -> Generation | None:
        """The generation before the one shown, if its topic is kept."""
        shown = self.views.get(name)
        if shown is None:
            return None
        others = self.others.get(name, ())
        # A generation shown again has a new number; its own one tells its place.
        number = next(
            (g.info.generation for g in others if g.info.topic == shown.topic), shown.generation
        )
        return max(
            (g for g in others if g.info.generation < number),
            key=lambda g: g.info.generation,
            default=None,
        )

    def droppable(self, name: str) -> list[str]:
        """Topics of a view that are neither shown nor written."""
        used = {self.live.get(name), self.views[name].topic if name in self.views else None}
        topics = [generation.info.topic for generation in self.others.get(name, ())]
        return [topic for topic in topics if topic not in used]

    def encode(self) -> bytes:
        return orjson.dumps(
            {
                "project": self.project,
                "tick": self.number,
                "cut": dict(self.cut),
                "inputs": _text(self.inputs),
                "positions": dict(self.positions),
                "watermarks": dict(self.watermarks),
                "newest": dict(self.newest),
                "state": {str(shard): list(files) for shard, files in self.state.items()},
                "ends": _text(self.ends),
                "views": {name: view.as_dict() for name, view in self.views.items()},
                "nodes": dict(self.nodes),
                "operators": list(self.operators),
                "others": {
                    name: [{**g.info.as_dict(), "ends": _text({"": g.ends})[""]} for g in kept]
                    for name, kept in self.others.items()
                },
                "live": dict(self.live),
                "fingerprint": self.fingerprint,
                "naming": self.naming,
                "carried": dict(self.carried),
                "formats": dict(self.formats),
                "topics": dict(self.topics),
                "shards": self.shards,
                "ts_ms": self.ts_ms,
                **({} if self.seeding is None else {"seeding": _seeding_text(self.seeding)}),
                "purged": self.purged,
                **({"build": dict(self.build)} if self.build else {}),
                "stopped": {
                    n: {"node": s.node, "why": dict(s.why)} for n, s in self.stopped.items()
                },
            }
        )


def parse(value: bytes) -> Tick:
    """Read a row; absent fields are empty."""
    document = orjson.loads(value)
    views = document.get("views") or {}
    return Tick(
        project=document["project"],
        number=document["tick"],
        cut=document.get("cut") or {},
        inputs=_numbers(document.get("inputs") or {}),
        positions=document.get("positions") or {},
        watermarks=document.get("watermarks") or {},
        newest={place: (at, seen) for place, (at, seen) in (document.get("newest") or {}).items()},
        state={int(s): tuple(files) for s, files in (document.get("state") or {}).items()},
        ends=_numbers(document.get("ends") or {}),
        views={name: parse_view(name, view) for name, view in views.items()},
        nodes=document.get("nodes") or {},
        operators=tuple(document.get("operators") or ()),
        others={
            name: tuple(
                Generation(parse_view(name, item), _numbers({"": item["ends"]})[""])
                for item in items
            )
            for name, items in (document.get("others") or {}).items()
        },
        live=document.get("live") or {},
        fingerprint=document.get("fingerprint") or "",
        naming=document.get("naming") or 0,
        carried=document.get("carried") or {},
        formats=document.get("formats") or {},
        topics=document.get("topics") or {},
        shards=document.get("shards") or 1,
        ts_ms=document.get("ts_ms") or 0,
        seeding=_seeding(document["seeding"]) if document.get("seeding") else None,
        build=document.get("build") or {},
        stopped={n: Stopped(**one) for n, one in (document.get("stopped") or {}).items()},
        purged=document.get("purged") or "",
    )


def _seeding_text(seeding: Seeding) -> dict[str, object]:
    left = [(name, shard, after.hex()) for name, shard, after in seeding.left]
    return {"shared": seeding.shared, "left": left, "ends": _text(seeding.ends)}


def _seeding(document: Mapping[str, Any]) -> Seeding:
    left = tuple((name, shard, bytes.fromhex(after)) for name, shard, after in document["left"])
    return Seeding(tuple(document["shared"]), left, _numbers(document.get("ends") or {}))


def _text(offsets: Offsets) -> dict[str, dict[str, int]]:
    return {topic: {str(p): n for p, n in by.items()} for topic, by in offsets.items()}


def _numbers(document: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(p): n for p, n in by.items()} for topic, by in document.items()}
