"""The state of a registry, folded from the records of `_schemas`.

The topic is compacted and its records are Confluent's: a JSON key with `keytype` and a JSON value.

    SCHEMA          subject, version   one version; null: it was deleted for good
    DELETE_SUBJECT  subject            every version up to the one in the value is soft-deleted
    CONFIG, MODE    subject or null    null is the default context, `:.eu:` the context `.eu`
    CONTEXT         tenant, context    a context that was used
    CLEAR_SUBJECT   subject            what was soft-deleted under it is gone
    NOOP                               Confluent's value is null. Ours holds the highest id of each
                                       context and, for subjects whose last version was deleted for
                                       good, that version: neither is given out again

A record of an unknown kind, or one that cannot be read, is passed over and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.schemas.model import AVRO, Reference, Schema
from tailrace.schemas.names import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    context_of,
    normal_subject,
    parse_subject,
    prefix_of,
    within,
)
from tailrace.schemas.parsed import guid
from tailrace.schemas.reading import write_json

READWRITE, READONLY, READONLY_OVERRIDE, IMPORT = (
    "READWRITE",
    "READONLY",
    "READONLY_OVERRIDE",
    "IMPORT",
)
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)
TENANT = "default"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False

    @property
    def place(self) -> tuple[str, int]:
        return self.subject, self.version


Config = Mapping[str, Any]


@dataclass(slots=True)
class _Context:
    """What the subjects of one context share: ids."""

    by_id: dict[int, dict[tuple[str, int], None]] = field(default_factory=dict)
    ids: dict[Schema, int] = field(default_factory=dict)
    highest: int = 0


class Subjects:
    """See the module. Not for use from several threads."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, Version]] = {}
        self._contexts: dict[str, _Context] = {}
        self._named: dict[str, None] = {}
        self._configs: dict[str | None, Config] = {}
        self._modes: dict[str | None, str] = {}
        self._highest: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._users: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self.unread = 0

    # Folding -----------------------------------------------------------------------

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take one record of the topic."""
        try:
            self._apply(json.loads(key or b""), None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.unread += 1

    def _apply(self, key: Any, value: Any) -> None:
        match key["keytype"]:
            case "SCHEMA":
                subject, version = normal_subject(key["subject"]), int(key["version"])
                self._remove(subject, version)
                if value is not None:
                    self._add(_version(subject, version, value))
            case "DELETE_SUBJECT":
                if value is not None:
                    subject, last = normal_subject(key["subject"]), int(value["version"])
                    self._highest[subject] = max(self._highest.get(subject, 0), last)
                    for version, one in self._versions.get(subject, {}).items():
                        if version <= last and not one.deleted:
                            self._versions[subject][version] = replace(one, deleted=True)
            case "CONFIG":
                self._set(self._configs, key.get("subject"), value)
            case "MODE":
                mode = None if value is None else str(value["mode"])
                self._set(self._modes, key.get("subject"), mode)
            case "CONTEXT":
                if value is None:
                    self._named.pop(key["context"], None)
                else:
                    self._named[str(key["context"])] = None
            case "CLEAR_SUBJECT":
                for subject in self.matching(key.get("subject"), deleted=True):
                    for one in list(self._versions[subject].values()):
                        if one.deleted:
                            self._remove(subject, one.version)
            case "NOOP":
                if isinstance(value, dict):
                    for context, highest in value.get("ids", {}).items():
                        here = self._context(context)
                        here.highest = max(here.highest, int(highest))
                    for subject, last in value.get("versions", {}).items():
                        self._ended[subject] = int(last)
                        self._highest[subject] = max(self._highest.get(subject, 0), int(last))
            case _:
                self.unread += 1

    def _set(self, into: dict[Any, Any], subject: str | None, value: Any) -> None:
        name = None if subject is None else normal_subject(subject)
        if value is None:
            into.pop(name, None)
        else:
            into[name] = value

    def _context(self, name: str) -> _Context:
        return self._contexts.setdefault(name, _Context())

    def _add(self, one: Version) -> None:
        context = self._context(context_of(one.subject))
        self._versions.setdefault(one.subject, {})[one.version] = one
        self._highest[one.subject] = max(self._highest.get(one.subject, 0), one.version)
        context.by_id.setdefault(one.id, {})[one.place] = None
        context.ids.setdefault(one.schema, one.id)
        context.highest = max(context.highest, one.id)
        for reference in one.schema.references:
            target = (within(reference.subject, one.subject), reference.version)
            self._users.setdefault(target, set()).add(one.place)

    def _remove(self, subject: str, version: int) -> None:
        one = self._versions.get(subject, {}).pop(version, None)
        if one is None:
            return
        if not self._versions[subject]:
            del self._versions[subject]
        context = self._context(context_of(subject))
        places = context.by_id[one.id]
        places.pop(one.place, None)
        if not places:
            del context.by_id[one.id]
            if context.ids.get(one.schema) == one.id:
                del context.ids[one.schema]
        for reference in one.schema.references:
            self._users.get((within(reference.subject, subject), reference.version), set()).discard(
                one.place
            )

    # Versions ------------------------------------------------------------------------

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """In the order of their numbers."""
        found = self._versions.get(subject, {})
        return [found[n] for n in sorted(found) if deleted or not found[n].deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """A version; −1 is the last that is not deleted."""
        if number == -1:
            return next(iter(reversed(self.versions(subject))), None)
        one = self._versions.get(subject, {}).get(number)
        return one if one is not None and (deleted or not one.deleted) else None

    def in_any_context(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """As `version`; a subject without a context is looked for in the others, too."""
        for name in self._spellings(subject):
            one = self.version(name, number, deleted=deleted)
            if one is not None:
                return one
        return None

    def _spellings(self, subject: str) -> Iterator[str]:
        yield subject
        if context_of(subject) == DEFAULT_CONTEXT:
            for context in self._named:
                yield prefix_of(context) + subject

    def spellings(self, subject: str) -> list[str]:
        return list(self._spellings(subject))

    def exists(self, subject: str, *, deleted: bool = False) -> bool:
        return any(deleted or not one.deleted for one in self._versions.get(subject, {}).values())

    def names(self, prefix: str = ":*:", *, deleted: bool = False, only_deleted: bool = False) -> list[str]:  # fmt: skip
        """Subjects that begin so, sorted; `:*:` is every context, `:.eu:` one of them."""
        if prefix.startswith(":*:"):
            wanted = prefix[3:]
            found = [one for one in self._versions if parse_subject(one).name.startswith(wanted)]
        else:
            within_one = parse_subject(prefix)
            found = [
                one
                for one in self._versions
                if (named := parse_subject(one)).context == within_one.context
                and named.name.startswith(within_one.name)
            ]
        if only_deleted:
            return sorted(one for one in found if not self.exists(one))
        return sorted(one for one in found if deleted or self.exists(one))

    def matching(self, subject: str | None, *, deleted: bool = False) -> list[str]:
        """The subjects a setting is about: one, those of a context, or all of the default one."""
        if subject is not None and parse_subject(subject).name:
            return [subject] if self.exists(subject, deleted=deleted) else []
        context = DEFAULT_CONTEXT if subject is None else parse_subject(subject).context
        return [
            one
            for one in list(self._versions)
            if (context in (context_of(one), GLOBAL_CONTEXT)) and self.exists(one, deleted=deleted)
        ]

    def next_version(self, subject: str) -> int:
        return self._highest.get(subject, 0) + 1

    def users(self, subject: str, version: int, *, deleted: bool = False) -> list[Version]:
        """The versions that refer to this one."""
        found = [self._versions[s][v] for s, v in sorted(self._users.get((subject, version), ()))]
        return [one for one in found if deleted or not one.deleted]

    @property
    def count(self) -> int:
        return len(self._versions)

    # Ids -----------------------------------------------------------------------------

    def by_id(self, number: int, subject: str | None = None) -> Version | None:
        """A version with this id, in the context of `subject`; where that is a subject of the
        default context that does not have it, also in the others."""
        for context in self._id_contexts(subject):
            places = (
                self._contexts[context].by_id.get(number) if context in self._contexts else None
            )
            if not places:
                continue
            named = parse_subject(subject or "").name
            if named:
                name = prefix_of(context) + named
                for place in places:
                    if place[0] == name:
                        return self._versions[name][place[1]]
        if subject is None or not parse_subject(subject).name:
            context = DEFAULT_CONTEXT if subject is None else context_of(subject)
            return self._first(context, number)
        return self._first(context_of(subject), number)

    def _id_contexts(self, subject: str | None) -> list[str]:
        context = DEFAULT_CONTEXT if subject is None else context_of(subject)
        named = parse_subject(subject or "").name
        if context == DEFAULT_CONTEXT and named:
            return [context, *self._named]
        return [context]

    def _first(self, context: str, number: int) -> Version | None:
        here = self._contexts.get(context)
        for subject, version in here.by_id.get(number, ()) if here else ():
            return self._versions[subject][version]
        return None

    def places(self, one: Version, *, deleted: bool = False) -> list[Version]:
        """Every version with the id of this one, in its context."""
        context = self._contexts[context_of(one.subject)]
        found = [self._versions[s][v] for s, v in sorted(context.by_id.get(one.id, ()))]
        return [each for each in found if deleted or not each.deleted]

    def id_of(self, schema: Schema, context: str) -> int | None:
        here = self._contexts.get(context)
        return None if here is None else here.ids.get(schema)

    def next_id(self, context: str) -> int:
        return self._contexts[context].highest + 1 if context in self._contexts else 1

    def highest_ids(self) -> dict[str, int]:
        return {name: one.highest for name, one in self._contexts.items() if one.highest}

    def ended(self) -> dict[str, int]:
        return dict(self._ended)

    def by_guid(self, name: str) -> list[Version]:
        """The first version of each context whose schema has this name."""
        found: dict[str, Version] = {}
        for context, here in self._contexts.items():
            for number, places in here.by_id.items():
                subject, version = next(iter(places))
                if guid(self._versions[subject][version].schema) == name:
                    found[context] = self._versions[subject][version]
                    assert found[context].id == number
        return list(found.values())

    # Settings ------------------------------------------------------------------------

    def contexts(self) -> list[str]:
        return [DEFAULT_CONTEXT, *sorted(self._named)]

    def knows_context(self, name: str) -> bool:
        return name in self._named

    def config(self, subject: str | None) -> Config | None:
        """What was set for exactly this."""
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> str | None:
        return self._modes.get(subject)

    def config_in_scope(self, subject: str | None) -> dict[str, Any]:
        """What holds for a subject: its own, its context's, that of all contexts, in this order;
        one of its own leaves the rest to that of the default context."""
        own = self._configs.get(subject) if subject is not None else None
        above = next(
            (self._configs[one] for one in self._above(subject) if one in self._configs), {}
        )
        if own is None:
            return dict(above)
        return {**(self._configs.get(None) or {}), **own}

    def mode_in_scope(self, subject: str | None) -> str:
        for above in (None, prefix_of(GLOBAL_CONTEXT)):
            if self._modes.get(above) == READONLY_OVERRIDE:
                return READONLY_OVERRIDE
        scope = ([subject] if subject is not None else []) + self._above(subject)
        return next((self._modes[one] for one in scope if one in self._modes), READWRITE)

    def _above(self, subject: str | None) -> list[str | None]:
        context = DEFAULT_CONTEXT if subject is None else context_of(subject)
        nearest = None if context == DEFAULT_CONTEXT else prefix_of(context)
        return [nearest, prefix_of(GLOBAL_CONTEXT)]

    def modes_below(self, subject: str | None) -> list[str]:
        """The subjects of a context that have a mode of their own."""
        context = DEFAULT_CONTEXT if subject is None else context_of(subject)
        return [
            one
            for one in self._modes
            if one is not None and context_of(one) == context and parse_subject(one).name
        ]


# Records ---------------------------------------------------------------------------

Written = tuple[bytes, bytes | None]


def schema_record(one: Version) -> Written:
    """A version as its record."""
    value: dict[str, Any] = {"subject": one.subject, "version": one.version, "id": one.id}
    if one.schema.kind != AVRO:
        value["schemaType"] = one.schema.kind
    if one.schema.references:
        value["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version}
            for r in one.schema.references
        ]
    if one.schema.metadata:
        value["metadata"] = json.loads(one.schema.metadata)
    if one.schema.rules:
        value["ruleSet"] = json.loads(one.schema.rules)
    value |= {"schema": one.schema.text, "deleted": one.deleted}
    return _schema_key(one.subject, one.version), _bytes(value)


def no_schema_record(subject: str, version: int) -> Written:
    return _schema_key(subject, version), None


def delete_subject_record(subject: str, last: int) -> Written:
    key = {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
    return _bytes(key), _bytes({"subject": subject, "version": last})


def clear_subject_record(subject: str | None) -> Written:
    key = {"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}
    return _bytes(_some(key)), _bytes(_some({"subject": subject}))


def config_record(subject: str | None, config: Config | None) -> Written:
    key = _some({"keytype": "CONFIG", "subject": subject, "magic": 0})
    return _bytes(key), None if config is None else _bytes(_some({"subject": subject, **config}))


def mode_record(subject: str | None, mode: str | None) -> Written:
    key = _some({"keytype": "MODE", "subject": subject, "magic": 0})
    return _bytes(key), None if mode is None else _bytes(_some({"subject": subject, "mode": mode}))


def context_record(context: str, *, gone: bool = False) -> Written:
    named = {"tenant": TENANT, "context": context}
    return _bytes({"keytype": "CONTEXT", **named, "magic": 0}), None if gone else _bytes(named)


def noop_record(ids: Mapping[str, int], versions: Mapping[str, int]) -> Written:
    value = {"ids": dict(ids), "versions": dict(versions)}
    return _bytes({"keytype": "NOOP", "magic": 0}), _bytes(value)


def _schema_key(subject: str, version: int) -> bytes:
    return _bytes({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})


def _some(value: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if one is not None}


def _bytes(value: dict[str, Any]) -> bytes:
    return write_json(value).encode()


def _version(subject: str, number: int, value: dict[str, Any]) -> Version:
    references = tuple(
        Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
        for one in value.get("references") or ()
    )
    metadata, rules = value.get("metadata"), value.get("ruleSet")
    return Version(
        subject,
        number,
        int(value["id"]),
        Schema(
            str(value["schema"]),
            str(value.get("schemaType") or AVRO),
            references,
            write_json(metadata, sort=True) if metadata else None,
            write_json(rules, sort=True) if rules else None,
        ),
        bool(value.get("deleted", False)),
    )
