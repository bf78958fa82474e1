"""The chance of a first loss: what is left of the start, and where the series may stop."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import linalg, sparse

from advisor.errors import AdvisorError
from advisor.reliability.solver import first_passage
from advisor.reliability.solver.first_passage import absorbed_by_uniformisation
from advisor.reliability.solver.generator import Generator
from advisor.reliability.solver.regenerative import RegenerativeCycles

YEAR = 8760.0
# Terms of a matrix exponential of a few states are exact to some 1e-16 of 1.
ROUNDING = 1e-13
EPSILON = float(np.finfo(float).eps)


def generator_of(table: list[list[float]], absorbed: list[float]) -> Generator:
    return Generator(sparse.csr_array(np.array(table)), np.array(absorbed))


def by_exponential(generator: Generator, hours: float) -> float:
    """Absorbed by then, from the matrix exponential of the chain with a state for that."""
    size = len(generator.absorbed)
    whole = np.zeros((size + 1, size + 1))
    whole[:size, :size] = generator.rates.toarray() - np.diag(generator.out)
    whole[:size, size] = generator.absorbed
    return float(linalg.expm(whole * hours)[0, size])


def extrapolated(generator: Generator, horizon_hours: float, wanted: float) -> tuple[float, float]:
    """The extrapolation, and the bound on what it is off."""
    cycles = RegenerativeCycles(generator)
    visits = cycles.forward(cycles.start)
    visits[0] = 1.0
    ahead = cycles.backward(np.ones(len(cycles.out)))
    left = first_passage._left_of_the_start(
        cycles, float(visits @ generator.absorbed), horizon_hours, wanted
    )
    return first_passage._extrapolated(cycles, visits, ahead, horizon_hours), left


@given(
    repairs=st.lists(st.floats(0.5, 20.0), min_size=9, max_size=9),
    failures=st.lists(st.floats(1e-3, 0.2), min_size=9, max_size=9),
    losses=st.lists(st.floats(0.0, 0.3), min_size=4, max_size=4),
    horizon=st.floats(0.5, 12.0),
)
def test_what_is_left_of_the_start_is_bounded(repairs, failures, losses, horizon):
    """Random chains, healthy most of the time: the extrapolation is off by the bound at most."""
    table = np.zeros((4, 4))
    table[np.tril_indices(4, -1)], table[np.triu_indices(4, 1)] = repairs[:6], failures[:6]
    generator = generator_of(table.tolist(), losses)
    assume(generator.absorbed.sum() > 0)
    found, left = extrapolated(generator, horizon, 1e-2)
    assume(math.isfinite(left))
    assert abs(found - by_exponential(generator, horizon)) <= left + ROUNDING


def test_the_bound_is_near_what_is_left():
    """Two brokers, repaired in 1000 h: what is off after a year is a hundredth of it at least."""
    generator = generator_of([[0.0, 2e-6], [1e-3, 0.0]], [0.0, 1e-6])
    found, left = extrapolated(generator, YEAR, 1e-2)
    off = abs(found - by_exponential(generator, YEAR))
    assert 0 < off <= left <= 100.0 * off


@pytest.mark.parametrize("failures_per_hour", [2e-6, 2e-4])
def test_the_bound_of_two_states_is_the_one_worked_out_by_hand(failures_per_hour):
    """One outage at a time: all integrals of the bound are of one exponential, in closed form."""
    repairs, lost_well, lost_down, wanted = 1e-3, 3e-7, 1e-6, 1e-2
    generator = generator_of([[0.0, failures_per_hour], [repairs, 0.0]], [lost_well, lost_down])
    growth = (math.log(1.0 / wanted) + 2.0) / YEAR
    ends = repairs + lost_down
    hazard_at_most = lost_well + failures_per_hour * lost_down / ends
    # Of the hours of an outage per healthy hour, each times exp(growth * its age).
    hours = failures_per_hour / (ends - growth)
    losses = lost_down * hours
    kernel = hours * growth / (growth - hazard_at_most)
    above = kernel / (1.0 - kernel) * (lost_well + losses) + losses
    by_hand = math.exp(-growth * YEAR) / growth * above
    assert extrapolated(generator, YEAR, wanted)[1] == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("repair_hours", [150.0, 200.0, 250.0])
def test_repairs_of_a_week_are_extrapolated(repair_hours):
    """Three disks, replaced in one to two weeks: no series is needed, and it gives the same."""
    generator = generator_of(
        [[0.0, 3e-5, 0.0], [1.0 / repair_hours, 0.0, 2e-5], [0.0, 2.0 / repair_hours, 0.0]],
        [0.0, 0.0, 1e-5],
    )
    found = first_passage.first_loss(generator, YEAR)
    assert found.method == "quasi-stationary extrapolation"
    assert found.probability == pytest.approx(
        absorbed_by_uniformisation(generator, YEAR, 0.0), rel=1e-12
    )


SELDOM_HEALTHY = generator_of(
    [[0.0, 10.0, 0.0], [2e-3, 0.0, 5.0], [0.0, 5.0, 0.0]],
    [0.0, 0.0, 1e-6],
)


def without_a_stop(monkeypatch, generator: Generator) -> float:
    """The whole series, as a single block of steps."""
    with monkeypatch.context() as patched:
        patched.setattr(first_passage, "_BLOCK", 10**9)
        return absorbed_by_uniformisation(generator, YEAR, 0.0)


def test_a_series_whose_steps_have_settled_is_the_whole_series(monkeypatch):
    """A chain that is hardly ever healthy but settles in an hour: no need to go through a year.

    A hundredth of the steps is enough, and nothing but their rounding is lost.
    """
    whole = without_a_stop(monkeypatch, SELDOM_HEALTHY)
    steps = 10.0 * YEAR
    each = SELDOM_HEALTHY.rates.nnz + first_passage._ENTRIES_PER_STEP
    monkeypatch.setattr(first_passage, "_MOST_ENTRIES", 0.05 * steps * each)
    found = absorbed_by_uniformisation(SELDOM_HEALTHY, YEAR, 0.0)
    assert found == pytest.approx(whole, rel=2.0 * steps * EPSILON)


def test_a_series_that_has_not_settled_goes_on(monkeypatch):
    """Repairs that take weeks beside short outages: stopped only where it would change nothing."""
    generator = generator_of(
        [[0.0, 1e-4, 1e-4], [1.0 / 300.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [0.0, 1e-6, 0.0]
    )
    exact = without_a_stop(monkeypatch, generator)
    assert absorbed_by_uniformisation(generator, YEAR, 0.0) == pytest.approx(
        exact, rel=2.0 * 2.0 * YEAR * EPSILON
    )


@example(rates=[0.0, 0.0, 2e-309] + [0.0] * 9, losses=[0.0] * 4, horizon=1.0)
@given(
    rates=st.lists(st.floats(0.0, 30.0), min_size=12, max_size=12),
    losses=st.lists(st.floats(0.0, 0.5), min_size=4, max_size=4),
    horizon=st.floats(1e-3, 300.0),
)
def test_squaring_is_the_matrix_exponential(rates, losses, horizon):
    """Random chains, healthy or not, over less than a move and over thousands of moves."""
    table = np.zeros((4, 4))
    table[~np.eye(4, dtype=bool)] = rates
    generator = generator_of(table.tolist(), losses)
    assume(generator.out.max() > 0)
    found, exact = (
        first_passage.absorbed_by_squaring(generator, horizon),
        by_exponential(generator, horizon),
    )
    # Both round once a move at most.
    rounding = 2.0 * EPSILON * float(generator.out.max()) * horizon
    assert found == pytest.approx(exact, rel=0.0, abs=ROUNDING + rounding)


@pytest.mark.parametrize("loss", [1e-6, 1e-20])
@pytest.mark.parametrize("repair_hours", [300.0, 3000.0])
def test_squaring_and_the_series_are_one(repair_hours, loss):
    """Outages of half an hour beside repairs of weeks; both round once a step at most."""
    generator = generator_of(
        [[0.0, 1e-4, 1e-4], [1.0 / repair_hours, 0.0, 0.0], [2.0, 1e-3, 0.0]], [0.0, loss, 0.0]
    )
    series = absorbed_by_uniformisation(generator, YEAR, 0.0)
    rounding = 2.0 * 2.0 * YEAR * EPSILON
    assert first_passage.absorbed_by_squaring(generator, YEAR) == pytest.approx(
        series, rel=rounding, abs=0.0
    )


def test_few_moves_or_many_states_are_a_series():
    """Squares of dense matrices take the cube of the states, a series the entries at every step."""
    assert first_passage.squaring_is_quicker(SELDOM_HEALTHY, YEAR)
    size = 900
    ring = sparse.csr_array(np.roll(np.eye(size), 1, axis=1))
    large = Generator(ring, np.full(size, 1e-9))
    assert not first_passage.squaring_is_quicker(large, 24.0)
    assert first_passage.first_loss(large, 24.0).method == "uniformisation"


def test_nothing_is_left_to_lose_once_all_is_lost(monkeypatch):
    """Lost within days for certain, in two ways that never settle: the series ends there, at 1."""
    generator = generator_of([[0.0, 4.0, 4.0], [0.0] * 3, [0.0] * 3], [0.0, 0.5, 0.9])
    monkeypatch.setattr(first_passage, "_MOST_ENTRIES", 1e7)
    assert absorbed_by_uniformisation(generator, YEAR, 0.0) == pytest.approx(1.0, rel=1e-10)


def test_too_many_steps_are_refused(monkeypatch):
    """The error says how many steps of which length, and what to do."""
    generator = generator_of(
        [[0.0, 1e-4, 0.0], [1e-4, 0.0, 1.0], [0.0, 1.0, 0.0]], [0.0, 0.0, 1e-5]
    )
    monkeypatch.setattr(first_passage, "_MOST_ENTRIES", 1e7)
    with pytest.raises(AdvisorError, match=r"of 9,6\d\d steps of 3.6e\+03 s.* or use simulate"):
        absorbed_by_uniformisation(generator, YEAR, 0.0)


@pytest.mark.parametrize("begin", [0, 40, 9_000, 10_300])
@pytest.mark.parametrize("ratio", [0.5, 0.999, 1.0])
def test_the_rest_is_what_its_blocks_would_lose(begin, ratio):
    """Step by step, before the weights fall and while they do."""
    weights = first_passage._Weights(10_000.0)
    losses = np.linspace(1.0, 2.0, 40)
    blocks = math.ceil((weights.count - begin) / 40)
    each = np.concatenate([losses * ratio ** (block + 1) for block in range(blocks)])
    assert weights.rest(losses, ratio, begin) == pytest.approx(
        float(each[: weights.count - begin] @ weights.between(begin, weights.count)), rel=1e-12
    )


def test_weights_add_up_to_the_mean():
    """The chances of more than 0, 1, ... steps: their sum is the mean number of steps."""
    weights = first_passage._Weights(250.0)
    assert weights.between(0, weights.count).sum() == pytest.approx(250.0, rel=1e-13)
    assert weights.between(0, 100).tolist() == weights.between(0, weights.count)[:100].tolist()


@pytest.mark.parametrize("rate", [1e-12, 1e-4, 0.3])
def test_one_state_is_lost_exponentially(rate: float) -> None:
    """Without any repair there is one state, and its lifetime is exponential."""
    generator = generator_of([[0.0]], [rate])
    found = first_passage.first_loss(generator, YEAR)
    assert found.mean_hours == pytest.approx(1.0 / rate, rel=1e-14)
    wanted = by_exponential(generator, YEAR)
    assert found.probability == pytest.approx(wanted, rel=1e-12, abs=EPSILON)
