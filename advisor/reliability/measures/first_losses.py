"""First loss of any set of a case: computed, or scaled from fewer sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from advisor.reliability import measure_table
from advisor.reliability.case import Case
from advisor.reliability.common_cause.common_events import Unexamined
from advisor.reliability.common_cause.first_loss import (
    ALL_THAT_MATTERS,
    KAFKA_TAILS,
    ONE_OF_MANY,
    AnyLoss,
    SetsAlone,
    any_loss,
    scaled,
)
from advisor.reliability.common_cause.placement import Placement
from advisor.reliability.common_cause.set_losses import SetLosses, sharing_apart
from advisor.reliability.common_cause.struck_racks import StrikeRates
from advisor.reliability.failures.fault_processes import Exchangeable
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.measures.replica_set import measure
from advisor.reliability.measures.solved_chain import SetMeasures

Pattern = tuple[int, ...]
Pair = tuple[AnyLoss, AnyLoss]
"""A first loss as counted, and the one with the upper estimate of its mean time."""
FirstLosses = Callable[[Case, Mapping[Pattern, SetMeasures]], Pair]

# With more distinct sets than _MANY_SETS, another card and the upper estimate are combined on
# _FEWER_SETS of them.
_MANY_SETS, _FEWER_SETS = 2000, 400


def measure_sets(case: Case) -> dict[Pattern, SetMeasures]:
    """Measures of one set of each rack pattern."""
    shares = measure_table.of_states()
    return {
        pattern: measure(
            pattern, case.chain, case.timeouts, case.stalls, case.partitions_together, shares
        )
        for pattern in case.patterns
    }


def compute_first_losses(case: Case, sets: Mapping[Pattern, SetMeasures]) -> Pair:
    """First loss of all sets: as counted, and the one with the upper estimate of its mean time."""
    return _first_losses(case, sets, ALL_THAT_MATTERS)


def first_losses_of_many(case: Case, sets: Mapping[Pattern, SetMeasures]) -> Pair:
    """The same for one of many topics, where less is examined for what sets share."""
    return _first_losses(case, sets, ONE_OF_MANY)


TOGETHER: Mapping[FirstLosses, Unexamined] = MappingProxyType(
    {compute_first_losses: ALL_THAT_MATTERS, first_losses_of_many: ONE_OF_MANY}
)
"""What is examined by those that can be computed for many draws at once."""


def _first_losses(case: Case, sets: Mapping[Pattern, SetMeasures], unexamined: Unexamined) -> Pair:
    counted = _combined(case, sets, case.placement, 0, unexamined)
    if all(measures.losses[0] is measures.losses[1] for measures in sets.values()):
        return counted, counted
    if (difference := _apart(case, sets) * counted.mean_years) <= unexamined.most:
        error = counted.error + difference
        return (counted._replace(error=error),) * 2
    if not _is_large(case):
        upper = _combined(case, sets, case.placement, 1, unexamined)
    else:
        fewer = case.placement.some_of(_FEWER_SETS, case.exchangeable)
        before, after = (
            _combined(case, sets, fewer, estimate, unexamined) for estimate in range(2)
        )
        upper = scaled(_alone(case, sets)[1], counted, before, after)
    return counted, max(counted, upper, key=lambda loss: loss.mean_years)


def _apart(case: Case, sets: Mapping[Pattern, SetMeasures]) -> float:
    """How much the two estimates of all sets can differ, in losses a year."""
    return math.fsum(
        members.lists * sharing_apart(*sets[pattern].losses)
        for pattern, members in case.patterns.items()
    )


def _is_large(case: Case) -> bool:
    placement = case.placement
    if len(placement.sets) <= _MANY_SETS:
        return False
    return placement.distinct_sets(case.exchangeable) > _MANY_SETS


def _combined(
    case: Case,
    sets: Mapping[Pattern, SetMeasures],
    placement: Placement,
    estimate: int,
    unexamined: Unexamined,
) -> AnyLoss:
    """First loss of the sets of a placement; ``estimate``: 1 for the upper one."""
    remembered = _few_sets if len(placement.sets) <= _MANY_SETS else _many_sets
    return remembered(
        placement,
        case.exchangeable,
        case.chain.constants.acks != "all",
        case.events_per_year,
        chances_along(case),
        unexamined,
        picks(case),
        tuple(
            (pattern, sets[pattern].losses[estimate])
            for pattern in placement.replica_set_classes(case.exchangeable)
        ),
    )


def scaled_from_fewer(case: Case, nominal: Pair) -> FirstLosses | None:
    """First losses of a case on other cards, scaled from fewer sets; None if it has few itself."""
    if not _is_large(case):
        return None
    fewer = case.placement.some_of(_FEWER_SETS, case.exchangeable)

    def on_fewer(drawn_case: Case, sets: Mapping[Pattern, SetMeasures]) -> Pair:
        counted, upper = (
            _combined(drawn_case, sets, fewer, estimate, ALL_THAT_MATTERS) for estimate in range(2)
        )
        return counted, upper

    @lru_cache(maxsize=1)
    def before() -> Pair:
        rough = case.roughly(case.model)
        return on_fewer(rough, measure_sets(rough))

    def first_losses(drawn_case: Case, sets: Mapping[Pattern, SetMeasures]) -> Pair:
        after = on_fewer(drawn_case, sets)
        losses = zip(_alone(drawn_case, sets), nominal, before(), after, strict=True)
        counted, upper = (scaled(*estimates) for estimates in losses)
        return counted, max(counted, upper, key=lambda loss: loss.mean_years)

    return first_losses


def _alone(case: Case, sets: Mapping[Pattern, SetMeasures]) -> tuple[SetsAlone, SetsAlone]:
    """The sets by themselves, for the first loss as counted and for its upper estimate."""
    tails = case.chain.constants.acks != "all"
    counted, upper = (
        SetsAlone.of(
            {pattern: measures.losses[estimate] for pattern, measures in sets.items()},
            *(case.placement, case.exchangeable, tails),
        )
        for estimate in range(2)
    )
    return counted, upper


def chances_along(case: Case) -> tuple[tuple[str, float], ...]:
    """Probability that what strikes a rack takes another along, or a restart another restart."""
    mechanisms = [table()[name] for name in case.model.mechanisms]
    paths = {
        mechanism.name: mechanism.path(mechanism.spreads or mechanism.overlaps)
        for mechanism in mechanisms
    }
    return tuple((name, case.model.get(path, 0.0)) for name, path in paths.items() if path)


def picks(case: Case) -> tuple[tuple[str, Pick], ...]:
    """How the mechanisms that strike brokers by chance pick them."""
    mechanisms = [table()[name] for name in case.model.mechanisms]
    return tuple(
        (mechanism.name, Pick.of(mechanism, case.model))
        for mechanism in mechanisms
        if mechanism.share
    )


def _all_sets(
    placement: Placement,
    exchangeable: Exchangeable,
    leader_tails: bool,
    events_per_year: tuple[tuple[str, float], ...],
    along: tuple[tuple[str, float], ...],
    unexamined: Unexamined,
    picks: tuple[tuple[str, Pick], ...],
    losses: tuple[tuple[Pattern, SetLosses], ...],
) -> AnyLoss:
    """Combine the sets' losses, on which the producers' timeouts have no influence."""
    struck = StrikeRates.of([dict(events_per_year)], [dict(along)], [dict(picks)])
    tails = KAFKA_TAILS if leader_tails else None
    return any_loss(dict(losses), struck, placement, exchangeable, tails, unexamined).of(0)


_few_sets = lru_cache(maxsize=128)(_all_sets)
# A placement of many partitions takes tens of megabytes, so only the last few are kept.
_many_sets = lru_cache(maxsize=8)(_all_sets)
