"""`tr.views(…)`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tailrace import console_token
from tailrace.telemetry.part import read_reports

if TYPE_CHECKING:
    from tailrace.serving.reader import Views
    from tailrace.serving.remote import RemoteViews

_HERE = ("127.0.0.1", "localhost", "::1")


def views(address: str | Path, *, token: str | None = None) -> Views | RemoteViews:
    """The views of a running project.

    `HOST:PORT`, `http://…` or `https://…` of its console, also with the `#token=…` that
    `tailrace up` prints, or the project's directory on this machine: the last reads the
    follower's memory-mapped files and is far faster. Without `token` that of the project in
    the current directory is sent, if the address is its console's.
    """
    text = str(address)
    if not isinstance(address, Path) and _is_console(text):
        from tailrace.serving.remote import RemoteViews

        return RemoteViews(text, token=token or _token_here(text))
    from tailrace.serving.reader import open_views

    path = Path(address)
    return open_views(path / ".tailrace" if (path / ".tailrace").is_dir() else path)


def _is_console(text: str) -> bool:
    """Whether `text` is an address and not a directory."""
    if text.startswith(("http://", "https://")):
        return True
    host, _, port = text.rstrip("/").rpartition(":")
    return bool(host) and "/" not in host and port.isascii() and port.isdigit()


def _token_here(text: str) -> str | None:
    """The token of the project in the current directory, if this is its console."""
    directory = Path(".tailrace")
    for report in read_reports(directory) if directory.is_dir() else ():
        if report.get("kind") == "console" and _place(str(report.get("address"))) == _place(text):
            return console_token.read(directory)
    return None


def _place(address: str) -> tuple[str, int | None]:
    url = urlsplit(address if "://" in address else f"http://{address}")
    host = url.hostname or ""
    return ("here" if host in _HERE else host), url.port
