"""How long the explorer takes from a change to the painted frame, by the browser's clock.

Starts JupyterLab and Chromium on this machine. Run by ``make bench``, which goes on without either.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
CLUSTER = ROOT / "data" / "clusters" / "three-az-six-brokers"
CELL = f"""import advisor
cluster = advisor.load_cluster("{CLUSTER}.txt", racks="{CLUSTER}.racks.toml")
load = advisor.Workload(partitions=12, records_per_second=1000, record_bytes=512)
config = advisor.Config(replication_factor=3, min_insync_replicas=2)
advisor.explorer(cluster, "three_az_cloud", load, config=config)"""
WAIT_MS = 120_000
LIMIT_MS = 100
# Control and values: each is one change away from the first picture, of a new topic. They begin
# with it; the others begin after `AHEAD_S`.
FIRST = (
    ("min_insync_replicas", ("1", "3", "2")),
    ("card", ("two_az", "single_rack", "bare_metal_racks", "three_az_cloud")),
    ("topic", ("orders", "payments", "audit", "")),
    ("unclean_leader_election_enable", ("true", "false")),
    ("acks", ("1", "0", "all")),
    ("replication_factor", ("1", "2", "1", "3")),
    ("kafka_version", ("3.9", "3.0", "2.1", "4.4")),
    ("eligible_leader_replicas", ("false", "default")),
)
RETRIED = (
    ("retries", ("3", "2147483647")),
    ("delivery_timeout_ms", ("60000", "120000")),
)
ASKED = (
    ("retries", ("4", "5", "6", "7", "2147483647")),
    ("delivery_timeout_ms", ("90000", "240000", "900000", "120000")),
)
AHEAD_S = 45
NEW = (
    ("card", ("two_az", "single_rack", "three_az_cloud")),
    ("unclean_leader_election_enable", ("true",)),
    ("kafka_version", ("3.7", "3.6", "3.0")),
)
# Two controls changed within a tenth of a second: the second frame is the one that is timed.
AT_ONCE = (
    (("kafka_version", "4.1"), ("acks", "1")),
    (("unclean_leader_election_enable", "false"), ("kafka_version", "4.0")),
    (("replication_factor", "2"), ("acks", "0")),
    (("min_insync_replicas", "1"), ("kafka_version", "2.1")),
    (("unclean_leader_election_enable", "true"), ("acks", "all")),
    (("replication_factor", "3"), ("kafka_version", "3.7")),
    (("min_insync_replicas", "2"), ("acks", "1")),
    (("kafka_version", "4.4"), ("unclean_leader_election_enable", "false")),
)
# In a page that was just opened: changes of random controls.
WALK, WALK_S = 30, 2.0


@contextmanager
def jupyter_lab(folder: Path) -> Iterator[str]:
    """Serve a folder and yield the address of one of its notebooks, with `{name}` open."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token, own = secrets.token_hex(16), str(folder / "own")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": own, "JUPYTER_RUNTIME_DIR": own}
    # What is compiled once stays compiled: settings are of this run alone, the cache is the user's.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    environment |= {"HOME": own, "IPYTHONDIR": own, "PYTHONPATH": str(ROOT)}
    environment |= {"XDG_CACHE_HOME": cache}
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/api?token={token}")
            yield f"{address}/lab/tree/{{name}}?token={token}&reset"
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait_for(address: str) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.25)
    raise TimeoutError("JupyterLab did not start")


def run_all(page: Page) -> float:
    """Run every cell; return the seconds until the first picture."""
    page.get_by_text("| Idle").wait_for(timeout=WAIT_MS)
    start = time.perf_counter()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(".ae-durability").wait_for(timeout=WAIT_MS)
    return time.perf_counter() - start


@contextmanager
def explored(browser: Browser) -> Iterator[Page]:
    """Run a notebook with the explorer in a JupyterLab of its own; say how long that took."""
    folder = Path(tempfile.mkdtemp(prefix="redraw-"))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, folder / "explorer.ipynb")
    with jupyter_lab(folder) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address.format(name="explorer.ipynb"))
        print(f"explorer, first picture in JupyterLab, imports included: {run_all(page):.1f} s")
        page.get_by_text("| Idle").wait_for(timeout=WAIT_MS)
        yield page
        page.close()
    shutil.rmtree(folder, ignore_errors=True)


def choose(page: Page, control: str, value: str) -> None:
    """Change one control."""
    field = page.locator(f".advisor-explorer .ae-row [id$='-{control}']")
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)
        field.press("Enter")


def change(page: Page, control: str, value: str) -> tuple[float, float]:
    """Change one control; return the milliseconds until the frame with its answer was painted.

    The second number is for the frame with the right curves and verdict: how producers retry moves
    neither, so that these do not wait for the kernel.
    """
    root = page.locator(".advisor-explorer")
    root.evaluate("root => { delete root.dataset.answerMs; delete root.dataset.pictureMs; }")
    choose(page, control, value)
    page.wait_for_function(
        "() => document.querySelector('.advisor-explorer').dataset.answerMs", timeout=WAIT_MS
    )
    taken = float(root.get_attribute("data-answer-ms") or "nan")
    picture = float(root.get_attribute("data-picture-ms") or "nan")
    page.wait_for_timeout(400)  # the curve around it follows
    return taken, picture


def measured(page: Page, changes: Any) -> list[tuple[float, float]]:
    """Return the milliseconds of every change: the answer, the picture."""
    return [change(page, control, value) for control, values in changes for value in values]


def measured_at_once(page: Page) -> list[tuple[float, float]]:
    """Return the milliseconds of the second of two changes: the answer, the picture."""
    found = []
    for first, second in AT_ONCE:
        choose(page, *first)
        page.wait_for_timeout(60)
        found.append(change(page, *second))
    return found


def walked(page: Page) -> list[tuple[float, float]]:
    """Return the milliseconds of random changes, one after another: the answer, the picture.

    A setting that Kafka refuses has no picture of its own; the refusal counts.
    """
    listed = [(name, value) for name, values in FIRST + RETRIED + NEW for value in values]
    choices, draws = sorted(set(listed)), random.Random(1)
    found: list[tuple[float, float]] = []
    shown = page.locator(".advisor-explorer")
    while len(found) < WALK:
        control, value = draws.choice(choices)
        if shown.locator(f".ae-row [id$='-{control}']").input_value() == value:
            continue
        due = time.monotonic() + WALK_S
        answer, picture = change(page, control, value)
        found.append((answer, answer if math.isnan(picture) else picture))
        page.wait_for_timeout(1000 * max(0, due - time.monotonic()))
    return found


def report(what: str, times_ms: list[tuple[float, float]]) -> None:
    """Print median and worst of the answers and of the pictures."""
    answers, pictures = zip(*times_ms, strict=True)
    for part, taken in (("all of it", answers), ("curves and verdict", pictures)):
        print(
            f"explorer, change to painted frame, {what}, {part}: median "
            f"{statistics.median(taken):.0f} ms, worst {max(taken):.0f} ms of {len(taken)}, "
            f"{sum(each > LIMIT_MS for each in taken)} above {LIMIT_MS} ms"
        )


def main() -> None:
    """Print a line for the first picture and for each kind of change."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        print("redraws of the explorer: not measured, no Chromium found")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        with explored(browser) as page:
            report("from the first picture on", measured(page, FIRST))
            report("then, how producers retry", measured(page, RETRIED))
            page.wait_for_timeout(AHEAD_S * 1000)
            report(f"after {AHEAD_S} s, how producers retry", measured(page, ASKED))
            report("other cards, elections and versions", measured(page, NEW))
            report("two changes at once", measured_at_once(page))
            if picture := os.environ.get("EXPLORER_PICTURE"):
                page.screenshot(path=picture)
        with explored(browser) as page:
            report(f"a random walk, one change every {WALK_S:.0f} s", walked(page))
        browser.close()


if __name__ == "__main__":
    main()
