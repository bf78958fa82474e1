"""What to say of the sets of brokers that hold all copies of something."""

from __future__ import annotations

from functools import lru_cache

from advisor.advice.phrases import count
from advisor.formatting import significant
from advisor.reliability.common_cause.copysets import Chance, Copysets


def spread_numbers(found: Copysets) -> dict[str, object]:
    """Return the copysets, the scatter width and the chances of a loss as plain JSON data.

    ``chance_of_loss`` has, for some numbers of brokers lost at once, the probability that they
    hold every copy of some partition, and its bounds.
    """
    widths = found.scatter_width.values()
    return {
        "copysets": len(found.sets),
        "scatter_width": {
            "mean": found.mean_scatter_width,
            "least": min(widths, default=0),
            "most": max(widths, default=0),
        },
        "chance_of_loss": {str(lost): chance._asdict() for lost, chance in _chances(found).items()},
    }


def spread_words(found: Copysets) -> str:
    """Return the same in two or three sentences."""
    if not found.sets:
        return "No partition stands anywhere."
    sets = len(found.sets)
    shared = significant(found.mean_scatter_width)
    text = (
        f"The partitions stand on {sets:,} {'different sets' if sets > 1 else 'set'} of brokers "
        "(copysets); a broker shares partitions with "
        f"{shared} other{'' if shared == '1' else 's'} on average (scatter width)."
    )
    parts = []
    for lost, chance in _chances(found).items():
        parts.append(f"{_share(chance)} if {count(lost, 'broker')} {'is' if lost == 1 else 'are'}")
        # More brokers take no less.
        if chance.low >= 1.0:
            break
    return (
        f"{text} Chance that brokers lost at once, at random, hold every copy of some partition: "
        f"{', '.join(parts)}."
    )


@lru_cache(maxsize=8)  # the text, the page and the data all ask
def _chances(found: Copysets) -> dict[int, Chance]:
    """For the fewest brokers that can take a partition with them, and one and two more."""
    if not found.sets:
        return {}
    fewest = min(map(len, found.sets))
    numbers = range(fewest, min(fewest + 2, found.brokers) + 1)
    return {lost: found.chance_of_loss(lost) for lost in numbers}


def _share(chance: Chance) -> str:
    if chance.exact or chance.high - chance.low < 0.005:
        return _percent(chance.value)
    return f"{_percent(chance.low)} to {_percent(chance.high)}"


def _percent(probability: float) -> str:
    """Two digits of the small side, so that only a certainty is written as one."""
    if probability in (0.0, 1.0):
        return f"{100.0 * probability:.0f} %"
    if probability > 0.99:
        return "over 99 %"
    return f"{significant(100.0 * probability)} %"
