"""The state of a project as seen from outside: reports of its parts, checked for life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.clock import SYSTEM, Clock
from tailrace.config import Settings
from tailrace.node.parts import KINDS
from tailrace.node.processes import running
from tailrace.serving.filling import ABOUT_TO_BE_SHOWN, behind, progress, unseen
from tailrace.telemetry.part import read_reports

SILENT_AFTER_MS = 15_000
FILL_PATIENCE_SECONDS = 60.0  # then a project is ready all the same, and what fills is named


def status_of(settings: Settings, clock: Clock = SYSTEM) -> dict[str, Any]:
    """`{"project", "ready", "filling": {view: words}, "parts": [report, …]}`.

    `ready` when every part runs and every view answers. A fill that takes longer than
    `FILL_PATIENCE_SECONDS` is not waited for: `filling` names it.
    """
    parts = read_reports(settings.state_directory)
    for part in parts:
        pid = part.get("pid") or part.get("supervisor")  # it is about to be started
        if part["state"] in ("starting", "running", "lagging") and not _alive(pid):
            part["state"] = "stopped"
        elif part["state"] == "running" and clock.wall_ms() - part.get("at", 0) > SILENT_AFTER_MS:
            # A part that says nothing for long hangs, whatever it said last.
            part["state"] = "lagging"
    parts.sort(key=lambda part: (KINDS.index(part["kind"]), part["name"]))
    at_work = [part["state"] in ("running", "lagging") for part in parts]
    waits = filling(parts) if at_work and all(at_work) else {}
    since = max((part.get("ticking_since") or 0 for part in parts), default=0)
    patient = clock.wall_ms() - since < FILL_PATIENCE_SECONDS * 1000
    return {
        "project": settings.project.name,
        "ready": bool(at_work) and all(at_work) and not (waits and patient),
        "filling": waits,
        "parts": parts,
    }


def filling(reports: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Views that do not show yet what there was when the project started, each with how far
    it is: being filled, not yet served, or behind a source that is still copying its tables.
    Those that have failed are not waited for."""
    reports = list(reports)
    served = [report for report in reports if report["kind"] == "views"]
    answers = {name for report in served for name in report.get("answers") or ()}
    copying = [r["name"] for r in reports if r["kind"] == "source" and r.get("copying")]
    found: dict[str, str] = {}
    for report in reports:
        if report["kind"] != "pipelines":
            continue
        views = (report.get("views") or {}).keys()
        waits: dict[str, str] = {}
        if copying or report.get("caught_up") is False:
            waits = dict.fromkeys(views, behind(report, copying))
        elif served and any(unseen(report, int(one.get("tick") or 0)) for one in served):
            waits = dict.fromkeys(views, ABOUT_TO_BE_SHOWN)
        filled = set(report.get("filling") or ()) - set(report.get("held") or ())
        filled |= views - answers if served else set()
        waits |= {name: progress(report, name) for name in filled}
        failed = report.get("failed") or {}
        found |= {name: waits[name] for name in sorted(waits) if name not in failed}
    return found


def log_address(settings: Settings) -> str:
    """Where the project's log answers now: a broker that picked its port has told it."""
    for report in read_reports(settings.state_directory):
        if report["kind"] == "broker" and report.get("address") and _alive(report.get("pid")):
            return settings.at(str(report["address"]))
    return settings.bootstrap


def _alive(pid: object) -> bool:
    return isinstance(pid, int) and running(pid)
