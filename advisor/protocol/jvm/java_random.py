"""``java.util.Random`` and ``Collections.shuffle``, so that placements can be reproduced.

Kafka's controller places replicas with a ``java.util.Random``. The Java SE specification fixes its
generator, so the same seed gives the same placement here. This module reads no clock and no
entropy source.
"""

from collections.abc import MutableSequence
from typing import Any, Protocol

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_STATE_BITS = 48
_STATE_MASK = (1 << _STATE_BITS) - 1
_INT_MAX = (1 << 31) - 1


class Draws(Protocol):
    """Source of bounded random integers for replica placement."""

    def next_int(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``."""
        ...


class JavaRandom:
    """``java.util.Random``: a 48-bit linear congruential generator.

    As in Java, a subclass that overrides `next_bits` inherits the way bounded integers are made.

    seed: Java's ``long`` seed; only its low 48 bits matter.
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _STATE_MASK

    def next_bits(self, bits: int) -> int:
        """Advance the generator and return its top `bits` bits (1 to 31)."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
        return self._state >> (_STATE_BITS - bits)

    def next_int(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``, as ``Random.nextInt(bound)`` does.

        Raises ValueError: when `bound` is not positive or does not fit a Java int.
        """
        if not 1 <= bound <= _INT_MAX:
            raise ValueError(f"bound must be from 1 to {_INT_MAX}, not {bound}")
        if bound & (bound - 1) == 0:
            return (bound * self.next_bits(31)) >> 31
        # Reject the incomplete last run of `bound` values below 2**31: it favours small results.
        complete = (1 << 31) - (1 << 31) % bound
        while (drawn := self.next_bits(31)) >= complete:
            pass
        return drawn % bound


def shuffle(items: MutableSequence[Any], random: Draws) -> None:
    """Shuffle `items` in place with the draws of ``java.util.Collections.shuffle``.

    A list of n items takes n - 1 draws.
    """
    for size in range(len(items), 1, -1):
        drawn = random.next_int(size)
        items[size - 1], items[drawn] = items[drawn], items[size - 1]
