"""The console as a part: `python -m tailrace.console.child KIND NAME DIRECTORY ADDRESS`.

It stands here and not in `node`, which lies below the console and cannot import it.
"""

from __future__ import annotations

from tailrace.console.server import run
from tailrace.node.child import start

if __name__ == "__main__":
    start({"console": run})
