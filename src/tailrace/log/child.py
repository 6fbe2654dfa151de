"""Work that must not hold up the loop, in a child process that reads and writes JSON."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Called by a child: it ends when the process that started it is killed. One that went on
    would write files that the next start of the log writes too."""
    import ctypes
    import signal

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if len(sys.argv) > 1 and os.getppid() != int(sys.argv[1]):
        os._exit(1)  # it was killed before we asked


class Child:
    """One run of `python -m <module>`: a job on its stdin, a result on its stdout.

    Raises `OSError` if no process can be started. The job and the result are files in
    memory, so that neither side ever waits for the other.
    """

    def __init__(self, module: str, job: bytes) -> None:
        import subprocess

        wish = os.memfd_create("job")
        self._output = os.memfd_create("result")
        try:
            os.write(wish, job)
            os.lseek(wish, 0, os.SEEK_SET)
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(os.getpid())],
                stdin=wish,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            os.close(self._output)
            raise
        finally:
            os.close(wish)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def result(self) -> bytes | None:
        """What an ended child said; None if it failed. To be called once."""
        data = os.pread(self._output, os.fstat(self._output).st_size, 0)
        os.close(self._output)
        return data if self.process.returncode == 0 else None

    def kill(self) -> None:
        """End the child now."""
        self.process.kill()
        self.process.wait()
        os.close(self._output)
