"""Personal fields are sealed in the log; the keys of their subjects are in a topic of their own.

    a sealed field   tr1.<tag>.<base64url of key id (4 bytes), nonce (12), AES-256-GCM>
    tag              16 hex digits: HMAC-SHA256 of the subject, `customer:17`
    bound to         the topic and the field: a sealed value is of no use elsewhere

    __tailrace_keys    compacted; "<tag>.<key id>" → {"key": the wrapped key}
    __tailrace_erased  compacted; see `erasures`

Keys are wrapped, and tags made, with secrets that follow from `events.key`, which is kept outside
the log. A subject may have several keys: each process that needs one and knows none makes its own,
so no two can overwrite each other. Values stay sealed in every copy of the log and in everything
that is made from it; programs that open the topic see them open. The subject of an erasure never
gets a key again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tailrace.errors import TailraceError, UsageError
from tailrace.extras import require
from tailrace.facts.erasures import SETTINGS, Erased, Erasures
from tailrace.facts.errors import (
    CommandResultError,
    EventsKeyError,
    EventUnreadableError,
    SubjectErasedError,
)
from tailrace.facts.event_types import EventType, EventTypes, decode_json, encode_json
from tailrace.facts.personal import erased_value
from tailrace.facts.reading import EventReader
from tailrace.facts.records import Stored
from tailrace.records.event_headers import split_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from tailrace.client.log import Log
    from tailrace.facts.declare import Events

log = logging.getLogger(__name__)

KEYS = "__tailrace_keys"
MARK = "tr1."
_MARKED = b'"tr1.'
SHORTEST_SECRET = 32
FOLLOW_SECONDS = 1.0
VARIABLE = "TAILRACE_EVENTS__KEY"
KEY_ID_BYTES, NONCE_BYTES = 4, 12
HINT = "`openssl rand -base64 32` makes one; set events.key in tailrace.toml to \"${EVENTS_KEY}\", or TAILRACE_EVENTS__KEY"  # fmt: skip


class KeyRecord(NamedTuple):
    """One key of the topic, as it stands there; `wrapped` None: destroyed."""

    offset: int
    tag: str
    key_id: str
    wrapped: bytes | None


class Keys:
    """The keys of one log's subjects. Safe from any thread; close it."""

    def __init__(self, log: Log, secret: str | None, timeout: float = 30.0) -> None:
        require("cryptography")
        if not secret or len(secret) < SHORTEST_SECRET:
            raise EventsKeyError(
                "personal fields need a key, and there is none"
                if not secret
                else f"events.key has fewer than {SHORTEST_SECRET} characters",
                detail="events.key wraps the keys of subjects; it is kept outside the log",
                hint=HINT,
            )
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._make: type[AESGCM] = AESGCM
        self._tags = _derived(secret, b"tags")
        self._wrapping = AESGCM(_derived(secret, b"wrapping"))
        self._log = log
        self._reader = EventReader(log, timeout)
        self._lock = threading.RLock()
        self.book = Erasures(log, timeout)
        self._next = 0
        self._live: dict[str, dict[str, bytes]] = {}
        self._open: dict[tuple[str, str], AESGCM] = {}
        self._gone: set[str] = set()
        try:
            log.ensure_topic(KEYS, 1, SETTINGS)
            self.book.begin()
            self.refresh()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._reader.close()
            self.book.close()

    # What there is -------------------------------------------------------------

    def tag(self, subject: str) -> str:
        """What stands for a subject in the log."""
        kind, colon, name = subject.partition(":")
        if not (kind and colon and name):
            raise UsageError(f"{subject!r} is no subject", hint="customer:17")
        return hmac.digest(self._tags, subject.encode(), hashlib.sha256)[:8].hex()

    def is_erased(self, tag: str) -> bool:
        return tag in self._gone

    def live(self, tag: str) -> list[str]:
        """The ids of a subject's keys that are not destroyed."""
        return sorted(self._live.get(tag, ()))

    @property
    def erased_count(self) -> int:
        """How many subjects are erased: it only grows."""
        return len(self._gone)

    @property
    def erased_tags(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._gone)

    @property
    def erasures(self) -> dict[str, Erased]:
        """Erasures by their ids, of subjects and of records."""
        return self.book.found

    def refresh(self) -> None:
        """Read what is new in both topics."""
        with self._lock:
            for erased in self.book.refresh():
                if erased.kind == "subject":
                    self._forget(erased.tag)
            end = self._log.end_offsets(KEYS)[0]
            for some, _ in self._reader.records(KEYS, 0, self._next, end):
                for record in some:
                    if record.key is not None:
                        self._take(record.key.decode(), record.value)
            self._next = max(end, self._next)

    def _take(self, key: str, value: bytes | None) -> None:
        tag, _, key_id = key.partition(".")
        if value is None:
            self._live.get(tag, {}).pop(key_id, None)
            self._open.pop((tag, key_id), None)
        else:
            wrapped = base64.b64decode(msgspec.json.decode(value)["key"])
            self._live.setdefault(tag, {})[key_id] = wrapped

    def _forget(self, tag: str) -> None:
        self._gone.add(tag)
        for name in [each for each in self._open if each[0] == tag]:
            del self._open[name]

    def raw(self) -> list[KeyRecord]:
        """Every record of the topic of keys as it can be read today, destroyed ones too."""
        end = self._log.end_offsets(KEYS)[0]
        found: list[KeyRecord] = []
        with self._lock:
            for some, _ in self._reader.records(KEYS, 0, 0, end):
                for record in some:
                    tag, _, key_id = (record.key or b"").decode().partition(".")
                    found.append(KeyRecord(record.offset, tag, key_id, record.value))
        return found

    # Sealing -------------------------------------------------------------------

    def seal(self, topic: str, field: str, subject: str, value: Any) -> str:
        """Raises SubjectErasedError for a subject that was erased."""
        return self.seal_under(topic, field, self.tag(subject), value)

    def seal_under(self, topic: str, field: str, tag: str, value: Any) -> str:
        """The same for the tag of a subject."""
        with self._lock:
            if tag in self._gone:
                raise SubjectErasedError(
                    f"the subject of the field {field!r} was erased and does not come back",
                    detail=f"tag {tag} in {topic!r}",
                    hint="`tailrace erase list` says when and why",
                )
            key_id, key = self._key(tag)
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = key.encrypt(nonce, encode_json(value), _bound(topic, field))
        text = base64.urlsafe_b64encode(bytes.fromhex(key_id) + nonce + sealed).decode()
        return f"{MARK}{tag}.{text}"

    def _key(self, tag: str) -> tuple[str, AESGCM]:
        for key_id in self._live.get(tag, ()):
            return key_id, self._opened(tag, key_id)
        key, key_id = secrets.token_bytes(32), secrets.token_hex(KEY_ID_BYTES)
        nonce = secrets.token_bytes(NONCE_BYTES)
        name = f"{tag}.{key_id}"
        wrapped = nonce + self._wrapping.encrypt(nonce, key, name.encode())
        # Durable before anything is sealed with it.
        self.write(KEYS, name, encode_json({"key": base64.b64encode(wrapped).decode()}))
        self._live.setdefault(tag, {})[key_id] = wrapped
        return key_id, self._opened(tag, key_id)

    def _opened(self, tag: str, key_id: str) -> AESGCM:
        found = self._open.get((tag, key_id))
        if found is None:
            from cryptography.exceptions import InvalidTag

            wrapped = self._live[tag][key_id]
            name = f"{tag}.{key_id}".encode()
            try:
                key = self._wrapping.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], name)
            except InvalidTag as error:
                raise EventsKeyError(
                    "events.key is not the one with which this log's keys are wrapped",
                    hint="give every process of the project the same events.key",
                ) from error
            found = self._open[tag, key_id] = self._make(key)
        return found

    def unseal(self, topic: str, field: str, sealed: str) -> tuple[bool, Any]:
        """(whether it is there, the value); (False, None) for an erased subject. Raises
        EventUnreadableError for what cannot be opened and is not erased."""
        # `_gone` is looked at first: an erased subject stays so, whatever keys turn up.
        from cryptography.exceptions import InvalidTag

        tag, _, text = sealed.removeprefix(MARK).partition(".")
        raw = base64.urlsafe_b64decode(text)
        key_id = raw[:KEY_ID_BYTES].hex()
        with self._lock:
            if tag not in self._gone and key_id not in self._live.get(tag, ()):
                self.refresh()  # made by another process a moment ago
            if tag in self._gone:
                return False, None
            if key_id not in self._live.get(tag, ()):
                raise EventUnreadableError(
                    f"the field {field!r} is sealed with a key that is not there",
                    detail=f"key {tag}.{key_id} of {KEYS}",
                    hint="the topic of keys is a part of the log: restore it with it",
                )
            key = self._opened(tag, key_id)
        nonce, rest = raw[KEY_ID_BYTES : KEY_ID_BYTES + NONCE_BYTES], raw[KEY_ID_BYTES + NONCE_BYTES :]  # fmt: skip
        try:
            return True, decode_json(key.decrypt(nonce, rest, _bound(topic, field)))
        except InvalidTag as error:
            raise EventUnreadableError(
                f"the field {field!r} of {topic!r} was changed after it was sealed",
                detail=f"key {tag}.{key_id}",
            ) from error

    # Writing -------------------------------------------------------------------

    def write(self, topic: str, key: str, value: bytes | None) -> None:
        """One record into a topic of the project, durable on return."""
        self.book.write(topic, key, value)

    def destroy_erased(self) -> None:
        """Destroy what keys erased subjects have: the erasure was cut short, or a process made one
        in the same moment."""
        with self._lock:
            left = [tag for tag in self._gone if self._live.get(tag)]
        for tag in left:
            self.destroy(tag)

    def destroy(self, tag: str) -> list[str]:
        """Destroy every key of a subject: their ids."""
        with self._lock:
            self.refresh()
            ids = self.live(tag)
            for key_id in ids:
                self.write(KEYS, f"{tag}.{key_id}", None)
            self.refresh()
            return ids


class Seals:
    """Seals and opens the events of one topic."""

    def __init__(self, keys: Keys, types: EventTypes) -> None:
        self.keys = keys
        self._types = types
        self.topic = types.topic

    def seal(self, kind: EventType, value: bytes) -> bytes:
        """An event's JSON with its personal fields sealed."""
        if not kind.personal:
            return value
        fields: dict[str, Any] = decode_json(value)
        for name, subject in kind.personal.items():
            if fields.get(name) is None:
                continue
            whose = fields.get(subject)
            if whose is None or whose == "":
                raise CommandResultError(
                    f"an event {kind.name} has a personal field {name!r} and no {subject!r}",
                    hint="the subject must be known before anything of it is written",
                )
            fields[name] = self.keys.seal(self.topic, name, f"{subject}:{whose}", fields[name])
        return encode_json(fields)

    def open(self, stored: Stored) -> Stored:
        """An event as it was before it was sealed; fields of an erased subject are None, or
        `[erased]` where they cannot be."""
        if _MARKED not in stored.value:
            return stored
        kind = self._types.by_name.get(split_name(stored.kind)[0])
        if kind is None:
            return stored  # an unknown type: told as such
        fields = decode_json(stored.value)
        for name, value in fields.items():
            if not (isinstance(value, str) and is_sealed(value)):
                continue
            try:
                there, opened = self.keys.unseal(self.topic, name, value)
            except EventUnreadableError:
                if name in kind.personal:
                    raise
                continue  # a text that somebody made to look so
            fields[name] = opened if there else erased_value(kind.cls, name)
        return stored._replace(value=encode_json(fields))


class FollowErasures:
    """A thread that learns of erasures and has what was told before forgotten."""

    def __init__(
        self, book: Erasures, keys: Keys | None, topic: str, forget: Callable[[], None]
    ) -> None:
        self._book = book
        self._keys = keys
        self._topic = topic
        self._forget = forget
        self._known = self._what()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events erasures", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _what(self) -> tuple[int, str]:
        gone = 0 if self._keys is None else self._keys.erased_count
        return gone, self._book.mark(self._topic)

    def _run(self) -> None:
        while not self._stopping.wait(FOLLOW_SECONDS):
            try:
                if self._keys is None:
                    self._book.refresh()
                else:
                    self._keys.refresh()
                    self._keys.destroy_erased()
                if (now := self._what()) != self._known:
                    self._known = now
                    self._forget()
            except TailraceError as error:
                log.warning("erasures cannot be followed", extra={"error": str(error)})


def seals_for(log: Log, declared: Events[Any], key: str | None = None) -> Seals | None:
    """What seals and opens the events of a topic; None if none of them is personal."""
    if not declared.types.has_personal and declared.sealing is None:
        return None
    keys = Keys(log, key or declared.key or os.environ.get(VARIABLE))
    return (declared.sealing or Seals)(keys, declared.types)


def is_sealed(text: str) -> bool:
    """Whether a text has the form of a sealed value: nobody types one by accident."""
    mark, _, rest = text.partition(".")
    tag, dot, sealed = rest.partition(".")
    if mark + "." != MARK or not dot or len(tag) != 16 or tag.strip("0123456789abcdef"):
        return False
    try:
        return len(base64.urlsafe_b64decode(sealed)) > KEY_ID_BYTES + NONCE_BYTES
    except ValueError:
        return False


def _derived(secret: str, purpose: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"tailrace events " + purpose, hashlib.sha256)


def _bound(topic: str, field: str) -> bytes:
    return f"{topic}\0{field}".encode()
