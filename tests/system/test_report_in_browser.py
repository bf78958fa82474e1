"""In a real browser: what a reader can do with the report, on a desk, on a phone and on paper."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from advisor.advice import Recommendation, audit, recommend
from advisor.catalog import data_path
from advisor.cluster import load_cluster
from advisor.present import write_report
from advisor.reliability.failures.failure_model import FailureModel
from browsing import NEEDS_BROWSER, chromium, opened

pytestmark = NEEDS_BROWSER
CARD = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 2, "minutes": 5},
            "destroyed": {"per_year": 0.01, "hours": 12},
        }
    }
)


IN_VIEW = """heading => {
  const top = document.getElementById(heading).getBoundingClientRect().y;
  return -1 <= top && top < innerHeight;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def advice() -> Recommendation:
    source = data_path("clusters/three-az-six-brokers.txt")
    cluster = load_cluster(source, racks=source.with_suffix(".racks.toml"))
    return recommend(cluster, CARD, allow_lower_durability=True)


@pytest.fixture(scope="module")
def report(advice: Recommendation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(advice, path, audit(advice.cluster, CARD), cards=[])


@pytest.mark.parametrize("width", [390, 1280])
def test_topics_are_filtered_and_sorted(browser: Browser, report: Path, width: int) -> None:
    """A word and the box leave the rows that fit; a heading sorts, and again the other way."""
    page = opened(browser, report, width)
    rows = page.locator("table.sortable tbody tr")
    every = rows.count()
    assert every == 6
    page.get_by_label("Show topics with").fill("payments")
    assert [row.is_visible() for row in rows.all()].count(True) == 1
    assert page.locator(".filter [role=status]").inner_text() == f"1 of {every} rows"
    page.get_by_label("Show topics with").fill("")
    page.get_by_label("only those in trouble").check()
    shown = [row.inner_text() for row in rows.all() if row.is_visible()]
    assert 0 < len(shown) < every
    assert all("critical" in text or "warning" in text for text in shown)
    page.get_by_label("only those in trouble").uncheck()
    heading = page.locator("table.sortable thead").get_by_role("button", name="Topic")
    names = []
    for _ in range(2):
        heading.click()
        names.append(page.locator("table.sortable tbody th").all_inner_texts())
    assert names[0] == names[1][::-1]
    assert len(set(names[0])) == every
    assert page.troubles == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("min ISR 2", {"orders", "__transaction_state"}),
        ("min ISR 3", {"audit"}),
        ("rf 3", {"payments", "audit", "orders", "__transaction_state"}),
        ("KRA102", {"audit"}),
    ],
)
def test_a_setting_finds_the_topics_that_have_it_today(
    browser: Browser, report: Path, words: str, named: set[str]
) -> None:
    """What the plan would set is not what a topic has: it is in the table, but not searched."""
    page = opened(browser, report, 1280)
    page.get_by_label("Show topics with").fill(words)
    rows = [row for row in page.locator("table.sortable tbody tr").all() if row.is_visible()]
    assert {row.locator("th").inner_text() for row in rows} == named


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_every_file_is_downloaded_as_it_is(
    browser: Browser, report: Path, advice: Recommendation, how: str
) -> None:
    """Without a network, to the byte; the plan's scripts and files are all there.

    A browser asks before a page saves more than ten files at once, so a new page takes some each.
    """
    page = opened(browser, report, 1280)
    expected = {**advice.plan.scripts, **advice.plan.files}
    count = page.get_by_role("button", name="Download ").count()
    assert count == len(expected) > 10
    for number in range(count):
        if number % 8 == 7:
            page = opened(browser, report, 1280)
        button = page.get_by_role("button", name="Download ").nth(number)
        with page.expect_download() as waiting:
            if how == "mouse":
                button.click()
            else:
                button.press("Enter")
        name = waiting.value.suggested_filename
        text = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert text.strip() == expected[name].strip(), name
    assert page.troubles == []


def test_commands_are_copied(browser: Browser, report: Path, advice: Recommendation) -> None:
    """The button says so, and the clipboard holds the commands."""
    page = opened(browser, report, 1280)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy Make the change")
    button.click()
    page.wait_for_function("words => document.activeElement.textContent === words", arg="Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.split("\n") == list(advice.plan.steps)


def test_the_contents_lead_to_every_section(browser: Browser, report: Path) -> None:
    """Sections are folded; each has an entry, which opens it and scrolls to its heading."""
    page = opened(browser, report, 1280, folded=True)
    assert page.locator("main > section > details[open]").count() == 0
    links = page.locator("nav a").all()
    assert len(links) == page.locator("main > section").count() >= 7
    for link in links:
        link.click()
        target = (link.get_attribute("href") or "")[1:]
        opened_section = page.locator(f"details[open] > summary > h2#{target}")
        opened_section.wait_for()  # the page hears of the click a moment later
        page.wait_for_function(IN_VIEW, arg=target)
        assert opened_section.count() == 1


def test_paper_has_everything(browser: Browser, report: Path) -> None:
    """Every file and table is open, both figures are there, and nothing that only works on screens.

    The print style alone opens what is folded: not every way to a printer runs scripts first.
    """
    page = opened(browser, report, 739)
    page.emulate_media(media="print")
    folded = page.locator("details pre, details table")
    assert folded.count() > 10
    heights = folded.evaluate_all("parts => parts.map(p => p.getBoundingClientRect().height)")
    assert min(heights) > 0
    assert sum(chart.is_visible() for chart in page.locator("main figure svg").all()) == 2
    steps = page.locator(".advisor-story li")
    assert all(step.is_visible() for step in steps.all())
    for control in page.locator("nav, .tools button, .filter input, select, [type=range]").all():
        assert not control.is_visible()
    assert len(page.pdf()) > 50_000
