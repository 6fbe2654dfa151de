"""Does a log keep its promises? A load, faults, a history, and a checker of that history.

`workload` writes and reads with clients of every kind while `faults` hurts `nodes` that the user
named; `history` is what each client saw, column by column; `checkers` judges it, promise by
promise; `report` tells it. The history is kept, so that anybody can judge it again:

    tailrace.verify.check("tailrace-verify/2026-11-19T05-00-00").holds
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.verify.checkers import Verdict


def check(folder: str | Path) -> Verdict:
    """The verdict on the history in `folder` (or in its folder `history`).

    Raises HistoryError if it cannot be read.
    """
    from tailrace.verify.checkers import judge
    from tailrace.verify.history import read_history

    return judge(read_history(folder))
