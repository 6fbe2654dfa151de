"""The settings that a connector declares, and what becomes of the texts that users give.

Names of types, messages and the shape of a definition are Kafka's, so that tools made for Kafka
Connect show them. A setting that is not declared is passed on as the text it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Check = Callable[[Any], str | None]
"""What is wrong with a value, or None."""

_KINDS: dict[type, str] = {
    str: "STRING",
    int: "INT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    list: "LIST",
}
_RANGES = {"SHORT": 1 << 15, "INT": 1 << 31, "LONG": 1 << 63}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `type` is str, int, float, bool or list; a `secret` is shown nowhere.

    `choices` are the only values taken, `least` the smallest number; `check` says what is wrong
    with a value, or None. `kind` is Kafka's name of the type where it is another than usual.
    """

    name: str
    type: type = str
    required: bool = False
    default: object = None
    help: str = ""
    secret: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    check: Check | None = None
    importance: str = "high"
    group: str | None = None
    order: int = -1
    width: str = "none"
    display: str = ""
    kind: str = ""
    recommended: tuple[str, ...] = ()

    @property
    def kafka_type(self) -> str:
        return "PASSWORD" if self.secret else self.kind or _KINDS[self.type]

    def definition(self) -> dict[str, object]:
        """The form in which Kafka Connect's REST interface tells it."""
        return {
            "name": self.name,
            "type": self.kafka_type,
            "required": self.required,
            "default_value": None if self.required else self._text(self.default),
            "importance": self.importance.upper(),
            "documentation": self.help,
            "group": self.group,
            "order_in_group": self.order,
            "width": self.width.upper(),
            "display_name": self.display or self.name,
            "dependents": [],
        }

    def _text(self, value: object) -> str | None:
        if value is None:
            return None
        if self.secret:
            return "[hidden]"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list | tuple):
            return ",".join(str(one) for one in value)
        return str(value)

    def parse(self, text: str | None) -> Value:
        """What a text means, with everything that is wrong with it."""
        if text is None:
            if self.required:
                wrong = f'Missing required configuration "{self.name}" which has no default value.'
                return Value(self, None, None, (wrong,))
            return Value(self, self.default, self._text(self.default))
        try:
            value = self._read(text.strip() if self.type is not str else text)
        except ValueError as error:
            shown = "[hidden]" if self.secret else text
            errors = [f"Invalid value {shown} for configuration {self.name}: {error}"]
            if self.least is not None:
                errors.append(f"Invalid value null for configuration {self.name}: Value must be non-null")  # fmt: skip
            return Value(self, None, None, tuple(errors))
        wrong_with = self._judge(value)
        shown_text = self._text(value)
        if wrong_with is not None:
            shown = "[hidden]" if self.secret else text
            error_text = f"Invalid value {shown} for configuration {self.name}: {wrong_with}"
            return Value(self, None, shown_text, (error_text,))
        return Value(self, value, shown_text)

    def _read(self, text: str) -> object:
        if self.type is bool:
            if text.lower() not in ("true", "false"):
                raise ValueError("Expected value to be either true or false")
            return text.lower() == "true"
        if self.type is int:
            most = _RANGES.get(self.kafka_type, 1 << 63)
            try:
                number = int(text)
            except ValueError:
                number = most
            if not -most <= number < most:
                raise ValueError(f"Not a number of type {self.kafka_type}")
            return number
        if self.type is float:
            try:
                return float(text)
            except ValueError:
                raise ValueError(f"Not a number of type {self.kafka_type}") from None
        if self.type is list:
            return [one.strip() for one in text.split(",")] if text else []
        return text

    def _judge(self, value: Any) -> str | None:
        if self.least is not None and isinstance(value, int) and value < self.least:
            return f"Value must be at least {self.least}"
        if self.choices and str(value).lower() not in self.choices:
            return f"String must be one of: {', '.join(self.choices)}"
        return self.check(value) if self.check is not None else None


@dataclass(frozen=True, slots=True)
class Value:
    """What a setting was given: the value for the connector, the text that may be shown."""

    setting: Setting
    value: Any = field(repr=False)
    shown: str | None
    errors: tuple[str, ...] = ()

    def with_errors(self, errors: Sequence[str]) -> Value:
        return Value(self.setting, self.value, self.shown, (*self.errors, *errors))


class Config:
    """The settings a connector knows."""

    def __init__(self, *settings: Setting) -> None:
        names = [each.name for each in settings]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"a setting is declared twice: {min(twice)}")
        self._settings = {each.name: each for each in settings}

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._settings.values())

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def __add__(self, other: Config) -> Config:
        return Config(*(one for one in self if one.name not in other), *other)

    def look(self, given: Mapping[str, str]) -> list[Value]:
        """Every declared setting with its value or what is wrong with it."""
        return [each.parse(given.get(each.name)) for each in self]

    def typed(self, given: Mapping[str, str]) -> dict[str, Any]:
        """All settings, those declared as what they mean. Raises ConnectorSettingError."""
        values = self.look(given)
        errors = [text for each in values for text in each.errors]
        if errors:
            from tailrace.connectors.errors import ConnectorSettingError

            raise ConnectorSettingError(errors[0], detail="\n".join(errors[1:]))
        return {**given, **{each.setting.name: each.value for each in values}}
