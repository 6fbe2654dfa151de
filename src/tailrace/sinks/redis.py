"""Rows under `<prefix>:<key>` in Redis, compared and set by one Lua script a batch.

    <prefix>:<key>               a row; no key begins with `_tailrace` (escaped if it would)
    <prefix>:_tailrace           hash: the writer's epoch, the position
    <prefix>:_tailrace-versions  hash: the version of every row that is there
    <prefix>:_tailrace:<key>     the version of a key that was deleted, invalidated, or may
                                 expire; expires itself, later than the log can be replayed

The script checks the writer's epoch, writes every row that is not older than the version
its key has, and sets the position, all at once: Redis runs scripts one at a time and
persists and replicates them as a whole, so the copy and its position never part. A
replay from any position, or a server that lost its position, therefore never shows a row
that is older than one it has shown. A cache filled by others can tell by the versions
that what it read is older.

A hash has one field per column that is not NULL; JSON and string entries are text.

A second copy is filled under `<prefix>__next:<key>`. A switch renames key by key, each
from new to used and from used to `<prefix>__previous:<key>` at once, so that a reader
never misses a row; what it has done so far stands in `<prefix>:_tailrace`, and `open`
finishes what a crash left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, Literal

import orjson
import pyarrow as pa
import redis

from tailrace.config import resolve
from tailrace.records.json_bytes import json_bytes
from tailrace.records.rows import python_rows, read_rows
from tailrace.sinks.base import (
    DELETED,
    VERSION,
    Batch,
    Shape,
    Sink,
    SinkPosition,
    decode_position,
)
from tailrace.sinks.declare import Redis
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkDeclarationError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import NEXT, PREVIOUS

# Versions are compared as text: Lua's numbers are doubles and would round them.
SCRIPT = """
local meta, prefix, versions = KEYS[1], KEYS[2], KEYS[3]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return redis.error_reply('TAILRACE-FENCED') end
local batch = cjson.decode(ARGV[3])
local expire, tombstone, forced = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local function newer(held, version)
  return held and (#held > #version or (#held == #version and held > version))
end
for first = 1, #batch, 1000 do
  local names, marks, set, gone = {}, {}, {}, {}
  for i = first, math.min(first + 999, #batch) do
    names[#names + 1] = batch[i][2]
    marks[#marks + 1] = meta .. ':' .. batch[i][2]
  end
  local held = redis.call('HMGET', versions, unpack(names))
  local left = redis.call('MGET', unpack(marks))
  for i, name in ipairs(names) do
    local entry = batch[first + i - 1]
    local kind, version, key = entry[1], entry[3], prefix .. ':' .. name
    if forced or not (newer(held[i], version) or newer(left[i], version)) then
      if kind == 'd' then redis.call('DEL', key)
      elseif kind == 's' then redis.call('SET', key, entry[4])
      else
        redis.call('DEL', key)
        redis.call('HSET', key, unpack(entry, 4))
      end
      if kind == 'd' or expire > 0 then
        if kind ~= 'd' then redis.call('PEXPIRE', key, expire) end
        if held[i] then gone[#gone + 1] = name end
        redis.call('SET', marks[i], version, 'PX', tombstone)
      else
        set[#set + 1] = name
        set[#set + 1] = version
        if left[i] then redis.call('DEL', marks[i]) end
      end
    end
  end
  if #set > 0 then redis.call('HSET', versions, unpack(set)) end
  if #gone > 0 then redis.call('HDEL', versions, unpack(gone)) end
end
redis.call('HSET', meta, 'position', ARGV[2])
return #batch
"""
SCRIPT_HASH = hashlib.sha1(SCRIPT.encode()).hexdigest()
CLAIM = "return redis.call('HINCRBY', KEYS[1], 'epoch', 1)"
META = "_tailrace"
VERSIONS = "-versions"
SLICE = 2_000
# Keys in use go away, and what is to come takes their place. A key that has gone away
# already belongs to the new copy.
EXCHANGE = """
local used, away, back = KEYS[1], KEYS[2], KEYS[3]
for _, key in ipairs(ARGV) do
  if redis.call('EXISTS', away .. ':' .. key) == 0
      and redis.call('EXISTS', used .. ':' .. key) == 1 then
    redis.call('RENAME', used .. ':' .. key, away .. ':' .. key)
    if redis.call('EXISTS', back .. ':' .. key) == 1 then
      redis.call('RENAME', back .. ':' .. key, used .. ':' .. key)
    end
  end
end
"""
BRING = """
for _, key in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[2] .. ':' .. key) == 1 then
    redis.call('RENAME', KEYS[2] .. ':' .. key, KEYS[1] .. ':' .. key)
  end
end
"""
FINISH = """
local used, away, back = KEYS[1], KEYS[2], KEYS[3]
local before = redis.call('HGET', used, 'position')
local new = redis.call('HGET', back, 'position')
redis.call('DEL', away, back)
local function move(from, to)
  redis.call('DEL', to)
  if redis.call('EXISTS', from) == 1 then redis.call('RENAME', from, to) end
end
move(used .. '-versions', away .. '-versions')
move(back .. '-versions', used .. '-versions')
if before then redis.call('HSET', away, 'position', before, 'epoch', 1) end
if new then redis.call('HSET', used, 'position', new) else redis.call('HDEL', used, 'position') end
redis.call('HINCRBY', used, 'epoch', 1)
redis.call('HDEL', used, 'switching')
"""


class RedisInvalidation:
    """Writes entries, or removes those whose rows have changed."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Redis)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._prefix = copy.declaration.prefix
        self._meta = f"{self._prefix}:{META}"
        self._client: Any = None
        self._epoch = 0

    def open(self, shape: Shape) -> None:
        with self._errors() as client:
            self._prepare(client)
            self._epoch = int(client.eval(CLAIM, 1, self._meta))
            client.script_load(SCRIPT)

    def _prepare(self, client: Any) -> None:
        """What must be in order before the copy is taken over."""

    def position(self) -> SinkPosition | None:
        with self._errors() as client:
            return decode_position(client.hget(self._meta, "position"))

    def apply(self, batch: Batch) -> None:
        entries = orjson.dumps(self._entries(batch))
        expire = self._declaration.expire
        arguments = (
            3,
            self._meta,
            self._prefix,
            self._meta + VERSIONS,
            self._epoch,
            batch.position.encode(),
            entries,
            _ms(expire),
            max(1, _ms(self._declaration.tombstones), _ms(expire)),
            int(batch.forced),
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

    # ------------------------------------------------------------------ entries

    def _entries(self, batch: Batch) -> list[list[str]]:
        """`[d, key, version]` to delete, `[s, key, version, text]` or `[h, key, version,
        field, value, …]` to set; all of it text, so that Lua's numbers touch nothing."""
        shape = batch.shape
        invalidate = self._declaration.mode == "invalidate"
        fields = self._declaration.format
        names = shape.names
        value_column = _value_column(shape)
        entries: list[list[str]] = []
        for row in python_rows(batch.changes):
            entry = ["d", _key_text([row[name] for name in shape.key]), str(row[VERSION])]
            if row[DELETED] or invalidate:
                pass
            elif fields == "hash":
                entry[0] = "h"
                for name in names:
                    value = row[name]
                    if value is not None:
                        entry.append(name)
                        entry.append(value if type(value) is str else _text(value))
                if len(entry) == 3:  # Redis has no empty hashes
                    entry += ("", "")
            elif fields == "json":
                entry[0] = "s"
                entry.append(orjson.dumps({name: row[name] for name in names}).decode())
            else:
                entry[0] = "s"
                entry.append(_text(row[value_column]))
            entries.append(entry)
        return entries

    def _connect(self) -> Any:
        try:
            return redis.Redis.from_url(
                resolve(self._declaration.url), socket_connect_timeout=5, socket_timeout=30
            )
        except ValueError as reason:
            raise SinkDeclarationError(
                f"sink {self._copy.name!r} has no Redis address",
                detail=str(reason),
                hint="redis://user:password@host:6379/0",
            ) from reason

    @contextmanager
    def _errors(self) -> Iterator[Any]:
        where = f"Redis {self._prefix}:*"
        try:
            if self._client is None:
                self._client = self._connect()
            yield self._client
        except (redis.exceptions.AuthenticationError, redis.exceptions.ReadOnlyError) as reason:
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
            if "OOM" in text:  # told by the script
                raise _unavailable(where, reason) from reason
            if "READONLY" in text or "read only replica" in text:
                raise _refused(where, reason) from reason
            raise RowsRefusedError(f"{where} refuses rows", detail=text) from reason


class RedisSink(RedisInvalidation):
    """A copy in Redis, which can be read back and built anew beside the one in use."""

    repeats: ClassVar[bool] = True  # SCAN may give a key twice

    def _prepare(self, client: Any) -> None:
        self._finish_switch(client)

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        with self._errors() as client:
            for keys in self._keys(client, self._prefix):
                yield self._read(client, keys, shape)

    def seen(self, shape: Shape) -> Shape:
        """Strings hold one column beside the key."""
        if self._declaration.format != "string":
            return shape
        names = {*shape.key, _value_column(shape)}
        return replace(shape, columns=tuple(c for c in shape.columns if c[0] in names))

    def _keys(self, client: Any, prefix: str, marks: bool = False) -> Iterator[list[bytes]]:
        """The keys of a copy's rows, and with `marks` of its deletes, without its prefix,
        in slices."""
        start, own = f"{prefix}:".encode(), META.encode()
        keys: list[bytes] = []
        for found in client.scan_iter(match=_literal(prefix) + ":*", count=SLICE):
            key = found[len(start) :]
            if not key.startswith(own) or (marks and key.startswith(own + b":")):
                keys.append(key)
            if len(keys) == SLICE:
                yield sorted(set(keys))
                keys = []
        if keys:
            yield sorted(set(keys))

    def _read(self, client: Any, keys: list[bytes], shape: Shape) -> pa.Table:
        pipeline = client.pipeline(transaction=False)
        form = self._declaration.format
        for key in keys:
            name = f"{self._prefix}:".encode() + key
            if form == "hash":
                pipeline.hgetall(name)
            else:
                pipeline.get(name)
        found = zip(keys, pipeline.execute(), strict=True)
        texts = [
            _row_of_hash(value, shape)
            if form == "hash"
            else value
            if form == "json"
            else _row_of_string(key, value, shape)
            for key, value in found
            if value is not None and value != {}
        ]
        return read_rows(texts, shape.columns)[0]

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        declaration = replace(self._declaration, prefix=self._prefix + NEXT)
        copy = replace(self._copy, name=self._copy.name + NEXT, declaration=declaration)
        return RedisSink(copy, self._surroundings)

    def discard(self) -> None:
        with self._errors() as client:
            self._remove(client, self._prefix + NEXT)

    def switch(self) -> None:
        self._exchange(PREVIOUS, NEXT)

    def rollback(self) -> None:
        self._exchange(NEXT, PREVIOUS)

    def previous(self) -> SinkPosition | None:
        with self._errors() as client:
            return decode_position(client.hget(f"{self._prefix}{PREVIOUS}:{META}", "position"))

    def _exchange(self, away: str, back: str) -> None:
        with self._errors() as client:
            self._remove(client, self._prefix + away)
            # A writer that is still at work must not touch a copy half of which is another.
            client.eval(CLAIM, 1, self._meta)
            client.hset(self._meta, "switching", orjson.dumps([away, back, 1]))
            self._finish_switch(client)

    def _finish_switch(self, client: Any) -> None:
        """Do what is left of a switch: 1, keys in use; 2, keys only the new copy has."""
        text = client.hget(self._meta, "switching")
        if text is None:
            return
        away, back, step = orjson.loads(text)
        used, gone, new = self._prefix, self._prefix + away, self._prefix + back
        if step == 1:
            for keys in self._keys(client, used, marks=True):
                client.eval(EXCHANGE, 3, used, gone, new, *keys)
            client.hset(self._meta, "switching", orjson.dumps([away, back, 2]))
        for keys in self._keys(client, new, marks=True):
            client.eval(BRING, 2, used, new, *keys)
        client.eval(FINISH, 3, self._meta, f"{gone}:{META}", f"{new}:{META}")

    def _remove(self, client: Any, prefix: str) -> None:
        for key in client.scan_iter(match=_literal(prefix) + ":*", count=SLICE):
            client.unlink(key)


def redis_sink(copy: Copy, surroundings: Surroundings) -> Sink:
    """The sink for a declaration: invalidation keeps no rows of its own."""
    assert isinstance(copy.declaration, Redis)
    kind = RedisInvalidation if copy.declaration.mode == "invalidate" else RedisSink
    return kind(copy, surroundings)


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
    """Key parts joined by `:`; a `:` or backslash inside a part is escaped, NULL is `\\N`.
    A key that would begin as our own do is escaped too."""
    text = ":".join(
        "\\N" if part is None else _text(part).replace("\\", "\\\\").replace(":", "\\:")
        for part in parts
    )
    return "\\" + text if text.startswith(META) else text


def _ms(duration: timedelta | None) -> int:
    return 0 if duration is None else int(duration.total_seconds() * 1000)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def _literal(text: str) -> str:
    """Text for Redis' pattern matching that matches itself."""
    return "".join("\\" + c if c in "*?[]\\^" else c for c in text)


def _value_column(shape: Shape) -> str:
    """The column a string entry holds."""
    return next((name for name in shape.names if name not in shape.key), shape.names[0])


def _key_parts(text: str) -> list[str | None]:
    """Undo `_key_text`."""
    parts: list[str] = [""]
    unset: set[int] = set()
    letters = iter(text)
    for letter in letters:
        if letter == ":":
            parts.append("")
        elif letter == "\\":
            escaped = next(letters, "")
            if escaped == "N":
                unset.add(len(parts) - 1)
            else:
                parts[-1] += escaped
        else:
            parts[-1] += letter
    return [None if index in unset else part for index, part in enumerate(parts)]


def _row_of_string(key: bytes, value: bytes, shape: Shape) -> bytes:
    """A row's JSON from the key and the one column that a string entry has."""
    row: dict[str, Any] = {}
    parts = _key_parts(key.decode()) if shape.key else []
    texts = dict(zip(shape.key, parts, strict=True))
    texts.setdefault(_value_column(shape), value.decode() or None)
    for field in shape.schema:
        text = texts.get(field.name)
        row[field.name] = text if text is None or _is_text(field.type) else orjson.loads(text)
    return json_bytes(row)


def _is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are JSON strings."""
    return not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_nested(kind)
    )


def _row_of_hash(entry: dict[bytes, bytes], shape: Shape) -> bytes:
    """A row's JSON from the texts of a hash."""
    row: dict[str, Any] = {}
    for field in shape.schema:
        raw = entry.get(field.name.encode())
        if raw is None:
            row[field.name] = None
        elif _is_text(field.type):
            row[field.name] = raw.decode()
        else:
            row[field.name] = orjson.loads(raw)
    return json_bytes(row)
