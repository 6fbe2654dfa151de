"""What is open in the processes of a reaction, told from its journal alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailrace.clock import to_datetime
from tailrace.facts.folding import fold
from tailrace.facts.processes import READER, Process, journal

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.reactions import Reaction


@dataclass(frozen=True, slots=True)
class OpenProcess:
    """One process, or one source partition (`process` is its name) that a fact has stopped."""

    reaction: str
    process: str
    stuck: bool
    state: Any
    commands: tuple[dict[str, Any], ...] = ()
    timers: tuple[dict[str, str], ...] = ()
    error: str = ""
    attempts: int = 0

    def as_dict(self) -> dict[str, Any]:
        first = self.commands[0] if self.commands else {}
        return {
            "reaction": self.reaction,
            "process": self.process,
            "stuck": self.stuck,
            "state": self.state,
            "command": first.get("command", ""),
            "attempts": self.attempts,
            "timers": list(self.timers),
            "error": self.error,
            "commands": list(self.commands),
        }


def look(log: Log, declared: Reaction, *, all: bool = False) -> Iterator[OpenProcess]:
    """The processes with commands or timers open, first those that are stuck; `all`: every
    process. And every source partition that a fact has stopped."""
    if log.topic(declared.topic) is None:
        return
    folded = fold(log, journal(declared))
    found: list[OpenProcess] = []
    for stream, (_, process) in folded.streams.items():
        if stream.startswith(READER):
            if process.trouble is not None and not _passed(process):
                trouble = process.trouble
                found.append(
                    OpenProcess(
                        declared.name, stream.removeprefix(READER), True, None,
                        error=f"{trouble.id}: {trouble.error}", attempts=trouble.attempts,
                    )
                )  # fmt: skip
        elif all or process.open or process.timers:
            found.append(_of(declared.name, stream, process))
    yield from sorted(found, key=lambda each: (not each.stuck, each.process))


def _passed(reader: Process) -> bool:
    """Whether a fact that failed was taken in since."""
    assert reader.trouble is not None
    return reader.read > int(reader.trouble.id.rpartition(":")[2])


def _of(reaction: str, key: str, process: Process) -> OpenProcess:
    first = process.open[0] if process.open else None
    return OpenProcess(
        reaction,
        key,
        first is not None and bool(first.error),
        process.state,
        tuple(
            {
                "id": each.id,
                "topic": each.topic,
                "command": each.command,
                "stream": each.stream,
                "arguments": each.arguments,
                "attempts": each.attempts,
                "error": each.error,
            }
            for each in process.open
        ),
        tuple(
            {"name": name, "due": to_datetime(timer.due).isoformat()}
            for name, timer in sorted(process.timers.items())
        ),
        "" if first is None else first.error,
        0 if first is None else first.attempts,
    )
