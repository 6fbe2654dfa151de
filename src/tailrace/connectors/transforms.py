"""Transforms: functions from a record to a record, or to None, which drops it.

    transforms=mask,route
    transforms.mask.type=my_transforms:mask
    transforms.mask.fields=password

    def mask(record, settings):
        return record.replace(value={**record.value, settings["fields"]: "***"})

The module is one of the directory of plugins, or any that can be imported. A class is made once, with
its settings, and called with the record alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeVar

from tailrace.connectors.base import SinkRecord, SourceRecord
from tailrace.connectors.converters import behind
from tailrace.connectors.errors import ConnectorSettingError

R = TypeVar("R", SourceRecord, SinkRecord)
Transform = Callable[[R], R | None]


def place(path: str) -> tuple[str, str] | None:
    """Module and function of `module:function` or `module.function`; None for Java's classes."""
    module, mark, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if not (module and mark and attribute) or "$" in path or path.startswith("org.apache."):
        return None
    return module, attribute


def make(settings: Mapping[str, str]) -> list[tuple[str, Callable[..., object]]]:
    """The transforms of a connector, in order, each with its name."""
    found: list[tuple[str, Callable[..., object]]] = []
    names = [one.strip() for one in settings.get("transforms", "").split(",") if one.strip()]
    for name in names:
        own = behind(settings, f"transforms.{name}.")
        path = own.pop("type", "")
        found_at = place(path)
        if found_at is None:
            raise ConnectorSettingError(
                f"transforms.{name}.type is {path!r}",
                detail="a transform is a function of yours; Kafka's own transforms are Java classes",
                hint=f"transforms.{name}.type=module:function",
            )
        module, attribute = found_at
        try:
            function = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConnectorSettingError(
                f"there is no transform {path}", detail=str(error)
            ) from error
        if isinstance(function, type):
            found.append((path, function(own)))
        else:
            found.append((path, lambda record, call=function, own=own: call(record, own)))
    return found
