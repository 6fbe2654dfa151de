"""Documents in Elasticsearch or OpenSearch, over HTTP, with external versions.

    <index>                an alias; what people search
    <index>-1, <index>-2 … the indexes it points at, a new one for every copy built anew
    tailrace-positions     one document a sink: epoch, position, index in use

A document's `_id` is its key; index and delete carry `version_type=external` with the
row's offset in the log, so applying a batch again, or by a writer that was replaced,
changes nothing. Versions are multiples of 256: a repair raises them by one, and the next
change from the log is still newer. The position is written after the rows, on condition
that nobody else has written it since.
"""

from __future__ import annotations

import hashlib
import http.client
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal
from urllib.parse import quote, unquote, urlsplit

import orjson
import pyarrow as pa

from tailrace.config import resolve
from tailrace.records.json_bytes import json_bytes
from tailrace.records.rows import python_rows, read_rows
from tailrace.sinks.base import (
    DELETED,
    OFFSET_BITS,
    VERSION,
    Batch,
    Shape,
    Sink,
    SinkPosition,
    decode_position,
)
from tailrace.sinks.declare import Elasticsearch
from tailrace.sinks.errors import (
    RowsRefusedError,
    ShapeError,
    SinkDeclarationError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import NEXT, family

POSITIONS = "tailrace-positions"
BULK_BYTES = 8 << 20
TYPES = {
    "bool": "boolean", "int8": "long", "int16": "long", "int32": "long", "int64": "long",
    "float": "double", "double": "double", "decimal": "double", "date": "date",
    "timestamp": "date", "timestamptz": "date", "binary": "binary",
}  # fmt: skip


class ElasticsearchSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Elasticsearch)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._alias = copy.declaration.index
        self._beside = copy.name.endswith(NEXT)
        self._http = _Http(copy.declaration)
        self._state: dict[str, Any] = {}
        self._guard: tuple[int, int] | None = None

    def open(self, shape: Shape) -> None:
        self._load()
        if self._state.get("alias", self._alias) != self._alias:
            # Another index than the one it was about: nothing is known of this one.
            self._state = {"epoch": self._state.get("epoch", 0)}
        self._state["alias"] = self._alias
        if self._state.get("concrete") and not self._is_mapped(shape):
            self._state.pop("concrete")  # it is gone, and so is what was said of it
            self._state.pop("position", None)
        if not self._state.get("concrete"):
            self._state["concrete"] = self._new_index(shape)
            if not self._beside:
                self._point(None, self._state["concrete"])
        self._state["epoch"] = int(self._state.get("epoch", 0)) + 1
        self._store()

    def _is_mapped(self, shape: Shape) -> bool:
        """Give the index the columns it lacks; False if there is no such index."""
        mapping = {"properties": self._properties(shape)}
        path = f"/{self._state['concrete']}/_mapping"
        return self._http.ask("PUT", path, mapping, missing=True) is not None

    def position(self) -> SinkPosition | None:
        found = self._http.ask("GET", f"/{POSITIONS}/_doc/{_path(self._copy.name)}", missing=True)
        source = (found or {}).get("_source") or {}
        if source.get("alias", self._alias) != self._alias:
            return None
        return decode_position(source.get("position"))

    def apply(self, batch: Batch) -> None:
        self._check_epoch()
        lines = self._lines(batch)
        start, size = 0, 0
        for index, (head, body) in enumerate(lines):
            size += len(head) + len(body)
            if size >= BULK_BYTES:
                self._bulk(lines[start : index + 1])
                start, size = index + 1, 0
        if start < len(lines):
            self._bulk(lines[start:])
        self._state["position"] = batch.position.encode()
        self._store()

    def close(self) -> None:
        self._http.close()

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        self._load()
        concrete = self._state.get("concrete")
        if not concrete:
            return
        self._http.ask("POST", f"/{concrete}/_refresh")
        question = {"size": 5000, "sort": ["_doc"], "query": {"match_all": {}}}
        answer = self._http.ask("POST", f"/{concrete}/_search?scroll=2m", question)
        while hits := answer["hits"]["hits"]:
            yield read_rows([json_bytes(hit["_source"]) for hit in hits], shape.columns)[0]
            more = {"scroll": "2m", "scroll_id": answer["_scroll_id"]}
            answer = self._http.ask("POST", "/_search/scroll", more)
        self._http.ask("DELETE", "/_search/scroll", {"scroll_id": answer["_scroll_id"]})

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        return ElasticsearchSink(
            replace(self._copy, name=self._copy.name + NEXT), self._surroundings
        )

    def discard(self) -> None:
        other = self._beside_sink()
        other._load()
        concrete = other._state.get("concrete")
        self._load()
        if concrete and concrete != self._state.get("concrete"):
            self._http.ask("DELETE", f"/{concrete}", missing=True)
        self._http.ask("DELETE", f"/{POSITIONS}/_doc/{_path(other._copy.name)}", missing=True)

    def switch(self) -> None:
        other = self._beside_sink()
        other._load()
        self._load()
        old, new = self._state.get("concrete"), other._state["concrete"]
        if former := (self._state.get("previous") or {}).get("concrete"):
            self._http.ask("DELETE", f"/{former}", missing=True)
        self._point(old, new)
        self._state["previous"] = {"concrete": old, "position": self._state.get("position")}
        self._state["concrete"], self._state["position"] = new, other._state.get("position")
        self._state["epoch"] = int(self._state.get("epoch", 0)) + 1
        self._store()
        self._http.ask("DELETE", f"/{POSITIONS}/_doc/{_path(other._copy.name)}", missing=True)

    def previous(self) -> SinkPosition | None:
        self._load()
        return decode_position((self._state.get("previous") or {}).get("position"))

    def rollback(self) -> None:
        self.discard()
        other = self._beside_sink()
        other._load()
        self._load()
        before = self._state.pop("previous")
        # Written first: cut short after it, the copy beside is the one still in use, and a
        # rebuild that discards it leaves the index alone.
        other._state = {
            "concrete": self._state["concrete"],
            "position": self._state.get("position"),
            "epoch": 1,
        }
        other._store()
        self._point(self._state["concrete"], before["concrete"])
        self._state.update(before, epoch=int(self._state["epoch"]) + 1)
        self._store()

    def _beside_sink(self) -> ElasticsearchSink:
        made = self.beside()
        assert isinstance(made, ElasticsearchSink)
        made._http = self._http
        return made

    def _point(self, old: str | None, new: str) -> None:
        actions: list[dict[str, Any]] = [{"add": {"index": new, "alias": self._alias}}]
        if old is not None and old != new:
            actions.append({"remove": {"index": old, "alias": self._alias, "must_exist": False}})
        self._http.ask("POST", "/_aliases", {"actions": actions})

    # ------------------------------------------------------------------ rows

    def _lines(self, batch: Batch) -> list[tuple[bytes, bytes]]:
        """Action and document of every change, for the bulk API."""
        names, key, keyed = batch.shape.names, batch.shape.key, batch.shape.keyed
        lines = []
        for row in python_rows(batch.changes):
            version = (row[VERSION] & ((1 << OFFSET_BITS) - 1)) * 256 + 1
            target: dict[str, Any] = {"_index": self._state["concrete"]}
            if keyed:
                target["_id"] = _identity([row[name] for name in key])
            if keyed and not batch.forced:
                target |= {"version": version, "version_type": "external"}
            if row[DELETED]:
                lines.append((orjson.dumps({"delete": target}) + b"\n", b""))
            else:
                document = json_bytes({name: row[name] for name in names})
                lines.append((orjson.dumps({"index": target}) + b"\n", document + b"\n"))
        return lines

    def _bulk(self, lines: Sequence[tuple[bytes, bytes]]) -> None:
        body = b"".join(head + document for head, document in lines)
        answer = self._http.ask("POST", "/_bulk", body)
        if not answer.get("errors"):
            return
        for item in answer["items"]:
            result = next(iter(item.values()))
            status = result["status"]
            if status < 300 or status in (404, 409):
                continue  # 409: a newer version is there; 404: deleted already
            told = orjson.dumps(result.get("error")).decode()
            if status == 429 or status >= 500:
                raise TargetUnavailableError(
                    "Elasticsearch asks to come later", detail=told, hint="the sink tries again"
                )
            raise RowsRefusedError("Elasticsearch refuses a document", detail=told)

    def _new_index(self, shape: Shape) -> str:
        settings = {"index.gc_deletes": "24h"}
        mappings = {"properties": {**self._properties(shape), **(self._declaration.mappings or {})}}
        template = {
            "index_patterns": [f"{self._alias}-*"],
            "template": {"settings": settings, "mappings": mappings},
        }
        self._http.ask("PUT", f"/_index_template/tailrace-{self._alias}", template)
        number = 1
        while True:
            name = f"{self._alias}-{number}"
            try:
                self._http.ask("PUT", f"/{name}", {"settings": settings, "mappings": mappings})
                return name
            except ShapeError as taken:
                if "resource_already_exists" not in taken.detail:
                    raise
                number += 1

    def _properties(self, shape: Shape) -> dict[str, Any]:
        declared = self._declaration.mappings or {}
        properties: dict[str, Any] = {}
        for field in shape.schema:
            kind = TYPES.get(family(field.type))
            if field.name in declared:
                properties[field.name] = declared[field.name]
            elif kind is not None:
                properties[field.name] = {"type": kind}
            elif pa.types.is_string(field.type):
                keyword = {"type": "keyword", "ignore_above": 256}
                properties[field.name] = {"type": "text", "fields": {"keyword": keyword}}
        return properties

    # ------------------------------------------------------------------ our own document

    def _load(self) -> None:
        found = self._http.ask("GET", f"/{POSITIONS}/_doc/{_path(self._copy.name)}", missing=True)
        if found and found.get("found"):
            self._state = dict(found["_source"])
            self._guard = (found["_seq_no"], found["_primary_term"])
        else:
            self._state, self._guard = {}, None

    def _store(self) -> None:
        condition = (
            "op_type=create"
            if self._guard is None
            else f"if_seq_no={self._guard[0]}&if_primary_term={self._guard[1]}"
        )
        path = f"/{POSITIONS}/_doc/{_path(self._copy.name)}?{condition}"
        answer = self._http.ask("PUT", path, self._state, conflict=self._fenced)
        self._guard = (answer["_seq_no"], answer["_primary_term"])

    def _check_epoch(self) -> None:
        found = self._http.ask("GET", f"/{POSITIONS}/_doc/{_path(self._copy.name)}", missing=True)
        if not found or found.get("_source", {}).get("epoch") != self._state.get("epoch"):
            raise self._fenced()

    def _fenced(self) -> SinkFencedError:
        return SinkFencedError(
            f"another writer took sink {self._copy.name!r} over",
            detail=f"Ours is epoch {self._state.get('epoch')}.",
            hint="run a project only once",
        )


class _Http:
    """One kept connection and the meaning of its answers."""

    def __init__(self, declaration: Elasticsearch) -> None:
        self._declaration = declaration
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        missing: bool = False,
        conflict: Any = None,
    ) -> Any:
        """The answer's JSON; `missing`: None on 404; `conflict` makes the error for a 409."""
        status, text = self._send(method, path, body)
        if status < 300:
            return orjson.loads(text) if text else {}
        told = text.decode(errors="replace")[:1000]
        if status == 404 and missing:
            return None
        if status == 409 and conflict is not None:
            raise conflict()
        if status == 413:
            raise RowsRefusedError(
                "Elasticsearch takes no request of that size",
                detail=told or f"{len(body) if isinstance(body, bytes) else 0} bytes",
                hint="raise http.max_content_length, then `tailrace sink dead-letters --retry`",
            )
        if status in (401, 403):
            raise TargetRefusedError(
                "Elasticsearch lets nobody in", detail=told, hint="check user, password and rights"
            )
        if status in (408, 429) or status >= 500:
            raise TargetUnavailableError(
                "Elasticsearch asks to come later", detail=told, hint="the sink tries again"
            )
        raise ShapeError(f"Elasticsearch refuses {method} {path.split('?')[0]}", detail=told)

    def _send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        url = urlsplit(resolve(self._declaration.url))
        if url.scheme not in ("http", "https") or not url.hostname:
            raise SinkDeclarationError(
                "an elasticsearch sink needs an address", hint="url='https://search:9200'"
            )
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        bulk = isinstance(body, bytes)
        headers = {"Content-Type": "application/x-ndjson" if bulk else "application/json"}
        headers |= {name: resolve(value) for name, value in self._declaration.headers.items()}
        if url.username:
            pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
            headers["Authorization"] = "Basic " + b64encode(pair.encode()).decode()
        for attempt in (1, 2):
            kept = self._connection is not None
            try:
                if self._connection is None:
                    kind = (
                        http.client.HTTPSConnection
                        if url.scheme == "https"
                        else http.client.HTTPConnection
                    )
                    self._connection = kind(url.netloc.rpartition("@")[2], timeout=60)
                self._connection.request(method, url.path.rstrip("/") + path, data, headers)
                response = self._connection.getresponse()
                return response.status, response.read()
            except (OSError, http.client.HTTPException) as reason:
                self.close()
                if kept and attempt == 1:
                    continue  # a kept connection may have been closed while idle
                raise TargetUnavailableError(
                    f"Elasticsearch at {url.hostname} cannot be reached",
                    detail=str(reason),
                    hint="the sink tries again until it answers",
                ) from reason
        raise AssertionError("unreachable")


def _path(name: str) -> str:
    return quote(name, safe="")


def _identity(parts: list[Any]) -> str:
    """`_id` of a key: its only part as text, else the JSON of all; long ones by digest."""
    if len(parts) == 1 and isinstance(parts[0], str | int) and not isinstance(parts[0], bool):
        text = str(parts[0])
        if isinstance(parts[0], str) and (text.startswith("[") or not text):
            text = orjson.dumps(parts).decode()
    else:
        text = orjson.dumps(parts).decode()
    if len(text.encode()) <= 512:
        return text
    return hashlib.sha256(text.encode()).hexdigest()
