"""How long the checker of `tailrace verify` takes, and how much memory.

    make bench-verify        or: python -m benchmarks.verify [--sends 10000000]

A history of that many sends, as many records in the final read and twice as many polls is made,
written and judged by a process of its own, from its files: once without a fault, and once with
one lost record, which must be found. The goal for 10 million sends: 60 s and 4 GB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tailrace.verify.history import About, ConsumerAbout, make_history, write_history

PARTITIONS, PRODUCERS = 12, 16
JUDGE = """
import json, resource, sys, time
import tailrace.verify
began = time.monotonic()
verdict = tailrace.verify.check(sys.argv[1])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "broken": {each.name: each.count for each in verdict.promises if not each.holds},
    "seconds": round(time.monotonic() - began, 1),
    "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
    "megabytes": used.ru_maxrss // 1024,
}))
"""


def write(folder: Path, sends: int, *, lose: int | None = None) -> None:
    """Producers write to all partitions in turn; a free consumer and a group of three read."""
    random = np.random.default_rng(7)
    producer = random.integers(0, PRODUCERS, sends).astype(np.int32)
    partition = random.integers(0, PARTITIONS, sends).astype(np.int32)
    sequence = np.zeros(sends, np.int64)
    for each in range(PRODUCERS):
        mine = producer == each
        sequence[mine] = np.arange(int(mine.sum()))
    offset = np.zeros(sends, np.int64)
    for each in range(PARTITIONS):
        mine = partition == each
        offset[mine] = np.arange(int(mine.sum()))
    moment = np.arange(sends, dtype=np.int64)
    order = np.lexsort((offset, partition))
    log = {
        "partition": partition[order],
        "offset": offset[order],
        "producer": producer[order],
        "sequence": sequence[order],
    }
    if lose is not None:
        log = {name: np.delete(column, lose) for name, column in log.items()}
    polls = {name: np.concatenate((column, column)) for name, column in log.items()}
    count = len(log["offset"])
    polls["consumer"] = np.concatenate((np.zeros(count), 1 + log["partition"] % 3)).astype(np.int32)
    polls["polled_at"] = np.full(2 * count, sends, np.int64)
    # Members poll all their partitions in turn, not one after another.
    mixed = np.concatenate((random.permutation(count), count + random.permutation(count)))
    lanes = polls["consumer"].astype(np.int64) * PARTITIONS + polls["partition"]
    slots = np.argsort(lanes[mixed], kind="stable")
    rows = np.empty(2 * count, np.int64)
    rows[slots] = np.argsort(lanes, kind="stable")
    everything = tuple(range(PARTITIONS))
    about = About(
        run="bench",
        partitions=PARTITIONS,
        consumers=(
            ConsumerAbout(0, "free", None, everything, everything),
            *(ConsumerAbout(1 + each, f"member-{each}", "g") for each in range(3)),
        ),
        groups=("g",),
    )
    history = make_history(
        about,
        sends={
            "producer": producer,
            "sequence": sequence,
            "partition": partition,
            "offset": offset,
            "status": np.zeros(sends, np.uint8),
            "transaction": np.full(sends, -1, np.int64),
            "sent_at": moment,
            "answered_at": moment + 1,
        },
        log=log,
        polls={name: column[rows] for name, column in polls.items()},
    )
    write_history(folder, history)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sends", type=int, default=10_000_000)
    chosen = parser.parse_args()
    print(f"{'history':<22} {'wall s':>8} {'CPU s':>8} {'MB':>7}  broken promises")
    for name, lose in (("without a fault", None), ("one record lost", chosen.sends // 3)):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), chosen.sends, lose=lose)
            run = subprocess.run(
                [sys.executable, "-c", JUDGE, folder], capture_output=True, text=True, check=True
            )
        found = json.loads(run.stdout)
        broken = ", ".join(f"{key} {count}" for key, count in found["broken"].items()) or "none"
        print(
            f"{name:<22} {found['seconds']:>8} {found['cpu_seconds']:>8} {found['megabytes']:>7}  {broken}"
        )


if __name__ == "__main__":
    main()
