"""What can go wrong between a decision and its fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.errors import TailraceError

if TYPE_CHECKING:
    from collections.abc import Mapping


class EventsError(TailraceError):
    """Something about events failed."""

    code = "events"


class Rejected(EventsError):
    """A command said no: `raise tr.Rejected("not enough money", code="overdrawn")`. Nothing of
    it is in the log. `code` is the command's own; "rejected" where it gives none."""

    code = "rejected"

    def __init__(
        self, message: str, *, code: str = "rejected", detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.code = code  # type: ignore[misc]  # the one error whose code its user chooses


class Reserved(Rejected):
    """The key is taken: every seat of it is held, and none has run out. Wait until the hold ends,
    take another key, or claim with `wait=True` to stand in line."""

    code = "reserved"

    def __init__(self, message: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(message, code="reserved", detail=detail, hint=hint)


class SubjectErasedError(Rejected):
    """A command would write personal fields of a subject that was erased. An erased subject never
    gets a key again: not through new commands, not through replays. `tailrace erase list` says
    when it was erased and why."""

    code = "subject-erased"

    def __init__(self, message: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(message, code="subject-erased", detail=detail, hint=hint)


class EventsDeclarationError(EventsError):
    """An event topic is declared wrongly: a type without a case in `evolve`, a field that
    cannot be written as JSON, two types of one name, arguments that cannot be. The detail names
    the line."""

    code = "events-declaration"


class VersionConflictError(EventsError):
    """The stream is not at the version the caller expected: another command came between. Read
    the state again and decide anew. `expected` and `actual` are the versions."""

    code = "version-conflict"
    expected: int = -1
    actual: int = -1


class AppendConditionError(VersionConflictError):
    """An event that matches the condition `unless=` stands behind the position the caller read
    up to. Read again and decide anew."""

    code = "condition-failed"


class OwnerMissingError(EventsError):
    """No process owns the partition of this stream, or its owner did not take the command in
    time. Nothing was written. Start one: `tailrace up`, or a program that opens the event topic
    with `owns=True`."""

    code = "owner-missing"


class OutcomeUnknownError(EventsError):
    """The command may or may not have been carried out: the connection to its owner or to the
    log was lost before the answer. Repeat it with the same id (`id` of this error): it is carried
    out once, and a repeat gets the first answer."""

    code = "outcome-unknown"
    id: str = ""


class EventUnknownError(EventsError):
    """The log holds an event this code does not know: another version of the program wrote it.
    An unknown type stops its stream alone. A newer version of a known type is told when the topic
    is opened, before the first command: this deployment is older than the log."""

    code = "event-unknown"


class EventUnreadableError(EventsError):
    """The value of an event does not fit its class, though its version says that it should. It
    stops its stream alone. Was a field added without `@events.upcast`?"""

    code = "event-unreadable"


class UpcastMissingError(EventsError):
    """An event was written in an older version of its type and there is no way from there to
    today's: a `@events.upcast("Type", N)` is missing."""

    code = "upcast-missing"


class EventsTooLargeError(EventsError):
    """The events of one command are written as a whole, and these are together larger than the
    topic takes (`max.message.bytes`). Keep large objects elsewhere and write their address."""

    code = "events-too-large"


class CommandFailedError(EventsError):
    """A command raised an exception that is no `tr.Rejected`. It failed alone; nothing of it is
    in the log."""

    code = "command-failed"


class CommandResultError(EventsError):
    """A command returned something that is no event of its topic, no list of them and not
    None. Nothing was written."""

    code = "command-result"


class CommandUnknownError(EventsError):
    """The event topic has no command of this name."""

    code = "command-unknown"


class CommandArgumentsError(EventsError):
    """The arguments do not fit the command: one is missing, unknown or of another type."""

    code = "command-arguments"


class CommandIdReusedError(EventsError):
    """The command id belongs to another command, or to the same one on another stream. An id
    stands for one decision; give every new one its own."""

    code = "command-id-reused"


class EvolveFailedError(EventsError):
    """`evolve` raised an exception. The stream has no state, so no command can be decided on
    it; others go on. Correct `evolve`: the events are as they were."""

    code = "evolve-failed"


class EventsDifferError(EventsError):
    """Two processes that share an event topic have different declarations of it: types, their
    versions or fields, partitions or tags. Deploy one of them everywhere. The detail names the
    difference."""

    code = "events-differ"


class EventsIncompatibleError(EventsError):
    """The class of an event has changed in a way that the schema registry does not allow under the
    subject of its type and version."""

    code = "events-incompatible"


class PartitionLostError(EventsError):
    """This process does not own the partition any more: another one has taken it over. The
    command is routed again; this error is seen only where nobody else is there."""

    code = "partition-lost"


class EventsKeyError(EventsError):
    """Personal fields are sealed, and `events.key` is missing, too short, or not the one with which
    this log's keys are wrapped. It is kept outside the log: give every process of the project the
    same, and keep a copy."""

    code = "events-key"


class SourceReplacedError(EventsError):
    """A source of a reaction ends before what the reaction has read of it: it was deleted and made
    again, or the log has lost records. What a process remembers of its offsets means nothing
    there. Give the reaction another name, so that it begins anew."""

    code = "source-replaced"


class SubjectUnknownError(EventsError):
    """Nothing is sealed for this subject: no event of it was written, or its name is another."""

    code = "subject-unknown"


class ErasureUnknownError(EventsError):
    """There is no erasure of this id."""

    code = "erasure-unknown"


class ErasureRefusedError(EventsError):
    """These records cannot be erased: Apache Kafka does not rewrite its segments, and what the log
    itself goes by stays."""

    code = "erasure-refused"


class RecordsMissingError(EventsError):
    """There is no record at this position, or none with this key."""

    code = "records-missing"


class EventsClosedError(EventsError):
    """The event topic was closed in this program."""

    code = "events-closed"


_BY_CODE: dict[str, type[EventsError]] = {}


def from_parts(parts: Mapping[str, str]) -> EventsError:
    """The error another process told, as the same type."""
    if not _BY_CODE:
        _BY_CODE.update({kind.code: kind for kind in _kinds(EventsError)})
    code = parts.get("code", "rejected")
    kind = _BY_CODE.get(code)
    said = {name: parts.get(name, "") for name in ("detail", "hint")}
    if parts.get("rejected"):  # its code is its user's, and may be one of ours
        if kind is Reserved or kind is SubjectErasedError:
            return kind(parts["error"], **said)
        return Rejected(parts["error"], code=code, **said)
    if kind is None or issubclass(kind, Rejected):
        unknown = EventsError(parts["error"], **said)
        unknown.code = code  # type: ignore[misc]  # told by its owner: of the log, or newer
        return unknown
    error = kind(parts["error"], **said)
    if isinstance(error, VersionConflictError):
        error.expected = int(parts.get("expected", "-1"))
        error.actual = int(parts.get("actual", "-1"))
    if isinstance(error, OutcomeUnknownError):
        error.id = parts.get("id", "")
    return error


def to_parts(error: TailraceError) -> dict[str, str]:
    """The opposite of `from_parts`."""
    parts = error.as_dict()
    if isinstance(error, Rejected):
        parts["rejected"] = "yes"
    if isinstance(error, VersionConflictError):
        parts |= {"expected": str(error.expected), "actual": str(error.actual)}
    if isinstance(error, OutcomeUnknownError):
        parts["id"] = error.id
    return parts


def _kinds(kind: type[EventsError]) -> list[type[EventsError]]:
    return [kind, *(found for each in kind.__subclasses__() for found in _kinds(each))]
