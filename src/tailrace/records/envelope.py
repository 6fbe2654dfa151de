"""The change envelope: what a captured row's record says.

Debezium's field names without the `{"schema", "payload"}` wrapper:

    {"before": {…}|null, "after": {…}|null,
     "source": {"version", "connector", "name", "db", "schema", "table", "schema_version",
                "snapshot", "ts_ms", "txId", "commit_lsn", "lsn", "sequence", "missing"?},
     "op": "c"|"u"|"d"|"r"|"t"|"m", "ts_ms",
     "transaction": {"id", "total_order", "data_collection_order"},
     "idempotency_key": "<epoch>-<commit>-<ordinal>"}

`missing` lists columns whose value was not known and which are absent from `after`; capture
writes no such event any more, but topics have them from before. Writers splice JSON bytes
with the frames below; readers use `read_change`, which takes Debezium's own envelopes too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson

from tailrace.records.errors import EnvelopeError

Row = dict[str, Any]


# --- writing ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableFrame:
    """The constant part of every event of one table version."""

    table: str
    head: bytes

    @classmethod
    def of(
        cls, *, version: str, connector: str, source: str, db: str, schema: str, table: str,
        schema_version: int,
    ) -> TableFrame:  # fmt: skip
        constant = orjson.dumps(
            {
                "version": version,
                "connector": connector,
                "name": source,
                "db": db,
                "schema": schema,
                "table": table,
                "schema_version": schema_version,
            }
        )
        return cls(f"{schema}.{table}", b',"source":' + constant[:-1])


@dataclass(frozen=True, slots=True)
class TransactionFrame:
    """The constant part of every event of one table in one transaction.

    An event is `{"before":B,"after":A` + `head` + lsn + `middle` + lsn + `operations[op]` +
    total order + `,"data_collection_order":` + order + `key` + total order + `"}`.
    """

    head: bytes
    middle: bytes
    operations: Mapping[str, bytes]
    key: bytes

    @classmethod
    def of(
        cls, table: TableFrame, *, epoch: int, commit: int, xid: int, committed_ms: int,
        now_ms: int, snapshot: str = "false", transaction: str | None = None,
    ) -> TransactionFrame:  # fmt: skip
        name = transaction or f"{xid}:{commit}"
        return cls(
            table.head
            + b',"snapshot":"%b","ts_ms":%d,"txId":%d,"commit_lsn":%d,"lsn":'
            % (snapshot.encode(), committed_ms, xid, commit),
            b',"sequence":"[\\"%d\\",\\"' % commit,
            {
                op: b'\\"]"},"op":"%b","ts_ms":%d,"transaction":{"id":"%b","total_order":'
                % (op.encode(), now_ms, name.encode())
                for op in "cudrtm"
            },
            b'},"idempotency_key":"%d-%d-' % (epoch, commit),
        )

    def event(
        self, op: str, before: bytes, after: bytes, lsn: int, order: int, table_order: int,
        missing: Sequence[str] = (),
    ) -> bytes:  # fmt: skip
        """One event; `before` and `after` are JSON."""
        number = b"%d" % order
        place = b"%d" % lsn
        middle = self.middle
        if missing:
            middle = b',"missing":' + orjson.dumps(list(missing)) + middle
        return b"".join(
            (
                b'{"before":', before, b',"after":', after, self.head, place, middle, place,
                self.operations[op], number, b',"data_collection_order":', b"%d" % table_order,
                self.key, number, b'"}',
            )
        )  # fmt: skip


# --- reading ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row, whoever wrote the envelope.

    `op` is "insert", "update", "delete", "read" (first copy), "truncate" or "message".
    `commit` and `ordinal` order the changes of a source; None where a foreign writer
    gave none.
    """

    op: str
    key: Row | None
    before: Row | None
    after: Row | None
    source: str
    schema: str
    table: str
    commit: int | None = None
    ordinal: int | None = None
    transaction: str | None = None
    ts_ms: int | None = None
    schema_version: int | None = None
    missing: tuple[str, ...] = ()
    idempotency_key: str | None = None
    position: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


_OPERATIONS = {
    "c": "insert", "u": "update", "d": "delete", "r": "read", "t": "truncate", "m": "message",
}  # fmt: skip


def read_change(key: bytes | None, value: bytes | None) -> Change | None:
    """The change in a record; None for a tombstone."""
    if value is None:
        return None
    document = _object(value)
    payload = document
    if "payload" in document and "schema" in document:
        wrapped: dict[str, Any] | None = document["payload"]
        if wrapped is None:
            return None
        sides = {s: _by_schema(document["schema"], s, wrapped) for s in ("before", "after")}
        payload = {**wrapped, **sides}
    operation = _OPERATIONS.get(payload.get("op", ""))
    if operation is None:
        raise EnvelopeError("record is no change envelope", detail=f"op is {payload.get('op')!r}")
    source = payload.get("source") or {}
    transaction = payload.get("transaction") or {}
    commit = source.get("commit_lsn", source.get("lsn"))
    return Change(
        operation,
        _key(key),
        payload.get("before"),
        payload.get("after"),
        source.get("name", ""),
        source.get("schema") or source.get("db") or "",
        source.get("table", ""),
        commit,
        transaction.get("total_order"),
        transaction.get("id"),
        source.get("ts_ms", payload.get("ts_ms")),
        source.get("schema_version"),
        tuple(source.get("missing", ())),
        payload.get("idempotency_key"),
        extra=source,
    )


def _object(value: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise EnvelopeError("record is no change envelope", detail=str(error)) from error
    if not isinstance(document, dict):
        raise EnvelopeError("record is no change envelope", detail="not a JSON object")
    return document


def _key(key: bytes | None) -> Row | None:
    if key is None:
        return None
    try:
        document = orjson.loads(key)
    except orjson.JSONDecodeError:
        return {"key": key.decode(errors="replace")}
    if isinstance(document, dict):
        if "payload" in document and "schema" in document:
            payload = document["payload"]
            return payload if isinstance(payload, dict) else {"key": payload}
        return document
    return {"key": document}


# Debezium's schemas say how its numbers are to be read: without one, 19311 may be a
# date, and "YKc=" a decimal.


def _by_schema(schema: Mapping[str, Any], side: str, payload: Mapping[str, Any]) -> Row | None:
    row = payload.get(side)
    if row is None:
        return None
    fields: Sequence[Mapping[str, Any]] = ()
    for part in schema.get("fields", ()):
        if part.get("field") == side:
            fields = part.get("fields", ())
    types = {f["field"]: f for f in fields}
    return {name: _plain(types.get(name, {}), value) for name, value in row.items()}


def _plain(schema: Mapping[str, Any], value: Any) -> Any:
    """A value of a Debezium record in the form our own envelopes have."""
    if value is None:
        return None
    name = schema.get("name", "")
    if name == "org.apache.kafka.connect.data.Decimal":
        return _decimal(value, int(schema.get("parameters", {}).get("scale", 0)))
    if name == "io.debezium.data.VariableScaleDecimal":
        return _decimal(value["value"], int(value["scale"]))
    if name in ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date"):
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=value)).date().isoformat()
    if name in ("io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp"):
        return _instant(value * 1000)
    if name == "io.debezium.time.MicroTimestamp":
        return _instant(value)
    if name == "io.debezium.time.NanoTimestamp":
        return _instant(value // 1000)
    if name in ("io.debezium.time.Time", "org.apache.kafka.connect.data.Time"):
        return _instant(value * 1000)[11:]
    if name == "io.debezium.time.MicroTime":
        return _instant(value)[11:]
    if name == "io.debezium.data.Json" and isinstance(value, str):
        return orjson.loads(value)
    if schema.get("type") == "array" and isinstance(value, list):
        return [_plain(schema.get("items", {}), item) for item in value]
    if schema.get("type") == "struct" and isinstance(value, dict):
        types = {f["field"]: f for f in schema.get("fields", ())}
        return {key: _plain(types.get(key, {}), item) for key, item in value.items()}
    return value


def _decimal(encoded: str, scale: int) -> str:
    unscaled = int.from_bytes(base64.b64decode(encoded), "big", signed=True)
    return format(Decimal(unscaled).scaleb(-scale), "f")


def _instant(microseconds: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    fraction = moment.microsecond
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text
