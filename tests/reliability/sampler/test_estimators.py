"""Estimates and intervals from blocks, and how years are cut into blocks."""

import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from advisor import Cluster, Config, FailureModel, evaluate
from advisor.errors import AdvisorError, InputError
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.intervals import HEAVIER, Ratio, rate, share, waiting_time
from advisor.reliability.sampler.plan import Block, Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import MANY_RACKS, QUIET, TRIO, card, sample

QUIET_ONE = replace(QUIET, partitions=1)


def test_what_is_never_seen_is_bounded() -> None:
    """Without a loss there is an upper bound, a lower one for the wait, and never 0."""
    found, _ = sample(
        Cluster.uniform(6, 3), TRIO, card(broker_crash={"per_year": 1.0, "minutes": 1.0}), years=50
    )
    chance, wait = found.loss_probability_per_year, found.mean_years_to_loss
    assert (chance.low, chance.value) == (0.0, chance.high)
    # 50 years without an event leave 5 % at about 3 in 50 a year.
    assert chance.high == pytest.approx(3.0 / 50.0, rel=0.04)
    assert wait.low == wait.value == pytest.approx(50.0 / 3.0, rel=0.01)
    assert wait.high == math.inf
    assert not chance.seen
    assert "data loss less than once in 17 years" in found.summary
    assert "none in 50 simulated years, so less than once in 17 years (95 %)" in repr(found)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_the_interval_of_a_share_covers_it(n: int) -> None:
    """Whatever the true share, at least 95 % of all samples' intervals hold it."""
    intervals = [share(k, n) for k in range(n + 1)]
    for true in np.linspace(0.001, 0.999, 97):
        covered = [e.low <= true <= e.high for e in intervals]
        chance = stats.binom.pmf(np.arange(n + 1), n, true)
        # Nothing seen gives a one-sided bound at 95 %; the other side has 2.5 %.
        assert chance[covered].sum() >= 0.95 - 0.025 - 1e-9


@given(st.lists(st.integers(0, 1), min_size=1, max_size=29).filter(any))
def test_few_equal_events_have_the_poisson_interval(counts: list[int]) -> None:
    """Where all amounts are 1, Fay and Feuer's interval is the exact one of a Poisson count."""
    total = sum(counts)
    found = rate(Ratio(counts, [1.0] * len(counts), 1.0), len(counts))
    assert found.low * len(counts) == pytest.approx(stats.chi2.ppf(0.025, 2 * total) / 2)
    assert found.high * len(counts) == pytest.approx(stats.chi2.ppf(0.975, 2 * total + 2) / 2)


def test_many_blocks_have_the_interval_of_their_scatter() -> None:
    """Where most blocks saw something, 95 % of intervals hold the truth: 9 in 10 at the least."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        found = rate(Ratio(rng.gamma(2.0, 1.5, 40).tolist(), [1.0] * 40, 1.0), 40)
        held += found.low <= 3.0 <= found.high
    # Binomial with 300 and 0.95: fewer than 270 has a chance below 1e-3.
    assert held >= 270


def test_few_weighted_events_do_not_scatter_as_many_do() -> None:
    """Where some events make up most of it, Student's t is too narrow, and not used."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        numbers = 1 + rng.poisson(3.0, 32)
        amounts = [float(rng.lognormal(0.0, 2.0, number).sum()) for number in numbers]
        found = rate(Ratio(amounts, [1.0] * 32, 1.0), 32)
        held += found.low < 4.0 * math.exp(2.0**2 / 2.0) < found.high
    # Student's t holds it in 87 %.
    assert held > 0.9 * 400


def test_few_weighted_losses_hide_heavier_ones() -> None:
    """Of 30 losses whose weights vary a lot, the upper end allows for a heavier one."""
    rng, held, as_heavy = np.random.default_rng(1), 0, 0
    for _ in range(400):
        weights = rng.lognormal(-(1.5**2) / 2.0, 1.5, 1 + rng.poisson(29.0))
        events = float((weights**2).sum()), float(weights.max())
        amounts = [float(weights.sum())] + [0.0] * 31
        found = rate(Ratio(amounts, [1.0] * 32, 1.0, events=events), 32)
        held += found.low < 30.0 / 32.0 < found.high
        equal = rate(Ratio(amounts, [1.0] * 32, 1.0, events=(events[0], events[1] / 2.0)), 32)
        as_heavy += equal.low < 30.0 / 32.0 < equal.high
    assert as_heavy < 0.92 * 400 < held


def test_a_hundred_weighted_losses_are_few_where_their_weights_vary() -> None:
    """All blocks saw some, and look alike by chance: they say less than the weights do."""
    rng, held, by_blocks = np.random.default_rng(1), 0, 0
    for _ in range(400):
        parts = [rng.lognormal(-0.845, 1.3, rng.poisson(14.0)) for _ in range(32)]
        weights = np.concatenate(parts)
        amounts = [float(part.sum()) for part in parts]
        events = float((weights**2).sum()), float(weights.max())
        found = rate(Ratio(amounts, [1.0] * 32, 1.0, events=events), 32)
        assert "gamma" in found.method
        held += found.low < 14.0 < found.high
        blocks = rate(Ratio(amounts, [1.0] * 32, 1.0), 32)
        by_blocks += blocks.low < 14.0 < blocks.high
    assert by_blocks < held
    assert 0.93 * 400 < held < 0.99 * 400


def test_few_long_outages_hide_longer_ones() -> None:
    """Weights that grow with the square of an outage need room for one heavier than was seen."""
    rng = np.random.default_rng(5)
    held = {1.0: 0, HEAVIER: 0}
    for _ in range(400):
        # Of 20 outages, whose lengths have a gamma distribution of shape 0.5 and mean 1.
        numbers = rng.poisson(20.0 / 32.0, 32)
        amounts = [float((rng.gamma(0.5, 2.0, number) ** 2).sum()) for number in numbers]
        for heavier in held:
            found = rate(Ratio(amounts, [1.0] * 32, 1.0, heavier=heavier), 32)
            held[heavier] += found.low < 3.0 * 20.0 / 32.0 < found.high
    assert held[1.0] < 0.9 * 400 < held[HEAVIER]


def test_a_wait_is_the_inverse_of_a_rate() -> None:
    """Mean years to loss and its interval are the reciprocals of the rate's."""
    found = waiting_time(Ratio([0, 1, 2], [1.0, 1.0, 2.0], 1.0), 4)
    turned = rate(Ratio([0, 1, 2], [1.0, 1.0, 2.0], 1.0), 4)
    assert found.value == pytest.approx(4.0 / 3.0)
    assert (found.low, found.high) == pytest.approx((1 / turned.high, 1 / turned.low))


@given(st.integers(1, 10**9), st.integers(0, 2**64 - 1))
def test_blocks_share_the_years_out(years: int, seed: int) -> None:
    """Blocks are numbered from 0, differ by a year at most and add up to the years requested."""
    blocks = cut_into_blocks(_PLAN, years, seed)
    assert sum(block.years for block in blocks) == years
    assert max(block.years for block in blocks) - min(block.years for block in blocks) <= 1
    assert all(two.index == one.index + 1 for one, two in pairwise(blocks))
    assert len(blocks) >= min(years, 32)


_PLAN: Plan = plan_for(
    MANY_RACKS, TRIO, card(broker_crash={"per_year": 1e-3, "minutes": 1.0}), QUIET
)


@pytest.mark.parametrize("years", [0, -1, 2.5, math.nan, math.inf, True, "many"])
def test_years_are_a_whole_number(years: Any) -> None:
    """Anything but a whole number of years from 1 is refused in one sentence."""
    with pytest.raises(InputError, match="whole number of simulated years"):
        cut_into_blocks(_PLAN, years, 7)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    """Anything but a whole number below 2**64 is refused in one sentence."""
    with pytest.raises(InputError, match="seed="):
        cut_into_blocks(_PLAN, 10, seed)


def test_a_cluster_that_is_never_well_is_refused() -> None:
    """A cluster that is never healthy has no year to start from, and is refused."""
    model = card(broker_crash={"per_year": 1000.0, "minutes": 60000.0})
    plan = plan_for(Cluster.uniform(12, 3), TRIO, model, QUIET)
    with pytest.raises(AdvisorError, match="outside this model"):
        run_block(plan, Block(7, 0, 1))


def test_the_kernel_compiles_where_nothing_can_be_written() -> None:
    """With neither the user's folder nor a temporary one, each process compiles."""
    code = (
        "import pathlib\n"
        "def refuse(*args, **options): raise OSError('read-only file system')\n"
        "pathlib.os.mkdir = refuse\n"
        "pathlib.Path.home = refuse\n"
        "pathlib.os.environ.update(XDG_CACHE_HOME='/dev/null')\n"
        "from advisor.reliability.sampler.compiled.kernel import run\n"
        "print(run.compiled.stats.cache_path)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "None"


def test_importing_the_sampler_does_not_import_numba() -> None:
    """The compiler is imported only when a block runs."""
    code = "import sys, advisor.reliability.sampler.block; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_loss_too_rare_to_be_seen_is_allowed_for():
    """Losing both copies is most of the mean and not in 300 years; the interval leaves room."""
    card = FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 20.0, "minutes": 60.0},
                "power": {"per_year": 5.0, "minutes": 60.0},
                "destroyed": {"per_year": 0.01, "hours": 10.0},
            },
            "flush": {"seconds": 1.0},
        }
    )
    at = Cluster(brokers={1: "a", 2: "b"})
    config = Config(replication_factor=2, min_insync_replicas=1)
    found, _ = sample(at, config, card, years=300)
    exact = evaluate(at, config, card, QUIET).acked_records_lost_per_year
    few = found.acked_records_lost_per_year
    assert few.value < 0.1 * exact
    assert few.low <= exact <= few.high
    assert "unseen" in few.method


def test_nothing_possible_is_not_below_nothing() -> None:
    """A rate that is 0 for sure is "none"; a time between losses that is endless is "never"."""
    assert str(Estimate(0.0, 0.0, 0.0, 10, "")) == "none"
    assert str(Estimate(math.inf, math.inf, math.inf, 10, "")) == "never"
    assert str(Estimate(0.5, 0.0, 0.5, 10, "")) == "below 0.5"


def test_first_losses_of_independent_years_have_the_poisson_interval() -> None:
    """A block that lost three times is three losses; as one event the interval is too wide."""
    disks = card(broker_destroyed={"per_year": 0.05, "hours": 12.0})
    one = Config(replication_factor=1, min_insync_replicas=1)
    held, widths = 0, []
    for seed in range(100):
        found, rows = sample(Cluster.uniform(1, 1), one, disks, QUIET_ONE, years=640, seed=seed)
        wait = found.mean_years_to_loss
        held += wait.low <= 20.0 <= wait.high
        widths.append(wait.high / wait.low)
        if "Fay-Feuer" in wait.method:
            losses = sum(row.first_losses for row in rows)
            at_risk = math.fsum(row.at_risk_hours for row in rows) / 8760.0
            assert wait.low == pytest.approx(at_risk / stats.chi2.ppf(0.975, 2 * losses + 2) * 2)
            assert wait.high == pytest.approx(at_risk / stats.chi2.ppf(0.025, 2 * losses) * 2)
    assert held >= 88
    # 32 losses leave a factor of exp(2 * 1.96 / sqrt(32)); it was 1.6 times as wide.
    assert np.mean(widths) < 2.2
