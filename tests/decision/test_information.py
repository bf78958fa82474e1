"""The value of information of one number, against nested draws, and what narrows a cost."""

import numpy as np
import pytest

from advisor.decision.rule import narrowing, value_of_information


def two_costs(rate: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Two settings: one costs 10 an event of either kind, the other 40 minutes and half of that."""
    whole = 10.0 * rate + second
    return np.stack([whole, 40.0 + whole / 2.0], axis=-1)


def drawn(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of both numbers, log-normal as those of a card."""
    generator = np.random.default_rng(seed)
    return (
        np.exp(generator.normal(2.0, 0.7, size)),
        np.exp(generator.normal(2.0, 0.9, size)),
    )


def nested(which: int, inner: int = 4_000) -> tuple[float, float]:
    """The value of knowing one number by definition, an inner mean at each of its values.

    With its standard error.
    """
    rest = drawn(inner, 11)[1 - which]
    usual = int(two_costs(*drawn(400_000, 13)).mean(axis=0).argmin())
    saved = []
    for value in drawn(4_000, 12)[which]:
        pair = (value, rest) if which == 0 else (rest, value)
        mean = two_costs(*np.broadcast_arrays(*pair)).mean(axis=0)
        saved.append(mean[usual] - mean.min())
    return float(np.mean(saved)), float(np.std(saved) / len(saved) ** 0.5)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("size", [128, 8_192])
def test_value_of_information_is_that_of_nested_draws(which: int, size: int) -> None:
    """What one number saves agrees with nested draws, within three standard errors of both."""
    numbers = drawn(size, 7)
    value = value_of_information(numbers[which], two_costs(*numbers))
    right, error = nested(which)
    assert value.minutes == pytest.approx(right, abs=3.0 * (value.error**2 + error**2) ** 0.5)
    if size > 1_000:
        assert value.error < 0.3
        assert (value.minutes > 5.0) is (which == 0)


def test_a_number_without_effect_has_no_value() -> None:
    """An unrelated number saves nothing beyond the noise, at 128 draws as at 4,096."""
    for size in (128, 4_096):
        numbers = drawn(size, 3)
        unrelated = np.random.default_rng(4).normal(size=size)
        value = value_of_information(unrelated, two_costs(*numbers))
        assert value.minutes <= 2.0 * value.error + 1e-9


def test_noise_seems_to_save_as_seldom_as_not() -> None:
    """Counted where it was not placed, a cut through noise saves nothing about half of the time."""
    cost, generator = two_costs(*drawn(128, 3)), np.random.default_rng(5)
    values = [value_of_information(generator.normal(size=128), cost).minutes for _ in range(60)]
    assert sum(value > 0.0 for value in values) < 45


def test_where_one_setting_is_always_best_nothing_has_a_value() -> None:
    """A dominated setting is never chosen, whatever is known."""
    rate, second = drawn(256, 5)
    cost = two_costs(rate, second)
    cost[:, 1] = cost[:, 0] + 1.0
    assert value_of_information(rate, cost) == (0.0, 0.0)


def test_certain_losses_leave_a_finite_value() -> None:
    """An infinite cost counts as one that is out of the question."""
    rate = np.linspace(0.0, 1.0, 64)
    cost = np.stack([np.where(rate > 0.5, np.inf, 0.0), np.full(64, 5.0)], axis=1)
    assert np.isfinite(value_of_information(rate, cost)).all()


def test_narrowing_is_the_share_of_the_variance() -> None:
    """Of a product of two numbers each explains its part of the logarithm's variance."""
    generator = np.random.default_rng(2)
    wide, narrow = generator.normal(0.0, 2.0, 4_096), generator.normal(0.0, 1.0, 4_096)
    cost = np.exp(wide + narrow)
    assert narrowing(wide, cost) == pytest.approx(0.8, abs=0.08)
    assert narrowing(narrow, cost) == pytest.approx(0.2, abs=0.05)
    assert narrowing(generator.normal(size=4_096), cost) < 0.01
    assert narrowing(wide, np.ones(4_096)) == 0.0


def test_a_number_that_explains_nothing_narrows_nothing_in_most_draws() -> None:
    """What the parabola fits of pure chance is subtracted: few draws seem to explain a share."""
    generator = np.random.default_rng(6)
    shares = [
        narrowing(generator.normal(size=128), np.exp(generator.normal(size=128)))
        for _ in range(200)
    ]
    assert sum(share == 0.0 for share in shares) > 100
    assert np.median(shares) == 0.0
