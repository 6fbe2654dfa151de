"""Run the test suite and print the seconds of each room.

Two pytest runs side by side, because most tests wait more than they compute: one for the
rooms that need Spark, one for all others; shared servers (Kafka, Postgres, Spark) start
once in each. Machines that run this are shared and noisy: what failed is run once more,
alone, and both results are shown; a test that passes only the second time is named as
unsteady and wants mending. The exit status is that of the second run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest

FAST = "not clients and not crash and not cluster and not thorough"
WITH_SPARK = ("tests/pipelines", "tests/node", "tests/contract")
MOST_REPEATED = 10
NOTHING_WRONG = (0, 5)  # pytest's status when all passed, or when there was nothing to run


class Watch:
    """Adds up the time of tests by their folder, and remembers what failed."""

    def __init__(self) -> None:
        self.by_suite: defaultdict[str, float] = defaultdict(float)
        self.failed: dict[str, None] = {}
        self.began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = report.nodeid.split("::")[0].rpartition("/")[0]
        self.by_suite[folder] += report.duration
        if report.failed:
            self.failed[report.nodeid] = None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds by suite")
        for suite, seconds in sorted(self.by_suite.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{seconds:8.1f} s  {suite}")
        terminalreporter.write_line(f"{time.monotonic() - self.began:8.1f} s  in all")


def run_half(result: Path, arguments: list[str]) -> int:
    """One of the two runs; what failed is written to `result`."""
    watch = Watch()
    status = int(pytest.main(["-m", FAST, "-q", *arguments], plugins=[watch]))
    result.write_text(json.dumps(list(watch.failed)))
    return status


def main() -> int:
    if sys.argv[1:2] == ["--half"]:
        return run_half(Path(sys.argv[2]), sys.argv[3:])
    others = ["tests", "--ignore=tests/docs", *(f"--ignore={room}" for room in WITH_SPARK)]
    with tempfile.TemporaryDirectory() as directory:
        results = [Path(directory, name) for name in ("others", "spark")]
        output = Path(directory, "output")
        command = [sys.executable, __file__, "--half"]
        with output.open("wb") as kept:
            beside = subprocess.Popen(
                [*command, str(results[1]), *WITH_SPARK, *sys.argv[1:]],
                stdout=kept,
                stderr=subprocess.STDOUT,
            )
            first = subprocess.run([*command, str(results[0]), *others, *sys.argv[1:]])
            statuses = [first.returncode, beside.wait()]
        print(output.read_text(errors="replace"), flush=True)
        if all(status in NOTHING_WRONG for status in statuses):
            return 0
        if any(status not in (*NOTHING_WRONG, 1) for status in statuses):
            return max(statuses)
        failed = [name for result in results for name in json.loads(result.read_text())]
    if not 0 < len(failed) <= MOST_REPEATED:
        return 1
    print(f"\nonce more, alone: {', '.join(failed)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-q", *failed]).returncode
    if again == 0:
        print("unsteady, please mend: " + ", ".join(failed), flush=True)
    return again


if __name__ == "__main__":
    sys.exit(main())
