"""How often the 95 % intervals of what was learned hold the rates that made the counts."""

from collections.abc import Mapping

import numpy as np
import pytest

from advisor import load_model
from advisor.learning.evidence import ClusterHistory, Seen
from advisor.learning.fit import fit
from advisor.learning.posterior import BETWEEN_CLUSTERS
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import table

BROKERS, RACKS = 12, 3
DAYS = pytest.mark.parametrize("years", [15 / 365, 1.25], ids=["15 days", "15 months"])
Rates = Mapping[str, float]


def paths_of(card: FailureModel) -> list[str]:
    """The rates that a card does not know exactly."""
    return [path for path in card.uncertain if path.endswith(".per_year")]


def watched(name: str, rates: Rates, years: float, rng: np.random.Generator) -> ClusterHistory:
    """A cluster that counted everything for so long."""
    seen = {}
    for path, rate in rates.items():
        mechanism = table()[path.rpartition(".")[0]]
        targets = {"broker": BROKERS, "rack": RACKS, "cluster": 1}[mechanism.scope.value]
        seen[mechanism.name] = Seen(int(rng.poisson(rate * targets * years)))
    return ClusterHistory(name, BROKERS, years, RACKS, "kraft", seen)


@DAYS
def test_intervals_of_one_cluster_cover(years: float) -> None:
    """Rates drawn from a card, 200 clusters, by the way that users take."""
    card, rng = load_model("bare_metal_racks"), np.random.default_rng(21)
    inside = []
    for truth in list(card.draws(256, seed=9))[:200]:
        rates = {path: truth[path] for path in paths_of(card)}
        fitted = fit(card, [watched("a", rates, years, rng)])
        inside += [r.posterior.low <= rates[r.number] <= r.posterior.high for r in fitted.counts]
    assert len(inside) == 200 * len(paths_of(card))
    assert 0.92 <= np.mean(inside) <= 0.98


@DAYS
def test_intervals_of_clusters_that_differ_cover(years: float) -> None:
    """Ten clusters, each with a rate around its fleet's: the centre's intervals, and each one's."""
    card, rng = load_model("three_az_cloud"), np.random.default_rng(22)
    centre, own = [], []
    for truth in list(card.draws(32, seed=9))[:20]:
        clusters: list[dict[str, float]] = [{} for _ in range(10)]
        for path in paths_of(card):
            shape = (rng.normal() * BETWEEN_CLUSTERS) ** -2.0
            for rates in clusters:
                rates[path] = rng.gamma(shape, truth[path] / shape)
        fleet = {f"c{n}": rates for n, rates in enumerate(clusters)}
        fitted = fit(card, [watched(name, rates, years, rng) for name, rates in fleet.items()])
        centre += [r.posterior.low <= truth[r.number] <= r.posterior.high for r in fitted.counts]
        for path, rate in fitted.fleets.items():
            for name, number in rate.of_clusters("").items():
                own.append(number.low <= fleet[name][path] <= number.high)
    assert len(own) == 10 * len(centre) == 200 * len(paths_of(card))
    assert 0.92 <= np.mean(centre) <= 0.98
    assert 0.92 <= np.mean(own) <= 0.98
