"""What may be done with subjects, and what each request finds or changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tailrace.errors import ComponentMissingError
from tailrace.registry.bodies import Given
from tailrace.registry.errors import (
    Refusal,
    config_missing,
    invalid_level,
    invalid_mode,
    invalid_subject,
    mode_missing,
    not_permitted,
    referenced,
    schema_missing,
    subject_missing,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_missing,
    version_not_soft_deleted,
    version_soft_deleted,
)
from tailrace.registry.patterns import find
from tailrace.registry.topic import SchemaTopic
from tailrace.schemas.compatibility import DEFAULT_LEVEL, LEVELS, Earlier, Verdict, judge
from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.model import PROTOBUF, Reference, Schema
from tailrace.schemas.names import (
    DEFAULT_CONTEXT,
    context_of,
    is_valid,
    normal_subject,
    parse_subject,
    prefix_of,
    within,
)
from tailrace.schemas.parsed import Parsed, parse
from tailrace.schemas.subjects import (
    IMPORT,
    MODES,
    READONLY,
    READONLY_OVERRIDE,
    READWRITE,
    Subjects,
    Version,
    Written,
    clear_subject_record,
    config_record,
    context_record,
    delete_subject_record,
    mode_record,
    no_schema_record,
    noop_record,
    schema_record,
)

CACHED = 2000
REFERENCED_LIMIT = 1000
POLICIES = ("STRICT", "LENIENT")
T = TypeVar("T")


class _Stale(Exception):
    """What a verdict was about has changed meanwhile."""


@dataclass(frozen=True, slots=True)
class _Scene:
    """What decides about a new version: the level and the versions before it, newest first."""

    level: str
    lenient: bool
    earlier: tuple[Version, ...]


class Service:
    """See the module. Safe from several threads."""

    def __init__(self, topic: SchemaTopic) -> None:
        self._topic = topic
        self._lock = threading.Lock()
        self._parsed: OrderedDict[tuple[Schema, str, bool], Parsed] = OrderedDict()

    # Schemas -----------------------------------------------------------------------

    def _read(self, schema: Schema, subject: str, *, new: bool = True) -> Parsed:
        """A schema, read; kept, since the same ones come again. Raises Refusal."""
        key = (schema, context_of(subject), new)
        with self._lock:
            known = self._parsed.get(key)
            if known is not None:
                self._parsed.move_to_end(key)
        texts = self._texts(schema, subject)  # also when it is kept: they may be gone
        if known is not None:
            return known
        try:
            found = parse(schema, texts, new=new)
        except InvalidSchemaError as error:
            raise Refusal(
                42201,
                f"Invalid schema of type {schema.kind[:100]}, details: {error.message}"
                + (f": {error.detail}" if error.detail else ""),
                hint=error.hint,
            ) from error
        except ComponentMissingError as error:
            raise Refusal(42201, f"{error.message}: {error.detail}", hint=error.hint) from error
        with self._lock:
            self._parsed[key] = found
            while len(self._parsed) > CACHED:
                self._parsed.popitem(last=False)
        return found

    def _texts(self, schema: Schema, subject: str) -> dict[str, str]:
        """The texts of all a schema refers to, those others need before them."""
        if not schema.references:
            return {}

        def collect(subjects: Subjects) -> dict[str, str]:
            texts: dict[str, str] = {}
            seen: set[tuple[str, int]] = set()
            # Names to give behind what they refer to; None: only now.
            waiting: list[tuple[Reference, str, str | None]] = [
                (one, subject, None) for one in reversed(schema.references)
            ]
            while waiting:
                reference, parent, text = waiting.pop()
                if text is not None:
                    texts.setdefault(reference.name, text)
                    continue
                target = within(reference.subject, parent)
                found = subjects.version(target, reference.version, deleted=True)
                if found is None:
                    raise Refusal(
                        42201,
                        f"Invalid schema of type {schema.kind}, details: No schema reference found "
                        f'for subject "{reference.subject}" and version {reference.version}',
                        hint="register what it refers to first",
                    )
                if found.schema.kind != schema.kind:
                    raise Refusal(
                        42201,
                        f"Invalid schema of type {schema.kind}, details: the reference "
                        f'"{reference.name}" is of type {found.schema.kind}',
                    )
                if found.place in seen:
                    continue
                seen.add(found.place)
                if len(seen) > REFERENCED_LIMIT:
                    raise Refusal(42201, f"more than {REFERENCED_LIMIT} schemas are referred to")
                waiting.append((reference, parent, found.schema.text))
                waiting += [(one, target, None) for one in reversed(found.schema.references)]
            return texts

        return self._topic.look(collect)

    def _given(self, given: Given, subject: str, *, normalize: bool, new: bool = True) -> Schema:
        """The schema of a request in its one spelling."""
        normalize = normalize or self._topic.look(
            lambda subjects: subjects.config_in_scope(subject).get("normalize") is True
        )
        found = self._read(given.schema, subject, new=new)
        references = given.schema.references
        if any(one.version == -1 for one in references):
            references = tuple(self._pinned(one, subject) for one in references)
        if normalize:
            references = tuple(sorted(references, key=lambda one: (one.name, one.subject)))
        return replace(
            given.schema, text=found.normal if normalize else found.text, references=references
        )

    def _pinned(self, one: Reference, subject: str) -> Reference:
        """The latest version by its number."""
        target = within(one.subject, subject)
        found = self._topic.look(lambda subjects: subjects.version(target, one.version))
        return one if found is None else replace(one, version=found.version)

    def text_as(self, one: Version, form: str) -> str | None:
        """The text of a version in a form; None: as it is."""
        if form in ("", "default", "resolved", "ignore_extensions", "no_metadata"):
            if form == "resolved":
                raise Refusal(422, "this registry does not write schemas with references resolved")
            return None
        if form == "serialized" and one.schema.kind == PROTOBUF:
            from tailrace.schemas.protobuf import Types
            from tailrace.schemas.protobuf_descriptors import to_base64

            types = self._read(one.schema, one.subject, new=False).value
            assert isinstance(types, Types)
            try:
                return to_base64(types)
            except (ComponentMissingError, InvalidSchemaError) as error:
                raise Refusal(42201, f"{error.message}: {error.detail}", hint=error.hint) from error
        if form == "serialized":
            return None
        raise Refusal(422, f"Format {form[:100]} is not supported for {one.schema.kind}")

    # Looking -----------------------------------------------------------------------

    def subjects(self, prefix: str, *, deleted: bool, only_deleted: bool) -> list[str]:
        return self._topic.look(
            lambda s: s.names(prefix, deleted=deleted, only_deleted=only_deleted)
        )

    def versions(self, subject: str, *, deleted: bool, only_deleted: bool) -> list[Version]:
        subject = normal_subject(subject)

        def find(subjects: Subjects) -> list[Version]:
            found = subjects.versions(subject, deleted=deleted or only_deleted)
            if not found:
                raise subject_missing(subject)
            return [one for one in found if one.deleted or not only_deleted]

        return self._topic.look(find)

    def version(self, subject: str, number: int, *, deleted: bool) -> Version:
        subject = normal_subject(subject)

        def find(subjects: Subjects) -> Version:
            one = subjects.in_any_context(subject, number, deleted=deleted)
            if one is not None:
                return one
            if not subjects.exists(subject, deleted=deleted):
                raise subject_missing(subject)
            raise version_missing(number)

        return self._topic.look(find)

    def by_id(self, number: int, subject: str | None) -> Version:
        def find(subjects: Subjects) -> Version:
            one = subjects.by_id(number, None if subject is None else normal_subject(subject))
            if one is None:
                raise schema_missing(number)
            return one

        return self._topic.look(find)

    def places(self, number: int, subject: str | None, *, deleted: bool) -> list[Version]:
        one = self.by_id(number, subject)
        return self._topic.look(lambda subjects: subjects.places(one, deleted=deleted))

    def highest_id(self, one: Version) -> int:
        return self._topic.look(lambda s: s.next_id(context_of(one.subject))) - 1

    def by_guid(self, name: str) -> list[Version]:
        found = self._topic.look(lambda subjects: subjects.by_guid(name))
        if not found:
            raise schema_missing(name)
        return found

    def every_version(self, prefix: str, *, deleted: bool, latest_only: bool) -> list[Version]:
        def find(subjects: Subjects) -> list[Version]:
            found: list[Version] = []
            for name in subjects.names(prefix or ":*:", deleted=deleted):
                versions = subjects.versions(name, deleted=deleted)
                found += versions[-1:] if latest_only else versions
            return found

        return self._topic.look(find)

    def users(self, subject: str, number: int, *, deleted: bool) -> list[int]:
        one = self.version(subject, number, deleted=True)
        return self._topic.look(
            lambda s: sorted({each.id for each in s.users(*one.place, deleted=deleted)})
        )

    def latest_with(self, subject: str, wanted: dict[str, str], *, deleted: bool) -> Version:
        import json

        found = self.versions(subject, deleted=deleted, only_deleted=False)
        for one in reversed(found):
            held = json.loads(one.schema.metadata or "{}").get("properties", {})
            if isinstance(held, dict) and wanted.items() <= held.items():
                return one
        raise schema_missing()

    def look_up(self, subject: str, given: Given, *, normalize: bool, deleted: bool) -> Version:
        """The version of a subject that has this schema."""
        subject = normal_subject(subject)
        names = self._topic.look(lambda subjects: subjects.spellings(subject))
        refused: Refusal | None = None
        for name in names:
            try:
                schema = self._given(given, name, normalize=normalize, new=False)
            except Refusal as error:
                refused = refused or error
                continue
            one = self._topic.look(
                lambda s, name=name, schema=schema: _same(s, name, schema, deleted)  # type: ignore[misc]
            )
            if one is not None:
                return one
        if not self._topic.look(lambda subjects: subjects.exists(subject, deleted=deleted)):
            raise subject_missing(subject)
        raise refused or schema_missing()

    # Compatibility -----------------------------------------------------------------

    def _scene(self, subjects: Subjects, subject: str) -> _Scene:
        config = subjects.config_in_scope(subject)
        return _Scene(
            str(config.get("compatibilityLevel") or DEFAULT_LEVEL),
            config.get("compatibilityPolicy") == "LENIENT",
            tuple(reversed(subjects.versions(subject))),
        )

    def _verdict(self, scene: _Scene, schema: Schema, subject: str) -> Verdict:
        new = self._read(schema, subject, new=False)

        def read() -> Iterator[Earlier]:
            for one in scene.earlier:
                yield Earlier(one.version, self._read(one.schema, one.subject, new=False))

        try:
            return judge(scene.level, new, read(), find, lenient=scene.lenient)
        except InvalidSchemaError as error:
            raise Refusal(
                42201, f"Invalid schema, details: {error.message}: {error.detail}", hint=error.hint
            ) from error

    def check(self, subject: str, number: int | None, given: Given, *, normalize: bool) -> Verdict:
        """Whether a schema fits one version (−1: the last), or all as at registration."""
        subject = normal_subject(subject)
        scene = self._topic.look(lambda subjects: self._scene(subjects, subject))
        if number is not None:
            one = self._topic.look(lambda subjects: subjects.version(subject, number))
            if one is None and number != -1:
                if not self._topic.look(lambda subjects: subjects.exists(subject)):
                    raise subject_missing(subject)
                raise version_missing(number)
            scene = replace(scene, earlier=() if one is None else (one,))
        schema = self._given(given, subject, normalize=normalize)
        return self._verdict(scene, schema, subject)

    # Registering -------------------------------------------------------------------

    def register(self, subject: str, given: Given, *, normalize: bool) -> Version:
        """The version of the schema under the subject: one there is, or a new one."""
        if not is_valid(subject):
            raise invalid_subject(subject)
        subject = normal_subject(subject)
        fresh = given.version == 0 and given.id < 0
        if fresh:
            known = self._known(subject, given, normalize)
            if known is not None:
                return known
        mode = self._topic.look(lambda subjects: subjects.mode_in_scope(subject))
        _check_mode(subject, mode, given)
        schema = self._given(given, subject, normalize=normalize, new=mode != IMPORT)
        while True:
            scene = self._topic.look(lambda subjects: self._scene(subjects, subject))
            verdict = Verdict()
            if mode != IMPORT:
                verdict = self._verdict(scene, schema, subject)
            decide = self._decision(subject, schema, given, mode, scene, verdict)
            try:
                return self._topic.write(decide)
            except _Stale:
                mode = self._topic.look(lambda subjects: subjects.mode_in_scope(subject))

    def _known(self, subject: str, given: Given, normalize: bool) -> Version | None:
        try:
            schema = self._given(given, subject, normalize=normalize, new=False)
        except Refusal:
            return None  # told when it is read as a new one
        return self._topic.look(lambda subjects: _same(subjects, subject, schema, False))

    def _decision(
        self,
        subject: str,
        schema: Schema,
        given: Given,
        mode: str,
        scene: _Scene,
        verdict: Verdict,
    ) -> Callable[[Subjects], tuple[Version, Sequence[Written]]]:
        def decide(subjects: Subjects) -> tuple[Version, Sequence[Written]]:
            if given.version == 0:
                known = _same(subjects, subject, schema, False)
                if known is not None and given.id in (-1, known.id):
                    return known, ()
            now = subjects.mode_in_scope(subject)
            _check_mode(subject, now, given)
            if now != mode or self._scene(subjects, subject) != scene:
                raise _Stale
            if not verdict.fits:
                raise Refusal(
                    409,
                    "Schema being registered is incompatible with an earlier schema for subject "
                    f'"{subject}", details: [{", ".join(verdict.messages)}]',
                    hint=verdict.hint,
                )
            return _new_version(subjects, subject, schema, given, mode)

        return decide

    # Deleting ----------------------------------------------------------------------

    def delete_version(self, subject: str, number: int, *, permanent: bool) -> int:
        subject = normal_subject(subject)

        def decide(subjects: Subjects) -> tuple[int, Sequence[Written]]:
            one = subjects.version(subject, number, deleted=True)
            if one is None:
                if not subjects.exists(subject, deleted=True):
                    raise subject_missing(subject)
                raise version_missing(number)
            if one.deleted and not permanent:
                raise version_soft_deleted(subject, one.version)
            _check_writable(subjects, subject)
            _check_users(subjects, one, permanent)
            if not permanent:
                return one.version, [schema_record(replace(one, deleted=True))]
            if not one.deleted:
                raise version_not_soft_deleted(subject, one.version)
            records = [no_schema_record(*one.place)]
            if len(subjects.versions(subject, deleted=True)) == 1:
                records += _forget(subjects, subject)
            return one.version, [*records, _remember(subjects, [one])]

        return self._topic.write(decide)

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        subject = normal_subject(subject)

        def decide(subjects: Subjects) -> tuple[list[int], Sequence[Written]]:
            if not subjects.exists(subject, deleted=True):
                raise subject_missing(subject)
            if not permanent and not subjects.exists(subject):
                raise subject_soft_deleted(subject)
            _check_writable(subjects, subject)
            versions = subjects.versions(subject, deleted=permanent)
            for one in versions:
                _check_users(subjects, one, permanent, within_subject=True)
            if permanent and not all(one.deleted for one in versions):
                raise subject_not_soft_deleted(subject)
            numbers = [one.version for one in versions]
            if not permanent:
                return numbers, [delete_subject_record(subject, numbers[-1])]
            records = [no_schema_record(*one.place) for one in reversed(versions)]
            return numbers, [*records, *_forget(subjects, subject), _remember(subjects, versions)]

        return self._topic.write(decide)

    def delete_context(self, name: str) -> None:
        context = context_of(name)

        def decide(subjects: Subjects) -> tuple[None, Sequence[Written]]:
            if subjects.names(prefix_of(context), deleted=True):
                raise Refusal(42211, f"The specified context '{name}' is not empty.")
            return None, [context_record(context, gone=True)]

        self._topic.write(decide)

    # Settings ----------------------------------------------------------------------

    def config(self, subject: str | None, *, in_scope: bool) -> dict[str, Any]:
        name = _setting(subject)

        def find(subjects: Subjects) -> dict[str, Any]:
            own = subjects.config(name)
            if in_scope or (own is None and _is_top(name)):
                own = subjects.config_in_scope(name)
            if own is None:
                raise config_missing(str(subject))
            return {**own, "compatibilityLevel": own.get("compatibilityLevel") or DEFAULT_LEVEL}

        return self._topic.look(find)

    def set_config(self, subject: str | None, changes: dict[str, Any]) -> None:
        name = _checked_setting(subject)
        level, policy = changes.get("compatibilityLevel"), changes.get("compatibilityPolicy")
        if level is not None and level not in LEVELS:
            raise invalid_level()
        if policy is not None and policy not in POLICIES:
            raise Refusal(
                42203, f"Invalid compatibility policy. Valid values are {' and '.join(POLICIES)}"
            )

        def decide(subjects: Subjects) -> tuple[None, Sequence[Written]]:
            _check_writable(subjects, name)
            return None, [config_record(name, {**(subjects.config(name) or {}), **changes})]

        self._topic.write(decide)

    def delete_config(self, subject: str | None) -> dict[str, Any]:
        name = _setting(subject)

        def decide(subjects: Subjects) -> tuple[dict[str, Any], Sequence[Written]]:
            own = subjects.config(name)
            if own is None and not _is_top(name):
                raise subject_missing(str(subject))
            _check_writable(subjects, name)
            found = {"compatibilityLevel": DEFAULT_LEVEL, **(own or {})}
            return found, [config_record(name, None)]

        return self._topic.write(decide)

    def mode(self, subject: str | None, *, in_scope: bool) -> str:
        name = _setting(subject)

        def find(subjects: Subjects) -> str:
            own = subjects.mode_in_scope(name) if in_scope else subjects.mode(name)
            if own is None and _is_top(name):
                own = READWRITE
            if own is None:
                raise mode_missing(str(subject))
            return own

        return self._topic.look(find)

    def set_mode(self, subject: str | None, mode: str, *, force: bool) -> None:
        name = _checked_setting(subject)
        if mode not in MODES:
            raise invalid_mode()

        def decide(subjects: Subjects) -> tuple[None, Sequence[Written]]:
            records: list[Written] = []
            if mode == IMPORT and subjects.mode_in_scope(name) != IMPORT and not force:
                if subjects.matching(name):
                    raise not_permitted("Cannot import since found existing subjects")
                gone = [
                    one
                    for each in subjects.matching(name, deleted=True)
                    for one in subjects.versions(each, deleted=True)
                ]
                for one in gone:
                    _check_users(subjects, one, True)
                    records.append(no_schema_record(*one.place))
                if gone:
                    records += [_remember(subjects, gone), clear_subject_record(name)]
            return None, [*records, mode_record(name, mode)]

        self._topic.write(decide)

    def delete_mode(self, subject: str | None, *, recursive: bool) -> str | None:
        name = _setting(subject)

        def decide(subjects: Subjects) -> tuple[str | None, Sequence[Written]]:
            own = subjects.mode(name)
            if own is None and not recursive and not _is_top(name):
                raise subject_missing(str(subject))
            below = subjects.modes_below(name) if recursive else []
            records = [mode_record(one, None) for one in below]
            return own or (READWRITE if _is_top(name) else None), [
                *records,
                mode_record(name, None),
            ]

        return self._topic.write(decide)

    def contexts(self) -> list[str]:
        return self._topic.look(lambda subjects: subjects.contexts())


# The rules of a decision -------------------------------------------------------------


def _same(subjects: Subjects, subject: str, schema: Schema, deleted: bool) -> Version | None:
    """The newest version of a subject with this very schema."""
    for one in reversed(subjects.versions(subject, deleted=deleted)):
        if one.schema == schema:
            return one
    return None


def _new_version(
    subjects: Subjects, subject: str, schema: Schema, given: Given, mode: str
) -> tuple[Version, Sequence[Written]]:
    context = context_of(subject)
    following = subjects.next_version(subject)
    number = given.version or following
    if given.version > 0 and given.version != following and mode != IMPORT:
        raise Refusal(42201, f"Version is not one more than previous version: {following} would be")
    if number == -1:
        number = following
    known = subjects.id_of(schema, context)
    identity = given.id
    if identity < 0:
        identity = subjects.next_id(context) if known is None else known
    else:
        holder = subjects.by_id(identity, prefix_of(context))
        if holder is not None and holder.schema != schema:
            raise not_permitted(
                f"Overwrite new schema with id {identity} in context {context} is not permitted."
            )
    made = Version(subject, number, identity, schema)
    records: list[Written] = []
    if context != DEFAULT_CONTEXT and not subjects.knows_context(context):
        records.append(context_record(context))
    for one in subjects.versions(subject, deleted=True):
        same = one.deleted and one.id == identity and one.version < number
        if same and not subjects.users(*one.place, deleted=True):
            # The same schema comes back under a new number; the old one would only be in the way.
            records.append(no_schema_record(*one.place))
    return made, [*records, schema_record(made)]


def _check_mode(subject: str, mode: str, given: Given) -> None:
    context = prefix_of(context_of(subject))
    if mode in (READONLY, READONLY_OVERRIDE):
        raise not_permitted(f"Subject {subject} in context {context} is in read-only mode")
    if given.id >= 0 and mode != IMPORT:
        raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
    if given.id < 0 and mode != READWRITE:
        raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")


def _check_writable(subjects: Subjects, subject: str | None) -> None:
    if subjects.mode_in_scope(subject) in (READONLY, READONLY_OVERRIDE):
        context = prefix_of(context_of(subject or ""))
        raise not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def _check_users(
    subjects: Subjects, one: Version, permanent: bool, *, within_subject: bool = False
) -> None:
    users = [
        each
        for each in subjects.users(*one.place, deleted=permanent)
        if not (within_subject and each.subject == one.subject)
    ]
    if users:
        raise referenced(*one.place, [f"{each.subject}/{each.version}" for each in users])


def _forget(subjects: Subjects, subject: str) -> list[Written]:
    """The settings of a subject that is gone for good."""
    records: list[Written] = []
    if subjects.mode(subject) is not None:
        records.append(mode_record(subject, None))
    if subjects.config(subject) is not None:
        records.append(config_record(subject, None))
    return records


def _remember(subjects: Subjects, gone: Sequence[Version]) -> Written:
    """That the ids and versions which go were given out: none comes again."""
    ended = subjects.ended()
    for one in gone:
        ended[one.subject] = subjects.next_version(one.subject) - 1
    return noop_record(subjects.highest_ids(), ended)


def _setting(subject: str | None) -> str | None:
    """The key of a setting; the default context is None."""
    if subject is None:
        return None
    named = parse_subject(subject)
    return None if named.context == DEFAULT_CONTEXT and not named.name else str(named)


def _checked_setting(subject: str | None) -> str | None:
    if subject is not None and not is_valid(subject, setting=True):
        raise invalid_subject(subject)
    return _setting(subject)


def _is_top(name: str | None) -> bool:
    return name is None or name == ":.__GLOBAL:"
