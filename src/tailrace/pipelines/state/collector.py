"""Python's cycle collector rests while a tick works.

Operators make millions of small tuples and dicts and no cycles; the collector would look
through all of them again and again (a third of a first fill's time). What else makes cycles
meanwhile waits until the tick is over.

Spark's Python workers run a whole collection after every task, over everything that was
ever imported: 20 to 30 ms, where a small task of ours takes 15. What a worker holds after
its first task stays for its life, so it is taken out of the collector's sight once.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_resting = 0
_was_enabled = False
_settled_in = 0


@contextlib.contextmanager
def collector_resting() -> Iterator[None]:
    """No collection inside, in any thread; may be nested."""
    global _resting, _was_enabled
    with _lock:
        if not _resting:
            _was_enabled = gc.isenabled()
            gc.disable()
        _resting += 1
    try:
        yield
    finally:
        with _lock:
            _resting -= 1
            if not _resting and _was_enabled:
                gc.enable()


def settle() -> None:
    """Have collections in this process pass over what it holds now; the first call counts.

    For the end of a task in a Python worker: modules are loaded by then.
    """
    global _settled_in
    if _settled_in != os.getpid():
        _settled_in = os.getpid()
        gc.collect()
        gc.freeze()
