"""Which limit holds for whom: entities, their values, and Kafka's order of precedence.

An entity names a user, a client id or both; `DEFAULT` stands for everyone who has no
entry of their own. A pure value: the broker's journal keeps what is set here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tailrace.broker.errors import InvalidQuotaError

PRODUCER_BYTES = "producer_byte_rate"
CONSUMER_BYTES = "consumer_byte_rate"
REQUEST_SHARE = "request_percentage"
MUTATIONS = "controller_mutation_rate"
KEYS = (PRODUCER_BYTES, CONSUMER_BYTES, REQUEST_SHARE, MUTATIONS)
WHOLE = (PRODUCER_BYTES, CONSUMER_BYTES)

USER, CLIENT_ID = "user", "client-id"
DEFAULT = ""  # no user or client id is empty

_EPSILON = 1e-6


class Entity(NamedTuple):
    """Whom a quota is for. None: this part does not matter; `DEFAULT`: all the others."""

    user: str | None = None
    client_id: str | None = None

    @classmethod
    def of(cls, parts: Iterable[tuple[str, str | None]]) -> Entity:
        """From pairs as requests carry them, where a null name is the default."""
        found: dict[str, str] = {}
        for kind, name in parts:
            if kind not in (USER, CLIENT_ID):
                raise InvalidQuotaError(
                    f"no quotas for {kind or 'nothing'} here",
                    hint="quotas are per user and client-id",
                )
            if kind in found:
                raise InvalidQuotaError(f"the entity names {kind} twice")
            if name == "":
                raise InvalidQuotaError(f"an empty {kind} cannot have a quota")
            found[kind] = DEFAULT if name is None else name
        if not found:
            raise InvalidQuotaError("the quota is for nobody")
        return cls(found.get(USER), found.get(CLIENT_ID))

    def parts(self) -> list[tuple[str, str | None]]:
        """As requests carry them."""
        named = ((USER, self.user), (CLIENT_ID, self.client_id))
        return [(kind, name or None) for kind, name in named if name is not None]


class Limit(NamedTuple):
    """A limit and who shares it: clients with the same `holder` are counted together."""

    value: float
    holder: tuple[str, str]


class QuotaTable:
    """All quotas of a broker."""

    def __init__(self, entries: Iterable[tuple[Entity, Mapping[str, float]]] = ()) -> None:
        self._entries: dict[Entity, dict[str, float]] = {
            entity: dict(values) for entity, values in entries if values
        }

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(self._entries.items())

    def values(self, entity: Entity) -> Mapping[str, float]:
        """What is set for exactly this entity."""
        return self._entries.get(entity, {})

    def limits(self, key: str) -> bool:
        """Whether anybody has a quota of this kind."""
        return any(key in values for values in self._entries.values())

    def changed(self, entity: Entity, changes: Mapping[str, float | None]) -> dict[str, float]:
        """The entity's values after `changes` (None removes); raises InvalidQuotaError."""
        values = dict(self.values(entity))
        for key, value in changes.items():
            if key not in KEYS:
                raise InvalidQuotaError(
                    f"there is no quota {key}", hint=f"there are {', '.join(KEYS)}"
                )
            if value is None:
                values.pop(key, None)
                continue
            if not 0 < value < float("inf"):
                raise InvalidQuotaError(f"{key} must be greater than 0")
            if key in WHOLE:
                if abs(int(value + _EPSILON) - value) > _EPSILON:
                    raise InvalidQuotaError(f"{key} must be a whole number, not {value}")
                value = float(int(value + _EPSILON))
            values[key] = value
        return values

    def set(self, entity: Entity, values: Mapping[str, float]) -> None:
        """Replace an entity's values; none removes it."""
        if values:
            self._entries[entity] = dict(values)
        else:
            self._entries.pop(entity, None)

    def find(
        self, exact: Mapping[str, str], specified: Iterable[str], *, strict: bool
    ) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        """Entities whose parts are as `exact` says and that have the parts `specified`;
        strictly, no others."""
        wanted = list(specified)
        for entity, values in self._entries.items():
            parts = {kind: name or DEFAULT for kind, name in entity.parts()}
            if strict and len(parts) != len(exact) + len(wanted):
                continue
            if all(kind in parts and parts[kind] == name for kind, name in exact.items()) and all(
                kind in parts for kind in wanted
            ):
                yield entity, values

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The limit that holds, the most special first, as Kafka orders them."""
        entries = self._entries
        for owner in (user, DEFAULT):
            for client in (client_id, DEFAULT):
                found = entries.get(Entity(owner, client))
                if found is not None and key in found:
                    return Limit(found[key], (user, client_id))
            found = entries.get(Entity(owner))
            if found is not None and key in found:
                return Limit(found[key], (user, ""))
        for client in (client_id, DEFAULT):
            found = entries.get(Entity(None, client))
            if found is not None and key in found:
                return Limit(found[key], ("", client_id))
        return None
