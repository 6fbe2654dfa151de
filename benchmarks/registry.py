"""The schema registry: loading 10,000 subjects, looking schemas up by id, registering.

    python benchmarks/registry.py

One broker, one registry and one client on this machine; the figures are wall time.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tailrace.client.log import connect
from tailrace.schemas.model import Schema
from tailrace.schemas.subjects import Version, schema_record

SUBJECTS = 10_000


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A command and the address it says it listens on."""
    command = [sys.executable, "-m", "tailrace", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, child.stdout.readline().split()[-1]


def text(number: int) -> str:
    fields = [{"name": f"f{n}", "type": "string"} for n in range(10)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, separators=(",", ":"))  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        broker, address = started("broker", "start", "--data", directory, "--listen", "127.0.0.1:0")
        with connect(address) as log:
            log.create_topic("_schemas", 1, {"cleanup.policy": "compact"})
            with log.producer() as producer:
                for number in range(1, SUBJECTS + 1):
                    one = Version(f"s{number}", 1, number, Schema(text(number)))
                    key, value = schema_record(one)
                    producer.send("_schemas", key=key, value=value)
        begun = time.perf_counter()
        registry, place = started("registry", "start", "--bootstrap", address, "--listen", "127.0.0.1:0")  # fmt: skip
        print(f"start with {SUBJECTS:,} subjects: {time.perf_counter() - begun:.2f} s")
        host, _, port = place.partition(":")
        link = http.client.HTTPConnection(host, int(port))

        def ask(method: str, path: str, body: str | None = None) -> float:
            begun = time.perf_counter()
            link.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = link.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            return (time.perf_counter() - begun) * 1000

        found = sorted(ask("GET", f"/schemas/ids/{number}") for number in range(1, 2001))
        print(f"look-up by id: p50 {statistics.median(found):.2f} ms, p99 {found[1980]:.2f} ms")
        bodies = [json.dumps({"schema": text(n)}) for n in range(SUBJECTS + 1, SUBJECTS + 201)]
        found = sorted(
            ask("POST", f"/subjects/n{n}/versions", body) for n, body in enumerate(bodies)
        )
        print(f"register: p50 {statistics.median(found):.2f} ms")
        status = Path(f"/proc/{registry.pid}/status").read_text()
        print(next(line for line in status.splitlines() if line.startswith("VmRSS")))
        link.close()
        for child in (registry, broker):
            child.terminate()
            child.wait()


if __name__ == "__main__":
    main()
