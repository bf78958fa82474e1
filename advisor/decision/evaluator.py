"""What a setting costs: its measures at the middle of the card's ranges, and in each draw.

`ExactEvaluator` asks `advisor.evaluate` for each setting, and its result again for each draw. The
rest of the decision knows nothing of chains.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from advisor.decision.rule import MINUTES_PER_YEAR, Array, losses_per_year
from advisor.decision.settings import Setting
from advisor.reliability import measure_table
from advisor.reliability.calendar import RATE_PATH
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.card import largest_drawn
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import SEED
from advisor.reliability.workload import Workload

LOSSES, MINUTES = "losses_per_year", "minutes_without_writes_per_year"
"""What the rule weighs."""
LOSS_PROBABILITY, WRITES = "loss_probability_per_year", "write_unavailability"
YEARS = "mean_years_to_loss"
RECORDS_LOST, LOSS_EVENTS = "acked_records_lost_per_year", "loss_events_per_year"
MEASURES = (
    LOSS_PROBABILITY,
    LOSS_EVENTS,
    RECORDS_LOST,
    WRITES,
    "read_unavailability",
    "records_refused_per_year",
)
"""What is evaluated of each setting; LOSSES and MINUTES follow from it."""
DRAWS = 128
"""How many draws of the card there are: every setting is compared on the same ones."""
# A probability so near 1 has too few digits left to tell the number of losses.
_CERTAIN = 1.0 - 1e-12
# A result holds its placement; of thousands of topics only the numbers are remembered.
_MOST_RESULTS = 64


@dataclass(frozen=True)
class Measured:
    """Measures of a setting at one set of the card's numbers.

    causes: measure to mechanism to its part.
    """

    values: Mapping[str, float]
    causes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __getitem__(self, measure: str) -> float:
        return self.values[measure]

    def main_cause(self, measure: str) -> str:
        """Return the mechanism with the largest part of a measure; "" for none."""
        parts = {
            name: amount for name, amount in self.causes.get(measure, {}).items() if amount > 0
        }
        return max(parts, key=lambda name: parts[name], default="")


class ExactEvaluator:
    """Evaluates settings under one card with `advisor.evaluate`; remembers its answers."""

    def __init__(
        self,
        cluster: Any,
        model: FailureModel,
        draws: int = DRAWS,
        evaluated: Callable[..., Any] = evaluate,
    ) -> None:
        self._cluster, self._model, self._evaluated = cluster, model, evaluated
        self._cards = [*model.draws(draws, SEED)] if draws and model.uncertain else []
        self._results: dict[tuple[Setting, Workload], Any] = {}
        self._middle: dict[tuple[Setting, Workload], Measured] = {}
        self._drawn: dict[tuple[Setting, Workload], Mapping[str, Array]] = {}

    @property
    def model(self) -> FailureModel:
        """The card."""
        return self._model

    @property
    def draws(self) -> int:
        """How many draws; 0 for a card without ranges."""
        return len(self._cards)

    def middle(self, setting: Setting, load: Workload) -> Measured:
        """Return the measures at the card's values."""
        key = setting, load
        if key not in self._middle:
            self._middle[key] = measured(self._result(setting, load))
        return self._middle[key]

    def at(
        self, setting: Setting, load: Workload, changes: Sequence[Mapping[str, float]]
    ) -> list[Measured]:
        """Return the measures with some numbers of the card changed, for each of some changes."""
        cards = [self._model.with_values(numbers) for numbers in changes]
        drawn = self._measured_under(setting, load, cards)
        return [Measured(_OfDraw(drawn, draw)) for draw in range(len(cards))]

    def drawn(self, setting: Setting, load: Workload) -> Mapping[str, Array]:
        """Return every measure in each draw; `records_refused_per_year` takes the longest."""
        key = setting, load
        if key not in self._drawn:
            self._drawn[key] = self._measured_under(setting, load, self._cards)
        return self._drawn[key]

    def _measured_under(
        self, setting: Setting, load: Workload, cards: Sequence[FailureModel]
    ) -> Mapping[str, Array]:
        values = self._result(setting, load).reevaluate.draws(cards).values
        return ChainMap(_weighed(values), values)

    def drawn_numbers(self) -> Mapping[str, Array]:
        """Return the uncertain numbers of the card in each draw, by dotted path."""
        paths = self._model.uncertain if self._cards else ()
        return {path: np.array([card[path] for card in self._cards]) for path in paths}

    def _result(self, setting: Setting, load: Workload) -> Any:
        key = setting, load
        if key not in self._results:
            if len(self._results) >= _MOST_RESULTS:
                del self._results[next(iter(self._results))]
            self._results[key] = self._evaluated(
                self._cluster, setting.config, self._model, load, placement=setting.placement
            )
        return self._results[key]


@dataclass(frozen=True)
class _OfDraw(Mapping[str, float]):
    """The measures of one of several cards."""

    drawn: Mapping[str, Array]
    draw: int

    def __getitem__(self, measure: str) -> float:
        return float(self.drawn[measure][self.draw])

    def __iter__(self) -> Iterator[str]:
        return iter(self.drawn)

    def __len__(self) -> int:
        return len(self.drawn)


def measured(result: Any) -> Measured:
    """Return what the decision reads of a `Reliability`."""
    values = {entry.name: float(entry.of(result)) for entry in measure_table.entries()}
    arrays = {name: np.array([value]) for name, value in values.items()}
    weighed = {name: float(amounts[0]) for name, amounts in _weighed(arrays).items()}
    return Measured(values | weighed, result.causes)


def _weighed(drawn: Mapping[str, Array]) -> dict[str, Array]:
    """What the rule weighs, from the measures."""
    losses, years = losses_per_year(drawn[LOSS_PROBABILITY]), drawn[YEARS]
    certain = (drawn[LOSS_PROBABILITY] >= _CERTAIN) & (years > 0.0)
    losses[certain] = 1.0 / years[certain]
    return {LOSSES: losses, MINUTES: drawn[WRITES] * MINUTES_PER_YEAR}


def halved_and_doubled(model: FailureModel) -> Iterator[tuple[str, float]]:
    """Yield each number of a card with half and twice its value, as far as it may have that."""
    for path, quantity in model.quantities.items():
        if model.calendar is not None and path == RATE_PATH:
            continue  # it follows from the calendar
        for factor in (0.5, 2.0):
            value = min(factor * quantity.value, largest_drawn(path))
            if value != quantity.value:
                yield path, value
