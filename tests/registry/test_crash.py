"""Registries killed at random moments while they write: what was answered stays true."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import httpx
import pytest

KILLS = 8


class Process:
    """One registry, started again whenever it is killed."""

    def __init__(self, log: str) -> None:
        self._command = [sys.executable, "-m", "tailrace", "registry", "start",
                         "--bootstrap", log, "--listen", "127.0.0.1:0"]  # fmt: skip
        self._child: subprocess.Popen[str] | None = None
        self.url = ""
        self.start()

    def start(self) -> None:
        self._child = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line.startswith("listening on ")
        self.url = f"http://{line.split()[-1]}"

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self._child is not None
        self._child.send_signal(number)
        self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()


@pytest.fixture
def processes(tailrace_broker: str) -> Iterator[list[Process]]:
    started = [Process(tailrace_broker) for _ in range(2)]
    yield started
    for one in started:
        one.kill(signal.SIGTERM)


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_what_was_answered_survives_kills(processes: list[Process]) -> None:
    answered: dict[str, tuple[int, str]] = {}
    stopping = threading.Event()

    def work(name: str) -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            subject = f"{name}{number}"
            text = json.dumps({"type": "record", "name": f"R{subject}", "fields": []},
                              separators=(",", ":"))  # fmt: skip
            while not stopping.is_set():
                try:
                    answer = httpx.post(
                        f"{random.choice(processes).url}/subjects/{subject}/versions",
                        json={"schema": text},
                        timeout=60,
                    )
                except httpx.HTTPError:
                    continue  # it was killed: asked again, the same schema has the same id
                if answer.status_code == 200:
                    answered[subject] = (answer.json()["id"], text)
                    break
                assert answer.status_code == 500, answer.text

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            stopping.wait(random.uniform(0.05, 1.0))
            one = random.choice(processes)
            one.kill()
            one.start()
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert answered
    ids = [number for number, _ in answered.values()]
    assert len(set(ids)) == len(ids), "no id for two schemas"
    for process in processes:
        with httpx.Client(base_url=process.url, timeout=60) as client:
            for subject, (number, text) in answered.items():
                assert client.get(f"/schemas/ids/{number}").json()["schema"] == text
                assert client.get(f"/subjects/{subject}/versions").json() == [1]
