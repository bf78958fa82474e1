"""One block of years whose paths split: plain data in, sufficient statistics out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.sampler.block import Row, generator, mark, run_with_tables
from advisor.reliability.sampler.cycles import block as cycles
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.splitting.memory import Paths, new_paths

if TYPE_CHECKING:
    from advisor.reliability.solver.jit import Entry


def run_block(plan: Plan, block: Block) -> Row:
    """Sample a block by the method of its plan.

    Returns the same for the same plan and block, wherever it is computed.
    """
    if plan.splitting is None:
        return cycles.run_block(plan, block)
    paths, hours = sample(plan, plan.splitting.retrials, block)
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


def compile_kernel(plan: Plan) -> None:
    """Compile the kernel that a plan needs, once, for the processes of this machine."""
    kernel = _kernel_of(plan)
    if kernel.can_be_kept and not kernel.is_ready:
        run_block(plan, Block(0, 0, 1))


def _kernel_of(plan: Plan) -> Entry:
    # Imported here: numba takes a second to import.
    if plan.splitting is not None:
        from advisor.reliability.sampler.splitting.kernel import run
    elif plan.bias is not None:
        from advisor.reliability.sampler.cycles.kernel import run
    else:
        from advisor.reliability.sampler.compiled.kernel import run
    return run


def sample(
    plan: Plan, retrials: tuple[float, ...], block: Block, span_hours: float = HOURS_PER_YEAR
) -> tuple[Paths, float]:
    """Sample the years of a block, with its random numbers.

    span_hours: length of each year: that of a pilot may be shorter.
    Returns what was counted; hours: of the main path.
    """
    # Imported here: numba takes a second to import.
    from advisor.reliability.sampler.splitting.kernel import run

    sim = new_state(plan, grouped=False)
    sim.control[0]["years_left"], sim.control[0]["span_hours"] = block.years, span_hours
    paths = new_paths(sim, retrials)
    rng = generator(block)
    run_with_tables(plan, sim, run, lambda table: (rng, table, sim, paths))
    return paths, float(sim.control[0]["now"])
