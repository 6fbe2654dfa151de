"""The operator graph of a project's views: plain, picklable data.

    table topic ──► keyed ──► join ──► group ──► result ──► changelog of a view

Between operators flow *changes*: Arrow tables with the columns of the sender's `schema`
and an int64 column `__weight`. What lies between two operators (filter, projection,
expressions) is the `Projection` on the edge. An operator keeps its state by shard; an edge
with a `route` brings each row to the shard of those columns, one without leaves it in the
shard it came from. A node's `id` is a hash of all it computes (see `identity`), so equal
sub-plans are one node and its state survives changes to other views.

Tables enter as *upserts* (see `TableInput`), views leave as upserts (see `ViewPlan`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from tailrace.pipelines.engine.expression import Expression
from tailrace.pipelines.engine.identity import identify, not_identity
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import PLACED

if TYPE_CHECKING:
    from tailrace.pipelines.engine.dead_record import DeadRecord
    from tailrace.pipelines.reading.decode import Decoded
    from tailrace.pipelines.reading.reader import Records


@dataclass(frozen=True, slots=True)
class TickContext:
    """The constants of one tick: the same for every operator."""

    number: int
    now_ms: int
    watermarks: Mapping[str, int] = field(default_factory=dict)
    # By topic: its event-time column, and the time before which no row is taken any more.
    horizons: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    # What operators could not do as it should be, because what it needs has left (by topic of
    # a table with a history): they add to it, and whoever runs them tells it.
    forgotten: dict[str, int] = field(default_factory=dict, compare=False)
    # Rows that operators cannot read: they become dead letters.
    dead: list[DeadRecord] = field(default_factory=list, compare=False)
    shards: int = 1

    def count_forgotten(self, topic: str, count: int) -> None:
        self.forgotten[topic] = self.forgotten.get(topic, 0) + count


class Reading(Protocol):
    """Makes rows of the records of one topic (see `event_rows`); picklable."""

    def decode(self, table: TableInput, records: Records, shards: int) -> Decoded: ...

    def queries(self, topic: str) -> Mapping[str, str]:
        """Further names under which SQL reads it, each with the query it stands for."""


@dataclass(frozen=True, slots=True)
class TableInput:
    """A topic that views read.

    `kind` says how its rows arrive in `run_tick`'s inputs, in the order of the log:

    - `table`: the columns of `schema`, `__key` (binary, the record's key as it stands) and
      `__deleted` (bool; the other columns are then ignored). Last one per key wins.
    - `bag` (a table without primary key): the columns of `schema`, `__weight` (+1 a row came,
      −1 it went; an update is both) and `__deleted` (bool): true on a row that says "all rows
      before this one are gone" (truncated, or a copy that starts again).
    - `stream`: the columns of `schema`; every row is a fact. `key`: no two rows have it.
    - `history`: like `table`, with `__versioned_at` (TIMESTAMP: when the version became
      valid) and `__copied` (bool: it was read by a copy at that time, and may be older);
      every version counts for as-of joins.

    A column `__shard` (int32; absent means 0) places a row's `keyed` state: the topic
    partition modulo the number of shards, so that it needs no exchange.
    `kept_ms`: how long the versions of a `history` are kept; None: for ever. `time`: the column
    of a stream's event time, where it is declared. `once_keyless`: some version of the table
    had no key, so that its topic may hold records without one. `reading`: how its records are
    read, where their values are neither rows nor envelopes. `wire`: how its values become JSON, if
    they are not (options of `wire.to_json`).
    `order`: a stream that a pattern reads; the event time of a row. Rows then carry it (`__time`,
    and `__micros` as a number) and their place in the log (`__partition`, `__offset`), which stand
    last in `schema`. `copied`: of a captured table also the rows of its first copy are facts.
    `placed`: a table whose rows carry the place of their record (`__partition`, `__offset`), last
    in `schema`.
    `upcasts`: of events, the code that brings those of older versions up, as a hash; "" if none.
    """

    name: str
    topic: str
    schema: pa.Schema
    key: tuple[str, ...] = ()
    kind: str = "table"
    kept_ms: int | None = None
    time: str = ""
    once_keyless: bool = False
    reading: Reading | None = field(
        default=None,
        metadata=not_identity("rows are what their schema says, however they are read"),
    )
    wire: tuple[tuple[str, str], ...] = field(
        default=(), repr=False, metadata=not_identity("as for `reading`")
    )
    order: Expression | None = None
    copied: bool = False
    placed: bool = False
    upcasts: str = ""

    @property
    def recorded(self) -> pa.Schema:
        """The columns that stand in records."""
        added = len(PLACED) if self.order is not None else 2 if self.placed else 0
        return pa.schema(list(self.schema)[: len(self.schema) - added])


@dataclass(frozen=True, slots=True)
class Projection:
    """What happens to rows between two operators: filter, then expressions."""

    columns: tuple[tuple[str, Expression], ...]
    where: Expression | None = None

    @property
    def sql(self) -> str:
        """The same as Spark SQL, for `explain`."""
        body = ", ".join(f"{e.sql} AS `{name}`" for name, e in self.columns)
        return body if self.where is None else f"{body} WHERE {self.where.sql}"


@dataclass(frozen=True, slots=True)
class Edge:
    """An input of a node.

    `source` is a node's id, or `table:<topic>` for the first operator on a table.
    `projection` None: the rows as they are. `route`: names of projected columns whose hash
    is the shard; () means shard 0, None means the row stays in its shard.
    """

    source: str
    projection: Projection | None = None
    route: tuple[str, ...] | None = None


class Operator(Protocol):
    """A stateful step; a plain picklable object without state of its own.

    `apply` gets one consolidated table per edge (columns of the edge, `__weight`), reads and
    changes `state`, and gives the changes of its output (columns of the node's schema,
    `__weight`). It depends on the set of input rows alone, never on their order. `wakes`:
    it must run in every tick, with or without input.

    Whoever changes the bytes of a state gives the class a number that says so: a `form` (1
    where there is none) names other nodes, whose views are filled anew; a `format` refuses the
    old state, but for those in `reads`, until somebody asks for a rebuild. What an operator is,
    is in the fields of its dataclass, all of them (see `identity`).
    `tests/pipelines/engine/test_state_forms.py` holds the bytes.
    """

    @property
    def kind(self) -> str: ...

    @property
    def wakes(self) -> bool: ...

    def apply(
        self, state: OperatorState, inputs: list[pa.Table], tick: TickContext
    ) -> pa.Table: ...

    def describe(self) -> str:
        """One line for people, in `explain` and the console; nothing else depends on it."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operator in its place. `schema` is the output without `__weight`; `level` is one
    more than the highest level it reads from over a route (tables are level 0).

    `id` says all that it computes (see `identity`), and is the name under which edges and state
    know it. Where its state has a name of an earlier version (see `ticks.carried`), `id` is that
    name and `identity` is what it would be; else that is empty.
    """

    id: str
    operator: Operator
    edges: tuple[Edge, ...]
    schema: pa.Schema
    level: int = field(metadata=not_identity("it follows from the edges"))
    identity: str = field(default="", metadata=not_identity("it follows from the rest"))


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """A view: the node that ends it and the form of its changelog.

    `node` is a `result` operator; its output in a tick holds at most one row per key: the
    columns of the view and `__deleted`. A view without a key is a bag: its last column is
    `count` and its key is all the others. `proven`: the query can give no two rows with one
    key; else that is found out in every tick. `events`: what a pattern tells; its records are
    facts, objects of its columns.
    """

    name: str
    node: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    sql: str
    bag: bool = False
    policy: str = "auto"
    proven: bool = True
    events: bool = False
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """All views of a project: `nodes` in an order in which inputs come first."""

    tables: Mapping[str, TableInput]
    nodes: tuple[Node, ...]
    views: Mapping[str, ViewPlan]

    def __reduce__(self) -> tuple[Callable[[bytes], Graph], tuple[bytes]]:
        """Every tick sends its graph to its tasks: it is made bytes once, and read once."""
        return _unpacked, (_packed(self),)

    @property
    def timed(self) -> bool:
        """Whether rows come or leave by the clock: ticks are then due without input."""
        return any(
            node.operator.kind == "clock" or getattr(node.operator, "timed", False)
            for node in self.nodes
        )

    @property
    def fingerprint(self) -> str:
        """Changes when any operator does."""
        return identify(sorted(node.identity or node.id for node in self.nodes))


_KEPT = 4  # graphs: that of the project, those of views being filled
_sent: list[tuple[Graph, bytes]] = []


def _packed(graph: Graph) -> bytes:
    for known, content in _sent:
        if known is graph:
            return content
    content = pickle.dumps((graph.tables, graph.nodes, graph.views))
    _sent.append((graph, content))
    del _sent[:-_KEPT]
    return content


@lru_cache(maxsize=_KEPT)
def _unpacked(content: bytes) -> Graph:
    return Graph(*pickle.loads(content))
