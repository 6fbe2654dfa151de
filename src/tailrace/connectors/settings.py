"""A worker's settings, under the names of Kafka Connect."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tailrace.connectors.config import Config, Setting
from tailrace.connectors.names import CONFIGS, OFFSETS, STATUSES, long_name
from tailrace.errors import UsageError


def _converter(value: object) -> str | None:
    known = value is None or long_name(str(value)) is not None
    return None if known else f"Class {value} could not be found."


KNOWN = Config(
    Setting("group.id", default="connect-cluster", help="The group of workers; those of one log with one name share their connectors."),
    Setting("config.storage.topic", default=CONFIGS, help="The topic of settings: one partition, compacted."),
    Setting("offset.storage.topic", default=OFFSETS, help="The topic of the sources' offsets."),
    Setting("offset.storage.partitions", int, default=25, least=1, help="Its partitions, where it is made."),
    Setting("status.storage.topic", default=STATUSES, help="The topic of states."),
    Setting("status.storage.partitions", int, default=5, least=1, help="Its partitions, where it is made."),
    Setting("key.converter", default=None, check=_converter, help="How keys become bytes: string, unless a connector prefers another."),
    Setting("value.converter", default=None, check=_converter, help="How values become bytes: json without schemas, unless a connector prefers another."),
    Setting("header.converter", default=None, check=_converter, help="How headers become bytes."),
    Setting("session.timeout.ms", int, default=10_000, least=6000, help="After how long without a sign of life a worker's tasks go to others."),
    Setting("heartbeat.interval.ms", int, default=500, least=50, help="How often a worker gives a sign of life."),
    Setting("rebalance.timeout.ms", int, default=20_000, least=1000, help="How long the group waits for its members to join again."),
    Setting("task.shutdown.graceful.timeout.ms", int, default=5000, least=0, help="How long a task may take to stop before its process is ended."),
    Setting("task.start.timeout.ms", int, default=60_000, least=1, help="When a start counts as hanging; a connector may set its own."),
    Setting("task.poll.timeout.ms", int, default=300_000, least=1, help="When a poll or put counts as hanging; a connector may set its own."),
    Setting("offset.flush.interval.ms", int, default=5000, least=1, help="How often a sink's offsets are committed, and the interval of transaction.boundary=interval."),
    Setting("rest.advertised.host.name", default=None, help="The host by which other workers reach this one."),
    Setting("rest.advertised.port", int, default=None, help="The port by which other workers reach this one."),
    Setting("state.directory", default=".tailrace/connect", help="Where Tailrace's own sources and sinks keep what they can make again; relative to where the worker starts."),
    Setting("plugin.path", list, default=[], help="Directories of plugins, as --plugins."),
)  # fmt: skip
_PREFIXES = ("key.converter.", "value.converter.", "header.converter.")


class WorkerSettings:
    """Settings that were given, and defaults for the rest."""

    def __init__(self, given: Mapping[str, str], plugins: Sequence[Path] = ()) -> None:
        for name in given:
            if name not in KNOWN and not name.startswith(_PREFIXES):
                near = difflib.get_close_matches(name, [each.name for each in KNOWN], n=1)
                raise UsageError(
                    f"a worker has no setting {name}",
                    hint=f"did you mean {near[0]}?"
                    if near
                    else "see `tailrace connect start --help`",
                )
        values = KNOWN.look(given)
        if wrong := [text for each in values for text in each.errors]:
            raise UsageError(wrong[0], detail="\n".join(wrong[1:]))
        self.given = dict(given)
        self._values: dict[str, Any] = {each.setting.name: each.value for each in values}
        self.plugins = [*plugins, *(Path(one) for one in self._values["plugin.path"])]
        for directory in self.plugins:
            if not directory.is_dir():
                raise UsageError(f"{directory} is no directory", hint="--plugins DIR holds modules")

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def texts(self) -> dict[str, str]:
        """For tasks: what was given, with the defaults they need."""
        named = ("offset.storage.topic", "offset.flush.interval.ms", "task.start.timeout.ms", "task.poll.timeout.ms", "group.id")  # fmt: skip
        own = {name: str(self._values[name]) for name in named}
        return {
            **own,
            **self.given,
            "state.directory": str(Path(self["state.directory"]).absolute()),
        }
