"""What nines cost."""

from itertools import pairwise

from matplotlib.backends.backend_agg import FigureCanvasAgg

import advisor
from advisor.advice.prices import load_prices
from advisor.present import plot_cost


def test_better_is_up_and_equal_costs_stand_above_one_another() -> None:
    """The rarer loss and the shorter refusal are higher, every bill is where it is, no name cut."""
    card = {
        "broker": {
            "crash": {"per_year": {"value": 2, "low": 1, "high": 5}, "minutes": 5},
            "destroyed": {"per_year": 0.1, "hours": 12},
        }
    }
    model, cluster = advisor.FailureModel.from_dict(card), advisor.Cluster.uniform(3, racks=3)
    results = [
        advisor.evaluate(
            cluster,
            advisor.Config(replication_factor=3, min_insync_replicas=least, acks="all"),
            model,
        )
        for least in (1, 2, 3)
    ]
    figure = plot_cost(results, load_prices("gcp-us")).figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ticks = figure.axes[0].yaxis.get_major_formatter()
    assert [ticks(value, 0) for value in (100.0, 1e4)] == ["100 years", "10,000 years"]
    for ax, best in zip(figure.axes, (max, min), strict=True):
        dots = [line for line in ax.lines if line.get_marker() == "o"]
        places = [dot.get_transform().transform(dot.get_xydata())[0] for dot in dots]
        assert all(abs(b[0] - a[0]) < 0.01 for a, b in pairwise(places))
        values = [float(dot.get_ydata()[0]) for dot in dots]
        assert max(places, key=lambda place: place[1])[1] == places[values.index(best(values))][1]
        for name in ax.texts:
            assert name.get_window_extent(canvas.get_renderer()).x1 <= figure.bbox.x1


def test_no_name_stands_on_the_dashed_line() -> None:
    """Settings that lose hardly more than causes beyond them are named above the line."""
    model, cluster = advisor.load_model("three_az_cloud"), advisor.Cluster.uniform(6, racks=3)
    results = [
        advisor.evaluate(
            cluster,
            advisor.Config(replication_factor=3, min_insync_replicas=least, acks="all"),
            model,
        )
        for least in (1, 2)
    ]
    figure = plot_cost(results, load_prices("gcp-us")).figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    upper = figure.axes[0]
    (line,) = [line for line in upper.lines if line.get_linestyle() == "--"]
    at = upper.transData.transform((1.0, float(line.get_ydata()[0])))[1]
    assert {text.get_text() for text in upper.texts} == {"3/1", "3/2"}
    (name,) = [text for text in upper.texts if text.get_text() == "3/2"]
    assert name.get_window_extent(canvas.get_renderer()).y0 > at
    # Both stop writes hardly longer than nothing prevents, and share a name there.
    assert [text.get_text() for text in figure.axes[1].texts] == ["3/1, 3/2"]
