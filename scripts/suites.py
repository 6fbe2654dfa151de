"""Run the test suite and print the seconds of each room.

A pytest run for each of a few groups of rooms, two more at a time than there are cores, because
most tests wait more than they compute. Shared servers (Kafka, Postgres, Spark) start once in a run:
rooms that need the same ones are in one group. What a run printed is printed when it has ended.

Each run notes in a journal what it begins and ends. A test that ends its whole
run (a time-out, a crash) has failed, and the run goes on behind it; so has one with which the run
stands still, whatever holds it, and that run is ended with the stacks of all its threads.

What failed is run once more, alone, only to say more about it: a test that passes then is named
as unsteady. The run has failed all the same. A random test that found a counterexample found one,
whatever its next draw says.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

FAST = "not clients and not crash and not cluster and not thorough"
GROUPS = (  # the longest first
    ("tests/pipelines/compiler", "tests/pipelines/engine", "tests/pipelines/judged_by_spark"),
    ("tests/pipelines",),
    ("tests/sources", "tests/sinks", "tests/contract"),
    ("tests/broker",),
    ("tests/node",),
    ("tests/console", "tests/cli", "tests/project"),
    ("tests/log", "tests/client", "tests/mirroring", "tests/connectors", "tests/verify"),
    ("tests",),  # all others
)
ELSEWHERE = ("tests/docs",)  # `scripts/check snippets` runs them
MOST_AT_ONCE = 5
MOST_REPEATED = 10
MOST_BEGINNINGS = 4  # of a run that its tests end
MOST_SECONDS = 4200.0  # of a run with all its beginnings
STANDS_STILL = 800.0  # seconds without a note; pytest-timeout ends every fast test before
NOTHING_WRONG = (0, 5)  # pytest's status when all passed, or when there was nothing to run


class Journal:
    """The tests that a run began, and how they ended; a line each, there after any death."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, what: str, test: str) -> None:
        with self._path.open("a") as journal:
            journal.write(json.dumps([what, test]) + "\n")

    def tests(self, what: str) -> list[str]:
        """Those with such a note, each once."""
        text = self._path.read_text() if self._path.exists() else ""
        lines = (json.loads(line) for line in text.splitlines())
        return list(dict.fromkeys(test for kind, test in lines if kind == what))

    def quiet_seconds(self) -> float:
        """How long ago the last note was made."""
        return time.time() - self._path.stat().st_mtime if self._path.exists() else 0.0

    def cut_short(self) -> list[str]:
        """Those that ended their run."""
        ended = set(self.tests("ended"))
        return [test for test in self.tests("began") if test not in ended]


class Watch:
    """Adds up the time of tests by their folder, keeps the journal, passes over what is in it.

    A failure is printed when it happens: a run that dies later prints no summary.
    """

    def __init__(self, journal: Journal) -> None:
        self.by_suite: defaultdict[str, float] = defaultdict(float)
        self.journal = journal
        self.began = time.monotonic()
        self._terminal: pytest.TerminalReporter | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._terminal = session.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        known = set(self.journal.tests("began"))
        if passed_over := [item for item in items if item.nodeid in known]:
            config.hook.pytest_deselected(items=passed_over)
            items[:] = [item for item in items if item.nodeid not in known]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.journal.note("began", nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.journal.note("ended", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = report.nodeid.split("::")[0].rpartition("/")[0]
        self.by_suite[folder] += report.duration
        if report.failed:
            self.journal.note("failed", report.nodeid)
            if self._terminal is not None:
                self._terminal.write_line(f"\n{report.nodeid}, {report.when}:")
                self._terminal.write_line(report.longreprtext)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds by suite")
        for suite, seconds in sorted(self.by_suite.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{seconds:8.1f} s  {suite}")
        terminalreporter.write_line(f"{time.monotonic() - self.began:8.1f} s  in all")


class Run:
    """A pytest run, begun again behind a test that ended it."""

    def __init__(self, name: str, arguments: Sequence[str], directory: Path) -> None:
        self.name = name
        self.output = directory / f"{name}.output"
        self.journal = Journal(directory / f"{name}.journal")
        self._command = [sys.executable, __file__, "--run", str(directory / f"{name}.journal"), *arguments]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.status = 0
        self.failed: list[str] = []

    def run(self) -> Run:
        until = time.monotonic() + MOST_SECONDS
        for _ in range(MOST_BEGINNINGS):
            known = len(self.journal.cut_short())
            self.status = self._once(until)
            if len(self.journal.cut_short()) == known or time.monotonic() > until or self._stopped:
                break
        cut_short = self.journal.cut_short()
        self.failed = [*self.journal.tests("failed"), *cut_short]
        if cut_short and self.status in NOTHING_WRONG:
            self.status = 1
        return self

    def _once(self, until: float) -> int:
        """Run until `until` at the latest, and leave no server of a run that died."""
        if self._stopped:
            return 1
        with self.output.open("ab") as output:
            process = self._process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT, process_group=0
            )
            if self._stopped:
                self.stop()
            began = time.monotonic()
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)
                now = time.monotonic()
                if now > until or min(self.journal.quiet_seconds(), now - began) > STANDS_STILL:
                    process.send_signal(signal.SIGABRT)  # shows the stacks of its threads
                    process.send_signal(signal.SIGCONT)  # or it would not hear it
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(30)
                    break
            _end(process.pid, signal.SIGKILL)
            return process.wait()

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            _end(self._process.pid, signal.SIGINT)


def _end(group: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, how)


def rooms_of(group: Sequence[str]) -> list[str]:
    """What a group's run is told: its folders, without those that are another group's."""
    taken = [*ELSEWHERE, *(folder for other in GROUPS if other is not group for folder in other)]
    inside = (folder for folder in taken if any(folder.startswith(f"{own}/") for own in group))
    return [*group, *(f"--ignore={folder}" for folder in inside)]


def main() -> int:
    if sys.argv[1:2] == ["--run"]:
        watch = Watch(Journal(Path(sys.argv[2])))
        return int(pytest.main(["-m", FAST, "-q", *sys.argv[3:]], plugins=[watch]))
    at_once = min(len(os.sched_getaffinity(0)) + 2, MOST_AT_ONCE)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(at_once) as pool:
        directory = Path(name)
        runs = [
            Run(f"run-{number}", [*rooms_of(group), *sys.argv[1:]], directory)
            for number, group in enumerate(GROUPS)
        ]
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            for ended in as_completed([pool.submit(each.run) for each in runs]):
                print(ended.result().output.read_text(errors="replace"), flush=True)
        finally:  # by Ctrl-C, too, which reaches this process alone
            for each in runs:
                each.stop()
        if all(each.status in NOTHING_WRONG for each in runs):
            return 0
        failed = [test for each in runs for test in each.failed]
        finished = all(each.status in (*NOTHING_WRONG, 1) for each in runs)
        if not finished or not 0 < len(failed) <= MOST_REPEATED:
            return 1
        print(f"\nonce more, alone: {', '.join(failed)}", flush=True)
        again = Run("again", failed, directory).run()
        print(again.output.read_text(errors="replace"), flush=True)
        if again.status == 0:
            print("unsteady: " + ", ".join(failed), flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
