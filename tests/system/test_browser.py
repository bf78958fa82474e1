"""In a real browser: the explorer in JupyterLab, and the report without a kernel."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from advisor.advice import Goals, audit, recommend
from advisor.catalog import data_path
from advisor.cluster import Cluster, load_cluster
from advisor.present import write_report
from advisor.reliability.failures.failure_model import FailureModel, load_model

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
pytestmark = pytest.mark.skipif(
    FOUND is None and "CI" not in os.environ, reason=f"none of {', '.join(NAMES)} is installed"
)
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert FOUND is not None, f"install one of {', '.join(NAMES)}"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=FOUND, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = data_path("clusters/testp3-1-created.txt")
    cluster = load_cluster(source).with_racks({0: "a", 1: "b", 2: "c"})
    model = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": {"value": 2, "low": 1, "high": 5}, "minutes": 5},
                "destroyed": {"per_year": 0.01, "hours": 12},
            }
        }
    )
    advice = recommend(cluster, model, goals=Goals(survive="rack"))
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(advice, path, audit(cluster, model))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report on a shipped card, whose evidence has long addresses."""
    cluster, card = Cluster.uniform(brokers=2, racks=2), load_model("two_az")
    path = tmp_path_factory.mktemp("shipped") / "report.html"
    return write_report(recommend(cluster, card), path, audit(cluster, card))


def opened(browser: Browser, report: Path, width: int, scripts: bool = True) -> Page:
    """Open the report in a page that records errors and requests."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=scripts, offline=True
    )
    page = context.new_page()
    page.troubles = []
    page.asked = []
    page.on("console", lambda message: page.troubles.append(message.text))
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(report.as_uri())
    return page


@pytest.mark.parametrize("width", [400, 1400])
def test_the_report_fits_every_width(browser: Browser, report: Path, width: int) -> None:
    """Nothing overflows, one chart of each kind is visible, nothing else is loaded."""
    page = opened(browser, report, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert sum(chart.is_visible() for chart in page.locator("figure svg").all()) == 2
    assert page.asked == [report.as_uri()]
    assert page.troubles == []


@pytest.mark.parametrize(("medium", "width"), [("screen", 800), ("print", 739)])
def test_no_table_is_cut_off(browser: Browser, shipped: Path, medium: str, width: int) -> None:
    """On a small screen and on paper (letter, with Chromium's margins) every table is complete."""
    page = opened(browser, shipped, width)
    page.emulate_media(media=medium)
    cut = page.evaluate(
        "[...document.querySelectorAll('table, pre')]"
        ".filter(part => part.getBoundingClientRect().right > innerWidth"
        " || part.scrollWidth > part.clientWidth + 1)"
        ".map(part => (part.caption || part).textContent.trim().slice(0, 60))"
    )
    assert cut == []


def test_the_report_answers_without_a_kernel(browser: Browser, report: Path) -> None:
    """Choosing another min ISR changes the words and moves the mark in the curves."""
    page = opened(browser, report, 1400)
    mark = page.locator("#curves-wide .chosen")
    before, stood = page.locator("output").inner_text(), mark.get_attribute("x1")
    assert "min.insync.replicas 2" in before
    page.get_by_role("combobox", name="min.insync.replicas").select_option("3")
    after = page.locator("output").inner_text()
    assert "RF 3, min.insync.replicas 3, acks=all" in after
    assert mark.get_attribute("x1") != stood
    page.get_by_role("combobox", name="Replication factor").select_option("1")
    assert "not compared" in page.locator("output").inner_text()


def test_the_report_says_the_same_without_scripts(browser: Browser, report: Path) -> None:
    """The table holds every setting, and selects without effect are not shown."""
    page = opened(browser, report, 1400, scripts=False)
    assert not page.locator("select").first.is_visible()
    assert page.locator("noscript p").is_visible()
    assert page.get_by_role("rowheader", name="RF 3, min ISR 3, acks=all").first.is_visible()


@pytest.fixture(scope="module")
def lab(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start JupyterLab on a copy of the notebook's folder and return its address with token."""
    place = tmp_path_factory.mktemp("lab")
    shutil.copytree(root / "notebooks", place / "notebooks", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(root / "data", place / "data")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={place}"]
    own = place / "own"
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(own), "JUPYTER_RUNTIME_DIR": str(own)}
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    environment |= {"HOME": str(own), "IPYTHONDIR": str(own), "PYTHONPATH": str(root)}
    with (place / "lab.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/api?token={token}", server, place / "lab.log")
            yield f"{address}/lab/tree/notebooks/{{name}}?token={token}&reset"
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()}")


def test_a_control_in_jupyterlab_moves_the_curve(browser: Browser, lab: str) -> None:
    """Run the notebook down to the controls, change min.insync.replicas, and see the chart move."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(lab.format(name="01_choose_replication_settings.ipynb"))
    idle = page.get_by_text("| Idle")
    idle.wait_for(timeout=WAIT_MS)
    # Everything up to the controls and the cell that tries them.
    page.get_by_role("heading", name="The same by chance").click(timeout=WAIT_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Above Selected Cell", exact=True).click()
    control = page.get_by_label("min.insync.replicas", exact=True)
    # JupyterLab renders only cells near the viewport; scroll to the controls.
    page.get_by_role("heading", name="Try it").scroll_into_view_if_needed(timeout=WAIT_MS)
    control.wait_for(timeout=2 * WAIT_MS)
    chart = page.locator("svg#explorer")
    idle.wait_for(timeout=2 * WAIT_MS)
    assert "min ISR 2" in (chart.get_attribute("aria-label") or "")
    before = chart.inner_html()
    control.select_option("3")
    page.locator("svg#explorer[aria-label*='min ISR 3']").wait_for(timeout=WAIT_MS)
    assert chart.inner_html() != before
    page.get_by_label("acks", exact=True).select_option("1")
    page.locator("svg#explorer[aria-label*='acks=1']").wait_for(timeout=WAIT_MS)
    page.close()
