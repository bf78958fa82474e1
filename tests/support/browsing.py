"""A browser for tests: Chromium without a network, and what axe finds on a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next((path for path in map(shutil.which, NAMES) if path), None)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A developer's machine may lack a browser; continuous integration must have one.
NEEDS_BROWSER = pytest.mark.skipif(
    FOUND is None and "CI" not in os.environ, reason=f"none of {', '.join(NAMES)} is installed"
)
# So long a page may take, also on a busy machine.
WAIT_MS = 600_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser of this machine."""
    assert FOUND is not None, f"install one of {', '.join(NAMES)}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=QUIET, timeout=WAIT_MS)
        yield browser
        browser.close()


def new_page(browser: Browser, **options: Any) -> Page:
    """Open an empty page on which everything may take its time."""
    page = browser.new_page(**options)
    page.set_default_timeout(WAIT_MS)
    return page


def opened(
    browser: Browser,
    path: Path,
    width: int,
    scripts: bool = True,
    scheme: str = "light",
    folded: bool = False,
) -> Any:
    """Open a file in a page that records errors (`troubles`) and requests (`asked`).

    The sections of a report are opened unless they shall stay folded.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        java_script_enabled=scripts,
        offline=True,
        color_scheme="dark" if scheme == "dark" else "light",
    )
    context.set_default_timeout(WAIT_MS)
    page: Any = context.new_page()
    page.troubles = []
    page.asked = []
    page.on("console", lambda message: page.troubles.append(message.text))
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(path.as_uri())
    if not folded:
        page.evaluate("document.querySelectorAll('.fold').forEach(part => { part.open = true; })")
    if scripts:
        await_frame(page)
    return page


def await_frame(page: Page) -> None:
    """Wait until a page has drawn itself at its present size."""
    # Scripts hear of a size between two frames.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def serious(page: Page, part: str = "html") -> list[str]:
    """Return what axe calls serious or critical in a part of a page, with the first place."""
    found = Axe().run(page, context=part).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['target']}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
