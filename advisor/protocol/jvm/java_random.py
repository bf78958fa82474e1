"""The numbers java.util.Random draws, so that a placement can be repeated draw for draw.

Kafka's controller places replicas with a ``java.util.Random``. Its generator is fixed by the
Java SE specification (class ``java.util.Random``; ``Collections.shuffle``), so the same seed
gives the same placement here. Nothing in this module reads a clock or a source of entropy.
"""

from collections.abc import MutableSequence
from typing import Any, Protocol

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_STATE_BITS = 48
_STATE_MASK = (1 << _STATE_BITS) - 1
_INT_MAX = (1 << 31) - 1


class Draws(Protocol):
    """What a placement needs of a random generator."""

    def next_int(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``."""
        ...


class JavaRandom:
    """A ``java.util.Random`` with a given seed: a linear congruential generator of 48 bits.

    A subclass that overrides `next_bits` inherits Java's way of making a bounded integer out
    of bits, exactly as a Java subclass that overrides ``next(int)`` does.

    Parameters
    ----------
    seed : int
        Java's ``long`` seed. Only its low 48 bits matter, as in Java.
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _STATE_MASK

    def next_bits(self, bits: int) -> int:
        """Advance the generator and return its top `bits` bits, 1 to 31 of them."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
        return self._state >> (_STATE_BITS - bits)

    def next_int(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``, as ``Random.nextInt(bound)`` does.

        Raises
        ------
        ValueError
            When `bound` is not positive or does not fit Java's int.
        """
        if not 1 <= bound <= _INT_MAX:
            raise ValueError(f"bound must be from 1 to {_INT_MAX}, not {bound}")
        if bound & (bound - 1) == 0:
            return (bound * self.next_bits(31)) >> 31
        # The last, incomplete run of `bound` values below 2**31 would favour small results.
        complete = (1 << 31) - (1 << 31) % bound
        while (drawn := self.next_bits(31)) >= complete:
            pass
        return drawn % bound


def shuffle(items: MutableSequence[Any], random: Draws) -> None:
    """Shuffle `items` in place, with the draws of ``java.util.Collections.shuffle``.

    A list of n items costs n - 1 draws, so a list of one costs none.
    """
    for size in range(len(items), 1, -1):
        drawn = random.next_int(size)
        items[size - 1], items[drawn] = items[drawn], items[size - 1]
