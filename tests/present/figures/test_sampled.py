"""The charts of a sample have its numbers, in their lines and in their alternative text."""

import math
from itertools import pairwise

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import advisor
from advisor.present.figures.chart import ShownFigure
from advisor.present.figures.reliability import longer_than, narrowing
from advisor.reliability.results.sampled import Sampled

CLUSTER = advisor.Cluster.uniform(brokers=2, racks=None)
CARD = advisor.FailureModel.from_dict(
    {"broker": {"crash": {"per_year": 4.0, "minutes": 10.0}, "destroyed": {"per_year": 0.5,
                                                                         "hours": 12.0}}}
)  # fmt: skip
STILL = advisor.FailureModel.from_dict({"broker": {"crash": {"per_year": 0.0, "minutes": 10.0}}})
CONFIG = advisor.Config(replication_factor=1, min_insync_replicas=1)
LOAD = advisor.Workload(partitions=2)


def sample(
    card: advisor.FailureModel = CARD, years: int = 3_200, config: advisor.Config = CONFIG
) -> Sampled:
    return advisor.simulate(CLUSTER, config, card, LOAD, years, engine="local")


def drawn(result: Sampled, **options: object) -> tuple[Axes, Axes, str]:
    """Plot on a new figure: both axes, and the alternative text."""
    left, right = result.plot(**options)
    figure = left.figure
    pyplot.close(figure)
    assert isinstance(figure, ShownFigure)
    return left, right, figure.description


def test_the_interval_narrows_to_that_of_the_result() -> None:
    """A point for each block, in their order; the last is the estimate itself."""
    result = sample()
    points = narrowing(result)
    assert [round(each.n) for each in points] == [100 * (1 + block) for block in range(32)]
    assert points[-1] == result.loss_probability_per_year
    assert points[0].high - points[0].low > 4 * (points[-1].high - points[-1].low)
    left, _, _ = drawn(result)
    values = left.lines[-1]
    assert list(values.get_xdata()) == [each.n for each in points]
    assert list(values.get_ydata()) == [each.value for each in points]


def test_failures_too_rare_for_the_years_widen_the_interval_at_every_point() -> None:
    """Of paths that split: fewer years leave more of them, and the last is the estimate itself."""
    disks = {"destroyed": {"per_year": 1.0, "hours": 12.0}}
    rare = {"power": {"per_year": 2e-3, "minutes": 20.0}}
    model = advisor.FailureModel.from_dict({"broker": {**disks, **rare}})
    pair = advisor.Config(replication_factor=2, min_insync_replicas=1)
    result = advisor.simulate(CLUSTER, pair, model, LOAD, 3_200, engine="local", method="splitting")
    points = narrowing(result)
    assert points[-1] == result.loss_probability_per_year
    by_years = {each.n: each for each in points}
    assert by_years[1_200].high > by_years[1_200].value + 4e-3
    # From 1,250 years on power fails five times, as expected.
    assert by_years[1_300].high < by_years[1_300].value + 4e-3


def test_many_blocks_are_thinned_and_the_last_is_kept() -> None:
    """A long run is drawn from so few points that no one waits for it."""
    from dataclasses import replace

    result = replace(sample(years=32), history=((100, 1),) * 5_000)
    years = [each.n for each in narrowing(result)]
    assert years == sorted(set(years))
    assert (years[0], years[-1]) == (100, 500_000)
    assert 60 < len(years) <= 121


def test_the_exact_value_is_a_line_with_its_number() -> None:
    """Only if it is given, and the alternative text has it too."""
    result, exact = sample(), advisor.evaluate(CLUSTER, CONFIG, CARD, LOAD)
    left, _, text = drawn(result, exact=exact)
    truth = exact.loss_probability_per_year
    assert list(left.lines[-1].get_ydata()) == [truth, truth]
    assert left.texts[-1].get_text() == f"dashed: exact, {100 * truth:.0f} % / year"
    assert f"Exact: {100 * truth:.0f} % / year." in text
    left, _, text = drawn(result)
    assert "xact" not in text + "".join(each.get_text() for each in left.texts)


def test_outages_are_as_long_as_repairs_take() -> None:
    """Of one replica: crashes of 10 minutes on average and 12 hours until it is replaced."""
    result = sample()
    number = math.fsum(number for *_, number in result.outages)
    # Two partitions, each on a broker of its own.
    assert number == pytest.approx(2 * 3_200 * 4.5, rel=0.05)
    for hours in (0.01, 1 / 30, 0.3, 2.0, 20.0):
        wanted = (8 * math.exp(-hours * 6.0) + math.exp(-hours / 12.0)) / 9.0
        assert longer_than(result, hours * 3600.0) == pytest.approx(wanted, rel=0.08)
    assert all(high == pytest.approx(low * 10**0.1) for low, high, _ in result.outages)


def test_outages_add_up_to_the_time_without_writes() -> None:
    """Also where a new leader ends them: lengths times numbers are the unavailability."""
    config = advisor.Config(replication_factor=2, min_insync_replicas=1)
    result = sample(config=config)
    hours = math.fsum(math.sqrt(low * high) * n for low, high, n in result.outages) / 3600.0
    span = 8760.0 * 2 * 3_200
    assert hours / span == pytest.approx(result.write_unavailability.value, rel=0.15)


def test_the_delivery_timeout_is_marked_with_the_share_beyond_it() -> None:
    """A line at the setting, in seconds, and a label that says what it means."""
    result = sample(config=CONFIG.changed(delivery_timeout_ms=600_000))
    _, right, text = drawn(result)
    survival, limit = right.lines
    assert list(limit.get_xdata()) == [600.0, 600.0]
    said = right.texts[0].get_text()
    name, share = said.split("\n")
    assert name == "delivery.timeout.ms=600000"
    assert float(share.removesuffix(" % last longer")) == pytest.approx(
        100 * longer_than(result, 600.0), rel=0.06
    )
    assert share.removesuffix(" last longer") + " longer than delivery.timeout.ms=600000" in text
    shares = list(survival.get_ydata())
    assert shares[0] == 1.0
    assert all(before >= after for before, after in pairwise(shares))


def test_without_losses_or_outages_the_charts_say_so() -> None:
    """An upper bound falls with the years; with no failures there is nothing to draw."""
    crashes = advisor.FailureModel.from_dict({"broker": {"crash": {"per_year": 4, "minutes": 9}}})
    left, _, text = drawn(sample(crashes))
    assert left.texts[0].get_text() == "no loss seen: at most this"
    assert "at most " in text
    _, right, text = drawn(sample(STILL))
    assert right.texts[0].get_text() == "no write outage seen"
    assert text.endswith("No write outage was seen.")


def test_given_axes_are_drawn_on() -> None:
    """Two get the charts; one gets the measures in words, as for an exact result."""
    result = sample(years=320)
    given = Figure().subplots(1, 2)
    assert result.plot(given) == tuple(given)
    one = Figure().add_subplot()
    assert result.plot(ax=one) is one
    assert one.texts[0].get_text() == "Acknowledged records lost"
