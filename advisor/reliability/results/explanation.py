"""An exact result in words: its verdict, its causes, its numerical error."""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor import formatting
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import mechanisms
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.fault_tolerance import Tolerance, never_writes
from advisor.reliability.results.sensitivity import Tornado
from advisor.reliability.results.units import MEASURES
from advisor.reliability.workload import Workload

# Rarer than this, what the card leaves out matters more than what it holds.
_BEYOND_BELIEF_YEARS = 1e6
# Smaller shares of the losses are not mentioned.
_SMALLEST_SHARE = 0.01
# A smaller relative numerical error is not mentioned.
_SMALLEST_ERROR = 1e-6


class Explained:
    """The words of a `Reliability`."""

    loss_events_per_year: float
    mean_years_to_loss: float
    records_dropped_per_year: float
    write_unavailability: float
    write_stalled: float
    flush_window_losses_per_year: float
    truncated_entries_per_year: float
    tolerates: Tolerance
    causes: Mapping[str, Mapping[str, float]]
    bounds: Interval
    error_bounds: Mapping[str, float]
    method: str
    assumptions: tuple[str, ...]
    config: Config
    model: FailureModel
    load: Workload
    cost: Cost

    def interval(self, measure: str) -> Interval:
        """95 % interval of a measure."""
        raise NotImplementedError

    def at_worst(self, measure: str) -> float:
        """A measure with its error bound."""
        raise NotImplementedError

    def tornado(self, measure: str = "loss_events_per_year") -> Tornado:
        """Which number of the card moves a measure most."""
        raise NotImplementedError

    @property
    def swings_are_quick(self) -> bool:
        """Whether `tornado` answers at once or within seconds."""
        raise NotImplementedError

    def has_no_digit(self, measure: str) -> bool:
        """Whether a measure may be off by half of itself, or more."""
        value: float = getattr(self, measure)
        return 0.0 < value < math.inf and value <= 2.0 * self.error_bounds[measure]

    @property
    def verdict(self) -> str:
        """One sentence: what is lost, what is refused, what it is mostly due to."""
        settings = (
            f"RF {self.config.replication_factor}, min.insync.replicas "
            f"{self.config.min_insync_replicas}, acks={self.config.acks}"
        )
        never = never_writes(self.config)
        return f"{settings}: {never or f'{self._loss_words()}; {self._refusal_words()}'}."

    def _loss_words(self) -> str:
        if self.config.acks == 0:
            return (
                "nothing is acknowledged, so nothing counts as lost: "
                f"{formatting.significant(self.records_dropped_per_year)} records a year are "
                "dropped and their producer never knows"
            )
        if self.loss_events_per_year == 0:
            if self.error_bounds["loss_events_per_year"] > 0.0:
                least = formatting.years(self.at_worst("mean_years_to_loss"))
                return f"no loss was found; there is less than one in {least}"
            return "nothing in this failure model loses an acknowledged record"
        low, high = self.interval("mean_years_to_loss")
        if low >= _BEYOND_BELIEF_YEARS:
            least, most = formatting.years(low), formatting.years(high)
            within = formatting.interval(least, most) or f" (about once in {least})"
            return (
                "these failures lose an acknowledged record less than once in "
                f"a million years{within}, so mistakes and bugs, which no card knows, come first"
            )
        about = formatting.years(self.mean_years_to_loss)
        within = formatting.interval(formatting.years(low), formatting.years(high))
        return (
            f"you lose an acknowledged record about once in {about}{within}"
            f"{', an order of magnitude' * self.has_no_digit('mean_years_to_loss')}"
        )

    def _refusal_words(self) -> str:
        if self.write_unavailability == 0:
            return "writes are never refused"
        low, high = self.interval("write_unavailability")
        causes = self.causes["write_unavailability"]
        first = max(causes, key=lambda name: causes[name])
        share = causes[first] / self.write_unavailability
        about = formatting.time_per_year(self.write_unavailability)
        within = formatting.interval(formatting.time_per_year(low), formatting.time_per_year(high))
        most = f"{formatting.percent(share)} of it from {mechanisms.words(first)}"
        return f"writes stop {about}{within}, {most}"

    def numerical_error(self) -> str:
        """Numerical error in words; the uncertainty of the card is another matter."""
        off = [
            f"{name} by {formatting.significant(self.error_bounds[name])}"
            for name in MEASURES
            if self.error_bounds[name] > _SMALLEST_ERROR * getattr(self, name)
        ]
        rest = "no value is off by more than a millionth of itself"
        if off:
            rest = ", ".join([*off, "and any other value by a millionth of itself at most"])
            rest = rest.replace(" by ", " may be off by ", 1)
        left = "no state is left out"
        if self.truncated_entries_per_year:
            entered = formatting.significant(self.truncated_entries_per_year)
            left = f"rare states, entered {entered} times a year, are left out"
        vague = [name for name in MEASURES if self.has_no_digit(name)]
        magnitudes = f" Orders of magnitude, without a certain digit: {', '.join(vague)}."
        between = formatting.dependence(*self.bounds)
        return f"Numerical error: {left}; {rest}.{magnitudes if vague else ''}{between}"

    def explain(self) -> str:
        """Return verdict, tolerated failures, causes, numerical error and assumptions as text.

        Returns
        -------
        str
            Several lines.

        See Also
        --------
        Reliability.to_dict : The same as data.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> config = advisor.Config(replication_factor=1, acks=1)
        >>> result = advisor.evaluate(advisor.Cluster.uniform(1, racks=1), config, card)
        >>> "write_unavailability = 3.8e-05, because of:" in result.explain()
        True
        """
        # Where no write ever succeeds there is nothing to divide by causes.
        explained = (
            () if never_writes(self.config) else ("loss_events_per_year", "write_unavailability")
        )
        lines = [
            self.verdict,
            f"{formatting.capital(str(self.tolerates))}.",
            *([""] if explained else []),
        ]
        for measure in explained:
            parts = sorted(self.causes[measure].items(), key=lambda item: -item[1])
            whole = sum(part for _, part in parts)
            value = formatting.significant(getattr(self, measure))
            # One failure may hit many partitions: their losses come more often than the first.
            each = measure == "loss_events_per_year" and whole and self.load.partitions > 1
            lines.append(
                f"{measure} = {value}{', each partition by itself' if each else ''}"
                f"{', because of:' * bool(parts)}"
            )
            lines += [
                f"  {100 * part / whole:5.1f} %  {mechanisms.words(name)} ({name})"
                for name, part in parts
                if part > 0.0005 * whole
            ]
            if measure == "loss_events_per_year":
                lines += self._flush_window_words()
            if whole and self.swings_are_quick:
                lines.append(self.tornado(measure).verdict)
        if self.write_stalled:
            waits = formatting.time_per_year(self.write_stalled)
            lines.append(f"acks=all waits {waits} more for followers that have to leave the ISR.")
        lines += ["", f"Card: {self.model.name}. Method: {self.method}."]
        lines.append(self.numerical_error())
        lines.append(f"Cost: {self.cost}")
        lines += [f"Assumed: {text}." for text in self.assumptions]
        return "\n".join(lines)

    def _flush_window_words(self) -> list[str]:
        """Share of the losses by a power failure within the flush time after another failure."""
        early, whole = self.flush_window_losses_per_year, self.loss_events_per_year
        if not whole or early < _SMALLEST_SHARE * whole or not early:
            return []
        seconds = formatting.significant(self.model["flush.seconds"])
        return [
            f"{formatting.significant(100.0 * early / whole)} % of them are power lost within "
            f"{seconds} s after a failure stopped the writing: what was written last was not on "
            "disk yet. Each loses some seconds of records."
        ]
