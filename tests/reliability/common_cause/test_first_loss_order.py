"""The first loss over many replica sets: monotone, bounded, and right in closed forms."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability.common_cause.first_loss import (
    KAFKA_TAILS,
    AnyLoss,
    any_loss,
)
from advisor.reliability.common_cause.placement import place
from advisor.reliability.common_cause.set_losses import FirstOfSet, SetLosses, Tails
from advisor.reliability.common_cause.struck_racks import StrikeRates
from sampled_runs import AT_ONCE, card

YEAR = 8760.0
CLUSTER = Cluster(brokers={1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"})
PAIRS = Config(replication_factor=2)
PATTERNS = ((0, 0), (0, 1))
# How often each mechanism strikes one broker, one rack or the cluster; the last never does.
STRIKES = MappingProxyType(
    {"broker.destroyed": 0.3, "rack.power": 0.2, "cluster.power": 0.1, "broker.lag": 0.0}
)
# A loss at every power failure.
ALWAYS = MappingProxyType({"cluster.power": 0.1})
TAILS = (None, KAFKA_TAILS, Tails(per_failure=1, leaders=2))
# Sums of a few dozen logarithms, and a share of 1 that is taken for 1 - 1e-12.
ROUNDING = 1e-10

Fluxes = Mapping[str, float]
fluxes = st.dictionaries(st.sampled_from(sorted(STRIKES)), st.floats(1e-6, 3.0), min_size=1)
both_fluxes = st.tuples(fluxes, fluxes)
# Share of each set's losses that are first losses.
firsts = st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0))
replicas = st.permutations(sorted(CLUSTER.brokers)).map(lambda order: tuple(order[:2]))
placements = st.lists(replicas, min_size=1, max_size=6)
tails_or_none = st.sampled_from(TAILS)


def losses(per_year: Fluxes, share: float, tails: Tails | None) -> SetLosses:
    """Losses of one set, a share of them first losses; all are tails if there are any."""
    rate = share * math.fsum(per_year.values())
    first = FirstOfSet(np.array([YEAR / rate]), np.array([-math.expm1(-rate)]), "drawn")
    often = {name: np.array([amount]) for name, amount in per_year.items()}
    return SetLosses(first, often, tails=often if tails else {})


def first_of(
    found: tuple[Fluxes, Fluxes],
    shares: tuple[float, float],
    sets: list[tuple[int, ...]],
    tails: Tails | None,
) -> AnyLoss:
    """First loss over sets within a rack and across two racks."""
    where = place(CLUSTER, PAIRS, len(sets), tuple(sets))
    both = zip(PATTERNS, found, shares, strict=True)
    each = {pattern: losses(per_year, share, tails) for pattern, per_year, share in both}
    return any_loss(each, StrikeRates.of([STRIKES]), where, tails=tails).of(0)


def no_later(one: AnyLoss, other: AnyLoss) -> bool:
    """Whether ``other`` loses at least as soon, by both measures."""
    return other.mean_years <= one.mean_years * (
        1 + ROUNDING
    ) and other.probability >= one.probability * (1 - ROUNDING)


@given(both_fluxes, firsts, placements, replicas, tails_or_none)
@example((ALWAYS, ALWAYS), (1.0, 1.0), [(1, 3)], (1, 3), KAFKA_TAILS)
def test_one_more_set_never_makes_the_first_loss_later(
    found: tuple[Fluxes, Fluxes],
    shares: tuple[float, float],
    sets: list[tuple[int, ...]],
    more: tuple[int, ...],
    tails: Tails | None,
) -> None:
    """For any losses and mechanisms, clustered or not, with and without tails."""
    assert no_later(
        first_of(found, shares, sets, tails), first_of(found, shares, [*sets, more], tails)
    )


@given(both_fluxes, firsts, placements, fluxes, st.sampled_from([0, 1]), tails_or_none)
def test_more_losses_never_make_the_first_one_rarer(
    found: tuple[Fluxes, Fluxes],
    shares: tuple[float, float],
    sets: list[tuple[int, ...]],
    more: Fluxes,
    place: int,
    tails: Tails | None,
) -> None:
    """More losses in sets of one pattern, clustered as before."""
    both = [dict(one) for one in found]
    for mechanism, amount in more.items():
        both[place][mechanism] = both[place].get(mechanism, 0.0) + amount
    assert no_later(
        first_of(found, shares, sets, tails), first_of((both[0], both[1]), shares, sets, tails)
    )


@given(both_fluxes, firsts, placements, tails_or_none)
def test_the_first_loss_lies_between_one_sets_and_the_sum(
    found: tuple[Fluxes, Fluxes],
    shares: tuple[float, float],
    sets: list[tuple[int, ...]],
    tails: Tails | None,
) -> None:
    """Between one event for all sets and independent sets (union bound)."""
    one = [first_of(found, shares, [each], tails).mean_years for each in sets]
    rate = 1 / first_of(found, shares, sets, tails).mean_years
    assert 1 / min(one) * (1 - ROUNDING) <= rate <= math.fsum(1 / y for y in one) * (1 + ROUNDING)


@pytest.mark.parametrize(
    ("flux", "share", "rate"),
    [
        (0.05, 1.0, 0.05 * 1.5),
        (0.1, 0.5, 0.05 * 1.5),
        (0.1, 1.0, 0.1),
        (0.4, 1.0, 0.1 + 2 * 0.3),
    ],
)
def test_losses_beyond_one_per_strike_are_independent(
    flux: float, share: float, rate: float
) -> None:
    """Two sets and 0.1 power failures a year: first losses in half of them, in all, in more.

    In half each: in three of four failures one of the sets loses, however many losses follow.
    Losses beyond one per failure have other triggers, independent in each set.
    """
    lost: Fluxes = {"cluster.power": flux}
    found = first_of((lost, lost), (share, share), [(1, 3), (2, 5)], None)
    assert 1 / found.mean_years == pytest.approx(rate, rel=ROUNDING)


def test_brokers_destroyed_by_a_power_failure_lose_in_one_event() -> None:
    """Four brokers in a ring; each power failure destroys one in ten, replaced after 24 hours.

    Two destroyed neighbours lose their partition. So does one that led last and is replaced, empty,
    before the other is back and an operator elects it: ``race``. Sets that share a broker are not
    independent given which brokers are gone, as `evaluate` takes them to be: by hand, for all four
    at once, within its stated error, which is below the probability that a neighbour is gone too.
    """
    strikes, gone, hours, dark = 2.0, 0.1, 24.0, 5.0
    model = card(
        cluster_power={"per_year": strikes, "minutes": dark * 60, "not_returning": gone},
        broker_destroyed={"per_year": 0.001, "hours": hours},
        operator=AT_ONCE,
    )
    cluster = Cluster(brokers={0: "a", 1: "b", 2: "c", 3: "d"})
    config = Config(replication_factor=2, min_insync_replicas=1, eligible_leader_replicas=False)
    ring = ((0, 1), (1, 2), (2, 3), (3, 0))
    rates = []
    for count in (1, 2, 4):
        sets = ring[:count]
        found = evaluate(cluster, config, model, Workload(partitions=count), placement=sets)
        rates.append(1 / found.mean_years_to_loss)
        by_power = found.causes["loss_events_per_year"]["cluster.power"]
        assert by_power > 0.99 * found.loss_events_per_year
    assert rates[0] < rates[1] < rates[2] <= 4 * rates[0]
    race = dark / (dark + hours)
    kept = 1 - gone
    one, opposite = 4 * gone * kept**3 * race, 2 * (gone * kept) ** 2 * (1 - (1 - race) ** 2)
    adjacent = 1 - kept**4 - 4 * gone * kept**3 - 2 * (gone * kept) ** 2
    by_hand = strikes * (one + opposite + adjacent)
    # The card's other destroyed disks, and power failures while brokers are still out.
    off = (strikes + 8 * 0.001) * hours / YEAR
    stated = found.first_loss_upper.error
    assert stated < gone
    assert rates[2] == pytest.approx(by_hand, rel=stated + off)
