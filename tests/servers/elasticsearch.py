"""A stand-in for Elasticsearch: as much of its HTTP API as the sink uses, in memory.

Written from these cases of the reference (document, bulk, optimistic concurrency, index
aliases, scroll), and not tried against a real server:

* index and delete with `version_type=external`: taken only if the version is greater than
  the one held, 409 `version_conflict_engine_exception` otherwise; deletes leave their
  version behind (gc_deletes), so an older index after a delete is a conflict too
* writes without a version raise the held version by one
* delete of a document that is not there: 404, `result: not_found`, the version is kept
* `if_seq_no`/`if_primary_term`: 409 when they are not the document's; `op_type=create`: 409
  when it exists
* bulk: 200 with `errors: true` and a status per item
* documents are searched only after a refresh; GET by id sees them at once
* a value that does not fit the mapping (`long`, `double`, `boolean`, `date`): 400
  `document_parsing_exception`
* PUT of an index that exists: 400 `resource_already_exists_exception`; a mapping may get
  new properties, another type for an old one is 400
* `_aliases`: all actions or none; `remove` with `must_exist: false` of nothing is fine
* scroll: pages until an empty one
"""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson


class Refusal(Exception):
    def __init__(self, status: int, kind: str, reason: str = "") -> None:
        self.status = status
        self.document = {"error": {"type": kind, "reason": reason}, "status": status}


class Index:
    def __init__(self, properties: dict[str, Any]) -> None:
        self.properties = dict(properties)
        self.documents: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.searched: dict[str, dict[str, Any]] = {}
        self.counter = -1


class Elasticsearch:
    """The server; `busy` makes every answer 503."""

    def __init__(self) -> None:
        self.indexes: dict[str, Index] = {}
        self.aliases: dict[str, set[str]] = {}
        self.templates: dict[str, Any] = {}
        self.scrolls: dict[str, list[list[Any]]] = {}
        self.guard = threading.Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                url = urlsplit(self.path)
                with stand_in.guard:
                    try:
                        status, document = stand_in.answer(
                            self.command, url.path, dict(parse_qsl(url.query)), body
                        )
                    except Refusal as refusal:
                        status, document = refusal.status, refusal.document
                data = orjson.dumps(document)
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                """Silence."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that was killed is no news."""

        self._kind = lambda address: Server(address, Handler)
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = self._kind(("127.0.0.1", self.port))
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match method, parts:
            case "POST", ["_bulk"]:
                return self._bulk(body)
            case "POST", ["_aliases"]:
                return self._change_aliases(orjson.loads(body)["actions"])
            case "PUT", ["_index_template", name]:
                self.templates[name] = orjson.loads(body)
                return 200, {"acknowledged": True}
            case "POST", ["_search", "scroll"]:
                return self._page(orjson.loads(body)["scroll_id"])
            case "DELETE", ["_search", "scroll"]:
                self.scrolls.pop(orjson.loads(body)["scroll_id"], None)
                return 200, {"succeeded": True}
            case "POST", [name, "_refresh"]:
                index = self._index(name)
                index.searched = dict(index.documents)
                return 200, {}
            case "POST", [name, "_search"]:
                return self._search(name, orjson.loads(body))
            case "PUT", [name, "_mapping"]:
                return self._map(self._index(name), orjson.loads(body)["properties"])
            case "GET", [name, "_doc", identity]:
                return self._get(name, identity)
            case "PUT", [name, "_doc", identity]:
                return self._put(name, identity, orjson.loads(body), query)
            case "DELETE", [name, "_doc", identity]:
                return self._delete(self._index(name), identity, None)
            case "PUT", [name]:
                return self._create(name, orjson.loads(body))
            case "DELETE", [name]:
                self._index(name)
                del self.indexes[name]
                for held in self.aliases.values():
                    held.discard(name)
                return 200, {"acknowledged": True}
        raise Refusal(400, "illegal_argument_exception", f"{method} {path}")

    def _index(self, name: str) -> Index:
        if name in self.aliases and len(self.aliases[name]) == 1:
            name = next(iter(self.aliases[name]))
        if name not in self.indexes:
            raise Refusal(404, "index_not_found_exception", name)
        return self.indexes[name]

    def _create(self, name: str, document: dict[str, Any]) -> tuple[int, Any]:
        if name in self.indexes:
            raise Refusal(400, "resource_already_exists_exception", name)
        self.indexes[name] = Index(document.get("mappings", {}).get("properties", {}))
        return 200, {"acknowledged": True, "index": name}

    def _map(self, index: Index, properties: dict[str, Any]) -> tuple[int, Any]:
        for name, mapping in properties.items():
            if index.properties.get(name, mapping)["type"] != mapping["type"]:
                raise Refusal(400, "illegal_argument_exception", f"cannot change {name}")
        index.properties |= properties
        return 200, {"acknowledged": True}

    def _change_aliases(self, actions: list[dict[str, Any]]) -> tuple[int, Any]:
        changed = {alias: set(names) for alias, names in self.aliases.items()}
        for action in actions:
            ((kind, what),) = action.items()
            if what["alias"] in self.indexes:
                raise Refusal(400, "invalid_alias_name_exception", what["alias"])
            held = changed.setdefault(what["alias"], set())
            if kind == "add":
                if what["index"] not in self.indexes:
                    raise Refusal(404, "index_not_found_exception", what["index"])
                held.add(what["index"])
            elif what["index"] in held:
                held.discard(what["index"])
            elif what.get("must_exist", True):
                raise Refusal(404, "aliases_not_found_exception", what["alias"])
        self.aliases = changed
        return 200, {"acknowledged": True}

    def _get(self, name: str, identity: str) -> tuple[int, Any]:
        index = self._index(name)
        if identity not in index.documents:
            return 404, {"_id": identity, "found": False}
        return 200, {
            "_id": identity,
            "found": True,
            "_seq_no": index.numbers[identity],
            "_primary_term": 1,
            "_version": index.versions[identity],
            "_source": index.documents[identity],
        }

    def _put(
        self, name: str, identity: str, document: dict[str, Any], query: dict[str, str]
    ) -> tuple[int, Any]:
        index = self.indexes.setdefault(name, Index({}))
        if query.get("op_type") == "create" and identity in index.documents:
            raise Refusal(409, "version_conflict_engine_exception", identity)
        if "if_seq_no" in query and index.numbers.get(identity) != int(query["if_seq_no"]):
            raise Refusal(409, "version_conflict_engine_exception", identity)
        return self._write(index, identity, document, None)

    def _write(
        self, index: Index, identity: str, document: dict[str, Any], version: int | None
    ) -> tuple[int, Any]:
        self._check_version(index, identity, version)
        for name, value in document.items():
            _check_type(name, index.properties.get(name, {}).get("type"), value)
        held = index.versions.get(identity, 0)
        index.versions[identity] = held + 1 if version is None else version
        index.counter += 1
        index.numbers[identity] = index.counter
        created = identity not in index.documents
        index.documents[identity] = document
        return (201 if created else 200), {
            "_id": identity,
            "_seq_no": index.counter,
            "_primary_term": 1,
            "result": "created" if created else "updated",
        }

    def _delete(self, index: Index, identity: str, version: int | None) -> tuple[int, Any]:
        self._check_version(index, identity, version)
        held = index.versions.get(identity, 0)
        index.versions[identity] = held + 1 if version is None else version
        index.counter += 1
        found = index.documents.pop(identity, None) is not None
        index.numbers.pop(identity, None)
        return (200 if found else 404), {
            "_id": identity,
            "result": "deleted" if found else "not_found",
        }

    def _check_version(self, index: Index, identity: str, version: int | None) -> None:
        if version is not None and version <= index.versions.get(identity, -1):
            raise Refusal(409, "version_conflict_engine_exception", identity)

    def _bulk(self, body: bytes) -> tuple[int, Any]:
        lines = iter(body.split(b"\n"))
        items, errors = [], False
        for line in lines:
            if not line:
                continue
            ((kind, target),) = orjson.loads(line).items()
            document = orjson.loads(next(lines)) if kind == "index" else None
            index = self._index(target["_index"])
            identity = target.get("_id") or f"auto-{index.counter}"
            assert target.get("version_type") in (None, "external")
            try:
                if document is None:
                    status, result = self._delete(index, identity, target.get("version"))
                else:
                    status, result = self._write(index, identity, document, target.get("version"))
            except Refusal as refusal:
                status, result, errors = refusal.status, refusal.document, True
            items.append({kind: {**result, "status": status}})
        return 200, {"errors": errors, "items": items}

    def _search(self, name: str, question: dict[str, Any]) -> tuple[int, Any]:
        index = self._index(name)
        hits = [{"_id": i, "_source": document} for i, document in index.searched.items()]
        size = question["size"]
        pages = [hits[start : start + size] for start in range(0, len(hits), size)]
        scroll = f"scroll{len(self.scrolls)}"
        self.scrolls[scroll] = pages
        return self._page(scroll)

    def _page(self, scroll: str) -> tuple[int, Any]:
        pages = self.scrolls[scroll]
        return 200, {"_scroll_id": scroll, "hits": {"hits": pages.pop(0) if pages else []}}


def _check_type(name: str, kind: str | None, value: Any) -> None:
    if value is None or kind is None:
        return
    fits = {
        "long": lambda: isinstance(value, int) and not isinstance(value, bool),
        "double": lambda: re.fullmatch(r"-?[0-9.e+-]+", str(value), re.I) is not None,
        "boolean": lambda: isinstance(value, bool) or value in ("true", "false"),
        "date": lambda: re.match(r"\d{4}-\d\d-\d\d", str(value)) is not None,
        "ip": lambda: re.fullmatch(r"[0-9.:a-f]+", str(value)) is not None,
    }.get(kind, lambda: True)()
    if not fits:
        raise Refusal(400, "document_parsing_exception", f"failed to parse field [{name}]")
