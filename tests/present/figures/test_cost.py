"""What nines cost, and the logarithmic axes of measures."""

from matplotlib.figure import Figure

from advisor.present.figures import style
from advisor.present.labels import once_in_years, short


def test_a_tick_says_where_it_is() -> None:
    """Every tick has its own number, although how rare a loss is has none above some years."""
    ax = Figure(figsize=(6.8, 3.4)).add_axes((0.23, 0.17, 0.74, 0.7))
    ax.plot([1, 2], [10.0, 3e7])
    style.log_scale(ax, once_in_years)
    names = [ax.yaxis.get_major_formatter()(value, 0) for value in (100.0, 1e4, 1e7)]
    assert names == ["once in 100 years", "once in 10,000 years", "once in\n10 million years"]
    style.log_scale(ax, short)
    assert ax.yaxis.get_major_formatter()(1e4, 0) == short(1e4)
