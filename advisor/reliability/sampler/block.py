"""Sampling one block by the method of its plan: plain data in, sufficient statistics out.

A block is one sample path of the cluster. A year begins with every broker and replica healthy and
ends 8760 hours later; the next begins as soon as all are healthy again. Such moments are
regeneration points, so that the years are independent and start healthy, and ratios of totals over
the whole path are long-run rates. Where times between failures are not exponential, the ages of
what did not fail run on, so that years of a block depend on each other, and blocks do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import AdvisorError
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.sampler.compiled.memory_layout import FINISHED, MISSING, KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table, tables
from advisor.reliability.sampler.cycles import memory as of_cycles
from advisor.reliability.sampler.cycles.memory import Cycles, new_cycles
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Bias, Block, Plan
from advisor.reliability.sampler.splitting.memory import Paths, new_paths

if TYPE_CHECKING:
    from advisor.reliability.solver.jit import Entry

_NEVER_RECOVERED = (
    "all brokers and replicas are well at once less than once in ten years: outages so frequent "
    "and long are outside this model"
)
# An interrupt waits for these many.
_ENTRIES_IN_A_ROW = 100
_FEWEST_OF_A_KIND = 2
# To be raised when a field of `Row` changes its meaning: older checkpoints are then refused.
_LAYOUT = 6
# Places in `Row.cycles`; the last one of paths that split.
WEIGHTS, VARIANCE, LARGEST, DUE = range(1, 5)


class Row(NamedTuple):
    """Sufficient statistics of a block.

    plan: fingerprint of the plan and seed.
    lost_years: years with a loss.
    hours, at_risk_hours: of the whole path; from healthy to the next loss, over and over.
    first_losses, loss_moments: losses that ended such a stretch; moments at which any partition
        lost something.
    causes: `KernelState.totals`, row by row. Loss events and records lost are means given the
        failures, for records at random moments.
    outages: write outages that ended, over partitions, by `KernelState.outages_by_length`.
    cycles: empty for years as they come. Of cycles, where all the above but ``lost_years``,
        ``loss_moments`` and ``events`` is by weight: how many there were; of all first losses the
        sum of the weights, its variance, and the largest; the years at risk before these losses,
        each from the end of the cycle before, and the sum of the squares of the years at risk of
        every cycle, counted in the same way. Of paths that split the first four, with retrials for
        cycles, then the years with a loss, and the years that they are of.
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
    """Sample one block; the same for the same plan and block, wherever it is computed."""
    if plan.splitting is not None:
        return _run_paths(plan, plan.splitting.retrials, block)
    if plan.bias is not None:
        return _run_cycles(plan, plan.bias, block)
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


def _run_cycles(plan: Plan, bias: Bias, block: Block) -> Row:
    """Sample as many cycles as have overlapping outages in the block's years."""
    cycles = block.years * plan.strikes_per_year * bias.overlaps
    begun_cycles = begun_by(bias, cycles)
    cycles_run, control = sample_cycles(plan, bias, begun_cycles, block)
    cycle = cycles_run.cycle[0]
    # Mean hours from the end of a cycle until the next one begins.
    well = 1.0 / control["strikes_per_hour"]
    waited = float(cycle["done"]) * well
    number, weights, *spread = _sum_losses(cycles_run.first_losses, begun_cycles)
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
        causes=tuple(cycles_run.totals.ravel().tolist()),
        outages=tuple(cycles_run.outages_by_length.tolist()),
        cycles=(
            *(float(cycle["done"]), weights, *spread),
            float(to_loss / HOURS_PER_YEAR),
            float(at_risk_squared / HOURS_PER_YEAR**2),
        ),
    )


def _sum_losses(by_kind: NDArray[np.float64], begun_cycles: NDArray[np.int64]) -> tuple[float, ...]:
    """Number, sum of the weights, its variance, and largest weight of the first losses.

    How many cycles a kind begins is fixed, so the sum varies less than if each loss came by chance.
    Its variance by strata (Cochran, Sampling Techniques, 1977, 5.3) is at least that of as many
    equal weights as cycles.

    by_kind (kinds, 4).
    """
    number, weights, *_ = by_kind.sum(axis=0).tolist()
    sums, squares = by_kind[:, of_cycles.WEIGHTS], by_kind[:, of_cycles.SQUARES]
    unequal = squares - sums**2 / np.maximum(begun_cycles, 1)
    variances = np.where(
        begun_cycles > 1, unequal * begun_cycles / np.maximum(begun_cycles - 1, 1), squares
    )
    least_variance = weights**2 / max(int(begun_cycles.sum()), 1)
    variance = max(math.fsum(np.maximum(variances, 0.0)), least_variance)
    return number, weights, variance, float(by_kind[:, of_cycles.LARGEST].max())


def _run_paths(plan: Plan, retrials: tuple[float, ...], block: Block) -> Row:
    """Sample years whose paths split."""
    paths, hours = sample_paths(plan, retrials, block)
    path = paths.path[0]
    return Row(
        block=block.index,
        years=block.years,
        plan=mark(plan, block.seed),
        lost_years=int(path["lost"]),
        hours=hours,
        at_risk_hours=float(path["at_risk"]),
        first_losses=int(path["lost"]),
        loss_moments=int(path["loss_moments"]),
        events=int(path["main_events"] + path["retrial_events"]),
        causes=tuple(paths.totals.ravel().tolist()),
        outages=tuple(paths.outages_by_length.tolist()),
        cycles=(
            float(paths.levels["begun"].sum()),
            *(float(path[name]) for name in ("weights", "squares", "largest", "due")),
            float(block.years),
        ),
    )


def sample_cycles(
    plan: Plan, bias: Bias, begun_cycles: NDArray[np.int64], block: Block
) -> tuple[Cycles, Any]:
    """Run cycles, so many begun by each kind of failure, with the random numbers of a block."""
    sim = new_state(plan)
    cycles, rng = new_cycles(sim, bias, begun_cycles), generator(block)
    _run_with_tables(_cycle_kernel(), plan, sim, lambda table: (rng, table, sim, cycles))
    return cycles, sim.control[0]


def begun_by(bias: Bias, cycles: float) -> NDArray[np.int64]:
    """Return how many cycles each kind begins; a few at least, where it happens at all."""
    return np.array(
        [
            max(math.floor(share * cycles), _FEWEST_OF_A_KIND) if share > 0.0 else 0
            for share in bias.beginning
        ],
        dtype=np.int64,
    )


def sample_paths(
    plan: Plan, retrials: tuple[float, ...], block: Block, span_hours: float = HOURS_PER_YEAR
) -> tuple[Paths, float]:
    """Sample years of a block whose paths split; the hours are those of the main path.

    span_hours: length of each year: that of a pilot may be shorter.
    """
    sim = new_state(plan, grouped=False)
    sim.control[0]["years_left"], sim.control[0]["span_hours"] = block.years, span_hours
    paths, rng = new_paths(sim, retrials), generator(block)
    _run_with_tables(_path_kernel(), plan, sim, lambda table: (rng, table, sim, paths))
    return paths, float(sim.control[0]["now"])


def compile_kernel(plan: Plan) -> None:
    """Compile the kernel that a plan needs, once, for the processes of this machine."""
    kernel = _year_kernel()
    if plan.splitting is not None:
        kernel = _path_kernel()
    elif plan.bias is not None:
        kernel = _cycle_kernel()
    if kernel.can_be_kept and not kernel.is_ready:
        run_block(plan, Block(0, 0, 1))


# Kernels are imported when they are needed: numba takes a second to import.
def _year_kernel() -> Entry:
    from advisor.reliability.sampler.compiled.kernel import run

    return run


def _cycle_kernel() -> Entry:
    from advisor.reliability.sampler.cycles.kernel import run

    return run


def _path_kernel() -> Entry:
    from advisor.reliability.sampler.splitting.kernel import run

    return run


class RollingRow(NamedTuple):
    """Sums over rolling restarts that were sampled alone.

    weight, most_weight, most_struck: sum and largest of their weights, and the largest of those
        with a failure.
    hours, unwritable_hours, records_refused, losses: weighted sums.
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
    largest_weights = float(control["largest_weight"]), float(control["largest_struck_weight"])
    sums = (float(control[f"sum_{name}"]) for name in ("hours", "unwritable", "refused", "lost"))
    return RollingRow(block.years, float(control["sum_weight"]), *largest_weights, *sums)


def _state_after(plan: Plan, block: Block) -> KernelState:
    """The state of a cluster after the years of a block."""
    sim, rng = new_state(plan), generator(block)
    sim.control[0]["years_left"] = block.years
    sim.control[0]["counts_isolated"] = plan.counts_isolated
    if plan.rolling is not None and not plan.rolling.alone:
        # Begin at a random moment of the calendar, so that all years are the same on average.
        control, period = sim.control[0], plan.rolling.period_hours
        begin_hour = rng.random() * period
        control["hour_at_time_0"] = begin_hour % 24.0
        control["roll_date"] = (plan.rolling.hour_of_week - begin_hour) % period
        control["roll_due"] = control["roll_date"]
    _run_with_tables(_year_kernel(), plan, sim, lambda table: (rng, table, sim))
    return sim


def mark(plan: Plan, seed: int) -> str:
    """Identifies the rows of one run."""
    return f"{plan.fingerprint}{_LAYOUT:x}-{seed}"


def generator(block: Block) -> np.random.Generator:
    """Random numbers of a block, whatever others are run."""
    key = np.array([block.seed, block.index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def _run_with_tables(
    run: Entry, plan: Plan, sim: KernelState, arguments: Callable[[Table], tuple[Any, ...]]
) -> None:
    """Run a kernel, and fill in the transition table whenever it lacks an entry."""
    # Imported here: numba takes a second to import.
    from advisor.reliability.solver.jit import interrupts_deferred

    growing, control = tables(plan.constants, plan.replicas, plan.states), sim.control[0]
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
