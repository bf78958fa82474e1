"""The iteration order of Scala's hash maps.

Kafka brokers wrote JSON to ZooKeeper straight from Scala maps, so fields appear in map order:
``"controller_epoch"`` comes before ``"leader"`` because of their hash codes. The order does not
depend on the machine and can be computed.

Sources: ``scala.collection.immutable.HashMap`` and ``scala.collection.mutable.HashMap`` in Scala
2.12 (same in 2.10 and 2.11) and 2.13. Checked against published znodes of Kafka 0.10 to 3.x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.protocol.jvm.java_hash import string_hash

SCALA_2_12 = "2.12"
SCALA_2_13 = "2.13"

Hash = Callable[[str], int]

_MASK = 0xFFFFFFFF
_FIRST_TABLE = 16
_LARGEST_UNHASHED = 4
_BITS_PER_LEVEL = 5


def immutable_order(keys: Sequence[str], scala: str = SCALA_2_12) -> list[str]:
    """Return the keys in the iteration order of ``immutable.Map``.

    keys: distinct keys in insertion order.
    scala (one of "2.12", "2.13"): "2.12" covers 2.10 and 2.11 too.

    Up to four keys keep their order. More form a trie of 32-way nodes on the improved hash, lowest
    bits first. Scala 2.13 visits a node's own keys before its subtrees.
    """
    if len(keys) <= _LARGEST_UNHASHED:
        return list(keys)
    return _trie_order(list(keys), 0, scala == SCALA_2_13)


def mutable_order(
    keys: Sequence[str],
    scala: str = SCALA_2_12,
    initial_keys: int = 0,
    hash_code: Hash = string_hash,
) -> list[str]:
    """Return the keys in the iteration order of ``mutable.Map``.

    keys: distinct keys in insertion order.
    scala (one of "2.12", "2.13"): "2.12" covers 2.10 and 2.11 too.
    initial_keys: how many of the first keys the map was created with; Scala 2.13 sizes its table by
        that. 0 for a map that was created empty.
    hash_code: unsigned hash code of a key; by default a string's.
    """
    if scala == SCALA_2_13:
        return _mutable_2_13(keys, initial_keys, hash_code)
    return _mutable_2_12(keys, hash_code)


def _improve(code: int) -> int:
    """Improve a hash code as the immutable maps do, in 2.12 and 2.13."""
    code = (code + (~(code << 9) & _MASK)) & _MASK
    code ^= code >> 14
    code = (code + (code << 4)) & _MASK
    return code ^ (code >> 10)


def _trie_order(keys: list[str], level: int, own_first: bool) -> list[str]:
    slots: dict[int, list[str]] = {}
    for key in keys:
        slot = (_improve(string_hash(key)) >> (_BITS_PER_LEVEL * level)) & 31
        slots.setdefault(slot, []).append(key)
    order = sorted(slots, key=lambda slot: (own_first and len(slots[slot]) > 1, slot))
    result: list[str] = []
    for slot in order:
        members = slots[slot]
        result += members if len(members) == 1 else _trie_order(members, level + 1, own_first)
    return result


def _mutable_2_12(keys: Sequence[str], hash_code: Hash) -> list[str]:
    """Insert at the head of the bucket; iterate from the last bucket."""
    size = _FIRST_TABLE
    table: dict[int, list[str]] = {}
    for count, key in enumerate(keys, start=1):
        table.setdefault(_bucket_2_12(hash_code(key), size), []).insert(0, key)
        if count > size * 3 // 4:
            size *= 2
            grown: dict[int, list[str]] = {}
            for moved in _last_bucket_first(table):
                grown.setdefault(_bucket_2_12(hash_code(moved), size), []).insert(0, moved)
            table = grown
    return _last_bucket_first(table)


def _bucket_2_12(code: int, size: int) -> int:
    """Return the bucket of a hash code; the rotation stays that of the first table size."""
    multiplier = 0x9E3775CD
    swapped = int.from_bytes(((code * multiplier) & _MASK).to_bytes(4, "big"), "little")
    spread = (swapped * multiplier) & _MASK
    rotation = (_FIRST_TABLE - 1).bit_count()
    rotated = ((spread >> rotation) | (spread << (32 - rotation))) & _MASK
    return rotated >> (32 - (size - 1).bit_length())


def _last_bucket_first(table: dict[int, list[str]]) -> list[str]:
    return [key for bucket in sorted(table, reverse=True) for key in table[bucket]]


def _mutable_2_13(keys: Sequence[str], initial_keys: int, hash_code: Hash) -> list[str]:
    """Iterate from the first bucket; within a bucket by signed hash."""
    size = _FIRST_TABLE
    if initial_keys:
        capacity = (initial_keys + 1) * 4 // 3
        size = 2 ** (max(capacity - 1, 4).bit_length())
    while len(keys) >= size * 3 // 4:
        size *= 2

    def place(key: str) -> tuple[int, int]:
        code = hash_code(key)
        spread = code ^ (code >> 16)
        signed = spread - 2**32 if spread >> 31 else spread
        return spread & (size - 1), signed

    return sorted(keys, key=place)
