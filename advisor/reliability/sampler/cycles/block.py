"""One block of cycles: plain data in, sufficient statistics out, as for a block of years."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.sampler import block as years
from advisor.reliability.sampler.block import Row, generator, mark, run_with_tables
from advisor.reliability.sampler.cycles.memory import (
    LARGEST,
    SQUARES,
    WEIGHTS,
    Cycles,
    new_cycles,
)
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Bias, Block, Plan

_FEWEST_OF_A_KIND = 2


def run_block(plan: Plan, block: Block) -> Row:
    """Sample a block of years, or of cycles if the plan has a bias.

    Returns the same for the same plan and block, wherever it is computed.
    """
    if plan.bias is None:
        return years.run_block(plan, block)
    return run_cycles(plan, plan.bias, block)


def run_cycles(plan: Plan, bias: Bias, block: Block) -> Row:
    """Sample as many cycles as have overlapping outages in the block's years."""
    cycles = block.years * plan.strikes_per_year * bias.overlaps
    begun = begun_by(bias, cycles)
    done, control = sample(plan, bias, begun, block)
    cycle = done.cycle[0]
    # Mean hours from the end of a cycle until the next one begins.
    well = 1.0 / control["strikes_per_hour"]
    waited = float(cycle["done"]) * well
    number, weights, *spread = _sum_losses(done.first_losses, begun)
    to_loss = weights * well + cycle["to_loss"]
    at_risk_squared = 2.0 * well * (waited + cycle["at_risk"]) + cycle["at_risk_squared"]
    return Row(
        block=block.index,
        years=block.years,
        plan=mark(plan, block.seed),
        lost_years=int(number),
        hours=float(waited + cycle["hours"]),
        at_risk_hours=float(waited + cycle["at_risk"]),
        first_losses=int(number),
        loss_moments=int(control["loss_moments"]),
        events=int(control["events"]),
        causes=tuple(done.totals.ravel().tolist()),
        outages=tuple(done.outages_by_length.tolist()),
        cycles=(
            *(float(cycle["done"]), weights, *spread),
            float(to_loss / HOURS_PER_YEAR),
            float(at_risk_squared / HOURS_PER_YEAR**2),
        ),
    )


def _sum_losses(by_kind: NDArray[np.float64], begun: NDArray[np.int64]) -> tuple[float, ...]:
    """Sum first losses over the kinds that began their cycles.

    How many cycles a kind begins is fixed, so the sum of the weights varies less than if each
    loss came by chance. Its variance by strata (Cochran, Sampling Techniques, 1977, 5.3) takes the
    place of the sum of the squares, and is at least that of as many equal weights as cycles.

    by_kind (kinds, 4).
    begun (kinds,).
    Returns number, sum of the weights, variance of this sum, largest weight.
    """
    number, weights, *_ = by_kind.sum(axis=0).tolist()
    sums, squares = by_kind[:, WEIGHTS], by_kind[:, SQUARES]
    unequal = squares - sums**2 / np.maximum(begun, 1)
    variances = np.where(begun > 1, unequal * begun / np.maximum(begun - 1, 1), squares)
    least = weights**2 / max(int(begun.sum()), 1)
    variance = max(math.fsum(np.maximum(variances, 0.0)), least)
    return number, weights, variance, float(by_kind[:, LARGEST].max())


def sample(plan: Plan, bias: Bias, begun: NDArray[np.int64], block: Block) -> tuple[Cycles, Any]:
    """Run cycles, so many begun by each kind of failure, with the random numbers of a block.

    Returns what was counted.
    """
    # Imported here: numba takes a second to import.
    from advisor.reliability.sampler.cycles.kernel import run

    sim = new_state(plan)
    done = new_cycles(sim, bias, begun)
    rng = generator(block)
    run_with_tables(plan, sim, run, lambda table: (rng, table, sim, done))
    return done, sim.control[0]


def begun_by(bias: Bias, cycles: float) -> NDArray[np.int64]:
    """Return how many cycles each kind begins; a few at least, where it happens at all."""
    return np.array(
        [
            max(math.floor(share * cycles), _FEWEST_OF_A_KIND) if share > 0.0 else 0
            for share in bias.beginning
        ],
        dtype=np.int64,
    )
