"""A captured table: its decoder, its topic, and its rows in the transaction at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import tailrace
from tailrace.records.envelope import TableFrame, TransactionFrame
from tailrace.sources.base import Keys, Values
from tailrace.sources.declare import Postgres, for_table, mask_secret
from tailrace.sources.outbox import Routed
from tailrace.sources.postgres.catalog import CatalogTable
from tailrace.sources.postgres.columns import ColumnDecoder
from tailrace.sources.postgres.decoder import ColumnPlan, Decode, Decoder, generate, masked
from tailrace.sources.postgres.pgoutput import Relation
from tailrace.sources.postgres.toast import SMALLEST
from tailrace.sources.postgres.types import TypeTable
from tailrace.sources.schema import Column, TableSchema


@dataclass(slots=True)
class Transaction:
    """The source transaction being received."""

    commit_lsn: int
    xid: int
    committed_ms: int
    now_ms: int
    skip: int = 0
    order: int = 0
    messages: int = 0
    rows: int = 0
    spilled: bool = False
    tables: list[CapturedTable] = field(default_factory=list)
    notes: list[dict[str, object]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    requests: list[dict[str, object]] = field(default_factory=list)
    annotations: dict[str, object] = field(default_factory=dict)
    messages_out: list[Routed] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.xid}:{self.commit_lsn}"


@dataclass(slots=True)
class CapturedTable:
    """One version of one table while it is being captured.

    `touched` is there while the table is being copied: the keys that streamed
    transactions changed, with the transaction that did it last; `inserted` those they
    inserted, where a stream may ask for all inserted rows.
    """

    relation: Relation
    schema: TableSchema
    decoder: Decoder
    columns: ColumnDecoder
    frame: TableFrame
    key_types: tuple[str, ...] = ()
    touched: dict[bytes, int] | None = None
    inserted: set[bytes] | None = None
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    # Records before those, where whole columns came.
    blocks: list[tuple[Keys, Values]] = field(default_factory=list)
    events: TransactionFrame | None = None
    order: int = 0
    toastable: bool = False
    # From how many bytes of JSON on a row may have a value stored out of line.
    smallest: int = SMALLEST
    # Whether the database's own text of the key may be written down.
    key_readable: bool = True
    # Changes committed before this position are in the copy already (tables without key).
    copied_until: int = 0
    is_outbox: bool = False
    # Of the decoder, of the schema and of `events`, looked up once instead of for every row.
    row: Decode = field(init=False)
    name: str = field(init=False)
    inserts: tuple[bytes, bytes, bytes, bytes] = (b"", b"", b"", b"")

    def __post_init__(self) -> None:
        self.row = self.decoder.row
        self.name = self.schema.name

    @property
    def waiting(self) -> bool:
        """Whether rows of the open transaction are held here."""
        return bool(self.values or self.blocks)

    def add_columns(self, keys: Keys, values: Values) -> None:
        """Records behind those there are, as whole columns."""
        if self.values:
            self.blocks.append((self.keys, self.values))
            self.keys, self.values = [], []
        self.blocks.append((keys, values))

    def take(self) -> list[tuple[Keys, Values]]:
        """All records held, in order; they are forgotten here."""
        blocks = self.blocks
        if self.values:
            blocks.append((self.keys, self.values))
        self.keys, self.values, self.blocks = [], [], []
        return blocks

    def enter(self, transaction: Transaction, epoch: int) -> TransactionFrame:
        """Begin this table's events of a transaction."""
        self.events = TransactionFrame.of(
            self.frame,
            epoch=epoch,
            commit=transaction.commit_lsn,
            xid=transaction.xid,
            committed_ms=transaction.committed_ms,
            now_ms=transaction.now_ms,
        )
        frame = self.events
        self.inserts = (frame.head, frame.middle, frame.operations["c"], frame.key)
        self.order = 0
        transaction.tables.append(self)
        return frame


def key_columns(relation: Relation, primary_key: Sequence[str]) -> tuple[str, ...]:
    """The columns of the record key, in key order.

    Under REPLICA IDENTITY DEFAULT and USING INDEX it must be what a delete carries, as the
    stream itself says; under FULL the primary key; none where a table has neither.
    """
    names = {c.name for c in relation.columns}
    primary = tuple(name for name in primary_key if name in names)
    if relation.identity in ("d", "i"):
        flagged = tuple(c.name for c in relation.columns if c.in_identity)
        if set(flagged) == set(primary):
            return primary
        return flagged
    return primary if len(primary) == len(primary_key) else ()


def shape_of(
    source: Postgres, relation: Relation, catalog: CatalogTable | None, types: TypeTable
) -> TableSchema:
    """The table's columns and key as a schema without a version."""
    not_null = frozenset[str]() if catalog is None else catalog.not_null
    key = key_columns(relation, () if catalog is None else catalog.key)
    captured = _captured(source, relation, key)
    masks = _masks(source, relation)
    columns = tuple(
        Column(
            c.name,
            types.name(c.type, c.modifier),
            "STRING" if c.name in masks else types.spark(c.type, c.modifier),
            c.name not in not_null or masks.get(c.name) == "null",
        )
        for c in relation.columns
        if c.name in captured
    )
    return TableSchema(source.name, relation.schema, relation.table, columns, key)


def captured_table(
    source: Postgres, relation: Relation, schema: TableSchema, types: TypeTable, db: str
) -> CapturedTable:
    """Everything needed to turn this relation's rows into events."""
    captured = _captured(source, relation, schema.key)
    masks = _masks(source, relation)
    secret = mask_secret(source) if masks else b""
    plans = [
        ColumnPlan(
            c.name,
            types.splice(c.type) if c.name not in masks else "call",
            types.converter(c.type) if c.name not in masks else masked(masks[c.name], secret),
            types.toastable(c.type),
            c.name in captured,
        )
        for c in relation.columns
    ]
    names = [c.name for c in relation.columns]
    key = [names.index(name) for name in schema.key]
    frame = TableFrame.of(
        version=tailrace.__version__,
        connector="postgresql",
        source=source.name,
        db=db,
        schema=relation.schema,
        table=relation.table,
        schema_version=schema.version,
    )
    return CapturedTable(
        relation,
        schema,
        generate(plans, key),
        ColumnDecoder(plans, key),
        frame,
        tuple(types.name(relation.columns[i].type, relation.columns[i].modifier) for i in key),
        toastable=any(p.toastable and p.captured for p in plans),
        smallest=smallest_row(source, relation.schema, relation.table),
        key_readable=not any(name in masks for name in schema.key),
    )


def smallest_row(source: Postgres, schema: str, table: str) -> int:
    """From how many bytes of JSON on a row may have a value stored out of line: any, where
    what is masked or not captured may be larger than the JSON shows."""
    less = for_table(source.columns, schema, table) or for_table(source.mask, schema, table)
    return 0 if less else SMALLEST


def _captured(source: Postgres, relation: Relation, key: Sequence[str]) -> frozenset[str]:
    chosen = for_table(source.columns, relation.schema, relation.table)
    if chosen is None:
        return frozenset(c.name for c in relation.columns)
    assert isinstance(chosen, Sequence)
    return frozenset(chosen) | frozenset(key)


def _masks(source: Postgres, relation: Relation) -> dict[str, str]:
    found = for_table(source.mask, relation.schema, relation.table)
    return dict(found) if isinstance(found, Mapping) else {}
