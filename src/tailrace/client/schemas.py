"""A schema registry asked over HTTP, with nothing but the standard library.

    schemas = Schemas("http://localhost:8081", user=…, password=…)
    schemas.subjects()
    schemas.register("orders-value", text)

For commands and checks; producers and consumers use `client.registry`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tailrace.client.errors import RegistryError
from tailrace.errors import UsageError
from tailrace.masking import remember

_ANSWER_LIMIT_BYTES = 64 << 20
_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    text: str
    kind: str
    references: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a registry, asked for when it is needed and not before."""

    name: str
    schemas: Schemas = field(compare=False)

    def latest(self) -> RegisteredSchema | None:
        """Its last version; None if there is none."""
        try:
            return self.schemas.version(self.name)
        except RegistryError as error:
            if error.status == 404:
                return None
            raise


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a schema may be the next version; `messages` say why not."""

    fits: bool
    messages: tuple[str, ...] = ()
    hint: str = ""


class Schemas:
    """See the module. Keeps no connection."""

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is no address of a schema registry", hint="http://HOST:PORT")
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._headers = {"Accept": _TYPE, "Content-Type": _TYPE}
        if user:
            coded = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {coded}"

        self._user, self._password = user, password

    @classmethod
    def at(cls, address: str) -> Schemas:
        """The registry at an address that may say USER:PASSWORD@ before its host."""
        parts = urlsplit(address)
        if parts.password:
            remember(unquote(parts.password))
        return cls(
            urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])),
            user=unquote(parts.username or "") or None,
            password=unquote(parts.password or "") or None,
        )

    @property
    def address(self) -> str:
        """What `at` takes; it may hold a password."""
        if not self._user:
            return self.url
        parts = urlsplit(self.url)
        login = f"{quote(self._user, safe='')}:{quote(self._password or '', safe='')}"
        return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))

    def __repr__(self) -> str:
        return f"Schemas({self.url!r})"

    def __getitem__(self, subject: str) -> Subject:
        """A subject to name in a declaration: `tr.topic("orders", schema=schemas["orders-value"])`."""
        return Subject(subject, self)

    def subjects(self) -> list[str]:
        found: list[str] = self._ask("GET", "/subjects")
        return found

    def versions(self, subject: str) -> list[int]:
        found: list[int] = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions")
        return found

    def version(self, subject: str, version: str = "latest") -> RegisteredSchema:
        path = f"/subjects/{quote(subject, safe='')}/versions/{quote(version, safe='')}"
        return _registered(self._ask("GET", path))

    def users(self, subject: str, version: int) -> list[int]:
        """The ids of the schemas that refer to a version."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}/referencedby"
        found: list[int] = self._ask("GET", path)
        return found

    def by_id(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", f"/schemas/ids/{number}")
        return found

    def followed(self, references: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """The texts of those that are referred to, directly or not, each after those it refers to
        itself, by the names they are used under."""
        found: dict[str, str] = {}
        for one in references:
            if one["name"] not in found:
                there = self.version(str(one["subject"]), str(one["version"]))
                found |= self.followed(there.references)
                found[str(one["name"])] = there.text
        return found

    def level(self, subject: str) -> str:
        path = f"/config/{quote(subject, safe='')}?defaultToGlobal=true"
        return str(self._ask("GET", path)["compatibilityLevel"])

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: Sequence[dict[str, Any]] = ()
    ) -> int:
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return int(self._ask("POST", path, _body(text, kind, references))["id"])

    def check(
        self, subject: str, text: str, kind: str = "AVRO", references: Sequence[dict[str, Any]] = ()
    ) -> Fit:
        """What `register` would say, without registering."""
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions?verbose=true"
        found = self._ask("POST", path, _body(text, kind, references))
        messages = tuple(str(one) for one in found.get("messages", ()))
        return Fit(bool(found["is_compatible"]), messages, str(found.get("hint", "")))

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        # Here, not above: declarations name registries, and need not load a client of HTTP.
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, self._headers, method=method)
        try:
            with urlopen(request, timeout=self._timeout) as answer:
                return json.loads(answer.read(_ANSWER_LIMIT_BYTES))
        except HTTPError as error:
            with error:
                raise self._refused(error.code, error.read(1 << 20)) from None
        except (URLError, OSError, ValueError) as error:
            raise RegistryError(
                "the schema registry did not answer",
                detail=f"{self.url}: {error}",
                hint="`tailrace registry start` runs one; --registry URL names another",
            ) from error

    def _refused(self, status: int, body: bytes) -> RegistryError:
        try:
            found = json.loads(body)
            message, hint = str(found["message"]), str(found.get("hint", ""))
            code = f" (error {found['error_code']})"
        except (ValueError, KeyError, TypeError):
            message, hint, code = f"it answered {status}", "", ""
        if status == 401 and not hint:
            hint = "give the user and the password"
        refused = RegistryError("the schema registry refuses", detail=f"{message}{code}", hint=hint)
        refused.status = status
        return refused


def _body(text: str, kind: str, references: Sequence[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {"schema": text, "schemaType": kind}
    return made | {"references": list(references)} if references else made


def _registered(found: dict[str, Any]) -> RegisteredSchema:
    return RegisteredSchema(
        str(found["subject"]),
        int(found["version"]),
        int(found["id"]),
        str(found["schema"]),
        str(found.get("schemaType") or "AVRO"),
        tuple(found.get("references") or ()),
    )
