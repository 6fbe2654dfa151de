"""Takes the pictures in the documentation from a running demo (needs Chromium).

python scripts/screenshots.py        writes docs/images/console-*.png
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PAGES = {"overview": "/#/", "view": "/#/views/open_orders"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("needs Chromium: make setup-browser")
        return 1
    program = str(Path(sys.executable).with_name("tailrace"))
    command = [program, "demo", "--no-browser", "--console", "127.0.0.1:0", "--for", "300s"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert demo.stdout is not None
        address = ""
        for line in demo.stdout:
            print(line, end="", flush=True)
            if found := re.search(r"^console (\S+)", line):
                address = found[1]
            if "open orders in the view" in line and "view 0 " not in line:
                break
        time.sleep(20)  # let the charts fill
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            for name, path in PAGES.items():
                page.goto(address + path)
                page.wait_for_timeout(4000)
                page.screenshot(path=IMAGES / f"console-{name}.png")
            browser.close()
    finally:
        demo.terminate()
        demo.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
