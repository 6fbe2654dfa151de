"""The guard of tests/conftest.py: a test that leaves something behind fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = """
import socket, subprocess, sys, threading, time
import pytest

SERVER = '''
import socket, time
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
kept = listening.accept()
time.sleep(60)
'''
kept = []

@pytest.fixture(scope="session", autouse=True)
def server():
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as process:
        yield int(process.stdout.readline())
        for each in kept:
            each.close()
        process.kill()

def test_client_of_a_lasting_server(server):
    kept.append(socket.create_connection(("127.0.0.1", server)))

def test_socket():
    kept.extend(socket.socketpair())

def test_thread():
    threading.Thread(target=time.sleep, args=(8,)).start()

def test_process():
    subprocess.Popen(["sleep", "8"])
"""


def test_a_test_that_leaves_something_behind_fails(checkout: Path, tmp_path: Path) -> None:
    guard = (checkout / "tests" / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(guard.replace("PATIENCE = 60.0", "PATIENCE = 1.0"))
    (tmp_path / "test_it.py").write_text(CASES)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    complaints = [line for line in said.splitlines() if line.startswith("ERROR")]
    found = {line.split(" - ")[0].rpartition("::")[2] for line in complaints}
    assert found == {"test_socket", "test_thread", "test_process"}, said
    for what in ("sockets left open", "threads left behind", "processes left behind"):
        assert what in said
