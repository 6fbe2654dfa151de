"""A verdict told: on the terminal, as JSON, and as one page without anything beside it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from tailrace.verify.checkers import PROMISES, Example, Verdict
from tailrace.verify.history import History, Status
from tailrace.verify.recovery import SECOND, Recovery, recoveries

BAR = 60
MOST_GAPS = 200
GAP_SECONDS = 1.0  # a partition that acknowledges nothing for so long is drawn
COLOURS = ("#3b6ea8", "#5f9b57", "#b0823a", "#7d5fa5", "#4a9a9a", "#a05a6f", "#7a7a3a", "#5a6b7d")


def as_document(history: History, verdict: Verdict) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "holds": verdict.holds,
        "operations": verdict.operations,
        "promises": [
            {
                "name": each.name,
                "holds": each.holds,
                "count": each.count,
                "examples": list(each.examples),
            }
            for each in verdict.promises
        ],
        "faults": [
            {
                "kind": each.fault.kind,
                "node": each.fault.node,
                "at": round((each.fault.at - history.about.began_at) / SECOND, 3),
                "producer_seconds": each.producer_seconds,
                "consumer_seconds": each.consumer_seconds,
            }
            for each in recoveries(history)
        ],
    }


def as_text(history: History, verdict: Verdict) -> Iterator[str]:
    """Lines for a terminal."""
    for each in verdict.promises:
        yield f"{'✓' if each.holds else '✗'} {each.name:<20} {PROMISES[each.name]}"
        if not each.holds:
            yield f"    broken by {_count(each.count, 'record')}:"
            for example in each.examples[:3]:
                yield f"      {_words(example)}"
    if "replicas" in history.tables and not len(history["replicas"]["end"]):
        yield "  in-sync-before-ack was not asked: no replica told its end"
    faults = recoveries(history)
    if faults:
        yield ""
        yield from _bar(history)
        yield ""
        yield f"{'fault':<16} {'node':<6} {'at':>8} {'producers':>11} {'consumers':>11}"
        for one in faults:
            at = (one.fault.at - history.about.began_at) / SECOND
            yield (
                f"{one.fault.kind:<16} {one.fault.node or '-':<6} {at:>7.1f}s "
                f"{_seconds(one.producer_seconds):>11} {_seconds(one.consumer_seconds):>11}"
            )
        yield f"  stood still at most so long; settings: {_settings(history)}"
    yield ""
    ending = "every promise held" if verdict.holds else "promises were broken"
    yield f"{verdict.operations:,} operations; {ending}"


def _bar(history: History) -> Iterator[str]:
    about = history.about
    span = max(1, about.ended_at - about.began_at)
    cells = ["─"] * BAR
    for fault in about.faults:
        first = int((fault.at - about.began_at) / span * BAR)
        last = int((fault.until - about.began_at) / span * BAR)
        for cell in range(max(0, first), min(BAR, last + 1)):
            cells[cell] = "█"
    yield f"0s {''.join(cells)} {span / SECOND:.0f}s"


def _settings(history: History) -> str:
    chosen = (
        "broker.session.timeout.ms",
        "replica.lag.time.max.ms",
        "session.timeout.ms",
        "request.timeout.ms",
    )
    given = history.about.settings
    return ", ".join(f"{name}={given[name]}" for name in chosen if name in given) or "unknown"


def _seconds(seconds: float | None) -> str:
    return "not again" if seconds is None else f"{seconds:.2f} s"


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _words(example: Example) -> str:
    why = str(example.get("why", ""))
    place = ", ".join(f"{name} {value}" for name, value in example.items() if name != "why")
    return f"{place}: {why}"


# The page --------------------------------------------------------------------

WIDTH, LEFT, LANE, TOP = 1_000, 90, 26, 30

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #dde2e8;vertical-align:top}
.good{color:#2c7a3f}.bad{color:#b3261e;font-weight:600}code{background:#f1f3f5;padding:0 .25rem}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#44505e}
tr:target{background:#fdecea}.key span{display:inline-block;margin-right:1.2rem}
.key i{display:inline-block;width:.9rem;height:.9rem;margin-right:.35rem;vertical-align:-2px}
@media(prefers-color-scheme:dark){body{background:#14181d;color:#dde3ea}td,th{border-color:#303841}
code{background:#232a32}svg text{fill:#a9b4c0}tr:target{background:#4a2320}}
"""


def as_page(history: History, verdict: Verdict) -> str:
    """One HTML file: promises, a lane per partition over time, recoveries, settings."""
    about = history.about
    found = recoveries(history)
    state = "every promise held" if verdict.holds else "promises were broken"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>tailrace verify: {escape(state)}</title><style>{_STYLE}</style>",
        f"<h1 class={'good' if verdict.holds else 'bad'}>{escape(state.capitalize())}</h1>",
        f"<p>{verdict.operations:,} operations on <code>{escape(about.log)}</code>, "
        f"{_count(about.partitions, 'partition')}, {escape(about.began)}.</p>",
        "<h2>Promises</h2>",
        *_promises(verdict),
        "<h2>Time</h2>",
        *_timeline(history, verdict),
    ]
    if found:
        parts += ["<h2>Recovery</h2>", *_recovery(history, found)]
    parts += ["<h2>Settings</h2>", *_settings_table(history), "</html>"]
    return "\n".join(parts)


def _promises(verdict: Verdict) -> Iterator[str]:
    yield "<table><tr><th>Promise<th>Meaning<th>Verdict"
    for each in verdict.promises:
        word = "held" if each.holds else f"broken by {_count(each.count, 'record')}"
        yield (
            f"<tr><td>{escape(each.name)}<td>{escape(PROMISES[each.name])}"
            f"<td class={'good' if each.holds else 'bad'}>{escape(word)}"
        )
    yield "</table>"
    broken = [each for each in verdict.promises if not each.holds]
    if not broken:
        return
    yield "<h2>Records that break them</h2><table><tr><th>Promise<th>Record"
    for promise in broken:
        for number, example in enumerate(promise.examples):
            yield (
                f'<tr id="{_anchor(promise.name, number)}"><td>{escape(promise.name)}'
                f"<td>{escape(_words(example))}"
            )
    yield "</table>"


def _anchor(promise: str, number: int) -> str:
    return f"broken-{promise}-{number}"


def _timeline(history: History, verdict: Verdict) -> Iterator[str]:
    about = history.about
    began, ended = about.began_at, max(about.ended_at, about.began_at + 1)

    def x(moment: int) -> float:
        inside = min(max(moment, began), ended) - began
        return round(LEFT + inside / (ended - began) * (WIDTH - LEFT - 10), 1)

    height = TOP + LANE * about.partitions + 30
    leaders = sorted({each.leader for each in about.leaders if each.leader >= 0})
    colour = {leader: COLOURS[number % len(COLOURS)] for number, leader in enumerate(leaders)}
    yield f'<svg viewBox="0 0 {WIDTH} {height}" role=img aria-label="partitions over time">'
    for fault in about.faults:
        wide = max(2.0, x(fault.until) - x(fault.at))
        told = f"{fault.kind} {fault.node}".strip()
        yield (
            f'<rect x="{x(fault.at)}" y="{TOP - 14}" width="{wide:.1f}" '
            f'height="{LANE * about.partitions + 14}" fill="#d9534f" opacity=".18">'
            f"<title>{escape(told)}</title></rect>"
            f'<text x="{x(fault.at)}" y="{TOP - 17}">{escape(told)}</text>'
        )
    for partition in range(about.partitions):
        y = TOP + LANE * partition
        yield f'<text x="4" y="{y + 14}">partition {partition}</text>'
        spans = [each for each in about.leaders if each.partition == partition]
        for number, each in enumerate(spans):
            until = spans[number + 1].at if number + 1 < len(spans) else ended
            fill = colour.get(each.leader, "#8a929b")
            who = f"led by {each.leader}" if each.leader >= 0 else "without a leader"
            in_sync = ", ".join(map(str, each.in_sync)) or "none"
            yield (
                f'<rect x="{x(each.at)}" y="{y}" width="{max(0.5, x(until) - x(each.at)):.1f}" '
                f'height="{LANE - 8}" fill="{fill}"><title>{escape(who)}, epoch {each.epoch}, '
                f"in sync: {escape(in_sync)}</title></rect>"
            )
        for first, last in _gaps(history, partition):
            yield (
                f'<rect x="{x(first)}" y="{y + 5}" width="{max(1.0, x(last) - x(first)):.1f}" '
                f'height="{LANE - 18}" fill="#fff"><title>nothing acknowledged for '
                f"{(last - first) / SECOND:.1f} s</title></rect>"
            )
    for promise in verdict.promises:
        for number, example in enumerate(promise.examples):
            moment = _moment(history, example)
            if moment is None:
                continue
            y = TOP + LANE * max(0, int(example.get("partition", 0)))
            yield (
                f'<a href="#{_anchor(promise.name, number)}"><rect x="{x(moment) - 1.5:.1f}" '
                f'y="{y - 3}" width="3" height="{LANE - 2}" fill="#d00000">'
                f"<title>{escape(promise.name)}: {escape(_words(example))}</title></rect></a>"
            )
    bottom = TOP + LANE * about.partitions + 18
    for step in range(6):
        moment = began + (ended - began) * step // 5
        yield f'<text x="{x(moment) - 8}" y="{bottom}">{(moment - began) / SECOND:.0f}s</text>'
    yield "</svg><p class=key>"
    for leader in leaders:
        yield f'<span><i style="background:{colour[leader]}"></i>led by {leader}</span>'
    yield '<span><i style="background:#d9534f55"></i>fault</span>'
    yield '<span><i style="background:#fff;border:1px solid #999"></i>nothing acknowledged</span></p>'


def _gaps(history: History, partition: int) -> list[tuple[int, int]]:
    sends = history["sends"]
    mine = (sends["partition"] == partition) & (sends["status"] == Status.ACKNOWLEDGED)
    moments = np.unique(sends["answered_at"][mine])
    wide = np.flatnonzero(np.diff(moments) > GAP_SECONDS * SECOND)[:MOST_GAPS]
    return [(int(moments[each]), int(moments[each + 1])) for each in wide]


def _moment(history: History, example: Example) -> int | None:
    """When the record of an example was sent, or its replica asked."""
    if "replica" in example:
        replicas = history["replicas"]
        rows = np.flatnonzero(
            (replicas["partition"] == example["partition"])
            & (replicas["offset"] == example["offset"])
        )
        return int(replicas["asked_at"][rows[0]]) if len(rows) else None
    sends = history["sends"]
    rows = np.flatnonzero(
        (sends["producer"] == example["producer"]) & (sends["sequence"] == example["sequence"])
    )
    return int(sends["sent_at"][rows[0]]) if len(rows) else None


def _recovery(history: History, found: list[Recovery]) -> Iterator[str]:
    yield "<table><tr><th>Fault<th>Node<th>At<th>Producers stood still<th>The group stood still"
    for each in found:
        at = (each.fault.at - history.about.began_at) / SECOND
        yield (
            f"<tr><td>{escape(each.fault.kind)}<td>{escape(each.fault.node)}<td>{at:.1f} s"
            f"<td>{_seconds(each.producer_seconds)}<td>{_seconds(each.consumer_seconds)}"
        )
    yield f"</table><p>Settings that explain it: {escape(_settings(history))}.</p>"


def _settings_table(history: History) -> Iterator[str]:
    yield "<table>"
    for name, value in sorted(history.about.settings.items()):
        yield f"<tr><td><code>{escape(name)}</code><td>{escape(str(value))}"
    yield "</table>"
