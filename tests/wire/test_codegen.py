"""The committed codecs are what the generator writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
JAR = Path.home() / ".m2/repository/org/apache/kafka/kafka-clients/4.3.1/kafka-clients-4.3.1.jar"


@pytest.mark.skipif(not JAR.exists(), reason="Kafka's definitions are not in Maven's cache")
def test_the_committed_codecs_are_generated() -> None:
    run = subprocess.run(
        [sys.executable, "codegen/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    if "is missing; fetch it" in run.stderr:
        pytest.skip(run.stderr.strip())
    assert run.returncode == 0, run.stdout + run.stderr


def test_codecs_are_imported_when_first_used() -> None:
    program = (
        "import sys, tailrace.wire.frames\n"
        "from tailrace.wire.apis import APIS\n"
        "loaded = lambda: {n for n in sys.modules if n.startswith('tailrace.wire.messages.')}\n"
        "before = loaded()\n"
        "APIS[12].decode_request(0, b'\\0\\0\\0\\0\\0\\1\\0\\0')\n"
        "print(sorted(before), sorted(loaded()))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "[] ['tailrace.wire.messages.heartbeat']", run.stderr
