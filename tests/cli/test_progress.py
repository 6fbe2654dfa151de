"""What `up` says while parts start and stop; what it keeps away."""

from __future__ import annotations

import io

from tailrace.cli.progress import Progress
from tailrace.node.noise import Quiet
from tailrace.testing.fake_clock import FakeClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def reports(**states: str) -> list[dict[str, str]]:
    names = {"pipelines": "p", "broker": "log"}
    return [{"kind": k, "name": names.get(k, k), "state": state} for k, state in states.items()]


def test_each_part_is_told_once_when_it_works() -> None:
    clock, out = FakeClock(), io.StringIO()
    progress = Progress(out, clock)
    progress.look(reports(broker="running", pipelines="starting"))
    clock.advance(8.0)
    for _ in range(3):
        progress.look(reports(broker="running", pipelines="running"))
    progress.leave([("broker", "log")])
    progress.leave([])
    assert out.getvalue().splitlines() == [
        "the log                  started, 0.0 s",
        "Spark                    started, 8.0 s",
        "Spark                    stopped",
        "the log                  stopped",
    ]


def test_a_terminal_shows_what_is_awaited_and_for_how_long() -> None:
    clock, out = FakeClock(), Terminal()
    progress = Progress(out, clock)
    progress.look(reports(pipelines="starting"))
    clock.advance(8.0)
    progress.look(reports(pipelines="starting"))
    assert "starting Spark … 8 s" in out.getvalue()
    progress.say("a line")
    assert out.getvalue().endswith("\r\x1b[2Ka line\n")
    clock.advance(1.0)
    progress.leave([("pipelines", "p")])
    assert "stopping Spark" in out.getvalue()
    progress.done()
    assert out.getvalue().endswith("\x1b[2K")


def test_quiet_says_only_what_it_is_given() -> None:
    out = Terminal()
    progress = Progress(out, quiet=True)
    progress.look(reports(pipelines="running"))
    progress.leave([("pipelines", "p")])
    progress.say("an error")
    assert out.getvalue() == "an error\n"


IDLE = """Traceback (most recent call last):
  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager
  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker
BrokenPipeError: [Errno 32] Broken pipe"""
OTHER = IDLE.replace("daemon.py", "worker.py")


def test_noise_of_spark_is_not_shown_and_every_other_stack_is_whole() -> None:
    given = ["WARNING: Using incubator modules: x", "one", *IDLE.splitlines(), "two", *OTHER.splitlines(), "three"]  # fmt: skip
    quiet = Quiet()
    shown = [line for one in given for line in quiet.take(one)]
    assert shown == ["one", "two", *OTHER.splitlines(), "three"]
    assert quiet.take("Traceback (most recent call last):") == []
    assert quiet.rest() == ["Traceback (most recent call last):"]
