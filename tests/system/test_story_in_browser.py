"""In a real browser: the slider of a story, without kernel and network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import advisor
from advisor.present.stories import draw_bars
from advisor.present.stories.picture import STYLE
from browsing import NEEDS_BROWSER, chromium, opened

pytestmark = NEEDS_BROWSER
SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"


# Sizes of all words in drawings, as the screen shows them.
SIZES = """() => [...document.querySelectorAll("svg text")]
  .filter(word => word.getBoundingClientRect().width > 0)
  .map(word => parseFloat(getComputedStyle(word).fontSize) * word.getScreenCTM().a)"""
# Words that overlap others by more than a hair, or the edge of their drawing.
OVERLAPS = """() => [...document.querySelectorAll("svg")].flatMap(drawing => {
  const edge = drawing.getBoundingClientRect();
  const words = [...drawing.querySelectorAll("text")].map(word => [word.textContent,
    word.getBoundingClientRect()]);
  const outside = words.filter(([, at]) => at.left < edge.left - 1 || at.right > edge.right + 1)
    .map(([word]) => "outside: " + word);
  const pairs = words.flatMap(([one, a], place) => words.slice(place + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(([two]) => one + " | " + two));
  return [...outside, ...pairs];
})"""


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
        ".filter(step => getComputedStyle(step).display !== 'none')"
        ".map(step => step.dataset.title)",
        story,
    )


def test_the_slider_goes_through_the_steps_by_keyboard_and_mouse(
    browser: Browser, page_file: Path
) -> None:
    """Arrow keys, End, and both buttons show one step each; the other story stays where it is."""
    page = opened(browser, page_file, 800)
    slider = page.get_by_role("slider", name="Step").first
    assert shown(page) == ["produce t-0 6 acks=all"]
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert shown(page) == ["kill 2"]
    assert slider.get_attribute("aria-valuetext") == "Step 2 of 7: kill 2"
    page.keyboard.press("End")
    assert shown(page) == ["start 1"]
    assert page.get_by_role("button", name="Next").first.get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="Back").first.click()
    assert shown(page) == ["elect unclean t-0"]
    assert shown(page, 1) == ["topic testp3 replicas=0,1,2;1,2,0;2,0,1;0,2,1;1,0,2"]
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
    assert sum(step.is_visible() for step in page.locator(".advisor-story li").all()) == 23
    assert not any(one.is_visible() for one in page.locator(".advisor-story button").all())


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_a_story_fits_every_width(browser: Browser, page_file: Path, width: int) -> None:
    """Nothing overflows, and the smallest text is readable from the width of a phone on."""
    page = opened(browser, page_file, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert min(page.evaluate(SIZES)) >= 9.5 or width < 390


def test_words_of_a_drawing_do_not_overlap(browser: Browser, tmp_path: Path) -> None:
    """In no step of any scenario, nor do they leave the drawing."""
    plays = [advisor.play(path) for path in sorted(SCENARIOS.glob("*.txt"))]
    told = [play.story() for play in plays if any(m.state.partitions for m in play.moments)]
    drawn = {step.picture.svg for story in told for step in story.steps}
    assert len(drawn) > 200
    path = tmp_path / "page.html"
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Stories</title>'
    head += f"{STYLE.text}"
    head += '<meta name="viewport" content="width=device-width"><body class="advisor-drawing">'
    path.write_text("".join([head, *sorted(drawn)]), encoding="utf-8")
    page = opened(browser, path, 390, scripts=False)
    assert page.evaluate(OVERLAPS) == []
