"""In a real browser: the report and exported notebooks, without kernel and network."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from advisor.advice import Goals, audit, recommend
from advisor.catalog import data_path
from advisor.cluster import Cluster, load_cluster
from advisor.present import write_report
from advisor.present.interactive.settings_grid import verdict_at
from advisor.reliability.failures.failure_model import FailureModel, load_model
from browsing import NEEDS_BROWSER, chromium, opened, serious
from explorer_pages import words_at

pytestmark = NEEDS_BROWSER
SCREENS = ((1280, "light"), (390, "light"), (1280, "dark"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


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
    return write_report(advice, path, audit(cluster, model), cards=["two_az"])


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report on a shipped card, whose evidence has long addresses."""
    cluster, card = Cluster.uniform(brokers=2, racks=2), load_model("two_az")
    path = tmp_path_factory.mktemp("shipped") / "report.html"
    return write_report(recommend(cluster, card), path, audit(cluster, card), cards=[])


@pytest.fixture(scope="module")
def exported(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Export every notebook, as nbconvert does with our configuration."""
    folder = tmp_path_factory.mktemp("exported")
    books = sorted((root / "notebooks").glob("*.ipynb"))
    command = [sys.executable, "-m", "nbconvert", "--config", "jupyter_nbconvert_config.py"]
    command += ["--to", "html", "--output-dir", str(folder), *map(str, books)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return [folder / f"{book.stem}.html" for book in books]


@pytest.mark.parametrize("width", [400, 1400])
def test_the_report_fits_every_width(browser: Browser, report: Path, width: int) -> None:
    """Nothing overflows, each chart is visible once, nothing else is loaded.

    The explorer draws the curves that the second figure has on paper and without scripts.
    """
    page = opened(browser, report, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert sum(chart.is_visible() for chart in page.locator("main figure svg").all()) == 1
    assert [chart.is_visible() for chart in page.locator("svg.ae-chart").all()] == [True, True]
    assert page.asked == [report.as_uri()]
    assert page.troubles == []


@pytest.mark.parametrize(("medium", "width"), [("screen", 390), ("screen", 800), ("print", 739)])
def test_no_table_is_cut_off(browser: Browser, shipped: Path, medium: str, width: int) -> None:
    """On a small screen and on paper (letter, with Chromium's margins) every table is complete."""
    page = opened(browser, shipped, width)
    page.emulate_media(media=medium)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    cut = page.evaluate(
        "[...document.querySelectorAll('table, pre')]"
        ".filter(part => part.getBoundingClientRect().right > innerWidth"
        " || part.scrollWidth > part.clientWidth + 1)"
        ".map(part => (part.caption || part).textContent.trim().slice(0, 60))"
    )
    assert cut == []


# Sizes of the words in pictures, as the screen shows them; what nothing scrolls into view.
SIZES = """() => [...document.querySelectorAll("svg text")]
  .filter(word => word.textContent.trim() && word.getBoundingClientRect().width > 0)
  .map(word => [parseFloat(getComputedStyle(word).fontSize) * Math.hypot(
    word.getScreenCTM().a, word.getScreenCTM().b), word.textContent])"""
CUT_OFF = """() => {
  const cut = part => {
    const place = part.getBoundingClientRect();
    const right = Math.max(place.right, place.left + part.scrollWidth);
    const first = part.tagName === "svg" ? part.parentElement : part;
    for (let box = first; box && box !== document.body; box = box.parentElement) {
      const flow = getComputedStyle(box).overflowX;
      if (/auto|scroll/.test(flow)) return false;
      if (flow !== "visible" && right > box.getBoundingClientRect().right + 1) return true;
    }
    return right > innerWidth;
  };
  return [...document.querySelectorAll("table, pre, code, svg")].filter(part =>
    getComputedStyle(part).visibility === "visible" && cut(part))
    .map(part => part.outerHTML.slice(0, 90));
}"""


def test_pictures_and_tables_are_readable_on_a_phone(
    browser: Browser, report: Path, exported: list[Path]
) -> None:
    """No word in a picture is smaller than 9 pixels, and what is too wide scrolls in its box."""
    for path in (report, *exported):
        page = opened(browser, path, 390)
        page.wait_for_load_state("load")
        sizes = page.evaluate(SIZES)
        assert sizes
        assert min(sizes)[0] >= 9.0, (path.name, min(sizes))
        assert page.evaluate(CUT_OFF) == [], path.name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name
        page.close()


def test_cells_name_their_columns_on_a_phone(browser: Browser, report: Path) -> None:
    """Rows of wide tables are blocks there, and every column can still be sorted by."""
    label = "cell => getComputedStyle(cell, '::before').content"
    for width, shown in ((390, '"Writes refused: "'), (1280, "none")):
        page = opened(browser, report, width)
        cells = page.locator("table.sortable tbody tr:first-child td")
        assert cells.nth(3).evaluate(label) == shown
        buttons = page.locator("table.sortable thead button").all()
        assert len(buttons) == 1 + cells.count()
        assert all(button.is_visible() for button in buttons)
        page.close()


def test_the_report_answers_without_a_kernel(browser: Browser, report: Path) -> None:
    """Choosing another min ISR changes the verdict and the picture; what Kafka refuses is said."""
    page = opened(browser, report, 1400)
    picture, legend = page.locator(".ae-durability"), page.locator(".ae-legend")
    before, least = picture.inner_html(), page.get_by_role("combobox", name="min.insync.replicas")
    assert "today:" in legend.inner_text()
    assert "(today)" in least.evaluate("field => field.selectedOptions[0].textContent")
    least.select_option("3")
    assert "shown: RF 3, min ISR 3, acks=all" in legend.inner_text()
    assert picture.inner_html() != before
    page.get_by_role("combobox", name="replication factor").select_option("1")
    refusal = page.locator(".ae-refusal:not(:empty)").inner_text()
    assert refusal.startswith("Kafka 2.3 refuses every write: “Messages are rejected since")
    assert page.locator(".ae-answer.ae-old").count() == 1
    assert "shown: RF 3, min ISR 3, acks=all" in legend.inner_text()
    least.select_option("1")  # the other side of the conflict
    assert page.locator(".ae-refusal:not(:empty)").count() == 0
    assert "shown: RF 1, min ISR 1, acks=all" in legend.inner_text()
    assert page.troubles == []


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_axe_finds_nothing_serious(
    browser: Browser, report: Path, shipped: Path, exported: list[Path], width: int, scheme: str
) -> None:
    """In two reports and every exported notebook: on a desk, on a phone, and dark."""
    for path in (report, shipped, *exported):
        page = opened(browser, path, width, scheme=scheme)
        page.wait_for_load_state("load")
        assert serious(page) == [], path.name
        for explorer in page.locator(".advisor-explorer").all():
            box = explorer.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width
        page.close()


def test_no_notebook_is_longer_than_fifteen_screens(browser: Browser, exported: list[Path]) -> None:
    """Of 1280 by 800 pixels, with nothing unfolded."""
    for path in exported:
        page = opened(browser, path, 1280)
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollHeight") <= 15 * 800, path.name
        page.close()


def test_exported_notebooks_ask_nothing(browser: Browser, exported: list[Path]) -> None:
    """No page requests an address, or has an error."""
    for path in exported:
        page = opened(browser, path, 1280)
        page.wait_for_load_state("networkidle")
        asked = [address for address in page.asked if not address.startswith("data:")]
        assert asked == [path.as_uri()]
        assert page.troubles == []
        page.close()


def data_of(path: Path) -> Any:
    """Return the data that the explorer of a page draws from."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
@pytest.mark.parametrize("which", ["report", "exported"])
def test_every_switch_of_a_page_answers(
    browser: Browser, report: Path, exported: list[Path], which: str, how: str
) -> None:
    """Each choice of each list shows the numbers that the page holds for it, and asks nothing."""
    path = report if which == "report" else exploring(exported)
    data, page = data_of(path), opened(browser, path, 1280)
    keys = [control["key"] for control in data["controls"]]
    assert {"topic", "card", "replication_factor", "min_insync_replicas", "acks"} <= set(keys)
    for control in data["controls"]:
        if control["key"] == data["price"]:
            continue
        field = page.locator(f".ae-row [id$='-{control['key']}']")
        assert field.get_attribute("data-lm-suppress-shortcuts") == "true"
        values = [option[0] for option in control["options"]]
        assert field.is_disabled() == (len(values) == 1)
        if len(values) == 1:
            assert "no other value" in (field.get_attribute("title") or "")
            continue
        field.focus()
        page.keyboard.press("Home")
        assert field.input_value() == values[0]
        for value in values:
            if how == "mouse":
                field.select_option(value)
            elif value != values[0]:
                page.keyboard.press("ArrowDown")
            assert field.input_value() == value
            today = data["today"][value] if control["key"] == "topic" else {}
            shown = {key: today[key] for key in keys if key in today}
            holds(page, data, {**data["chosen"], **shown, control["key"]: value})
        field.select_option(data["chosen"][control["key"]])
    holds(page, data, data["chosen"])
    assert [address for address in page.asked if not address.startswith("data:")] == [path.as_uri()]
    assert page.troubles == []


def test_what_a_loss_is_worth_changes_the_verdict_only(browser: Browser, report: Path) -> None:
    """Each step of the scale has the verdict that was computed for it; no number moves."""
    data, page = data_of(report), opened(browser, report, 1280)
    field = page.locator(f".ae-row [id$='-{data['price']}']")
    lines = page.locator(".ae-more li").all_text_contents()
    (steps,) = (c["options"] for c in data["controls"] if c["key"] == data["price"])
    for place, (price, name) in enumerate(steps):
        field.fill(str(place))
        assert field.get_attribute("aria-valuetext") == name
        assert page.locator(".ae-step").inner_text() == name
        holds(page, data, {**data["chosen"], data["price"]: price})
        assert page.locator(".ae-more li").all_text_contents() == lines
    bar = page.locator(".ae-pays").evaluate("bar => [bar.style.left, bar.style.width]")
    assert bar != ["0%", "100%"]


def holds(page: Page, data: Any, values: dict[str, str]) -> None:
    """Check that a page shows the setting that its data has for the values of the controls."""
    factor = values["replication_factor"]
    if int(values["min_insync_replicas"]) > int(factor):
        capped = data["capped"].get(values.get("kafka_version", data["version"]))
        if not capped:  # before Kafka 3.7 a setting of its own, which refuses every write
            said = page.locator(".ae-refusal:not(:empty)").inner_text()
            assert "refuses every write: “Messages are rejected since" in said
            return
        assert capped in page.locator(".ae-said:not(:empty)").all_inner_texts()
        values = {**values, "min_insync_replicas": factor}
    key = "|".join(value for name, value in values.items() if name != data["price"])
    setting = data["settings"].get(key)
    assert setting is not None, values
    verdict = verdict_at(data, setting, values[data["price"]])
    assert page.locator(".ae-headline").inner_text() == words_at(data, verdict["headline"])
    assert page.locator(".ae-verdict").inner_text() == words_at(data, verdict["text"])
    badge = page.locator(".ae-badge")
    assert verdict["severity"] in badge.inner_text()
    colourless = "ae-open" in (badge.get_attribute("class") or "")
    # What is wrong at the middle values is wrong; how sure that is, a page does not learn.
    assert colourless == (not verdict["known"] and verdict["severity"] == "ok")
    legend = page.locator(".ae-legend").inner_text()
    assert f"shown: {data['texts'][setting['name']]}" in legend
    marks = data["marks"]["|".join(values[name] for name in data["context"])]
    for mark in marks:
        assert f"{data['marked'][mark['mark']]}: {mark['name']}" in legend


def exploring(exported: list[Path]) -> Path:
    """Return the exported notebook with the explorer."""
    return next(path for path in exported if "01_" in path.name)


def test_a_first_choice_without_an_answer_is_said(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    """What the page lacks is said at its control, and the picture of before stays, greyed out."""
    data = data_of(report)
    lacking = {**data["chosen"], "min_insync_replicas": "3"}
    key = "|".join(value for name, value in lacking.items() if name != data["price"])
    text = report.read_text(encoding="utf-8").replace(f'"{key}":', '"none":')
    path = tmp_path / "lacking.html"
    path.write_text(text, encoding="utf-8")
    page = opened(browser, path, 1280)
    before = page.locator(".ae-headline").inner_text()
    page.get_by_role("combobox", name="min.insync.replicas").select_option("3")
    assert "no answer" in page.locator(".ae-refusal:not(:empty)").inner_text()
    assert page.locator(".ae-headline").inner_text() == before
    assert page.locator(".ae-answer.ae-old .ae-durability").count() == 1
    assert page.troubles == []


def test_the_report_says_the_same_without_scripts(browser: Browser, report: Path) -> None:
    """The table holds every setting, and selects without effect are not shown."""
    page = opened(browser, report, 1400, scripts=False)
    assert not page.locator("select").first.is_visible()
    assert page.locator("noscript p").is_visible()
    assert sum(chart.is_visible() for chart in page.locator("main figure svg").all()) == 2
    assert page.get_by_role("rowheader", name="RF 3, min ISR 3, acks=all").first.is_visible()
