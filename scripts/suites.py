"""Run the test suite and print the seconds of each room.

One pytest run over all rooms, so that shared servers (Kafka, Postgres, Spark) start
once. Machines that run this are shared and noisy: what failed is run once more, alone,
and both results are shown; a test that passes only the second time is named as unsteady
and wants mending. The exit status is that of the second run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict

import pytest

FAST = "not clients and not crash and not cluster and not thorough"
MOST_REPEATED = 10


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


def main() -> int:
    watch = Watch()
    arguments = ["tests", "--ignore=tests/docs", "-m", FAST, "-q", *sys.argv[1:]]
    status = int(pytest.main(arguments, plugins=[watch]))
    if status != 1 or not 0 < len(watch.failed) <= MOST_REPEATED:
        return status
    print(f"\nonce more, alone: {', '.join(watch.failed)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-q", *watch.failed]).returncode
    if again == 0:
        print("unsteady, please mend: " + ", ".join(watch.failed), flush=True)
    return again


if __name__ == "__main__":
    sys.exit(main())
