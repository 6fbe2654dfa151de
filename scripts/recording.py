"""Records a terminal session of a new project as an animated SVG.

python scripts/recording.py        writes docs/images/terminal.svg

The commands are really run, in a scratch directory; what they print is what is shown. Waiting
is shortened. The picture needs no script: lines appear by CSS, and stand still for readers who
ask for less motion.
"""

from __future__ import annotations

import html
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "terminal.svg"
WIDTH, LINE, LEFT, TOP = 860, 20, 16, 44
SHOWN_LINES = 24
TYPE_SECONDS, ANSWER_SECONDS, PAUSE_SECONDS, REST_SECONDS = 0.7, 0.25, 0.9, 6.0
QUESTION = 'tailrace sql "SELECT * FROM open_orders ORDER BY country"'
SESSION = (
    "tailrace init my-shop",
    "cd my-shop && python make_database.py",
    "tailrace check --connect",
    "tailrace up --quiet &",
    QUESTION,
    "python make_database.py    # ten more orders",
    QUESTION,
)


@dataclass(frozen=True)
class Line:
    """One line of the terminal, and when it appears."""

    text: str
    at: float
    typed: bool


def run(scratch: Path) -> list[tuple[str, list[str]]]:
    """Every command with the lines it printed."""
    environment = dict(os.environ, TAILRACE_LOG__LISTEN="127.0.0.1:0", TAILRACE_CONSOLE__LISTEN="127.0.0.1:0")  # fmt: skip
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    project = scratch / "my-shop"
    said: list[tuple[str, list[str]]] = []
    up: subprocess.Popen[str] | None = None
    try:
        for command in SESSION:
            if command.endswith("&"):
                up = subprocess.Popen(
                    ["bash", "-c", "exec " + command.removesuffix("&")],
                    cwd=project, env=environment, stdout=subprocess.PIPE, text=True,
                )  # fmt: skip
                said.append((command, _until_ready(up)))
                continue
            cwd = project if project.exists() and not command.startswith("cd ") else scratch
            before = [answer for asked, answer in said if asked == command]
            deadline = time.monotonic() + 240
            while True:
                done = subprocess.run(["bash", "-c", command], cwd=cwd, env=environment, capture_output=True, text=True, check=True)  # fmt: skip
                answer = done.stdout.replace("127.0.0.1:0", "127.0.0.1:9092").rstrip().splitlines()
                # Free ports are this recording's own; a reader has the file's.
                answer = [line for line in answer if "environment TAILRACE_" not in line]
                # On a busy machine the first copy, or the new orders, take a moment.
                news = command != QUESTION or (len(answer) > 2 and answer[2:-1] not in [one[2:-1] for one in before])  # fmt: skip
                if news or time.monotonic() > deadline:
                    break
                time.sleep(0.5)
            said.append((command, answer))
    finally:
        if up is not None:
            up.send_signal(signal.SIGINT)
            up.wait()
    return said


def _until_ready(up: subprocess.Popen[str]) -> list[str]:
    assert up.stdout is not None
    lines = []
    for line in up.stdout:
        # The recording took any free port; a reader gets the usual one.
        lines.append("console http://127.0.0.1:8080/#token=…" if line.startswith("console") else line.rstrip())  # fmt: skip
        if lines[-1] == "ready":
            break
    return lines


def timed(said: list[tuple[str, list[str]]]) -> list[Line]:
    lines: list[Line] = []
    at = 0.5
    for command, answer in said:
        lines.append(Line(f"$ {command}", at, True))
        at += TYPE_SECONDS + (1.5 if command.endswith("&") else 0)
        for text in answer:
            lines.append(Line(text, at, False))
            at += ANSWER_SECONDS / 3
        at += PAUSE_SECONDS
    return lines


def drawn(lines: list[Line]) -> str:
    """The lines as SVG; the paper moves up when there are more than fit."""
    total = lines[-1].at + REST_SECONDS
    height = TOP + SHOWN_LINES * LINE + 12
    style = []
    body = []
    for number, line in enumerate(lines):
        share = 100 * line.at / total
        style.append(f"@keyframes l{number}{{0%,{share:.2f}%{{opacity:0}}{share + 0.01:.2f}%,100%{{opacity:1}}}}")  # fmt: skip
        style.append(f".l{number}{{animation:l{number} {total:.1f}s infinite}}")
        kind = "typed" if line.typed else "said"
        text = html.escape(line.text, quote=False).replace(" ", "\u00a0")
        body.append(f'<text class="{kind} l{number}" x="0" y="{number * LINE}">{text}</text>')
    moves = ["0%{transform:translateY(0)}"]
    for number, line in enumerate(lines):
        if number >= SHOWN_LINES:
            share = 100 * line.at / total
            up = (number - SHOWN_LINES + 1) * LINE
            moves.append(f"{share:.2f}%{{transform:translateY({LINE - up}px)}}{share + 0.01:.2f}%{{transform:translateY(-{up}px)}}")  # fmt: skip
    last = max(0, len(lines) - SHOWN_LINES) * LINE
    moves.append(f"100%{{transform:translateY(-{last}px)}}")
    style.append(f"@keyframes paper{{{''.join(moves)}}}")
    style.append(f".paper{{animation:paper {total:.1f}s infinite}}")
    still = f"@media (prefers-reduced-motion:reduce){{text{{animation:none!important}}.paper{{animation:none;transform:translateY(-{last}px)}}}}"  # fmt: skip
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="A terminal: tailrace init, check, up, and the same question before and after ten more orders">
<style>text{{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#c9d6df}}.typed{{fill:#5eead4}}{"".join(style)}{still}</style>
<rect width="{WIDTH}" height="{height}" rx="10" fill="#0f161c"/>
<circle cx="20" cy="18" r="6" fill="#f87171"/><circle cx="40" cy="18" r="6" fill="#fbbf24"/><circle cx="60" cy="18" r="6" fill="#4ade80"/>
<svg x="{LEFT}" y="34" width="{WIDTH - 2 * LEFT}" height="{height - 40}" viewBox="0 -14 {WIDTH - 2 * LEFT} {height - 40}"><g class="paper">
{chr(10).join(body)}
</g></svg>
</svg>
"""  # fmt: skip


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        said = run(Path(scratch))
    IMAGE.write_text(drawn(timed(said)))
    print(f"{IMAGE}: {sum(1 + len(answer) for _, answer in said)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
