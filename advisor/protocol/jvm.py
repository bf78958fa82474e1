"""Java's random numbers and hash orders, so that placements can be reproduced.

Kafka's controller places replicas with a ``java.util.Random`` and walks racks in the order of a
``HashMap<Optional<String>, Rack>``; Java's specification fixes both. Source: OpenJDK's
``java.util.HashMap`` (8 and later) and ``java.lang.String``.
"""

from collections import Counter
from collections.abc import Iterable, MutableSequence
from typing import Any, Protocol

from advisor.errors import InputError

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
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _STATE_MASK

    def next_bits(self, bits: int) -> int:
        """Advance the generator and return its top `bits` bits (1 to 31)."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
        return self._state >> (_STATE_BITS - bits)

    def next_int(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``, as ``Random.nextInt(bound)`` does."""
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
    """Shuffle `items` in place with the draws of ``java.util.Collections.shuffle``."""
    for size in range(len(items), 1, -1):
        drawn = random.next_int(size)
        items[size - 1], items[drawn] = items[drawn], items[size - 1]


_INITIAL_CAPACITY = 16
_LOAD_FACTOR = 0.75
_TREEIFY_THRESHOLD = 8
_MIN_TREEIFY_CAPACITY = 64


def utf16_units(text: str) -> tuple[int, ...]:
    """Return the UTF-16 code units of `text`: Java's chars, and its sort key for strings."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return tuple(int.from_bytes(encoded[i : i + 2], "big") for i in range(0, len(encoded), 2))


def string_hash(text: str) -> int:
    """Return ``String.hashCode()`` of `text` as an unsigned 32-bit integer."""
    value = 0
    for unit in utf16_units(text):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def optional_string_hash(text: str | None) -> int:
    """Return ``Optional<String>.hashCode()``, unsigned; 0 for None (``Optional.empty()``)."""
    return 0 if text is None else string_hash(text)


def hash_map_order(hashes: Iterable[int]) -> list[int]:
    """Return the positions of keys in the iteration order of a ``java.util.HashMap``.

    hashes: unsigned ``hashCode()`` of each distinct key, in insertion order. Keys in one bucket
        keep that order until a ninth makes it a tree, whose order may depend on object addresses.
    """
    spread = [code ^ (code >> 16) for code in hashes]
    capacity = _INITIAL_CAPACITY
    bucket_sizes: Counter[int] = Counter()
    for count, code in enumerate(spread, start=1):
        bucket_sizes[code & (capacity - 1)] += 1
        overflows = bucket_sizes[code & (capacity - 1)] > _TREEIFY_THRESHOLD
        if overflows and capacity >= _MIN_TREEIFY_CAPACITY:
            raise InputError(
                f"{_TREEIFY_THRESHOLD + 1} rack names share one bucket of Java's hash table of "
                f"{capacity}: the order in which Kafka walks them cannot be repeated. "
                "Rename one of them."
            )
        # An overfull bucket doubles a small table at once; the key count may double it again.
        grown = capacity * 2 if overflows else capacity
        grown = grown * 2 if count > grown * _LOAD_FACTOR else grown
        if grown != capacity:
            capacity = grown
            bucket_sizes = Counter(code & (capacity - 1) for code in spread[:count])
    return sorted(range(len(spread)), key=lambda position: spread[position] & (capacity - 1))
