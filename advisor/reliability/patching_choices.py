"""What rolling restarts cost, choice by choice: the result of `patching`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from advisor import plotting
from advisor.arguments import missing_attribute
from advisor.formatting import significant
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.units import Estimate
from advisor.reliability.workload import Workload
from advisor.rendering import joined
from advisor.tables import data_frame, html_table, html_verdict

if TYPE_CHECKING:
    import pandas as pd

_MEASURES = {
    "refused_minutes": "writes refused, minutes of a partition",
    "records_refused": "failed sends",
    "loss_probability": "chance of data loss",
    "hours": "hours until it is over",
}


@dataclass(frozen=True)
class PatchingChoice:
    """What one way to restart all brokers costs, per rolling restart.

    Attributes
    ----------
    at_once, wait_for_isr, order, hour
        The choice, as in a card's ``[calendar]``.
    refused_minutes : Estimate
        Time in which a partition refuses writes, the mean over all partitions.
    records_refused : Estimate
        Failed sends of the whole topic.
    loss_probability : Estimate
        Probability that an acknowledged record is lost.
    hours : Estimate
        Until every broker was restarted and every replica is in sync.
    """

    at_once: int
    wait_for_isr: bool
    order: str
    hour: float
    refused_minutes: Estimate
    records_refused: Estimate
    loss_probability: Estimate
    hours: Estimate

    @property
    def name(self) -> str:
        """The choice in words.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> found.choices[0].name
        '1 at once, waits for the ISR'
        """
        waits = "waits for the ISR" if self.wait_for_isr else "does not wait"
        return f"{self.at_once} at once, {waits}"


@dataclass(frozen=True, repr=False)
class Patching:
    """What rolling restarts cost, choice by choice; `patching` makes it.

    Attributes
    ----------
    choices : tuple of PatchingChoice
    restarts, seed : int
        Rolling restarts that were sampled for each choice.
    cluster, config, model, load
        The arguments of `patching`.

    See Also
    --------
    patching : Samples it.

    Examples
    --------
    >>> import advisor
    >>> found = advisor.patching(
    ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
    ... )
    >>> len(found.choices)
    6
    """

    choices: tuple[PatchingChoice, ...]
    restarts: int
    seed: int
    cluster: Any
    config: Config
    model: FailureModel
    load: Workload

    if not TYPE_CHECKING:
        __getattr__ = missing_attribute

    @property
    def summary(self) -> str:
        """A choice that refuses least, beside the one that refuses most.

        Of several that the sample does not resolve, the first counts.
        """
        ordered = sorted(self.choices, key=lambda choice: choice.refused_minutes.value)
        end, most = ordered[0].refused_minutes.high, ordered[-1]
        least = next(choice for choice in self.choices if choice.refused_minutes.low <= end)
        brokers = "broker" if least.at_once == 1 else "brokers"
        waits = "waiting for the ISR" if least.wait_for_isr else "without waiting"
        text = f"{least.at_once} {brokers} at once, {waits}: a partition refuses writes for "
        text += f"{_time(least.refused_minutes)} of a rolling restart"
        if least is not most:
            text += f"; {most.name}: {_time(most.refused_minutes)}"
        return f"{text}."

    def rows(self) -> list[dict[str, object]]:
        """Return a row of plain values for each choice.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> found.rows()[0]["wait_for_isr"]
        True
        """
        rows = []
        for choice in self.choices:
            row: dict[str, object] = {
                name: getattr(choice, name) for name in ("at_once", "wait_for_isr", "order", "hour")
            }
            for name in _MEASURES:
                estimate: Estimate = getattr(choice, name)
                row |= {
                    name: estimate.value,
                    f"{name}_low": estimate.low,
                    f"{name}_high": estimate.high,
                }
            rows.append(row)
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return one line per choice, each measure with its 95 % interval.

        Returns
        -------
        pandas.DataFrame
            Columns of the choice, then "refused_minutes", "records_refused", "loss_probability"
            and "hours", each with ``_low`` and ``_high``. Where nothing was seen, the value is the
            upper bound and ``_low`` is 0.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_dict : The whole result as plain data.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> list(found.to_frame().columns[:5])
        ['at_once', 'wait_for_isr', 'order', 'hour', 'refused_minutes']
        """
        return data_frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return choices and inputs as plain data; the same for the same seed and inputs.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> found.to_dict()["restarts"]
        64
        """
        return {
            "choices": [asdict(choice) for choice in self.choices],
            "restarts": self.restarts,
            "seed": self.seed,
            "config": self.config.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
        }

    def explain(self) -> str:
        """The summary, every choice, and how it was sampled.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> "2 at once, waits for the ISR" in found.explain()
        True
        """
        lines = [self.summary]
        for choice in self.choices:
            parts = (f"{_MEASURES[name]} {getattr(choice, name)}" for name in _MEASURES)
            where = f"by {choice.order}, from {significant(choice.hour)}:00 on"
            lines.append(f"{choice.name} ({where}): {'; '.join(parts)}.")
        return "\n".join([*lines, self._source])

    @property
    def _source(self) -> str:
        return (
            f"{self.restarts:,} rolling restarts sampled for each choice, seed {self.seed}, with "
            f"failure-model card {self.model.name}, its values taken as exact; of what settings "
            "decide. 95 %: chance of the sample."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the refused minutes of each choice with their intervals.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: those of a new figure.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> from matplotlib.figure import Figure
        >>> ax = found.plot(Figure().subplots())
        """
        return plotting.draw("patching", self, ax)

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        rows = [
            {
                "at once": choice.at_once,
                "waits for the ISR": "yes" if choice.wait_for_isr else "no",
                "order": choice.order,
                "hour": significant(choice.hour),
            }
            | {_MEASURES[name]: str(getattr(choice, name)) for name in _MEASURES}
            for choice in self.choices
        ]
        table = html_table(rows, "One rolling restart, by how it is done, with 95 % intervals")
        return joined(html_verdict(self.summary, self._source), table).text


def _time(minutes: Estimate) -> str:
    """A time with its interval, in minutes or, if it is shorter, in seconds."""
    short = minutes.high < 1.0
    unit, size = ("seconds", 60.0) if short else ("minutes", 1.0)
    value, low, high = (
        significant(size * end_minutes)
        for end_minutes in (minutes.value, minutes.low, minutes.high)
    )
    if not minutes.seen:
        return f"less than {high} {unit}" if minutes.high else f"0 {unit}"
    return f"{value} {unit} (95 %: {low} to {high})"
