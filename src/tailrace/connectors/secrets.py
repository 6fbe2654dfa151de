"""`${env:NAME}` and `${file:PATH}` in settings: read where a task starts, shown nowhere.

The topic of settings, REST answers and statuses hold the reference, never what it stands for; what
it stood for is masked in every text that a task reports. `${file:PATH:KEY}` is one line `KEY=value`
of a file, as of Kafka's FileConfigProvider.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tailrace.connectors.errors import ConnectorSettingError
from tailrace.masking import remember

_REFERENCE = re.compile(r"\$\{(env|file):([^}:]{1,1000})(?::([^}]{1,1000}))?\}")


def resolve(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with what they refer to. Raises ConnectorSettingError."""
    return {name: _REFERENCE.sub(_read, text) for name, text in settings.items()}


def hidden(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with stand-ins, for checks that must not read secrets."""
    return {name: _REFERENCE.sub("***", text) for name, text in settings.items()}


def refers(text: str) -> bool:
    return _REFERENCE.search(text) is not None


def _read(match: re.Match[str]) -> str:
    kind, name, key = match.groups()
    if kind == "env":
        found = os.environ.get(name if key is None else key)
        if found is None:
            raise ConnectorSettingError(
                f"the environment has no {name}",
                detail=f"a setting refers to {match[0]}",
                hint="set it where the worker starts",
            )
    else:
        found = _from_file(name, key, match[0])
    remember(found)
    return found


def _from_file(name: str, key: str | None, reference: str) -> str:
    try:
        text = Path(name).read_text()
    except (OSError, ValueError) as error:
        raise ConnectorSettingError(
            f"{name} cannot be read", detail=f"a setting refers to {reference}: {error}"
        ) from error
    if key is None:
        return text.rstrip("\r\n")
    for line in text.splitlines():
        before, equals, behind = line.partition("=")
        if equals and before.strip() == key:
            return behind.strip()
    raise ConnectorSettingError(f"{name} has no {key}", detail=f"a setting refers to {reference}")
