"""The subjects of the project's schema registry: their versions, and what changed between two."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Query, Response

from tailrace.client.errors import RegistryError
from tailrace.client.schemas import RegisteredSchema, Schemas
from tailrace.console.errors import UnknownNameError

if TYPE_CHECKING:
    from tailrace.console.app import Served

Answer = type[Response]
TIMEOUT = 5.0
MOST_VERSIONS = 200
MOST_LINES = 20_000


def add_subjects(app: FastAPI, served: Served, answer: Answer) -> None:
    """All of them."""

    @app.get("/api/subjects")
    def subjects() -> Response:
        """The subjects of the project's schema registry; `registry` is null where there is none."""
        schemas = _schemas(served)
        if schemas is None:
            return answer({"registry": None, "subjects": []})
        return answer({"registry": schemas.url, "subjects": schemas.subjects()})

    @app.get("/api/subjects/{name:path}")
    def subject(
        name: str,
        before: Annotated[int | None, Query(ge=1)] = None,
        after: Annotated[int | None, Query(ge=1)] = None,
    ) -> Response:
        """A subject: its level, its versions newest first, and the lines that differ between the
        versions `before` and `after` (default: the last two)."""
        schemas = _schemas(served)
        if schemas is None:
            raise UnknownNameError("the project has no schema registry")
        try:
            return answer(describe(schemas, name, before, after))
        except RegistryError as error:
            if error.status == 404:
                raise UnknownNameError(f"no subject {name!r}", detail=error.detail) from error
            raise


def describe(schemas: Schemas, name: str, before: int | None, after: int | None) -> dict[str, Any]:
    """What `GET /api/subjects/NAME` answers."""
    numbers = schemas.versions(name)
    kept = [schemas.version(name, str(number)) for number in numbers[-MOST_VERSIONS:]]
    last = numbers[-1]
    earlier = before if before is not None else (numbers[-2] if len(numbers) > 1 else None)
    return {
        "name": name,
        "level": schemas.level(name),
        "versions": [_told(schemas, one) for one in reversed(kept)],
        "left_out": len(numbers) - len(kept),
        "before": earlier,
        "after": after or last,
        "lines": []
        if earlier is None
        else changes(
            schemas.version(name, str(earlier)), schemas.version(name, str(after or last))
        ),
    }


def _told(schemas: Schemas, one: RegisteredSchema) -> dict[str, Any]:
    return {
        "version": one.version,
        "id": one.id,
        "type": one.kind,
        "schema": readable(one),
        "references": [dict(each) for each in one.references],
        "referenced_by": schemas.users(one.subject, one.version),
    }


def readable(one: RegisteredSchema) -> str:
    """A schema's text with a line for each thing it says."""
    if one.kind == "PROTOBUF":
        return one.text
    try:
        return json.dumps(json.loads(one.text), indent=2, ensure_ascii=False)
    except ValueError:
        return one.text


def changes(before: RegisteredSchema, after: RegisteredSchema) -> list[str]:
    """The lines of both, each with "+", "−" or a blank before it; long runs alike left out."""
    one, other = (readable(each).splitlines()[:MOST_LINES] for each in (before, after))
    found = list(difflib.unified_diff(one, other, lineterm="", n=3))[2:]
    return ["−" + line[1:] if line.startswith("-") else line for line in found]


def _schemas(served: Served) -> Schemas | None:
    chosen = served.project.settings.registry
    if chosen.url is None:
        return None
    return Schemas(chosen.url, user=chosen.user, password=chosen.password, timeout=TIMEOUT)
