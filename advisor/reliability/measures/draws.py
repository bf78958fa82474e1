"""Many cards at once: what differs between the draws of a card, on states chosen once.

Where draws are so far from the card that too much of them is missing there, the states that matter
in any of these are added, and they are solved again on them.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.errors import NotComputedError
from advisor.reliability import measure_table
from advisor.reliability.case import Case, ChainParameters
from advisor.reliability.chain import ctmc
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.common_cause.first_loss import KAFKA_TAILS, any_loss
from advisor.reliability.common_cause.set_losses import SetLosses
from advisor.reliability.common_cause.struck_racks import StrikeRates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.measure_table import EVENTS, FRACTION, RECORDS
from advisor.reliability.measures.drawn_chain import DrawnChain, DrawnSet, rates_of
from advisor.reliability.measures.first_losses import (
    TOGETHER,
    FirstLosses,
    chances_along,
    picks,
)
from advisor.reliability.measures.replica_set import as_if_acknowledged, ends_soonest, nominal
from advisor.reliability.measures.solved_chain import SetMeasures
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.solver.sojourn_time import TooManyStepsError

Pattern = tuple[int, ...]
Guides = tuple[NominalRates, ...]

OF_PRODUCERS = ("write_stalled", "records_refused_per_year", "records_dropped_per_year")
"""What depends on how long producers wait as well: how long outages last takes longest."""
TRUNCATED = ("loss_events_per_year", "write_unavailability")
# A draw is solved on more states if one of these may be off by more than this share.
TOO_ROUGH = 0.02
# What there is of each move in each draw takes 16 MB then, and a dozen such arrays are needed.
_MOST_NUMBERS = 2**21
FEW_REPLICAS = 3
"""With more, states of a draw's own take too long, and the stated error says what is missing."""


@dataclass(frozen=True)
class DrawnMeasures:
    """Measures under each of several cards, all of shape (cards,).

    errors: by states that are left out, rounding and inversion; of ``loss_probability_per_year``
        without what sets share and is approximated.
    """

    values: Mapping[str, Vector]
    errors: Mapping[str, Vector]
    states: IntArray

    def resized(self, cards: int) -> DrawnMeasures:
        """As many cards, with any numbers."""
        return DrawnMeasures(
            {name: np.resize(amounts, cards) for name, amounts in self.values.items()},
            {name: np.resize(amounts, cards) for name, amounts in self.errors.items()},
            np.resize(self.states, cards),
        )

    def replaced(self, rows: Sequence[int], others: DrawnMeasures) -> DrawnMeasures:
        """The same with some cards measured otherwise."""

        def with_others(before: Any, after: Any) -> Any:
            mixed = before.copy()
            mixed[rows] = after
            return mixed

        return DrawnMeasures(
            {
                name: with_others(amounts, others.values[name])
                for name, amounts in self.values.items()
            },
            {
                name: with_others(amounts, others.errors[name])
                for name, amounts in self.errors.items()
            },
            with_others(self.states, others.states),
        )

    @property
    def far(self) -> NDArray[np.bool_]:
        """Cards of which too much may be missing; not where no states are enough."""
        far = np.zeros(len(self.states), dtype=bool)
        for name in TRUNCATED:
            with np.errstate(divide="ignore", invalid="ignore"):
                missing = self.errors[name] / np.where(
                    self.values[name] > 0.0, self.values[name], np.inf
                )
            far |= np.isfinite(missing) & (missing > TOO_ROUGH)
        return far


def measure_draws(
    case: Case,
    cards: Sequence[FailureModel],
    first_losses: FirstLosses,
    producers: bool = False,
) -> DrawnMeasures:
    """Measure a case, whose card chooses the states, under other cards."""
    cases = [case.roughly(card) for card in cards]
    near = measured_together(case, cases, (), first_losses, producers)
    far = np.flatnonzero(near.far).tolist()
    if not far or (case.config.replication_factor or 0) > FEW_REPLICAS:
        return near
    guides = tuple(dict.fromkeys(_own_rates(case, cards[number]) for number in far))
    far_cases = [cases[number] for number in far]
    return near.replaced(far, measured_together(case, far_cases, guides, first_losses, producers))


def _own_rates(case: Case, card: FailureModel) -> NominalRates:
    return nominal(case.roughly(card, own_states=True).chain)


def measured_together(
    case: Case,
    cases: Sequence[Case],
    guides: Guides,
    first_losses: FirstLosses,
    producers: bool = False,
) -> DrawnMeasures:
    """Measure draws on the states of a case, and those that matter at further rates, ``guides``.

    Nearly always all of them have the same chain; others are solved one chain after the other.
    """
    chains: dict[object, list[int]] = defaultdict(list)
    for number, drawn in enumerate(cases):
        chain = drawn.chain
        chains[chain.constants, chain.mechanisms, nominal(chain)].append(number)
    batches = []
    for of_chain in chains.values():
        at_once = _together(case, cases[of_chain[0]].chain, guides)
        for first in range(0, len(of_chain), at_once):
            rows = of_chain[first : first + at_once]
            batch = [cases[row] for row in rows]
            batches.append((rows, _measured(case, batch, guides, first_losses, producers)))
    measures = batches[0][1].resized(len(cases))
    for rows, measured in batches:
        measures = measures.replaced(rows, measured)
    return measures


def _together(case: Case, parameters: ChainParameters, guides: Guides) -> int:
    """How many draws of a chain are solved together: a number for each of its moves and draw."""
    moves = max(
        len(_structure(pattern, as_if_acknowledged(parameters), guides).condensed.source)
        for pattern in case.patterns
    )
    return max(_MOST_NUMBERS // max(moves, 1), 1)


def _structure(pattern: Pattern, parameters: ChainParameters, guides: Guides) -> Structure:
    environment = parameters.environment(pattern)
    return ctmc.structure(parameters.constants, environment, nominal(parameters), *guides)


def _measured(
    case: Case,
    cases: Sequence[Case],
    guides: Guides,
    first_losses: FirstLosses,
    producers: bool,
) -> DrawnMeasures:
    sets = {
        pattern: _measured_set(pattern, case, cases, guides, producers) for pattern in case.patterns
    }
    counts = {pattern: members.partitions for pattern, members in case.patterns.items()}
    values, errors = (
        {name: _over_sets(by_set, counts, name) for name, by_set in _transposed(amounts).items()}
        for amounts in (
            {pattern: drawn_set.values for pattern, drawn_set in sets.items()},
            {pattern: drawn_set.errors for pattern, drawn_set in sets.items()},
        )
    )
    for name in averaged():
        if name in values:
            values[name] = np.minimum(values[name], 1.0)
    losses = {pattern: drawn_set.losses for pattern, drawn_set in sets.items()}
    first, values["mean_years_to_loss"] = _first_of_draws(cases, losses, first_losses)
    lost = values["acked_records_lost_per_year"]
    values["loss_probability_per_year"] = np.minimum(first, lost)
    lists = sum(members.lists for members in case.patterns.values())
    errors["loss_probability_per_year"] = (
        errors["loss_events_per_year"] * (1 if lists == 1 else 3)
        + first
        - values["loss_probability_per_year"]
    )
    if producers:
        _add_dropped(values, errors, case.config.acks == 0)
    if case.config.acks == 0:
        values["acked_records_lost_per_year"] = np.zeros(len(cases))
        errors["acked_records_lost_per_year"] = np.zeros(len(cases))
    states = sum(drawn_set.states for drawn_set in sets.values())
    return DrawnMeasures(values, errors, np.full(len(cases), states))


def _add_dropped(
    values: dict[str, Vector], errors: dict[str, Vector], unacknowledged: bool
) -> None:
    """With acks=0 what is lost or refused is dropped; otherwise nothing is."""
    dropped, names = "records_dropped_per_year", ("acked_records_lost_per_year", OF_PRODUCERS[1])
    for amounts in (values, errors):
        total = sum((amounts[name] for name in names), np.zeros_like(amounts[names[0]]))
        amounts[dropped] = total if unacknowledged else np.zeros_like(total)


def _first_of_draws(
    cases: Sequence[Case], losses: Mapping[Pattern, SetLosses], first_losses: FirstLosses
) -> tuple[Vector, Vector]:
    """Probability of a loss within a year, and mean years to the first one, of each draw.

    One by one where less can happen in some draws than in others, with tails, or where fewer sets
    stand for many.
    """
    case, unexamined = cases[0], TOGETHER.get(first_losses)
    if unexamined is not None:
        struck = StrikeRates.of(
            [dict(drawn.events_per_year) for drawn in cases],
            [dict(chances_along(drawn)) for drawn in cases],
            [dict(picks(drawn)) for drawn in cases],
        )
        if struck.same_events.all():
            tails = None if case.chain.constants.acks == "all" else KAFKA_TAILS
            first_loss = any_loss(
                losses, struck, case.placement, case.exchangeable, tails, unexamined
            )
            return first_loss.probability, first_loss.mean_years
    probability, years = np.zeros(len(cases)), np.zeros(len(cases))
    for draw, drawn_case in enumerate(cases):
        sets = {}
        for pattern, drawn in losses.items():
            set_losses = drawn.of(draw)
            sets[pattern] = SetMeasures((set_losses, set_losses), {}, 0.0, 0.0, 0, {})
        counted, _ = first_losses(drawn_case, sets)
        probability[draw], years[draw] = counted.probability, counted.mean_years
    return probability, years


def forget_draws() -> None:
    """Free the memory of the chains that draws were solved on, some tens of megabytes each."""
    _chains.clear()


def _transposed(by_set: Mapping[Pattern, Mapping[str, Vector]]) -> dict[str, dict[Pattern, Vector]]:
    names = next(iter(by_set.values()))
    return {name: {pattern: amounts[name] for pattern, amounts in by_set.items()} for name in names}


def _measured_set(
    pattern: Pattern, case: Case, cases: Sequence[Case], guides: Guides, producers: bool
) -> DrawnSet:
    """Measure one replica set in each draw."""
    parameters = [as_if_acknowledged(drawn.chain) for drawn in cases]
    first = parameters[0]
    solved = _solved(_structure(pattern, first, guides).condensed, parameters)
    measured = solved.measures(parameters, case.partitions_together)
    if not producers:
        return measured
    try:
        values, errors = solved.of_producers(
            parameters, [drawn.stalls for drawn in cases], case.timeouts
        )
    except TooManyStepsError as error:
        raise NotComputedError(f"{error}: {ends_soonest(first)}") from error
    return replace(measured, values=measured.values | values, errors=measured.errors | errors)


# Topics with the same settings and racks share what does not depend on their traffic; some
# megabytes each.
_MOST_CHAINS = 12
_chains: OrderedDict[tuple[object, ...], DrawnChain] = OrderedDict()


def _solved(chain: Structure, parameters: Sequence[ChainParameters]) -> DrawnChain:
    key = (
        chain,
        rates_of(chain, parameters).tobytes(),
        tuple((draw.unflushed_hours, draw.hung_follower_hours) for draw in parameters),
        parameters[0].retention_hours,
        parameters[0].precision,
    )
    if key not in _chains:
        if len(_chains) >= _MOST_CHAINS:
            _chains.popitem(last=False)
        _chains[key] = DrawnChain(chain, parameters)
    _chains.move_to_end(key)
    return _chains[key]


def averaged() -> tuple[str, ...]:
    """Measures whose mean over partitions counts."""
    return measure_table.computed(FRACTION)


def of_sets() -> tuple[str, ...]:
    """Measures of all partitions that follow from those of each: their sums, or means."""
    return measure_table.computed(EVENTS, RECORDS) + averaged()


def summed(sets: Mapping[Pattern, SetMeasures], counts: Mapping[Pattern, int]) -> dict[str, float]:
    """Measures of all partitions, from those of a replica set of each pattern."""
    totals = {
        name: _over_sets(
            {p: math.fsum(s.causes[name].values()) for p, s in sets.items()}, counts, name
        )
        for name in of_sets()
    }
    # Shares of all time, but for the rounding of their sum.
    return totals | {name: min(totals[name], 1.0) for name in averaged()}


def summed_errors(
    sets: Mapping[Pattern, SetMeasures], counts: Mapping[Pattern, int]
) -> dict[str, float]:
    """Their error bounds."""
    return {
        name: _over_sets({pattern: s.errors[name] for pattern, s in sets.items()}, counts, name)
        for name in of_sets()
    }


def _over_sets(amounts: Mapping[Pattern, Any], counts: Mapping[Pattern, int], name: str) -> Any:
    partitions, mean = sum(counts.values()), name in averaged()
    return sum(
        amounts[pattern] * (count / partitions if mean else count)
        for pattern, count in counts.items()
    )
