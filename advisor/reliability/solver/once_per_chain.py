"""What the arrays of a chain say whatever its rates: computed once, for all draws of a card."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Answer = TypeVar("Answer")


def once_per_chain(question: Callable[..., Answer]) -> Callable[..., Answer]:
    """Remember the answers of a function of a chain, which equals only itself, and of a few more.

    >>> class Chain: ...
    >>> @once_per_chain
    ... def number(chain, start=0):
    ...     return [start]
    >>> chain = Chain()
    >>> number(chain) is number(chain), number(chain, 1)
    (True, [1])
    """
    answers: WeakKeyDictionary[Any, dict[tuple[Any, ...], Answer]] = WeakKeyDictionary()

    @wraps(question)
    def answered(chain: Any, *more: Any) -> Answer:
        of_chain = answers.setdefault(chain, {})
        if more not in of_chain:
            of_chain[more] = question(chain, *more)
        return of_chain[more]

    return answered
