"""The LMDB environment that holds the views, as files and bytes.

    <directory>/data.mdb, lock.mdb     the environment
    <directory>/boot                   of which file it is, and of which boot: see `unsynced`

    meta      "state"                  → JSON of `State`
              "counts"                 → JSON: entries of the databases that were written
    rows/<view>/<n>   record key       → JSON of the row
    index/<view>/<n>/<column>          → JSON of the column's value, 0x00, record key → ""
    history   tick (8 bytes), view     → one line `{"key":…,"row":…}` per change

A tick is one write transaction, so a read transaction is one tick. The environment is
written without fsync: a killed process leaves it whole, a killed machine may not, and a copy
made meanwhile may not, hence the mark beside it: another one, or other counts, mean that
everything is read again from the log.
Every (re)build of a view goes into a fresh `rows/<view>/<n>` that nobody sees until the
state names it.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmdb
import orjson

from tailrace.files import FILES
from tailrace.modes import file_mode, make_private
from tailrace.records.tick import ViewInfo, parse_view
from tailrace.serving.errors import FollowerRunningError
from tailrace.unsynced import boot_id, file_mark

log = logging.getLogger(__name__)

FORMAT = 1
MAP_BYTES = 64 << 30
KEY_LIMIT = 511
STATE, COUNTS = b"state", b"counts"
STAMP = "boot"
COMPACTED = "compacted"
DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.PanicError)


@dataclass(slots=True)
class _Shared:
    environment: lmdb.Environment
    users: int
    opening: threading.Lock = field(default_factory=threading.Lock)


# LMDB allows one handle per file and process: two break each other's locks.
_shared: dict[Path, _Shared] = {}
_guard = threading.Lock()


@dataclass(slots=True)
class HeldView:
    """A view as the environment has it."""

    info: ViewInfo
    store: str
    stream: str
    offsets: dict[int, int]
    changed: int = 0
    history_from: int = 0
    indexes: tuple[str, ...] = ()


@dataclass(slots=True)
class Reached:
    """How far one sequence of ticks (the project's, or a view's being built) has come."""

    tick: int
    positions: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, dict[int, int]] = field(default_factory=dict)
    ts_ms: int = 0


@dataclass(slots=True)
class State:
    """Everything beside the rows; replaced in every write transaction.

    `building` are stores being filled for a tick that is not applied yet.
    `history_from`: changes after this tick are all in the history.
    """

    project: str = ""
    ticks_offset: int = 0
    streams: dict[str, Reached] = field(default_factory=dict)
    views: dict[str, HeldView] = field(default_factory=dict)
    building: dict[str, HeldView] = field(default_factory=dict)
    builds: int = 0
    history_from: int = 0
    history_bytes: int = 0
    purged: str = ""
    """Of the newest tick row: a change wants the files written again, see `compact`."""
    compacted: str = ""
    """What `purged` was when they were."""

    @property
    def tick(self) -> int | None:
        """The project's tick; None before the first one."""
        reached = self.streams.get(self.project)
        return None if reached is None else reached.tick


def encode_state(state: State) -> bytes:
    return orjson.dumps(
        {
            "format": FORMAT,
            "project": state.project,
            "ticks_offset": state.ticks_offset,
            "streams": {
                name: {
                    "tick": reached.tick,
                    "positions": reached.positions,
                    "inputs": {t: _texts(by) for t, by in reached.inputs.items()},
                    "ts_ms": reached.ts_ms,
                }
                for name, reached in state.streams.items()
            },
            "views": {name: _encode_view(view) for name, view in state.views.items()},
            "building": {name: _encode_view(view) for name, view in state.building.items()},
            "builds": state.builds,
            "history_from": state.history_from,
            "history_bytes": state.history_bytes,
            "purged": state.purged,
            "compacted": state.compacted,
        }
    )


def decode_state(value: bytes) -> State:
    document = orjson.loads(value)
    return State(
        project=document["project"],
        ticks_offset=document["ticks_offset"],
        streams={
            name: Reached(
                tick=reached["tick"],
                positions=reached["positions"],
                inputs={t: _numbers(by) for t, by in reached["inputs"].items()},
                ts_ms=reached["ts_ms"],
            )
            for name, reached in document["streams"].items()
        },
        views={name: _decode_view(name, view) for name, view in document["views"].items()},
        building={name: _decode_view(name, view) for name, view in document["building"].items()},
        builds=document["builds"],
        history_from=document["history_from"],
        history_bytes=document["history_bytes"],
        purged=document.get("purged", ""),
        compacted=document.get("compacted", ""),
    )


def _encode_view(view: HeldView) -> dict[str, Any]:
    return {
        **view.info.as_dict(),
        "name": view.info.name,
        "store": view.store,
        "stream": view.stream,
        "offsets": _texts(view.offsets),
        "changed": view.changed,
        "history_from": view.history_from,
        "indexes": list(view.indexes),
    }


def _decode_view(name: str, document: dict[str, Any]) -> HeldView:
    return HeldView(
        info=parse_view(document.get("name", name), document),
        store=document["store"],
        stream=document["stream"],
        offsets=_numbers(document["offsets"]),
        changed=document["changed"],
        history_from=document["history_from"],
        indexes=tuple(document["indexes"]),
    )


def _texts(offsets: dict[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def _numbers(offsets: dict[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}


def stored_key(key: bytes) -> bytes:
    """A record key as an LMDB key; keys past LMDB's limit end in their digest."""
    if 0 < len(key) <= KEY_LIMIT:
        return key
    return (key[: KEY_LIMIT - 64] + hashlib.sha256(key).hexdigest().encode()) or b"\0"


def index_key(value: Any, key: bytes = b"") -> bytes:
    """Prefix of all entries of a value in an index; with `key` the entry of one row."""
    text = orjson.dumps(value)
    if len(text) > 200:
        text = text[:136] + hashlib.sha256(text).hexdigest().encode()
    if len(key) > 300:
        key = hashlib.sha256(key).hexdigest().encode()
    return text + b"\0" + key


def history_key(tick: int, view: str = "") -> bytes:
    return tick.to_bytes(8, "big") + view.encode()


def open_writer(directory: Path) -> lmdb.Environment:
    """Open for the follower; throws away what another boot left behind, or another disk, and
    what is not as it was written."""
    data = directory / "data.mdb"
    make_private(directory)
    known = (FILES.read_whole(directory / STAMP) or b"").decode("utf-8", "replace")
    # Before there were marks, the boot alone was noted.
    if data.exists() and known not in (file_mark(data), boot_id()):
        _throw_away(directory)
    with _guard:
        shared = _shared.get(directory.resolve())
        if shared is not None:
            raise FollowerRunningError(
                "the views are already open in this process",
                hint="open the follower before the readers",
            )
        environment = _open(directory, readonly=False)
        if not _is_sound(environment):
            environment.close()
            _throw_away(directory)
            environment = _open(directory, readonly=False)
        _shared[directory.resolve()] = _Shared(environment, 1)
    if known != (mark := file_mark(data)):
        FILES.write_whole(directory / STAMP, mark.encode(), sync=False)
    environment.reader_check()
    return environment


def compact(directory: Path) -> bool:
    """Write the environment again without the pages that hold nothing any more: those keep what
    stood in them; False where there is no room for that. Nobody of this process may have it open;
    readers elsewhere find the new file."""
    fresh = directory / COMPACTED
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _copy(directory, fresh)
    except DAMAGE:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    except (lmdb.Error, OSError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        log.warning("files of the views cannot be written again", extra={"reason": str(error)})
        return False
    distrust(directory)  # a stop between here and the end: everything is read again
    # The lock first: who opens the old file from here on shares no lock with who writes the new.
    (directory / "lock.mdb").unlink(missing_ok=True)
    (fresh / "data.mdb").replace(directory / "data.mdb")
    shutil.rmtree(fresh)
    FILES.write_whole(directory / STAMP, file_mark(directory / "data.mdb").encode(), sync=False)
    return True


def _copy(directory: Path, fresh: Path) -> None:
    make_private(fresh)
    with _open(directory, readonly=False) as environment:
        environment.copy(str(fresh), compact=True)


def distrust(directory: Path) -> None:
    """Whoever opens the environment next throws it away."""
    (directory / STAMP).unlink(missing_ok=True)


def count_entries(transaction: Any, meta: Any, stores: Mapping[str, Any]) -> None:
    """Note how many entries databases have, those that are open: part of a write."""
    known = transaction.get(COUNTS, db=meta)
    counts = {} if known is None else orjson.loads(known)
    counts |= {name: transaction.stat(store)["entries"] for name, store in stores.items()}
    transaction.put(COUNTS, orjson.dumps(counts), db=meta)


def forget_entries(transaction: Any, meta: Any, name: str) -> None:
    """A database is dropped."""
    counts = orjson.loads(transaction.get(COUNTS, db=meta) or b"{}")
    if counts.pop(name, None) is not None:
        transaction.put(COUNTS, orjson.dumps(counts), db=meta)


def _is_sound(environment: lmdb.Environment) -> bool:
    """Whether the databases hold as many entries as was noted with the last write."""
    try:
        with environment.begin() as transaction:
            if not transaction.stat()["entries"]:
                return True
            meta = environment.open_db(b"meta", txn=transaction, create=False)
            counts = orjson.loads(transaction.get(COUNTS, db=meta) or b"{}")
            return all(
                transaction.stat(environment.open_db(name.encode(), txn=transaction, create=False))[
                    "entries"
                ]
                == count
                for name, count in counts.items()
            )
    except (lmdb.Error, ValueError):
        return False


def _throw_away(directory: Path) -> None:
    for name in ("data.mdb", "lock.mdb"):
        (directory / name).unlink(missing_ok=True)
    shutil.rmtree(directory / COMPACTED, ignore_errors=True)


def open_reader(directory: Path) -> lmdb.Environment:
    """Open for looking; the follower must have made the environment."""
    with _guard:
        shared = _shared.get(directory.resolve())
        if shared is None:
            shared = _shared[directory.resolve()] = _Shared(_open(directory, readonly=True), 0)
        shared.users += 1
        return shared.environment


def opening(environment: lmdb.Environment) -> threading.Lock:
    """What a process must hold to open databases, and through a write transaction.

    LMDB wants one transaction at a time to open databases. Where a follower and readers
    share a process, a reader that opens one waits for the writer; without this lock it
    would wait inside LMDB, with the interpreter in its hands, for ever.
    """
    with _guard:
        held = (s.opening for s in _shared.values() if s.environment is environment)
        return next(held, threading.Lock())


def is_alone(environment: lmdb.Environment) -> bool:
    """Whether nobody else in this process uses it."""
    with _guard:
        return all(s.users == 1 for s in _shared.values() if s.environment is environment)


def release(environment: lmdb.Environment) -> None:
    """Give an environment back; closed when nobody in this process uses it."""
    with _guard:
        for path, shared in list(_shared.items()):
            if shared.environment is environment:
                shared.users -= 1
                if shared.users == 0:
                    del _shared[path]
                    environment.close()


def _open(directory: Path, *, readonly: bool) -> lmdb.Environment:
    return lmdb.open(
        str(directory),
        mode=file_mode(),
        map_size=MAP_BYTES,
        readonly=readonly,
        create=not readonly,
        writemap=False,
        sync=False,
        metasync=False,
        max_dbs=2048,
        max_readers=1024,
        max_spare_txns=64,
        readahead=True,
    )


def erase(directory: Path) -> None:
    """Remove the environment; nobody may have it open."""
    shutil.rmtree(directory, ignore_errors=True)
