"""Run the test suite room by room and print the seconds of each.

One pytest run over all rooms, so that shared servers (Kafka, Postgres, Spark) start
once; the table of seconds is made from its own report. Exit status is pytest's.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

import pytest

FAST = "not clients and not crash and not cluster and not thorough"


class Seconds:
    """Adds up the time of tests by their folder."""

    def __init__(self) -> None:
        self.by_suite: defaultdict[str, float] = defaultdict(float)
        self.began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = report.nodeid.split("::")[0].split("/")
        self.by_suite["/".join(parts[:-1])] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds by suite")
        for suite, seconds in sorted(self.by_suite.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{seconds:8.1f} s  {suite}")
        terminalreporter.write_line(f"{time.monotonic() - self.began:8.1f} s  in all")


if __name__ == "__main__":
    arguments = ["tests", "--ignore=tests/docs", "-m", FAST, "-q", *sys.argv[1:]]
    sys.exit(pytest.main(arguments, plugins=[Seconds()]))
