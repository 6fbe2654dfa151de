"""Memory that a worker does not need between two pieces of work goes back to the system.

A tick's rows are millions of small objects. Their memory is free again once the tick is
over, but Arrow's pool and the C library keep it, and the workers of a host do not work at the
same time only: what one keeps, another lacks, as does the kernel, which holds the caches'
pages in what is left.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

import pyarrow as pa


def give_back() -> None:
    """Return what is free to the system; takes milliseconds, so after large pieces only."""
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """`malloc_trim` of the GNU C library, which keeps what is freed below the top."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
