"""How to sample a plan: years as they come, or cycles in which rare failures are likelier."""

from __future__ import annotations

from dataclasses import replace

from advisor.errors import InputError, shown
from advisor.formatting import significant
from advisor.reliability.results.units import CRUDE, IMPORTANCE
from advisor.reliability.sampler.block_cutting import seconds_per_block
from advisor.reliability.sampler.cycles.pilot import find_bias
from advisor.reliability.sampler.plan import Plan

METHODS = (CRUDE, IMPORTANCE)

# From so many expected losses on, years as they come say enough: their interval is 40 % wide.
_ENOUGH_LOSSES = 100.0
# A run that is shorter than the pilot is not worth one.
_SHORT_S = 1.0


def check_method(method: object) -> None:
    """Refuse what is no method.

    Raises
    ------
    InputError
        With the ones that there are.
    """
    if method is not None and method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise InputError(f"method={shown(method)}: there are {names}, and None to choose for you")


def with_method(plan: Plan, method: str | None, years: int, seed: int) -> tuple[Plan, str]:
    """Prepare a plan for a method, or choose one.

    Parameters
    ----------
    plan : Plan
    method : {"crude", "importance"}, optional
    years : int
        To be sampled.
    seed : int
        Of the pilot's random numbers.

    Returns
    -------
    plan : Plan
        With a bias for "importance".
    why : str
        Why this method, if it was chosen here; without a full stop.

    Raises
    ------
    InputError
        If the method cannot sample this plan.
    """
    cannot = _why_no_cycles(plan)
    if method == IMPORTANCE and cannot:
        raise InputError(f"method='{IMPORTANCE}' cannot sample this: {cannot}")
    if method == CRUDE:
        return plan, ""
    if method is None and cannot:
        return plan, f"{cannot}, so years are sampled as they come"
    if method is None and seconds_per_block(plan, years) < _SHORT_S:
        return plan, ""
    found = find_bias(plan, seed)
    expected = found.losses_per_year * years
    if method is None and not 0.0 < expected < _ENOUGH_LOSSES:
        losses = f"about {significant(expected)} losses" if expected else "no losses that are rare"
        return plan, f"{losses} are expected in {years:,} years as they come"
    why = f"only about {significant(expected)} losses are expected in {years:,} years"
    return replace(plan, bias=found.bias), why if method is None else ""


def _why_no_cycles(plan: Plan) -> str:
    """Why cycles do not begin alike; "" if they do."""
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
    return ""
