"""Sampling one block: plain data in, sufficient statistics out.

A block is one sample path of the cluster. A year begins with every broker and replica healthy and
ends 8760 hours later; the next begins as soon as all are healthy again. Such moments are
regeneration points, so that the years are independent and start healthy, and ratios of totals over
the whole path are long-run rates.

Where times between failures are not exponential, a year still begins healthy, but the ages of what
did not fail run on from year to year. So years of a block depend on each other, and blocks do not:
each begins with ages as at a random moment.

Random numbers are Philox's (Salmon et al., SC 2011), keyed by the seed and the block's number, so
that a block's outcome does not depend on where or after which other block it is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from advisor.errors import AdvisorError
from advisor.reliability.sampler.compiled.memory_layout import FINISHED, MISSING, KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table, tables
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Block, Plan, RollingRestarts

if TYPE_CHECKING:
    from advisor.reliability.solver.jit import Entry

_NEVER_RECOVERED = (
    "all brokers and replicas are well at once less than once in ten years: outages so frequent "
    "and long are outside this model"
)
# An interrupt waits for these many.
_ENTRIES_IN_A_ROW = 100


# To be raised when a field of `Row` changes its meaning: older checkpoints are then refused.
_LAYOUT = 5
# Places in `Row.cycles`.
CYCLES, WEIGHTS, VARIANCE, LARGEST = range(4)
# Of cycles.
TO_LOSS, AT_RISK_SQUARED = 4, 5
# Of paths that split.
DUE, YEARS = 4, 5


class Row(NamedTuple):
    """Sufficient statistics of a block.

    block, years: number of the block, and its healthy years.
    plan: fingerprint of the plan and seed.
    lost_years: years with a loss.
    hours: of the whole path.
    at_risk_hours: from healthy to the next loss, over and over.
    first_losses, loss_moments: losses that ended such a stretch; moments at which any partition
        lost something.
    causes: loss events, records lost, unwritable and unreadable hours, records refused and stalled
        hours, summed over partitions, and first losses: for each of them the columns of
        `KernelState.totals`. Loss events and records lost are means given the failures, for records
        at random moments.
    outages: write outages that ended, over partitions, by `KernelState.outages_by_length`.
    cycles: empty for years as they come. Of :mod:`advisor.reliability.sampler.cycles`, where all
        the above but ``lost_years``, ``loss_moments`` and ``events`` is by weight: how many there
        were; of all first losses the sum of the weights, its variance, and the largest; the years
        at risk before these losses, each from the end of the cycle before, and the sum of the
        squares of the years at risk of every cycle, counted in the same way. Of
        :mod:`advisor.reliability.sampler.splitting` the first four, with retrials for cycles, then
        the years with a loss, and the years that they are of.
    """

    block: int
    years: int
    plan: str
    lost_years: int
    hours: float
    at_risk_hours: float
    first_losses: int
    loss_moments: int
    events: int
    causes: tuple[float, ...]
    outages: tuple[float, ...]
    cycles: tuple[float, ...] = ()


def run_block(plan: Plan, block: Block) -> Row:
    """Sample one block.

    Returns the same for the same plan and block, wherever it is computed.
    """
    sim = _state_after(plan, block)
    control = sim.control[0]
    return Row(
        block=block.index,
        years=block.years,
        plan=mark(plan, block.seed),
        lost_years=int(control["lost_years"]),
        hours=float(control["now"]),
        at_risk_hours=float(control["at_risk_hours"]),
        first_losses=int(control["first_losses"]),
        loss_moments=int(control["loss_moments"]),
        events=int(control["events"]),
        causes=tuple(sim.totals.ravel().tolist()),
        outages=tuple(sim.outages_by_length.tolist()),
    )


class RollingRow(NamedTuple):
    """Sums over rolling restarts that were sampled alone.

    weight, most_weight, most_struck: sum and largest of their weights, and the largest of those
        with a failure.
    hours, unwritable_hours, records_refused, losses: weighted sums: how long they took,
        partition-hours, records, and those that lost a record.
    """

    restarts: int
    weight: float
    most_weight: float
    most_struck: float
    hours: float
    unwritable_hours: float
    records_refused: float
    losses: float


def run_rolling_block(plan: Plan, block: Block) -> RollingRow:
    """Sample the rolling restarts of one block, of a plan whose ``rolling.alone`` is set."""
    control = _state_after(plan, block).control[0]
    most = float(control["largest_weight"]), float(control["largest_struck_weight"])
    sums = (float(control[f"sum_{name}"]) for name in ("hours", "unwritable", "refused", "lost"))
    return RollingRow(block.years, float(control["sum_weight"]), *most, *sums)


def _state_after(plan: Plan, block: Block) -> KernelState:
    """The state of a cluster after the years of a block."""
    sim, rng = new_state(plan), generator(block)
    sim.control[0]["years_left"] = block.years
    sim.control[0]["counts_isolated"] = plan.counts_isolated
    if plan.rolling is not None and not plan.rolling.alone:
        _set_date(plan.rolling, sim, rng)
    _run_years(plan, sim, rng)
    return sim


def _set_date(rolling: RollingRestarts, sim: KernelState, rng: np.random.Generator) -> None:
    """Begin at a random moment of the calendar, so that all years are the same on average."""
    control = sim.control[0]
    begun = rng.random() * rolling.period_hours
    control["hour_at_time_0"] = begun % 24.0
    control["roll_date"] = (rolling.hour_of_week - begun) % rolling.period_hours
    control["roll_due"] = control["roll_date"]


def mark(plan: Plan, seed: int) -> str:
    """Identifies the rows of one run."""
    return f"{plan.fingerprint()}{_LAYOUT:x}-{seed}"


def generator(block: Block) -> np.random.Generator:
    """Random numbers of a block, whatever others are run."""
    key = np.array([block.seed, block.index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def _run_years(plan: Plan, sim: KernelState, rng: np.random.Generator) -> None:
    # Imported here: numba takes a second to import.
    from advisor.reliability.sampler.compiled.kernel import run

    run_with_tables(plan, sim, run, lambda table: (rng, table, sim))


def run_with_tables(
    plan: Plan, sim: KernelState, run: Entry, arguments: Callable[[Table], tuple[Any, ...]]
) -> None:
    """Run a kernel, and fill in the transition table whenever it lacks an entry."""
    # Imported here: numba takes a second to import.
    from advisor.reliability.solver.jit import interrupts_deferred

    growing, control = tables(plan.constants, plan.replicas), sim.control[0]
    code = run(*arguments(growing.table))
    while code == MISSING:
        # A pilot lacks 100,000 entries: the usual way in would take most of its time.
        with interrupts_deferred():
            for _ in range(_ENTRIES_IN_A_ROW):
                missing = (
                    control[name] for name in ("missing_state", "missing_event", "missing_mask")
                )
                growing.fill(*map(int, missing))
                code = int(run.shortest_way_in(*arguments(growing.table)))
                if code != MISSING:
                    break
    if code != FINISHED:
        raise AdvisorError(_NEVER_RECOVERED)
