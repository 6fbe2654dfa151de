"""Python's cycle collector rests while a tick works.

Operators make millions of small tuples and dicts and no cycles; the collector would look
through all of them again and again (a third of a first fill's time). What else makes cycles
meanwhile waits until the tick is over.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_resting = 0
_was_enabled = False


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
