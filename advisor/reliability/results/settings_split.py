"""What replication settings decide of a measure, and what they do not.

Settings decide what the card gives without the mechanisms beyond settings (the table of
mechanisms says which). Those mechanisms add the rest, also together with other failures: a host
that dies while half of the brokers are gone anyway. So the two add up. Sums over causes would not
do: a loss is attributed to what triggers it, and where a site loses power now and then that is
often the next failure of one broker, which alone would have lost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from advisor.errors import InputError
from advisor.formatting import OPERATOR_LOSS_YEARS, is_rare
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import mechanisms
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import PER_YEAR, decided_by_settings
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.units import Estimate

BY_SETTINGS, BEYOND_SETTINGS = "by_settings", "beyond_settings"
PARTS = (BY_SETTINGS, BEYOND_SETTINGS)
TIMES_RARER = "times_rarer"
"""The interval of `Split.times_rarer` among those of a result."""
_MEAN_YEARS = "mean_years_to_loss"
WITHOUT_PARTS = (_MEAN_YEARS,)
"""Measures whose parts are shares and no number of their own: a mean of 22 years is not 20 and 2.

Tables for readers leave them out; sentences say how often each part alone loses.
"""
# Smaller shares of what is beyond settings are not named.
_SMALLEST_SHARE = 0.02
LOSSES, STOPS = "loss_probability_per_year", "write_unavailability"
# Losses this many times rarer than those caused by people cannot be distinguished from them:
# how often those happen is known to a factor of ten (cluster-wiped in data/failure_rates.csv).
NEGLIGIBLY_RARER = 10.0


class Measured(Protocol):
    """A result with measures as floats."""

    @property
    def mean_years_to_loss(self) -> float:
        """Mean time to the first loss."""

    @property
    def first_loss_upper(self) -> AnyLoss:
        """The first loss as late as it can be."""

    def at_worst(self, name: str) -> float:
        """Return a measure with its error."""


def check_part(part: str) -> None:
    """Reject a name that is not the name of a part.

    Raises
    ------
    InputError
        The message lists the two names.
    """
    if part not in PARTS:
        raise InputError(f"{part!r} is no part of a measure; there are: {', '.join(PARTS)}")


def beyond(model: FailureModel) -> tuple[str, ...]:
    """Return the mechanisms of a card that happen and that no setting changes."""
    return tuple(
        name
        for name in model.mechanisms
        if not decided_by_settings(name) and model.rate_per_hour(name) > 0
    )


def without_beyond(model: FailureModel) -> FailureModel:
    """Return the card with rate 0 for the mechanisms beyond settings."""
    return model.with_values({f"{name}.{PER_YEAR.key}": 0.0 for name in beyond(model)})


@dataclass(frozen=True)
class Split:
    """A result beside that of the same card without what is beyond settings.

    Attributes
    ----------
    whole, decided : Measured
    """

    whole: Measured
    decided: Measured

    def part(self, measure: str, part: str) -> float:
        """Return one part of a measure, in its unit; see `Reliability.by_settings`."""
        whole = float(getattr(self.whole, measure))
        by = min(float(getattr(self.decided, measure)), whole)
        if measure == _MEAN_YEARS:
            # In proportion to how often each part loses first.
            by = whole if math.isinf(whole) else whole * min(whole / self.years(BY_SETTINGS), 1.0)
        if part == BY_SETTINGS:
            return by
        return max(whole - by, 0.0) if math.isfinite(whole) else 0.0

    def years(self, part: str) -> float:
        """Mean years until one part alone loses; infinite if it loses nothing."""
        without = self.decided.mean_years_to_loss
        if part == BY_SETTINGS:
            return without
        rate = 1.0 / self.whole.mean_years_to_loss - 1.0 / without
        return 1.0 / rate if rate > 0.0 else math.inf

    def times_rarer(self) -> float:
        """How many times rarer the losses that settings decide are than the others."""
        return self.years(BY_SETTINGS) / self.years(BEYOND_SETTINGS)

    def beyond_at_worst(self, measure: str) -> float:
        """Return what is beyond settings with the numerical error of the whole."""
        return max(self.whole.at_worst(measure) - self.part(measure, BY_SETTINGS), 0.0)


def beyond_causes(
    causes: Mapping[str, Mapping[str, float]], measure: str, model: FailureModel
) -> tuple[str, ...]:
    """Return the causes of a measure that no setting changes, in words, largest first.

    Where none of them is a cause, because another failure had to come on top, all of the card.

    Parameters
    ----------
    causes : mapping of measure to mapping of mechanism to float
    """
    parts = {name: causes[measure].get(name, 0.0) for name in beyond(model)}
    whole = math.fsum(parts.values())
    largest = sorted(
        (name for name, part in parts.items() if whole and part >= _SMALLEST_SHARE * whole),
        key=lambda name: (-parts[name], name),
    )
    return tuple(mechanisms.words(name) for name in largest or parts)


def main_cause(causes: Mapping[str, float]) -> str:
    """Return the largest cause of a measure in words; "" for none."""
    if not any(part > 0.0 for part in causes.values()):
        return ""
    return mechanisms.words(max(causes, key=lambda name: causes[name]))


class Amount(NamedTuple):
    """A number of a result; `seen` is False where only a bound is known."""

    value: float
    seen: bool = True


class Outlook(NamedTuple):
    """What a verdict says of a result, as numbers.

    Attributes
    ----------
    config : Config
    years : (Amount, Amount)
        Mean years until settings lose a record, and until what is beyond settings does; infinite
        for never. A bound is a lower one.
    stopped : (Amount, Amount)
        Fraction of time in which writes are refused, in the same two parts. A bound is an upper
        one.
    dropped : Amount
        Records a year lost with acks=0.
    main : mapping of str to str
        Main cause of losses and of refused writes by what settings decide, in words.
    beyond : mapping of str to tuple of str
        Causes of the same that no setting changes, largest first.
    simulated : int
        Years simulated; 0 for an exact result.
    years_within : ((float, float), (float, float)), optional
        95 % intervals of ``years``, as sampled.
    """

    config: Config
    years: tuple[Amount, Amount]
    stopped: tuple[Amount, Amount]
    dropped: Amount
    main: Mapping[str, str]
    beyond: Mapping[str, Sequence[str]]
    simulated: int = 0
    years_within: tuple[Interval, Interval] | None = None

    @property
    def reference(self) -> tuple[float, str]:
        """Losses that settings are compared with: mean years between, and their cause."""
        years, named = self.years[1].value, self.beyond.get(LOSSES)
        if named and not is_rare(years):
            return years, named[0]
        return OPERATOR_LOSS_YEARS, "operator errors"

    @property
    def times_rarer(self) -> float:
        """How many times rarer losses by settings are than the reference's."""
        return self.years[0].value / self.reference[0]

    @property
    def times_rarer_within(self) -> Interval | None:
        """95 % interval of ``times_rarer`` as sampled; None for an exact result.

        The two times are those of different losses, so that their errors are independent: on a
        logarithmic scale the distances from the value to the ends add as their squares (Zou and
        Donner, Statistics in Medicine 27, 2008).
        """
        if self.years_within is None or not math.isfinite(self.times_rarer):
            return None
        (by_low, by_high), (low, high) = self.years_within
        by, reference = self.years[0].value, self.reference[0]
        if reference != self.years[1].value:
            # A fixed number, of which no sample says anything.
            low = high = reference
        if not low > 0.0:
            return None
        below = math.hypot(math.log(by / by_low), math.log(high / reference))
        above = math.hypot(math.log(by_high / by), math.log(reference / low))
        return self.times_rarer * math.exp(-below), self.times_rarer * math.exp(above)

    @property
    def is_negligible(self) -> bool:
        """Whether losses by settings cannot be distinguished from those caused by people."""
        return self.times_rarer > NEGLIGIBLY_RARER or is_rare(self.years[0].value)


class Judged(NamedTuple):
    """What goals say of a setting.

    Attributes
    ----------
    met : bool
        Whether every goal is met.
    times_over : mapping of str to float
        Missed measure to how many times its limit it is; infinite for a limit of 0.
    narrow : bool
        Whether a few per cent would change `met`.
    draws : (int, int)
        In how many draws of the card the goals are met, and of how many; 0 if not counted.
    """

    met: bool
    times_over: Mapping[str, float]
    narrow: bool = False
    draws: tuple[int, int] = (0, 0)

    @property
    def doubtful(self) -> bool:
        """Whether the goals are met, but most draws of the card miss them."""
        kept, draws = self.draws
        return self.met and 2 * kept < draws


def amount_of(estimate: Estimate) -> Amount:
    """Return a sampled part of a measure for the verdict; a bound where nothing was seen."""
    seen = estimate.seen or estimate.high == 0.0
    return Amount(estimate.value if estimate.seen else estimate.high, seen)


def years_of_parts(waited: Estimate, parts: tuple[Estimate, Estimate]) -> tuple[Amount, Amount]:
    """Return the mean years until each part of the losses makes one, as sampled.

    Parameters
    ----------
    waited : Estimate
        Mean years to any loss.
    parts : (Estimate, Estimate)
        Of what settings decide, and of the rest.
    """
    if not waited.seen:
        return Amount(waited.low, seen=math.isinf(waited.low)), Amount(math.inf)
    by, rest = (part.value if part.seen else math.inf for part in parts)
    if not parts[0].seen and not math.isinf(parts[0].low):
        # Where only the other part lost records, this one has a bound.
        return Amount(parts[0].low, seen=False), Amount(rest)
    return Amount(by), Amount(rest)


def years_within(
    waited: Estimate, parts: tuple[Estimate, Estimate]
) -> tuple[Interval, Interval] | None:
    """Return the intervals of `years_of_parts`; None where no loss was seen at all."""
    if not waited.seen:
        return None
    by, rest = parts
    return (by.low, by.high), (rest.low, rest.high)


def capped(parts: Mapping[str, Interval], whole: Mapping[str, Interval]) -> dict[str, Interval]:
    """Cut the intervals of parts at the upper ends of the whole, which no part can exceed.

    A part's own numerical error may be far larger than the part where the whole's is small.

    Parameters
    ----------
    parts, whole : mapping of str to (float, float)
        By part and measure, and by measure.
    """
    found = dict(parts)
    for name in whole.keys() - {*WITHOUT_PARTS}:
        for key in (f"{part} {name}" for part in PARTS):
            low, high = parts[key]
            found[key] = min(low, whole[name][1]), min(high, whole[name][1])
    return found
