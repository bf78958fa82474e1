"""Paths that split: against integrals, years as they come, and the exact chain."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate
from advisor.errors import InputError
from advisor.reliability import measure_table
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.units import CRUDE, IMPORTANCE, SPLITTING, Weights, method_lines
from advisor.reliability.sampler import block
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.methods import with_method
from advisor.reliability.sampler.plan import Block, Plan, Splitting, seconds_per_block
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.sampler.splitting import pilot
from advisor.reliability.sampler.splitting.pilot import find_retrials
from sampled_runs import FAR, QUIET, TRIO, YEAR, card, off_by, sample

PAIR = Config(replication_factor=2, min_insync_replicas=1)
SPLIT_PAIR = {"splitting": Splitting((20.0, 15.0), 1.0)}
SPLIT_TRIO = {"splitting": Splitting((7.0, 23.0, 15.0), 1.0)}


def weibull_pair(shape: float, mean: float, repair: float) -> Any:
    """A card whose disks have Weibull lifetimes and are replaced after a fixed time, in years."""
    gone = {
        "per_year": 1.0 / mean,
        "hours": repair * YEAR,
        "lifetime": {"distribution": "weibull", "shape": shape},
        "duration": {"distribution": "fixed"},
    }
    return card(broker_destroyed=gone)


def coincidences(truth: Any, repair: float, years: float, steps: int) -> float:
    """Expected number of times that two brokers come to be out at once, both well at the start.

    Up to then they know nothing of each other. With survival function S, density f and mean m, a
    broker fails at time t with density g(t) = S(t) / m + int_0^(t - D) g(u) f(t - D - u) du, since
    it was well at a random moment and is well again D after each failure. It finds the other out
    if that failed within the last D.
    """
    h = years / steps
    lag = round(repair / h)
    grid = h * np.arange(steps + 1)
    dies = np.diff(truth.cdf(grid))
    left = truth.sf(h * (np.arange(steps) + 0.5)) * h / truth.mean()
    fails = np.zeros(steps)
    for t in range(steps):
        fails[t] = left[t]
        if t >= lag:
            fails[t] += fails[: t - lag + 1] @ dies[t - lag :: -1]
    out = np.convolve(fails, np.r_[0.5, np.ones(lag - 1), 0.5])[:steps]
    return float(2.0 * fails @ out)


@pytest.mark.parametrize("shape", [0.6, 3.0])
def test_a_rare_loss_is_as_an_integral_says(shape: float) -> None:
    """Two replicas lose once in some 100,000 years: some thousand years get within percents."""
    mean, repair, years = 10.0, 2e-4, 12_800
    truth = stats.weibull_min(shape, scale=mean / math.gamma(1.0 + 1.0 / shape))
    chance = coincidences(truth, repair, 1.0, 10_000)
    assert 1e-6 < chance < 1e-5
    cluster, model = Cluster.uniform(2, 2), weibull_pair(shape, mean, repair)
    plain, _ = sample(cluster, PAIR, model, years=years)
    assert not plain.loss_probability_per_year.seen
    found, _ = sample(
        cluster, PAIR, model, years=years, changed={"splitting": Splitting((1e6, 1e5), 1.0)}
    )
    one = found.loss_probability_per_year
    assert abs(off_by(one, chance)) < FAR
    assert one.high < 1.4 * one.low
    assert found.method == SPLITTING
    assert found.weights is not None
    assert found.weights.effective > 1000.0
    assert found.weights.largest_share < 0.01


def near(one: Estimate, other: Estimate) -> bool:
    """Whether two estimates are within their errors."""
    if not (one.seen and other.seen):
        return one.low <= other.high and other.low <= one.high
    errors = [(math.log(each.high / each.low)) / (2.0 * 1.96) for each in (one, other)]
    return bool(abs(math.log(one.value / other.value)) < FAR * math.hypot(*errors))


def check_both(both: tuple[Sampled, Sampled]) -> None:
    """Compare all measures."""
    one, other = both
    for name in measure_table.names():
        assert near(one.estimate(name), other.estimate(name)), (name, one.estimate(name))


LIFETIMES: Mapping[str, Any] = {
    "weibull": {"distribution": "weibull", "shape": 0.6},
    "lognormal": {"distribution": "lognormal", "sigma": 0.8},
    "gamma": {"distribution": "gamma", "shape": 3.0},
    "fixed": {"distribution": "fixed"},
    "empirical": {"distribution": "empirical", "days": [20.0, 40.0, 40.0, 300.0]},
}


@pytest.mark.parametrize("kind", LIFETIMES)
def test_frequent_losses_are_those_of_years_as_they_come(kind: str) -> None:
    """With a crew and any lifetimes every measure is that of years as they come."""
    gone = {
        "per_year": 3.65,
        "hours": 60.0,
        "lifetime": LIFETIMES[kind],
        "duration": {"distribution": "lognormal", "sigma": 1.0},
    }
    model = card(
        broker_destroyed=gone,
        broker_crash={"per_year": 12.0, "minutes": 300.0},
        broker_power={"per_year": 3.0, "minutes": 200.0},
        cluster_crash={"per_year": 1.0, "minutes": 60.0, "brokers": 0.5},
        repair={"crews": 1},
    )
    cluster, load = Cluster.uniform(4, 4), Workload(partitions=5, records_per_second=2e4)
    assert plan_for(cluster, TRIO, model, load).copies_per_hour < 1.0
    found, _ = sample(cluster, TRIO, model, load, years=400, changed=SPLIT_TRIO)
    plain, _ = sample(cluster, TRIO, model, load, years=4000)
    check_both((found, plain))


HOT: Mapping[str, Any] = {
    "broker_crash": {"per_year": 10.0, "minutes": 300.0},
    "broker_destroyed": {"per_year": 3.0, "hours": 30.0},
    "broker_gray": {"per_year": 8.0, "minutes": 200.0, "dies": 0.3},
    "broker_power": {"per_year": 4.0, "minutes": 200.0},
    "rack_power": {"per_year": 3.0, "minutes": 200.0},
    "cluster_power": {"per_year": 1.0, "minutes": 100.0, "not_returning": 0.2},
    "cluster_controller": {"per_year": 4.0, "minutes": 100.0, "stops": 0.4},
    "flush": {"seconds": 30.0},
    "election": {"ms_per_leader": 500.0},
}


@pytest.mark.parametrize(
    "left_out",
    [
        ("cluster_controller",),
        ("broker_gray", "rack_power"),
        ("cluster_power",),
        ("broker_destroyed", "cluster_power"),
    ],
)
def test_exponential_times_give_the_exact_measures(left_out: tuple[str, ...]) -> None:
    """With mechanisms of every scope all measures are those of the exact chain."""
    model = card(**{name: numbers for name, numbers in HOT.items() if name not in left_out})
    cluster = Cluster.uniform(6, 3)
    exact = evaluate(cluster, TRIO, model, QUIET)
    found, _ = sample(cluster, TRIO, model, years=600, changed=SPLIT_TRIO)
    for name in measure_table.names():
        one, truth = found.estimate(name), getattr(exact, name)
        if not one.seen or truth in (0.0, math.inf):
            assert one.low <= truth <= one.high, name
        else:
            assert abs(off_by(one, truth)) < FAR, (name, one, truth)


def test_three_disks_are_lost_as_rarely_as_the_chain_says() -> None:
    """A loss in a hundred million years is seen by some thousand, and is exact."""
    model = card(broker_destroyed={"per_year": 0.1, "hours": 12.0})
    cluster = Cluster.uniform(6, 3)
    exact = evaluate(cluster, TRIO, model, QUIET).loss_probability_per_year
    assert exact < 1e-8
    plan = plan_for(cluster, TRIO, model, QUIET)
    prepared, _ = with_method(plan, SPLITTING, 16_000, 1)
    splits = {"splitting": prepared.splitting}
    found, _ = sample(cluster, TRIO, model, years=16_000, changed=splits)
    assert abs(off_by(found.loss_probability_per_year, exact)) < FAR
    assert found.loss_probability_per_year.high < 3.0 * found.loss_probability_per_year.low


def test_intervals_hold_what_single_failures_lose() -> None:
    """A limping leader that dies loses at once, which no retrial makes likelier.

    A short run sees some other losses, of little weight, and often none of these.
    """
    model = card(
        broker_gray={"per_year": 0.5, "minutes": 20.0, "dies": 0.004},
        broker_destroyed={"per_year": 0.1, "hours": 1.0},
        flush={"seconds": 35.0},
    )
    cluster, load = Cluster.uniform(6, 3), Workload(partitions=6, records_per_second=100.0)
    exact = evaluate(cluster, PAIR, model, load)
    splitting = {"splitting": Splitting((1e5, 1e4), 1.0)}
    held, small = 0, 0
    for seed in range(100):
        found, _ = sample(cluster, PAIR, model, load, 64, splitting, seed)
        chance, events = found.loss_probability_per_year, found.loss_events_per_year
        small += chance.seen and chance.value < 0.5 * exact.loss_probability_per_year
        held += chance.low < exact.loss_probability_per_year < chance.high
        assert events.high > 0.5 * exact.loss_events_per_year
    assert small > 30
    assert held >= 92


def test_intervals_hold_what_rare_failures_in_a_row_lose() -> None:
    """Most losses come from disks that fail hundreds of times less often than brokers restart.

    With as many retrials whatever failed first, most of these intervals were too low.
    """
    model = card(
        broker_destroyed={"per_year": 0.05, "hours": 24.0, "shape": 0.5},
        broker_power={"per_year": 0.4, "minutes": 30.0},
        broker_lag={"per_year": 12.0, "minutes": 2.0},
        broker_restart={"per_year": 12.0, "minutes": 8.0},
    )
    cluster = Cluster.uniform(6, 3)
    exact = evaluate(cluster, TRIO, model, QUIET).loss_probability_per_year
    plan = plan_for(cluster, TRIO, model, QUIET)
    splitting = {"splitting": find_retrials(plan, 1).splitting}
    held, narrow = 0, 0
    for seed in range(40):
        found, _ = sample(cluster, TRIO, model, years=128, changed=splitting, seed=seed)
        chance = found.loss_probability_per_year
        held += chance.low < exact < chance.high
        narrow += chance.high < 20.0 * exact
    assert held >= 34
    assert narrow >= 34


def test_few_effective_losses_are_called_too_few() -> None:
    """The warning stands beside their number, and goes with more years."""
    for method in (SPLITTING, IMPORTANCE):
        for effective, said in ((8.0, True), (300.0, False)):
            (line,) = method_lines(method, "", Weights(500, effective, 0.2))
            assert ("too few" in line) == said


def test_a_block_is_the_same_wherever_it_runs() -> None:
    """Rows depend on plan and block alone, not on which block ran before."""
    plan = plan_for(Cluster.uniform(2, 2), PAIR, weibull_pair(2.0, 1.0, 0.01), QUIET)
    pilot = find_retrials(plan, 3)
    assert pilot == find_retrials(plan, 3)
    prepared, _ = with_method(plan, SPLITTING, 1000, 3)
    assert prepared.splitting == pilot.splitting
    assert prepared.fingerprint != plan.fingerprint
    blocks = [Block(3, index, 20) for index in range(4)]
    forwards = [run_block(prepared, block) for block in blocks]
    backwards = [run_block(prepared, block) for block in reversed(blocks)]
    assert forwards == backwards[::-1]
    assert len({row.causes for row in forwards}) > 1


def test_simulate_chooses_splitting_where_losses_are_rare() -> None:
    """Without a method, rare losses of Weibull lifetimes are split, and it says why."""
    model = weibull_pair(2.0, 20.0, 1e-4)
    found = simulate(
        Cluster.uniform(2, 2), PAIR, model, QUIET, years=50_000_000, engine="local", seconds=0.5
    )
    assert found.method == SPLITTING
    assert "times between failures are not exponential" in found.why_method
    assert found.loss_probability_per_year.seen
    assert "Splitting, because only about " in str(found)


def test_frequent_losses_need_no_splitting() -> None:
    """Where years as they come see many losses they are lived as they come."""
    plan = plan_for(Cluster.uniform(2, 2), PAIR, weibull_pair(2.0, 0.1, 0.01), QUIET)
    chosen, why = with_method(plan, None, 1_000_000, 1)
    assert (chosen, chosen.method) == (plan, CRUDE)
    assert why.endswith("losses are expected in 1,000,000 years without it")


def test_a_calendar_is_refused() -> None:
    """What a calendar does next is no failure that could come sooner."""
    model = card(
        broker_destroyed={"per_year": 1.0, "hours": 5.0},
        broker_restart={"per_year": 4.0, "minutes": 5.0},
    )
    model = model.with_calendar(weekday="monday", hour=2, every_weeks=4)
    plan = plan_for(Cluster.uniform(3, 3), TRIO, model, QUIET)
    with pytest.raises(InputError, match="brokers restart by a calendar"):
        with_method(plan, SPLITTING, 1000, 1)


def test_nothing_to_split_is_refused() -> None:
    """Where nothing fails there is no path that gets worse."""
    plan = plan_for(
        Cluster.uniform(3, 3), TRIO, card(broker_crash={"per_year": 0.0, "minutes": 5.0}), QUIET
    )
    with pytest.raises(InputError, match="method='splitting' cannot sample this: nothing fails"):
        with_method(plan, SPLITTING, 1000, 1)


def test_the_work_of_retrials_of_retrials_is_known_and_the_pilot_stays_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where paths split a lot, a year has a thousand times as many events as without retrials."""
    model = FailureModel.from_dict(
        {
            "broker": {
                "lag": {"per_year": 71.8, "minutes": 168.8},
                "restart": {
                    "per_year": 1.23,
                    "minutes": 34.4,
                    "unclean": 1,
                    "unclean_minutes": 3.9,
                },
            },
            "rack": {"power": {"per_year": 0.76, "minutes": 29.4}},
            "cluster": {"crash": {"per_year": 0.285, "brokers": 0.5, "minutes": 8}},
        }
    )
    config = Config(replication_factor=4, min_insync_replicas=3)
    plan = plan_for(Cluster.uniform(4, 3), config, model, Workload(partitions=3), None)
    events = 0.0

    def counted(*asked: Any) -> Any:
        nonlocal events
        found = block.sample_paths(*asked)
        events += sum(float(found[0].path[0][name]) for name in ("main_events", "retrial_events"))
        return found

    monkeypatch.setattr(pilot, "sample_paths", counted)
    split = replace(plan, splitting=find_retrials(plan, 7).splitting)
    assert events < 8e6
    # Retrials replay isolated outages, too.
    monkeypatch.setattr(Plan, "counts_isolated", False)
    with_retrials, alone = (
        seconds_per_block(each, 2) - seconds_per_block(each, 1) for each in (split, plan)
    )
    rows = [run_block(split, Block(7, index, 1)) for index in range(2)]
    plain = run_block(plan, Block(7, 0, 100)).events / 100
    # An event of a retrial takes several times as long.
    assert 2.0 < with_retrials / alone / (sum(row.events for row in rows) / 2 / plain) < 15.0
