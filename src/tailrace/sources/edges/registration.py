"""The hook that a provider calls: made there when an edge starts, removed by `tailrace source drop`.

`register=` of a webhook names the provider's list of hooks (`api`), where it can call this edge (`url`),
a `token` and the `events`. What is asked follows its scheme:

    github     POST api {"name": "web", "events", "config": {"url", "content_type", "secret"}}, PATCH
    stripe     POST api url=…&enabled_events[]=…; the provider makes the secret and tells it once
    standard   POST api {"url", "events", "secret"}

All answer with an `id`, list their hooks at `GET api`, and remove one at `DELETE api/ID`. Which hook is
ours is kept in `<state>/hooks/<name>.json`, and found again by its address where that is lost. One whose
address, events or secret changed is removed after its successor is made; at GitHub it is changed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import orjson

from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.files import FILES
from tailrace.modes import make_private
from tailrace.sources.edges.declare import Webhook
from tailrace.sources.errors import HookError

log = logging.getLogger(__name__)

ANSWER_LIMIT_BYTES = 8 << 20
CALL_SECONDS = 20.0
RETRY_SECONDS = (1.0, 5.0, 20.0, 60.0)


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook as it is at its provider. `mark` tells whether it was made from another declaration."""

    id: str
    mark: str = ""
    secret: str = ""  # if the provider made it


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes where it was said to go."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Provider:
    """The other end, for one edge."""

    def __init__(self, edge: Webhook, directory: Path) -> None:
        given = {name: resolve(value) for name, value in (edge.register or {}).items()}
        self._edge = edge
        self._api = given["api"].rstrip("/")
        self._url = given["url"]
        self._token = given.get("token")
        words = given.get("events") or ("push" if edge.scheme == "github" else "*")
        self._events = [one.strip() for one in words.split(",") if one.strip()]
        secrets = [resolve(one) for one in edge.secrets]
        self._secret = secrets[0] if secrets else ""
        self._path = directory / "hooks" / f"{edge.name}.json"
        self._opener = urllib.request.build_opener(_NoRedirect())

    def known(self) -> Hook | None:
        try:
            found = orjson.loads(self._path.read_bytes())
            if found["api"] == self._api:
                return Hook(str(found["id"]), str(found["mark"]), str(found["secret"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return None

    def make(self) -> Hook:
        """The hook as declared: the one that is there, or a new one."""
        known = self.known()
        there = self._there()
        mark = self._mark()
        if known is not None and known.id in there and known.mark == mark:
            return known
        old = known.id if known is not None and known.id in there else None
        ours = old or next((i for i, address in there.items() if address == self._url), None)
        # GitHub refuses a second hook to an address.
        changed = ours if self._edge.scheme == "github" else None
        made = self._create(mark, changed)
        make_private(self._path.parent)
        told = {"api": self._api, "id": made.id, "mark": mark, "secret": made.secret}
        FILES.write_whole(self._path, orjson.dumps(told))
        self._path.chmod(0o600)
        for identity, address in there.items():
            if identity != made.id and (address == self._url or identity == old):
                self._delete(identity)
        return made

    def remove(self) -> Iterator[str]:
        """Remove what leads here, naming each."""
        known = self.known()
        for identity, address in self._there().items():
            if address == self._url or (known is not None and identity == known.id):
                self._delete(identity)
                yield f"hook {identity} at {self._api}"
        self._path.unlink(missing_ok=True)

    def _mark(self) -> str:
        """Of what the hook was made; the secret cannot be read out of it."""
        text = "\n".join([self._edge.scheme, self._url, *self._events])
        return hmac.new(self._secret.encode(), text.encode(), hashlib.sha256).hexdigest()

    def _there(self) -> dict[str, str]:
        """The address that each hook of the provider calls."""
        most = {"github": "?per_page=100", "stripe": "?limit=100"}.get(self._edge.scheme, "")
        found = self._call("GET", self._api + most)
        rows = found.get("data") if isinstance(found, Mapping) else found
        if not isinstance(rows, list):
            raise self._wrong("its list of hooks is none")
        hooks: dict[str, str] = {}
        for row in rows:
            if isinstance(row, Mapping) and row.get("id") is not None:
                config = row.get("config")
                address = config.get("url") if isinstance(config, Mapping) else row.get("url")
                hooks[str(row["id"])] = str(address)
        return hooks

    def _create(self, mark: str, changed: str | None) -> Hook:
        if self._edge.scheme == "github":
            config = {"url": self._url, "content_type": "json", "secret": self._secret}
            body: Any = {"name": "web", "active": True, "events": self._events, "config": config}
        elif self._edge.scheme == "stripe":
            body = [("url", self._url), *(("enabled_events[]", one) for one in self._events)]
        else:
            body = {"url": self._url, "events": self._events, "secret": self._secret}
        if changed is None:
            found = self._call("POST", self._api, body)
        else:
            found = self._call("PATCH", self._at(changed), body)
        if not isinstance(found, Mapping) or found.get("id") is None:
            raise self._wrong("its answer names no hook")
        secret = str(found.get("secret") or "") if self._edge.scheme == "stripe" else ""
        return Hook(str(found["id"]), mark, secret)

    def _delete(self, identity: str) -> None:
        self._call("DELETE", self._at(identity), gone=True)

    def _at(self, identity: str) -> str:
        return f"{self._api}/{urllib.parse.quote(identity, safe='')}"

    def _call(self, method: str, url: str, body: Any = None, *, gone: bool = False) -> Any:
        headers = {"Accept": "application/json", "User-Agent": "tailrace"}
        data: bytes | None = None
        if isinstance(body, list):
            data = urllib.parse.urlencode(body).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif body is not None:
            data = orjson.dumps(body)
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        asked = urllib.request.Request(url, data, headers, method=method)
        try:
            with self._opener.open(asked, timeout=CALL_SECONDS) as answer:
                text = answer.read(ANSWER_LIMIT_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                if gone and error.code in (404, 410):
                    return None
                raise self._wrong(f"{method} was answered with {error.code}") from None
        except (OSError, HTTPException) as error:
            raise self._wrong(str(error) or type(error).__name__) from error
        if not text.strip():
            return None
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            raise self._wrong("its answer is no JSON") from None

    def _wrong(self, what: str) -> HookError:
        return HookError(
            f"the hook of {self._edge.name!r} cannot be made or removed at {self._api}",
            detail=what[:300],
            hint="look at api=, its token and the rights of that",
        )


class Registrar:
    """Makes the hook beside the edge, until it is made."""

    def __init__(self, provider: Provider, made: Callable[[Hook], None]) -> None:
        self._provider = provider
        self._made = made
        self._stopping = threading.Event()
        self.error: TailraceError | None = None
        self.hook: Hook | None = None
        self._thread = threading.Thread(target=self._work, name="webhook registrar", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(CALL_SECONDS)

    def report(self) -> dict[str, object]:
        """What the part says of it."""
        error, hook = self.error, self.hook
        return {
            "hook": None if hook is None else hook.id,
            "error": None if error is None else error.as_dict(),
        }

    def _work(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            try:
                hook = self._provider.make()
            except TailraceError as error:
                self.error = error
                log.warning("no hook", extra={"error": str(error), "detail": error.detail})
                self._stopping.wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
                attempt += 1
            else:
                self._made(hook)
                self.hook, self.error = hook, None
                return
