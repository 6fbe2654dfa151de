"""Kubernetes without one: its schemas, and an API server that records what it is asked."""

from __future__ import annotations

import fcntl
import importlib
import json
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from servers.processes import cache_directory

PACKAGE = "kubernetes-validate==1.37.0"


class SchemasUnavailable(Exception):
    """Why manifests cannot be compared with Kubernetes' schemas here."""


def schemas() -> ModuleType:
    """`kubernetes_validate`: installed, or fetched into the cache on first use (70 MB)."""
    try:
        return importlib.import_module("kubernetes_validate")
    except ImportError:
        pass
    place = cache_directory() / PACKAGE
    with (cache_directory() / "kubernetes-validate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / ".complete").exists():
            uv = shutil.which("uv")
            installer = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install", "--no-input"]  # fmt: skip
            run = subprocess.run([*installer, "--quiet", "--target", str(place), PACKAGE], capture_output=True, text=True)  # fmt: skip
            if run.returncode:
                raise SchemasUnavailable(run.stderr[-500:])
            (place / ".complete").touch()
    sys.path.append(str(place))  # behind what is installed
    return importlib.import_module("kubernetes_validate")


@dataclass(frozen=True)
class Asked:
    """One request: `resource` is `pods`, as rules of a role name it."""

    verb: str
    resource: str
    name: str
    body: Any


@dataclass
class RecordingServer:
    """Takes what it is given, and answers as the API server would; no pod ever runs."""

    asked: list[Asked] = field(default_factory=list)
    kept: dict[tuple[str, str], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        recording = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def answer(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(size)
                status, document = recording.take(self.command, self.path, raw)
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = answer  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, method: str, path: str, raw: bytes) -> tuple[int, Any]:
        """The answer: a status and a document."""
        split = urlsplit(path)
        steps = split.path.strip("/").split("/")  # api/v1/namespaces/NAMESPACE/RESOURCE[/NAME]
        if steps[:1] == ["version"] or len(steps) < 5:
            return 200, {"major": "1", "minor": "33"}
        resource, name = steps[4], steps[5] if len(steps) > 5 else ""
        watch = "watch" in parse_qs(split.query)
        verb = {"POST": "create", "PATCH": "patch", "PUT": "update"}.get(method, "")
        if method == "GET":
            verb = "watch" if watch else "get" if name else "list"
        if method == "DELETE":
            verb = "delete" if name else "deletecollection"
        body = json.loads(raw) if raw.strip() else None
        self.asked.append(Asked(verb, resource, name, body))
        if verb == "create":
            made = body["metadata"].get("name") or body["metadata"]["generateName"] + str(len(self.kept))  # fmt: skip
            body["metadata"] |= {"name": made, "namespace": steps[3], "uid": f"uid-{made}", "resourceVersion": "1"}  # fmt: skip
            self.kept[resource, made] = body
            return 201, body
        if verb == "list":
            items = [each for (kind, _), each in self.kept.items() if kind == resource]
            return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}  # fmt: skip
        if verb in ("get", "patch") and (resource, name) in self.kept:
            return 200, self.kept[resource, name]
        if verb in ("delete", "deletecollection"):
            return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
