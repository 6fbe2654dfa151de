"""What opens sealed values for a project's sinks: its key, and its event topics' personal fields.

A sealed value is bound to the topic and the field it was sealed for, and a view may call its
column anything: the fields of the project's event topics are tried, the last that fitted first.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.client.log import Log, connect
from tailrace.facts.errors import EventUnreadableError
from tailrace.facts.event_types import encode_json
from tailrace.facts.sealing import FOLLOW_SECONDS, Keys, is_sealed
from tailrace.project.load import Project
from tailrace.sinks.errors import SealedValueError
from tailrace.sinks.opening import Opener
from tailrace.sinks.registry import Copy


def personal_places(project: Project) -> list[tuple[str, str]]:
    """Every (topic, field) that is sealed."""
    return sorted(
        {
            (declared.name, field)
            for declared in project.events.values()
            for kind in declared.types
            for field in kind.personal
        }
    )


def opener_of(project: Project, bootstrap: str, copy: Copy) -> Opener | None:
    """What opens for a copy; None if it opens nothing."""
    if not copy.declaration.open:
        return None
    return KeyOpener(personal_places(project), project.settings.events.key, bootstrap)


class KeyOpener:
    """Opens with the keys of a log what was sealed for one of these places (topic, field).
    Connects when it is first asked, so that a log that is away is waited for as by delivery."""

    def __init__(
        self, places: Iterable[tuple[str, str]], secret: str | None, bootstrap: str
    ) -> None:
        self._places = list(places)
        self._secret = secret
        self._bootstrap = bootstrap
        self._log: Log | None = None
        self._keys: Keys | None = None
        self._looked_at = float("-inf")

    def close(self) -> None:
        if self._keys is not None:
            self._keys.close()
        if self._log is not None:
            self._log.close()
        self._keys = self._log = None

    def erased(self) -> frozenset[str]:
        keys = self._opened()
        assert self._log is not None
        now = self._log.clock.monotonic()
        if now >= self._looked_at + FOLLOW_SECONDS:
            keys.refresh()
            self._looked_at = now
        return keys.erased_tags

    def open(self, text: str) -> str | None:
        if not is_sealed(text):
            return text
        keys = self._opened()
        reason: EventUnreadableError | None = None
        for number, (topic, field) in enumerate(self._places):
            try:
                there, value = keys.unseal(topic, field, text)
            except EventUnreadableError as error:
                reason = reason or error
                continue
            if number:
                self._places.insert(0, self._places.pop(number))
            if not there or value is None:
                return None
            return value if isinstance(value, str) else encode_json(value).decode()
        raise SealedValueError(
            "a sealed value cannot be opened",
            detail="the project declares no personal field" if reason is None else reason.message,
            hint="the event topic it comes from must be declared in the project, with the field",
        ) from reason

    def _opened(self) -> Keys:
        if self._keys is None:
            self._log = self._log or connect(self._bootstrap)
            self._keys = Keys(self._log, self._secret)
        return self._keys
