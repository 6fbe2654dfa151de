"""The connectors a worker knows, and what is right and wrong with settings for them.

The worker imports none of them: descriptions come from processes of their own (`asked`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace import __version__
from tailrace.connectors import converters
from tailrace.connectors.children import ask
from tailrace.connectors.common import TIMES, common, groups
from tailrace.connectors.config import Value
from tailrace.connectors.errors import ConnectorError, Refused
from tailrace.connectors.names import TASK_CLASSES, short_class
from tailrace.connectors.plugins import modules
from tailrace.connectors.secrets import refers
from tailrace.connectors.transforms import place

log = logging.getLogger(__name__)
ASK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Described:
    """A connector's class. `where` is `module:Class`, `name` what users write."""

    name: str
    where: str
    kind: str
    version: str
    defaults: Mapping[str, str]
    definitions: tuple[Mapping[str, Any], ...]

    @property
    def task_class(self) -> str:
        return TASK_CLASSES.get(self.name) or f"{self.name}.Task"


class Catalogue:
    """Safe from several threads."""

    def __init__(self, directories: Sequence[Path], worker: Mapping[str, str]) -> None:
        self.directories = [str(one.absolute()) for one in directories]
        self._worker = worker
        self._lock = threading.Lock()
        self._known: dict[str, Described] = {}
        self._seen: dict[tuple[str, str], float] = {}
        self.failures: dict[str, dict[str, str]] = {}

    def start(self) -> None:
        """Ask what comes along, and every plugin."""
        for one in ask({"ask": "built-in", "plugins": []}, "the built-in connectors", ASK_SECONDS)["connectors"]:  # fmt: skip
            self._take(one)
        self.look_again()

    def look_again(self) -> None:
        """Plugins that are new, or changed, since they were asked."""
        for directory, module in modules(self.directories):
            changed = _changed_at(directory, module)
            if self._seen.get((directory, module)) == changed:
                continue
            self._seen[directory, module] = changed
            question = {"ask": "describe", "plugins": self.directories, "module": module}
            try:
                found = ask(question, f"the plugin {module}", ASK_SECONDS)["connectors"]
            except ConnectorError as error:
                # One bad plugin does not keep the others from running.
                self.failures[module] = error.as_dict()
                log.warning("a plugin cannot be used", extra={"plugin": module, "error": error.render()})  # fmt: skip
                continue
            self.failures.pop(module, None)
            for one in found:
                self._take(one)

    def _take(self, one: Mapping[str, Any]) -> None:
        with self._lock:
            self._known[one["class"]] = Described(
                one["class"], one["where"], one["type"], one["version"], one["defaults"],
                tuple(one["definitions"]),
            )  # fmt: skip

    def listed(self) -> list[Described]:
        with self._lock:
            return sorted(self._known.values(), key=lambda one: (one.kind, one.name))

    def find(self, name: str) -> Described | None:
        """A connector by its class, with or without its module and the ending Connector."""
        found = self._find(name)
        if found is None:
            self.look_again()
            found = self._find(name)
        return found

    def _find(self, name: str) -> Described | None:
        with self._lock:
            if name in self._known:
                return self._known[name]
            fitting = [
                one
                for one in self._known.values()
                if name == one.where or name in short_class(one.name)
            ]
        return fitting[0] if len(fitting) == 1 else None

    def of(self, settings: Mapping[str, str]) -> Described:
        """The class that settings name. Raises Refused in Kafka Connect's words."""
        name = settings.get("connector.class")
        if not name:
            shown = ", ".join(f"{key}={_shown(text)}" for key, text in settings.items())
            raise Refused(400, f"Connector config {{{shown}}} contains no connector type")
        found = self.find(name)
        if found is None:
            known = ", ".join(one.name for one in self.listed())
            raise Refused(
                400,
                f"Failed to find any class that implements Connector and which name matches {name}, "
                f"available connectors are: {known}" + self._failed(),
            )
        return found

    def _failed(self) -> str:
        if not self.failures:
            return ""
        first, error = next(iter(sorted(self.failures.items())))
        return f" (the plugin {first} cannot be used: {error['error']} {error['detail']})".rstrip()

    def definitions(self, one: Described) -> list[Mapping[str, Any]]:
        """What `GET /connector-plugins/NAME/config` lists."""
        found = list(one.definitions)
        own = {each["name"] for each in found}
        for each in common(one.kind):
            if each.name not in own:
                definition = each.definition()
                if each.name == "connector.plugin.version":
                    definition["default_value"] = one.version
                found.append(definition)
        return found

    def validate(self, settings: Mapping[str, str], name: str) -> dict[str, Any]:
        """Every setting with its value and what is wrong with it, as Kafka Connect answers it."""
        one = self.of(settings)
        known = {value.setting.name: value for value in common(one.kind).look(self._readable(settings))}  # fmt: skip
        if one.kind == "sink":
            known |= _topics(known, settings)
        own = self._own(one, settings)
        listed: list[dict[str, Any]] = []
        for setting, value in known.items():
            if setting in own:
                continue  # the connector says it differently
            listed.append(self._row(one, value, settings))
        for each in one.definitions:
            found = own.get(each["name"], {"value": None, "errors": []})
            listed.append(_row(each, found["value"], found["errors"]))
        declared = {each["definition"]["name"] for each in listed}
        for setting, found in own.items():
            if setting not in declared and found["errors"]:
                listed.append(_row(_undeclared(setting), found["value"], found["errors"]))
        times = TIMES.look({key: text for key, text in settings.items() if key in TIMES})
        listed += [
            _row(value.setting.definition(), value.shown, list(value.errors))
            for value in times
            if value.errors
        ]
        names = [each.strip() for each in settings.get("transforms", "").split(",") if each.strip()]
        for transform in names:
            setting = f"transforms.{transform}.type"
            text = settings.get(setting)
            wrong = [] if text and place(text) else [
                f"Invalid value {text or 'null'} for configuration {setting}: must be module:function"
            ]  # fmt: skip
            listed.append(_row(_undeclared(setting, f"Transforms: {transform}"), text, wrong))
        more = [f"Transforms: {each}" for each in names]
        return {
            "name": name,
            "error_count": sum(len(each["value"]["errors"]) for each in listed),
            "groups": [*groups(one.kind), *more],
            "configs": listed,
        }

    def _readable(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings without those that refer to secrets, whose values only a task sees."""
        return {
            name: text
            for name, text in settings.items()
            if not refers(text) or name in ("name", "connector.class")
        }

    def _own(self, one: Described, settings: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        question = {"ask": "look", "plugins": self.directories, "where": one.where, "settings": dict(settings)}  # fmt: skip
        try:
            found: dict[str, dict[str, Any]] = ask(question, f"{one.name}.check()", ASK_SECONDS)["values"]  # fmt: skip
        except ConnectorError as error:
            raise Refused(500, error.render()) from error
        return found

    def _row(self, one: Described, value: Value, settings: Mapping[str, str]) -> dict[str, Any]:
        setting = value.setting
        definition = setting.definition()
        shown, recommended = value.shown, list(setting.recommended)
        if setting.name in settings and refers(settings[setting.name]):
            shown = settings[setting.name]
        if setting.name == "connector.plugin.version":
            definition["default_value"] = one.version
            shown, recommended = one.version, [one.version]
        part = setting.name.partition(".")[0]
        if setting.name.endswith(".converter"):
            name = converters.chosen({}, one.defaults, self._worker)[part][0]
            definition["default_value"] = converters.class_name(name)
            if setting.name not in settings:
                shown = converters.class_name(name)
        if setting.name.endswith(".converter.plugin.version"):
            definition["default_value"] = __version__
            shown, recommended = shown or __version__, [__version__]
        return _row(definition, shown, list(value.errors), recommended)

    def check(self, settings: Mapping[str, str], name: str) -> Described:
        """Refuse settings that cannot work, as Kafka Connect does."""
        one = self.of(settings)
        judged = self.validate(settings, name)
        if judged["error_count"]:
            errors = [text for each in judged["configs"] for text in each["value"]["errors"]]
            raise Refused(
                400,
                f"Connector configuration is invalid and contains the following {len(errors)} "
                "error(s):\n" + "\n".join(errors) + "\nYou can also find the above list of errors "
                "at the endpoint `/connector-plugins/{connectorType}/config/validate`",
            )
        return one


def _row(
    definition: Mapping[str, Any],
    shown: str | None,
    errors: list[str],
    recommended: list[str] | None = None,
) -> dict[str, Any]:
    return {
        "definition": definition,
        "value": {
            "name": definition["name"],
            "value": shown,
            "recommended_values": recommended or [],
            "errors": errors,
            "visible": True,
        },
    }


def _undeclared(name: str, group: str | None = None) -> dict[str, Any]:
    from tailrace.connectors.config import Setting

    return Setting(name, group=group).definition()


def _topics(known: Mapping[str, Value], settings: Mapping[str, str]) -> dict[str, Value]:
    """A sink reads topics, or a pattern of them."""
    named = [name for name in ("topics", "topics.regex") if settings.get(name, "").strip()]
    wrong: list[str] = []
    if not named:
        wrong = ["Must configure one of topics or topics.regex"]
    elif len(named) == 2:
        wrong = ["topics and topics.regex are mutually exclusive options, but both are set."]
    letters = settings.get("errors.deadletterqueue.topic.name", "")
    topics = [one.strip() for one in settings.get("topics", "").split(",")]
    found = {name: known[name].with_errors(wrong) for name in ("topics", "topics.regex")}
    if letters and letters in topics:
        found["topics"] = found["topics"].with_errors(
            [f"The DLQ topic '{letters}' may not be included in the list of topics ({', '.join(topics)}) consumed by the connector"]
        )  # fmt: skip
    return found


def _shown(text: str) -> str:
    return text if len(text) < 200 else text[:200] + "…"


def _changed_at(directory: str, module: str) -> float:
    path = Path(directory) / module
    try:
        if path.is_dir():
            return max((one.stat().st_mtime for one in path.rglob("*.py")), default=0.0)
        return path.with_suffix(".py").stat().st_mtime
    except OSError:
        return 0.0
