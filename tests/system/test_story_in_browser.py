"""In a real browser: the slider of a story, without kernel and network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import advisor
from advisor.present.stories import draw_bars
from browsing import NEEDS_BROWSER, chromium, opened

pytestmark = NEEDS_BROWSER
SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with two stories and a picture, as an exported notebook has them."""
    names = ("l08-unclean-election-exact-loss", "five-partitions-on-three-brokers")
    stories = [advisor.play(SCENARIOS / f"{name}.txt").story().html for name in names]
    path = tmp_path_factory.mktemp("story") / "page.html"
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Stories</title>'
    head += '<meta name="viewport" content="width=device-width"><body><h1>Stories</h1>'
    path.write_text("".join([head, *stories, draw_bars({"a": 1}).html]), encoding="utf-8")
    return path


def shown(page: Page, story: int = 0) -> list[str]:
    """Titles of the steps of a story that can be seen."""
    return page.evaluate(
        "place => [...document.querySelectorAll('.advisor-story')[place].querySelectorAll('li')]"
        ".filter(step => getComputedStyle(step).visibility === 'visible')"
        ".map(step => step.dataset.title)",
        story,
    )


def test_the_slider_goes_through_the_steps_by_keyboard_and_mouse(
    browser: Browser, page_file: Path
) -> None:
    """Arrow keys, End, and both buttons show one step each; the other story stays where it is."""
    page = opened(browser, page_file, 800)
    slider = page.get_by_role("slider", name="Step").first
    assert shown(page) == ["cluster brokers=2 kafka=3.9 mode=kraft"]
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert shown(page) == ["produce t-0 6 acks=all"]
    assert slider.get_attribute("aria-valuetext") == "Step 2 of 8: produce t-0 6 acks=all"
    page.keyboard.press("End")
    assert shown(page) == ["start 1"]
    assert page.get_by_role("button", name="Next").first.get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="Back").first.click()
    assert shown(page) == ["elect unclean t-0"]
    assert shown(page, 1) == ["cluster brokers=0,1,2 kafka=0.10.2 mode=zookeeper"]
    assert page.asked == [page_file.as_uri()]
    assert page.troubles == []


def test_every_control_is_closed_to_jupyterlabs_shortcuts(
    browser: Browser, page_file: Path
) -> None:
    """JupyterLab's rules match the focused element itself, so each control bears the mark."""
    page = opened(browser, page_file, 800)
    controls = page.locator(".advisor-story :is(button, input)")
    assert controls.count() == 6
    for control in controls.all():
        assert control.get_attribute("data-lm-suppress-shortcuts") == "true"


@pytest.mark.parametrize("medium", ["print", "without scripts"])
def test_all_steps_are_listed_on_paper_and_without_scripts(
    browser: Browser, page_file: Path, medium: str
) -> None:
    """Every step can be seen, and no control."""
    page = opened(browser, page_file, 800, scripts=medium == "print")
    if medium == "print":
        page.emulate_media(media="print")
    assert sum(step.is_visible() for step in page.locator(".advisor-story li").all()) == 24
    assert not any(one.is_visible() for one in page.locator(".advisor-story button").all())


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_a_story_fits_every_width(browser: Browser, page_file: Path, width: int) -> None:
    """Nothing overflows, and the smallest text is readable from the width of a phone on."""
    page = opened(browser, page_file, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    scale = page.evaluate("document.querySelector('svg').getBoundingClientRect().width / 360")
    assert 9 * scale >= 8.5 or width < 390
