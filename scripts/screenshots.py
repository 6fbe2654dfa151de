"""Takes the pictures in the documentation from a running demo (needs Chromium).

python scripts/screenshots.py [--address 'http://127.0.0.1:8080/#token=…']   writes docs/images/console-*.png

Without an address it starts the demo itself, lets its charts fill, and stops it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PAGES = {
    "overview": "/#/",
    "view": "/#/views/open_orders",
    "source": "/#/sources/shop",
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
CHARTS_FILL_SECONDS = 60
OVERVIEW_HEIGHT = 1630  # down to the end of the topology


@contextmanager
def demo() -> Iterator[str]:
    """The address of a demo of our own."""
    program = str(Path(sys.executable).with_name("tailrace"))
    command = [program, "demo", "--no-browser", "--console", "127.0.0.1:0", "--for", "600s"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = ""
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := re.search(r"^console (\S+)", line):
                address = found[1]
            if "open orders in the view" in line:
                break
        time.sleep(CHARTS_FILL_SECONDS)
        yield address
    finally:
        process.terminate()
        process.wait()


def take(page: Page, address: str) -> None:
    page.goto(address)  # its token becomes the browser's cookie
    page.wait_for_timeout(1000)
    address = address.partition("/#")[0]
    for name, path in PAGES.items():
        page.goto(address + path)
        page.wait_for_timeout(4000)
        if name == "overview":
            page.get_by_role("button", name="Prove that nothing is lost").click()
            page.get_by_text("agree to the cent").wait_for(timeout=90_000)
            page.reload()  # without the proof's table, so that the topology is in sight
            page.wait_for_timeout(6000)
        path = IMAGES / f"console-{name}.png"
        if name == "overview":
            clip = {"x": 0, "y": 0, "width": 1280, "height": OVERVIEW_HEIGHT}
            page.screenshot(path=path, full_page=True, clip=clip)
        else:
            page.screenshot(path=path)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(address + PAGES["view"])
    page.wait_for_timeout(4000)
    page.screenshot(path=IMAGES / "console-phone.png")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--address", help="of a demo that runs already, as it printed it")
    given = options.parse_args().address
    chromium = shutil.which("chromium")
    if chromium is None:
        print("needs Chromium: make setup-browser")
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        if given:
            take(page, given)
        else:
            with demo() as address:
                take(page, address)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
