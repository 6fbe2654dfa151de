"""The types of the docs' Python snippets, under mypy: a page is one module.

Lines are those of the page. Snippets leave annotations of their own functions and looks for None
to the reader; what they use of Tailrace has its types all the same.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from mypy import api

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "docs"))
from test_snippets import PAGES, blocks  # noqa: E402

PLACE = ROOT / ".tailrace" / "snippets"  # the same every time: mypy keeps what it said by path
FLAGS = [
    "--config-file=",
    "--no-strict-optional",
    "--check-untyped-defs",
    "--ignore-missing-imports",
    "--disable-error-code=var-annotated",
    "--disable-error-code=return",
    "--scripts-are-modules",
    f"--cache-dir={ROOT / '.mypy_cache' / 'snippets'}",
]


def main() -> int:
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    files = {}
    for page in PAGES:
        lines: list[str] = []
        for kind, body, line in blocks(page):
            if kind == "python":
                lines += [""] * (line - 1 - len(lines)) + body.split("\n")
        if lines:
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            file = PLACE / f"{name}.py"
            file.write_text("\n".join(lines))
            files[str(file)] = page.relative_to(ROOT)
    found, broken, status = api.run([*FLAGS, *files])
    for file, page in files.items():
        found = found.replace(file, str(page))
    print(found + broken, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
