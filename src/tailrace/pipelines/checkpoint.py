"""The files of one stream: whose they are, where it began, what it leaves out.

    <directory>/<stream>/
        stream.json     {"stream", "inputs": [[topic, …], …], "starts": [offsets, …],
                         "queries": {topic: Spark's id of the query that writes it}}
        held.json       {"version", "skipped", "blocked", "letters": [those of this version]}
        checkpoint/     Spark's own; `checkpoint-<topic>` for further outputs

A file is replaced whole, flushed. Where a stream began is kept because Spark asks for the
start again until the first batch is complete, and "latest" would be another place by then.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tailrace.pipelines.errors import CheckpointError, DiskFullError
from tailrace.pipelines.held import Held

Letter = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HeldFile:
    """What is left out, and the letters that its newest version adds."""

    version: int = 0
    held: Held = field(default_factory=Held)
    letters: tuple[Letter, ...] = ()


class StreamFiles:
    """The directory of one stream."""

    def __init__(self, directory: Path, stream: str) -> None:
        self.stream = stream
        self.root = directory / stream

    def checkpoint(self, topic: str) -> Path:
        """Spark's checkpoint for one output."""
        return self.root / ("checkpoint" if topic == self.stream else f"checkpoint-{topic}")

    @property
    def begun(self) -> bool:
        return (self.root / "stream.json").exists()

    def begin(self, inputs: Sequence[Sequence[str]], starts: Sequence[str]) -> list[str]:
        """Claim the directory for a stream of these inputs; where each of them began."""
        known = self._read("stream.json")
        if known is None:
            if self.checkpoint(self.stream).exists():
                raise CheckpointError(
                    f'nobody says whose checkpoint is in "{self.root}"',
                    detail=f"it has a checkpoint but no stream.json of {self.stream}",
                    hint=f"put the file back, or `tailrace pipeline reset {self.stream}`",
                )
            self._write(
                "stream.json",
                {"stream": self.stream, "inputs": inputs, "starts": starts, "queries": {}},
            )
            return list(starts)
        if known["stream"] != self.stream:
            raise CheckpointError(
                f'the checkpoint of stream "{self.stream}" is that of "{known["stream"]}"',
                detail=f"so says {self.root / 'stream.json'}",
                hint=f"put the right one back, or `tailrace pipeline reset {self.stream}`",
            )
        if known["inputs"] != [list(one) for one in inputs]:
            raise CheckpointError(
                f'stream "{self.stream}" reads other topics than its checkpoint',
                detail=f"it read {_shown(known['inputs'])}, now {_shown(inputs)}",
                hint=f"`tailrace pipeline reset {self.stream}` begins anew with the new ones",
            )
        return [str(start) for start in known["starts"]]

    def starts(self) -> list[str]:
        """Where each input began, as JSON offsets."""
        return [str(start) for start in (self._read("stream.json") or {"starts": ()})["starts"]]

    def check_queries(self) -> None:
        """Refuse a checkpoint that Spark knows under another id than this stream's."""
        for topic, recorded in (self._read("stream.json") or {}).get("queries", {}).items():
            path = self.checkpoint(topic) / "metadata"
            found = orjson.loads(path.read_bytes())["id"] if path.exists() else "none at all"
            if found != recorded:
                raise CheckpointError(
                    f'the checkpoint of stream "{self.stream}" is not the one it wrote',
                    detail=f"{path.parent} is of query {found}, the stream's is {recorded}",
                    hint=f"put the right one back, or `tailrace pipeline reset {self.stream}`",
                )

    def record_query(self, topic: str, query: str) -> None:
        """Remember Spark's id of the query behind an output."""
        known = self._read("stream.json") or {}
        if known.get("queries", {}).get(topic) != query:
            known["queries"] = {**known.get("queries", {}), topic: query}
            self._write("stream.json", known)

    def batch_offsets(self, topic: str) -> tuple[list[Mapping[str, Any] | None], list[Any]] | None:
        """Of the batch that was last begun: where each source started (None: where the
        stream did) and ended. None if there is no such batch."""
        folder = self.checkpoint(topic) / "offsets"
        numbers = sorted(int(p.name) for p in folder.glob("*") if p.name.isdigit())
        if not numbers:
            return None
        ends = _offsets(folder / str(numbers[-1]))
        if len(numbers) > 1:
            return list(_offsets(folder / str(numbers[-2]))), list(ends)
        return [None] * len(ends), list(ends)

    def held(self) -> HeldFile:
        """What is left out now."""
        document = self._read("held.json")
        if document is None:
            return HeldFile()
        return HeldFile(
            document["version"], Held.decode(orjson.dumps(document)), tuple(document["letters"])
        )

    def hold(self, held: HeldFile) -> None:
        document = orjson.loads(held.held.encode())
        self._write(
            "held.json", {**document, "version": held.version, "letters": list(held.letters)}
        )

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.root / name
        if not path.exists():
            return None
        try:
            document: dict[str, Any] = orjson.loads(path.read_bytes())
        except ValueError as damaged:
            raise CheckpointError(
                f'"{path}" is damaged',
                detail=str(damaged),
                hint=f"put a good copy back, or `tailrace pipeline reset {self.stream}`",
            ) from damaged
        return document

    def _write(self, name: str, document: Mapping[str, Any]) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            draft = self.root / f"{name}.tmp"
            with draft.open("wb") as file:
                file.write(orjson.dumps(document))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.root / name)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                raise disk_full(self.stream, str(self.root)) from problem
            raise


def disk_full(stream: str, place: str) -> DiskFullError:
    return DiskFullError(
        f'no space is left for the checkpoint of stream "{stream}"',
        detail=place,
        hint="make room; the stream goes on from its last complete batch",
    )


def _offsets(path: Path) -> list[Any]:
    """The sources' offsets in one entry of Spark's offset log: a version, a line about the
    batch, then one line per source."""
    lines = path.read_text().splitlines()[2:]
    return [None if line == "-" else orjson.loads(line) for line in lines]


def _shown(inputs: Sequence[Sequence[str]]) -> str:
    return "; ".join(", ".join(topics) for topics in inputs)
