"""Charts: deterministic, labels without overlap, dominated settings grey."""

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from advisor.errors import InputError
from advisor.present.figures import style
from advisor.present.figures.comparison import plot_curves, plot_pareto
from advisor.present.points import Estimated, Point, dominated, dominates, slots


def spread(value: float, factor: float = 5.0) -> Estimated:
    return Estimated(value, value / factor, min(1.0, value * factor))


def settings(first: float, step: float, most: int = 5, zero: bool = False) -> list[Point]:
    """Return settings whose loss falls by `step` decades per min ISR, and refusals rise."""
    points = []
    for factor in range(1, most + 1):
        for least in range(1, factor + 1):
            loss = 0.0 if zero and least > 2 else first * 10 ** (-step * (least - 1))
            refused = 0.0 if zero and factor - least > 2 else 1e-4 * 10 ** (-1.5 * (factor - least))
            points.append(Point(factor, least, "all", spread(loss), spread(refused)))
    return points


SETS = {
    "usual": settings(2e-2, 2.3),
    "zeros": settings(1e-3, 2.5, zero=True),
    "a decade below zero": [
        Point(rf, least, "all", Estimated(q, q, q), Estimated(q, q, q))
        for (rf, least), q in {(1, 1): 1e-1, (2, 1): 1e-6, (2, 2): 0.0}.items()
    ],
    "two decades": [
        Point(rf, least, "all", Estimated(q, q, q), Estimated(q, q, q))
        for (rf, least), q in {(1, 1): 1e-3, (2, 1): 1.9e-5, (2, 2): 2e-4}.items()
    ],
    "one decade": [
        Point(rf, least, "all", Estimated(q, q, q), Estimated(q, q, q))
        for (rf, least), q in {(1, 1): 5e-1, (2, 1): 9e-2, (2, 2): 1e-1}.items()
    ],
    "huge": settings(0.9, 6.0),
    "flat": settings(1.1e-4, 0.05, most=3),
    "two brokers": settings(1e-2, 1.0, most=2),
    "nothing fails": [
        Point(rf, least, "all", Estimated(0, 0, 0), Estimated(0, 0, 0))
        for rf in (1, 2, 3)
        for least in range(1, rf + 1)
    ],
}


def marks_in(points: list[Point]) -> list[tuple[style.Mark, Point]]:
    here = {point.place: point for point in points}
    return [(style.RECOMMENDED, here[2, 2]), (style.CURRENT, here[2, 1])]


def visible_words(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return every visible text with its bounding box in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    inside = [t for t in texts if t.axes is None or _is_drawn(t)]
    return [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in inside]


def _is_drawn(text: Text) -> bool:
    """Return whether matplotlib draws the text; ticks beyond the limits are unplaced."""
    x, y = text.get_window_extent().get_points().mean(axis=0)
    return bool(x > 0.5 and y > 0.5)


@pytest.mark.parametrize("size", [(7.2, 5.4), (6.6, 4.6), (4.0, 5.4)])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("draw", [plot_curves, plot_pareto])
def test_labels_neither_overlap_nor_are_cut_off(
    draw: object, name: str, size: tuple[float, float]
) -> None:
    """Every label of every chart is inside the figure and overlaps no other."""
    assert callable(draw)
    width, height = size
    figure = draw(SETS[name], marks_in(SETS[name]), width_inches=width, height_inches=height)
    with style.look(width < style.NARROW_INCHES):
        words = visible_words(figure)
    for text, box in words:
        assert box.x0 >= -1, f"{text!r} is cut off on the left"
        assert box.x1 <= figure.bbox.x1 + 1, f"{text!r} is cut off on the right"
    for (one, first), (two, second) in combinations(words, 2):
        # A pixel of empty line height may be shared.
        assert not first.padded(-1.5).overlaps(second.padded(-1.5)), f"{one!r} over {two!r}"


@pytest.mark.parametrize("size", [(8.6, 5.4), (6.6, 4.6), (4.0, 5.4)])
@pytest.mark.parametrize("name", SETS)
def test_it_is_clear_which_tick_a_label_belongs_to(name: str, size: tuple[float, float]) -> None:
    """The two lines of a label are closer to each other than to the next label."""
    width, height = size
    figure = plot_curves(SETS[name], width_inches=width, height_inches=height)
    with style.look(width < style.NARROW_INCHES):
        FigureCanvasAgg(figure).draw()
        for ax in figure.axes:
            labels = [label for label in ax.get_yticklabels() if label.get_text()]
            boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
            for below, above in pairwise(boxes):
                between_lines = below.height - 2 * labels[0].get_fontsize() * figure.dpi / 72
                assert above.y0 - below.y1 > between_lines


@pytest.mark.parametrize("draw", [plot_curves, plot_pareto])
def test_the_same_settings_give_the_same_bytes(draw: object) -> None:
    """Two drawings are equal to the byte, independent of the user's rcParams."""
    assert callable(draw)
    points = SETS["usual"]
    first = style.svg(draw(points, marks_in(points)), "chart", "a chart").text
    with mpl.rc_context({"font.size": 21, "axes.facecolor": "red", "svg.fonttype": "path"}):
        second = style.svg(draw(points, marks_in(points)), "chart", "a chart").text
    assert first == second


def test_an_svg_is_self_contained() -> None:
    """It parses, loads nothing, shares no id with another chart, and has a description."""
    figures = [
        style.svg(plot_curves(SETS["usual"]), name, "records <lost> & kept").text
        for name in ("one", "two")
    ]
    ids = []
    for text in figures:
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img"
        assert root.get("aria-label") == "records <lost> & kept"
        ids.append({element.get("id") for element in root.iter()} - {None})
        assert "http" not in text
        for used in re.findall(r'(?:url\(#|href="#)([^)"]+)', text):
            assert used in ids[-1]
    assert not ids[0] & ids[1]


def test_text_colours_follow_the_page() -> None:
    """Ink and paper are CSS variables, so that dark pages have light text."""
    text = style.svg(plot_curves(SETS["usual"]), "chart", "").text
    assert "var(--advisor-ink, #222222)" in text
    assert not re.search(r"(?<!, )#222222", text)


def test_dominance() -> None:
    """Worse in one and better in none, with no fewer replicas; equals do not dominate."""
    good = Point(3, 2, "all", spread(1e-6), spread(1e-6))
    worse = Point(3, 3, "all", spread(1e-6), spread(1e-4))
    dearer = Point(4, 2, "all", spread(1e-6), spread(1e-6))
    other = Point(4, 1, "all", spread(1e-4), spread(1e-9))
    twin = Point(3, 2, 1, spread(1e-6), spread(1e-6))
    assert dominated([good, worse, dearer, other, twin]) == {worse, dearer}


VALUES = st.sampled_from([0.0, 1e-9, 1e-6, 1e-3])
POINTS = st.builds(
    Point,
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["all", 1]),
    VALUES.map(spread),
    VALUES.map(spread),
)


@given(st.lists(POINTS, min_size=1, max_size=8))
def test_dominance_has_no_cycles(points: list[Point]) -> None:
    """Some setting is never dominated, and one such dominates each grey one."""
    greyed = dominated(points)
    kept = [point for point in points if point not in greyed]
    assert kept
    assert all(any(dominates(k, g) for k in kept) for g in greyed)


def test_slots_leave_a_gap_between_replication_factors() -> None:
    """The distance is 1 between min ISRs and 2 between replication factors."""
    assert slots(SETS["two brokers"]) == {(1, 1): 0.0, (2, 1): 2.0, (2, 2): 3.0}


@pytest.mark.parametrize("bad", [(1.0, 2.0, 3.0), (1.0, 0.5, 0.7), (1.0, -1.0, 2.0)])
def test_an_interval_holds_its_value(bad: tuple[float, float, float]) -> None:
    """Interval ends on the wrong side of the value are refused."""
    with pytest.raises(InputError, match="interval"):
        Estimated(*bad)
