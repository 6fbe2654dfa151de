"""Settings of single groups, by Kafka's names; kept in a file beside the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tailrace.broker.small_files import read_object, write_object
from tailrace.log.errors import InvalidConfigError
from tailrace.log.files import FILES, Files
from tailrace.log.settings import Setting

GROUP_SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("share.auto.offset.reset", "string", "latest", "Where a new share group starts.", choices=("earliest", "latest")),
        Setting("share.isolation.level", "string", "read_uncommitted", "Whether a share group gets records of open and aborted transactions.", choices=("read_committed", "read_uncommitted")),
        Setting("share.record.lock.duration.ms", "int", "30000", "How long a record is locked for the member that got it.", least=100),
        Setting("share.delivery.count.limit", "int", "5", "How often a record is delivered before it is given up.", least=1, most=100),
        Setting("share.session.timeout.ms", "int", "45000", "Silence after which a member is dropped.", least=1),
        Setting("share.heartbeat.interval.ms", "int", "5000", "How often members say something.", least=1),
        Setting("errors.deadletterqueue.topic.name", "string", "", "Topic for records that were rejected or delivered too often; none if empty."),
    )
}  # fmt: skip


# Settings of groups whose default is a setting of the broker.
BROKER_NAMES = {
    "share.record.lock.duration.ms": "group.share.record.lock.duration.ms",
    "share.delivery.count.limit": "group.share.delivery.count.limit",
    "share.session.timeout.ms": "group.share.session.timeout.ms",
    "share.heartbeat.interval.ms": "group.share.heartbeat.interval.ms",
}


class GroupSettings:
    """What was set for groups, over the defaults. A crash leaves the old or the new file."""

    def __init__(
        self,
        path: Path,
        default: Callable[[str], str] | None = None,
        files: Files = FILES,
    ) -> None:
        """`default` gives the broker's text of a setting in `BROKER_NAMES`."""
        self._files = files
        self._path = path
        self._default = default
        self._given: dict[str, dict[str, str]] = (
            read_object(
                path,
                "correct it; without the file, groups have the broker's settings",
                maybe_empty=True,
            )
            or {}
        )

    def text(self, group: str, name: str) -> str:
        found = self._given.get(group, {}).get(name)
        if found is not None:
            return found
        if self._default is not None and name in BROKER_NAMES:
            return self._default(BROKER_NAMES[name])
        return GROUP_SETTINGS[name].default

    def integer(self, group: str, name: str) -> int:
        return int(self.text(group, name))

    def given(self, group: str) -> Mapping[str, str]:
        """What was set for this group."""
        return self._given.get(group, {})

    @property
    def groups(self) -> list[str]:
        """Groups that have settings of their own."""
        return sorted(self._given)

    def change(
        self, group: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Set settings; None goes back to the default. Raises InvalidConfigError."""
        for name, value in changes.items():
            check(name, value)
        if validate_only:
            return
        kept = self._given.setdefault(group, {})
        for name, value in changes.items():
            if value is None:
                kept.pop(name, None)
            else:
                kept[name] = value
        if not kept:
            del self._given[group]
        write_object(self._path, self._given, self._files)


def check(name: str, value: str | None) -> None:
    """Raises InvalidConfigError for what no group can have."""
    setting = GROUP_SETTINGS.get(name)
    if setting is None:
        raise InvalidConfigError(f"unknown group setting {name}")
    if value is not None:
        setting.parse(value)
