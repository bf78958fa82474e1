"""How to sample a plan: crude, or by importance sampling or splitting, where losses are rare.

Where times between failures are exponential and nothing else links one outage to the next, cycles
with forced failures are best; elsewhere years are sampled, and paths that get worse split.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.errors import InputError, shown
from advisor.formatting import significant
from advisor.progress import progress_bar
from advisor.reliability.results.units import CRUDE, IMPORTANCE, SPLITTING
from advisor.reliability.sampler.cycles.pilot import MOST_RUNS, find_bias
from advisor.reliability.sampler.plan import Plan, seconds_per_block
from advisor.reliability.sampler.splitting.pilot import find_retrials

METHODS = (CRUDE, IMPORTANCE, SPLITTING)

# Expected losses from which on crude sampling is good enough: its interval is 40 % wide.
_ENOUGH_LOSSES = 100.0
# Outages of equal weight from which on hours without writes are known to 10 %.
_ENOUGH_OUTAGES = 400.0
# A run that is shorter than the pilot needs none.
_SHORT_S = 1.0
# With more, a cycle in which a rack is replaced takes minutes, and so does a pilot.
_MOST_SETS = 2_000
# With more, the pilot takes half a minute.
_MOST_REPLICAS = 4


def check_method(method: object) -> None:
    """Raise InputError if there is no method of this name."""
    if method is not None and method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise InputError(f"method={shown(method)}: there are {names}, and None to choose for you")


def with_method(plan: Plan, method: str | None, years: int, seed: int) -> tuple[Plan, str]:
    """Prepare a plan for a method, or choose one; and why, if it was chosen here.

    seed: of the pilot's random numbers.
    Raises InputError if the method cannot sample this plan.
    """
    cannot = _why_no_cycles(plan)
    never = _why_no_splitting(plan)
    if method == CRUDE:
        return plan, ""
    if method is not None:
        reason = cannot if method == IMPORTANCE else never
        if reason:
            raise InputError(f"method='{method}' cannot sample this: {reason}")
        prepare = _with_bias if method == IMPORTANCE else _with_retrials
        return prepare(plan, seed)[0], ""
    if cannot and never:
        return plan, never
    if seconds_per_block(plan, years) < _SHORT_S:
        return plan, ""
    if not cannot and len(plan.sets) > _MOST_SETS:
        sets = f"{len(plan.sets):,} replica sets"
        return plan, f"a trial run for importance sampling would take minutes for {sets}"
    if not cannot and plan.replicas > _MOST_REPLICAS:
        replicas = f"{plan.replicas} replicas"
        return plan, f"a trial run for importance sampling would take half a minute for {replicas}"
    prepared, per_year = (_with_retrials if cannot else _with_bias)(plan, seed)
    expected = per_year * years
    if not 0.0 < expected < _ENOUGH_LOSSES:
        losses = f"about {significant(expected)} losses" if expected else "no rare losses"
        return plan, f"{losses} are expected in {years:,} years without it"
    if prepared.bias is not None and not prepared.bias.finds_losses:
        return plan, "losses are too rare for importance sampling to find enough of them"
    if prepared.bias is not None and _shows_few_outages(prepared, years):
        return plan, f"importance sampling of {years:,} years would see too few write outages"
    few_losses = f"only about {significant(expected)} losses are expected in {years:,} years"
    return prepared, f"{few_losses}, and {cannot}" if cannot else few_losses


def _shows_few_outages(plan: Plan, years: int) -> bool:
    """Whether the cycles of these years see too few write outages for a narrow interval."""
    assert plan.bias is not None
    cycles = plan.strikes_per_year * plan.bias.overlaps * years
    return 0.0 < plan.bias.outages * cycles < _ENOUGH_OUTAGES


def _with_bias(plan: Plan, seed: int) -> tuple[Plan, float]:
    """Prepare a plan for cycles; return the losses that the pilot expects in a year, too."""
    with progress_bar(MOST_RUNS, "runs", "Looking for what leads to losses") as note:
        pilot = find_bias(plan, seed, note)
    return replace(plan, bias=pilot.bias), pilot.losses_per_year


def _with_retrials(plan: Plan, seed: int) -> tuple[Plan, float]:
    """Prepare a plan for paths that split; return the losses expected in a year, too."""
    pilot = find_retrials(plan, seed)
    return replace(plan, splitting=pilot.splitting), pilot.losses_per_year


def _why_no_splitting(plan: Plan) -> str:
    """Why paths cannot split; "" if they can."""
    if plan.strikes_per_year <= 0.0:
        return "nothing fails"
    # Retrials force failures; they cannot force what a calendar does.
    return "" if plan.rolling is None else "brokers restart by a calendar"


def _why_no_cycles(plan: Plan) -> str:
    """Why not all cycles begin in the same state; "" if they do."""
    if plan.strikes_per_year <= 0.0:
        return "nothing fails"
    if plan.rolling is not None:
        return "brokers restart by a calendar"
    if plan.lifetimes:
        return "times between failures are not exponential"
    if plan.crews:
        return "repairs wait for a crew"
    if plan.traffic:
        return "traffic changes by the hour"
    if plan.always_measured:
        return f"time counts even while all is healthy ({', '.join(plan.always_measured)})"
    return ""
