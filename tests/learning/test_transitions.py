"""What changed says what every sample said: runs against a dense grid of scrapes."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.learning import transitions
from advisor.learning.metric_names import Metric
from advisor.learning.prometheus import Array, Series
from advisor.learning.transitions import Samples, runs_of, samples_of, samples_of_runs

STEP, BEGIN = 30.0, 1_735_689_600.0
MOMENTS = {"b1": 0.0, "b2": 11.3, "b3": 29.1}
METRICS = (Metric.UP, Metric.LEADERS)
MISSING = float("nan")
SCRAPES, FEW = 40, 10

rows = st.lists(st.sampled_from([0.0, 1.0, 2.0, MISSING]), min_size=FEW, max_size=FEW)
scraped = st.fixed_dictionaries({(m, target): rows for m in METRICS for target in MOMENTS})


def series_of(
    metric: Metric, target: str, row: Sequence[float], late: Sequence[float] = (0.0,)
) -> Series:
    """A series without what is missing, each target at a moment of its own."""
    places = np.arange(len(row))
    times = BEGIN + MOMENTS.get(target, 0.0) + STEP * places + np.resize(late, len(row))
    is_sample = ~np.isnan(row)
    return Series("", target, metric, times[is_sample], np.array(row)[is_sample])


def values_at(samples: Samples, metric: Metric, target: str, seconds: Array) -> Array:
    places = np.searchsorted(samples.times, seconds, side="right") - 1
    values: Array = samples.of(metric, target)[places]
    return values


@given(scraped, st.lists(st.integers(1, FEW - 1), max_size=4, unique=True), st.booleans())
def test_every_scrape_is_what_it_was(
    scrapes: dict[tuple[Metric, str], list[float]], cuts: list[int], are_late: bool
) -> None:
    """Wherever series are cut into pieces, and if each sample is some milliseconds late."""
    late = [0.0, 0.031, 0.004, 0.04, 0.013] if are_late else [0.0]
    pieces = []
    for (metric, target), row in scrapes.items():
        whole = series_of(metric, target, row, late)
        edges = BEGIN + MOMENTS[target] + STEP * (np.array(sorted(cuts)) - 0.5)
        places = np.searchsorted(whole.times, edges)
        for times, values in zip(
            np.split(whole.times, places), np.split(whole.values, places), strict=True
        ):
            pieces.append(runs_of(Series("", target, metric, times, values), STEP))
    if all(not len(piece.values) for piece in pieces):
        return
    samples = samples_of_runs(pieces, "here")
    assert samples.seconds.min() > 0.0
    assert samples.times[1:] == pytest.approx(samples.times[:-1] + samples.seconds[:-1], abs=1e-6)
    for (metric, target), row in scrapes.items():
        # Half a step later, when a sample still counts; but where all begin and end together.
        seconds = BEGIN + MOMENTS[target] + STEP * (np.arange(FEW) + 0.5)
        inside = (samples.times[0] + STEP < seconds) & (seconds < samples.end - STEP)
        held = values_at(samples, metric, target, seconds[inside])
        assert np.array_equal(held, np.array(row)[inside], equal_nan=True)


def test_changes_of_one_scrape_are_one() -> None:
    """Metrics of a target that change together change at one time, whatever their jitter."""
    up = [1.0] * 10 + [0.0] * 10 + [1.0] * 20
    leaders = [4.0] * 10 + [MISSING] * 10 + [4.0] * 20
    (samples,) = samples_of(
        [
            series_of(Metric.UP, "b2", up, [0.001, 0.040, 0.013]),
            series_of(Metric.LEADERS, "b2", leaders, [0.031, 0.004]),
        ],
        "here",
    )
    assert samples.seconds == pytest.approx([300.0, 300.0, 600.0], abs=0.1)


def test_a_year_of_a_quiet_cluster_is_a_few_numbers() -> None:
    """Twelve brokers that change once a week, scraped each 30 s, as runs."""
    week, weeks = 7 * 86_400.0, 65
    firsts = BEGIN + week * np.arange(float(weeks))
    runs = [
        transitions.Runs(
            "",
            f"b{broker}",
            metric,
            STEP,
            firsts + broker,
            firsts + broker + week - STEP,
            np.full(weeks, int(week / STEP)),
            np.arange(float(weeks)) % 2.0,
        )
        for broker in range(12)
        for metric in METRICS
    ]
    samples = samples_of_runs(runs, "here")
    assert len(samples.times) <= 12 * (weeks + 1)
    assert samples.seconds.sum() == pytest.approx(week * weeks, rel=1e-4)


def test_metrics_that_never_stand_still_are_rounded() -> None:
    """The lag of a controller moves with every sample; ten seconds more or less do not count."""
    lag = Series(
        "",
        "c1",
        Metric.APPLIED_LAG_MS,
        BEGIN + STEP * np.arange(float(SCRAPES)),
        np.arange(float(SCRAPES)) * 12.0 % 500.0,
    )
    assert runs_of(lag, STEP).values.tolist() == [0.0]


def test_a_pair_of_prometheus_is_one() -> None:
    """Two that scrape a target at different moments, one with a gap, say the same."""
    row = [1.0] * 20 + [0.0] * 5 + [1.0] * 15
    other = series_of(Metric.UP, "b1", row)
    other = Series("", "b1", Metric.UP, np.delete(other.times, slice(3, 9)) + 7.0, other.values[6:])
    (samples,) = samples_of([series_of(Metric.UP, "b1", row), other], "here")
    up = samples.of(Metric.UP, "b1")
    assert not np.isnan(up).any()
    assert samples.seconds[up == 0.0].sum() == pytest.approx(5 * STEP, abs=7.0)


def test_a_pod_with_another_address_goes_on() -> None:
    """One series ends and another of the same name begins, with the same gap between them."""
    whole = series_of(Metric.UP, "b1", [1.0] * SCRAPES)
    parts = [
        Series("", "b1", Metric.UP, whole.times[:20], whole.values[:20]),
        Series("", "b1", Metric.UP, whole.times[25:] + 4.0, whole.values[25:]),
    ]
    (samples,) = samples_of(parts, "here")
    gap = np.isnan(samples.of(Metric.UP, "b1"))
    assert samples.seconds[gap].sum() == pytest.approx(5 * STEP + 4.0)


def test_a_pods_old_address_may_be_scraped_for_a_while() -> None:
    """The new series counts; two that contradict each other for longer are refused."""
    whole = series_of(Metric.UP, "b1", [1.0] * SCRAPES)
    new = Series("", "b1", Metric.UP, whole.times[20:], whole.values[20:])

    def old(scrapes: int) -> Series:
        silent = np.where(whole.times[: 20 + scrapes] < whole.times[18], 1.0, 0.0)
        return Series("", "b1", Metric.UP, whole.times[: 20 + scrapes], silent)

    (samples,) = samples_of([old(9), new], "here")
    up = samples.of(Metric.UP, "b1")
    assert samples.seconds[up == 0.0].sum() == pytest.approx(2 * STEP)
    assert not np.isnan(up).any()
    with pytest.raises(InputError, match="two series of up"):
        samples_of([old(15), new], "here")


def test_targets_may_have_steps_of_their_own() -> None:
    """Controllers each 15 s and brokers each 30 s, neither with a gap."""
    fast = Series("", "c1", Metric.ACTIVE, BEGIN + 15.0 * np.arange(80.0), np.ones(80))
    (samples,) = samples_of([fast, series_of(Metric.UP, "b1", [1.0] * SCRAPES)], "here")
    assert not np.isnan(samples.of(Metric.ACTIVE, "c1")).any()
    assert not np.isnan(samples.of(Metric.UP, "b1")).any()


def test_what_changes_at_every_sample_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before memory runs out."""
    monkeypatch.setattr(transitions, "_MOST_POINTS", SCRAPES - 1)
    row = [float(place) for place in range(SCRAPES)]
    with pytest.raises(InputError, match="more than can be held"):
        samples_of([series_of(Metric.LEADERS, "b1", row)], "here")


def test_a_target_that_hardly_answers_is_a_gap_between() -> None:
    """Once an hour, among others each 30 s: an hour without a sample is no hour of health."""
    rare = Series("", "b9", Metric.UP, BEGIN + 3600.0 * np.arange(24.0), np.ones(24))
    usual = Series("", "b1", Metric.UP, BEGIN + STEP * np.arange(2880.0), np.ones(2880))
    (samples,) = samples_of([rare, usual], "here")
    up = samples.of(Metric.UP, "b9")
    assert samples.seconds[up == 1.0].sum() == pytest.approx(24 * STEP)
