"""Rows under `<prefix>:<key>` in Redis, compared and set by one Lua script a batch.

The script checks the writer's epoch in the hash `<prefix>:_tailrace`, writes the rows and
sets the position there, all at once: Redis runs scripts one at a time and persists and
replicates them as a whole, so the copy and its position never part. Deleted and
invalidated rows leave `<prefix>:_tailrace:<key>` with their version behind for a while,
so that a cache filled by others can tell that what it read is older.

A hash has one field per column that is not NULL; JSON and string entries are text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import orjson
import pyarrow as pa
import redis

from tailrace.config import resolve
from tailrace.records.rows import python_rows, read_rows
from tailrace.sinks.base import (
    DELETED,
    VERSION,
    Batch,
    Shape,
    SinkPosition,
    decode_position,
)
from tailrace.sinks.declare import Redis
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings

SCRIPT = """
local meta, prefix = KEYS[1], KEYS[2]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return redis.error_reply('TAILRACE-FENCED') end
local batch = cjson.decode(ARGV[3])
local expire, tombstone = tonumber(ARGV[4]), tonumber(ARGV[5])
for _, entry in ipairs(batch) do
  local key = prefix .. ':' .. entry[1]
  if #entry == 2 then
    redis.call('DEL', key)
    redis.call('SET', meta .. ':' .. entry[1], entry[2], 'PX', tombstone)
  else
    if #entry == 3 then redis.call('SET', key, entry[3])
    else
      redis.call('DEL', key)
      redis.call('HSET', key, unpack(entry, 3))
    end
    if expire > 0 then redis.call('PEXPIRE', key, expire) end
  end
end
redis.call('HSET', meta, 'position', ARGV[2])
return #batch
"""
SCRIPT_HASH = hashlib.sha1(SCRIPT.encode()).hexdigest()
CLAIM = "return redis.call('HINCRBY', KEYS[1], 'epoch', 1)"
META = "_tailrace"


class RedisSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Redis)
        self._copy = copy
        self._declaration = copy.declaration
        self._prefix = copy.declaration.prefix
        self._meta = f"{self._prefix}:{META}"
        self._client: Any = None
        self._epoch = 0

    def open(self, shape: Shape) -> None:
        with self._errors() as client:
            self._epoch = int(client.eval(CLAIM, 1, self._meta))
            client.script_load(SCRIPT)

    def position(self) -> SinkPosition | None:
        with self._errors() as client:
            return decode_position(client.hget(self._meta, "position"))

    def apply(self, batch: Batch) -> None:
        entries = orjson.dumps(self._entries(batch))
        expire = self._declaration.expire
        arguments = (
            2,
            self._meta,
            self._prefix,
            self._epoch,
            batch.position.encode(),
            entries,
            0 if expire is None else int(expire.total_seconds() * 1000),
            max(1, int(self._declaration.tombstones.total_seconds() * 1000)),
        )
        with self._errors() as client:
            try:
                client.evalsha(SCRIPT_HASH, *arguments)
            except redis.exceptions.NoScriptError:
                client.eval(SCRIPT, *arguments)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        with self._errors() as client:
            keys: list[bytes] = []
            for key in client.scan_iter(match=_literal(self._prefix) + ":*", count=5000):
                if not key.startswith(self._meta.encode()):
                    keys.append(key)
                if len(keys) == 5000:
                    yield self._read(client, keys, shape)
                    keys = []
            yield self._read(client, keys, shape)

    def _read(self, client: Any, keys: list[bytes], shape: Shape) -> pa.Table:
        pipeline = client.pipeline(transaction=False)
        hashes = self._declaration.format == "hash"
        for key in sorted(set(keys)):
            if hashes:
                pipeline.hgetall(key)
            else:
                pipeline.get(key)
        found = [value for value in pipeline.execute() if value]
        texts = [_row_of_hash(value, shape) for value in found] if hashes else found
        return read_rows(texts, shape.columns)[0]

    # ------------------------------------------------------------------ entries

    def _entries(self, batch: Batch) -> list[list[str]]:
        """`[key, version]` to delete, `[key, version, text]` or `[key, version, field,
        value, …]` to set; everything is text, so that Lua's numbers touch nothing."""
        shape = batch.shape
        invalidate = self._declaration.mode == "invalidate"
        fields = self._declaration.format
        names = shape.names
        value_column = next((name for name in names if name not in shape.key), names[0])
        entries: list[list[str]] = []
        for row in python_rows(batch.changes):
            entry = [_key_text([row[name] for name in shape.key]), str(row[VERSION])]
            if row[DELETED] or invalidate:
                pass
            elif fields == "hash":
                for name in names:
                    value = row[name]
                    if value is not None:
                        entry.append(name)
                        entry.append(value if type(value) is str else _text(value))
            elif fields == "json":
                entry.append(orjson.dumps({name: row[name] for name in names}).decode())
            else:
                entry.append(_text(row[value_column]))
            entries.append(entry)
        return entries

    @contextmanager
    def _errors(self) -> Iterator[Any]:
        where = f"Redis {self._prefix}:*"
        try:
            if self._client is None:
                self._client = redis.Redis.from_url(
                    resolve(self._declaration.url), socket_connect_timeout=5, socket_timeout=30
                )
            yield self._client
        except redis.exceptions.AuthenticationError as reason:
            raise _refused(where, reason) from reason
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as reason:
            raise _unavailable(where, reason) from reason
        except redis.exceptions.ResponseError as reason:
            text = str(reason)
            if "TAILRACE-FENCED" in text:
                raise SinkFencedError(
                    f"another writer took sink {self._copy.name!r} over",
                    detail=f"Ours is epoch {self._epoch}.",
                    hint="run a project only once",
                ) from reason
            if text.startswith(("LOADING", "BUSY", "MASTERDOWN", "OOM", "MISCONF", "CLUSTERDOWN")):
                raise _unavailable(where, reason) from reason
            if text.startswith(("READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "DENIED")):
                raise _refused(where, reason) from reason
            if "OOM" in text or "READONLY" in text:
                raise _unavailable(where, reason) from reason
            raise RowsRefusedError(f"{where} refuses rows", detail=text) from reason


def _unavailable(where: str, reason: Exception) -> TargetUnavailableError:
    return TargetUnavailableError(
        f"{where} cannot be reached",
        detail=str(reason),
        hint="the sink tries again until it answers",
    )


def _refused(where: str, reason: Exception) -> TargetRefusedError:
    return TargetRefusedError(
        f"{where} may not be written",
        detail=str(reason),
        hint="check the password, its rights, and that this is no replica",
    )


def _key_text(parts: list[Any]) -> str:
    """Key parts joined by `:`; a `:` or backslash inside a part is escaped, NULL is `\\N`."""
    return ":".join(
        "\\N" if part is None else _text(part).replace("\\", "\\\\").replace(":", "\\:")
        for part in parts
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def _literal(text: str) -> str:
    """Text for Redis' pattern matching that matches itself."""
    return "".join("\\" + c if c in "*?[]\\^" else c for c in text)


def _row_of_hash(entry: dict[bytes, bytes], shape: Shape) -> bytes:
    """A row's JSON from the texts of a hash."""
    row: dict[str, Any] = {}
    for field in shape.schema:
        raw = entry.get(field.name.encode())
        kind = field.type
        quoted = not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_nested(kind)
        )
        if raw is None:
            row[field.name] = None
        elif quoted:
            row[field.name] = raw.decode()
        else:
            row[field.name] = orjson.loads(raw)
    return orjson.dumps(row)
