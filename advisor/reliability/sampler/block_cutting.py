"""Years cut into blocks of about a second's work, and how long a block takes."""

from __future__ import annotations

import math

from advisor.errors import InputError, shown
from advisor.reliability.failures.mechanisms import Scope
from advisor.reliability.sampler.plan import Block, Plan

# Measured on one core of a small machine, and only ever used to cut the work into blocks.
_SECONDS_PER_EVENT = 70e-9
_SECONDS_PER_EVENT_AND_SET = 15e-9
# Those of cycles are mostly of sets that lack several replicas.
_DEARER_IN_CYCLES = 4.0
# Measured with every mechanism, from 6 to 10,000 brokers. The cut of blocks follows only where
# isolated outages are counted: it decides which random numbers are drawn.
_EXPECTED_PER_EVENT = 100e-9
_EXPECTED_PER_EVENT_AND_SET = 55e-9
_EXPECTED_PER_EVENT_COUNTED = 35e-9
# Work of an event of years where groups stand for sets, in units of that without groups.
_WORK_OF_A_GROUP = 0.15
_SECONDS_TO_BEGIN = 2e-3
_SECONDS_TO_BEGIN_A_SLOT = 3e-6
SECONDS_PER_BLOCK = 1.0
_MOST_YEARS = 10**15
FEWEST_BLOCKS = 32


def check_run(years: object, seed: object) -> None:
    """Check how much is to be sampled, and with which random numbers.

    Raises InputError if the years are not a whole number from 1, or the seed not one from 0 below
        2**64.
    """
    if not isinstance(years, int | float) or isinstance(years, bool) or not _is_whole(years):
        raise InputError(f"years={shown(years)} must be a whole number of simulated years from 1")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InputError(f"seed={shown(seed)} must be a whole number from 0 below 2**64")


def _is_whole(years: float) -> bool:
    return math.isfinite(years) and years >= 1 and years == int(years)


def cut_into_blocks(plan: Plan, years: float, seed: int) -> tuple[Block, ...]:
    """Cut years into blocks of about a second's work.

    Raises InputError: as of `check_run`.
    """
    check_run(years, seed)
    count = max(math.ceil(int(years) / years_per_block(plan)), min(FEWEST_BLOCKS, int(years)))
    least, more = divmod(int(years), count)
    return tuple(Block(seed, index, least + (index < more)) for index in range(count))


def years_per_block(plan: Plan) -> int:
    """Years whose work takes one core about ``SECONDS_PER_BLOCK``; one significant digit.

    Returns from 1; at most as many as a run may have, where failures are hardly ever sampled.
    """
    years = SECONDS_PER_BLOCK / max(_seconds_per_year(plan), SECONDS_PER_BLOCK / _MOST_YEARS)
    digits = 10 ** max(0, math.floor(math.log10(max(years, 1.0))))
    return int(max(1, math.floor(years / digits) * digits))


def _seconds_per_year(plan: Plan) -> float:
    if _counted_share(plan) > 0.0:
        return _events_per_year(plan) * _expected_per_event(plan)
    seconds_per_event = _SECONDS_PER_EVENT + _sets_per_event(plan) * _SECONDS_PER_EVENT_AND_SET
    return _events_per_year(plan) * seconds_per_event


def _sets_per_event(plan: Plan) -> float:
    """How many sets an event is as much work as."""
    sets = plan.replicas * len(plan.sets) / len(plan.racks)
    return sets * _WORK_OF_A_GROUP if plan.by_groups and plan.bias is None else sets


def _events_per_year(plan: Plan) -> float:
    if plan.bias is not None:
        # A cycle is as much work however many years pass between two.
        cycles = plan.strikes_per_year * plan.bias.overlaps
        return _DEARER_IN_CYCLES * plan.bias.steps * cycles
    # Each failure is repaired; a year without events is a step, too.
    events = max(2.0 * plan.strikes_per_year, 1.0)
    return events if plan.splitting is None else events * plan.splitting.work


def seconds_per_block(plan: Plan, years: int) -> float:
    """Seconds that a block of these years takes one core, about.

    Its memory is laid out first, which is most of a short block.
    """
    slots = plan.replicas * len(plan.sets)
    per_year = _events_per_year(plan) * _expected_per_event(plan)
    return years * per_year + _SECONDS_TO_BEGIN + slots * _SECONDS_TO_BEGIN_A_SLOT


def _expected_per_event(plan: Plan) -> float:
    replayed = _EXPECTED_PER_EVENT + _sets_per_event(plan) * _EXPECTED_PER_EVENT_AND_SET
    counted = _counted_share(plan)
    return counted * _EXPECTED_PER_EVENT_COUNTED + (1.0 - counted) * replayed


def _counted_share(plan: Plan) -> float:
    """Share of the events of years as they come that belong to isolated outages, about."""
    as_they_come = plan.bias is None and plan.splitting is None and plan.counts_isolated
    rules = plan.constants
    if not as_they_come or rules.acks != "all" or rules.policy.min_isr >= plan.replicas:
        # What refuses writes or loses records is replayed.
        return 0.0
    of_brokers = [entry for entry in plan.table.kinds if entry.scope is Scope.BROKER]
    mechanisms = [plan.parameters_of(entry) for entry in of_brokers]
    out = len(plan.racks) * sum(isolated.per_hour * isolated.hours for isolated in mechanisms)
    # Nothing is out when it begins, and nothing fails before it ends.
    return math.exp(-2.0 * out)
