"""The rule by hand, and what must hold for any losses, minutes and prices."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.decision import rule

# Three zones, RF 3: losses a year and minutes without writes at min ISR 1, 2 and 3.
LOSSES = np.array([0.0634, 0.0034, 0.0033])
MINUTES = np.array([16.9, 33.8, 462.5])

amounts = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1e5)), min_size=1, max_size=5).map(
    lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True))
)
prices = st.floats(0.0, 1e6)


def test_losses_follow_from_the_probability_of_any() -> None:
    """-ln(1 - p): all digits of a small probability, and an infinite number for a certain loss."""
    assert rule.losses_per_year(1e-17) == 1e-17
    assert rule.losses_per_year(1.0 - math.exp(-3.0)) == pytest.approx(3.0)
    assert rule.losses_per_year([0.0, 1.0]).tolist() == [0.0, math.inf]


def test_costs_by_hand() -> None:
    """Minutes and priced losses above the least of each; min ISR 2 costs least."""
    cost = rule.costs(LOSSES, MINUTES, 10_080.0)
    assert cost == pytest.approx([10_080 * 0.0601, 16.9 + 10_080 * 0.0001, 445.6])
    assert rule.choose(cost, [1, 0, 2]) == 1


def test_a_cheap_loss_and_a_dear_one_choose_other_settings() -> None:
    """Ten minutes a loss choose min ISR 1, ten years a loss min ISR 3."""
    chosen = [
        rule.choose(rule.costs(LOSSES, MINUTES, price), [1, 0, 2]) for price in (10.0, 5_256_000.0)
    ]
    assert chosen == [0, 2]


def test_costs_of_certain_losses() -> None:
    """Infinite losses of all settings cancel, of one setting rule it out, and cost nothing at 0."""
    two_settings, minutes = np.array([math.inf, math.inf]), np.array([5.0, 3.0])
    assert rule.costs(two_settings, minutes, 10.0).tolist() == [2.0, 0.0]
    assert rule.costs(np.array([math.inf, 1.0]), minutes, 10.0).tolist() == [math.inf, 0.0]
    assert rule.costs(np.array([math.inf, 1.0]), minutes, 0.0).tolist() == [2.0, 0.0]


@pytest.mark.parametrize(
    ("best", "today", "kept"),
    [(0.0, 9.99, True), (0.0, 10.0, False), (905.0, 1000.0, True), (895.0, 1000.0, False)],
)
def test_today_is_kept_within_ten_minutes_or_a_tenth(best: float, today: float, kept: bool) -> None:
    """Today's setting is kept if it exceeds the best by less than 10 minutes or 10 % of its own."""
    assert (rule.choose(np.array([today, best]), [0, 1], today=0) == 0) is kept


@pytest.mark.parametrize(
    ("today", "kept"), [(100.0, False), (91.0, False), (89.0, True), (100.1, False)]
)
def test_what_is_no_candidate_must_cost_clearly_less(today: float, kept: bool) -> None:
    """RF 2 or acks 1 is kept only if the best candidate costs more by the same margin."""
    chosen = rule.choose(np.array([today, 100.0]), [1], today=0, is_candidate=False)
    assert (chosen == 0) is kept


def test_of_equal_settings_the_first_candidate_is_chosen() -> None:
    """Costs that differ by rounding are equal."""
    assert rule.choose(np.array([1.0, 1.0 + 1e-12, 1.0]), [1, 0, 2]) == 1


def test_break_even_by_hand() -> None:
    """Minutes over losses prevented; 0 or infinite where one side is no worse in either."""
    cases = {
        "costs 17 minutes, prevents 0.06": ((0.0034, 33.8, 0.0634, 16.8), 17.0 / 0.06),
        "prevents and costs nothing": ((0.01, 10.0, 0.02, 10.0), 0.0),
        "saves and prevents": ((0.01, 9.0, 0.02, 10.0), 0.0),
        "the same": ((0.01, 9.0, 0.01, 9.0), 0.0),
        "costs and prevents nothing": ((0.02, 11.0, 0.02, 10.0), math.inf),
        "costs and loses more": ((0.03, 11.0, 0.02, 10.0), math.inf),
        "saves and loses more": ((0.03, 9.0, 0.02, 10.0), math.inf),
        "both lose for certain": ((math.inf, 11.0, math.inf, 10.0), math.inf),
    }
    for name, (numbers, price) in cases.items():
        assert rule.break_even(*numbers) == pytest.approx(price), name


def test_break_even_over_draws_has_its_median_and_range() -> None:
    """Median and range of all draws, those counted in which one side dominates."""
    prices = rule.break_even(
        np.array([1.0, 1.0, 3.0, 1.0]),
        np.array([12.0, 20.0, 20.0, 5.0]),
        np.array([2.0, 3.0, 2.0, 2.0]),
        np.array([10.0, 10.0, 10.0, 10.0]),
    )
    assert prices.tolist() == [2.0, 5.0, math.inf, 0.0]
    assert rule.spread(prices) == (3.5, 0.0, math.inf)
    assert rule.spread(prices[:3]) == (5.0, 2.0, math.inf)
    assert rule.spread(np.full(4, math.inf)) == (math.inf, math.inf, math.inf)


def test_regret_of_a_wrong_choice_by_hand() -> None:
    """Cost above the best of each draw: mean, and what 19 of 20 draws do not exceed."""
    own = np.arange(20.0)
    cost = np.stack([own, np.full(20, 4.0)], axis=1)
    standing = rule.standing(cost, 0, [0, 1])
    assert standing.regret.mean == pytest.approx(sum(range(16)) / 20)
    assert standing.regret.high == 14.0
    # 0 to 4 are best; 5 to 13 exceed 4 by less than ten minutes.
    assert (standing.best_in, standing.kept_in, standing.draws) == (5, 14, 20)


def test_a_kept_setting_that_is_no_candidate_is_compared_too() -> None:
    """Its own cost counts among the best of a draw."""
    cost = np.array([[0.0, 50.0], [100.0, 50.0]])
    assert rule.standing(cost, 0, [1]) == (1, 1, 2, (25.0, 50.0))


@pytest.mark.parametrize(
    ("kept", "word"),
    [(122, "sure"), (121, "likely"), (96, "likely"), (95, "depends"), (0, "depends")],
)
def test_confidence_in_a_word(kept: int, word: str) -> None:
    """95 % of 128 draws are sure, 75 % likely."""
    assert rule.confidence(kept, 128) == word


@given(amounts, prices)
def test_the_choice_does_not_depend_on_the_unit_of_losses(
    settings: tuple[np.ndarray, np.ndarray], price: float
) -> None:
    """Twice the losses at half the price choose the same."""
    losses, minutes = settings
    places = range(len(losses))
    first = rule.costs(losses, minutes, price)
    second = rule.costs(2.0 * losses, minutes, price / 2.0)
    assert rule.choose(first, places, today=0) == rule.choose(second, places, today=0)


@given(amounts, prices, st.floats(0.0, 1e4), st.floats(0.0, 1e3))
def test_what_every_setting_has_changes_nothing(
    settings: tuple[np.ndarray, np.ndarray], price: float, minutes: float, losses: float
) -> None:
    """Outages and losses added to all settings are subtracted with the floor."""
    before = rule.costs(*settings, price)
    after = rule.costs(settings[0] + losses, settings[1] + minutes, price)
    assert after == pytest.approx(before, rel=1e-6, abs=1e-4)


@given(amounts, prices, prices)
def test_a_dearer_loss_never_chooses_more_losses(
    settings: tuple[np.ndarray, np.ndarray], first: float, second: float
) -> None:
    """The chosen setting's losses fall, and its minutes rise, with the price of a loss."""
    assume(abs(first - second) > 1e-3)
    low, high = sorted((first, second))
    losses, minutes = settings
    places = range(len(losses))
    cheap, dear = (rule.choose(rule.costs(losses, minutes, p), places) for p in (low, high))
    slack = 1e-9 * (1.0 + high) * (1.0 + float(losses.max()) + float(minutes.max()))
    assert losses[dear] <= losses[cheap] + slack / (high - low)


@given(amounts, prices, st.floats(0, 10), st.floats(0, 100), st.booleans())
def test_a_dominated_candidate_changes_nothing(
    settings: tuple[np.ndarray, np.ndarray],
    price: float,
    more_losses: float,
    more_minutes: float,
    has_today: bool,
) -> None:
    """One that is no better than another in either measure is never chosen, nor another for it."""
    losses, minutes = settings
    places, today = list(range(len(losses))), 0 if has_today else None
    wider = (
        np.append(losses, losses[-1] + more_losses),
        np.append(minutes, minutes[-1] + more_minutes),
    )
    before = rule.choose(rule.costs(losses, minutes, price), places, today)
    after = rule.choose(rule.costs(*wider, price), [*places, len(losses)], today)
    assert before == after


@given(amounts, prices)
def test_a_kept_setting_costs_hardly_more_than_the_best(
    settings: tuple[np.ndarray, np.ndarray], price: float
) -> None:
    """The choice is the best, or today's within the margin."""
    cost = rule.costs(*settings, price)
    chosen = rule.choose(cost, range(len(cost)), today=0)
    assert cost[chosen] - cost.min() <= (
        rule.margin(cost[chosen]) if chosen == 0 else 1e-9 * (1.0 + cost.min())
    )


@given(st.floats(1e-6, 10), st.floats(1e-6, 10), st.floats(0, 1e4), st.floats(1e-3, 1e4))
def test_the_choice_turns_at_the_break_even(
    losses: float, prevented: float, minutes: float, extra: float
) -> None:
    """Of two settings the higher min ISR is chosen above the break-even only."""
    two_settings = np.array([losses + prevented, losses]), np.array([minutes, minutes + extra])
    losses_of, minutes_of = two_settings
    price = float(rule.break_even(losses_of[1], minutes_of[1], losses_of[0], minutes_of[0]))
    assume(price < 1e9)
    chosen = [
        rule.choose(rule.costs(*two_settings, share * price), [0, 1]) for share in (0.999, 1.001)
    ]
    assert chosen == [0, 1]
