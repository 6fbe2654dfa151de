"""Processes by names that last: who a process id is, what it left behind, how it is ended.

A process id alone may be a stranger's by now; together with its start time and the boot
it belongs to it names one process for ever. A part leads a process group of its own
(Spark's JVM and other helpers are in it), and the kernel gives no new process the id of a
group that still has members: a group without its leader is what a dead part left.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson

from tailrace.files import FILES

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
END_SECONDS = 10.0


def end_with_parent(number: int = signal.SIGTERM) -> Callable[[], None]:
    """For `preexec_fn`: the kernel sends `number` to the new process when we are gone."""
    library = ctypes.CDLL(None, use_errno=True)  # loaded here: a fork should do little

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, number)

    return ask


def born(pid: int) -> int | None:
    """When a process started, in the kernel's ticks; with its id this names it for ever."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def boot() -> str:
    """This boot of the machine: start times of another one mean nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def running(pid: int) -> bool:
    """Whether a process is there and not only waiting for its parent to look."""
    fields = _stat(pid)
    return fields is not None and fields[0] != "Z"


def members(group: int) -> Iterator[int]:
    """Processes of a process group that still run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None and int(fields[2]) == group and fields[0] != "Z":
                yield int(entry.name)


def signal_group(group: int, number: int) -> None:
    """Signal every process of a group; nothing happens when none is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def record(path: Path, children: Iterable[tuple[str, int]]) -> None:
    """Write down which processes run, so that the next `up` can end what we leave."""
    listed = [{"id": name, "pid": pid, "born": born(pid), "boot": boot()} for name, pid in children]
    # Not synced: it is of no use after a power cut, and names the boot it is of.
    FILES.write_whole(path, orjson.dumps(listed), sync=False)


def end_leftovers(path: Path) -> list[int]:
    """End what a killed supervisor left behind, parts and their helpers; the parts' ids.

    Only what `record` named: never a stranger that got the same process id.
    """
    try:
        listed = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return []
    here = boot()
    ours = [one for one in listed if one["born"] is not None and one.get("boot", here) == here]
    alive = [one["pid"] for one in ours if born(one["pid"]) == one["born"]]
    # A group whose leader is gone: its number belongs to nobody else.
    headless = [one["pid"] for one in ours if born(one["pid"]) is None and any(members(one["pid"]))]
    for pid in alive:
        log.warning("ending a process left by an earlier run", extra={"pid": pid})
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)  # a stopped one would not hear it
    for group in headless:
        log.warning("ending helpers left by an earlier run", extra={"group": group})
        signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    for group in [*alive, *headless]:
        while running(group) or any(members(group)):
            if time.monotonic() > deadline:
                signal_group(group, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(group, signal.SIGKILL)
                break
            time.sleep(0.05)
    return alive


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name: state, parent, group, …"""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()
