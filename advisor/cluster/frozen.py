"""An immutable, hashable mapping for frozen dataclasses."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping; hashable, picklable and equal to a dict with the same items."""

    __slots__ = ("_items",)
    _items: dict[K, V]

    def __init__(self, items: Mapping[K, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    # Those of Mapping look every key up, which shows with thousands of brokers.
    def items(self) -> ItemsView[K, V]:
        """Pairs of key and value."""
        return self._items.items()

    def values(self) -> ValuesView[V]:
        """Values."""
        return self._items.values()

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)
