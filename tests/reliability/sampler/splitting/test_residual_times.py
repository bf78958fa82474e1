"""What is left of a time that has run for a while, in the kernel: against scipy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import stats

from advisor import Cluster, Config
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.sampler.splitting import kernel
from advisor.reliability.solver import jit
from sampled_runs import QUIET, card

MEAN = 2400.0
WITHIN = 0.01
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "weibull": (
        {"distribution": "weibull", "shape": 0.6},
        stats.weibull_min(0.6, scale=1.0 / math.gamma(1.0 + 1.0 / 0.6)),
    ),
    "lognormal": (
        {"distribution": "lognormal", "sigma": 0.8},
        stats.lognorm(0.8, scale=math.exp(-0.32)),
    ),
    "gamma": ({"distribution": "gamma", "shape": 3.0}, stats.gamma(3.0, scale=1.0 / 3.0)),
    "flat gamma": ({"distribution": "gamma", "shape": 0.3}, stats.gamma(0.3, scale=1.0 / 0.3)),
    "narrow gamma": ({"distribution": "gamma", "shape": 500.0}, stats.gamma(500.0, scale=0.002)),
}
"""Distributions with a mean of 1, by scipy."""


@pytest.fixture(scope="module")
def drawn() -> Callable[..., np.ndarray]:
    """Draw with the kernel's own functions what follows an age, in units of the mean.

    The first three numbers are the chance to be due soon and the survival functions of two times.
    """
    survival, chance_within = kernel.survival, kernel.chance_within
    due, due_within = kernel.draw_due, kernel.draw_due_within
    invert = kernel._invert

    def fill(rng: Any, sim: Any, way: int, hours: float, found: Any) -> None:
        now = sim.control[0].now
        found[0] = chance_within(sim, 0, hours)
        found[1], found[2] = survival(sim, 0, 0.5 * now), survival(sim, 0, 2.0 * now)
        for place in range(3, len(found)):
            if way == 0:
                found[place] = due(rng, sim, 0)
            elif way == 1:
                found[place] = due_within(rng, sim, 0, hours, found[0])
            else:
                found[place] = now + invert(sim, 0, now, 1000.0 * now, rng.random())

    compiled = njit(**jit._OPTIONS)(fill)

    def run(written: dict[str, Any], age: float, way: int) -> np.ndarray:
        model = card(broker_crash={"per_year": 3.65, "minutes": 5.0, "lifetime": written})
        cluster, config = Cluster.uniform(1, 1), Config(replication_factor=1)
        sim = new_state(plan_for(cluster, config, model, QUIET))
        sim.control[0]["now"], sim.renewals["due"] = age * MEAN, 1e9
        found = np.empty(4003)
        compiled(np.random.Generator(np.random.Philox(11)), sim, way, WITHIN * MEAN, found)
        return found

    return run


@pytest.mark.parametrize("age", [0.4, 1.05])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_is_conditional_on_the_age(
    kind: str, age: float, drawn: Callable[..., np.ndarray]
) -> None:
    """By rejection, by inversion, and within some hours: the distribution given the age."""
    written, truth = KINDS[kind]
    alive = truth.sf(age)
    soon = 1.0 - truth.sf(age + WITHIN) / alive
    for way in range(3):
        chance, earlier, later, *due = drawn(written, age, way)
        assert [earlier, later] == pytest.approx(truth.sf([0.5 * age, 2.0 * age]), rel=1e-9)
        if way != 1:
            assert stats.kstest(np.array(due) / MEAN, lambda x: 1.0 - truth.sf(x) / alive)[1] > 1e-3
        elif soon > 1e-6:
            assert chance == pytest.approx(soon, rel=1e-6)
            times = np.array(due) / MEAN
            assert stats.kstest(times, lambda x: (1.0 - truth.sf(x) / alive) / soon)[1] > 1e-3
            assert age <= times.min() <= times.max() <= age + WITHIN + 1e-12
        else:
            assert chance <= 1e-6
