"""The files of one stream: whose they are, where it began, what it leaves out.

    <directory>/<stream>/
        stream.json     {"stream", "inputs": [[topic, …], …], "wishes": ["earliest", …],
                         "starts": [offsets, …], "ids": [{topic: id}, …], "began_ms",
                         "queries": {topic: Spark's id of the query that writes it}}
        held.json       {"version", "skipped", "blocked", "letters": [those of this version]}
        checkpoint/     Spark's own; `checkpoint-<topic>` for further outputs

A file is replaced whole, flushed. Where a stream begins is written before Spark is started
(`beginnings`): "latest" would be another place by the time Spark asks for it, and Spark asks
again until the first batch is complete. An input is null there until its topic is known (a
view's is named by its ticks). Files of earlier versions have no wishes, ids and began_ms.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.files import FILES
from tailrace.pipelines.errors import CheckpointError, DiskFullError
from tailrace.pipelines.streams.beginnings import InputStart, Start
from tailrace.pipelines.streams.left_out import Held

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
    def started(self) -> bool:
        """Whether Spark has ever run it: then its checkpoint says where it is."""
        known = self._read("stream.json") or {}
        return bool(known.get("queries")) or self.checkpoint(self.stream).exists()

    def begin(
        self,
        inputs: Sequence[InputStart | None],
        resolve: Callable[[InputStart], Start],
        clock: Clock = SYSTEM,
    ) -> list[Start | None]:
        """Claim the directory for a stream of these inputs; where each of them begins.

        What is written down stays, whatever the log is like by now; only inputs that are not
        (None before, or declared otherwise while Spark has never run the stream) are resolved.
        """
        known = self._read("stream.json")
        if known is None:
            if self.checkpoint(self.stream).exists():
                raise CheckpointError(
                    f'nobody says whose checkpoint is in "{self.root}"',
                    detail=f"it has a checkpoint but no stream.json of {self.stream}",
                    hint=f"put the file back, or `tailrace pipeline reset {self.stream}`",
                )
            known = {"stream": self.stream, "inputs": [], "starts": [], "queries": {}}
        elif known["stream"] != self.stream:
            raise CheckpointError(
                f'the checkpoint of stream "{self.stream}" is that of "{known["stream"]}"',
                detail=f"so says {self.root / 'stream.json'}",
                hint=f"put the right one back, or `tailrace pipeline reset {self.stream}`",
            )
        given = [None if one is None else list(one.topics) for one in inputs]
        started = self.started
        if started and not _compatible(known["inputs"], given):
            raise CheckpointError(
                f'stream "{self.stream}" reads other topics than its checkpoint',
                detail=f"it read {_shown(known['inputs'])}, now {_shown(given)}",
                hint=f"`tailrace pipeline reset {self.stream}` begins anew with the new ones",
            )
        wishes = [None if one is None else one.wish for one in inputs]
        held = _held(known, given, None if started else wishes)
        found = [
            start if one is None or start is not None else resolve(one)
            for one, start in zip(inputs, held, strict=True)
        ]
        if found != _starts(known):
            topics = [
                now or before for now, before in zip(given, _inputs(known, given), strict=True)
            ]
            more = {"inputs": topics, "wishes": wishes, "began_ms": clock.wall_ms()}
            self._write("stream.json", {**known, **more, **_encoded(found)})
        return found

    def amend(self, starts: Sequence[Start | None]) -> None:
        """Begin elsewhere than was written down."""
        if self.starts() != list(starts):
            self._write("stream.json", {**(self._read("stream.json") or {}), **_encoded(starts)})

    def starts(self) -> list[Start | None]:
        """Where each input begins."""
        return _starts(self._read("stream.json") or {})

    def written(self) -> dict[str, Any] | None:
        """`stream.json` as it is; None before anything is written down."""
        return self._read("stream.json")

    def check_queries(self) -> None:
        """Refuse a checkpoint that Spark knows under another id than this stream's."""
        for topic, recorded in (self._read("stream.json") or {}).get("queries", {}).items():
            path = self.checkpoint(topic) / "metadata"
            found = _query_of(path)
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
            FILES.make_directories(self.root)
            FILES.write_whole(self.root / name, orjson.dumps(document))
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                raise disk_full(self.stream, str(self.root)) from problem
            raise


def _starts(document: Mapping[str, Any]) -> list[Start | None]:
    starts = document.get("starts") or []
    ids = document.get("ids") or [None] * len(starts)
    return [
        None if start is None else Start(orjson.loads(start), each or {})
        for start, each in zip(starts, ids, strict=True)
    ]


def _encoded(starts: Sequence[Start | None]) -> dict[str, list[Any]]:
    return {
        "starts": [None if one is None else one.encode() for one in starts],
        "ids": [None if one is None else one.ids for one in starts],
    }


def _inputs(document: Mapping[str, Any], given: Sequence[object]) -> list[Any]:
    """The topics written down, as many as there are inputs now."""
    known = list(document["inputs"])[: len(given)]
    return known + [None] * (len(given) - len(known))


def _held(
    document: Mapping[str, Any],
    given: Sequence[Sequence[str] | None],
    wishes: Sequence[str | None] | None,
) -> list[Start | None]:
    """What is written down of each of these inputs; with `wishes` (Spark has never run the
    stream) only of those that are declared as they were."""
    starts = _starts(document)[: len(given)]
    starts += [None] * (len(given) - len(starts))
    if wishes is None:
        return starts
    before = [*(document.get("wishes") or []), *[None] * len(given)]
    return [
        start if _same(topics, now) and (wish is None or then in (None, wish)) else None
        for start, topics, now, then, wish in zip(
            starts, _inputs(document, given), given, before, wishes, strict=False
        )
    ]


def _same(before: Sequence[str] | None, now: Sequence[str] | None) -> bool:
    """Whether an input reads what it read, as far as both are known. Earlier versions split a
    pattern at its commas."""
    return before is None or now is None or ",".join(before) == ",".join(now)


def _compatible(
    known: Sequence[Sequence[str] | None], given: Sequence[Sequence[str] | None]
) -> bool:
    return len(known) == len(given) and all(map(_same, known, given))


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


def _shown(inputs: Sequence[Sequence[str] | None]) -> str:
    return "; ".join("a view" if topics is None else ", ".join(topics) for topics in inputs)


def _query_of(path: Path) -> str:
    """The id in Spark's own file, which it renames into place without a sync."""
    try:
        return str(orjson.loads(path.read_bytes())["id"])
    except FileNotFoundError:
        return "none at all"
    except (ValueError, TypeError, KeyError):
        return "unknown: its file is damaged"
