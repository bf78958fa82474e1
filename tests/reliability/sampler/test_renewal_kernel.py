"""Times that are not exponential, in the sampler: draws, integrals, and a plain simulation."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import integrate, stats

from advisor import Cluster, Config, evaluate
from advisor.reliability import measure_table
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.compiled import fault_kernel
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Block
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.solver import jit
from renewal_oracle import Crowd, Partition, lognormal, weibull
from sampled_runs import FAR, QUIET, TRIO, YEAR, card, off_by, sample

ALONE = Config(replication_factor=1)
PAIR = Config(replication_factor=2, min_insync_replicas=1)
OBSERVED = (20.0, 40.0, 40.0, 300.0)
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "weibull 0.6": (
        {"distribution": "weibull", "shape": 0.6},
        stats.weibull_min(0.6, scale=1.0 / math.gamma(1.0 + 1.0 / 0.6)),
    ),
    "weibull 3": (
        {"distribution": "weibull", "shape": 3.0},
        stats.weibull_min(3.0, scale=1.0 / math.gamma(1.0 + 1.0 / 3.0)),
    ),
    "lognormal": (
        {"distribution": "lognormal", "sigma": 0.8},
        stats.lognorm(0.8, scale=math.exp(-0.32)),
    ),
    "gamma": ({"distribution": "gamma", "shape": 3.0}, stats.gamma(3.0, scale=1.0 / 3.0)),
    "fixed": ({"distribution": "fixed"}, stats.uniform(1.0, 1e-12)),
    "empirical": (
        {"distribution": "empirical", "days": list(OBSERVED)},
        stats.rv_discrete(values=(range(3), [0.25, 0.5, 0.25])),
    ),
}
"""Distributions with a mean of 1, by scipy; the place of the value for observed times."""


@pytest.fixture(scope="module")
def drawn() -> Callable[..., np.ndarray]:
    """Draw with the kernel's own functions: whole times, or what is left of them."""
    draw, around = fault_kernel.draw, fault_kernel.draw_length_biased

    def fill(rng: Any, sim: Any, whole: bool, found: Any) -> None:
        for place in range(len(found)):
            found[place] = draw(rng, sim, 0) if whole else around(rng, sim, 0) * rng.random()

    compiled = njit(**jit._OPTIONS)(fill)

    def run(written: dict[str, Any], whole: bool, number: int = 20_000) -> np.ndarray:
        model = card(broker_crash={"per_year": 365.0 / 100.0, "minutes": 5.0, "lifetime": written})
        sim = new_state(plan_for(Cluster.uniform(1, 1), ALONE, model, QUIET))
        found = np.empty(number)
        compiled(np.random.Generator(np.random.Philox(11)), sim, whole, found)
        return found / 2400.0

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_draws_what_the_card_says(kind: str, drawn: Callable[..., Any]) -> None:
    """Means and variances are those of the distribution, and so is the whole of it."""
    written, truth = KINDS[kind]
    found = drawn(written, whole=True)
    variance = {"fixed": 0.0, "empirical": np.var(OBSERVED) / 1e4}.get(kind, truth.var())
    error = math.sqrt(variance / len(found))
    assert found.mean() == pytest.approx(1.0, abs=FAR * error + 1e-9)
    spread = np.abs(found - 1.0) ** 2
    assert found.var() == pytest.approx(variance, abs=FAR * spread.std() / math.sqrt(len(found)))
    if kind == "empirical":
        values, counts = np.unique(found.round(9), return_counts=True)
        assert values.tolist() == [0.2, 0.4, 3.0]
        assert stats.chisquare(counts, len(found) * truth.pmf(range(3))).pvalue > 1e-3
    elif kind != "fixed":
        assert stats.kstest(found, truth.cdf).pvalue > 1e-3


def left(truth: Any, kind: str, x: float) -> float:
    """Probability that more than ``x`` is left of a time with mean 1 at a random moment."""
    if kind == "empirical":
        return sum(max(value / 100.0 - x, 0.0) for value in OBSERVED) / 4.0
    if kind == "fixed":
        return max(1.0 - x, 0.0)
    area, _ = integrate.quad(truth.sf, 0.0, x, limit=200)
    return 1.0 - area


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_begins_at_a_random_moment(kind: str, drawn: Callable[..., Any]) -> None:
    """What is left of the first time has the survival function's area as its distribution."""
    written, truth = KINDS[kind]
    found = drawn(written, whole=False)
    edges = np.quantile(found, np.linspace(0.0, 1.0, 11)[1:-1])
    chances = [1.0 - left(truth, kind, float(edge)) for edge in edges]
    expected = np.diff([0.0, *chances, 1.0]) * len(found)
    counts = np.histogram(found, [0.0, *edges, math.inf])[0]
    # The edges are those of the sample: compare with a sample of them, within its error.
    assert np.abs(expected - counts).max() < FAR * math.sqrt(0.1 * 0.9 * len(found))
    assert found.min() >= 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_year_without_an_event_has_the_chance_of_what_is_left(kind: str) -> None:
    """RF 1 on one broker: its log is lost unless more than a year is left of its lifetime."""
    written, truth = KINDS[kind]
    mean = sum(OBSERVED) / 4.0 / 365.0 if kind == "empirical" else 0.8
    gone = {"per_year": 1.0 / mean, "hours": 1.0, "lifetime": written}
    plan = plan_for(Cluster.uniform(1, 1), ALONE, card(broker_destroyed=gone), QUIET)
    years = 1500
    lost = sum(run_block(plan, Block(5, index, 1)).lost_years for index in range(years))
    chance = 1.0 - left(truth, kind, 1.0 / mean)
    assert abs(lost - years * chance) <= FAR * math.sqrt(years * chance * (1.0 - chance)) + 1e-9


@pytest.mark.parametrize("key", ["lifetime", "duration"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_share_of_time_down_depends_on_the_means_alone(kind: str, key: str) -> None:
    """Whatever the distributions, a broker is down for mean / (mean + mean) of the time."""
    per_year, hours = 365.0 / 100.0, 2400.0
    written = KINDS[kind][0]
    crash = {"per_year": per_year, "minutes": 60.0 * hours, key: written}
    found, _ = sample(Cluster.uniform(1, 1), ALONE, card(broker_crash=crash))
    assert abs(off_by(found.write_unavailability, 0.5)) < FAR


def first_coincidence(truth: Any, repair: float, years: float, steps: int) -> float:
    """Probability that two brokers are out at once within some years, both well at the start.

    Each lives a time with survival function S and density f, and is out for a fixed time D; both
    have run for ever. Let V(a, t) be the probability of no coincidence within t, when one broker
    has just come back and the other has lived for a. The next failure comes after u. If it is that
    of the one that came back, the other has to live for D more; then that one has just come back:

        V(a, t) = S(t) S(a+t) / S(a)
                  + int_0^t f(u) S(a+u+d) / S(a) V(a+u+D, t-u-D) du
                  + int_0^t f(a+u) / S(a) S(u+d) V(u+D, t-u-D) du,    d = min(D, t-u)

    and V = 1 without time left. At the start each has the age density S(a) / m. With L(x) the
    area of S beyond x, over the mean m, the first failure comes at u with density S(u) / m, and
    the other has then to be alive at s = u + D, at an age with density S(a) / m for a > s:

        P(none within T) = L(T)^2 + 2 int_0^T S(u)/m int_s^oo S(a)/m V(a, T-s) da du,

    where the inner integral is L(T) if s > T. Integrals are sums over steps with the exact weight
    of each, F(u + h) - F(u), and the values at its middle, D being a whole number of steps.
    """
    h = years / steps
    lag = round(repair / h)
    ages = int(truth.isf(1e-12) / h) + steps + 2
    grid = h * np.arange(ages + steps + lag + 2)
    alive = np.maximum(truth.sf(grid), 1e-300)
    dies = alive[:-1] - alive[1:]
    none = np.ones((steps + 1, ages + steps + lag + 2))
    for t in range(1, steps + 1):
        u = np.arange(t)
        rest = np.maximum(t - u - lag, 0)
        wait = np.minimum(lag, t - u)
        a = np.arange(ages)
        value = alive[t] * alive[a + t]
        for k in range(t):
            # Middles of steps: both ends count half.
            both = 0.5 * (alive[a + k + wait[k]] + alive[a + k + wait[k] + 1])
            value += dies[k] * both * none[rest[k], np.minimum(a + k + lag, ages - 1)]
            both_u = 0.5 * (alive[k + wait[k]] + alive[k + wait[k] + 1])
            value += dies[a + k] * both_u * none[rest[k], min(k + lag, ages - 1)]
        none[t, :ages] = np.minimum(value / alive[a], 1.0)
    mean = truth.mean()
    area = np.append(np.cumsum((0.5 * h * (alive[:-1] + alive[1:]))[::-1])[::-1], 0.0) / mean
    whole = area[steps] ** 2
    for k in range(steps):
        first = area[k] - area[k + 1]
        s = k + lag
        if s >= steps:
            whole += 2.0 * first * area[steps]
            continue
        a = np.arange(s, ages)
        whole += 2.0 * first * integrate.trapezoid(alive[a] / mean * none[steps - s, a], dx=h)
    return 1.0 - whole


@pytest.mark.parametrize("shape", [0.6, 3.0])
def test_two_replicas_lose_as_an_integral_says(shape: float) -> None:
    """Weibull lifetimes, fixed repairs: a record is lost if both are out at once within a year."""
    mean, repair, years = 0.5, 0.05, 3000
    truth = stats.weibull_min(shape, scale=mean / math.gamma(1.0 + 1.0 / shape))
    # The error of the sums falls with the length of a step.
    coarse, fine = (first_coincidence(truth, repair, 1.0, steps) for steps in (60, 120))
    chance = 2.0 * fine - coarse
    gone = {
        "per_year": 1.0 / mean,
        "hours": repair * YEAR,
        "lifetime": {"distribution": "weibull", "shape": shape},
        "duration": {"distribution": "fixed"},
    }
    plan = plan_for(Cluster.uniform(2, 2), PAIR, card(broker_destroyed=gone), QUIET)
    lost = sum(run_block(plan, Block(5, index, 1)).lost_years for index in range(years))
    assert abs(lost - years * chance) < FAR * math.sqrt(years * chance * (1.0 - chance))
    # Exponential lifetimes with the same means are told apart.
    exponential = stats.expon(scale=mean)
    other = years * first_coincidence(exponential, repair, 1.0, 60)
    assert abs(lost - other) > FAR * math.sqrt(other * (1.0 - other / years))


HOT: dict[str, dict[str, float]] = {
    "broker_crash": {"per_year": 10.0, "minutes": 300.0},
    "broker_destroyed": {"per_year": 3.0, "hours": 30.0},
    "broker_gray": {"per_year": 8.0, "minutes": 200.0, "dies": 0.3},
    "broker_lag": {"per_year": 20.0, "minutes": 100.0},
    "broker_power": {"per_year": 4.0, "minutes": 200.0},
    "rack_network": {"per_year": 5.0, "minutes": 200.0},
    "rack_power": {"per_year": 3.0, "minutes": 200.0},
    "rack_destroyed": {"per_year": 0.5},
    "cluster_power": {"per_year": 1.0, "minutes": 100.0, "not_returning": 0.2},
    "cluster_crash": {"per_year": 2.0, "minutes": 60.0, "brokers": 0.6},
    "cluster_controller": {"per_year": 4.0, "minutes": 100.0, "stops": 0.4},
}
SHAPE_1 = {"distribution": "weibull", "shape": 1.0}
TIMES = {
    "flush": {"seconds": 30.0},
    "detection": {"seconds": 9.0},
    "election": {"ms_per_leader": 500.0},
}


def agrees(one: Estimate, truth: float) -> bool:
    """Whether an estimate is near an exact value, or its bound allows it."""
    if not one.seen or truth in (0.0, math.inf):
        return one.low <= truth <= one.high
    return abs(off_by(one, truth)) < FAR


@pytest.mark.parametrize(
    "names",
    [
        ("broker_crash", "broker_destroyed", "broker_power"),
        ("broker_gray", "broker_lag", "broker_power"),
        ("rack_network", "rack_power", "broker_crash"),
        ("rack_destroyed", "cluster_power", "broker_destroyed"),
        ("cluster_crash", "cluster_controller", "broker_destroyed"),
    ],
)
def test_a_weibull_of_shape_1_is_the_exponential(names: tuple[str, ...]) -> None:
    """Clocks with exponential times give every measure of the exact chain, in every scope."""
    plain = {name: HOT[name] for name in names} | TIMES
    if "rack_destroyed" in names:
        plain["broker_destroyed"] = HOT["broker_destroyed"]
    clocks = {
        name: numbers
        | ({"lifetime": {"distribution": "weibull", "shape": 1.0}} if name in names else {})
        for name, numbers in plain.items()
    }
    cluster = Cluster.uniform(brokers=6, racks=3)
    exact = evaluate(cluster, TRIO, card(**plain), QUIET)
    found, rows = sample(cluster, TRIO, card(**clocks), years=1500)
    assert found.clumping == 1.0
    for name in measure_table.names():
        one, truth = found.estimate(name), getattr(exact, name)
        assert agrees(one, truth), (name, one, truth)
    assert sum(row.events for row in rows) > 10_000


def test_an_independent_simulation_agrees() -> None:
    """Three replicas, Weibull lifetimes, lognormal repairs: a heap and hand-written rules."""
    mean, hours, budget = 12.0, 0.4, 120.0 / 3600.0
    stretches = []
    for seed in range(40):
        crowd = Crowd(seed, 3, [(weibull(0.7, mean), lognormal(1.2, hours), 0)])
        partition = Partition(3, 2)
        while crowd.now < YEAR:
            partition.take(*crowd.next_event(), crowd.now)
        beyond = sum(max(each - budget, 0.0) for each in partition.outages)
        counts = sum(partition.outages), 3600.0 * beyond, float(len(partition.outages))
        stretches.append([each / crowd.now for each in counts])
    crash = {
        "per_year": YEAR / mean,
        "minutes": 60.0 * hours,
        "lifetime": {"distribution": "weibull", "shape": 0.7},
        "duration": {"distribution": "lognormal", "sigma": 1.2},
    }
    config = TRIO.changed(kafka_version="3.9")
    found, rows = sample(Cluster.uniform(3, 3), config, card(broker_crash=crash), years=80)
    spans = sum(row.hours for row in rows)
    # The shortest are changes of leaders, which take no time here.
    ended = sum(sum(row.outages[1:]) for row in rows) / spans
    down, refused = found.write_unavailability, found.records_refused_per_year
    for mine, theirs, column in ((down, 1.0, 0), (refused, YEAR, 1)):
        values = [stretch[column] * theirs for stretch in stretches]
        error = np.std(values) / math.sqrt(len(values) - 1)
        spread = math.hypot(error, (mine.high - mine.low) / (2.0 * 1.96))
        assert abs(np.mean(values) - mine.value) < FAR * spread, (mine, np.mean(values), error)
    often = [stretch[2] for stretch in stretches]
    error = np.std(often) / math.sqrt(len(often) - 1)
    per_block = [sum(row.outages[1:]) / row.hours for row in rows]
    spread = math.hypot(error, np.std(per_block) / math.sqrt(len(per_block) - 1))
    assert abs(np.mean(often) - ended) < FAR * spread
    # Independent brokers: two of three are down at once, or one that all others wait for.
    share = hours / (mean + hours)
    assert down.value == pytest.approx(3.0 * share**2, rel=0.15)
