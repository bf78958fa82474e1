"""What replication settings decide of a measure, and what they do not.

Settings decide what the card gives without the mechanisms that no setting changes (the table of
mechanisms says which). Those mechanisms add the rest, also together with other failures: a host
that dies while half of the brokers are gone anyway. So the two add up. Sums over causes would not
do: a loss is attributed to what triggers it, and where a site loses power now and then that is
often the next failure of one broker, which alone would have lost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from advisor.errors import InputError
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import mechanisms
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import PER_YEAR, decided_by_settings

BY_SETTINGS, BEYOND_SETTINGS = "by_settings", "beyond_settings"
PARTS = (BY_SETTINGS, BEYOND_SETTINGS)
_MEAN_YEARS = "mean_years_to_loss"
_MOST_CAUSES = 3
# Smaller shares of what is beyond settings are not named.
_SMALLEST_SHARE = 0.02


class Said(NamedTuple):
    """Words for one part of a measure, and for its interval; both "" for nothing."""

    value: str = ""
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value}{self.interval}"


Pair = tuple[Said, Said]
"""By settings and beyond settings."""


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
    """Refuse a name that is no part.

    Raises
    ------
    InputError
        With the two that there are.
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
    """Return the card with rate 0 for the mechanisms that no setting changes."""
    return model.with_values({f"{name}.{PER_YEAR.key}": 0.0 for name in beyond(model)})


@dataclass(frozen=True)
class Split:
    """A result beside that of the same card without what no setting changes.

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

    def beyond_at_worst(self, measure: str) -> float:
        """Return what is beyond settings with the numerical error of the whole."""
        return max(self.whole.at_worst(measure) - self.part(measure, BY_SETTINGS), 0.0)


def beyond_in_words(
    causes: Mapping[str, Mapping[str, float]], measures: tuple[str, ...], model: FailureModel
) -> str:
    """Return the largest causes of some measures that no setting changes: "a, b".

    Where none of them is a cause, because another failure had to come on top, all of the card.

    Parameters
    ----------
    causes : mapping of measure to mapping of mechanism to float
    measures : tuple of str
    """
    shares = dict.fromkeys(beyond(model), 0.0)
    for measure in measures:
        parts = {name: part for name, part in causes[measure].items() if name in shares}
        whole = math.fsum(parts.values())
        for name, part in parts.items():
            shares[name] = max(shares[name], part / whole if whole else 0.0)
    largest = sorted(
        (name for name in shares if shares[name] >= _SMALLEST_SHARE),
        key=lambda name: (-shares[name], name),
    )
    largest = largest or list(shares)
    named = [mechanisms.words(name) for name in largest[:_MOST_CAUSES]]
    return ", ".join([*named, *(["others"] if len(largest) > _MOST_CAUSES else [])])


def in_words(refused: Pair, loses: Pair, why_refused: str, why_loses: str) -> str:
    """Return what settings decide and what they do not, in one or two sentences; "" for all.

    Parameters
    ----------
    refused : pair of Said
        Time without writes of each part.
    loses : pair of Said
        How often each part loses a record.
    why_refused, why_loses : str
        Causes beyond settings, such as "the whole site losing power".
    """
    sentences = []
    by, rest = refused
    if rest.value and by.value:
        sentences.append(
            f"Settings decide {by.value} of refused writes{by.interval}; another {rest} no setting "
            f"changes ({why_refused})."
        )
    elif rest.value:
        sentences.append(f"No setting changes how long writes are refused ({why_refused}).")
    by, rest = loses
    if rest.value and by.value:
        why = f" ({why_loses})" if why_loses != why_refused or not sentences else ""
        sentences.append(f"What settings decide loses a record {by}; the rest{why} does {rest}.")
    elif rest.value:
        sentences.append(f"No setting changes how often a record is lost ({why_loses}).")
    return " ".join(sentences)
