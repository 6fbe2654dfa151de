"""tailrace.toml + TAILRACE_* + flags → frozen settings that know where each value came from.

A later layer wins: built-in default, `tailrace.toml`, environment (`TAILRACE_LOG__LISTEN`
sets `log.listen`), flag. A key that does not exist is an error, never ignored: a
misspelt setting would quietly keep its default. Values may contain `${NAME}`, replaced
from the environment when the settings are loaded.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tailrace import modes
from tailrace.console_login import OidcSettings, ProxySettings, make_oidc, make_proxy
from tailrace.errors import (
    ConfigError,
    ConfigSyntaxError,
    ConfigValueError,
    MissingVariableError,
    UnknownKeyError,
)
from tailrace.loopback import is_loopback, refuse_open_log
from tailrace.masking import Secret, mask, remember, remember_named
from tailrace.project_token import asks_everybody, project_security
from tailrace.security import LogAddress, make_security

FILE_NAME = "tailrace.toml"
ENVIRONMENT_PREFIX = "TAILRACE_"
NO_TOKEN = "none"
SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Key:
    """One setting a user may write: its type, its default, and a line for the reference."""

    kind: str  # text, mode, address, origin, token, whole, size, duration, flag, table, login
    default: Any
    text: str


KEYS: dict[str, Key] = {
    "project.name": Key("text", None, "Name of the project; the directory's name if absent."),
    "project.mode": Key("mode", modes.DEFAULT, "Who may read the project's files: 0700 the owner, 0750 and 0770 the group, too."),
    "log.listen": Key("address", "127.0.0.1:9092", "Where the embedded broker listens."),
    "log.insecure": Key("flag", False, "Whether the embedded log may listen on an address that other machines reach."),
    "log.bootstrap": Key("text", None, "An Apache Kafka cluster to use instead of the embedded log."),
    "log.directory": Key("text", ".tailrace/log", "Where the embedded log keeps its files."),
    "log.broker": Key("table", {}, "Broker settings by Kafka's names."),
    "log.security": Key("table", {}, "How to log in at log.bootstrap: protocol, mechanism, username, password, ca, certificate, key, key_password, token_endpoint, scope, check_hostname."),
    "spark.master": Key("text", "local[*]", "local[*], spark://…, yarn or k8s://…"),
    "spark.shards": Key("whole", None, "Shards of keyed state, fixed at the first start; absent: one where that runs on fewer than three cores, else four."),
    "spark.state": Key("text", None, "Where state files rest; on a cluster a directory or URL that all hosts share."),
    "spark.cache": Key("text", None, "Directory on every host for the caches of state; beside the project's files if absent."),
    "spark.cache_limit": Key("size", None, "Most disk that the caches of state take on a host; those longest unused go first."),
    "spark.ui": Key("flag", False, "Whether Spark's own pages are served, on this machine alone under `local[*]`; its jobs are named by tick."),
    "spark.conf": Key("table", {}, "Any Spark setting by Spark's name."),
    "tick.freshness": Key("duration", timedelta(seconds=1), "How old a view's answer may become."),
    "tick.limit": Key("whole", 200_000, "Most changes read in one tick; a tick stops at a cut."),
    "registry.listen": Key("address", None, "Where a schema registry of the project listens; none runs if absent."),
    "registry.users": Key("text", None, "File with a line NAME: PASSWORD for each user of that registry; nobody is asked if absent."),
    "registry.cert": Key("text", None, "Certificate (PEM, with its chain) with which that registry serves HTTPS."),
    "registry.key": Key("text", None, "Private key (PEM) of registry.cert."),
    "registry.insecure": Key("flag", False, "Whether that registry may listen beyond this machine without users or without TLS."),
    "registry.url": Key("text", None, "A schema registry to use instead: http://HOST:PORT."),
    "registry.user": Key("text", None, "Who the project is at the registry."),
    "registry.password": Key("text", None, "The password of registry.user."),
    "connect.listen": Key("address", None, "Where a worker for connectors of the project listens; none runs if absent."),
    "connect.plugins": Key("text", "connectors", "Directory with the project's own connectors; it may be absent."),
    "connect.settings": Key("table", {}, "Settings of that worker by Kafka Connect's names."),
    "connect.connectors": Key("tables", {}, "Connectors that run: a table of Kafka Connect's settings for each name."),
    "connect.insecure": Key("flag", False, "Whether that worker may listen beyond this machine without users or without TLS."),
    "connect.users": Key("text", None, "File with a line NAME: PASSWORD for each user of that worker; nobody is asked if absent."),
    "connect.cert": Key("text", None, "Certificate (PEM, with its chain) with which that worker serves HTTPS."),
    "connect.key": Key("text", None, "Private key (PEM) of connect.cert."),
    "connect.ca": Key("text", None, "Authorities (PEM) of the workers' certificates; the system's if absent."),
    "events.key": Key("text", None, "What the keys of personal fields are wrapped with, at least 32 characters; kept outside the log."),
    "console.listen": Key("address", "127.0.0.1:8080", "Where the console and the API listen."),
    "console.token": Key("token", None, "What callers must send, at least 16 characters; random at each start if absent, \"none\" to ask for none."),
    "console.viewer_token": Key("token", None, "A second token, at least 16 characters, for those who may look and not operate."),
    "console.public": Key("origin", None, "The address that a proxy before the console has, such as https://console.example.com."),
    "console.cert": Key("text", None, "Certificate (PEM, with its chain) with which the console serves HTTPS."),
    "console.key": Key("text", None, "Private key (PEM) of console.cert."),
    "console.oidc": Key("login", {}, "Log-in at an issuer of OpenID Connect: issuer, client_id, client_secret, operators, viewers, claim, name, scopes, session."),
    "console.proxy": Key("login", {}, "A proxy that has logged callers in: addresses, user, groups (its headers), operators, viewers."),
}  # fmt: skip
SECTIONS = (
    "project",
    "log",
    "spark",
    "tick",
    "events",
    "registry",
    "connect",
    "console",
    "topics",
    "clusters",
    "mirrors",
)
CLUSTER_KEYS = ("bootstrap", "security")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: a file and line (with the variables it names there), a
    variable, a flag, or the default."""

    place: str
    line: int | None = None
    variables: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.place}:{self.line}" if self.line else self.place
        named = ", ".join(f"${{{name}}}" for name in self.variables)
        return f"{place} by {named}" if named else place


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    name: str
    mode: str = modes.DEFAULT


@dataclass(frozen=True, slots=True)
class LogSettings:
    listen: str
    bootstrap: str | None
    directory: Path
    broker: Mapping[str, str] = field(repr=False)
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class SparkSettings:
    master: str
    shards: int | None  # None: chosen at the first start
    conf: Mapping[str, str] = field(repr=False)
    state: str | None = field(default=None, repr=False)
    cache_limit: int | None = None
    cache: str | None = None


def _spark_conf(values: Mapping[str, Any]) -> Mapping[str, str]:
    """Spark's own settings, with what `spark.ui` means unless they say otherwise."""
    shown = {"spark.ui.enabled": "true"} if values["spark.ui"] else {}
    return {**shown, **values["spark.conf"]}


@dataclass(frozen=True, slots=True)
class TickSettings:
    freshness: timedelta
    limit: int


@dataclass(frozen=True, slots=True)
class EventsSettings:
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`token`: None if each start makes one; `open`: it was chosen that none is needed.
    `viewer_token` lets its callers look, and not operate."""

    listen: str
    token: str | None = field(default=None, repr=False)
    open: bool = False
    viewer_token: str | None = field(default=None, repr=False)
    public: str | None = None
    cert: Path | None = None
    key: Path | None = None
    oidc: OidcSettings | None = None
    proxy: ProxySettings | None = None

    @property
    def encrypted(self) -> bool:
        """Whether callers reach it by HTTPS, here or at a proxy before it."""
        return self.cert is not None or (self.public or "").startswith("https://")

    @property
    def warnings(self) -> list[str]:
        """What whoever chose these settings should know."""
        found = []
        if self.open and self.oidc is None and self.proxy is None:
            found.append(
                "console.token is none: every user of this machine can read and operate the project"
            )
        if not is_loopback(parse_address(self.listen)[0]) and not self.encrypted:
            found.append(
                "other machines reach the console in clear text, its token and all rows: set console.cert and console.key, or console.public behind a proxy that has TLS"
            )
        return found


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """`listen`: where one of the project runs; `url`: where one is, the project's own or another."""

    listen: str | None = None
    url: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    users: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class ConnectSettings:
    """The project's worker for connectors; none if it does not `listen`."""

    listen: str | None = None
    plugins: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    connectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    insecure: bool = False
    users: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a project's file can say, with defaults filled in."""

    directory: Path
    project: ProjectSettings
    log: LogSettings
    spark: SparkSettings
    tick: TickSettings
    console: ConsoleSettings
    topics: Mapping[str, Mapping[str, str]]
    origins: Mapping[str, Origin]
    registry: RegistrySettings = RegistrySettings()
    events: EventsSettings = EventsSettings()
    connect: ConnectSettings = ConnectSettings()
    clusters: Mapping[str, str] = field(default_factory=dict)
    """Addresses of other logs by name, with how to log in there."""
    mirrors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables as they were written; `mirroring.plan` says what is in one."""

    @property
    def bootstrap(self) -> str:
        """The address every part of the project uses to reach the log."""
        return self.log.bootstrap or self.at(self.log.listen)

    def at(self, address: str) -> str:
        """An address of the project's log with how its own processes log in there."""
        if isinstance(self.log.bootstrap, LogAddress):
            return LogAddress(address, self.log.bootstrap.security)
        if self.log.bootstrap is None and asks_everybody(self.log.broker):
            security = project_security(self.log.directory)
            if security is not None:
                return LogAddress(address, security)
        return address

    @property
    def state_directory(self) -> Path:
        """`.tailrace`, where the project keeps everything that is not the user's."""
        return self.directory / ".tailrace"


@dataclass(frozen=True, slots=True)
class EnvironmentValue:
    """A value to be read from the environment when it is needed, and not before; a `secret`
    one is then hidden wherever it would show."""

    name: str
    default: str | None = field(default=None, repr=False)
    secret: bool = field(default=False, repr=False, compare=False)

    def resolve(self) -> str:
        value = os.environ.get(self.name, self.default)
        if value is None:
            raise MissingVariableError(
                f"environment variable {self.name} is not set",
                hint=f'set {self.name}, or give a default: tr.env("{self.name}", default="…")',
            )
        if self.secret:
            remember(value)
        return value


_asked: dict[str, bool] | None = None


def env(name: str, default: str | None = None) -> EnvironmentValue:
    """Refer to an environment variable in a declaration; it is read at run time only."""
    if _asked is not None:
        _asked[name] = _asked.get(name, False) or default is None
    return EnvironmentValue(name, default)


@contextmanager
def variables_asked() -> Iterator[Mapping[str, bool]]:
    """The variables that `env` is called for meanwhile, and whether one needs a value."""
    global _asked
    before, _asked = _asked, {}
    try:
        yield _asked
    finally:
        _asked = before


def variables_named(directory: Path) -> list[str]:
    """The variables that a project's file names as `${NAME}`, in the order of the file."""
    try:
        document = tomllib.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # `load` says what is wrong with it
    found: dict[str, None] = {}

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                look(item)
        elif isinstance(value, str):
            found.update(dict.fromkeys(_VARIABLE.findall(value)))

    look(document)
    return list(found)


def resolve(value: str | Path | EnvironmentValue | Secret) -> str:
    """The text itself, or what the environment holds for it now."""
    match value:
        case EnvironmentValue():
            return value.resolve()
        case Secret():
            return value.reveal()
    return str(value)


SECRET = {"secret": True}
"""Metadata of a dataclass's field that `hide` is to hide."""


def hide(declaration: Any) -> None:
    """Make what a declaration was given in its secret fields show nowhere. A mapping keeps
    its names and hides its values."""
    for one in fields(declaration):
        if one.metadata.get("secret"):
            object.__setattr__(declaration, one.name, _hidden(getattr(declaration, one.name)))


def _hidden(value: Any) -> Any:
    match value:
        case str():
            return Secret(value)
        case EnvironmentValue():
            return replace(value, secret=True)
        case Mapping():
            return {name: _hidden(item) for name, item in value.items()}
    return value


def shown(value: object) -> str:
    """A place as people may see it: the name of its variable, or the text without secrets."""
    return f"${value.name}" if isinstance(value, EnvironmentValue) else mask(str(value))


# --- words for durations and sizes -------------------------------------------------------

_DURATIONS = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60,
    "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "w": 604800, "week": 604800,
}  # fmt: skip
_SIZES = {
    "b": 1, "byte": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "k": 2**10, "m": 2**20, "g": 2**30,
}  # fmt: skip
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_WHOLE_NUMBER = re.compile(r"\s*-?\d+\s*")
_NUMBER_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_duration(value: object) -> timedelta:
    """`"7 days"`, `"1h 30m"`, `"250ms"`; a bare number is milliseconds, as in Kafka."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(milliseconds=value)
    seconds = _sum_of_units(str(value), _DURATIONS)
    if seconds is None:
        if re.fullmatch(r"\s*\d+\s*", str(value)):
            return timedelta(milliseconds=int(str(value)))
        raise ConfigValueError(f"{value!r} is not a duration", hint='write "30 seconds", "7 days"')
    return timedelta(seconds=seconds)


def parse_size(value: object) -> int:
    """`"1 GiB"`, `"500 MB"`; a bare number is bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = _sum_of_units(str(value), _SIZES)
    if number is None:
        if re.fullmatch(r"\s*\d+\s*", str(value)):
            return int(str(value))
        raise ConfigValueError(f"{value!r} is not a size", hint='write "64 MiB", "1 GB"')
    return round(number)


REPLICATION = "replication"  # of a topic, beside `partitions`: copies, fixed when it is made


def topic_setting(name: str, value: object) -> str:
    """A topic's setting as Kafka wants it: times in milliseconds and sizes in bytes may be words."""
    text = _setting_text(value)
    if name in ("partitions", REPLICATION) and not re.fullmatch(r"[1-9]\d{0,8}", text):
        what = "partitions" if name == "partitions" else "copies of each partition"
        raise ConfigValueError(
            f"a topic cannot have {value!r} {what}", hint="write a whole number, at least 1"
        )
    if _WHOLE_NUMBER.fullmatch(text):
        return text
    if name.endswith(".ms"):
        return str(round(parse_duration(text).total_seconds() * 1000))
    if name.endswith(".bytes"):
        return str(parse_size(text))
    return text


def _sum_of_units(text: str, units: Mapping[str, float]) -> float | None:
    total, position = 0.0, 0
    for match in _NUMBER_UNIT.finditer(text):
        if match.start() != position:
            return None
        unit = match[2].lower()
        factor = units.get(unit, units.get(unit.removesuffix("s")))
        if factor is None:
            return None
        total += float(match[1]) * factor
        position = match.end()
    return total if position == len(text) and position else None


# --- loading -------------------------------------------------------------------------------


def load(
    directory: str | Path = ".",
    *,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of the project in `directory` (which may have no file: all defaults)."""
    home = Path(directory).resolve()
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {name: key.default for name, key in KEYS.items()}
    origins: dict[str, Origin] = dict.fromkeys(KEYS, DEFAULT)
    topics: dict[str, dict[str, str]] = {}
    tables: dict[str, dict[str, dict[str, Any]]] = {"clusters": {}, "mirrors": {}}

    for name, value, origin in _file_values(home / FILE_NAME, environment, topics, tables, origins):
        values[name] = _converted(name, value, origin)
        origins[name] = origin
    for name, value, origin in _environment_values(environment):
        values[name] = _converted(name, value, origin)
        origins[name] = origin
    for name, value in (flags or {}).items():
        if value is not None:
            origin = Origin(f"flag --{name.split('.')[-1].replace('_', '-')}")
            values[name] = _converted(name, value, origin)
            origins[name] = origin

    if values["log.bootstrap"] is None:
        refuse_open_log(
            parse_address(values["log.listen"])[0],
            insecure=values["log.insecure"],
            place=f"log.listen ({origins['log.listen']})",
            hint="listen on 127.0.0.1, or set log.insecure = true where a firewall keeps "
            "strangers out",
        )
    name = values["project.name"] or home.name or "project"
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise ConfigValueError(
            f"project name {name!r} cannot be part of a topic's name",
            detail=str(origins["project.name"]),
            hint="use letters, digits, '_', '-' and '.'",
        )
    return Settings(
        directory=home,
        project=ProjectSettings(name, values["project.mode"]),
        log=LogSettings(
            listen=values["log.listen"],
            bootstrap=_bootstrap(home, values),
            directory=home / values["log.directory"],
            broker=values["log.broker"],
            insecure=values["log.insecure"],
        ),
        spark=SparkSettings(
            values["spark.master"],
            values["spark.shards"],
            _spark_conf(values),
            values["spark.state"],
            values["spark.cache_limit"],
            values["spark.cache"],
        ),
        tick=TickSettings(values["tick.freshness"], values["tick.limit"]),
        console=_console(home, values),
        topics=topics,
        origins=origins,
        registry=_registry(home, values),
        connect=_connect(home, values),
        events=_events(values["events.key"]),
        clusters={
            name: _cluster(home, name, table, origins[f"clusters.{name}"])
            for name, table in tables["clusters"].items()
        },
        mirrors=tables["mirrors"],
    )


def _events(key: str | None) -> EventsSettings:
    if key is not None:
        remember(key)
    return EventsSettings(key)


def _cluster(home: Path, name: str, table: Mapping[str, Any], origin: Origin) -> str:
    """The address of a log that mirrors read or write."""
    for key in table:
        if key not in CLUSTER_KEYS:
            raise _unknown(("clusters", name, key), CLUSTER_KEYS, origin)
    address, security = table.get("bootstrap"), table.get("security", {})
    if not isinstance(address, str) or not isinstance(security, dict):
        raise ConfigValueError(
            f"clusters.{name} needs the address of its brokers",
            detail=f"at {origin}",
            hint='bootstrap = "kafka-1:9092,kafka-2:9092"; how to log in there goes into '
            f"[clusters.{name}.security]",
        )
    _refuse_no_addresses(f"clusters.{name}.bootstrap", address)
    if not security:
        return address
    for secret in SECURITY_SECRETS:
        remember(str(security.get(secret, "")))
    try:
        return LogAddress(address, make_security(security, home))
    except ConfigValueError as error:
        raise ConfigValueError(
            f"clusters.{name}.security: {error.message}",
            detail=error.detail or f"at {origin}",
            hint=error.hint,
        ) from error


def _refuse_no_addresses(key: str, addresses: str) -> None:
    for one in addresses.split(","):
        try:
            parse_address(one.strip())
        except ConfigValueError as error:
            raise ConfigValueError(
                f"{key}: {error.message}",
                hint="write HOST:PORT, several with commas between them",
            ) from error


SECURITY_SECRETS = ("password", "key", "key_password")


def _bootstrap(home: Path, values: Mapping[str, Any]) -> str | None:
    """The address of the log that is not ours, with how to log in there."""
    address, security = values["log.bootstrap"], values["log.security"]
    if address is not None:
        _refuse_no_addresses("log.bootstrap", str(address))
    if not security:
        return None if address is None else str(address)
    if address is None:
        raise ConfigValueError(
            "log.security has no meaning for the embedded log",
            detail="its own processes log in by the project's token",
            hint="set log.bootstrap to the cluster it is about; what the embedded log asks of "
            "others is said in log.broker: listeners, sasl.enabled.mechanisms",
        )
    for name in SECURITY_SECRETS:
        remember(security.get(name, ""))
    return LogAddress(address, make_security(security, home))


def _registry(home: Path, values: Mapping[str, Any]) -> RegistrySettings:
    listen, url = values["registry.listen"], values["registry.url"]
    if listen is not None and url is not None:
        raise ConfigValueError(
            "registry.listen and registry.url say two things",
            hint="listen runs a registry of the project, url names another: give one of them",
        )
    cert, key = values["registry.cert"], values["registry.key"]
    if (cert is None) != (key is None):
        raise ConfigValueError(
            f"registry.{'key' if cert else 'cert'} is missing",
            hint="a certificate and its private key go together: registry.cert and registry.key",
        )
    if values["registry.password"]:
        remember(values["registry.password"])
    if listen is not None:
        host, port = parse_address(listen)
        if port == 0:
            raise ConfigValueError(
                "registry.listen needs a port", hint='for example listen = "127.0.0.1:8081"'
            )
        shown = f"[{host}]" if ":" in host else host
        url = f"{'https' if cert else 'http'}://{shown}:{port}"
    users = values["registry.users"]
    return RegistrySettings(
        listen,
        url,
        values["registry.user"],
        values["registry.password"],
        users and home / users,
        cert and home / cert,
        key and home / key,
        values["registry.insecure"],
    )


def _connect(home: Path, values: Mapping[str, Any]) -> ConnectSettings:
    listen, plugins = values["connect.listen"], home / values["connect.plugins"]
    if listen is None and values["connect.connectors"]:
        raise ConfigValueError(
            "connect.connectors are given, and no worker that runs them",
            hint='for example connect.listen = "127.0.0.1:8083"',
        )
    if listen is not None and parse_address(listen)[1] == 0:
        raise ConfigValueError(
            "connect.listen needs a port", hint='for example listen = "127.0.0.1:8083"'
        )
    files = {name: values[f"connect.{name}"] for name in ("users", "cert", "key", "ca")}
    if (files["cert"] is None) != (files["key"] is None):
        raise ConfigValueError(
            f"connect.{'key' if files['cert'] else 'cert'} is missing",
            hint="a certificate and its private key go together: connect.cert and connect.key",
        )
    return ConnectSettings(
        listen,
        plugins if plugins.is_dir() else None,
        values["connect.settings"],
        values["connect.connectors"],
        values["connect.insecure"],
        **{name: given and home / given for name, given in files.items()},
    )


def _console(home: Path, values: Mapping[str, Any]) -> ConsoleSettings:
    cert, key = values["console.cert"], values["console.key"]
    if (cert is None) != (key is None):
        raise ConfigValueError(
            f"console.{'key' if cert else 'cert'} is missing",
            hint="a certificate and its private key go together: console.cert and console.key",
        )
    token = values["console.token"]
    host, _ = parse_address(values["console.listen"])
    proxy = make_proxy(values["console.proxy"]) if values["console.proxy"] else None
    oidc = _oidc(values["console.oidc"]) if values["console.oidc"] else None
    if oidc is not None and values["console.public"] is None and not is_loopback(host):
        raise ConfigValueError(
            "console.oidc needs console.public",
            detail="the issuer sends callers back to an address that it knows",
            hint='public = "https://console.example.com", and register '
            "https://console.example.com/api/login/done at the issuer",
        )
    if token == NO_TOKEN and not is_loopback(host) and oidc is None and proxy is None:
        raise ConfigValueError(
            "a console that other machines can reach needs a token",
            detail=f'console.listen names {host}, and console.token is "none"',
            hint="remove console.token to have one made, or listen on 127.0.0.1",
        )
    viewer = values["console.viewer_token"]
    if viewer is not None and (token == NO_TOKEN or viewer in (token, NO_TOKEN)):
        raise ConfigValueError(
            "console.viewer_token tells nobody apart",
            detail="it is the operators' token, or callers need none",
            hint="give console.token and console.viewer_token two values, or remove the second",
        )
    return ConsoleSettings(
        listen=values["console.listen"],
        token=None if token == NO_TOKEN else token,
        open=token == NO_TOKEN,
        viewer_token=viewer,
        public=values["console.public"],
        cert=cert and home / cert,
        key=key and home / key,
        oidc=oidc,
        proxy=proxy,
    )


def _oidc(given: Mapping[str, Any]) -> OidcSettings:
    session = given.get("session")
    return make_oidc(given, None if session is None else parse_duration(session))


def _file_values(
    path: Path,
    environment: Mapping[str, str],
    topics: dict[str, dict[str, str]],
    tables: dict[str, dict[str, dict[str, Any]]],
    origins: dict[str, Origin],
) -> Iterator[tuple[str, Any, Origin]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path.name}", detail=str(error)) from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigSyntaxError(
            f"{path.name} is not valid TOML",
            detail=f"{path}: {error}",
            hint="strings need quotes; a table starts with [name] on a line of its own",
        ) from error
    lines = _line_numbers(text)

    def origin(*keys: str) -> Origin:
        return Origin(path.name, lines.get(keys))

    for section, table in document.items():
        if section not in SECTIONS:
            raise _unknown((section,), SECTIONS, origin(section))
        if not isinstance(table, dict):
            raise ConfigValueError(
                f"{section} must be a table",
                detail=str(origin(section)),
                hint=f"write [{section}] on a line of its own",
            )
        for name, value in table.items():
            named = tuple(_VARIABLE.findall(value)) if isinstance(value, str) else ()
            value = _expanded(value, environment, origin(section, name))
            if section in tables:
                if not isinstance(value, dict):
                    raise ConfigValueError(
                        f"{section}.{name} must be a table",
                        detail=str(origin(section, name)),
                        hint=f"write [{section}.{name}] on a line of its own",
                    )
                if not _NAMED.fullmatch(name):
                    raise ConfigValueError(
                        f"{name!r} cannot be a name in [{section}]",
                        detail=f"at {origin(section, name)}",
                        hint="letters, digits, '-' and '_', at most 100",
                    )
                tables[section][name] = value
                origins[f"{section}.{name}"] = origin(section, name)
                continue
            if section == "topics":
                if not isinstance(value, dict):
                    raise ConfigValueError(
                        f"topics.{name} must be a table",
                        detail=str(origin(section, name)),
                        hint=f'write [topics."{name}"] on a line of its own',
                    )
                if not _TOPIC.fullmatch(name) or name in (".", "..") or name.startswith("__"):
                    raise ConfigValueError(
                        f"{name!r} cannot be the name of a topic",
                        detail=f"at {origin(section, name)}",
                        hint="letters, digits, '.', '_' and '-'; those that begin with '__' are "
                        "the log's own",
                    )
                try:
                    topics[name] = {key: topic_setting(key, item) for key, item in _flat(value)}
                except ConfigValueError as error:
                    raise ConfigValueError(
                        error.message, detail=f"at {origin(section, name)}", hint=error.hint
                    ) from error
                for key in topics[name]:
                    origins[f"topics.{name}.{key}"] = origin(section, name, key)
                continue
            full = f"{section}.{name}"
            if full not in KEYS:
                known = [key.split(".", 1)[1] for key in KEYS if key.startswith(f"{section}.")]
                raise _unknown((section, name), known, origin(section, name))
            yield full, value, replace(origin(section, name), variables=named)


def _environment_values(environment: Mapping[str, str]) -> Iterator[tuple[str, str, Origin]]:
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
        origin = Origin(f"environment {variable}")
        if name not in KEYS:
            raise _unknown(tuple(name.split(".")), list(KEYS), origin, whole=name)
        yield name, value, origin


def _unknown(
    keys: tuple[str, ...], known: list[str] | tuple[str, ...], origin: Origin, whole: str = ""
) -> UnknownKeyError:
    wanted = whole or keys[-1]
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    return UnknownKeyError(
        f"unknown key {'.'.join(keys)!r}",
        detail=f"at {origin}",
        hint=f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}",
    )


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _expanded(value: Any, environment: Mapping[str, str], origin: Origin) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, environment, origin) for key, item in value.items()}
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        found = environment.get(match[1])
        if found is None:
            raise MissingVariableError(
                f"environment variable {match[1]} is not set",
                detail=f"at {origin}",
                hint=f"set {match[1]} before starting, or write the value into the file",
            )
        return found

    return _VARIABLE.sub(variable, value)


def _converted(name: str, value: Any, origin: Origin) -> Any:
    kind = KEYS[name].kind
    try:
        match kind:
            case "text" | "address":
                if not isinstance(value, str) or not value:
                    raise ConfigValueError(f"{name} must be text")
                if kind == "address":
                    parse_address(value)
                if name == "spark.master" and not _MASTER.fullmatch(value):
                    raise ConfigValueError(
                        f"{value!r} is no master of Spark",
                        hint="local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT",
                    )
                return value
            case "mode":
                if value not in modes.MODES:
                    raise ConfigValueError(
                        f"{name} cannot be {value!r}", hint=f"write one of {', '.join(modes.MODES)}"
                    )
                return value
            case "token":
                return _token(value)
            case "origin":
                return parse_origin(value)
            case "whole":
                number = int(value) if isinstance(value, int | str) else None
                if number is None or isinstance(value, bool) or number < 1:
                    raise ConfigValueError(f"{name} must be a whole number, at least 1")
                return number
            case "size":
                return parse_size(value)
            case "duration":
                return parse_duration(value)
            case "flag":
                words = {"true": True, "false": False}
                chosen = words.get(value.lower()) if isinstance(value, str) else value
                if not isinstance(chosen, bool):
                    raise ConfigValueError(f"{name} must be true or false")
                return chosen
            case "login":
                if not isinstance(value, dict):
                    raise ConfigValueError(f"{name} must be a table")
                return value
            case "tables":
                if not isinstance(value, dict) or not all(
                    isinstance(each, dict) for each in value.values()
                ):
                    raise ConfigValueError(f"{name} must be a table of tables")
                return {key: _converted_table(each) for key, each in value.items()}
            case "table":
                if not isinstance(value, dict):
                    raise ConfigValueError(f"{name} must be a table")
                return _converted_table(value)
    except ValueError as error:
        raise ConfigValueError(
            f"{name} cannot be {value!r}", detail=f"at {origin}", hint="write a whole number"
        ) from error
    except ConfigValueError as error:
        shown = f"at {origin}" if kind == "token" else f"{value!r} at {origin}"
        raise ConfigValueError(
            error.message, detail=error.detail or shown, hint=error.hint
        ) from error
    raise AssertionError(kind)


def _converted_table(value: dict[str, Any]) -> dict[str, str]:
    table = {key: _setting_text(item) for key, item in _flat(value)}
    remember_named(table)
    return table


def _token(value: object) -> str:
    if value in ("", NO_TOKEN):
        return NO_TOKEN
    if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
        raise ConfigValueError(
            "console.token must be text of ASCII letters, digits and signs",
            hint='"none" if the console shall ask for no token',
        )
    if len(value) < SHORTEST_TOKEN:
        raise ConfigValueError(
            f"console.token has fewer than {SHORTEST_TOKEN} characters",
            hint="leave it out to have a random one at each start; `openssl rand -base64 24` makes one to keep",
        )
    return value


def parse_origin(value: object) -> str:
    """`https://console.example.com[:PORT]`: scheme and host in lower case, nothing behind."""
    try:
        url = urlsplit(value if isinstance(value, str) else "")
        port = f":{url.port}" if url.port else ""
    except ValueError:
        url, port = urlsplit(""), ""
    rest = (url.path.rstrip("/"), url.query, url.fragment, url.username)
    if url.scheme not in ("http", "https") or not url.hostname or any(rest):
        raise ConfigValueError(
            f"{value!r} is not the address of a site", hint="write https://console.example.com"
        )
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    if port == {"http": ":80", "https": ":443"}[url.scheme]:
        port = ""  # browsers leave it out, and it is compared with what they send
    return f"{url.scheme}://{host}{port}"


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT, also [::1]:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ConfigValueError(
            f"{text!r} is not an address", hint="write HOST:PORT, for example 127.0.0.1:9092"
        )
    return host.strip("[]"), int(port)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested tables as dotted names: `retention.ms = 1` unquoted is a nested table in TOML."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_setting_text(item) for item in value)
    return str(value)


def _line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Line of each table header and key. Good enough for messages: values are not parsed."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _path_of(stripped.split("]")[0] + "]")
            for end in range(1, len(table) + 1):
                lines.setdefault(table[:end], number)
        elif "=" in stripped and not stripped.startswith("#"):
            keys = _path_of(stripped.split("=")[0] + "= 0")
            for end in range(1, len(keys) + 1):
                lines.setdefault(table + keys[:end], number)
    return lines


def _path_of(fragment: str) -> tuple[str, ...]:
    try:
        node: Any = tomllib.loads(fragment.strip("[") if fragment.startswith("[[") else fragment)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        key = next(iter(node))
        path.append(key)
        node = node[key]
    return tuple(path)
