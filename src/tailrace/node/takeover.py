"""Taking over a project whose files have changed, while it runs.

Whoever wants it leaves a small file, and the supervisor answers beside it:

    <state>/apply/<id>.ask       {"dry_run"}
    <state>/apply/<id>.answer    {"state": one of STATES, "changes": [see `changes.Change`],
                                  "waiting": parts that have not begun yet, "error"}
    <state>/apply/applied        the number of the last take-over; the console reads it

The project is loaded and compared in a fork, beside which the supervisor goes on looking
after its parts. Whatever is wrong with the files is the answer, and what runs goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.files import FILES
from tailrace.node.apart import Apart
from tailrace.node.changes import WAIT, Change, changes
from tailrace.node.errors import NeedsRestartError
from tailrace.node.plan import Plan, loaded
from tailrace.pipelines.spark.importable import FOLDER

if TYPE_CHECKING:
    from tailrace.node.supervisor import Supervisor

DIRECTORY = "apply"
STATES = ("prepared", "nothing", "applied", "failed")
WATCH_SECONDS = 1.0
# Python takes a compiled file for the newest one while the source's time has the same second.
SETTLE_SECONDS = 1.1
_LEFT_OUT = frozenset({"tests", "__pycache__", "node_modules", "site-packages"})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A project as its files are now, and what taking it over does."""

    plan: Plan
    changes: tuple[Change, ...]


def prepare(before: Plan, bootstrap: str, seen: float) -> Prepared:
    """Load the project and compare it with what runs; for a fork. `seen`: when the newest of
    its files was written."""
    time.sleep(max(0.0, min(SETTLE_SECONDS, seen + SETTLE_SECONDS - time.time())))
    project, plan = loaded(before.directory, before.flags, before.only)
    return Prepared(plan, tuple(changes(before.marks, project, plan.marks, bootstrap)))


@dataclass(slots=True)
class TakeOver:
    """Answers requests to take a project over and, with `watch`, looks for changes itself."""

    supervisor: Supervisor
    echo: Callable[[str], None]
    watch: bool = False
    stopping: Callable[[], bool] = lambda: False
    _work: Apart[Prepared] | None = None
    _asked: Path | None = None  # the request that is being prepared; None: a change was seen
    _dry: bool = False
    _known: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _looked_at: float = 0.0

    def __post_init__(self) -> None:
        self._known = files_of(self.supervisor.project.directory)
        FILES.make_directories(self._folder)
        for path in self._folder.glob("*"):
            path.unlink()

    @property
    def _folder(self) -> Path:
        return self.supervisor.directory / DIRECTORY

    def step(self) -> None:
        """Go one step further; call it again and again."""
        if self._work is not None:
            if self._work.done():
                work, self._work = self._work, None
                self._finish(work)
            return
        asked = next(iter(sorted(self._folder.glob("*.ask"))), None)
        if asked is not None:
            document = orjson.loads(asked.read_bytes())
            self._begin(asked, dry=bool(document.get("dry_run")))
        elif self.watch and self._changed():
            self._begin(None, dry=False)

    def close(self) -> None:
        if self._work is not None:
            self._work.end()
            self._work = None

    def _changed(self) -> bool:
        """Whether a file of the project differs from when it was last looked at."""
        now = self.supervisor.clock.monotonic()
        if now - self._looked_at < WATCH_SECONDS:
            return False
        self._looked_at = now
        return files_of(self.supervisor.project.directory) != self._known

    def _begin(self, asked: Path | None, *, dry: bool) -> None:
        self._asked, self._dry = asked, dry
        supervisor = self.supervisor
        before, bootstrap = supervisor.project, supervisor.address
        self._known = files_of(before.directory)
        newest = max((written for written, _ in self._known.values()), default=0) / 1e9
        self._work = Apart(lambda: prepare(before, bootstrap, newest))

    def _finish(self, work: Apart[Prepared]) -> None:
        try:
            found = work.result()
            wait = [f"{c.kind} {c.name}" for c in found.changes if c.change == WAIT]
            if wait and not self._dry:
                raise NeedsRestartError(
                    f"{', '.join(wait)} changed: nothing was taken over",
                    detail="these count when the project starts",
                    hint="put them back, or stop `tailrace up` and start it again",
                )
            if self._dry or not found.changes:
                self._answer("nothing" if not found.changes else "prepared", found.changes)
                return
            self._answer("prepared", found.changes, last=False)
            if self._asked is None:
                self.echo("the project changed:")
                for change in found.changes:
                    self.echo(f"  {in_words(change)}")
            waiting = self.supervisor.take_over(found.plan, found.changes, self.stopping)
            for change in found.changes:
                self.supervisor.history.add(
                    "changed", f"{change.kind} {change.name}", in_words(change)
                )
            self._answer("applied", found.changes, waiting=waiting)
            if self._asked is None:
                self.echo("taken over")
        except TailraceError as problem:
            self.supervisor.history.add("refused", "", f"change not taken over: {problem}")
            self._answer("failed", (), error=problem)
            if self._asked is None:
                self.echo("the project changed, and is not taken over:")
                self.echo(problem.render())

    def _answer(
        self,
        state: str,
        found: Sequence[Change],
        *,
        waiting: Collection[str] = (),
        error: TailraceError | None = None,
        last: bool = True,
    ) -> None:
        if self._asked is None:
            return
        document = {
            "state": state,
            "changes": [change.as_dict() for change in found],
            "waiting": list(waiting),
            "error": None if error is None else error.as_dict(),
        }
        answer = self._asked.with_suffix(".answer")
        FILES.write_whole(answer, orjson.dumps(document), sync=False)
        if last:
            self._asked.unlink(missing_ok=True)


def files_of(home: Path) -> dict[Path, tuple[int, int]]:
    """The files that say what a project is, each with when it was written and its size."""
    found: dict[Path, tuple[int, int]] = {}
    places = [home / config.FILE_NAME, *(home / FOLDER).glob("*.sql")]
    for folder, below, names in os.walk(home):
        below[:] = [
            name
            for name in below
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not (Path(folder, name) / "pyvenv.cfg").exists()
        ]
        places += [Path(folder, name) for name in names if name.endswith(".py")]
    for path in places:
        try:
            about = path.stat()
        except OSError:
            continue
        found[path] = (about.st_mtime_ns, about.st_size)
    return found


def in_words(change: Change) -> str:
    """One change as a line."""
    count = "" if change.records is None else f" ({change.records:,} records)"
    detail = f": {change.detail}" if change.detail else ""
    return f"{change.change} {change.kind} {change.name}{count}{detail}"


def ask(directory: Path, *, dry_run: bool) -> Path:
    """Ask the running project whose files are in `directory`; where the answer will be."""
    folder = directory / DIRECTORY
    FILES.make_directories(folder)
    asked = folder / f"{time.time_ns()}-{os.getpid()}.ask"
    FILES.write_whole(asked, orjson.dumps({"dry_run": dry_run}), sync=False)
    return asked.with_suffix(".answer")


def read_applied(directory: Path) -> str:
    """The number of the last take-over; "" for none."""
    try:
        return (directory / DIRECTORY / "applied").read_text()
    except OSError:
        return ""


def read_answer(answer: Path) -> dict[str, Any] | None:
    """What has been answered so far; None for nothing yet."""
    try:
        document: dict[str, Any] = orjson.loads(answer.read_bytes())
    except FileNotFoundError:
        return None
    return document
