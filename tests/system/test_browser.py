"""In a real browser: the explorer in JupyterLab."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page

from advised import MODEL, described
from advisor.advice import Goals
from advisor.present.interactive.explorer_model import ExplorerModel
from advisor.present.interactive.fragment import stored_fragment
from advisor.protocol.rules.config import Config
from browsing import NEEDS_BROWSER, WAIT_MS, await_frame, chromium, new_page, serious
from patience import PATIENCE_MS, PATIENCE_S

pytestmark = NEEDS_BROWSER
KEYS = (
    "topic",
    "replication_factor",
    "min_insync_replicas",
    "acks",
    "retries",
    "delivery_timeout_ms",
    "unclean_leader_election_enable",
    "eligible_leader_replicas",
    "kafka_version",
    "card",
    "minutes_per_loss",
)


# The widget. The page that is stored beside it is hidden, and drawn if the widget comes late.
LIVE = "[data-advisor-live]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def place(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the notebooks' folder, with notebooks for tests; no output of ours is kept."""
    place = tmp_path_factory.mktemp("lab")
    shutil.copytree(root / "notebooks", place / "notebooks", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(root / "data", place / "data")
    own = ((NOTEBOOK, CELLS), (CARD, CARD_CELLS), (WRITTEN_AGAIN, (SHOWN, UPDATED)))
    nbformat.write(opened_again(), place / "notebooks" / OPENED_AGAIN)
    for name, cells in own:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(book, place / "notebooks" / name)
    first = nbformat.read(place / "notebooks" / FIRST, as_version=4)
    for cell in first.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nbformat.write(first, place / "notebooks" / FIRST)
    return place


def opened_again() -> nbformat.NotebookNode:
    """Return a notebook whose kernel is gone, with what a cell of the explorer has stored."""
    model = ExplorerModel(described(), MODEL, None, Goals(), Config(), "orders")
    model.answer(model.chosen)
    shown = [
        {"application/vnd.jupyter.widget-view+json": {"model_id": "gone", "version_major": 2}},
        {"text/html": stored_fragment(model.page(), "gone").text},
    ]
    cell = nbformat.v4.new_code_cell("advisor.explorer(cluster, card)", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("display_data", data) for data in shown]
    book = nbformat.v4.new_notebook(cells=[cell])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    return book


@pytest.fixture(scope="module")
def lab(root: Path, place: Path) -> Iterator[str]:
    """Start JupyterLab on a copy of the notebook's folder and return its address with token."""
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={place}"]
    own = place / "own"
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(own), "JUPYTER_RUNTIME_DIR": str(own)}
    environment["JUPYTER_DATA_DIR"] = str(own)
    command += ["--LabApp.expose_app_in_browser=True"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    environment |= {"HOME": str(own), "IPYTHONDIR": str(own), "PYTHONPATH": str(root)}
    # As if its user had run it here, so that its scripts run.
    trust = "from nbformat.sign import TrustNotebookApp as app; app.launch_instance()"
    stored = str(place / "notebooks" / OPENED_AGAIN)
    subprocess.run([sys.executable, "-c", trust, stored], env=environment, check=True)
    with (place / "lab.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            address = _address(own / f"jpserver-{server.pid}.json", server, place / "lab.log")
            urllib.request.urlopen(f"{address}/api?token={token}", timeout=PATIENCE_S).close()
            yield f"{address}/lab/tree/notebooks/{{name}}?token={token}&reset"
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE_S)


def _address(told: Path, server: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the server has written down where it listens, and return that."""
    until = time.monotonic() + PATIENCE_S
    while True:
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < until, f"JupyterLab did not start:\n{log.read_text()}"
        with suppress(OSError, ValueError):  # not there yet, or not all of it
            return f"http://127.0.0.1:{json.loads(told.read_text())['port']}"
        time.sleep(0.25)


NOTEBOOK = "explorer.ipynb"
CELLS = (
    "import advisor\n"
    "card = {'broker': {'crash': {'per_year': 2, 'minutes': 5}, "
    "'destroyed': {'per_year': {'value': 0.01, 'low': 0.002, 'high': 0.05}, 'hours': 12}}}\n"
    "topic = 'Topic: orders\\tPartitionCount: 1\\tReplicationFactor: 3\\tConfigs: \\n'\n"
    "topic += '\\tTopic: orders\\tPartition: 0\\tLeader: 1\\tReplicas: 1,2,3\\tIsr: 1,2,3\\n'\n"
    "advisor.explorer(advisor.load_cluster(topic).with_racks({1: 'a', 2: 'b', 3: 'c'}), "
    "advisor.FailureModel.from_dict(card), advisor.Workload(partitions=3))",
    "1 + 1",
    "2 + 2",
)
FIRST = "01_will_i_lose_data.ipynb"
CARD = "shipped_card.ipynb"
CARD_CELLS = (
    "import advisor",
    "advisor.explorer(advisor.Cluster.uniform(brokers=6, racks=3), 'three_az_cloud')",
)
WRITTEN_AGAIN = "written_again.ipynb"
SHOWN = CELLS[0].replace("advisor.explorer(", "view = advisor.explorer(") + (
    "\nfrom IPython.display import display\nview.html\nshown = display(view, display_id=True)"
)
UPDATED = (
    "import pathlib, time\n"
    "while not pathlib.Path('go').exists():\n    time.sleep(0.1)\n"
    "shown.update(view)"
)
OPENED_AGAIN = "opened_again.ipynb"
SHORTCUTS = "ddabxcvzyjkmoOsl00"  # delete, insert, cut, copy, paste, undo, move, restart


@pytest.fixture(scope="module")
def explored(browser: Browser, lab: str) -> Iterator[Page]:
    """Open a notebook with the explorer in JupyterLab and run it; its outputs were not stored."""
    page = run_all(browser, lab.format(name=NOTEBOOK))
    page.locator(f"{LIVE} .ae-badge").wait_for(timeout=WAIT_MS)
    last = page.locator(".jp-Notebook .jp-Cell").nth(len(CELLS) - 1)
    last.locator(".jp-OutputArea-output").get_by_text("4").wait_for(timeout=WAIT_MS)
    yield page
    page.close()


def run_all(browser: Browser, address: str) -> Page:
    """Open a notebook in JupyterLab, wait for its kernel and run every cell."""
    page = new_page(browser, viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.get_by_text("| Idle").wait_for(timeout=WAIT_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    return page


@contextmanager
def running(browser: Browser, address: str) -> Iterator[Page]:
    """Run every cell of a notebook; at the end close its page, and stop what computes behind it."""
    page = run_all(browser, address)
    try:
        yield page
    finally:
        page.close()
        place, token = urlsplit(address), parse_qs(urlsplit(address).query)["token"][0]
        kernels = f"{place.scheme}://{place.netloc}/api/kernels"
        allowed = {"Authorization": f"token {token}"}
        with urllib.request.urlopen(urllib.request.Request(kernels, headers=allowed)) as told:
            names = [kernel["id"] for kernel in json.load(told)]
        for name in names:
            ended = urllib.request.Request(f"{kernels}/{name}", headers=allowed, method="DELETE")
            urllib.request.urlopen(ended).close()


def cells_of(page: Page) -> list[bool]:
    """Whether each cell of the open notebook is selected."""
    script = "cells => cells.map(cell => cell.classList.contains('jp-mod-selected'))"
    return list(page.locator(".jp-Notebook .jp-Cell").evaluate_all(script))


# Whether all is between the edges of the notebook, once it was scrolled there.
IN_VIEW_TOGETHER = """live => {
  const part = name => document.querySelector(`${live} .ae-${name}`);
  const box = name => part(name).getBoundingClientRect();
  part("columns").scrollIntoView({ block: "end" });
  const panel = document.querySelector(".jp-WindowedPanel-outer").getBoundingClientRect();
  const all = ["controls", "badge", "durability", "availability"].map(box);
  return box("controls").right <= box("picture").left && all.every(each => each.width > 0 &&
    each.top >= panel.top && each.bottom <= panel.bottom && each.right <= 1280);
}"""


def redraws(page: Page) -> int:
    return int(page.locator(f"{LIVE} .advisor-explorer").get_attribute("data-redraws") or 0)


def test_controls_badge_and_curves_are_in_view_together(explored: Page) -> None:
    """In JupyterLab at 1280 x 800, in two columns, without scrolling between them."""
    # The notebook lays its cells out again after they were scrolled or written.
    explored.wait_for_function(IN_VIEW_TOGETHER, arg=LIVE)


@pytest.mark.parametrize("key", KEYS)
def test_keys_act_on_a_control_and_on_nothing_else(explored: Page, key: str) -> None:
    """Arrows change it, typing stays in it, and no key reaches a cell of the notebook."""
    field = explored.locator(f"{LIVE} .ae-row [id$='-{key}']")
    before = field.input_value()  # a click on a scale chooses
    field.click()
    explored.keyboard.press("Escape")  # closes the list that the click opened
    field.focus()
    cells = cells_of(explored)
    assert len(cells) == len(CELLS)
    for press in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "Home", "End"):
        explored.keyboard.press(press)
        assert field.evaluate("field => field === document.activeElement")
    explored.keyboard.type(SHORTCUTS)
    explored.keyboard.press("Delete")
    assert field.evaluate("field => field === document.activeElement")
    assert cells_of(explored) == cells
    explored.keyboard.press("Tab")
    assert not field.evaluate("field => field === document.activeElement")
    assert explored.evaluate("document.activeElement.closest('.advisor-explorer') !== null")
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(before)
    else:
        field.fill(before)
        field.press("Enter")


def wait_for_redraw(page: Page, drawn: int) -> None:
    """Wait until the explorer has drawn more often than so."""
    page.wait_for_function(
        "([live, drawn]) => drawn < "
        "Number(document.querySelector(`${live} .advisor-explorer`).dataset.redraws)",
        arg=[LIVE, drawn],
        timeout=WAIT_MS,
    )


def put_back(field: Locator, value: str) -> None:
    """Give a control the value that it had."""
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)
        field.press("Enter")


@pytest.mark.parametrize("key", KEYS)
def test_arrows_change_a_control_and_the_answer(explored: Page, key: str) -> None:
    """One step with the keyboard is a change that is drawn."""
    field = explored.locator(f"{LIVE} .ae-row [id$='-{key}']")
    before, drawn = field.input_value(), redraws(explored)
    field.focus()
    last = key == "minutes_per_loss" or field.evaluate(
        "f => f.selectedIndex !== undefined && f.selectedIndex === f.length - 1"
    )
    limit = field.get_attribute("max") == before
    explored.keyboard.press("ArrowUp" if last or key == "delivery_timeout_ms" else "ArrowDown")
    assert field.input_value() != before or limit
    wait_for_redraw(explored, drawn)
    assert len(cells_of(explored)) == len(CELLS)
    put_back(field, before)


@pytest.mark.parametrize("key", KEYS)
def test_the_mouse_changes_a_control_and_the_answer(explored: Page, key: str) -> None:
    """A choice from a list is drawn, a step of a scale, and a number typed over a marked one."""
    field = explored.locator(f"{LIVE} .ae-row [id$='-{key}']")
    before, drawn = field.input_value(), redraws(explored)
    if field.get_attribute("type") == "range":
        field.click(position={"x": 4, "y": 4})
    elif field.evaluate("field => field.tagName") == "SELECT":
        field.click()
        explored.keyboard.press("Escape")
        values = field.evaluate("field => [...field.options].map(option => option.value)")
        field.select_option(next(value for value in values if value != before))
    else:
        field.click()
        field.dblclick()
        explored.keyboard.type("45000")
        explored.locator(f"{LIVE} .ae-verdict").click()  # elsewhere: the field is left
    assert field.input_value() != before
    wait_for_redraw(explored, drawn)
    assert len(cells_of(explored)) == len(CELLS)
    put_back(field, before)


@pytest.mark.parametrize("key", ["retries", "delivery_timeout_ms"])
def test_the_small_arrows_of_a_number_change_the_answer(explored: Page, key: str) -> None:
    """A click on the upper or lower arrow at the right end of the field is drawn."""
    field = explored.locator(f"{LIVE} .ae-row [id$='-{key}']")
    before, drawn = field.input_value(), redraws(explored)
    limit = field.get_attribute("max") == before
    field.hover()
    box = field.bounding_box()
    assert box is not None
    height = box["height"] * (0.7 if limit else 0.3)
    explored.mouse.click(box["x"] + box["width"] - 10, box["y"] + height)
    assert field.input_value() != before
    wait_for_redraw(explored, drawn)
    assert len(cells_of(explored)) == len(CELLS)
    put_back(field, before)


def test_what_the_cluster_has_seen_is_typed_by_keyboard(explored: Page) -> None:
    """The fold opens, a count is answered in a line, what is none is marked; no cell is lost."""
    explored.locator(f"{LIVE} .ae-seen summary").focus()
    explored.keyboard.press("Enter")
    years, crashes = (
        explored.locator(f"{LIVE} .ae-row [id$='-seen.{key}']")
        for key in ("years", "broker.destroyed")
    )
    years.wait_for()
    years.focus()
    explored.keyboard.type("9")
    explored.keyboard.press("Tab")
    crashes.focus()
    explored.keyboard.type(SHORTCUTS)
    explored.keyboard.press("Enter")
    explored.locator(f"{LIVE} .ae-refusal:not(:empty)").wait_for(timeout=WAIT_MS)
    assert crashes.get_attribute("aria-invalid") == "true"
    assert years.get_attribute("aria-invalid") is None
    crashes.fill("0")
    crashes.press("Enter")
    explored.locator(f"{LIVE} .ae-moved", has_text="9 years of 3 brokers").wait_for(timeout=WAIT_MS)
    assert serious(explored, ".ae-controls") == []
    for field in (crashes, years):
        put_back(field, "")
    explored.locator(f"{LIVE} .ae-moved:empty").wait_for(state="attached", timeout=WAIT_MS)
    assert len(cells_of(explored)) == len(CELLS)


# Whether what is behind the explorer has the theme's colour, and its own colours change no more.
THEMED = """([live, light]) => {
  const explorer = document.querySelector(`${live} .advisor-explorer`);
  const colour = part => getComputedStyle(part).backgroundColor.match(/[0-9.]+/g).map(Number);
  let behind = explorer;
  while (colour(behind)[3] === 0) behind = behind.parentElement;
  return (colour(behind)[0] > 127) === light && explorer.offsetHeight > 0 &&
    explorer.getAnimations({ subtree: true }).length === 0;
}"""


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_axe_finds_nothing_serious_in_jupyterlab(explored: Page, theme: str) -> None:
    """The explorer's colours have enough contrast in both themes, and its controls have names."""
    change = "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })"
    explored.evaluate(change, theme)
    light = str(theme.endswith("Light")).lower()
    body = explored.locator(f"body[data-jp-theme-light='{light}']")
    body.wait_for(state="attached", timeout=WAIT_MS)
    explored.wait_for_function(THEMED, arg=[LIVE, theme.endswith("Light")], timeout=WAIT_MS)
    await_frame(explored)
    if folder := os.environ.get("PICTURES"):
        explored.screenshot(path=Path(folder, f"explorer-{light}.png"))
    assert serious(explored, ".advisor-explorer") == []


def test_a_refusal_stands_beside_its_control_and_the_picture_stays(explored: Page) -> None:
    """The reason is Kafka's; the last picture is greyed until a setting has an answer again."""
    field = explored.locator(LIVE).get_by_label("delivery.timeout.ms", exact=True)
    before, curve = field.input_value(), explored.locator(f"{LIVE} .ae-durability polyline").count()
    field.fill("10")
    field.press("Enter")
    explored.locator(f"{LIVE} .ae-answer.ae-old").wait_for(timeout=WAIT_MS)
    said = explored.locator(f"{LIVE} .ae-row:has([id$='-delivery_timeout_ms']) .ae-said")
    explored.wait_for_function(
        "() => document.querySelector('[aria-invalid]') !== null", timeout=WAIT_MS
    )
    assert "delivery.timeout.ms should be equal to or larger than linger.ms" in said.inner_text()
    assert explored.locator(f"{LIVE} .ae-durability polyline").count() == curve > 0
    field.fill(before)
    field.press("Enter")
    explored.locator(f"{LIVE} .ae-answer:not(.ae-old)").wait_for(timeout=WAIT_MS)
    assert said.inner_text() == ""


def test_the_kernel_answers_what_the_page_lacks(explored: Page) -> None:
    """Another number of retries is computed and drawn; its intervals follow by themselves."""
    field = explored.locator(LIVE).get_by_label("retries", exact=True)
    before = field.input_value()
    field.fill("3")
    field.press("Enter")
    explored.locator(f"{LIVE} .ae-answer:not(.ae-old)").wait_for(timeout=WAIT_MS)
    explored.locator(f"{LIVE} .ae-durability .ae-interval").first.wait_for(
        state="attached", timeout=WAIT_MS
    )
    assert "shown: RF 3, min ISR 1" in explored.locator(f"{LIVE} .ae-legend").inner_text()
    field.fill(before)
    field.press("Enter")
    explored.locator(f"{LIVE} .ae-answer:not(.ae-old)").wait_for(timeout=WAIT_MS)


def first_picture(page: Page) -> None:
    """Wait for the curve, and for the end of its cell."""
    curve = page.locator(f"{LIVE} .ae-durability polyline").first
    curve.wait_for(state="attached", timeout=PATIENCE_MS)
    cell = page.locator(".jp-Notebook .jp-Cell", has=page.locator(f"{LIVE} .advisor-explorer"))
    cell.locator(".jp-InputPrompt").first.get_by_text("[*]:").wait_for(
        state="detached", timeout=WAIT_MS
    )


def test_the_first_notebooks_cell_ends_with_a_picture(browser: Browser, lab: str) -> None:
    """What an exported page offers besides is computed after it, by other processes."""
    with running(browser, lab.format(name=FIRST)) as page:
        # The verdict's draws come first, a minute of processor.
        first_picture(page)


def test_the_kernel_answers_while_the_page_is_computed(browser: Browser, lab: str) -> None:
    """Two changes at once lead to what no page has; only the kernel can answer."""
    with running(browser, lab.format(name=CARD)) as page:
        first_picture(page)
        page.locator(f"{LIVE} .ae-row [id$='-kafka_version']").select_option("3.0")
        page.locator(f"{LIVE} .ae-row [id$='-acks']").select_option("1")
        page.locator(f"{LIVE} .ae-legend").get_by_text("acks=1").wait_for(timeout=WAIT_MS)
        page.locator(f"{LIVE} .ae-answer:not(.ae-old)").wait_for(timeout=WAIT_MS)


def test_an_output_written_again_keeps_what_was_chosen(
    browser: Browser, lab: str, place: Path
) -> None:
    """The kernel completes an output that the reader works with: setting and focus stay."""
    with running(browser, lab.format(name=WRITTEN_AGAIN)) as page:
        explorer = page.locator(f"{LIVE} .advisor-explorer")
        explorer.wait_for(timeout=WAIT_MS)
        field = page.locator(f"{LIVE} .ae-row [id$='-acks']")
        field.select_option("1")
        field.focus()
        before = page.locator(".jp-OutputArea-output .lm-Widget").first.evaluate_handle(
            "part => part"
        )
        place.joinpath("notebooks", "go").touch()
        page.wait_for_function("part => !part.isConnected", arg=before, timeout=WAIT_MS)
        explorer.wait_for(timeout=WAIT_MS)
        page.locator(f"{LIVE} .ae-legend", has_text="shown: RF 3, min ISR 1, acks=1").wait_for()
        assert explorer.count() == 1
        assert field.input_value() == "1"
        page.wait_for_function(
            "() => (document.activeElement.id || '').endsWith('-acks')", timeout=WAIT_MS
        )
        field.select_option("0")
        page.wait_for_function(
            "live => document.querySelector(`${live} .ae-legend`)"
            ".innerText.includes('min ISR 1, acks=0')",
            arg=LIVE,
        )


def test_a_notebook_opened_again_shows_the_stored_page(browser: Browser, lab: str) -> None:
    """Not that the widget's model is not found; and what the page holds can be chosen."""
    page = new_page(browser, viewport={"width": 1280, "height": 800})
    page.goto(lab.format(name=OPENED_AGAIN))
    explorer = page.locator(".advisor-explorer")
    explorer.wait_for(timeout=WAIT_MS)
    assert page.get_by_text("Error displaying widget").is_hidden()
    page.locator(".ae-row [id$='-min_insync_replicas']").select_option("2")
    assert "shown: RF 3, min ISR 2" in page.locator(".ae-legend").inner_text()
    assert explorer.get_attribute("data-state") == "answered"
    page.close()
