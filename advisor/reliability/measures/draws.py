"""Many cards at once: what differs between the draws of a card, on states chosen once.

A draw is solved on the states of the card itself. Where a draw is so far from the card that too
much of it is missing there, the states that matter in any such draw are added, and all of these
draws are solved again on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.progress import progress_bar
from advisor.reliability import measure_table
from advisor.reliability.case import Case
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.measure_table import EVENTS, FRACTION, RECORDS
from advisor.reliability.measures.first_losses import FirstLosses
from advisor.reliability.measures.replica_set import measure_draw
from advisor.reliability.measures.solved_chain import SetMeasures
from advisor.reliability.solver.generator import Vector

Pattern = tuple[int, ...]
Guides = tuple[NominalRates, ...]

# How the measures of replica sets are put together.
SUMMED = measure_table.computed(EVENTS, RECORDS)
AVERAGED = measure_table.computed(FRACTION)
OF_FIRST_LOSS = ("loss_probability_per_year", "mean_years_to_loss")
DRAWN = (*SUMMED, *AVERAGED, *OF_FIRST_LOSS)
"""What is computed of each draw."""
TRUNCATED = ("loss_events_per_year", "write_unavailability")
# A draw is solved on more states if one of these may be off by more than this share.
TOO_ROUGH = 0.02
FEW_REPLICAS = 3
"""With more, states of a draw's own take too long, and the stated error says what is missing."""


@dataclass(frozen=True)
class DrawnMeasures:
    """Measures under each of several cards.

    Attributes
    ----------
    values, errors : mapping of str to array, shape (cards,)
        Every measure of `DRAWN`; and by how much states that are left out, and rounding, may have
        changed those that add up over replica sets.
    states : array of int, shape (cards,)
        States of the chains that were solved.
    """

    values: Mapping[str, Vector]
    errors: Mapping[str, Vector]
    states: np.ndarray


@dataclass(frozen=True)
class _Draw:
    values: Mapping[str, float]
    errors: Mapping[str, float]
    states: int

    @property
    def missing(self) -> float:
        """Share of a measure that may be missing; 0 where no states are enough."""
        shares = (self.errors[name] / (self.values[name] or math.inf) for name in TRUNCATED)
        largest = max(shares)
        return largest if math.isfinite(largest) else 0.0


def measure_draws(
    case: Case, cards: Sequence[FailureModel], first_losses: FirstLosses
) -> DrawnMeasures:
    """Measure a case under other cards, each to a few digits.

    Parameters
    ----------
    case : Case
        Its card chooses the states.
    cards : sequence of FailureModel
    first_losses : callable
        How the losses of the replica sets are combined.
    """
    cases = [case.roughly(card) for card in cards]
    draws = _drawn_one_by_one(cases, first_losses)
    far = [number for number, draw in enumerate(draws) if draw.missing > TOO_ROUGH]
    if far and (case.config.replication_factor or 0) <= FEW_REPLICAS:
        far.sort(key=lambda number: -draws[number].missing)
        guides = tuple(dict.fromkeys(_own_rates(case, cards[number]) for number in far))
        for number in far:
            draws[number] = _draw(cases[number], guides, first_losses)
    return DrawnMeasures(
        {name: np.array([draw.values[name] for draw in draws]) for name in DRAWN},
        {name: np.array([draw.errors[name] for draw in draws]) for name in (*SUMMED, *AVERAGED)},
        np.array([draw.states for draw in draws], dtype=np.int64),
    )


def _drawn_one_by_one(cases: Sequence[Case], first_losses: FirstLosses) -> list[_Draw]:
    """With a bar for several; one card is quick, and asked for hundreds of times."""
    if len(cases) == 1:
        return [_draw(cases[0], (), first_losses)]
    draws = []
    with progress_bar(len(cases), " draws", "How sure") as done:
        for drawn in cases:
            draws.append(_draw(drawn, (), first_losses))
            done(1)
    return draws


def _own_rates(case: Case, card: FailureModel) -> NominalRates:
    chain = case.roughly(card, own_states=True).chain
    return NominalRates(chain.nominal_rates_per_hour, chain.nominal_failover_hours)


def _draw(case: Case, guides: Guides, first_losses: FirstLosses) -> _Draw:
    together = case.partitions_together
    sets = {
        pattern: measure_draw(pattern, case.chain, case.timeouts, case.stalls, together, guides)
        for pattern in case.patterns
    }
    first, _ = first_losses(case, sets)
    counts = {pattern: members.partitions for pattern, members in case.patterns.items()}
    values = summed(sets, counts)
    lost = values[
        "records_dropped_per_year" if case.config.acks == 0 else "acked_records_lost_per_year"
    ]
    values["loss_probability_per_year"] = min(first.probability, lost)
    values["mean_years_to_loss"] = first.mean_years
    return _Draw(values, summed_errors(sets, counts), sum(found.states for found in sets.values()))


def summed(sets: Mapping[Pattern, SetMeasures], counts: Mapping[Pattern, int]) -> dict[str, float]:
    """Measures of all partitions, from those of a replica set of each pattern."""
    totals = {
        name: _over_sets(
            {p: math.fsum(s.causes[name].values()) for p, s in sets.items()}, counts, name
        )
        for name in (*SUMMED, *AVERAGED)
    }
    # Shares of all time, but for the rounding of their sum.
    return totals | {name: min(totals[name], 1.0) for name in AVERAGED}


def summed_errors(
    sets: Mapping[Pattern, SetMeasures], counts: Mapping[Pattern, int]
) -> dict[str, float]:
    """Their error bounds."""
    return {
        name: _over_sets({pattern: s.errors[name] for pattern, s in sets.items()}, counts, name)
        for name in (*SUMMED, *AVERAGED)
    }


def _over_sets(amounts: Mapping[Pattern, float], counts: Mapping[Pattern, int], name: str) -> float:
    partitions = sum(counts.values())
    return math.fsum(
        amounts[pattern] * (count / partitions if name in AVERAGED else count)
        for pattern, count in counts.items()
    )
