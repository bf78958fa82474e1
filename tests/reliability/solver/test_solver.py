"""The solver against exact rationals, closed forms and a second method."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, sparse

from advisor.errors import AdvisorError
from advisor.reliability.solver import (
    first_passage,
    generator,
    regenerative,
    sojourn_time,
)
from advisor.reliability.solver.first_passage import absorbed_by_uniformisation
from advisor.reliability.solver.generator import Generator
from advisor.reliability.solver.sojourn_time import SojournTime

YEAR = 8760.0


def replicas(count: int, fail: float, repair: float) -> Generator:
    """Brokers that fail and are repaired side by side; state = how many are down."""
    rates = np.zeros((count, count))
    absorbed = np.zeros(count)
    for down in range(count):
        if down + 1 < count:
            rates[down, down + 1] = (count - down) * fail
        else:
            absorbed[down] = fail
        if down:
            rates[down, down - 1] = down * repair
    return Generator(sparse.csr_array(rates), absorbed)


def exact_mean_hours(count: int, fail: Fraction, repair: Fraction) -> Fraction:
    """First passage through a birth-death chain: t(k -> k+1) = (1 + d_k t(k-1 -> k)) / b_k."""
    total = step = Fraction(0)
    for down in range(count):
        step = (1 + down * repair * step) / ((count - down) * fail)
        total += step
    return total


@pytest.mark.parametrize("count", range(2, 9))
def test_mean_time_to_loss_keeps_its_digits(count):
    """Yearly failures repaired in 12 h: 1e-13 of the exact rational for 2 to 8 replicas."""
    found = first_passage.first_loss(replicas(count, 1 / 8760, 1 / 12), 8760.0)
    exact = exact_mean_hours(count, Fraction(1, 8760), Fraction(1, 12))
    assert found.mean_hours == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("count", range(2, 9))
def test_two_methods_give_one_probability(count):
    """Quasi-stationary extrapolation, uniformisation and squaring agree, down to 1e-20."""
    chain = replicas(count, 1 / 8760, 1 / 12)
    found = first_passage.first_loss(chain, 8760.0)
    assert found.method == "quasi-stationary extrapolation"
    others = (
        absorbed_by_uniformisation(chain, 8760.0, generator.EXACT),
        first_passage.absorbed_by_squaring(chain, 8760.0),
    )
    assert others == pytest.approx([found.probability] * 2, rel=1e-12, abs=0.0)


def test_slow_repairs_are_gone_through():
    """Where repairs outlast the extrapolation's reach, two replicas still meet the closed form."""
    fail, repair, horizon = 1 / 8760, 1 / 4000, 8760.0
    found = first_passage.first_loss(replicas(2, fail, repair), horizon)
    total, root = 3 * fail + repair, np.sqrt((3 * fail + repair) ** 2 - 8 * fail**2)
    fast, slow = (total + root) / 2, (total - root) / 2
    survives = (fast * np.exp(-slow * horizon) - slow * np.exp(-fast * horizon)) / (fast - slow)
    assert found.method == "repeated squaring"
    assert found.probability == pytest.approx(1.0 - survives, rel=1e-11)


rates = st.floats(1e-6, 10.0)


@given(data=st.data(), size=st.integers(2, 6))
def test_stationary_agrees_with_linear_algebra(data, size):
    """For well-conditioned random chains the regenerative solution is the null vector."""
    table = np.array(
        [[0.0 if i == j else data.draw(rates) for j in range(size)] for i in range(size)]
    )
    found = regenerative.stationary(Generator(sparse.csr_array(table), np.zeros(size)))
    generator = table - np.diag(table.sum(axis=1))
    system = np.vstack([generator.T, np.ones(size)])
    expected = np.linalg.lstsq(system, np.r_[np.zeros(size), 1.0], rcond=None)[0]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert found.sum() == pytest.approx(1.0, rel=1e-14)


def test_staying_in_a_set_is_exponential_for_one_state():
    """One unwritable state that ends at rate 2 an hour lasts over 3 hours with exp(-6)."""
    chain = Generator(sparse.csr_array(np.array([[0.0, 0.1], [2.0, 0.0]])), np.zeros(2))
    stays = SojournTime(chain, np.array([False, True])).after(3.0)
    assert stays == pytest.approx([0.0, np.exp(-6.0)], rel=1e-12)


@pytest.mark.parametrize("remembered", [0, 7, 2**18])
def test_staying_is_the_same_however_much_is_remembered(monkeypatch, remembered):
    """Two states, two questions: the series goes on where what it keeps ends."""
    monkeypatch.setattr(sojourn_time, "_REMEMBERED", remembered)
    rates = np.array([[0.0, 0.1, 0.0], [0.5, 0.0, 4.0], [0.25, 1.0, 0.0]])
    asked = SojournTime(
        Generator(sparse.csr_array(rates), np.zeros(3)), np.array([False, True, True])
    )
    inner = np.array([[-4.5, 4.0], [1.0, -1.25]])
    for hours in (0.3, 20.0, 1.0):
        expected = linalg.expm(inner * hours).sum(axis=1)
        assert asked.after(hours)[1:] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize("pace", [1.0, 3600.0])
def test_who_waits_for_longer_than_anything_lasts_gives_up_nothing(pace, absorbed):
    """Where the series is too long, a bound must say so: it is none that hides a chance.

    It does not matter whether the set is left for another state or by absorption.
    """
    exits = np.array([0.0, 0.5, 0.001])
    rates = np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 4.0], [0.0, pace, 0.0]])
    rates[:, 0] = exits * (not absorbed)
    stays = SojournTime(
        Generator(sparse.csr_array(rates), exits * absorbed), np.array([False, True, True])
    )
    inner = np.array([[-4.5, 4.0], [pace, -pace - 0.001]])
    slowest = max(np.linalg.eigvals(inner).real)
    bound = stays._longest_hours
    assert np.exp(slowest * bound) <= sojourn_time._NEVER * (1.0 + 1e-9)
    assert bound < 10.0 * np.log(sojourn_time._NEVER) / slowest
    assert stays.after(6_000_000.0).tolist() == [0.0, 0.0, 0.0]
    weighed = stays.weighted_survival(np.array([2.0, 6_000_000.0]), np.ones(2))
    assert weighed == pytest.approx(stays.after(2.0), rel=1e-12, abs=0.0)


def test_a_wait_of_many_events_that_some_outlast_is_that_of_a_matrix_exponential():
    """120,000 changes between two states on average, and one in four stays all the time."""
    rates = np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 3000.0], [0.07, 2000.0, 0.0]])
    stays = SojournTime(
        Generator(sparse.csr_array(rates), np.zeros(3)), np.array([False, True, True])
    )
    inner = np.array([[-3000.0, 3000.0], [2000.0, -2000.07]])
    hours = np.array([40.0, 0.001])
    assert stays.pace * hours[0] > 1.1 * sojourn_time._MANY_EVENTS
    long, short = (linalg.expm(inner * each).sum(axis=1) for each in hours)
    assert 0.1 < long.min() < 0.3
    assert stays.after(hours[0])[1:] == pytest.approx(long, rel=1e-9)
    weighed = stays.weighted_survival(hours, np.array([2.0, 3.0]))[1:]
    assert weighed == pytest.approx(2.0 * long + 3.0 * short, rel=1e-9)


def test_a_wait_that_is_long_beside_some_stays_only_is_refused():
    """One state is left in a second and one in a thousand years."""
    rates = np.array([[0.0, 1.0, 1.0], [3600.0, 0.0, 0.0], [1e-7, 0.0, 0.0]])
    stays = SojournTime(
        Generator(sparse.csr_array(rates), np.zeros(3)), np.array([False, True, True])
    )
    with pytest.raises(AdvisorError, match="too long"):
        stays.after(1e6)


def test_nothing_to_lose_is_never():
    """Without absorption the mean is infinite and the probability 0, and the method says why."""
    chain = Generator(sparse.csr_array(np.array([[0.0, 0.1], [2.0, 0.0]])), np.zeros(2))
    found = first_passage.first_loss(chain, 8760.0)
    assert (found.mean_hours, found.probability) == (np.inf, 0.0)
    assert "no modelled event" in found.method


def test_a_state_without_exit_is_refused():
    """An outage that never ends is an error, not a number."""
    chain = Generator(sparse.csr_array(np.array([[0.0, 0.1], [0.0, 0.0]])), np.zeros(2))
    with pytest.raises(AdvisorError, match="cannot be left"):
        regenerative.stationary(chain)


def test_rough_is_within_what_it_promises():
    """The precision asked of draws bounds their error."""
    chain = replicas(5, 1 / 800, 1 / 12)
    exact = first_passage.first_loss(chain, 8760.0)
    rough = first_passage.first_loss(chain, 8760.0, generator.ROUGH)
    assert rough.mean_hours == pytest.approx(exact.mean_hours, rel=10 * generator.ROUGH)
    assert rough.probability == pytest.approx(exact.probability, rel=100 * generator.ROUGH)


@pytest.mark.parametrize("repair_hours", [350.0, 450.0, 600.0])
def test_a_rough_first_loss_forgets_the_start_sooner(repair_hours):
    """Where the start is left to 1e-5 of it, a rough answer extrapolates; an exact one does not."""
    chain = replicas(3, 1e-6, 1.0 / repair_hours)
    exact, rough = (
        first_passage.first_loss(chain, YEAR, p) for p in (generator.EXACT, generator.ROUGH)
    )
    assert (exact.method, rough.method) == ("repeated squaring", "quasi-stationary extrapolation")
    assert rough.probability == pytest.approx(exact.probability, rel=10 * generator.ROUGH)
    assert rough.probability != exact.probability


def test_elimination_keeps_its_digits_where_excursions_are_endless():
    """Brokers that fail as fast as they are repaired: the mean is still the exact rational."""
    found = first_passage.first_loss(replicas(8, 1.0, 1.0), 8760.0)
    assert found.mean_hours == pytest.approx(
        float(exact_mean_hours(8, Fraction(1), Fraction(1))), rel=1e-12
    )


@pytest.mark.parametrize("forward", [True, False])
def test_elimination_and_paths_agree(forward):
    """The two ways through the same chain give the same hours and the same gains."""
    chain = replicas(6, 1 / 300, 1 / 12)
    cycles = regenerative.RegenerativeCycles(chain)
    given = np.arange(6.0)
    summed = cycles.forward(given) if forward else cycles.backward(given)
    assert summed[1:] == pytest.approx(cycles._eliminated(given[1:], forward), rel=1e-13)


def test_rates_of_a_pair_add_up_in_any_order():
    """Transitions between the same two states count together, and states without any have none."""
    source, target = np.array([0, 0, 0, 2]), np.array([2, 1, 2, 0])
    chain = Generator.of(source, target, np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.5, 0.0, 0.0]))
    assert chain.rates.toarray().tolist() == [[0, 2, 5], [0, 0, 0], [8, 0, 0]]
    assert chain.out.tolist() == [7.5, 0.0, 8.0]


def test_a_lone_state_has_no_rates():
    """Nothing to sum is zero, not an integer."""
    none = np.zeros(0, dtype=np.int64)
    chain = Generator.of(none, none, np.zeros(0), np.zeros(1))
    assert chain.out.dtype == np.float64
    assert regenerative.stationary(chain).tolist() == [1.0]


@pytest.mark.parametrize("hours", [1e-3, 0.5, 30.0])
def test_staying_in_states_that_are_left_alike_is_exponential(hours):
    """However often they change places; the series is cut where nothing is left of it."""
    rates = np.array([[0.0, 0.1, 0.0], [0.25, 0.0, 4.0], [0.25, 1.0, 0.0]])
    chain = Generator(sparse.csr_array(rates), np.zeros(3))
    stays = SojournTime(chain, np.array([False, True, True])).after(hours)
    assert stays.tolist() == pytest.approx([0.0, *[math.exp(-0.25 * hours)] * 2], rel=1e-12)


@pytest.mark.parametrize("ratio", [0.5, 0.99, 0.9999])
def test_a_sum_is_as_near_as_was_asked_for(ratio):
    """Terms that shrink slowly leave much behind; that is counted before the sum counts as done."""
    for precision in (1e-2, 1e-6):
        found = regenerative.sum_of_paths(sparse.csr_array([[ratio]]), np.ones(1), precision)
        assert found is not None
        whole = 1.0 / (1.0 - ratio)
        assert whole * (1.0 - precision) <= found[0] <= whole * (1.0 + 1e-12)
