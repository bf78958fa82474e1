"""What is left of a time that has run for a while, compiled: survival, and conditional draws.

A time T of age a has more than x left with probability S(a + x) / S(a), where S is the survival
function of its distribution. Draws are exact: by rejection, or by inversion of S.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.times import time_distribution as kinds
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.renewal_kernel import draw
from advisor.reliability.solver.jit import called

_WEIBULL, _LOGNORMAL, _GAMMA = kinds.WEIBULL, kinds.LOGNORMAL, kinds.GAMMA
_FIXED, _EMPIRICAL = kinds.FIXED, kinds.EMPIRICAL
_ROOT_2 = math.sqrt(2.0)
_TRIES = 20
_HALVINGS = 160
_TERMS = 5000
_EXACT = 1e-15
_CLOSE = 4e-16
# Below, the difference of two survival probabilities has too few digits left.
_LEAST_CHANCE = 1e-9
_LEAST_SURVIVAL = 1e-6


@called
def survival(sim: KernelState, number: int, hours: float) -> float:
    """Probability that a time of a distribution is longer."""
    distribution = sim.distributions[number]
    kind, scale, parameter = distribution.kind, distribution.scale, distribution.parameter
    if hours <= 0.0:
        return 1.0
    if kind == _FIXED:
        return 1.0 if hours < scale else 0.0
    if kind == _WEIBULL:
        return math.exp(-((hours / scale) ** parameter))
    if kind == _LOGNORMAL:
        return 0.5 * math.erfc(math.log(hours / scale) / (parameter * _ROOT_2))
    if kind == _GAMMA:
        return _upper_gamma(parameter, hours / scale)
    if kind == _EMPIRICAL:
        start, end, longer = distribution.start, distribution.end, 0
        for place in range(start, end):
            longer += scale * sim.values[place] > hours
        return float(longer / (end - start))
    return math.exp(-hours / scale)


@called
def _upper_gamma(shape: float, x: float) -> float:
    """Regularized upper incomplete gamma function (Numerical Recipes, 6.2)."""
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        term = total = 1.0 / shape
        for n in range(1, _TERMS):
            term *= x / (shape + n)
            total += term
            if term < _EXACT * total:
                break
        return max(1.0 - front * total, 0.0)
    b = x + 1.0 - shape
    c, d = np.inf, 1.0 / b
    fraction = d
    for n in range(1, _TERMS):
        a = -n * (n - shape)
        b += 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        fraction *= c * d
        if abs(c * d - 1.0) < _EXACT:
            break
    return front * fraction


@called
def chance_within(sim: KernelState, number: int, hours: float) -> float:
    """Probability that the clock of a mechanism is due within some hours, given its age.

    0 where it does not run, and where it is too small to be computed: such a clock is left as it
    is.
    """
    clock, now = sim.renewals[number], sim.control[0].now
    if clock.due == np.inf or clock.since == np.inf:
        return 0.0
    if sim.distributions[clock.distribution].kind == _FIXED:
        return 1.0 if clock.due <= now + hours else 0.0
    age = now - clock.since
    alive = survival(sim, clock.distribution, age)
    if alive < _LEAST_SURVIVAL:
        return 0.0
    chance = 1.0 - survival(sim, clock.distribution, age + hours) / alive
    return chance if chance > _LEAST_CHANCE else 0.0


@called
def draw_due(rng: Generator, sim: KernelState, number: int) -> float:
    """Draw anew when a clock is due, given its age."""
    clock, now = sim.renewals[number], sim.control[0].now
    age = now - clock.since
    if (
        sim.distributions[clock.distribution].kind == _FIXED
        or survival(sim, clock.distribution, age) < _LEAST_SURVIVAL
    ):
        return float(clock.due)
    for _ in range(_TRIES):
        whole = draw(rng, sim, clock.distribution)
        if whole > age:
            return float(clock.since + whole)
    most = sim.distributions[clock.distribution].scale
    chance = rng.random()
    while _passed(sim, clock.distribution, age, most) < chance:
        most *= 2.0
    return float(now + _invert(sim, clock.distribution, age, most, chance))


@called
def draw_due_within(
    rng: Generator, sim: KernelState, number: int, hours: float, chance: float
) -> float:
    """Draw when a clock is due, given its age and that it is so within some hours.

    ``chance`` is the probability of that.
    """
    clock, now = sim.renewals[number], sim.control[0].now
    if sim.distributions[clock.distribution].kind == _FIXED:
        return float(clock.due)
    age, chance = now - clock.since, chance * rng.random()
    if sim.distributions[clock.distribution].kind == _WEIBULL:
        weibull = sim.distributions[clock.distribution]
        scale, shape = weibull.scale, weibull.parameter
        passed = (age / scale) ** shape - math.log1p(-chance)
        return float(max(clock.since + scale * passed ** (1.0 / shape), now))
    return float(now + _invert(sim, clock.distribution, age, hours, chance))


@called
def _passed(sim: KernelState, distribution: int, age: float, hours: float) -> float:
    """Probability that a time of some age ends within some hours."""
    return 1.0 - survival(sim, distribution, age + hours) / survival(sim, distribution, age)


@called
def _invert(sim: KernelState, distribution: int, age: float, most: float, chance: float) -> float:
    """Invert `_passed`: the hours, below ``most``, within which a time ends with ``chance``.

    Bisection, with linear interpolation at every second step.
    """
    alive, least, low, high = (
        survival(sim, distribution, age),
        0.0,
        0.0,
        _passed(sim, distribution, age, most),
    )
    for turn in range(_HALVINGS):
        middle = 0.5 * (least + most)
        if turn % 2 == 0 and low < chance < high:
            middle = least + (most - least) * (chance - low) / (high - low)
        found = 1.0 - survival(sim, distribution, age + middle) / alive
        if abs(found - chance) <= _CLOSE:
            return float(middle)
        if found < chance:
            least, low = middle, found
        else:
            most, high = middle, found
        if most - least <= _EXACT * most:
            break
    return float(most)
