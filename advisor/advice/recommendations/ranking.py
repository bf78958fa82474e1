"""The order of candidate settings: which one is recommended, and which pays for its replicas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.advice.choice import Choice, decided_measures, measures_of
from advisor.advice.goals import SURVIVE_WITHOUT_LOSS, Goals, decades_short
from advisor.protocol.rules.config import Config
from advisor.reliability.results.sensitivity import draws_below

# Margin in decades of a measure that is 0 or has no limit; larger than any other.
_LARGEST_MARGIN = 20.0
# Five per cent. Failure rates are not known well enough for a smaller difference to count.
_TIE_DECADES = 0.02
_TIE = 10.0**_TIE_DECADES
_SURE = 0.95
"""Share of the card's draws in which a setting has to be better to be surely better."""
_DIGITS = 9
_COMPARED = (
    "loss_probability_per_year",
    "acked_records_lost_per_year",
    "write_unavailability",
    "records_refused_per_year",
)
# A probability near 1 tells nothing apart, the number of losses does.
_TELLING = {"loss_probability_per_year": "loss_events_per_year"}


def ranked(choices: Sequence[Choice], goals: Goals, fewest_replicas: int = 1) -> list[Choice]:
    """Return the choices, best first.

    Those with fewer than `fewest_replicas` come last, whatever they are like: they stand there for
    comparison, and are not recommended.

    Those that no other one dominates come first (`dominates`); of these the ones that meet every
    goal, ordered by number of risks that an audit would find, then by cost, then by the margin to
    the goal that is met most narrowly.

    The others are ordered by number of missed goals; then, among those that miss a durability
    goal, first those that tolerate a broker failure without loss and with writes; then by how many
    decades they miss the goals, durability first. Those within `_TIE_DECADES` of the best count
    as equal, and are ordered by risks, cost, and tolerated broker failures.

    Last, the first choice yields to one with fewer replicas or risks unless it is better for a
    missed goal by more than the failure model is sure of (`is_surely_better`).
    """
    enough = [c for c in choices if has_replicas(c, fewest_replicas)]
    scarce = [c for c in choices if not has_replicas(c, fewest_replicas)]
    return [*_best_first(enough, goals), *_best_first(scarce, goals)]


def fewest_replicas(brokers: int, current: Config | None) -> int:
    """Return the fewest replicas to recommend: as many as run today, two where two brokers are."""
    today = 1 if current is None else current.replication_factor or 1
    return min(max(today, 2), brokers)


def has_replicas(choice: Choice, fewest: int) -> bool:
    """Return whether a choice has at least that many replicas."""
    return (choice.config.replication_factor or 1) >= fewest


def _best_first(choices: Sequence[Choice], goals: Goals) -> list[Choice]:
    if not choices:
        return []
    free = [c for c in choices if not any(dominates(other, c) for other in choices)]
    ordered = _ordered(free, goals)
    best = ordered[0]
    while simpler := next(
        (c for c in ordered if is_simpler(c, best) and not is_surely_better(best, c)), None
    ):
        best = simpler
    rest = [c for c in choices if not any(c is other for other in free)]
    others = [c for c in ordered if c is not best]
    return [best, *others, *(_ordered(rest, goals) if rest else [])]


def dominates(one: Choice, other: Choice) -> bool:
    """Return whether one choice is as good as another in everything, and better in something.

    Everything: losses, records lost, time without writes, refused records, replicas (which bytes
    stored and copied are proportional to), how long producers wait, and the goals met. Equal in
    all that, the one with less traffic between racks or faster acknowledgements is better, if an
    audit finds no more risks in it.
    """
    if any(met and not one.meets[goal] for goal, met in other.meets.items()):
        return False
    ours, theirs = (_everything(choice) for choice in (one, other))
    if ours == theirs:
        return _traffic(one) < _traffic(other) and len(one.risks) <= len(other.risks)
    return all(a <= b for a, b in zip(ours, theirs, strict=True))


def _everything(choice: Choice) -> tuple[float, ...]:
    measures = measures_of(choice.reliability)
    config = choice.config
    waiting = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    # Equal but for the rounding of sums is equal.
    numbers = (float(f"{measures.get(name, math.inf):.{_DIGITS}g}") for name in _COMPARED)
    return (*numbers, config.replication_factor or 1, waiting)


def _traffic(choice: Choice) -> tuple[float, float]:
    """Bytes between racks, and how long an acknowledgement waits."""
    cost = choice.reliability.cost
    return (cost.bytes_per_second_between_racks or 0.0, cost.acknowledgement_ms)


def is_simpler(one: Choice, other: Choice) -> bool:
    """Return whether one choice has fewer replicas or risks, and not more of either."""
    ours, theirs = ((c.config.replication_factor or 1, len(c.risks)) for c in (one, other))
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def is_surely_better(one: Choice, other: Choice) -> bool:
    """Return whether one choice beats another in a goal that the other misses.

    A goal of survival is met or not. A measure must be better by 5 % in 95 % of the draws of the
    failure model, both settings on the same draws, and in all: what is beyond settings counts here.
    """
    missed = [goal for goal in other.unmet if goal not in decided_measures(other.reliability)]
    if any(one.meets.get(goal, True) for goal in missed):
        return True
    for goal in other.unmet:
        if goal not in missed:
            better, draws = better_draws(one, other, goal)
            if better >= _SURE * draws:
                return True
    return False


def better_draws(one: Choice, other: Choice, goal: str) -> tuple[int, int]:
    """Return in how many draws of the card one choice is 5 % better than another, and of how many.

    Draws are computed only where the middle values differ that much; else it is none of one.
    """
    measure = _TELLING.get(goal, goal)
    better, worse = (getattr(c.reliability, measure) for c in (one, other))
    if worse <= better * _TIE:
        return 0, 1
    return draws_below(one.reliability, other.reliability, measure, _TIE)


def _ordered(choices: Sequence[Choice], goals: Goals) -> list[Choice]:
    fewest = min(map(_missed_goals, choices))
    nearest = min(
        _decades_short(choice, goals) for choice in choices if _missed_goals(choice) == fewest
    )
    return sorted(choices, key=lambda choice: _rank(choice, goals, nearest + _TIE_DECADES))


def _rank(choice: Choice, goals: Goals, tie: float) -> tuple[object, ...]:
    config, margin = choice.config, _margin(goals, decided_measures(choice.reliability))
    timeout = config.delivery_timeout_ms or 0 if "delivery_timeout_ms" in config.explicit else 0
    cost = (config.replication_factor, timeout, *_traffic(choice))
    rest = (-margin, choice.reliability.acked_records_lost_per_year, config.acks != "all")
    risks = len(choice.risks)
    if choice.meets_all:
        return (0, False, 0.0, False, risks, *cost, 0, *rest)
    decades = max(_decades_short(choice, goals), tie)
    tolerated = _tolerated_failures(choice)
    return (
        *_missed_goals(choice),
        decades,
        not _durable(choice),
        risks,
        *cost,
        -tolerated,
        *rest,
    )


def _missed_goals(choice: Choice) -> tuple[int, bool]:
    """Return the number of missed goals, and whether durability is among them without tolerance."""
    return (len(choice.unmet), not _durable(choice) and _tolerated_failures(choice) < 1)


def _durable(choice: Choice) -> bool:
    """Whether every goal about losses is met."""
    losses = (SURVIVE_WITHOUT_LOSS, "loss_probability_per_year", "acked_records_lost_per_year")
    return all(choice.meets.get(goal, True) for goal in losses)


def _tolerated_failures(choice: Choice) -> int:
    """Return how many brokers can fail with neither a loss nor refused writes."""
    tolerates = choice.reliability.tolerates
    return min(tolerates.without_loss, tolerates.while_writable)


def _decades_short(choice: Choice, goals: Goals) -> float:
    return decades_short(goals, decided_measures(choice.reliability))


def _margin(goals: Goals, measures: Mapping[str, float]) -> float:
    """Return the smallest distance, in decades, between a limit and its measure."""
    margins = [
        math.log10(limit / measures[name]) if limit > 0 < measures[name] else _LARGEST_MARGIN
        for name, limit in goals.limits.items()
    ]
    return min(margins, default=_LARGEST_MARGIN)
