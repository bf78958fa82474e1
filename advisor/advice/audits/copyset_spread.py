"""Copysets and scatter width of a placement, as JSON data and in sentences."""

from __future__ import annotations

from functools import lru_cache

from advisor.advice.phrases import count_in_words
from advisor.formatting import significant
from advisor.reliability.common_cause.copysets import Chance, Copysets


def spread_numbers(placement: Copysets) -> dict[str, object]:
    """Return copysets, scatter width and loss probabilities as plain JSON data.

    ``chance_of_loss`` maps a number of brokers lost at once, at random, to the probability that
    they hold every replica of some partition, with bounds.
    """
    widths = placement.scatter_width.values()
    return {
        "copysets": len(placement.sets),
        "scatter_width": {
            "mean": placement.mean_scatter_width,
            "least": min(widths, default=0),
            "most": max(widths, default=0),
        },
        "chance_of_loss": {
            str(lost): chance._asdict() for lost, chance in _chances(placement).items()
        },
    }


def spread_words(placement: Copysets) -> str:
    """Return `spread_numbers` in two or three sentences."""
    if not placement.sets:
        return "No partition is placed."
    sets = len(placement.sets)
    shared = significant(placement.mean_scatter_width)
    text = (
        f"The partitions use {sets:,} {'different sets' if sets > 1 else 'set'} of brokers "
        "(copysets); a broker shares partitions with "
        f"{shared} other{'' if shared == '1' else 's'} on average (scatter width)."
    )
    parts = []
    for lost, chance in _chances(placement).items():
        parts.append(f"{_share(chance)} for {count_in_words(lost, 'broker')}")
        # The probability does not decrease with more brokers.
        if chance.low >= 1.0:
            break
    return (
        f"{text} Chance that some partition loses all its copies if random brokers are lost at "
        f"once: {', '.join(parts)}."
    )


@lru_cache(maxsize=8)  # text, page and JSON need the same values
def _chances(placement: Copysets) -> dict[int, Chance]:
    """Return the loss probability for the smallest copyset, and for one and two brokers more."""
    if not placement.sets:
        return {}
    fewest = min(map(len, placement.sets))
    numbers = range(fewest, min(fewest + 2, placement.brokers) + 1)
    return {lost: placement.chance_of_loss(lost) for lost in numbers}


def _share(chance: Chance) -> str:
    if chance.exact or chance.high - chance.low < 0.005:
        return _percent(chance.value)
    return f"{_percent(chance.low)} to {_percent(chance.high)}"


def _percent(probability: float) -> str:
    """Return two digits; "0 %" and "100 %" only for exactly 0 and 1."""
    if probability in (0.0, 1.0):
        return f"{100.0 * probability:.0f} %"
    if probability > 0.99:
        return "over 99 %"
    return f"{significant(100.0 * probability)} %"
