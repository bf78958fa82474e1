"""Parts of sentences: counts, lists, how often an event occurs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.formatting import capital, once_in

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def years_between(probability: float) -> float:
    """Return the mean years between Poisson events, given P(at least one in a year)."""
    if probability >= 1:
        return 0.0
    return math.inf if probability == 0 else -1.0 / math.log1p(-probability)


def how_often(probability: float) -> str:
    """Return "once in 12 years" for a probability per year; no number for rare events."""
    return once_in(years_between(probability))


def count_in_words(number: int, noun: str) -> str:
    """Return "one broker", "six brokers", "40 brokers"."""
    word = _SMALL[number] if 0 <= number < len(_SMALL) else f"{number:,}"
    return f"{word} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def first_of(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list, shortened to the first `most` and the number of the others.

    >>> first_of(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    if len(names) <= most + 1:
        return listed(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    return f"{capital(text.rstrip('.'))}."
