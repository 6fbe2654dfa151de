"""Why a declared view does not answer yet: what the pipelines report of its fill.

Read from the report of the process that fills it (`<directory>/run`), so it is known to
whoever can read the project's directory, and told by the console to everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tailrace.serving.errors import ViewFailedError, ViewFillingError, ViewsError
from tailrace.telemetry.part import read_reports

AT_WORK = ("running", "lagging")


def why_absent(directory: Path, name: str) -> ViewsError | None:
    """The error for a view that the project runs but nobody can ask yet; None for one that
    it does not know. `directory` is the project's state."""
    for report in read_reports(directory):
        if report.get("kind") == "pipelines" and report.get("state") in AT_WORK:
            if failed := (report.get("failed") or {}).get(name):
                return ViewFailedError(
                    f"view {name!r} has failed and has never been filled",
                    detail=str(failed.get("error", "")),
                    hint=f"`tailrace pipeline status {name}` shows why; it comes back by itself "
                    "when the cause is gone",
                )
            if name in (report.get("filling") or {}) or name in (report.get("views") or {}):
                return ViewFillingError(
                    f"view {name!r} is being filled: {progress(report, name)}",
                    detail="It answers as soon as it has read what its inputs hold.",
                    hint="`tailrace status` shows how far it is",
                )
    return None


ABOUT_TO_BE_SHOWN = "it is read and about to be shown"


def why_unread(directory: Path, name: str, tick: int) -> ViewFillingError | None:
    """The error for a view of a project that has read nothing up to the `tick` that is shown,
    and will: its rows are not none, they are not known. None if there is nothing to wait for."""
    reports = read_reports(directory)
    copying = [str(r["name"]) for r in reports if r.get("kind") == "source" and r.get("copying")]
    for report in reports:
        if (
            report.get("kind") == "pipelines"
            and report.get("state") in AT_WORK
            and name in (report.get("views") or {})
            and (copying or report.get("caught_up") is False or unseen(report, tick))
        ):
            far = ABOUT_TO_BE_SHOWN if unseen(report, tick) else behind(report, copying)
            return ViewFillingError(
                f"view {name!r} is being filled: {far}",
                detail="The project has just begun; nothing has been read for it yet.",
                hint="`tailrace status` shows how far it is",
            )
    return None


def unseen(report: Mapping[str, Any], tick: int) -> bool:
    """Whether the pipelines' first reading of everything ends after the `tick` that is shown."""
    return int(report.get("caught_up_at") or 0) > tick


def behind(report: Mapping[str, Any], copying: Sequence[str]) -> str:
    """What keeps views that are not filled one by one from what there was at the start."""
    if copying:
        return f"source {', '.join(copying)} copies its tables"
    lag = report.get("lag")
    return f"{lag:,} records behind" if lag else "begins to read"


def progress(report: Mapping[str, Any], name: str) -> str:
    """How far the fill of a view is, in words: records read of records known."""
    done, wanted = (report.get("fills") or {}).get(name) or (0, 0)
    share = (report.get("filled") or {}).get(name) or 0.0
    if wanted:
        return f"{done:,} of {wanted:,} records read"
    if share:
        return f"{share:.0%} read"
    if name in (report.get("filling") or {}):
        return "it waits for its turn"  # one is filled after the other
    return "it is filled and about to be shown"
