"""The tutorial, followed word for word: every command, in order, with what it shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "tutorial" / "index.md"
FENCE = re.compile(r"^```(console|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATIENCE = 120.0


def steps() -> Iterator[tuple[str, str, str]]:
    """Kind of block, command, and what the page shows of its output."""
    for kind, body in FENCE.findall(PAGE.read_text()):
        command, shown = "", []
        for line in [*body.splitlines(), "$ "]:
            if not line.startswith("$ ") and line != "^C":
                shown.append(line)
                continue
            if command:
                yield kind, command, "\n".join(shown).strip()
            command, shown = line.removeprefix("$ "), []


def fits(shown: str, output: str) -> bool:
    lines = [re.escape(line.rstrip()).replace("…", ".*") for line in shown.splitlines()]
    return re.fullmatch(r"\s*\n".join(lines), output.strip(), re.DOTALL) is not None


class Up:
    """`tailrace up` in the first terminal."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.output = (directory.parent / "up.txt").open("wb+")
        self.process = subprocess.Popen(
            ["bash", "-c", "exec tailrace up"],
            cwd=directory, env=environment, stdout=self.output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait_for(self, line: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while f"\n{line}\n".encode() not in self.read():
            assert self.process.poll() is None, self.read().decode()
            assert time.monotonic() < deadline, self.read().decode()[-3000:]
            time.sleep(0.1)

    def read(self) -> bytes:
        return b"\n" + Path(self.output.name).read_bytes()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.output.close()


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_tutorial_works_word_for_word(tmp_path: Path) -> None:
    environment = dict(os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    # The page's own ports may be in use on this machine.
    environment["TAILRACE_LOG__LISTEN"] = environment["TAILRACE_CONSOLE__LISTEN"] = "127.0.0.1:0"
    project = tmp_path / "my-shop"
    up: Up | None = None
    done = 0
    place = tmp_path  # of the one shell that a reader types into
    try:
        for _, command, shown in steps():
            done += 1
            if command == "tailrace up":
                up = Up(project, environment)
                up.wait_for("ready")
            elif command.startswith("cd "):
                place /= command.removeprefix("cd ")
            elif command == "^C":
                assert up is not None
                up.stop()
                up = None
            else:
                deadline = time.monotonic() + PATIENCE
                while True:
                    run = subprocess.run(["bash", "-c", command], cwd=place, env=environment, capture_output=True, text=True)  # fmt: skip
                    output = run.stdout + run.stderr
                    good = fits(shown, output) if shown else run.returncode == 0
                    # A reader of the page would look again; what writes is run once.
                    if good or time.monotonic() > deadline or command.startswith("printf"):
                        break
                    time.sleep(1)
                assert good, f"{command}\n{output}"
    finally:
        if up is not None:
            up.stop()
    assert done >= 14
