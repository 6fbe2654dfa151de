"""What an assistant may ask of a project; every answer is bounded, and none changes anything.

The questions go to the project's console by HTTP, with the viewers' token if the project has
one. The methods of `Answers` are the tools: their names, parameters and docstrings are what an
assistant reads.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from tailrace.errors import UsageError, all_errors, explain
from tailrace.masking import mask

INSTRUCTIONS = (
    "A Tailrace project: databases are captured into a log of topics, SQL views are kept up to "
    "date over them, sinks copy the views elsewhere. Begin with `status` and `views`. `sql` asks "
    "the views (DuckDB's dialect, read-only), all at one position."
)
MOST_ROWS = 200
MOST_RECORDS = 100
MOST_LISTED = 500
MOST_CHARACTERS = 50_000
CHECK_SECONDS = 120.0


class Answers:
    """The tools, for the project in a directory or behind a console's address."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address
        self._remote = bool(address) and ":" in str(address) and not str(address).startswith((".", "/"))  # fmt: skip

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """What can be asked here."""
        asked: list[Callable[..., Any]] = [
            self.status, self.sources, self.topics, self.views, self.sql, self.tail, self.errors,
        ]  # fmt: skip
        return asked if self._remote else [*asked, self.check]

    def status(self) -> dict[str, Any]:
        """How every part of the project is: state, lag in records, last error; views that are
        still being filled, and what deserves attention."""
        found = self._ask("/api/status")
        parts = [_part(part) for part in found["parts"]]
        alarms = self._ask("/api/alarms")
        return _bounded(
            {
                "project": found["project"],
                "ready": found["ready"],
                "filling": found["filling"],
                "parts": parts,
                "alarms": alarms,
            },
            "parts",
        )

    def sources(self) -> dict[str, Any]:
        """The databases that are captured, how each is, and the columns of its tables."""
        tables: dict[str, list[dict[str, Any]]] = {}
        for table in self._ask("/api/schemas")["tables"]:
            newest = table["versions"][-1]
            columns = [
                {"name": column["name"], "type": column.get("spark") or column.get("type")}
                for column in newest.get("columns", ())
            ]
            about = {"topic": table["table"], "key": newest.get("key"), "columns": columns}
            tables.setdefault(str(table["table"]).partition(".")[0], []).append(about)
        parts = self._ask("/api/status")["parts"]
        found = [
            {**_part(part), "tables": tables.get(part["name"], [])}
            for part in parts
            if part["kind"] == "source"
        ]
        return _bounded({"sources": found}, "sources")

    def topics(self) -> dict[str, Any]:
        """The topics of the log, each with its partitions and records."""
        found = [
            {name: topic.get(name) for name in ("name", "partitions", "records", "rate")}
            for topic in self._ask("/api/topics")["topics"]
        ]
        return _bounded({"topics": found[:MOST_LISTED]}, "topics", len(found))

    def views(self) -> dict[str, Any]:
        """The views: name, key, number of rows, and columns with their types."""
        found = self._ask("/api/views")["views"]
        return _bounded({"views": found[:MOST_LISTED]}, "views", len(found))

    def sql(self, query: str, at_least: str | None = None, limit: int = 50) -> dict[str, Any]:
        """Ask the views one SELECT in DuckDB's dialect; nothing can be written.

        All views are read at one position, which the answer names. `at_least`: a position to
        wait for, such as `pg:shop:0000000201A2B3C4` or that of an earlier answer. `limit`: rows
        to return, 200 at most; `more` says whether there are others.
        """
        limit = max(1, min(limit, MOST_ROWS))
        wait = "" if at_least is None else "?" + urlencode({"at_least": at_least})
        found = self._ask(f"/api/sql{wait}", {"sql": query, "limit": limit})
        more = bool(found["next"]) or len(found["rows"]) >= limit
        answer = {"rows": found["rows"], "position": found["position"], "more": more}
        return _bounded(answer, "rows")

    def tail(self, topic: str, count: int = 20, start: str = "latest") -> dict[str, Any]:
        """Records of a topic: the newest, the oldest (`start="earliest"`), or those since a time
        (`start="-5m"`, or milliseconds since 1970). `count`: 100 at most."""
        count = max(1, min(count, MOST_RECORDS))
        # Markers of transactions take offsets, too: ask for more offsets than records.
        asked = urlencode({"from": start, "limit": 2 * count + 10})
        found = self._ask(f"/api/topics/{quote(topic, safe='')}/latest?{asked}")
        return _bounded({"records": found["records"][:count]}, "records")

    def errors(self, code: str = "") -> dict[str, Any]:
        """What an error code means and what to do; without a code, all codes."""
        if not code:
            return {"codes": sorted(kind.code for kind in all_errors())}
        kind = explain(code)
        if kind is None:
            raise UsageError(f"there is no error code {code!r}", hint="ask without a code for all")
        return {"code": kind.code, "meaning": " ".join((inspect.getdoc(kind) or "").split())}

    def check(self, connect: bool = False) -> dict[str, Any]:
        """Validate the project's files as they are now, without running them: names, SQL,
        settings; with `connect` also the databases. Says file and line of every mistake."""
        directory = str(Path(self._address or "."))
        command = [sys.executable, "-P", "-m", "tailrace", "check", directory, "--json"]
        try:
            done = subprocess.run(
                [*command, "--connect"] if connect else command,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK_SECONDS,
            )  # fmt: skip
            found = orjson.loads(done.stdout or done.stderr)
        except (subprocess.TimeoutExpired, orjson.JSONDecodeError) as problem:
            raise UsageError("the check did not end well", detail=str(problem)[:500]) from problem
        if "checked" not in found:  # nothing could be loaded
            return {"good": False, "errors": [found]}
        looked = found["checked"]
        return {
            "good": found["good"],
            "errors": [one["error"] for one in looked if one["error"]],
            "looked_at": [f"{one['what']}: {one['found']}" for one in looked if not one["error"]],
        }

    def _ask(self, path: str, body: object = None) -> Any:
        from tailrace.serving.remote import RemoteViews

        address, token = self._console()
        with RemoteViews(address, token=token) as console:
            return console.ask(path, body)

    def _console(self) -> tuple[str, str | None]:
        """Where the console is, and the token to show: that of viewers, if there is one."""
        if self._remote:
            return str(self._address), None
        from tailrace import console_token
        from tailrace.node.errors import NotRunningError
        from tailrace.node.health import status_of
        from tailrace.project.found import settings_of

        settings = settings_of(self._address or ".")
        for part in status_of(settings)["parts"]:
            if part["kind"] == "console" and part.get("address") and part["state"] != "stopped":
                token = settings.console.viewer_token or console_token.read(
                    settings.state_directory
                )
                return str(part["address"]), token
        raise NotRunningError(
            "this project does not run",
            detail=f"looked in {settings.directory}",
            hint="start it with `tailrace up`; `check` and `errors` answer without it",
        )


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    names = ("kind", "name", "state", "lag", "freshness_ms", "position", "error")
    return {name: part[name] for name in names if part.get(name) is not None}


def _bounded(answer: dict[str, Any], listed: str, count: int | None = None) -> dict[str, Any]:
    """An answer of at most `MOST_CHARACTERS`: the list in it is cut, and says so."""
    rows: Sequence[Any] = answer[listed]
    count = len(rows) if count is None else count
    kept = len(rows)
    while kept and len(orjson.dumps(answer, default=str)) > MOST_CHARACTERS:
        kept //= 2
        answer = {**answer, listed: rows[:kept]}
    if kept < count:
        answer["left_out"] = f"{count - kept} of {count}: ask for less"
    found: dict[str, Any] = orjson.loads(mask(orjson.dumps(answer, default=str).decode()))
    return found
