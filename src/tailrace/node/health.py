"""The state of a project as seen from outside: reports of its parts, checked for life."""

from __future__ import annotations

from typing import Any

from tailrace.clock import SYSTEM, Clock
from tailrace.config import Settings
from tailrace.node.parts import KINDS
from tailrace.node.processes import running
from tailrace.telemetry.part import read_reports

SILENT_AFTER_MS = 15_000


def status_of(settings: Settings, clock: Clock = SYSTEM) -> dict[str, Any]:
    """`{"project", "ready", "parts": [report, …]}`; `ready` when every part runs."""
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
    return {
        "project": settings.project.name,
        "ready": bool(at_work) and all(at_work),
        "parts": parts,
    }


def log_address(settings: Settings) -> str:
    """Where the project's log answers now: a broker that picked its port has told it."""
    for report in read_reports(settings.state_directory):
        if report["kind"] == "broker" and report.get("address") and _alive(report.get("pid")):
            return str(report["address"])
    return settings.bootstrap


def _alive(pid: object) -> bool:
    return isinstance(pid, int) and running(pid)
