"""What a project asks of the cluster that runs it, told from its settings and declarations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tailrace import config
from tailrace.deployment.errors import LogNotReachableError
from tailrace.errors import UsageError
from tailrace.loopback import is_loopback
from tailrace.pipelines.spark.importable import forget_modules
from tailrace.project import load
from tailrace.project.load import Project
from tailrace.sources.declare import SQLite

LONGEST_NAME = 40  # of 63 characters that a label has: others are built from it
_DRIVER_MEMORY = "1g"
OTHER_PARTS_MIB = 1536  # sources, sinks and the console run beside the driver
_SPARK_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}


@dataclass(frozen=True, slots=True)
class Needs:
    """`variables`: the environment variables it reads, and whether each must be set.
    `log`: an address that was given beside the project's file. `state`: where its file says
    that state rests. `own_files`: declarations that keep files in the project's directory."""

    name: str
    label: str
    directory: Path
    variables: Mapping[str, bool]
    log: str | None
    state: str | None
    cache: str | None
    conf: Mapping[str, str]
    own_files: tuple[str, ...]

    @property
    def state_is_remote(self) -> bool:
        """Whether state rests at a URL that hosts reach by the network."""
        return self.state is not None and bool(urlsplit(self.state).scheme)

    @property
    def driver_memory_mib(self) -> int:
        """Memory for the JVM of the driver and the processes beside it."""
        return _mebibytes(self.conf.get("spark.driver.memory", _DRIVER_MEMORY)) + OTHER_PARTS_MIB

    def setting(self, name: str, default: str) -> dict[str, str]:
        """A setting of Spark for the defaults' file; nothing if the project's file says it."""
        return {} if name in self.conf else {name: default}


def needs_of(directory: Path, log: str | None) -> Needs:
    """What the project in `directory` needs; `log` is the address of its log there.

    Variables of its file need not be set on this machine: what they hold is not looked at.
    """
    named = config.variables_named(directory)
    forget_modules(directory.resolve())  # an import that is not run again asks for nothing
    with _stand_ins(named), config.variables_asked() as asked:
        project = load.load(directory)
    settings = project.settings
    if log is not None:
        _check_log(log, "--log")
    elif settings.log.bootstrap is None:
        raise LogNotReachableError(
            "executors on other machines cannot read this project's log",
            detail=f"[log] names no cluster, and the embedded log listens on {settings.log.listen}",
            hint='give --log kafka-1:9092, or write `bootstrap = "kafka-1:9092"` in [log]',
        )
    elif "log.bootstrap" not in _by_variable(settings):
        _check_log(str(settings.log.bootstrap), str(settings.origins["log.bootstrap"]))
    return Needs(
        name=project.name,
        label=label_of(project.name),
        directory=settings.directory,
        variables={**asked, **dict.fromkeys(named, True)},
        log=log,
        state=settings.spark.state,
        cache=settings.spark.cache,
        conf=settings.spark.conf,
        own_files=tuple(_own_files(project)),
    )


def label_of(name: str) -> str:
    """The name as Kubernetes takes it: lower case, digits, '-'."""
    label = re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_NAME].strip("-")
    if not label or not label[0].isalpha():
        raise UsageError(
            f"{name!r} gives no name for Kubernetes",
            detail="it begins with a letter, and has letters, digits and '-'",
            hint="name the project in [project]",
        )
    return label


@contextmanager
def _stand_ins(names: list[str]) -> Iterator[None]:
    """Variables that are not set here have some text while the project is loaded."""
    made = [name for name in names if name not in os.environ]
    os.environ.update({name: f"value-of-{name.lower()}:9092" for name in made})
    try:
        yield
    finally:
        for name in made:
            os.environ.pop(name, None)


def _by_variable(settings: config.Settings) -> set[str]:
    return {name for name, origin in settings.origins.items() if origin.variables}


def _check_log(bootstrap: str, origin: str) -> None:
    for one in bootstrap.split(","):
        host, _ = config.parse_address(one.strip())
        if is_loopback(host):
            raise LogNotReachableError(
                f"executors on other machines cannot reach {one.strip()}",
                detail=f"{origin} names an address of this machine alone",
                hint="give --log with the address that the cluster's hosts use",
            )


def _own_files(project: Project) -> Iterator[str]:
    for name, source in project.sources.items():
        if isinstance(source, SQLite):
            yield f"source {name}"
    for name, copy in project.sinks.items():
        if getattr(copy.declaration, "path", None) is not None:
            yield f"sink {name}"


def _mebibytes(size: str) -> int:
    found = _SPARK_SIZE.fullmatch(size.strip())
    if found is None:
        raise UsageError(f"spark.driver.memory cannot be {size!r}", hint="write a size such as 2g")
    return max(1, int(int(found[1]) * _MIB[found[2].lower()]))
