"""Confluent's REST paths.

A path may begin with `contexts/CONTEXT`: subjects behind it are those of that context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson

from tailrace import __version__
from tailrace.plain_http import Answer, Request
from tailrace.registry.bodies import (
    config_fields,
    level_of,
    only,
    problem,
    read_object,
    read_schema,
    registered_fields,
    schema_fields,
    version_fields,
)
from tailrace.registry.errors import Refusal, invalid_mode, invalid_version
from tailrace.registry.service import Service
from tailrace.schemas.compatibility import Verdict
from tailrace.schemas.model import TYPES
from tailrace.schemas.names import context_of, is_valid, parse_subject, prefix_of
from tailrace.schemas.subjects import Version

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_TAKEN = frozenset(
    (CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json",
     "application/octet-stream")
)  # fmt: skip
_GIVEN = _TAKEN | {"*/*", "application/*"}
MOST_LISTED = 20_000
T = TypeVar("T")
_CONFIG_FIELDS = frozenset(
    ("compatibility", "compatibilityLevel", "normalize", "compatibilityPolicy")
)
_OTHER_CONFIG = frozenset(
    ("alias", "aliasForDeks", "validateFields", "validateNewSchemas", "validateRules",
     "compatibilityGroup", "defaultMetadata", "overrideMetadata", "defaultRuleSet",
     "overrideRuleSet")
)  # fmt: skip


def refuse(status: int, reason: str) -> Answer:
    """An answer before anybody looked at the path."""
    return _problem(Refusal(status, reason if status in (403, 500) else f"HTTP {status} {reason}"))


def _problem(refusal: Refusal) -> Answer:
    return Answer(refusal.status, problem(refusal), CONTENT_TYPE)


class Rest:
    """Requests to answers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def __call__(self, request: Request) -> Answer:
        try:
            made = self._route(request)
        except Refusal as refusal:
            return _problem(refusal)
        if made is None:
            return Answer(204)
        return Answer(200, orjson.dumps(made), CONTENT_TYPE)

    def _route(self, request: Request) -> Any:
        accepted = [one.partition(";")[0].strip().lower() for one in request.headers.get("accept", "*/*").split(",")]  # fmt: skip
        if not any(one in _GIVEN for one in accepted):
            raise Refusal(406, "HTTP 406 Not Acceptable")
        path, prefix = request.path, ""
        if len(path) > 2 and path[0] == "contexts":
            context = path[1]
            if not context.startswith(":."):
                context = f":{context if context.startswith('.') else '.' + context}:"
            prefix, path = prefix_of(context_of(context)), path[2:]
        ask = _Ask(request, prefix, self._service)
        methods: dict[str, Callable[[], Any]] = {}
        match path:
            case ():
                methods = {"GET": dict, "POST": dict}
            case ("subjects",):
                methods = {"GET": ask.subjects}
            case ("subjects", subject):
                methods = {"POST": lambda: ask.look_up(subject), "DELETE": lambda: ask.delete_subject(subject)}  # fmt: skip
            case ("subjects", subject, "metadata"):
                methods = {"GET": lambda: ask.latest_with(subject)}
            case ("subjects", subject, "versions"):
                methods = {"GET": lambda: ask.versions(subject), "POST": lambda: ask.register(subject)}  # fmt: skip
            case ("subjects", subject, "versions", version):
                methods = {"GET": lambda: ask.version(subject, version), "DELETE": lambda: ask.delete_version(subject, version)}  # fmt: skip
            case ("subjects", subject, "versions", version, "schema"):
                methods = {"GET": lambda: ask.version_text(subject, version)}
            case ("subjects", subject, "versions", version, "referencedby"):
                methods = {"GET": lambda: ask.users(subject, version)}
            case ("schemas",):
                methods = {"GET": ask.schemas}
            case ("schemas", "types"):
                methods = {"GET": lambda: list(TYPES)}
            case ("schemas", "ids", number):
                methods = {"GET": lambda: ask.by_id(number)}
            case ("schemas", "ids", number, "schema"):
                methods = {"GET": lambda: ask.id_text(number)}
            case ("schemas", "ids", number, "subjects"):
                methods = {"GET": lambda: ask.id_subjects(number)}
            case ("schemas", "ids", number, "versions"):
                methods = {"GET": lambda: ask.id_versions(number)}
            case ("schemas", "guids", name):
                methods = {"GET": lambda: ask.by_guid(name)}
            case ("schemas", "guids", name, "ids"):
                methods = {"GET": lambda: ask.guid_ids(name)}
            case ("compatibility", "subjects", subject, "versions"):
                methods = {"POST": lambda: ask.check(subject, None)}
            case ("compatibility", "subjects", subject, "versions", version):
                methods = {"POST": lambda: ask.check(subject, version)}
            case ("config",) | ("config", _):
                about = ask.setting(path[1:])
                methods = {"GET": lambda: ask.config(about), "PUT": lambda: ask.set_config(about), "DELETE": lambda: ask.delete_config(about)}  # fmt: skip
            case ("mode",) | ("mode", _):
                about = ask.setting(path[1:])
                methods = {"GET": lambda: ask.mode(about), "PUT": lambda: ask.set_mode(about), "DELETE": lambda: ask.delete_mode(about)}  # fmt: skip
            case ("contexts",):
                methods = {"GET": ask.contexts}
            case ("contexts", context):
                methods = {"DELETE": lambda: ask.delete_context(context)}
            case ("v1", "metadata", "id"):
                methods = {"GET": self._id}
            case ("v1", "metadata", "version"):
                methods = {"GET": lambda: {"version": __version__, "commitId": "tailrace"}}
            case _:
                raise Refusal(404, "HTTP 404 Not Found")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in methods:
            raise Refusal(405, "HTTP 405 Method Not Allowed")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if method in ("POST", "PUT") and kind and kind not in _TAKEN:
            raise Refusal(415, "HTTP 415 Unsupported Media Type")
        return methods[method]()

    def _id(self) -> dict[str, Any]:
        clusters = {
            "kafka-cluster": "",
            "schema-registry-cluster": "schema-registry",
        }
        return {"scope": {"path": [], "clusters": clusters}, "id": ""}


class _Ask:
    """One request behind its path."""

    def __init__(self, request: Request, prefix: str, service: Service) -> None:
        self._request = request
        self._prefix = prefix
        self._service = service
        # Newer fields only where they were asked for: older clients compare whole answers.
        self._more = request.headers.get("confluent-accept-unknown-properties") == "true"

    # What the request says -----------------------------------------------------------

    def _subject(self, name: str) -> str:
        """A subject of the path, in the context that the path names."""
        if self._prefix and not name.startswith(":."):
            return self._prefix + name
        return name

    def setting(self, rest: tuple[str, ...]) -> str | None:
        if not rest:
            return self._prefix or None
        return self._subject(rest[0])

    def _flag(self, name: str) -> bool:
        return self._request.parameter(name).lower() == "true"

    def _number(self, name: str, default: int) -> int:
        text = self._request.parameter(name) or str(default)
        if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 11:
            raise Refusal(404, "HTTP 404 Not Found")
        return int(text)

    def _page(self, found: Sequence[T]) -> list[T]:
        offset, limit = max(self._number("offset", 0), 0), self._number("limit", -1)
        if not 0 < limit <= MOST_LISTED:
            limit = MOST_LISTED
        return list(found[offset : offset + limit])

    def _id_subject(self) -> str | None:
        given = self._request.query.get("subject")
        if given:
            return self._subject(given[-1])
        return self._prefix or None

    @staticmethod
    def _id(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or len(text) > 10 or int(text) >= 2**31:
            raise Refusal(404, "HTTP 404 Not Found")
        return int(text)

    # Subjects and versions -----------------------------------------------------------

    def subjects(self) -> list[str]:
        prefix = self._request.query.get("subjectPrefix")
        chosen = self._subject(prefix[-1]) if prefix else self._prefix or ":*:"
        return self._page(
            self._service.subjects(
                chosen, deleted=self._flag("deleted"), only_deleted=self._flag("deletedOnly")
            )
        )

    def versions(self, subject: str) -> list[int]:
        negative = self._flag("deletedAsNegative")
        found = self._service.versions(
            self._subject(subject),
            deleted=self._flag("deleted") or negative,
            only_deleted=self._flag("deletedOnly") and not negative,
        )
        return self._page([-v.version if negative and v.deleted else v.version for v in found])

    def _find(self, subject: str, version: str, *, deleted: bool) -> Version:
        return self._service.version(
            self._subject(subject), _version_number(version), deleted=deleted
        )

    def _text(self, one: Version) -> str | None:
        return self._service.text_as(one, self._request.parameter("format"))

    def version(self, subject: str, version: str) -> dict[str, Any]:
        one = self._find(subject, version, deleted=self._flag("deleted"))
        return self._qualified(one, version_fields(one, self._text(one), more=self._more))

    def _qualified(self, one: Version, fields: dict[str, Any]) -> dict[str, Any]:
        """References with the context of what refers to them, if that was asked for."""
        if self._request.parameter("referenceFormat") == "qualified":
            prefix = prefix_of(context_of(one.subject))
            for each in fields.get("references", ()):
                if not each["subject"].startswith(":."):
                    each["subject"] = prefix + each["subject"]
        return fields

    def version_text(self, subject: str, version: str) -> Any:
        one = self._find(subject, version, deleted=self._flag("deleted"))
        text = self._text(one)
        return _Raw(one.schema.text if text is None else text).value()

    def users(self, subject: str, version: str) -> list[int]:
        return self._page(
            self._service.users(
                self._subject(subject), _version_number(version), deleted=self._flag("deleted")
            )
        )

    def register(self, subject: str) -> dict[str, Any]:
        given = read_schema(self._request.body)
        one = self._service.register(
            self._subject(subject), given, normalize=self._flag("normalize")
        )
        return registered_fields(one, more=self._more)

    def look_up(self, subject: str) -> dict[str, Any]:
        given = read_schema(self._request.body)
        one = self._service.look_up(
            self._subject(subject),
            given,
            normalize=self._flag("normalize"),
            deleted=self._flag("deleted"),
        )
        return version_fields(one, self._text(one), more=self._more)

    def latest_with(self, subject: str) -> dict[str, Any]:
        query = self._request.query
        wanted = dict(zip(query.get("key", ()), query.get("value", ()), strict=False))
        one = self._service.latest_with(
            self._subject(subject), wanted, deleted=self._flag("deleted")
        )
        return version_fields(one, self._text(one), more=self._more)

    def delete_version(self, subject: str, version: str) -> int:
        return self._service.delete_version(
            self._subject(subject), _version_number(version), permanent=self._flag("permanent")
        )

    def delete_subject(self, subject: str) -> list[int]:
        return self._service.delete_subject(
            self._subject(subject), permanent=self._flag("permanent")
        )

    # Schemas -------------------------------------------------------------------------

    def schemas(self) -> list[dict[str, Any]]:
        prefix = self._request.parameter("subjectPrefix")
        found = self._service.every_version(
            self._subject(prefix),
            deleted=self._flag("deleted"),
            latest_only=self._flag("latestOnly"),
        )
        return [version_fields(one, more=self._more) for one in self._page(found)]

    def by_id(self, number: str) -> dict[str, Any]:
        subject = self._id_subject()
        one = self._service.by_id(self._id(number), subject)
        made = schema_fields(one.schema, self._text(one))
        if self._flag("fetchMaxId"):
            made["maxId"] = self._service.highest_id(one)
        if self._more:
            made |= {
                key: value for key, value in version_fields(one, more=True).items() if key == "guid"
            }
            if subject is not None:
                made |= {"subject": one.subject, "version": one.version}
        return self._qualified(one, made)

    def id_text(self, number: str) -> Any:
        one = self._service.by_id(self._id(number), self._id_subject())
        text = self._text(one)
        return _Raw(one.schema.text if text is None else text).value()

    def id_subjects(self, number: str) -> list[str]:
        found = self._places(number)
        return self._page(list(dict.fromkeys(one.subject for one in found)))

    def id_versions(self, number: str) -> list[dict[str, Any]]:
        found = self._places(number)
        return self._page([{"subject": one.subject, "version": one.version} for one in found])

    def _places(self, number: str) -> list[Version]:
        return self._service.places(
            self._id(number), self._id_subject(), deleted=self._flag("deleted")
        )

    def by_guid(self, name: str) -> dict[str, Any]:
        one = self._service.by_guid(name)[0]
        return schema_fields(one.schema, self._text(one))

    def guid_ids(self, name: str) -> list[dict[str, Any]]:
        found = self._service.by_guid(name)
        return [{"context": context_of(one.subject), "id": one.id} for one in found]

    # Compatibility -------------------------------------------------------------------

    def check(self, subject: str, version: str | None) -> dict[str, Any]:
        number = None if version is None else _version_number(version)
        given = read_schema(self._request.body)
        verbose = self._flag("verbose")
        hint = ""
        try:
            verdict = self._service.check(
                self._subject(subject), number, given, normalize=self._flag("normalize")
            )
            hint = verdict.hint
        except Refusal as refusal:
            if not verbose or refusal.code != 42201:
                raise
            verdict, hint = Verdict((refusal.message,)), refusal.hint
        made: dict[str, Any] = {"is_compatible": verdict.fits}
        if verbose:
            made["messages"] = list(verdict.messages)
            if hint:
                made["hint"] = hint
        return made

    # Settings ------------------------------------------------------------------------

    def config(self, subject: str | None) -> dict[str, Any]:
        return config_fields(self._service.config(subject, in_scope=self._flag("defaultToGlobal")))

    def set_config(self, subject: str | None) -> dict[str, Any]:
        found = read_object(self._request.body)
        for name in _OTHER_CONFIG & found.keys():
            if found[name] is not None:
                raise Refusal(422, f"this registry has no setting {name}")
        only(found, _CONFIG_FIELDS | _OTHER_CONFIG)
        level, normalize = level_of(found), found.get("normalize")
        if normalize is not None and not isinstance(normalize, bool):
            raise Refusal(400, '"normalize" has the wrong type')
        policy = found.get("compatibilityPolicy")
        if policy is not None:
            policy = str(policy).upper()
        wanted = {
            "compatibilityLevel": level,
            "normalize": normalize,
            "compatibilityPolicy": policy,
        }
        changes = {name: value for name, value in wanted.items() if value is not None}
        self._service.set_config(subject, changes)
        if "compatibilityLevel" in changes:
            changes = {"compatibility": changes.pop("compatibilityLevel"), **changes}
        return changes

    def delete_config(self, subject: str | None) -> dict[str, Any]:
        return config_fields(self._service.delete_config(subject))

    def mode(self, subject: str | None) -> dict[str, str]:
        return {"mode": self._service.mode(subject, in_scope=self._flag("defaultToGlobal"))}

    def set_mode(self, subject: str | None) -> dict[str, str]:
        found = read_object(self._request.body)
        only(found, frozenset(("mode",)))
        mode = found.get("mode")
        if not isinstance(mode, str):
            raise invalid_mode()
        self._service.set_mode(subject, mode.upper(), force=self._flag("force"))
        return {"mode": mode}

    def delete_mode(self, subject: str | None) -> dict[str, str | None]:
        return {"mode": self._service.delete_mode(subject, recursive=self._flag("recursive"))}

    def contexts(self) -> list[str]:
        prefix = self._request.parameter("contextPrefix")
        return self._page([one for one in self._service.contexts() if one.startswith(prefix)])

    def delete_context(self, context: str) -> None:
        named = context if context.startswith(":.") else f":{context}:"
        if parse_subject(named).name or not is_valid(named, setting=True):
            raise Refusal(42208, f"The specified subject '{context}' is not a valid subject.")
        self._service.delete_context(named)


class _Raw:
    """The text of a schema as the whole answer: JSON as it is, other languages as a string."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self) -> Any:
        try:
            return orjson.Fragment(self._text) if orjson.loads(self._text) is not None else None
        except orjson.JSONDecodeError:
            return self._text


def _version_number(text: str) -> int:
    """A version of a path; −1 is the last."""
    if text.strip().lower() == "latest":
        return -1
    plain = text.strip()
    if plain == "-1":
        return -1
    if not (plain.isascii() and plain.isdecimal()) or len(plain) > 10:
        raise invalid_version(text)
    number = int(plain)
    if not 0 < number < 2**31:
        raise invalid_version(text)
    return number
