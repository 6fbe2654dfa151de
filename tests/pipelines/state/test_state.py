"""Operator state on files and LMDB, judged by a dict."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lmdb
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tailrace.pipelines.errors import (
    StateError,
    StateFileDamagedError,
    StateFileMissingError,
    StateOwnedError,
    StateVersionError,
)
from tailrace.pipelines.state import cache
from tailrace.pipelines.state.files import Draft, LocalFiles, RemoteFiles, Sink
from tailrace.pipelines.state.route import TIERS, route
from tailrace.pipelines.state.shard import Attempt, ShardAttempt
from tailrace.pipelines.state.sweep import live_files, sweep
from tailrace.testing.state import MemoryStates
from tailrace.unsynced import WriteBack

OPERATORS = ("count", "join", "top")
LONG = b"l" * 470


def keys() -> st.SearchStrategy[bytes]:
    short = st.binary(min_size=1, max_size=3)
    # Around and past the length LMDB takes, with a common beginning.
    long = st.builds(lambda tail: LONG + tail, st.binary(min_size=0, max_size=60))
    return short | long


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(OPERATORS),
        st.lists(st.tuples(keys(), st.none() | st.binary(max_size=8)), max_size=8),
    ),
    max_size=6,
)


class FailingFiles(LocalFiles):
    """A disk with room for some more files."""

    def __init__(self, root: Path, room: int) -> None:
        super().__init__(root)
        object.__setattr__(self, "left", [None] * room)

    def put(
        self,
        shard: int,
        stem: str,
        suffix: str,
        fill: Callable[[Sink], None],
        drafts: list[Draft] | None = None,
    ) -> str:
        left: list[None] = self.left  # type: ignore[attr-defined]

        def until_full(sink: Sink) -> None:
            fill(sink)
            if not left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left.pop()

        return super().put(shard, stem, suffix, until_full, drafts)


class Ended(BaseException):
    """In place of the end of a process."""


@contextlib.contextmanager
def catching_up_ends_after(steps: int) -> Iterator[None]:
    """The process ends when a cache has taken in so many pieces."""
    put, left = cache._put, [None] * steps

    def until_then(*given: Any) -> None:
        if not left:
            raise Ended
        left.pop()
        put(*given)

    cache._put = until_then
    try:
        with contextlib.suppress(Ended):
            yield
    finally:
        cache._put = put


class StateMachine(RuleBasedStateMachine):
    """Random ticks, attempts thrown away or cut short, merges, caches lost, evicted, half caught
    up or on other hosts, old versions."""

    @initialize(keys_at_once=st.sampled_from([1, 2, 5, cache.KEYS_AT_ONCE]))
    def start(self, keys_at_once: int) -> None:
        self.usual, cache.KEYS_AT_ONCE = cache.KEYS_AT_ONCE, keys_at_once
        self.root = Path(tempfile.mkdtemp(prefix="tailrace-state-"))
        self.files = LocalFiles(self.root / "state")
        self.host = 0
        self.limit: int | None = None
        self.tick = 0
        self.versions: dict[int, tuple[str, ...]] = {}
        self.model = MemoryStates()
        self.history: list[tuple[dict[int, tuple[str, ...]], MemoryStates]] = [({}, self.model)]

    def attempt(self) -> Attempt:
        host = self.root / f"host-{self.host}"
        return Attempt.begin(self.files, host, self.versions, cache_limit=self.limit)

    def work(self, attempt: Attempt, model: MemoryStates, changes: list) -> None:  # type: ignore[type-arg]
        for shard, operator, items in changes:
            live, naive = attempt.of(shard, operator), model.of(shard, operator)
            asked = sorted({key for key, _ in items} | set(naive.rows))
            assert live.get_many(asked) == naive.get_many(asked)
            live.put_many(items)
            naive.put_many(items)
            assert list(live.scan()) == list(naive.scan())
            for key, _ in items:
                assert live.get(key) == naive.get(key)
                for prefix in (key, key[:1], key[:478], key[:475]):
                    assert list(live.scan(prefix)) == list(naive.scan(prefix))

    @rule(
        changes=CHANGES,
        snapshot_every=st.sampled_from([1, 5, 1000, 1000]),
        merged=st.sampled_from([(), (2, 4), (2, 4), (3, 9)]),
    )
    def commit_a_tick(self, changes: list, snapshot_every: int, merged: tuple[int, ...]) -> None:  # type: ignore[type-arg]
        model = self.model.copy()
        with self.attempt() as attempt:
            self.work(attempt, model, changes)
            self.tick += 1
            written = {
                number: shard.finish(self.tick, snapshot_every=snapshot_every, merged=merged)
                for number, shard in attempt._shards.items()
            }
        self.versions = {**self.versions, **{n: names for n, names in written.items() if names}}
        self.model = model
        self.history.append((self.versions, model))

    @rule(changes=CHANGES)
    def commit_a_tick_in_two_levels(self, changes: list) -> None:  # type: ignore[type-arg]
        """Two tasks of one tick write files for one shard, with different operators."""
        model = self.model.copy()
        self.tick += 1
        written: dict[int, tuple[str, ...]] = {}
        for level, mine in ((1, ("count",)), (2, ("join", "top"))):
            with self.attempt() as attempt:
                self.work(attempt, model, [c for c in changes if c[1] in mine])
                for number, names in attempt.finish(self.tick, level).items():
                    written[number] = written.get(number, ()) + names
        self.versions = {**self.versions, **written}
        self.model = model
        self.history.append((self.versions, model))

    @rule(changes=CHANGES, finished=st.booleans())
    def throw_an_attempt_away(self, changes: list, finished: bool) -> None:  # type: ignore[type-arg]
        with self.attempt() as attempt:
            self.work(attempt, self.model.copy(), changes)
            if finished:
                attempt.finish(self.tick + 1)

    @rule(changes=CHANGES, survives=st.integers(0, 2))
    def fail_half_way_and_run_again(self, changes: list, survives: int) -> None:  # type: ignore[type-arg]
        """The disk is full after some shards have written; the tick is run again."""
        failing = FailingFiles(self.files.root, survives)
        with (
            Attempt.begin(failing, self.root / f"host-{self.host}", self.versions) as attempt,
            contextlib.suppress(StateError),
        ):
            self.work(attempt, self.model.copy(), changes)
            attempt.finish(self.tick + 1, merged=(2, 4))
        assert not list(self.files.root.glob("*/*.tmp"))  # they would fill the disk further
        self.commit_a_tick(changes, 1000, (2, 4))

    @rule(limit=st.sampled_from([None, 1, 10**9]))
    def limit_the_caches(self, limit: int | None) -> None:
        self.limit = limit

    @rule(data=st.data())
    def drop_an_operator(self, data: st.DataObject) -> None:
        operator = data.draw(st.sampled_from(OPERATORS))
        model = self.model.copy()
        self.tick += 1
        with self.attempt() as attempt:
            for shard in range(3):
                attempt.shard(shard)
                model.of(shard, operator).rows.clear()
            written = attempt.finish(self.tick, dropped=[operator])
        self.versions = {**self.versions, **written}
        self.model = model
        self.history.append((self.versions, model))

    @rule()
    def lose_the_cache(self) -> None:
        shutil.rmtree(self.root / f"host-{self.host}", ignore_errors=True)

    @rule(data=st.data(), host=st.integers(0, 2), steps=st.integers(0, 6))
    def end_while_catching_up(self, data: st.DataObject, host: int, steps: int) -> None:
        versions, _ = data.draw(st.sampled_from(self.history[-4:]))
        at = self.root / f"host-{host}"
        with catching_up_ends_after(steps), Attempt.begin(self.files, at, versions) as attempt:
            for shard in range(3):
                attempt.shard(shard)
        cache.close_opened()  # as the end of a process does
        self.host = host

    @rule(host=st.integers(0, 2))
    def move_to_another_host(self, host: int) -> None:
        self.host = host

    @rule(data=st.data())
    def read_an_older_tick(self, data: st.DataObject) -> None:
        versions, model = data.draw(st.sampled_from(self.history[-4:]))
        with Attempt.begin(self.files, self.root / f"host-{self.host}", versions) as attempt:
            for shard in range(3):
                for operator in OPERATORS:
                    expected = list(model.of(shard, operator).scan())
                    assert list(attempt.of(shard, operator).scan()) == expected

    @rule()
    def sweep_what_nobody_names(self) -> None:
        sweep(self.files, self.versions, older_than=float("inf"))
        self.history = [(self.versions, self.model)]

    @invariant()
    def the_committed_state_is_the_dict(self) -> None:
        with self.attempt() as attempt:
            for shard in range(3):
                for operator in OPERATORS:
                    expected = list(self.model.of(shard, operator).scan())
                    assert list(attempt.of(shard, operator).scan()) == expected

    def teardown(self) -> None:
        cache.KEYS_AT_ONCE = self.usual
        for path in [path for path in cache._opened if path.is_relative_to(self.root)]:
            cache._opened.pop(path).environment.close()
        shutil.rmtree(self.root)


StateMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestStateIsADict = StateMachine.TestCase


def commit(files: LocalFiles, host: Path, version: tuple[str, ...], tick: int, items: dict) -> tuple[str, ...]:  # type: ignore[type-arg]  # fmt: skip
    with ShardAttempt(files, host, 0, version) as shard:
        shard.of("count").put_many(items.items())
        return shard.finish(tick)


def test_a_lost_state_file_is_told_and_not_guessed(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    first = commit(files, tmp_path / "a", (), 1, {b"k": b"1"})
    second = commit(files, tmp_path / "a", first, 2, {b"k": b"2"})
    files.remove(0, first[0])
    # The cache holds the second tick's predecessor, so only its own file is needed.
    with ShardAttempt(files, tmp_path / "a", 0, second) as shard:
        assert shard.of("count").get(b"k") == b"2"
    with (
        pytest.raises(StateFileMissingError, match=first[0]),
        ShardAttempt(files, tmp_path / "b", 0, second),
    ):
        pass


def test_a_damaged_state_file_is_refused(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    version = commit(files, tmp_path / "a", (), 1, {b"k": b"1" * 100})
    path = tmp_path / "state" / "0" / version[0]
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateFileDamagedError), ShardAttempt(files, tmp_path / "b", 0, version):
        pass


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    name = files.put(0, "0000000001-0", ".delta", lambda sink: sink.write(b"TRSTATE9" + b"\0" * 9))
    with (
        pytest.raises(StateVersionError, match="unknown format"),
        ShardAttempt(files, tmp_path / "a", 0, (name,)),
    ):
        pass


def test_a_cache_of_another_boot_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(tmp_path / "state")
    version = commit(files, tmp_path / "a", (), 1, {b"k": b"1"})
    with ShardAttempt(files, tmp_path / "a", 0, version):
        pass
    before = cache.boot_id()
    monkeypatch.setattr(cache, "boot_id", lambda: "after-a-power-cut")
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        assert shard.of("count").get(b"k") == b"1"
    assert (tmp_path / "a" / "after-a-power-cut" / "0" / "data.mdb").exists()
    cache.sweep_other_boots(tmp_path / "a")
    assert not (tmp_path / "a" / before).exists()


def test_state_files_may_live_on_an_object_store(tmp_path: Path) -> None:
    files = RemoteFiles(f"memory://{tmp_path.name}/state")
    version: tuple[str, ...] = ()
    for tick in range(1, 4):
        with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
            shard.of("count").put_many([(b"k", str(tick).encode())])
            version = shard.finish(tick)
    with ShardAttempt(files, tmp_path / "b", 0, version) as shard:
        assert shard.of("count").get(b"k") == b"3"
    assert len(list(files.list())) == 3
    sweep(files, {0: version}, older_than=float("inf"))
    assert len(list(files.list())) == 3


def test_the_chain_ends_at_a_snapshot(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    version: tuple[str, ...] = ()
    for tick in range(1, 26):
        with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
            shard.of("count").put_many([(str(tick % 7).encode(), str(tick).encode())])
            version = shard.finish(tick, snapshot_every=10)
    way = route(files, 0, version, None)
    assert way.files[0].endswith(".snapshot")
    assert len(way.files) <= 11
    removed = sweep(files, {0: version}, older_than=float("inf"))
    assert removed > 0
    assert set(live_files(files, {0: version})[0]) == set(way.files)
    with ShardAttempt(files, tmp_path / "b", 0, version) as shard:
        assert shard.of("count").get(b"3") == b"24"


def test_a_host_far_behind_catches_up_through_few_files(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    version: tuple[str, ...] = ()
    history = [version]
    for tick in range(1, 321):
        with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
            shard.of("count").put_many([(b"%d" % (tick % 50), b"%d" % tick)])
            version = shard.finish(tick, merged=TIERS)
        history.append(version)
    expected = {b"%d" % (tick % 50): b"%d" % tick for tick in range(1, 321)}
    for behind in (0, 1, 9, 10, 11, 35, 119, 250, 319, 320):
        known = history[320 - behind]
        way = route(files, 0, version, known)
        assert way.start == known
        # ten deltas, ten merges of ten, three of a hundred, and the like at the other end
        assert len(way.files) <= 45, (behind, len(way.files))
        host = tmp_path / f"host-{behind}"
        for at in (known, version):
            with ShardAttempt(files, host, 0, at) as shard:
                found = dict(shard.of("count").scan())
        assert found == expected
    # What is leapt over is not needed for a restore, nor by a cache from before the sweep.
    removed = sweep(files, {0: version}, older_than=float("inf"))
    assert removed > 250
    for host in ("host-35", "new"):
        with ShardAttempt(files, tmp_path / host, 0, version) as shard:
            assert dict(shard.of("count").scan()) == expected
    assert len(route(files, 0, version, None).files) < 25


def test_caches_stay_under_their_limit_and_the_one_longest_unused_goes(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    root = tmp_path / "a" / cache.boot_id()
    versions: dict[int, tuple[str, ...]] = {}
    for shard in range(4):
        with ShardAttempt(files, tmp_path / "a", shard, ()) as attempt:
            attempt.of("count").put_many([(b"%d" % n, b"x" * 200) for n in range(500)])
            versions[shard] = attempt.finish(1)
    for shard in range(4):
        with ShardAttempt(files, tmp_path / "a", shard, versions[shard]):
            os.utime(root / f"{shard}.lock", (shard, shard))
    size = cache.ShardCache(files, tmp_path / "a", 0).used_bytes()
    with ShardAttempt(files, tmp_path / "a", 1, versions[1], cache_limit=10 * size):
        pass  # now shard 1 has been used last
    assert cache.evict(root, int(2.5 * size), keep=3) == [0, 2]
    assert sorted(path.parent.name for path in root.glob("*/data.mdb")) == ["1", "3"]
    with ShardAttempt(files, tmp_path / "a", 0, versions[0]) as attempt:
        assert len(list(attempt.of("count").scan())) == 500


def test_a_file_that_cannot_be_flushed_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files = LocalFiles(tmp_path / "state")
    commit(files, tmp_path / "a", (), 1, {b"k": b"1"})
    before = sorted((tmp_path / "state" / "0").iterdir())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="cannot be written"):
        files.put(0, "0000000002-0", ".delta", lambda sink: sink.write(b"x") and None)
    assert sorted((tmp_path / "state" / "0").iterdir()) == before


def test_a_full_disk_is_told_and_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    version = commit(files, tmp_path / "a", (), 1, {b"k": b"1"})
    full = FailingFiles(tmp_path / "state", 0)
    with ShardAttempt(full, tmp_path / "a", 0, version) as shard:
        shard.of("count").put_many([(b"k", b"2")])
        with pytest.raises(StateError, match="cannot be written") as told:
            shard.finish(2)
    assert "No space left" in (told.value.detail or "")
    assert "free space" in (told.value.hint or "")
    assert not list((tmp_path / "state").glob("*/*.tmp"))
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        assert shard.of("count").get(b"k") == b"1"


@pytest.mark.parametrize("remote", [False, True])
def test_the_state_of_another_project_is_refused(tmp_path: Path, remote: bool) -> None:
    files: LocalFiles | RemoteFiles = LocalFiles(tmp_path / "state")
    if remote:
        files = RemoteFiles(f"memory://{tmp_path.name}/claimed")
    files.claim("shop")
    files.claim("shop")
    with pytest.raises(StateOwnedError, match='of project "shop", not of "bank"'):
        files.claim("bank")


WRITER = """
import sys
from pathlib import Path
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import ShardAttempt
root = Path(sys.argv[1])
files = LocalFiles(root / "state")
version, tick = (), 0
while True:
    tick += 1
    with ShardAttempt(files, root / "cache", 0, version) as shard:
        shard.of("count").put_many([(b"%05d" % (i * tick % 5003), b"%d" % tick) for i in range(400)])
        version = shard.finish(tick, snapshot_every=7)
    print(tick, *version, flush=True)
"""


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_leaves_state_equal_to_the_last_committed_tick(tmp_path: Path, seed: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    stop_at = random.Random(seed).randint(8, 40)
    lines = [process.stdout.readline() for _ in range(stop_at)]
    os.kill(process.pid, signal.SIGKILL)
    lines += process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    process.wait()
    tick, *names = next(line for line in reversed(lines) if line.endswith("\n")).split()
    expected = {
        b"%05d" % (i * n % 5003): b"%d" % n for n in range(1, int(tick) + 1) for i in range(400)
    }
    for host in ("cache", "elsewhere"):
        with ShardAttempt(
            LocalFiles(tmp_path / "state"), tmp_path / host, 0, tuple(names)
        ) as shard:
            assert dict(shard.of("count").scan()) == expected


CATCHING_UP = """
import os, signal, sys
from pathlib import Path
from tailrace.pipelines.state import cache
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import ShardAttempt
root, steps, versions = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
files = LocalFiles(root / "state")
with ShardAttempt(files, root / "cache", 0, tuple(versions[0].split())):
    pass
put, done = cache._put, []
def killed_after_some(*given):
    if len(done) == steps:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(put(*given))
cache.KEYS_AT_ONCE, cache._put = 50, killed_after_some
with ShardAttempt(files, root / "cache", 0, tuple(versions[1].split())):
    pass
"""


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 11])
def test_kill_9_in_the_middle_of_a_catch_up_leaves_a_cache_that_nobody_believes(
    tmp_path: Path, steps: int
) -> None:
    files = LocalFiles(tmp_path / "state")
    rows: list[dict[bytes, bytes]] = [{}]
    versions: list[tuple[str, ...]] = [()]
    for tick in range(1, 6):
        changes = {b"%04d" % (i * 7 * tick % 1009): b"%d" % tick for i in range(200)}
        versions.append(commit(files, tmp_path / "elsewhere", versions[-1], tick, changes))
        rows.append({**rows[-1], **changes})
    run = subprocess.run(
        [sys.executable, "-c", CATCHING_UP, str(tmp_path), str(steps)]
        + [" ".join(versions[tick]) for tick in (1, 4)]
    )
    assert run.returncode == -signal.SIGKILL
    copies = {tick: tmp_path / f"copy-{tick}" for tick in (1, 2, 4, 5)}
    for tick, copy in copies.items():
        shutil.copytree(tmp_path / "cache", copy)
        with ShardAttempt(files, copy, 0, versions[tick]) as shard:
            assert dict(shard.of("count").scan()) == rows[tick]


LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import ShardAttempt
root = Path(sys.argv[1])
files, version = LocalFiles(root / "state"), ()
def commit(tick, items):
    with ShardAttempt(files, root / "cache", 0, version) as shard:
        shard.of("count").put_many(items)
        return shard.finish(tick)
for tick in range(1, 11):
    version = commit(tick, [(b"%07d" % i, b"v" * 400) for i in range(tick, 100_000, 10)])
with ShardAttempt(files, root / "cache", 0, version) as shard:
    pages = shard.size("count")[1] // 4096
version = commit(11, [(b"%07d" % i, b"w") for i in range(1, 100_000, 7)])
used = int(next(l for l in open("/proc/self/status") if l.startswith("VmData")).split()[1]) << 10
assert pages * 4096 > 40 << 20, pages  # each of them holds a key that changes
resource.setrlimit(resource.RLIMIT_DATA, (used + (24 << 20),) * 2)
with ShardAttempt(files, root / "cache", 0, version) as shard:
    assert shard.of("count").get(b"0000001") == b"w"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_catching_up_needs_less_memory_than_the_pages_it_changes(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", LITTLE_MEMORY, str(tmp_path)], capture_output=True)
    assert run.returncode == 0, run.stderr.decode()


def test_a_cache_grows_with_what_it_holds_not_with_what_changes(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    version: tuple[str, ...] = ()
    sizes: list[int] = []
    for tick in range(1, 9):
        items = {b"%07d" % i: b"%050d" % tick for i in range(0, 40_000)}
        version = commit(files, tmp_path / "a", version, tick, items)
        with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
            sizes.append(shard.figures.cache_bytes)
    assert sizes[-1] < 1.5 * sizes[0], sizes


OTHER_READER = """
import sys
from pathlib import Path
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import ShardAttempt
from tailrace.pipelines.state import cache
cache.LEAST_MAP = 1 << 20
files, root = LocalFiles(Path(sys.argv[1]) / "state"), Path(sys.argv[1]) / "cache"
for line in sys.stdin:
    version, expected = line.split()
    with ShardAttempt(files, root, 0, (version,)) as shard:
        print(sum(1 for _ in shard.of("count").scan()) == int(expected), flush=True)
"""


def test_a_map_that_is_full_grows_under_readers_of_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LEAST_MAP", 1 << 20)
    files, data = LocalFiles(tmp_path / "state"), tmp_path / "cache" / cache.boot_id() / "0"
    version: tuple[str, ...] = ()
    sizes = set()
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_READER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None
        for tick in range(1, 25):
            items = {b"%07d" % (i * 25 + tick): b"v" * 400 for i in range(1_000)}
            version = commit(files, tmp_path / "cache", version, tick, items)
            if tick % 3 == 0:  # else the other process catches up
                with ShardAttempt(files, tmp_path / "cache", 0, version) as shard:
                    assert sum(1 for _ in shard.of("count").scan()) == tick * 1_000
            other.stdin.write(f"{version[0]} {tick * 1_000}\n")
            other.stdin.flush()
            assert other.stdout.readline() == "True\n"
            sizes.add((data / "data.mdb").stat().st_size)
        other.stdin.close()
    assert len(sizes) > 1, sizes


FULL_DISK = """
import sys
from pathlib import Path
from tailrace.pipelines.errors import StateError
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import ShardAttempt
files, version = LocalFiles(Path(sys.argv[1])), ()
for tick in range(1, 40):
    try:
        with ShardAttempt(files, Path(sys.argv[2]), 0, version) as shard:
            shard.of("count").put_many([(b"%07d" % (i * 40 + tick), b"v" * 400) for i in range(2_000)])
            version = shard.finish(tick)
    except StateError as told:
        print(tick, told.message, told.detail)
        break
(Path(sys.argv[2]) / "filler").unlink()
with ShardAttempt(files, Path(sys.argv[2]), 0, version) as shard:
    print(sum(1 for _ in shard.of("count").scan()) == (tick - 1) * 2_000)
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="a small disk is mounted as root only"
)
def test_a_cache_on_a_full_disk_is_told_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "none", str(small)], check=True)
    try:
        (small / "filler").write_bytes(bytes(36 << 20))
        run = subprocess.run(
            [sys.executable, "-c", FULL_DISK, str(tmp_path / "state"), str(small)],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert run.returncode == 0, (run.returncode, run.stderr)
    told, after = run.stdout.splitlines()
    assert "cannot be written" in told
    assert "No space left" in told
    assert after == "True"


def test_the_collector_rests_while_an_attempt_works(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    assert gc.isenabled()
    with Attempt.begin(files, tmp_path / "cache", {}):
        with Attempt.begin(files, tmp_path / "cache", {}):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with Attempt.begin(files, tmp_path / "cache", {}):
            pass
        assert not gc.isenabled()  # it was not ours to start
    finally:
        gc.enable()


def test_a_claim_that_a_crash_left_empty_is_claimed_again(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "PROJECT").touch()
    files.claim("shop")
    files.claim("shop")
    with pytest.raises(StateOwnedError, match='of project "shop"'):
        files.claim("bank")
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["PROJECT"]


def test_of_projects_that_claim_one_place_at_once_one_succeeds(tmp_path: Path) -> None:
    def claims(project: str) -> bool:
        try:
            LocalFiles(tmp_path / "state").claim(project)
        except StateOwnedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(claims, [f"shop-{n}" for n in range(8)])).count(True) == 1


def test_of_projects_that_claim_a_remote_place_at_once_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    first, second = (RemoteFiles(f"memory://{tmp_path.name}/raced") for _ in range(2))
    real = MemoryFileSystem.exists

    def slow(self: MemoryFileSystem, path: str, **named: Any) -> bool:
        found = bool(real(self, path, **named))
        if path.endswith("PROJECT") and not found:
            monkeypatch.setattr(MemoryFileSystem, "exists", real)
            second.claim("bank")  # between the look and the claim of the other
        return found

    monkeypatch.setattr(MemoryFileSystem, "exists", slow)
    with pytest.raises(StateOwnedError, match='of project "bank"'):
        first.claim("shop")


def test_a_file_that_is_not_all_there_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    files = RemoteFiles(f"memory://{tmp_path.name}/cut")
    assert files.get(0, files.put(0, "1-0", ".delta", lambda sink: sink.write(b"x" * 100) and None))
    real = MemoryFileSystem.put_file

    def short(self: MemoryFileSystem, here: str, there: str, **named: Any) -> None:
        real(self, here, there, **named)
        self.pipe_file(there, self.cat_file(there)[:-1])

    monkeypatch.setattr(MemoryFileSystem, "put_file", short)
    with pytest.raises(StateError, match="not whole"):
        files.put(0, "2-0", ".delta", lambda sink: sink.write(b"y" * 100) and None)


def filled(tmp_path: Path) -> tuple[LocalFiles, Path, tuple[str, ...]]:
    """State of two ticks, and its cache in `tmp_path/a`."""
    files = LocalFiles(tmp_path / "state")
    version: tuple[str, ...] = ()
    for tick in (1, 2):
        with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
            shard.of("count").put_many([(b"k%d" % n, b"%d" % tick) for n in range(50)])
            version = shard.finish(tick)
    with ShardAttempt(files, tmp_path / "a", 0, version):
        pass
    return files, tmp_path / "a" / cache.boot_id() / "0", version


def judged(tmp_path: Path, files: LocalFiles, version: tuple[str, ...]) -> None:
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        found = list(shard.of("count").scan())
    assert found == sorted((b"k%d" % n, b"2") for n in range(50))


def test_a_copy_of_a_cache_is_not_taken_for_it(tmp_path: Path) -> None:
    files, place, version = filled(tmp_path)
    cache.close_opened()
    with lmdb.open(str(place), max_dbs=10) as environment, environment.begin(write=True) as change:
        change.put(b"k1", b"torn", db=environment.open_db(b"count", txn=change))
    shutil.copytree(place, tmp_path / "backup")
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "backup", place)
    judged(tmp_path, files, version)


def test_a_cache_that_lacks_what_was_committed_is_restored(tmp_path: Path) -> None:
    files, place, version = filled(tmp_path)
    cache.close_opened()
    with lmdb.open(str(place), max_dbs=10) as environment, environment.begin(write=True) as change:
        change.delete(b"k1", db=environment.open_db(b"count", txn=change))
    judged(tmp_path, files, version)
    cache.close_opened()
    with lmdb.open(str(place), max_dbs=10) as environment, environment.begin(write=True) as change:
        change.drop(environment.open_db(b"count", txn=change))
    judged(tmp_path, files, version)


def test_a_cache_whose_pages_cannot_be_written_is_deleted_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    files, place, version = filled(tmp_path)
    back = WriteBack(0, refuse)
    monkeypatch.setattr(cache, "WRITE_BACK", back)
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        shard.of("count").put_many([(b"k0", b"2")])
        version = shard.finish(3)
    inode = (place / "data.mdb").stat().st_ino
    cache.ShardCache(files, tmp_path / "a", 0).bring_to(version)
    assert back.wait()
    assert not place.exists() or (place / "data.mdb").stat().st_ino != inode
    monkeypatch.setattr(cache, "WRITE_BACK", WriteBack())
    judged(tmp_path, files, version)


def test_damage_that_is_met_while_a_tick_reads_deletes_the_cache(tmp_path: Path) -> None:
    files, place, version = filled(tmp_path)
    shards = cache.ShardCache(files, tmp_path / "a", 0)
    with pytest.raises(StateError, match="damaged"), shards.reading(version):
        raise lmdb.CorruptedError("a page is not what it says")
    assert not place.exists()
    judged(tmp_path, files, version)


def test_a_dropped_operator_leaves_nothing_to_count(tmp_path: Path) -> None:
    files, place, version = filled(tmp_path)
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        shard.of("other").put_many([(b"x", b"1")])
        version = shard.finish(3, dropped=("count",))
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        assert list(shard.operators()) == ["other"]
    inode = (place / "data.mdb").stat().st_ino
    cache.close_opened()
    with ShardAttempt(files, tmp_path / "a", 0, version) as shard:
        assert list(shard.operators()) == ["other"]
    assert (place / "data.mdb").stat().st_ino == inode
