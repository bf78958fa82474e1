"""Posteriors of a card's numbers: its own distribution as prior, times what was counted.

A number of a card is a function of a standard normal deviate (`Quantity.at`). So every prior is the
standard normal distribution, whatever the kind of range, and a posterior is that times a likelihood
at the number which the deviate stands for. All is integrated on grids of deviates, which zoom in on
where the posterior is, so that a thousand events and none are equally exact.

Rates are counted (Poisson), probabilities are shares of events (binomial), durations are gamma
around their mean, and one that still goes on says that it is longer. Of several clusters each has a
rate of its own, gamma around the fleet's with a coefficient of variation that is learned, too.

Source: A. Gelman and others, "Bayesian Data Analysis", 3rd edition, sections 2.6, 2.7 and 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from advisor.reliability.failures.card import Quantity

Array = NDArray[np.float64]
Likelihood = Callable[[Array], Array]
"""Logarithm of the probability of what was seen, by the values that a number may have."""

# The standard normal's 97.5 % point.
_Z_975 = 1.959963984540054
_ENDS = (0.025, 0.5, 0.975)
# Beyond this many standard deviations no card's range is meant.
_FARTHEST = 40.0
_POINTS, _FEWEST_POINTS, _MOST_ZOOMS = 401, 100, 12
# What is e^-40 times as likely as the likeliest is left out.
_LEAST_LOG = -40.0
_LENGTHS = 201
# Its multiples fall evenly into 0 to 1.
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SIDE, _SIDE_ENDS = 301, 9.0
BETWEEN_CLUSTERS = 0.5
"""Scale of the half-normal prior of how much rates differ between clusters of a fleet, as a
coefficient of variation; a judgement."""
_SPREADS, _MOST_SPREAD = 16, 4.0
_SHAPES = 15
# Points at which the likelihood of a fleet's rate is computed, instead of at more than so many.
_MOST_EXACT, _WIDE, _NEAR = 5_000, 1_001, 3_001


class Range(NamedTuple):
    """A median and the 2.5 % and 97.5 % points."""

    value: float
    low: float
    high: float


class Counted(NamedTuple):
    """Events of one cluster, and the target-years in which they were counted."""

    events: int
    exposure_years: float


class Lengths(NamedTuple):
    """Outages that ended after so long, and others that had lasted so long and went on."""

    ended: tuple[float, ...] = ()
    ongoing: tuple[float, ...] = ()


class Share(NamedTuple):
    """In how many of how many cases something happened."""

    happened: int
    of: int


class Product(NamedTuple):
    """Posterior of a rate of which the card knows the product with its mean minutes only.

    keeps_product: whether the product and the minutes depend on each other less than the rate and
        the minutes do, and so should be what a card keeps.
    """

    rate: Range
    minutes: Range
    product: Range
    keeps_product: bool


def values_at(number: Quantity, deviates: Array, largest: float = math.inf) -> Array:
    """Return a card's number at standard normal deviates, as `Quantity.at` does, cut at `largest`.

    >>> values_at(Quantity(2.0, 1.0, 8.0), np.array([0.0, 1.959963984540054])).round(9).tolist()
    [2.0, 8.0]
    """
    if number.events is not None and number.exposure_years is not None:
        shape = number.events + 0.5
        # Farther out the probability is 0 as a float.
        below = special.gammaincinv(shape, special.ndtr(np.clip(deviates, -37.0, 0.0)))
        above = special.gammainccinv(shape, special.ndtr(-np.clip(deviates, 0.0, 37.0)))
        values = np.where(deviates > 0.0, above, below) / number.exposure_years
    else:
        share = np.abs(deviates) / _Z_975
        up = _half(number.value, number.high, share)
        values = np.where(deviates > 0.0, up, _half(number.value, number.low, share))
    cut: Array = np.minimum(values, max(largest, number.value))
    return cut


def _half(value: float, end: float, share: Array) -> Array:
    if value > 0.0 and end > 0.0:
        return value * np.exp(share * math.log(end / value))
    return np.maximum(0.0, value + (end - value) * share)


def rate_likelihood(clusters: Sequence[Counted]) -> Likelihood:
    """Return the likelihood of a rate per year: of one cluster, or of the centre of a fleet's.

    Counts of several clusters are negative binomial around the fleet's rate, over the prior of how
    much clusters differ.
    """
    if len(clusters) == 1:
        events, exposure = clusters[0]
        return lambda rate: special.xlogy(events, rate * exposure) - rate * exposure
    return _tabulated(lambda rate: special.logsumexp(_of_spreads(clusters, rate), axis=0))


def _tabulated(exact: Likelihood) -> Likelihood:
    """Return the same likelihood, interpolated where many rates come at once.

    Linear in the logarithm of the rate, with most points where it is not negligible.
    """

    def likelihood(rate: Array) -> Array:
        if rate.size <= _MOST_EXACT or not rate.min() > 0.0:
            return exact(rate)
        logs = np.log(rate)
        wide = np.linspace(logs.min(), logs.max(), _WIDE)
        values = exact(np.exp(wide))
        matters = np.flatnonzero(values > values.max() + 2.0 * _LEAST_LOG)
        first, last = max(matters[0] - 1, 0), min(matters[-1] + 1, _WIDE - 1)
        near = np.linspace(wide[first], wide[last], _NEAR)
        points = np.concatenate([wide[:first], near, wide[last + 1 :]])
        table_values = np.concatenate([values[:first], exact(np.exp(near)), values[last + 1 :]])
        interpolated: Array = np.interp(logs, points, table_values)
        return interpolated

    return likelihood


def _spreads() -> Array:
    """Coefficients of variation between clusters, of the half-normal prior in even steps."""
    return BETWEEN_CLUSTERS * (np.arange(_SPREADS) + 0.5) * _MOST_SPREAD / _SPREADS


def _of_spreads(clusters: Sequence[Counted], rate: Array) -> Array:
    """Log-likelihood of a fleet's rate for each spread, which comes first in the shape.

    The prior of the spread is in it.
    """
    spreads = _spreads().reshape(-1, *[1] * rate.ndim)
    shapes = spreads**-2.0
    total = np.zeros((_SPREADS, *rate.shape)) - (spreads / BETWEEN_CLUSTERS) ** 2 / 2.0
    for exposure in {cluster.exposure_years for cluster in clusters}:
        events = np.array([c.events for c in clusters if c.exposure_years == exposure])
        expected = rate * exposure
        mixed = np.log(shapes + expected)
        total += len(events) * shapes * (np.log(shapes) - mixed)
        total += special.xlogy(events.sum(), expected) - events.sum() * mixed
        # Of the shape alone, but it weighs the spreads against each other.
        grown = special.gammaln(events + shapes[..., None]) - special.gammaln(shapes[..., None])
        total += grown.sum(axis=-1)
    return total


def length_likelihood(lengths: Lengths, shape: Quantity | None = None) -> Likelihood:
    """Return the likelihood of a mean duration.

    Durations are gamma with a shape; where that is uncertain, over its range; exponential without.
    """
    shapes = np.ones(1)
    if shape is not None:
        deviates = special.ndtri((np.arange(_SHAPES) + 0.5) / _SHAPES)
        spread = deviates if shape.is_range else np.zeros(1)
        shapes = values_at(shape, spread)
    ended, ongoing = np.array(lengths.ended), np.array(lengths.ongoing)
    logs, total = float(np.log(ended).sum()), float(ended.sum())

    def likelihood(mean: Array) -> Array:
        rows = []
        for form in shapes:
            rate = form / mean
            row = len(ended) * (form * np.log(rate) - special.gammaln(form))
            row = row + (form - 1.0) * logs - rate * total
            for length in ongoing:
                row = row + _log_longer(form, rate * length)
            rows.append(row)
        mixed: Array = special.logsumexp(rows, axis=0)
        return mixed

    return likelihood


def _log_longer(form: float, scaled: Array) -> Array:
    """Logarithm of the probability that a gamma variable exceeds a value."""
    with np.errstate(divide="ignore"):
        exact = np.log(special.gammaincc(form, scaled))
    # Far out it has no digits left; its leading term has.
    leading = (form - 1.0) * np.log(np.maximum(scaled, 1e-300)) - scaled - special.gammaln(form)
    chances: Array = np.where(scaled > 600.0, leading, exact)
    return chances


def share_likelihood(share: Share) -> Likelihood:
    """Return the likelihood of a probability."""
    missed = share.of - share.happened
    return lambda chance: special.xlogy(share.happened, chance) + special.xlog1py(missed, -chance)


def posterior(number: Quantity, likelihood: Likelihood, largest: float = math.inf) -> Range:
    """Return the posterior of a card's number.

    number: its distribution is the prior.
    largest: the largest value that it may have.

    >>> prior = Quantity(0.2, 0.05, 0.56)
    >>> seen = posterior(prior, rate_likelihood([Counted(4, 36.0)]))
    >>> [round(end, 3) for end in seen]
    [0.131, 0.057, 0.263]
    """

    def log_density(deviates: Array) -> Array:
        return likelihood(values_at(number, deviates, largest)) - deviates**2 / 2.0

    grid, logs = _zoomed(log_density, 1)
    return _marginal(number, grid[0], np.exp(logs[0] - logs[0].max()), largest)


def product_posterior(
    product: Quantity, minutes: Quantity, rate: Likelihood | None, length: Likelihood | None
) -> Product:
    """Return the posterior of a rate that is a product over mean minutes, and of both of them.

    product, minutes: independent of each other in the prior.
    rate, length: likelihoods of the rate and of the mean minutes; None where nothing was seen.
    """
    long = length or np.zeros_like

    def of_minutes(deviates: Array) -> Array:
        return long(values_at(minutes, deviates)) - deviates**2 / 2.0

    wide, _ = _zoomed(of_minutes, 1)
    second = np.linspace(wide[0, 0], wide[0, -1], _LENGTHS)[:, None]
    means = values_at(minutes, second)
    counted = rate or np.zeros_like

    def log_density(deviates: Array) -> Array:
        return counted(values_at(product, deviates) / means) - deviates**2 / 2.0

    first, _ = _zoomed(log_density, _LENGTHS)
    # Each row is moved by another part of a step, so that values of different rows do not coincide.
    first = first + _steps(first) * (np.arange(_LENGTHS)[:, None] * _GOLDEN % 1.0 - 0.5)
    logs = log_density(first) + of_minutes(second)
    weights = np.exp(logs - logs.max()) * _steps(first)
    products = values_at(product, first)
    lengths = np.broadcast_to(means, products.shape)
    rates = products / lengths
    return Product(
        _range_of(rates, weights),
        _marginal(minutes, second[:, 0], weights.sum(axis=1)),
        _range_of(products, weights),
        _dependence(products, lengths, weights) <= _dependence(rates, lengths, weights),
    )


def struck_posterior(
    every: Quantity | None, brokers: Quantity, struck: Sequence[tuple[int, int]]
) -> tuple[Range | None, Range]:
    """Return the posteriors of `all` and of `brokers` from how many of how many were struck.

    An event strikes all with the first probability, else each broker with the second: one that
    struck all may be either.
    """
    side = np.linspace(-_SIDE_ENDS, _SIDE_ENDS, _SIDE)
    chances = values_at(brokers, side, 1.0)[None, :]
    whole = np.zeros((1, 1)) if every is None else values_at(every, side, 1.0)[:, None]
    first = np.zeros((1, 1)) if every is None else side[:, None]
    logs = -(side[None, :] ** 2) / 2.0 - first**2 / 2.0
    with np.errstate(divide="ignore"):
        for count, among in struck:
            by_chance = special.xlogy(count, chances) + special.xlog1py(among - count, -chances)
            chance = (1.0 - whole) * np.exp(by_chance)
            logs = logs + np.log(chance + whole * (count == among))
    weights = np.exp(logs - logs.max())
    own = _marginal(brokers, side, weights.sum(axis=0), 1.0)
    return (None if every is None else _marginal(every, side, weights.sum(axis=1), 1.0)), own


def cluster_posteriors(number: Quantity, clusters: Sequence[Counted]) -> list[Range]:
    """Return the posterior of each cluster's own rate: one without an event borrows from others.

    Given the fleet's rate and how much clusters differ, a cluster's rate is gamma; these are mixed
    over the posterior of both.
    """
    likelihood = rate_likelihood(clusters)
    if len(clusters) == 1:
        return [posterior(number, likelihood)]

    def log_density(deviates: Array) -> Array:
        return likelihood(values_at(number, deviates)) - deviates**2 / 2.0

    grid, _ = _zoomed(log_density, 1)
    rates = values_at(number, grid[0])
    logs = _of_spreads(clusters, rates) - grid[0] ** 2 / 2.0
    weights = np.exp(logs - logs.max()) * _steps(grid)
    weights /= weights.sum()
    shapes = np.broadcast_to((_spreads() ** -2)[:, None], weights.shape)
    mixture = weights.ravel(), shapes.ravel(), np.tile(rates, _SPREADS)
    # Clusters that have seen the same have the same rate.
    by_cluster = {cluster: _mixed(cluster, *mixture) for cluster in dict.fromkeys(clusters)}
    return [by_cluster[cluster] for cluster in clusters]


def _mixed(cluster: Counted, weights: Array, shapes: Array, rates: Array) -> Range:
    """Quantiles of a mixture of gamma distributions, by bisection of the logarithm."""
    matters = (weights > 1e-7) & (rates > 0.0)
    weights, shapes, rates = (
        weights[matters] / weights[matters].sum(),
        shapes[matters],
        rates[matters],
    )
    form, scale = shapes + cluster.events, shapes / rates + cluster.exposure_years
    low = float(np.log((form / scale).min())) - 60.0
    high = float(np.log(((form + 60.0 * np.sqrt(form + 60.0)) / scale).max()))
    ends = []
    for share in _ENDS:
        left, right = low, high
        for _ in range(60):
            middle = (left + right) / 2.0
            below = float(weights @ special.gammainc(form, math.exp(middle) * scale))
            left, right = (middle, right) if below < share else (left, middle)
        ends.append(math.exp((left + right) / 2.0))
    return Range(ends[1], ends[0], ends[2])


def _zoomed(log_density: Callable[[Array], Array], rows: int) -> tuple[Array, Array]:
    """Return grids of deviates that hold nearly all of some densities, and their logarithms.

    Shape (rows, points). A grid is cut to where the density is not negligible, and one step more,
    until enough of its points are there.
    """
    steps = np.linspace(0.0, 1.0, _POINTS)
    low, high = np.full((rows, 1), -_FARTHEST), np.full((rows, 1), _FARTHEST)
    for _ in range(_MOST_ZOOMS):
        grid = low + (high - low) * steps
        logs = log_density(grid)
        matters = logs > logs.max(axis=1, keepdims=True) + _LEAST_LOG
        if matters.sum(axis=1).min() >= _FEWEST_POINTS:
            break
        first = matters.argmax(axis=1)
        last = _POINTS - 1 - matters[:, ::-1].argmax(axis=1)
        every = np.arange(rows)
        low = grid[every, np.maximum(first - 1, 0)][:, None]
        high = grid[every, np.minimum(last + 1, _POINTS - 1)][:, None]
    return grid, logs


def _steps(grid: Array) -> Array:
    """Length of the steps of each row."""
    lengths: Array = (grid[:, -1:] - grid[:, :1]) / (grid.shape[1] - 1)
    return lengths


def _marginal(
    number: Quantity, deviates: Array, weights: Array, largest: float = math.inf
) -> Range:
    """Median and ends of a number whose deviates have a density on an even grid."""
    passed = np.concatenate([[0.0], np.cumsum((weights[1:] + weights[:-1]) / 2.0)])
    at = np.interp(np.array(_ENDS) * passed[-1], passed, deviates)
    low, value, high = map(float, values_at(number, at, largest))
    return Range(value, low, high)


def _range_of(values: Array, weights: Array) -> Range:
    """Median and ends of weighted values."""
    order = np.argsort(values, axis=None, kind="stable")
    sorted_values, sorted_weights = values.ravel()[order], weights.ravel()[order]
    passed = np.cumsum(sorted_weights) - sorted_weights / 2.0
    low, value, high = np.interp(np.array(_ENDS) * sorted_weights.sum(), passed, sorted_values)
    return Range(float(value), float(low), float(high))


def _dependence(first: Array, second: Array, weights: Array) -> float:
    """Correlation of the logarithms, without its sign."""
    shares = weights / weights.sum()
    logs = [np.log(np.maximum(values, 1e-300)) for values in (first, second)]
    apart = [values - (shares * values).sum() for values in logs]
    spread = [math.sqrt(float((shares * gap**2).sum())) for gap in apart]
    if not all(spread):
        return 0.0
    return abs(float((shares * apart[0] * apart[1]).sum())) / (spread[0] * spread[1])
