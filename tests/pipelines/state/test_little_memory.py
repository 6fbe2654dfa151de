"""Shards that are larger than the memory of the process that works on them.

What the kernel charges, reclaims and gives back differs from machine to machine: this suite is
part of `make test-thorough`, not of `make test`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.pipelines.state import memory

pytestmark = pytest.mark.thorough

LIMIT = 160 << 20
GROUPS = (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))


@pytest.fixture
def limited() -> Iterator[Callable[[list[str]], subprocess.CompletedProcess[bytes]]]:
    """Runs a program in a control group of `LIMIT` bytes, page cache included."""
    made: Path | None = None
    for parent, setting in GROUPS:
        path = Path(parent) / f"tailrace-test-{os.getpid()}"
        try:
            if not (Path(parent) / "cgroup.procs").exists():
                continue
            if setting == "memory.max":
                (Path(parent) / "cgroup.subtree_control").write_text("+memory")
            path.mkdir()
            (path / setting).write_text(str(LIMIT))
            made = path
            break
        except OSError:
            if path.is_dir():
                path.rmdir()
    if made is None:
        pytest.skip("no control group can be made here")
    members = made / "cgroup.procs"

    def run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
        join = f'echo $$ > {members} && exec "$@"'
        return subprocess.run(["sh", "-c", join, "sh", *command], capture_output=True)

    yield run
    made.rmdir()


LARGER_THAN_MEMORY = """
import sys
from pathlib import Path
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import ShardAttempt
root = Path(sys.argv[1])
files, version = LocalFiles(root / "state"), ()
for tick in range(1, 19):
    with ShardAttempt(files, root / "cache", 0, version) as shard:
        state = shard.of("count")
        numbers = range(15_000 * tick, 15_000 * tick + 20_000)  # a quarter has been there
        keys = sorted(b"%07d" % (number * 7919 % 1_000_003) for number in numbers)
        known = sum(value is not None for value in state.get_many(keys))
        assert known == (5_000 if tick > 1 else 0), known
        state.put_many((key, b"%d" % tick + b"v" * 200) for key in keys)
        version = shard.finish(tick)
with ShardAttempt(files, root / "cache", 0, version) as shard:
    rows, size = shard.size("count")
    assert rows == 275_000, rows
    assert size > 70 << 20, size  # more than is left beside 90 MB of the program itself
"""


def test_state_larger_than_the_memory_of_its_control_group_is_worked_on_to_the_end(
    tmp_path: Path, limited: Callable[[list[str]], subprocess.CompletedProcess[bytes]]
) -> None:
    if "tmpfs" in subprocess.check_output(["stat", "-f", "-c", "%T", tmp_path], text=True):
        pytest.skip("files in memory are charged to the control group: set TMPDIR to a disk")
    run = limited([sys.executable, "-c", LARGER_THAN_MEMORY, str(tmp_path)])
    assert run.returncode != -signal.SIGKILL, "the kernel ended it for want of memory"
    assert run.returncode == 0, run.stderr.decode()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_of_a_large_piece_of_work_goes_back_to_the_system() -> None:
    def used() -> int:
        status = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in status if line.startswith("RssAnon")).split()[1]) << 10

    before = used()
    rows = [(number, b"%d" % number) for number in range(400_000)]
    column = pa.array([value for _, value in rows])
    pieces = [bytes(2_000) for _ in range(20_000)]  # of the C library's own memory
    most = used()
    assert most - before > 60 << 20
    kept = pieces[-1]  # at the top: without a trim everything below it stays
    del rows, column, pieces
    memory.give_back()
    assert used() - before < (most - before) // 2
    assert len(kept) == 2_000
