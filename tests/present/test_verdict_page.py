"""A verdict as the first screen of a page: order, structure, escaping, whose numbers it shows."""

import html
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from advisor import plotting
from advisor.decision import Action, Verdict
from advisor.decision.rows import in_trouble, row
from advisor.decision.rule import Spread
from advisor.errors import MissingExtraError
from advisor.present.verdict_page import first_screen, verdict_html
from advisor.present.verdict_pictures import NARROW, WIDE, arrows, price_axis, price_sentence
from advisor.rendering import Html
from advisor.rendering import html as escaped
from fake_evaluator import question
from hostile_text import HOSTILE
from six_topics import SIX, drawn_verdict, verdict

BROKEN = ("orders: 2 of 12 partitions have no leader", "audit: 1 of 3 partitions has no leader")
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
VOID = {"circle", "path", "rect"}


class Elements(HTMLParser):
    """Checks that elements nest, and keeps them and the text outside pictures and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.all.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"svg", "style"} & set(self.open):
            self.words.append(data)

    def of(self, tag: str, kind: str = "") -> list[dict[str, str | None]]:
        """The attributes of the elements of a tag and class."""
        return [a for name, a in self.all if name == tag and kind in (a.get("class") or "")]

    @property
    def text(self) -> str:
        """What is read, in one line."""
        return " ".join(" ".join(self.words).split())


def named(answer: Verdict, names: list[str]) -> Verdict:
    """Return a verdict whose topics have other names."""
    actions = zip(answer.actions, names, strict=True)
    return replace(answer, actions=tuple(replace(action, topic=name) for action, name in actions))


@pytest.mark.parametrize("now", [(), BROKEN[:1], BROKEN])
def test_the_order_of_the_first_screen(now: tuple[str, ...]) -> None:
    """Broken, headline, text, numbers, topics, healthy ones folded, picture, commands, how sure."""
    answer = drawn_verdict(*SIX, now=now)
    page = first_screen(answer, escaped("THE COMMANDS")).text
    order = [
        *(['<div class="av-now">', "Broken now"] if now else []),
        "Change 4 of 6 topics",
        answer.text[:30],
        '<dl class="av-two">',
        *(f">{action.topic}</th>" for action in in_trouble(answer)),
        '<details class="av-healthy">',
        "<figure>",
        "Held back until you consent",
        "THE COMMANDS",
        "How sure: ",
        "these narrow it most",
    ]
    start = 0
    for words in order:
        start = page.index(words, start)
    assert ('class="av-now"' in page) == bool(now)
    assert all(sentence in page for sentence in now)


@pytest.mark.parametrize("title", [True, False])
def test_the_structure_is_accessible(title: bool) -> None:
    """Captions, scopes, the roles that cards would lose, pictures in words, at most one title."""
    page = Elements(first_screen(drawn_verdict(*SIX, now=BROKEN), title=title).text)
    tables = page.of("table")
    assert len(tables) == len(page.of("caption")) == 2
    assert all(table["role"] == "table" for table in tables)
    assert all(head["scope"] in ("row", "col") and head["role"] for head in page.of("th"))
    assert all(cell["role"] == "cell" for cell in page.of("td"))
    assert all(tr["role"] == "row" for tr in page.of("tr"))
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in page.of("svg"))
    assert len(page.of("h1")) == title
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in page.all}
    cells = [cell for cell in page.of("td") if cell.get("data-label")]
    assert len(cells) >= 5 * len(SIX) - len(tables)


def test_the_rows_are_those_of_every_screen() -> None:
    """Each topic has the severity, settings, losses, time without writes and reason of its row."""
    answer = verdict(*SIX)
    text = Elements(first_screen(answer).text).text
    for action in answer.actions:
        cells = row(action)
        start = text.index(f" {action.topic} {cells.today} ")
        found = text[start : start + 250]
        for words in (cells.set_to, cells.losses.joined("→"), cells.minutes.joined("→")):
            assert words in found
        assert cells.reason in found
        assert text[:start].endswith(cells.severity)


def test_what_is_held_back_is_marked_and_explained() -> None:
    """In its row and among the commands, with the reason and the option; not after consent."""
    page = first_screen(verdict(*SIX)).text
    assert page.count("held back *") == 1
    place = page.index("held back *")
    assert page.rindex('rowheader">', 0, place) == page.index('rowheader">audit<')
    assert "<strong>audit</strong> to min ISR 2: it lowers min ISR from 3 to 2." in page
    assert "--allow-lower-durability" in page
    consented = first_screen(verdict(*SIX, allow_lower_durability=True)).text
    assert "eld back" not in consented


def test_the_two_numbers_are_the_worst_topics() -> None:
    """Of all topics, today and after; only one of each where nothing changes."""
    answer = verdict(*SIX)
    better = replace(answer.actions[-1], loss_today=0.0, loss_after=0.0, refused_after=1.0)
    answer = replace(answer, actions=(*answer.actions[:-1], better))
    numbers = re.findall(r"<dd[^>]*>(.*?)</dd>", first_screen(answer).text)
    bare = [re.sub(r"<[^>]+>", "", number) for number in numbers]
    assert bare == ["today: 8.9 months", "after: 270 years", "today: 7.7 h", "after: 34 min"]
    kept = first_screen(verdict(SIX[4])).text
    assert re.findall(r'<dd class="av-after">(.*?)</dd>', kept) == ["270 years", "34 min"]
    assert "today:" not in kept


@pytest.mark.parametrize("draws", [True, False])
def test_no_number_is_the_pages_own(draws: bool) -> None:
    """Each number stands in the verdict's sentences, a row or the axis of prices."""
    answer = (drawn_verdict if draws else verdict)(*SIX, now=BROKEN)
    assert answer.choice is not None
    rows = [row(action) for action in answer.actions]
    said = [str(answer), *answer.below, *answer.now, *map(str, rows), price_sentence(answer.choice)]
    shown = Elements(first_screen(answer).text).text
    assert set(NUMBER.findall(shown)) <= set(NUMBER.findall(" ".join([*said, str(len(SIX))])))


def test_many_topics_are_folded() -> None:
    """The worst ten are shown, up to a hundred more can be opened, and the rest is counted."""
    page = first_screen(verdict(*[question(1, 1, topic=f"t{n:03}") for n in range(130)])).text
    assert page.count('scope="row"') == 110
    assert page[: page.index("<details>")].count('scope="row"') == 10
    assert "<summary>120 more topics to change</summary>" in page
    assert "20 more are not shown." in page


def test_no_topic_and_a_setting_without_a_topic() -> None:
    """Without topics there is the headline only; a setting is shown under a name of its own."""
    empty = Elements(first_screen(verdict()).text)
    assert empty.text == "There is no topic to decide about."
    assert empty.of("svg") == []
    assert ">this setting</th>" in first_screen(verdict(question(3, 1, topic=""))).text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_outside_text_is_shown_and_not_obeyed(text: str) -> None:
    """Names of topics and what is broken change no element of the page."""
    answer = drawn_verdict(*SIX, now=BROKEN)
    plain = Elements(first_screen(named(answer, [f"t{n}" for n in range(6)])).text)
    hostile = replace(
        named(answer, [f"{text}{n}" for n in range(6)]), now=tuple(f"{text}{n}" for n in range(2))
    )
    page = first_screen(hostile).text
    assert [tag for tag, _ in Elements(page).all] == [tag for tag, _ in plain.all]
    assert {char for char in page if not char.isprintable()} <= {"\n"}
    assert not [name for _, found in Elements(page).all for name in found if name.startswith("on")]


CIRCLE = re.compile(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+" class="([\w-]+)"/>')
WALL = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="[\d.]+" class="wall"/>')


def dots(picture: Html, kind: str) -> list[tuple[float, float]]:
    """Return the places of the dots of a kind."""
    return [(float(x), float(y)) for x, y, found in CIRCLE.findall(picture.text) if found == kind]


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_an_arrow_leads_each_topic_to_its_place(size: object) -> None:
    """Fewer losses are further right, less time without writes is further up, none in the wall."""
    answer = verdict(*SIX)
    picture = arrows(answer, size)  # type: ignore[arg-type]
    trouble = in_trouble(answer)
    starts, rings = dots(picture, "dot-critical"), dots(picture, "dot-after")
    assert len(starts) == len(trouble) == picture.text.count('class="tip"')
    for before, after in ((0, 1), (2, 1), (2, 3), (0, 3)):
        first, second = trouble[before], trouble[after]
        assert (starts[before][0] < starts[after][0]) == (first.loss_today > second.loss_today)
        assert (starts[before][1] < starts[after][1]) == (
            first.refused_today < second.refused_today
        )
    ((left, _), (_, _)) = ((float(x), float(y)) for x, y in WALL.findall(picture.text))
    below = max(float(y) for _, y in WALL.findall(picture.text))
    for x, y in (*starts, *rings):
        assert x <= left + 0.1
        assert y >= below - 0.1
    # The best topic's losses cannot fall further: it stands at the wall.
    least = min(action.floor.losses_per_year for action in answer.actions)
    touching = [a for a in answer.actions if math.isclose(a.loss_today, least, rel_tol=1e-3)]
    places = [*starts, *dots(picture, "dot-ok")]
    assert bool(touching) == any(abs(x - left) < 1.5 for x, _ in places)


def test_topics_at_one_place_share_an_arrow_and_a_name() -> None:
    """Their number is said; topics that stay are dots without an arrow."""
    same = [question(1, 1, topic=f"t{number}") for number in range(30)]
    picture = arrows(verdict(*same, SIX[4]))
    assert picture.text.count('class="tip"') == 1
    assert ">t0 and 29 more</text>" in picture.text
    assert len(dots(picture, "dot-ok")) == 1
    kept = arrows(verdict(SIX[4]))
    assert 'class="tip"' not in kept.text
    assert dots(kept, "dot-after") == []


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("losses", [0.0, 1e-12, 1.0, 1e9])
@pytest.mark.parametrize("minutes", [0.0, 1e-9, 34.0, 525_600.0])
def test_any_amount_has_a_place(size: object, losses: float, minutes: float) -> None:
    """Nothing, all the time and everything between is drawn inside the picture."""
    answer = verdict(*SIX)

    def extreme(action: Action) -> Action:
        floor = replace(
            action.floor, losses_per_year=losses, minutes_without_writes_per_year=minutes
        )
        return replace(action, loss_after=losses, refused_after=minutes, floor=floor)

    changed = replace(answer, actions=tuple(map(extreme, answer.actions)))
    picture = arrows(changed, size)  # type: ignore[arg-type]
    width, height = (
        float(part) for part in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture.text)[0]
    )
    for x, y, _ in CIRCLE.findall(picture.text):
        assert 0 < float(x) <= width
        assert 0 < float(y) <= height
    assert "nan" not in picture.text
    assert "inf" not in re.sub(r'aria-label="[^"]*"', "", picture.text)


def test_the_axis_of_prices() -> None:
    """The range over the draws in order, its middle between, and the price where it belongs."""
    choice = drawn_verdict(*SIX).choice
    assert choice is not None
    spread = choice.break_even_minutes
    assert spread is not None
    assert spread.low < spread.median < spread.high < choice.minutes_per_loss
    drawn = price_axis(choice)
    assert drawn is not None

    def first_x(kind: str) -> list[float]:
        path = re.search(rf'<path d="M([\d.]+) [\d.]+L([\d.]+)[^"]*" class="{kind}"', drawn.text)
        assert path is not None
        return [float(path[1]), float(path[2])]

    low, high = first_x("range")
    middle, price = first_x("middle-draw")[0], first_x("dot-warning")[0]
    assert low < middle < high < price
    assert html.unescape(price_sentence(choice)) in html.unescape(drawn.text)
    cheap = price_axis(replace(choice, minutes_per_loss=spread.low / 2.0))
    assert cheap is not None
    marked = re.search(r'M([\d.]+) [^"]*" class="dot-warning"', cheap.text)
    ranged = re.search(r'M([\d.]+) [^"]*" class="range"', cheap.text)
    assert marked is not None
    assert ranged is not None
    assert float(marked[1]) < float(ranged[1])


@pytest.mark.parametrize(
    ("spread", "words"),
    [
        (Spread(0.0, 0.0, 0.0), "It pays at any price of a loss."),
        (Spread(300.0, 0.0, math.inf), "anything up to over 100 years"),
        (Spread(300.0, 60.0, math.inf), "60 minutes to over 100 years without writes"),
        (Spread(1e12, 1e10, 1e15), "It pays at no price of a loss that matters."),
        (Spread(300.0, 0.0, 600.0), "anything up to 10 hours"),
    ],
)
def test_prices_without_an_end(spread: Spread, words: str) -> None:
    """A setting that is better at any price, or never, has words and a place."""
    choice = drawn_verdict(*SIX).choice
    assert choice is not None
    drawn = price_axis(replace(choice, break_even_minutes=spread))
    assert drawn is not None
    assert words in drawn.text
    assert not re.search(r"[ML ](inf|nan)", drawn.text)
    assert price_axis(replace(choice, break_even_minutes=None, break_even_above=None)) is None


def test_a_notebook_shows_the_first_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its style; without the drawing libraries the sentences alone, and never an error."""
    answer = verdict(*SIX)
    shown = answer._repr_html_()
    assert shown == verdict_html(answer).text
    assert shown.startswith("<style>")

    def missing(*_: object) -> Html:
        raise MissingExtraError("drawing plots and reports", "report")

    monkeypatch.setitem(plotting.plot_functions, "verdict", missing)
    plain = answer._repr_html_()
    assert "<svg" not in plain
    assert all(html.escape(words) in plain for words in (answer.headline, *answer.below))
