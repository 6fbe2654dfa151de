"""What the registry answers instead of what it was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.errors import TailraceError


class RegistryStoreError(TailraceError):
    """The topic `_schemas` cannot be used: it has several partitions, is not compacted, or the log
    does not take or give its records. The registry keeps its whole state in that topic."""

    code = "registry-store"


class Refusal(Exception):
    """An answer other than 200: Confluent's error code, whose first three digits are the status."""

    def __init__(
        self, code: int, message: str, *, hint: str = "", details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = tuple(details)

    @property
    def status(self) -> int:
        return int(str(self.code)[:3])


def subject_missing(subject: str) -> Refusal:
    return Refusal(40401, f"Subject '{subject}' not found.")


def version_missing(version: int) -> Refusal:
    return Refusal(40402, f"Version {version} not found.")


def schema_missing(number: int | str | None = None) -> Refusal:
    return Refusal(40403, "Schema not found" if number is None else f"Schema {number} not found")


def subject_soft_deleted(subject: str) -> Refusal:
    return Refusal(
        40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> Refusal:
    return Refusal(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. "
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently "
        "deleted",
    )


def config_missing(subject: str) -> Refusal:
    return Refusal(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def mode_missing(subject: str) -> Refusal:
    return Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def invalid_version(version: str) -> Refusal:
    return Refusal(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> Refusal:
    return Refusal(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode() -> Refusal:
    return Refusal(
        42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT"
    )


def not_permitted(message: str) -> Refusal:
    return Refusal(42205, message)


def referenced(subject: str, version: int, by: Sequence[str]) -> Refusal:
    return Refusal(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
        hint=f"first delete {', '.join(by[:5])}",
    )


def invalid_subject(subject: str) -> Refusal:
    return Refusal(42208, f"The specified subject '{subject}' is not a valid subject.")


def too_large() -> Refusal:
    return Refusal(
        42209,
        "Register operation failed because schema is too large",
        hint="no more than 900,000 bytes; split it, with references",
    )
