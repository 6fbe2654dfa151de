"""Where streams begin, written down before Spark is started.

A stream "from now on" begins where the log stands when `up` first runs its declaration.
Spark takes seconds to start, and may be killed while it does: so the place is resolved to
offsets and kept in the stream's own file (`checkpoint`) before sources and Spark run. The
first start uses it, however late it is. Topics and partitions that do not exist then are
read from their first record.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.declare import EVENTS, Pattern, Percolation, Stream, Topic, View
from tailrace.pipelines.errors import DeclarationError, PipelineError

if TYPE_CHECKING:
    from tailrace.pipelines.reading.ranges import LogRanges

log = logging.getLogger(__name__)

Wish = Literal["earliest", "latest"]
DIRECTORY = "streams"  # below the project's state
PATIENCE_SECONDS = 10.0  # with a log that does not answer


@dataclass(frozen=True, slots=True)
class InputStart:
    """What one input reads, and where its declaration lets it begin."""

    topics: tuple[str, ...]  # one regular expression, if `pattern`
    wish: Wish
    pattern: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """The first offset to read of each partition, and which topics those are.

    A partition that is not named is read from its first record.
    """

    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        """The offsets as readers take them."""
        return orjson.dumps(self.offsets).decode()


@dataclass(frozen=True, slots=True)
class Beginning:
    """A stream whose start is to be written down. None: a view, whose topic its ticks name;
    it is read from its beginning."""

    stream: str
    inputs: tuple[InputStart | None, ...]


def retry_topic(stream: str) -> str:
    """The topic of records that a stream reads again."""
    return f"{stream}.retry"


def beginning_of(stream: Stream | Pattern | Percolation) -> Beginning:
    """What a declaration says about where a stream, a pattern or a percolation begins."""
    if isinstance(stream, Pattern | Percolation):
        wish: Wish = "earliest"
        if getattr(stream.input, "kind", None) == "inserts" and not stream.copied:
            wish = "latest"
        return Beginning(stream.name, (InputStart((stream.input.topic,), wish),))
    return Beginning(stream.name, tuple(_input(stream, one) for one in stream.inputs))


def wish_of(stream: Stream, given: object) -> Wish:
    """Where an input begins: with all the log has, or with what comes from now on."""
    start = getattr(given, "start", "now")
    if getattr(given, "kind", None) == "changes" and start not in ("now", "snapshot"):
        raise DeclarationError(
            f'stream "{stream.name}" cannot begin at {start!r}',
            detail=f"declared at {stream.declared_at}",
            hint='.changes("now") or .changes("snapshot"); positions are for reading in Python',
        )
    if isinstance(given, Topic | Stream | View | Pattern | Percolation) or (
        getattr(given, "kind", None) == EVENTS
    ):
        return "earliest"
    return "earliest" if getattr(given, "snapshot", False) or start == "snapshot" else "latest"


def _input(stream: Stream, given: object) -> InputStart | None:
    if isinstance(given, View):
        return None
    if isinstance(given, Topic) and given.pattern is not None:
        return InputStart((given.pattern,), "earliest", pattern=True)
    topic = getattr(given, "topic", None)
    return None if topic is None else InputStart((str(topic),), wish_of(stream, given))


def resolve(ranges: LogRanges, stream: str, wanted: InputStart) -> Start:
    """A wish as offsets, as the log is now.

    What an earlier life of the stream left in its retry topic is passed over: the records
    are read again where they came from.
    """
    names = ranges.matching(wanted.topics[0]) if wanted.pattern else ranges.named(wanted.topics)
    bounds = ranges.bounds(names)
    offsets = {
        topic: {
            str(partition): first if wanted.wish == "earliest" else end
            for partition, (first, end) in by.partitions.items()
        }
        for topic, by in bounds.items()
    }
    for topic, by in ranges.bounds(ranges.named([retry_topic(stream)])).items():
        offsets[topic] = {str(partition): end for partition, (_, end) in by.partitions.items()}
    return Start(offsets, {topic: by.id for topic, by in bounds.items()})


def record(
    directory: Path, bootstrap: str, streams: Iterable[Beginning], clock: Clock = SYSTEM
) -> None:
    """Write down where these streams begin, those that it is not known of yet.

    Done when it returns, whatever happens afterwards. A stream whose files are not in order
    is passed over: its own start says what is wrong with them. Raises ClientError if the
    log does not answer.
    """
    from tailrace.pipelines.reading.ranges import LogRanges
    from tailrace.pipelines.streams.checkpoint import StreamFiles

    wanted = list(streams)
    if not wanted:
        return
    with contextlib.closing(LogRanges(bootstrap, timeout=PATIENCE_SECONDS)) as ranges:
        for one in wanted:
            files = StreamFiles(directory / DIRECTORY, one.stream)
            place = partial(resolve, ranges, one.stream)
            try:
                files.begin(one.inputs, place, clock)
            except PipelineError as problem:
                facts = {"stream": one.stream, **problem.as_dict()}
                log.warning("where a stream begins is not written down", extra=facts)
