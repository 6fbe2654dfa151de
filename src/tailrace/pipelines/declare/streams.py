"""`tr.stream`: a function of DataFrames as a pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tailrace.pipelines.declare.checks import (
    as_names,
    as_targets,
    caller,
    check_kinds,
    checked_name,
    milliseconds,
    refused,
    repeated_name,
    require_one_of,
)
from tailrace.pipelines.declare.declarations import (
    ERROR_POLICIES,
    EVENTS,
    OUTPUT_MODES,
    STREAM_FORMATS,
    Input,
    Pattern,
    Percolation,
    Place,
    Stream,
    TableLike,
    Topic,
    View,
)

if TYPE_CHECKING:
    Frames: TypeAlias = Any
    """A DataFrame; for several outputs a tuple of them, or a dict by topic."""


def stream(
    *inputs: Input,
    name: str | None = None,
    key: str | Sequence[str] | Mapping[str, str | Sequence[str]] = (),
    output_mode: str = "append",
    trigger: str = "1 second",
    to: object | Iterable[object] = (),
    on_error: str = "dead",
    retries: int = 0,
    pause: str | int = "1 minute",
    timeout: str | int | None = None,
    limit: int | None = None,
    on_loss: str = "fail",
    format: str = "json",
) -> Callable[[Callable[..., Frames]], Stream]:
    """Declare a function of DataFrames as a pipeline; one parameter per input.

    Its rows go to the topic `name` (the function's name by default) as JSON, keyed by
    the columns in `key`; `output_mode` and `trigger` ("1 second", "available now") are
    Spark's. `to` takes sinks, and topics for further outputs: with one DataFrame they get
    the same rows; a function may also give a tuple of DataFrames, one per topic in `to` (or
    its own topic first), or a dict of them by topic name. `key` may then be a dict too.

    `on_error`: a record the function fails on goes to `<name>.dead` and the stream goes on
    ("dead"); all later records of its key wait there with it ("block"); or the stream stops
    ("stop"). Before that it is tried `retries` times more, `pause` apart, through
    `<name>.retry`. A batch that takes longer than `timeout` is stopped. `limit`: most
    records of an input in a batch. `on_loss`: "fail" or "continue" when retention has
    removed what was not read. `format="raw"` writes the columns key and value as they are.
    """
    place = caller()
    given = {name: value for name, value in locals().items() if name != "inputs"}
    check_kinds(place, "tr.stream", stream, given)
    if not inputs:
        raise refused(place, "a stream needs at least one input", "@tr.stream(tr.topic(…))")
    for number, one in enumerate(inputs, 1):
        _check_input(place, number, one)
    require_one_of(place, "output mode", output_mode, OUTPUT_MODES)
    if trigger != "available now":
        milliseconds(trigger, place, "trigger=")
    if limit is not None and limit < 1:
        raise refused(place, f"limit is at least 1, not {limit!r}", "limit=10_000")
    if retries < 0:
        raise refused(place, f"retries is at least 0, not {retries!r}", "retries=3")
    require_one_of(place, "policy for errors", on_error, ERROR_POLICIES)
    require_one_of(place, "policy for lost data", on_loss, ("fail", "continue"))
    require_one_of(place, "format", format, STREAM_FORMATS)
    targets = as_targets(to)
    topics = tuple(target for target in targets if isinstance(target, Topic))
    keys = {t: as_names(k) for t, k in key.items()} if isinstance(key, Mapping) else {}
    own = () if isinstance(key, Mapping) else as_names(key)
    for columns in (own, *keys.values()):
        if repeated := repeated_name(columns):
            raise refused(place, f"key= names {repeated!r} twice", 'key=["country", "day"]')
    if format == "raw" and any(columns != ("key",) for columns in (own, *keys.values()) if columns):
        raise refused(place, "raw records have their keys in the column key", 'key="key"')
    waited = None if timeout is None else milliseconds(timeout, place, "timeout=")
    if waited == 0:
        raise refused(place, "timeout= must be longer than nothing", 'timeout="10 minutes"')

    def declare(function: Callable[..., Frames]) -> Stream:
        code = inspect.unwrap(function).__code__
        where = Place(code.co_filename, code.co_firstlineno)
        chosen = checked_name(name or function.__name__, where)
        if wrong := _misfit_parameters(function, len(inputs)):
            raise refused(
                where, f'the function of stream "{chosen}" {wrong}', "one parameter per input"
            )
        if unknown := next((t for t in keys if t not in (chosen, *(o.name for o in topics))), None):
            raise refused(
                where,
                f'stream "{chosen}" has no output {unknown!r} for key=',
                f"its outputs are {', '.join([chosen, *(one.name for one in topics)])}",
            )
        return Stream(
            chosen,
            inputs,
            function,
            keys.get(chosen, own),
            output_mode,
            trigger,
            tuple(target for target in targets if not isinstance(target, Topic)),
            where,
            topics,
            keys,
            on_error,
            retries,
            milliseconds(pause, place, "pause="),
            waited,
            limit,
            on_loss,
            format,
        )

    return declare


def _misfit_parameters(function: Callable[..., Frames], inputs: int) -> str | None:
    """Why a function cannot be called with so many DataFrames."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return None  # one that does not say what it takes
    try:
        signature.bind(*range(inputs))
    except TypeError:
        takes = ", ".join(signature.parameters) or "nothing"
        return f"takes {takes}, and the stream has {inputs} input{'' if inputs == 1 else 's'}"
    return None


def _check_input(place: Place, number: int, given: object) -> None:
    if isinstance(given, Topic | View | Stream | Pattern | Percolation):
        return
    if getattr(given, "kind", None) in ("inserts", "changes", EVENTS):
        start = getattr(given, "start", "now")
        if start not in ("now", "snapshot"):
            raise refused(
                place,
                f"a stream cannot begin at {start!r} (input {number})",
                '.changes("now") or .changes("snapshot"); positions are for reading in Python',
            )
        return
    if isinstance(given, TableLike):
        raise refused(
            place,
            f"input {number} is a table, which changes: a stream reads its inserts or changes",
            ".inserts() or .changes() behind it",
        )
    raise refused(
        place,
        f"a stream cannot read {given!r} (input {number})",
        "a table's .inserts() or .changes(), tr.topic(…), tr.events(…), a view or another stream",
    )
