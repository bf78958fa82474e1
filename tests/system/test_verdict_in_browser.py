"""In a real browser: the first screen of a verdict, on a desk and on a phone, light and dark."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from advisor.decision import Action, Verdict
from advisor.present.verdict_page import verdict_html
from browsing import NEEDS_BROWSER, chromium, opened, serious
from fake_evaluator import question
from six_topics import SIX, drawn_verdict, verdict

pytestmark = NEEDS_BROWSER
HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>A verdict</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><main><h1>A verdict</h1>'
)
BROKEN = ("orders: 2 of 12 partitions have no leader",)
LONG = "orders.payments.completed.by.region." * 6


def command(action: Action) -> str:
    return f"echo '{action.topic}' \\\n  <\"{action.after}\">\n"


VERDICTS = {
    "six topics": replace(drawn_verdict(*SIX, now=BROKEN), command_of=command),
    "long names": verdict(*(question(1, 1, topic=f"{LONG}{number}") for number in range(12))),
    "one setting": drawn_verdict(question(3, 2, topic="")),
}
SCREENS = ((390, "light"), (390, "dark"), (800, "light"), (1280, "dark"), (1920, "light"))
SMALLEST_PIXELS = 9.0
SIZES = """() => [...document.querySelectorAll("svg text")]
  .filter(word => word.getBoundingClientRect().width > 0)
  .map(word => parseFloat(getComputedStyle(word).fontSize) * word.getScreenCTM().a)"""
OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter(word => {
  const drawing = word.ownerSVGElement.getBoundingClientRect();
  const place = word.getBoundingClientRect();
  return place.width > 0 && (place.left < drawing.left - 1 || place.right > drawing.right + 1);
}).map(word => word.textContent)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize("answer", VERDICTS.values(), ids=VERDICTS)
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_first_screen_fits(
    browser: Browser, tmp_path: Path, answer: Verdict, width: int, scheme: str
) -> None:
    """Nothing is cut off or too small to read, the picture is there once, axe finds nothing."""
    path = tmp_path / "verdict.html"
    path.write_text(f"{HEAD}{verdict_html(answer).text}</main>", encoding="utf-8")
    page = opened(browser, path, width, scripts=True, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = [drawn.is_visible() for drawn in page.locator("figure:has(.av-wide) svg").all()]
    assert shown == [width > 390, width == 390]
    assert min(page.evaluate(SIZES)) >= SMALLEST_PIXELS
    assert [words for words in page.evaluate(OUTSIDE) if LONG not in words] == []
    assert serious(page, ".advisor-verdict") == []
    assert page.asked == [path.as_uri()]
    assert page.troubles == []
    page.context.close()


def test_topics_are_cards_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    """Each topic stands in a box of its own, with the names of the columns, and stays a table."""
    path = tmp_path / "verdict.html"
    path.write_text(f"{HEAD}{verdict_html(VERDICTS['six topics']).text}</main>", encoding="utf-8")
    page = opened(browser, path, 390)
    rows = page.locator(".av-topics").first.locator("tbody tr")
    boxes = [row.bounding_box() for row in rows.all()]
    assert len(boxes) == 4
    for above, below in pairwise(boxes):
        assert above is not None
        assert below is not None
        assert above["y"] + above["height"] <= below["y"]
    label = "cell => getComputedStyle(cell, '::before').content"
    cells = rows.first.locator("td.av-cell")
    assert [cells.nth(place).evaluate(label) for place in (0, 1)] == ['"Today"', '"Set to"']
    assert page.get_by_role("row").count() >= 5
    page.context.close()


def test_a_topic_has_a_button_that_copies_its_command(browser: Browser, tmp_path: Path) -> None:
    """By keyboard, as it is written; one that is held back says why and cannot be pressed."""
    path, shown = tmp_path / "verdict.html", VERDICTS["six topics"]
    path.write_text(f"{HEAD}{verdict_html(shown).text}</main>", encoding="utf-8")
    page = opened(browser, path, 1280)
    page.evaluate(
        "() => { window.copied = []; Object.defineProperty(window, 'isSecureContext', "
        "{ value: false }); document.execCommand = () => "
        "copied.push(document.querySelector('textarea').value) > 0; "
        "window.setTimeout = () => 0; }"  # or two seconds later the button says Copy again
    )
    for action in shown.actions:
        row = page.locator(".av-topics tbody tr", has=page.get_by_text(action.topic, exact=True))
        button = row.locator("button")
        if action.set_to is None:
            assert button.count() == 0
        elif action.held_back:
            assert button.is_disabled()
            assert "lowers min ISR" in button.get_attribute("aria-label")
        else:
            button.press("Enter")
            assert button.text_content() == "Copied"
            assert page.evaluate("copied.pop()") == command(action)
    assert any(action.held_back for action in shown.actions)
    page.context.close()


def test_without_scripts_there_is_no_button(browser: Browser, tmp_path: Path) -> None:
    """The column that scripts would serve is not shown; the rest of the table is."""
    path = tmp_path / "verdict.html"
    path.write_text(f"{HEAD}{verdict_html(VERDICTS['six topics']).text}</main>", encoding="utf-8")
    page = opened(browser, path, 1280, scripts=False)
    assert page.locator(".av-topics th").first.is_visible()
    assert [cell.is_visible() for cell in page.locator(".av-command").all()].count(True) == 0
    page.context.close()
