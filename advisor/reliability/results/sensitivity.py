"""Results over the ranges of a card: draws of all its numbers, and each from its low to its high.

The second is one-at-a-time sensitivity (tornado).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from advisor import formatting, plotting
from advisor.progress import progress_bar
from advisor.reliability import measure_table
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.rendering import joined
from advisor.tables import data_frame, html_table, html_verdict

if TYPE_CHECKING:
    import pandas as pd


Evaluated = Callable[[Sequence[FailureModel]], Sequence[Any]]
"""From cards to what has every measure of each as an attribute."""


@dataclass(frozen=True)
class Swing:
    """Effect of one number of the card on one measure, all others at their value.

    Attributes
    ----------
    path : str
        The number's path in the card, ending in its unit, such as "flush.seconds".
    value, low, high : float
        The card's.
    result_at_low, result_at_high : float
        The measure, in its own unit.
    factor : float
        Largest over smallest of the measure at low, value and high: 1 for a number without effect,
        infinite if one end makes the measure 0 or infinite.
    evidence : str
        Source that the card names.
    """

    path: str
    value: float
    low: float
    high: float
    result_at_low: float
    result_at_high: float
    factor: float
    evidence: str


@dataclass(frozen=True, repr=False)
class Tornado:
    """Every uncertain number of a card by its effect on one measure, largest first.

    Attributes
    ----------
    measure, unit : str
    value : float
        The measure with every number at its value.
    rows : tuple of Swing
        Empty if the card gives no ranges.

    Examples
    --------
    >>> import advisor
    >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
    >>> tornado = advisor.evaluate(cluster, config, "three_az_cloud").tornado()
    >>> tornado.rows[0].factor >= tornado.rows[-1].factor
    True
    """

    measure: str
    unit: str
    value: float
    rows: tuple[Swing, ...]

    def __iter__(self) -> Iterator[Swing]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def summary(self) -> str:
        """One sentence: the number that moves the measure most, and how far."""
        if not self.rows:
            return f"No number of the card has a range that could move {self.measure}."
        first = self.rows[0]
        if first.factor == 1.0:
            return f"No number of the card moves {self.measure} within its range."
        at_low, at_high = map(formatting.significant, (first.result_at_low, first.result_at_high))
        low, high = map(formatting.in_few_digits, (first.low, first.high))
        return (
            f"The assumption that moves {self.measure} most is {first.path}: "
            f"{at_low} at its low, {low}, and {at_high} at its high, {high}."
        )

    @property
    def title(self) -> str:
        """The measure in words, with its unit."""
        return f"What moves {measure_table.measure(self.measure).words} most, {self.unit}"

    def explain(self) -> str:
        """Return the summary and a line for each number that moves the measure by 10 % or more.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> tornado = advisor.evaluate(cluster, config, "three_az_cloud").tornado()
        >>> tornado.explain().splitlines()[0][:46]
        'The assumption that moves loss_events_per_year'
        """
        lines = [self.summary]
        lines += [
            f"  {row.path} from {formatting.in_few_digits(row.low)} to "
            f"{formatting.in_few_digits(row.high)}: "
            f"{formatting.significant(row.result_at_low)} to "
            f"{formatting.significant(row.result_at_high)} {self.unit}"
            for row in self.rows
            if row.factor >= 1.1
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the measure and its rows as plain data.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> tornado = advisor.evaluate(cluster, config, "three_az_cloud").tornado()
        >>> tornado.to_dict()["measure"]
        'loss_events_per_year'
        """
        return {
            "measure": self.measure,
            "unit": self.unit,
            "value": self.value,
            "rows": [asdict(row) for row in self.rows],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per number of the card, largest effect first.

        Raises
        ------
        MissingExtraError
            Without pandas.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> tornado = advisor.evaluate(cluster, config, "three_az_cloud").tornado()
        >>> list(tornado.to_frame().columns)[:3]
        ['path', 'value', 'low']
        """
        return data_frame([asdict(row) for row in self.rows], _COLUMNS)

    def plot(self, ax: Any = None) -> Any:
        """Draw one bar per number on matplotlib axes, widest first; return the axes.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> tornado = advisor.evaluate(cluster, config, "three_az_cloud").tornado()
        >>> from matplotlib.figure import Figure
        >>> axes = tornado.plot(Figure().add_subplot())
        """
        return plotting.draw("tornado", self, ax)

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        rows = [
            {
                "number": row.path,
                "from low to high": f"{formatting.in_few_digits(row.low)} to "
                f"{formatting.in_few_digits(row.high)}",
                "at its low": formatting.significant(row.result_at_low),
                "at its high": formatting.significant(row.result_at_high),
                "evidence": row.evidence,
            }
            for row in self.rows
        ]
        return joined(html_verdict(self.summary), html_table(rows, self.title)).text


_COLUMNS = tuple(Swing.__dataclass_fields__)
_ENDS = ("low", "high")


def compute_intervals(results: Iterable[Any]) -> None:
    """Have the intervals of several `Reliability` ready."""
    unknown = {id(result): result for result in results if not result.intervals}
    with progress_bar(len(unknown), " settings", "95 % intervals") as done:
        for result in unknown.values():
            model, size = result.model, (result.states, result.load.partitions)
            draws = [*uncertainty.parameter_draws(model, *size)] if model.uncertain else []
            sample = result.under(draws)
            result.intervals.update(result.intervals_of_draws(sample))
            for entry in measure_table.entries():
                result.samples[entry.name] = tuple(map(entry.of, sample))
            done(1)


def tornadoes(
    under: Evaluated,
    model: FailureModel,
    values: Mapping[str, float],
) -> dict[str, Tornado]:
    """Evaluate a card, by `under`, with each uncertain number at its low and at its high."""
    paths = list(model.uncertain)
    ends = [(path, getattr(model.quantities[path], end)) for path in paths for end in _ENDS]
    # The card is solved as the ends are, so that a number without effect has factor 1.
    middle, *at_ends = under([model, *(model.at(path, number) for path, number in ends)])
    by_measure = {}
    for measure, value in values.items():
        entry = measure_table.measure(measure)
        numbers = [entry.of(result) for result in at_ends]
        rows = (
            _swing(model, path, low, entry.of(middle), high)
            for path, low, high in zip(paths, numbers[::2], numbers[1::2], strict=True)
        )
        by_measure[measure] = Tornado(measure, entry.unit, value, _ordered(rows))
    return by_measure


def _swing(model: FailureModel, path: str, low: float, middle: float, high: float) -> Swing:
    card = model.quantities[path]
    factor = _factor(min(low, middle, high), max(low, middle, high))
    return Swing(path, card.value, card.low, card.high, low, high, factor, card.evidence)


def _factor(lowest: float, highest: float) -> float:
    if lowest == highest:
        return 1.0
    return highest / lowest if lowest > 0 else math.inf


def _ordered(swings: Iterator[Swing]) -> tuple[Swing, ...]:
    # By factor: by difference, halving a loss would count for less than doubling it. The path
    # breaks ties, so that the order is always the same.
    return tuple(sorted(swings, key=lambda row: (-row.factor, row.path)))
