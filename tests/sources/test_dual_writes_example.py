"""The example shows what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_dual_writes_disagree_and_capture_does_not(checkout: Path) -> None:
    answer = subprocess.run(
        [sys.executable, str(checkout / "examples" / "dual_writes" / "show.py")],
        capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert "dual writes agreed 0 of 2 times, capture 2 of 2 times" in answer.stdout
    assert "database 'blue bicycle'     index 'red bicycle'" in answer.stdout
