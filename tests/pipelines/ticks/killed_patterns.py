"""The ticks of one pattern, killed with SIGKILL at a named step of the n-th.

python killed_patterns.py BOOTSTRAP TOPIC DIRECTORY STEP TICK
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
import tailrace as tr
from pipelines.steps import tell_steps
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler.declared_patterns import compile_pattern
from tailrace.pipelines.declare import Pattern
from tailrace.pipelines.ticks.driver import Runner, TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work, gather, guarded
from tailrace.pipelines.ticks.patterns import PatternTicks, key_of
from tailrace.records.tick import TICKS_TOPIC

STEPS = (
    "planned", "state written", "job done", "changes sent", "row sent", "committing", "committed",
)  # fmt: skip


def declared(topic: str, **more: Any) -> Pattern:
    """Two payments below 2 and then one above 500, of a card, within a minute."""
    payments = tr.topic(
        topic, schema="card INT, amount INT, at TIMESTAMP", time="at", watermark="20 seconds",
        late="drop",
    )  # fmt: skip
    arguments: dict[str, Any] = {
        "match": "probe{2,} -> theft",
        "define": {"probe": "amount < 2", "theft": "amount > 500"},
        "select": {"probes": "count(probe)", "stolen": "last(theft.amount)"},
    }
    return tr.pattern(
        f"{topic}_tested", payments, key="card", order_by="at", within="1 minute", timeouts=True,
        **{**arguments, **more},
    )  # fmt: skip


def in_process(work: Work) -> Outcome:
    return gather(guarded(work))


def ticks_of(
    bootstrap: str, pattern: Pattern, directory: str, run: Runner = in_process, limit: int = 8
) -> PatternTicks:
    settings = TickSettings(
        key_of("bank", pattern.name), bootstrap, f"{directory}/state", f"{directory}/cache",
        shards=3, limit=limit, declared=frozenset([pattern.name, f"{pattern.name}.timeouts"]),
        dead=f"{pattern.name}.dead",
    )  # fmt: skip
    return PatternTicks(compile_pattern(pattern, {}, {}), settings, run, beginning={})


def main(bootstrap: str, topic: str, directory: str, step: str, number: str) -> None:
    tick = 0

    def reached(name: str) -> None:
        if name == step and tick == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    def run(work: Work) -> Outcome:
        nonlocal tick
        tick += 1
        reached("planned")
        outcome = in_process(work)
        reached("job done")
        return outcome

    def send(self: Any, topic: str, *rest: Any) -> None:
        original_send(self, topic, *rest)
        if topic == TICKS_TOPIC:
            self.flush()
            reached("row sent")

    original_send = TransactionalWriter.send
    TransactionalWriter.send = send  # type: ignore[method-assign,assignment]
    tell_steps(reached)
    driver = ticks_of(bootstrap, declared(topic), directory, run)
    driver.begin()
    while True:
        driver.step(1.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
