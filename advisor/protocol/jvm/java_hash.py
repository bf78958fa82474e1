"""String hash codes and the iteration order of ``java.util.HashMap``.

Kafka keeps racks in a ``HashMap<Optional<String>, Rack>`` and draws random numbers rack by rack in
iteration order, so that order decides which rack gets which number. Source: OpenJDK's
``java.util.HashMap`` (8 and later) and ``java.lang.String``.
"""

from collections import Counter
from collections.abc import Iterable

from advisor.errors import InputError

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

    hashes: unsigned 32-bit ``hashCode()`` of each distinct key, in insertion order, into a new map
        from which nothing is removed.
    Returns positions in `hashes`. Keys in one bucket keep insertion order; a resize splits a bucket
        without reordering it.
    Raises InputError: when a ninth key falls into one bucket of a table of 64 or more. Java then
        converts the bucket to a tree, whose order may depend on object addresses and is not
        reproducible.
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
