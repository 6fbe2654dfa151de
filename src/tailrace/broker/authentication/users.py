"""The users of a log: what is kept of their passwords, and how one is proved.

Kept in the journal of topics, as SCRAM's stored and server keys, never a password. A name that
is not known gets a credential that no password fits: always the same one, with the salt's length
and the iterations that most real ones have, so that who guesses names learns nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tailrace.broker.errors import UserError
from tailrace.log.store import Store
from tailrace.project_token import PROJECT_USER
from tailrace.wire.errors import ErrorCode
from tailrace.wire.scram import (
    FEWEST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    ScramCredential,
    make_credential,
)

LONGEST_NAME = 255
SALT_BYTES = 24
MOST_KNOWN = 10_000
STRONGEST = "SCRAM-SHA-512"


class Users:
    """Owns the credentials of a running broker, or of a log that no broker serves."""

    def __init__(self, store: Store, secret: bytes) -> None:
        self._store = store
        self._secret = secret
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        self._shapes: dict[str, Counter[tuple[int, int]]] = {
            mechanism: Counter() for mechanism in MECHANISMS
        }
        for name, kept in store.journal.catalogue.users.items():
            for mechanism, values in kept.items():
                self._put(name, mechanism, _from_json(mechanism, values))

    def __iter__(self) -> Iterator[tuple[str, list[ScramCredential]]]:
        """Every user, and the credentials in the order of the mechanisms."""
        for name in sorted({name for name, _ in self._credentials}):
            yield name, self.of(name)

    def __len__(self) -> int:
        return len({name for name, _ in self._credentials})

    def of(self, name: str) -> list[ScramCredential]:
        """What is kept of a user, by mechanism; nothing for one that is not known."""
        found = (self._credentials.get((name, mechanism)) for mechanism in MECHANISMS)
        return [each for each in found if each is not None]

    def credential(self, name: str, mechanism: str) -> ScramCredential | None:
        return self._credentials.get((name, mechanism))

    def decoy(self, name: str, mechanism: str) -> ScramCredential:
        """What an unknown user gets: nobody's."""
        shapes = self._shapes[mechanism].most_common(1)
        iterations, salt_bytes = shapes[0][0] if shapes else (FEWEST_ITERATIONS, SALT_BYTES)
        salt = hmac.digest(self._secret, f"salt {mechanism} {name}".encode(), "sha512")
        size = hashlib.new(MECHANISMS[mechanism]).digest_size
        return ScramCredential(
            mechanism, salt[:salt_bytes], os.urandom(size), os.urandom(size), iterations
        )

    def change(self, name: str, changes: Mapping[str, ScramCredential | None]) -> None:
        """Keep or remove (None) what is known of a user by mechanism; on disk on return.

        Raises UserError, StorageError.
        """
        check_name(name)
        for mechanism, credential in changes.items():
            if credential is None and (name, mechanism) not in self._credentials:
                raise UserError(
                    f"user {name} has no password for {mechanism}",
                    int(ErrorCode.RESOURCE_NOT_FOUND),
                )
        self._store.change_user(
            name,
            {one: None if each is None else _as_json(each) for one, each in changes.items()},
        )
        for mechanism, credential in changes.items():
            self._put(name, mechanism, credential)

    def remove(self, name: str) -> None:
        """Forget a user. Raises UserError if there is none."""
        kept = self.of(name)
        if not kept:
            raise UserError(f"there is no user {name}", int(ErrorCode.RESOURCE_NOT_FOUND))
        self.change(name, {each.mechanism: None for each in kept})

    def _put(self, name: str, mechanism: str, credential: ScramCredential | None) -> None:
        before = self._credentials.pop((name, mechanism), None)
        if before is not None:
            self._shapes[mechanism][_shape(before)] -= 1
        if credential is not None:
            self._credentials[name, mechanism] = credential
            self._shapes[mechanism][_shape(credential)] += 1


class NobodyElse(Users):
    """No user is known, but unknown ones look as they do elsewhere: for the project's listener."""

    def __init__(self, users: Users) -> None:
        self._secret = users._secret
        self._credentials = {}
        self._shapes = users._shapes


class Passwords:
    """Proves passwords sent in the clear, for PLAIN. Deriving a key takes a millisecond or ten;
    a password that was right is remembered by a keyed hash, so that the next log-in takes none."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._right: dict[bytes, ScramCredential] = {}

    def known(self, credential: ScramCredential, password: bytes) -> bool:
        """Whether this password has been right for this very credential; costs nothing."""
        return self._right.get(self._hash(credential, password)) is credential

    def check(self, credential: ScramCredential, password: bytes) -> bool:
        """Safe on any thread."""
        made = make_credential(
            credential.mechanism, password, salt=credential.salt, iterations=credential.iterations
        )
        right = hmac.compare_digest(made.stored_key, credential.stored_key)
        if right:
            if len(self._right) >= MOST_KNOWN:
                self._right.clear()
            self._right[self._hash(credential, password)] = credential
        return right

    def _hash(self, credential: ScramCredential, password: bytes) -> bytes:
        return hmac.digest(self._key, credential.salt + password, "sha256")


def check_name(name: str) -> None:
    """Raise UserError unless somebody may have this name."""
    if name == PROJECT_USER:
        raise UserError(f"{name} is the project itself", int(ErrorCode.UNACCEPTABLE_CREDENTIAL))
    if not name or len(name) > LONGEST_NAME or any(ord(each) < 32 for each in name):
        raise UserError(
            "a user needs a name of up to 255 characters",
            int(ErrorCode.UNACCEPTABLE_CREDENTIAL),
        )


def check_iterations(iterations: int) -> None:
    """Raise UserError unless Kafka would take this number."""
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise UserError(
            f"the iterations are {'too few' if iterations < FEWEST_ITERATIONS else 'too many'}",
            int(ErrorCode.UNACCEPTABLE_CREDENTIAL),
            detail=f"from {FEWEST_ITERATIONS} to {MOST_ITERATIONS} are accepted",
        )


def _shape(credential: ScramCredential) -> tuple[int, int]:
    return credential.iterations, len(credential.salt)


def _as_json(credential: ScramCredential) -> dict[str, object]:
    return {
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
        "iterations": credential.iterations,
    }


def _from_json(mechanism: str, values: Mapping[str, Any]) -> ScramCredential:
    return ScramCredential(
        mechanism,
        base64.b64decode(values["salt"]),
        base64.b64decode(values["stored_key"]),
        base64.b64decode(values["server_key"]),
        int(values["iterations"]),
    )
